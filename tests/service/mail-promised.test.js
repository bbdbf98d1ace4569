// A mail once promised arrives, at least once, whatever becomes of the process that promised it.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertSent, hashOf, requestCode, uuid, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const itemsLeft = async (db) => (await db.query('select count(*)::int as n from reclaim.work_items'))[0].n;
const nothingLeft = (db) => until('nothing left to do', async () => (await itemsLeft(db)) === 0);

/** A provider and a server that uses it. */
async function office(t, db, env = {}) {
  const resend = await FakeProvider.start(t, 'resend');
  const server = await serve(t, { database: db, env: { ...resend.env, ...env } });
  return { resend, server };
}

describe('a mail promised', { concurrency: 2 }, () => {
  /** Kills the server while its provider is silent; the mail's lease is what keeps others away from it. */
  async function promiseAndDie(t, db, headers = {}) {
    const { resend, server } = await office(t, db);
    resend.answer({ silent: true });
    const user = await addUser(db);
    assertSent(await requestCode(server, user.email, {}, { headers }), 'cleanup-v1');
    await until('the first try', () => resend.attempts.length === 1);
    await server.kill9();
    return { user, resend, first: resend.attempts[0] };
  }

  const endLeases = (db) => db.query('update reclaim.work_items set leased_until = clock_timestamp() where leased_until is not null');

  it('is delivered by the next start after kill -9, with a code that works, the same in every copy', async (t) => {
    const db = await cluster.database(t);
    const { user, resend, first } = await promiseAndDie(t, db);
    resend.answer();
    await endLeases(db);
    const next = await serve(t, { database: db, env: resend.env });
    const copy = await resend.mailTo(user.email);
    assert.equal(copy.code, first.code);
    assert.equal(copy.key, first.key, 'so that the provider can tell');
    const [, reference] = /Reference: (\S+)/.exec(first.mail.text);
    assert.ok(copy.mail.text.includes(`Reference: ${reference}`));
    assertDeleted(await validate(next, user.email, first.code), 'cleanup-v1', user);
    await nothingLeft(db);
    await next.stop();
  });

  it('is delivered by another instance', async (t) => {
    const db = await cluster.database(t);
    const other = await FakeProvider.start(t, 'sendgrid');
    const second = await serve(t, { database: db, env: other.env });
    const { user, first } = await promiseAndDie(t, db, { 'Accept-Language': 'de' });
    await endLeases(db);
    const copy = await other.mailTo(user.email);
    assert.equal(copy.code, first.code);
    assert.equal(copy.mail.subject, 'Ihr Bestätigungscode', 'in the language of who asked');
    assert.equal(copy.mail.subject, first.mail.subject);
    assertDeleted(await validate(second, user.email, copy.code), 'cleanup-v1', user);
    await second.stop();
  });

  it('is not sent any more once its code is replaced, expired, or the user gone', async (t) => {
    const db = await cluster.database(t);
    const left = [];
    for (let n = 0; n < 3; n++) left.push(await promiseAndDie(t, db));
    const [replaced, expired, gone] = left.map(({ user }) => user);
    const provider = await FakeProvider.start(t, 'resend');
    await db.query(`update reclaim.verification_codes set expires_at = now() where email_hash = $1`, [hashOf(expired.email)]);
    await db.query('delete from auth.users where id = $1', [gone.id]);
    const next = await serve(t, { database: db, env: provider.env });
    assertSent(await requestCode(next, replaced.email), 'cleanup-v1');
    await provider.mailTo(replaced.email);
    await endLeases(db);
    await nothingLeft(db);
    assert.deepEqual(provider.attempts.map(({ mail }) => mail.to), [replaced.email]);
    await next.stop();
  });

  it('is not lost when the server is told to stop', async (t) => {
    const db = await cluster.database(t);
    const { resend, server } = await office(t, db);
    resend.answer({ silent: true });
    const user = await addUser(db);
    assertSent(await requestCode(server, user.email), 'cleanup-v1');
    await until('the first try', () => resend.attempts.length === 1);
    await server.stop();
    resend.answer();
    const next = await serve(t, { database: db, env: resend.env });
    const copy = await resend.mailTo(user.email);
    assert.equal(copy.code, resend.attempts[0].code);
    await next.stop();
  });

  it('holds neither address nor code while it waits', async (t) => {
    const db = await cluster.database(t);
    const { resend, server } = await office(t, db);
    resend.answer({ silent: true });
    const user = await addUser(db);
    assertSent(await requestCode(server, user.email), 'cleanup-v1');
    await until('the first try', () => resend.attempts.length === 1);
    const [item] = await db.query('select payload from reclaim.work_items');
    assert.deepEqual(Object.keys(item.payload).sort(), ['contract', 'correlation_id', 'email_hash', 'language', 'salt', 'template', 'user_id']);
    assert.ok(!JSON.stringify(item).includes('canary'));
    assert.match(item.payload.correlation_id, uuid);
    assert.match(item.payload.salt, /^[0-9a-f]{32}$/);
    await server.kill9();
    await db.query('delete from reclaim.work_items');
  });
});
