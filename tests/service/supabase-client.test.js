// The real Supabase client against the real server, as an application uses both.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import { createClient, FunctionsHttpError } from '@supabase/supabase-js';

import { assertDescribed } from './lib/openapi.js';
import { cleanupPath, contracts, scene, wrong } from './lib/cleanup.js';
import { connectTo, postmasterOf } from './lib/embedded.js';
import { addCompany, addUser, address, canaryToken } from './lib/people.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const confirmed = '2025-10-20T14:30:00Z';

function clientOf(server) {
  const { host, port } = server.address();
  return createClient(`http://${host}:${port}`, canaryToken, { auth: { persistSession: false, autoRefreshToken: false } });
}

const invoke = (client, name, body, headers) => client.functions.invoke(name, { body, headers });
const ask = (client, email, more, headers) => invoke(client, 'cleanup-orphaned-user', { step: 'request-code', email, ...more }, headers);
const type = (client, email, verificationCode, more) =>
  invoke(client, 'cleanup-orphaned-user', { step: 'validate-and-cleanup', email, verificationCode, ...more });

/** What an application reads from an error: its context is the whole Response. */
async function errorOf({ data, error }, status) {
  assert.equal(data, null);
  assert.ok(error instanceof FunctionsHttpError, String(error));
  assert.equal(error.context.status, status);
  const body = await error.context.text();
  assertDescribed({ method: 'POST', path: cleanupPath }, { status, headers: Object.fromEntries(error.context.headers), body });
  const { success, correlationId, error: told } = JSON.parse(body);
  assert.equal(success, false);
  assert.equal(error.context.headers.get('x-correlation-id'), correlationId);
  assert.equal(told.httpStatus, status);
  return told;
}

function dataOf({ data, error }) {
  assert.equal(error, null);
  assert.equal(data.success, true);
  assert.equal(data.data.correlationId, data.correlationId);
  return data;
}

const stage = new Stage();
let db, provider, servers;
before(async () => {
  ({ db, provider, servers } = await scene(stage, { auth: 'supabase' }));
});
after(() => stage.end());

for (const [contract, promised] of Object.entries(contracts))
  describe(`supabase-js, ${contract}, on Supabase Auth’s schema`, () => {
    let client;
    before(() => {
      client = clientOf(servers[contract]);
    });

    const orphanhood = async (email) => {
      const { data, error } = await invoke(client, 'check-email-status', { email });
      assert.equal(error, null);
      return data.data.isOrphaned;
    };

    it('sign-up, orphan, code, deletion, sign-up again: with all that belongs to a user of Supabase Auth', async () => {
      const user = await addUser(db, { confirmed });
      const session = randomUUID();
      await db.query(
        `insert into auth.identities (provider_id, user_id, identity_data, provider, created_at)
         values ($1, $2, jsonb_build_object('sub', $1::text, 'email', $3::text), 'email', now())`,
        [user.id, user.id, user.email],
      );
      await db.query(`insert into auth.sessions (id, user_id, created_at, aal) values ($1, $2, now(), 'aal1')`, [session, user.id]);
      await db.query('insert into auth.refresh_tokens (token, user_id, session_id, revoked) values ($1, $2, $3, false)', [randomUUID(), user.id, session]);
      assert.equal(await orphanhood(user.email), true);

      const correlationId = randomUUID();
      const asked = dataOf(await ask(client, user.email, { correlationId }, { 'x-correlation-id': randomUUID() }));
      assert.equal(asked.correlationId, correlationId);
      assert.deepEqual([asked.data.step, asked.data.message], ['code-sent', promised.codeSent]);
      assert.ok(Date.parse(asked.data.expiresAt) > Date.now());

      const { code } = await provider.mailTo(user.email);
      const deleted = dataOf(await type(client, user.email, code));
      assert.deepEqual(
        [deleted.data.step, deleted.data.message, deleted.data.deletedUserId, deleted.data.orphanClassification],
        ['user-deleted', promised.userDeleted, user.id, 'case_1_2'],
      );
      for (const table of ['users where id', 'identities where user_id', 'sessions where user_id', 'refresh_tokens where user_id'])
        assert.deepEqual(await db.query(`select 1 from auth.${table}::text = $1`, [user.id]), [], table);

      assert.equal(await orphanhood(user.email), false);
      const again = await addUser(db, { email: user.email, confirmed });
      assert.equal(await orphanhood(user.email), true);
      await addCompany(db, again);
      assert.equal(await orphanhood(user.email), false);
    });

    it('errors come as FunctionsHttpError with the answer in their context', async (t) => {
      const status = (number) => promised.errors[number][0];
      const told = async (result, number) => {
        const error = await errorOf(result, status(number));
        assert.equal(error.code, `ORPHAN_CLEANUP_${number}`);
        if (promised.errors[number][1]) assert.equal(error.message, promised.errors[number][1]);
      };
      await told(await ask(client, address('nobody')), '004');
      const owner = await addUser(db, { confirmed });
      await addCompany(db, owner);
      await told(await ask(client, owner.email), '005');
      await told(await ask(client, 'nonsense'), promised.malformed);
      const user = await addUser(db);
      await told(await type(client, user.email, contract === 'cleanup-v1' ? 'ABCD-EFGH' : '123456'), promised.gone);
      dataOf(await ask(client, user.email));
      const { code } = await provider.mailTo(user.email);
      await told(await type(client, user.email, wrong(code)), '002');
      const operator = await db.session(t);
      await operator.query('select reclaim.acquire_cleanup_lock($1)', [user.email]);
      await told(await type(client, user.email, code), '009');
    });

    it('a refusal tells when to come back', async (t) => {
      const limited = await serve(t, { database: db, env: { RECLAIM_CONTRACT: contract, ...provider.env, RECLAIM_LIMIT_EMAIL: '1/3600' } });
      const other = clientOf(limited);
      const user = await addUser(db);
      dataOf(await ask(other, user.email));
      const result = await ask(other, user.email);
      const error = await errorOf(result, 429);
      assert.equal(error.code, 'ORPHAN_CLEANUP_003');
      assert.ok(error.retryAfter >= 1 && error.retryAfter <= 3600);
      const { headers } = result.error.context;
      assert.equal(Number(headers.get('retry-after')), error.retryAfter);
      assert.equal(headers.get('x-ratelimit-limit'), '1');
      assert.equal(headers.get('x-ratelimit-remaining'), '0');
      assert.ok(Number(headers.get('x-ratelimit-reset')) > Date.now() / 1000);
      await limited.stop();
    });
  });

/** The two functions and the error parser of the first document's client library, step by step: what they send and what they
 * read, on the same client. `printed` gives an error's code as that parser does: it takes every error that has a context for
 * a failed connection, and with this release of supabase-js every error has one. */
const documentClient = (client) => {
  const call = async (fields, email, correlationId) => {
    const { data, error } = await client.functions.invoke('cleanup-orphaned-user', {
      body: { ...fields, email: email.toLowerCase().trim(), correlationId: correlationId ?? randomUUID() },
      headers: { 'x-correlation-id': correlationId ?? randomUUID() },
    });
    if (error) throw await parse(error);
    return { success: true, message: data.message, correlationId: data.correlationId };
  };
  const parse = async (error) => {
    const told = error.context instanceof Response ? (await error.context.json()).error : error.context?.error || {};
    return {
      printed: 'context' in error ? 'NETWORK_ERROR' : told.code || 'UNKNOWN_ERROR',
      code: told.code || 'UNKNOWN_ERROR',
      message: told.message || 'An unexpected error occurred',
      retryAfter: told.retryAfter,
    };
  };
  return {
    requestCleanupCode: (email, correlationId) => call({ step: 'request-code' }, email, correlationId),
    validateAndCleanup: (email, verificationCode, correlationId) => call({ step: 'validate-and-cleanup', verificationCode }, email, correlationId),
  };
};

describe('the clients that the documents print', () => {
  it('the first document’s library shows a message and the id that it sent after both steps, and knows errors by their code', async () => {
    const { requestCleanupCode, validateAndCleanup } = documentClient(clientOf(servers['cleanup-v1']));
    const user = await addUser(db);
    const correlationId = randomUUID();
    assert.deepEqual(await requestCleanupCode(`  ${user.email.toUpperCase()} `, correlationId), {
      success: true,
      message: contracts['cleanup-v1'].codeSent,
      correlationId,
    });
    const { code } = await provider.mailTo(user.email);
    await assert.rejects(validateAndCleanup(user.email, wrong(code)), (error) => {
      assert.equal(error.code, 'ORPHAN_CLEANUP_002');
      assert.equal(error.message, contracts['cleanup-v1'].errors['002'][1]);
      assert.equal(error.printed, 'NETWORK_ERROR', 'as printed, whatever a server answers');
      return true;
    });
    const deleted = await validateAndCleanup(user.email, code);
    assert.equal(deleted.message, contracts['cleanup-v1'].userDeleted);
    assert.match(deleted.correlationId, /^[0-9a-f-]{36}$/);
  });

  it('the second document’s three calls of fetch find all that they read', async () => {
    const { host, port } = servers['registration-recovery'].address();
    const call = async (name, body) => {
      const response = await fetch(`http://${host}:${port}/functions/v1/${name}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      });
      return response.json();
    };
    const { email, id } = await addUser(db);
    const { data: probed } = await call('check-email-status', { email });
    assert.deepEqual([probed.isOrphaned, probed.status], [true, 'registered_unverified']);
    const sent = await call('cleanup-orphaned-user', { step: 'request-code', email });
    assert.equal(sent.success, true);
    assert.match(sent.correlationId, /^[0-9a-f-]{36}$/);
    const { code } = await provider.mailTo(email);
    const refused = await call('cleanup-orphaned-user', { step: 'validate-and-cleanup', email, verificationCode: wrong(code) });
    assert.deepEqual([refused.success, refused.error.message], [false, contracts['registration-recovery'].errors['002'][1]]);
    const { success, data } = await call('cleanup-orphaned-user', { step: 'validate-and-cleanup', email, verificationCode: code });
    assert.deepEqual([success, data.deletedUserId], [true, id]);
  });
});

describe('supabase-js with a demonstration and its mailbox', () => {
  it('the whole story, the code read from the mailbox', async (t) => {
    const server = await serve(t, { args: ['--demo'] });
    const client = clientOf(server);
    const own = await connectTo(t, postmasterOf(server).data);
    const user = await addUser(own);
    dataOf(await ask(client, user.email));
    const { host, port } = server.address();
    const mail = await until('the mail in the mailbox', async () => {
      const response = await fetch(`http://${host}:${port}/mailbox.json`);
      assert.equal(response.status, 200);
      return (await response.json()).items.find(({ to }) => to === user.email);
    });
    const [, code] = /^ {4}(\S+)\r?$/m.exec(mail.text);
    assert.match(code, contracts['cleanup-v1'].code);
    const page = await (await fetch(`http://${host}:${port}/mailbox/${mail.id}`)).text();
    assert.ok(page.includes(code) && page.includes(user.email));
    const deleted = dataOf(await type(client, user.email, code));
    assert.equal(deleted.data.deletedUserId, user.id);
    assert.equal(deleted.data.orphanClassification, 'case_1_1');
    const again = await addUser(own, { email: user.email });
    dataOf(await ask(client, again.email));
    await server.stop();
  });

  it('there is no mailbox beside a database of one’s own', async () => {
    const { host, port } = servers['cleanup-v1'].address();
    for (const page of ['mailbox', 'mailbox.json']) assert.equal((await fetch(`http://${host}:${port}/${page}`)).status, 404);
  });
});
