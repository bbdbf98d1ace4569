// @reclaim/client in Node: against the real server, and against a stub for answers that the server gives in outages only.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';
import { createClient } from '@supabase/supabase-js';

import { createReclaim, ReclaimError } from '../../clients/js/index.js';
import { wrong } from './lib/cleanup.js';
import { addCustomer, addKey, canaryPassword, env, frozenEverywhere, rowOf, scene, tokenOf } from './lib/customers.js';
import { addUser, address, canaryToken } from './lib/people.js';
import { serve } from './lib/reclaim.js';
import { Stage, stageOf } from './lib/stage.js';

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const urlOf = (server) => `http://${server.address().host}:${server.address().port}`;

/** Fails unless the call is refused with these fields; returns the error. */
async function refused(call, fields) {
  const error = await call.then(
    (answer) => assert.fail(`not refused: ${JSON.stringify(answer)}`),
    (fault) => fault,
  );
  assert.ok(error instanceof ReclaimError, String(error?.stack));
  for (const [name, value] of Object.entries(fields)) assert.deepEqual(error[name], value, `${name} of ${error.stack}`);
  assert.match(error.correlationId, uuid);
  assert.ok(error.message.length > 10);
  return error;
}

/** A session of supabase-js in its store, without Supabase Auth. */
function supabaseOf(url, user, options = {}) {
  const store = new Map();
  if (user) {
    const expires = Math.floor(Date.now() / 1000) + 3600;
    const session = { access_token: tokenOf({ sub: user.id }), refresh_token: 'x', token_type: 'bearer', expires_in: 3600, expires_at: expires, user };
    store.set('session', JSON.stringify(session));
  }
  const storage = { getItem: (key) => store.get(key) ?? null, setItem: (key, value) => store.set(key, value), removeItem: (key) => store.delete(key) };
  const client = createClient(url, canaryToken, { auth: { storage, storageKey: 'session', autoRefreshToken: false, detectSessionInUrl: false }, ...options });
  return { client, isSignedIn: () => store.has('session') };
}

const stage = new Stage();
let db, provider, server, url;
before(async () => {
  ({ db, provider, server } = await scene(stage));
  url = urlOf(server);
});
after(() => stage.end());

describe('registration recovery', () => {
  const kinds = { url: () => ({ url }), supabase: () => ({ supabase: supabaseOf(url).client }) };
  for (const [kind, given] of Object.entries(kinds))
    it(`probes, asks for a code and deletes the orphan, with ${kind}`, async () => {
      const reclaim = createReclaim(given());
      const user = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
      const correlationId = randomUUID();
      const status = await reclaim.probe(user.email, { correlationId });
      assert.deepEqual([status.status, status.isOrphaned, status.correlationId], ['registered_verified', true, correlationId]);
      const sent = await reclaim.requestCode(user.email);
      assert.equal(sent.step, 'code-sent');
      assert.ok(Date.parse(sent.expiresAt) > Date.now());
      const { code } = await provider.mailTo(user.email);
      await refused(reclaim.validateAndCleanup(user.email, wrong(code)), { code: 'ORPHAN_CLEANUP_002', status: 401, retryAfter: undefined });
      const deleted = await reclaim.validateAndCleanup(user.email, code);
      assert.deepEqual([deleted.step, deleted.deletedUserId, deleted.orphanClassification], ['user-deleted', user.id, 'case_1_2']);
      assert.equal((await reclaim.probe(user.email)).status, 'not_registered');
      await refused(reclaim.requestCode(user.email), { code: 'ORPHAN_CLEANUP_004', status: 404 });
      const { body } = await refused(reclaim.probe('nonsense'), { code: 'ORPHAN_CLEANUP_007', status: 400 });
      assert.equal(body.success, false);
    });

  for (const kind of ['url', 'supabase'])
    it(`tells at once that a limit lasts longer than it may wait, with ${kind}`, async (t) => {
      const limited = await serve(t, { database: db, env: { ...env, ...provider.env, RECLAIM_LIMIT_EMAIL: '1/3600' } });
      const reclaim = createReclaim(kind === 'url' ? { url: urlOf(limited) } : { supabase: supabaseOf(urlOf(limited)).client });
      const user = await addUser(db);
      await reclaim.requestCode(user.email);
      const { retryAfter } = await refused(reclaim.requestCode(user.email), { code: 'ORPHAN_CLEANUP_003', status: 429 });
      assert.ok(retryAfter > 60 && retryAfter <= 3600, String(retryAfter));
      await limited.stop();
    });

  it('waits as long as the server says and repeats what a limit refused', async (t) => {
    const limited = await serve(t, { database: db, env: { ...env, ...provider.env, RECLAIM_LIMIT_PROBE: '1/2' } });
    const reclaim = createReclaim({ url: urlOf(limited) });
    const email = address('nobody');
    const all = await Promise.all([reclaim.probe(email), reclaim.probe(email)]);
    assert.deepEqual(all.map(({ status }) => status), ['not_registered', 'not_registered']);
    await refused(createReclaim({ url: urlOf(limited), retries: 0 }).probe(email), { status: 429 });
    await limited.stop();
  });

  it('ends the session of the deleted user, and of no other', async () => {
    for (const own of [true, false]) {
      const [user, other] = [await addUser(db), await addUser(db)];
      const { client, isSignedIn } = supabaseOf(url, own ? user : other);
      const reclaim = createReclaim({ supabase: client });
      await reclaim.requestCode(user.email);
      await reclaim.validateAndCleanup(user.email, (await provider.mailTo(user.email)).code);
      assert.equal(isSignedIn(), !own);
    }
  });
});

describe('account deletion', () => {
  const kinds = {
    'a token': ({ user }) => ({ url, token: tokenOf({ sub: user.id }) }),
    'a function that returns a token': ({ user }) => ({ url, token: async () => tokenOf({ sub: user.id }) }),
    'supabase-js': ({ user }) => ({ supabase: supabaseOf(url, user).client }),
    'supabase-js and tokens of another provider': ({ user }) => ({ supabase: createClient(url, canaryToken, { accessToken: async () => tokenOf({ sub: user.id }) }) }),
    'supabase-js, Reclaim elsewhere': ({ user }) => ({ supabase: supabaseOf('http://127.0.0.1:9', user).client, url: `${url}/` }),
  };
  for (const [kind, given] of Object.entries(kinds))
    it(`shows the account, freezes it and takes it back, with ${kind}`, async () => {
      const customer = await addCustomer(db);
      const reclaim = createReclaim(given(customer));
      const account = await reclaim.account();
      assert.deepEqual([account.id, account.status], [customer.id, 'active']);
      await refused(reclaim.unregister({ password: 'canary-password-wrong' }), { code: 'WRONG_PASSWORD', status: 400 });
      assert.equal((await rowOf(db, customer)).status, 'active');
      const frozen = await reclaim.unregister({ password: canaryPassword });
      assert.equal(frozen.status, 'frozen');
      assert.ok(Date.parse(frozen.deletion_effective_at) > Date.now());
      await frozenEverywhere(server, customer.id);
      assert.equal((await reclaim.account()).status, 'frozen', 'the session lasts');
      assert.equal((await reclaim.recover()).status, 'active');
      await refused(reclaim.recover(), { code: 'NOT_FROZEN', status: 404 });
    });

  it('names the customer that is meant', async () => {
    const [first, second] = [await addCustomer(db), await addCustomer(db, { owner: false })];
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [second.id, first.user.id]);
    const reclaim = createReclaim({ url, token: tokenOf({ sub: first.user.id }) });
    await refused(reclaim.unregister({ password: canaryPassword }), { code: 'WHICH_CUSTOMER', status: 400 });
    assert.equal((await reclaim.unregister({ password: canaryPassword }, { customer: second.id })).id, second.id);
    assert.equal((await reclaim.account({ customer: second.id })).status, 'frozen');
    const bound = createReclaim({ url, token: tokenOf({ sub: first.user.id }), customer: second.id });
    assert.equal((await bound.recover()).id, second.id);
    assert.equal((await bound.account()).status, 'active');
  });

  it('takes an API key', async () => {
    const customer = await addCustomer(db);
    const reclaim = createReclaim({ url, apiKey: await addKey(stage, db, customer), customer: customer.id });
    assert.equal((await reclaim.account()).id, customer.id);
    assert.equal((await reclaim.unregister({ confirmation_phrase: 'DELETE' })).status, 'frozen');
  });

  it('without credentials is refused', async () => {
    await refused(createReclaim({ url }).account(), { code: 'NO_CREDENTIALS', status: 401 });
    await refused(createReclaim({ supabase: supabaseOf(url).client }).recover(), { code: 'NO_CREDENTIALS', status: 401 });
  });

  it('needs to know where the server is', () => {
    for (const given of [undefined, {}, { token: 'x' }]) assert.throws(() => createReclaim(given), TypeError);
  });
});

describe('answers in outages, from a stub', () => {
  /** Answers with one step of the script after the other; the last is repeated. A step is a function of request and response. */
  async function stub(scope, ...script) {
    const seen = [];
    const listener = http.createServer((request, response) => {
      const parts = [];
      request.on('data', (part) => parts.push(part));
      request.on('end', () => {
        const { method, url: path, headers } = request;
        seen.push({ method, path, headers, body: Buffer.concat(parts).toString('utf8') });
        script[Math.min(seen.length, script.length) - 1](response, request);
      });
    });
    await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
    stageOf(scope).after(() => {
      listener.closeAllConnections();
      return new Promise((resolve) => listener.close(resolve));
    });
    return { seen, url: `http://127.0.0.1:${listener.address().port}` };
  }
  const say = (status, body, headers = {}) => (response) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(typeof body === 'string' ? body : JSON.stringify(body));
  const drop = (response) => response.socket.destroy();
  const cut = (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': 100 });
    response.write('{"data":', () => response.socket.destroy());
  };
  const busy = (retryAfter) => say(429, { error: 'TOO_MANY_TRIES', message: 'Too many tries.' }, { 'retry-after': String(retryAfter) });
  const away = say(503, { error: 'UNAVAILABLE', message: 'Please try again in a moment.' }, { 'retry-after': '0' });
  const found = say(200, { data: { status: 'not_registered' } });
  const frozen = say(200, { id: randomUUID(), status: 'frozen' });
  const email = address('nobody');
  const changes = {
    requestCode: (reclaim) => reclaim.requestCode(email),
    validateAndCleanup: (reclaim) => reclaim.validateAndCleanup(email, 'ABCD-EFGH'),
    unregister: (reclaim) => reclaim.unregister({ password: canaryPassword }),
    recover: (reclaim) => reclaim.recover(),
  };

  it('what only reads is repeated after a 503 with Retry-After and after a broken connection', async (t) => {
    for (const fault of [drop, cut, away]) {
      const { seen, url: at } = await stub(t, fault, found);
      assert.equal((await createReclaim({ url: at }).probe(email)).status, 'not_registered');
      assert.equal(seen.length, 2);
      assert.equal(seen[0].body, seen[1].body, 'the same correlation id');
    }
    const { seen, url: at } = await stub(t, away, drop, say(200, { id: 'x', status: 'active' }));
    assert.equal((await createReclaim({ url: at, customer: 'x', token: 't' }).account()).status, 'active');
    assert.equal(seen.length, 3);
  });

  for (const [name, change] of Object.entries(changes))
    it(`${name} is never repeated after a broken connection or a 503, and is after a 429`, async (t) => {
      for (const [fault, fields] of [
        [drop, { code: 'NETWORK', status: 0 }],
        [cut, { code: 'NETWORK', status: 0 }],
        [away, { code: 'UNAVAILABLE', status: 503, retryAfter: 0 }],
        [say(502, '<html>Bad gateway</html>', { 'retry-after': '0' }), { code: 'UNEXPECTED_ANSWER', status: 502 }],
      ]) {
        const { seen, url: at } = await stub(t, fault);
        await refused(change(createReclaim({ url: at, token: 't' })), fields);
        assert.equal(seen.length, 1);
      }
      const answer = { requestCode: { data: { step: 'code-sent' } }, validateAndCleanup: { data: { step: 'user-deleted' } } }[name] ?? { status: 'active' };
      const { seen, url: at } = await stub(t, busy(0), say(200, answer));
      await change(createReclaim({ url: at, token: 't' }));
      assert.equal(seen.length, 2);
    });

  it('repeats at most as often as it may, and never without Retry-After or past the longest wait', async (t) => {
    for (const [script, options, expected] of [
      [busy(0), {}, 3],
      [busy(0), { retries: 4 }, 5],
      [busy(0), { retries: 0 }, 1],
      [busy(11), {}, 1],
      [busy(2), { maxWait: 1 }, 1],
      [say(429, { error: 'X', message: 'Too many requests.' }), {}, 1],
      [say(503, { error: 'X', message: 'Not available now.' }), {}, 1],
      [say(500, { error: 'X', message: 'Something failed.' }, { 'retry-after': '0' }), {}, 1],
      [busy(new Date(Date.now() + 60_000).toUTCString()), {}, 1],
      [busy('soon'), {}, 1],
    ]) {
      const { seen, url: at } = await stub(t, script);
      await refused(createReclaim({ url: at, ...options }).probe(email), {});
      assert.equal(seen.length, expected);
    }
  });

  it('does not take an answer of something else for one of Reclaim’s', async (t) => {
    for (const [script, fields] of [
      [say(200, '<!doctype html>', { 'content-type': 'text/html' }), { status: 200 }],
      [say(200, '{"data":', {}), { status: 200 }],
      [say(200, 'null', {}), { status: 200 }],
      [say(404, '<html>not here</html>', { 'content-type': 'text/html' }), { status: 404 }],
      [say(400, { error: { message: 7 } }), { status: 400 }],
    ]) {
      const { url: at } = await stub(t, script);
      await refused(createReclaim({ url: at }).probe(email), { code: 'UNEXPECTED_ANSWER', ...fields });
    }
  });

  describe('is cancelled by its signal', () => {
    const reason = new Error('the page was left');
    const kinds = {
      url: (at, fetch) => ({ url: at, fetch }),
      supabase: (at, fetch) => ({ supabase: supabaseOf(at, null, { global: { fetch } }).client }),
    };
    for (const [kind, given] of Object.entries(kinds)) {
      it(`before it begins, with ${kind}`, async (t) => {
        const { seen, url: at } = await stub(t, found);
        await assert.rejects(createReclaim(given(at, fetch)).probe(email, { signal: AbortSignal.abort(reason) }), reason);
        assert.equal(seen.length, 0);
      });

      it(`while it waits for the answer, with ${kind}`, async (t) => {
        const leaving = new AbortController();
        const { seen, url: at } = await stub(t, () => leaving.abort(reason));
        await assert.rejects(createReclaim(given(at, fetch)).probe(email, { signal: leaving.signal }), reason);
        assert.equal(seen.length, 1);
      });

      it(`while it waits to repeat, with ${kind}`, async (t) => {
        const leaving = new AbortController();
        const { seen, url: at } = await stub(t, busy(9));
        const readThenLeave = async (...all) => {
          const response = await fetch(...all);
          const text = await response.text();
          response.text = async () => {
            setTimeout(() => leaving.abort(reason)); // when the client has read the answer
            return text;
          };
          return response;
        };
        await assert.rejects(createReclaim(given(at, readThenLeave)).probe(email, { signal: leaving.signal }), reason);
        assert.equal(seen.length, 1);
      });
    }
  });

  it('a deletion at once ends the session', async (t) => {
    const { seen, url: at } = await stub(t, say(200, { id: 'x', status: 'deleted' }), (response) => response.writeHead(204).end());
    const { client, isSignedIn } = supabaseOf(at, { id: randomUUID() });
    assert.equal((await createReclaim({ supabase: client }).unregister({ password: canaryPassword, immediate: true })).status, 'deleted');
    assert.deepEqual(JSON.parse(seen[0].body), { password: canaryPassword, immediate: true });
    assert.equal(isSignedIn(), false);
    assert.match(seen[1].path, /^\/auth\/v1\/logout\?scope=local$/);
  });

  it('a failing sign-out does not fail the deletion', async (t) => {
    const { url: at } = await stub(t, say(200, { id: 'x', status: 'deleted' }));
    const auth = { getSession: async () => ({ data: { session: { access_token: 't', user: { id: 'x' } } } }), signOut: () => Promise.reject(new Error('offline')) };
    const reclaim = createReclaim({ url: at, supabase: { auth } });
    assert.equal((await reclaim.unregister({ code: '1' })).status, 'deleted');
  });

  it('exports the account as an archive', async (t) => {
    const archive = Buffer.from('PK\u0003\u0004 archive');
    const zip = (response) => response.writeHead(200, { 'content-type': 'application/zip' }).end(archive);
    const { seen, url: at } = await stub(t, zip);
    const blob = await createReclaim({ url: at, token: 't', customer: 'c' }).export();
    assert.deepEqual(Buffer.from(await blob.arrayBuffer()), archive);
    assert.deepEqual([seen[0].method, seen[0].path, seen[0].headers.authorization], ['GET', '/v1/customers/c/export', 'Bearer t']);
    const refusing = await stub(t, say(403, { error: 'PROOF_REQUIRED', message: 'Sign in again first.' }));
    await refused(createReclaim({ url: refusing.url, token: 't', customer: 'c' }).export(), { code: 'PROOF_REQUIRED', status: 403 });
  });

  it('has a correlation id without crypto, as in Node 18 and in pages that are not a secure context', async (t) => {
    const { seen, url: at } = await stub(t, drop);
    const before = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
    Object.defineProperty(globalThis, 'crypto', { value: undefined, configurable: true });
    t.after(() => (before ? Object.defineProperty(globalThis, 'crypto', before) : delete globalThis.crypto));
    const [first, second] = await Promise.all([1, 2].map(() => refused(createReclaim({ url: at }).requestCode(email), { code: 'NETWORK' })));
    assert.notEqual(first.correlationId, second.correlationId);
    assert.ok(seen.some(({ body }) => JSON.parse(body).correlationId === first.correlationId));
  });

  it('sends nothing but what it needs', async (t) => {
    const { seen, url: at } = await stub(t, frozen);
    await createReclaim({ url: at, apiKey: 'k', token: 't' }).unregister({ confirmation_phrase: 'DELETE' }, { correlationId: 'a1b2c3d4-e5f6-4890-abcd-ef1234567890' });
    const { host, connection, 'user-agent': agent, accept, 'accept-language': language, 'sec-fetch-mode': mode, 'accept-encoding': encoding, 'content-length': length, ...own } = seen[0].headers;
    assert.deepEqual(own, { 'content-type': 'application/json', 'x-api-key': 'k', 'x-correlation-id': 'a1b2c3d4-e5f6-4890-abcd-ef1234567890' });
  });
});
