// The hook before-user-created of Supabase Auth: who may ask, and whose address cools down after a deletion.

import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertSent, requestCode, validate } from './lib/cleanup.js';
import { addCustomer, asAdmin, assertError, customerAddress, scene } from './lib/customers.js';
import { due, expire, found, metric, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { address, addUser } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';
import { callHook, eventOf, hookPath, secretOf, signatureOf, signUpOf } from './lib/supabase-auth.js';

const stage = new Stage();
const old = secretOf(randomBytes(32));
const fresh = secretOf(randomBytes(48));
const other = secretOf(randomBytes(32));
const settings = { RECLAIM_COOLDOWN: '90d', RECLAIM_HOOK_SECRET: `${old}|${fresh}`, RECLAIM_SANDBOX: 'on', RECLAIM_EXPIRY_BRAKE: 'off' };
let cluster, db, server, provider, bare;
before(async () => {
  ({ cluster, db, server, provider } = await scene(stage, { settings }));
  bare = await serve(stage, { database: db, env: { ...settings, ...provider.env, RECLAIM_HOOK_SECRET: undefined } });
});
after(async () => {
  if (!cluster.running) await cluster.start();
  await stage.end();
});

const hook = (event, options = {}) => callHook(server, event, { secrets: [old], ...options });
const signUp = async (email) => signUpOf(await hook(eventOf(email)));
const now = () => Math.floor(Date.now() / 1000);
const refused = { status: 403, message: 'This e-mail address cannot be used to sign up at the moment. Please use another one, or try again later.' };

describe('who may ask', () => {
  const email = customerAddress('new');
  const assertUnsigned = (answer) => {
    assertError(answer, 401, 'INVALID_SIGNATURE');
    assert.deepEqual(signUpOf(answer), { status: 500 }, 'and the user is not created');
  };

  it('whoever has one of the secrets, as Supabase Auth joins the signatures', async () => {
    for (const secrets of [[old], [fresh], [other, fresh], [old, fresh]]) {
      const answer = await hook(eventOf(email), { secrets });
      assert.equal(answer.status, 200, answer.body);
      assert.equal(answer.body, '{}');
      assert.equal(answer.headers['content-type'], 'application/json');
    }
  });

  it('nobody without a signature, or with one that is forged, cut off or of another secret', async () => {
    const id = 'an-id';
    const at = now();
    const body = JSON.stringify(eventOf(email));
    const right = signatureOf(old, id, at, body);
    const signed = (signature) => hook(body, { id, at, headers: { 'webhook-signature': signature } });
    assert.equal((await signed(right)).status, 200);
    for (const wrong of ['', right.slice(0, -1), right.slice(0, 20), right.replace('v1,', 'v2,'), right.replace('v1,', 'v1a,'), right.slice(3), `v1,${'A'.repeat(43)}=`, `${right}${right}`, signatureOf(other, id, at, body)])
      assertUnsigned(await signed(wrong));
    assertUnsigned(await hook(body, { secrets: [other] }));
    assertUnsigned(await request(server, { method: 'POST', path: hookPath, body, headers: { 'Content-Type': 'application/json' } }));
    assertUnsigned(await request(server, { method: 'POST', path: hookPath, body, headers: { 'Content-Type': 'application/json', ...asAdmin() } }));
    for (const missing of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) assertUnsigned(await hook(body, { headers: { [missing]: '' } }));
  });

  it('nobody with a signature of another body, id or time', async () => {
    const id = 'an-id';
    const at = now();
    const signature = signatureOf(old, id, at, JSON.stringify(eventOf(email)));
    assertUnsigned(await hook(eventOf(customerAddress()), { id, at, headers: { 'webhook-signature': signature } }));
    const body = JSON.stringify(eventOf(email));
    const right = signatureOf(old, id, at, body);
    assertUnsigned(await hook(body, { id: 'another-id', at, headers: { 'webhook-signature': right } }));
    assertUnsigned(await hook(body, { id, at: at + 1, headers: { 'webhook-signature': right } }));
    assertUnsigned(await hook(body, { id: 'an.id', at }));
  });

  it('nobody more than five minutes before or after', async () => {
    for (const at of [now() - 330, now() + 330, 0, -1, 'soon', `${now()}.5`]) assertUnsigned(await hook(eventOf(email), { at }));
    for (const at of [now() - 270, now() + 270]) assert.equal((await hook(eventOf(email), { at })).status, 200);
  });

  it('a request that is repeated changes nothing and has the same answer', async () => {
    const same = { id: 'the-same', at: now() };
    const event = eventOf(email);
    const before = await db.query('select * from reclaim.address_cooldowns');
    for (let i = 0; i < 3; i++) assert.equal((await hook(event, same)).body, '{}');
    assert.deepEqual(await db.query('select * from reclaim.address_cooldowns'), before);
  });

  it('bodies are read after the signature, and may have 64 KiB', async () => {
    for (const body of ['', 'no json', '[]', '{}', '{"user":"x"}', '{"user":{"email":5}}', '{"user":{},"user":{}}', `{"user":${'['.repeat(100)}${']'.repeat(100)}}`]) {
      assertError(await hook(body), 400, 'INVALID_BODY');
      assertUnsigned(await hook(body, { secrets: [other] }));
    }
    const large = (bytes) => eventOf(email, { user_metadata: { about: 'x'.repeat(bytes) } });
    assert.equal((await hook(large(60_000))).status, 200);
    assertError(await hook(large(66_000)), 413, 'TOO_LARGE');
    assertError(await hook(large(1_000_000)), 413, 'TOO_LARGE');
  });

  it('other methods are refused, and without a secret there is no hook', async () => {
    for (const method of ['GET', 'PUT', 'DELETE']) {
      const answer = await hook(eventOf(email), { method });
      assert.equal(answer.status, 405, answer.body);
      assert.equal(answer.headers.allow, 'POST');
    }
    const answer = assertError(await callHook(bare, eventOf(email), { secrets: [old] }), 404, 'HOOK_NOT_CONFIGURED');
    assert.match(answer.json.message, /RECLAIM_HOOK_SECRET/);
  });

  it('users without an address, and with one that nobody can have had, are created', async () => {
    for (const user of [{ email: undefined }, { email: null }, { email: '', phone: '15550100' }, { email: 'no address' }, { email: `${'x'.repeat(300)}@example.com` }])
      assert.equal((await hook({ user })).body, '{}');
  });
});

describe('an address cools down', () => {
  const cools = async (email) => assert.deepEqual(await signUp(email), refused, email);
  const free = async (email) => assert.equal(await signUp(email), 'created', email);
  const gone = async (customer) => assert.equal((await remove(server, customer.id)).status, 200);

  it('after a deletion by an administrator: that of the customer and of its owner, however it is written', async () => {
    const customer = await addCustomer(db);
    await free(customer.user.email);
    await gone(customer);
    for (const email of [customer.email, customer.user.email, customer.user.email.toUpperCase(), ` ${customer.user.email}\t`]) await cools(email);
    await free(`other.${customer.user.email}`);
    assert.equal(await metric(server, 'reclaim_sign_ups_total', { outcome: 'refused' }), 4);
  });

  it('after an expiry, and a deletion from a command line that has none of these settings', async () => {
    const customers = [await addCustomer(db), await addCustomer(db), await addCustomer(db)];
    await due(server, db, customers[0]);
    await due(server, db, customers[1]);
    assert.equal(await expire(stage, db), 2);
    const one = await run(stage, ['delete', customers[2].id], { database: db });
    assert.equal(one.code, 0, one.stderr);
    for (const { user } of customers) await cools(user.email);
  });

  it('after plain SQL: the hash is made before the address is cleared', async () => {
    const [marked, removed] = [await addCustomer(db), await addCustomer(db)];
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [marked.id]);
    await db.query('delete from reclaim.customer_customers where id = $1', [removed.id]);
    for (const { user } of [marked, removed])
      await until('cleared by the engine', async () => (await db.query('select from auth.users where id = $1', [user.id])).length === 0);
    await cools(marked.user.email);
    await cools(marked.email);
    await cools(removed.user.email);
  });

  it('of members whose logins go, not of those who have another customer', async () => {
    const customer = await addCustomer(db);
    const elsewhere = await addCustomer(db);
    const going = await addUser(db, { confirmed: new Date() });
    const staying = await addUser(db, { confirmed: new Date() });
    for (const [{ id }, user] of [[customer, going], [customer, staying], [elsewhere, staying]])
      await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [id, user.id]);
    await gone(customer);
    await cools(going.email);
    await free(staying.email);
    await free(elsewhere.user.email);
  });

  it('never of an orphan that was cleaned up so that it can register again', async () => {
    const orphan = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    assertSent(await requestCode(server, orphan.email), 'cleanup-v1');
    assertDeleted(await validate(server, orphan.email, (await provider.mailTo(orphan.email)).code), 'cleanup-v1', orphan);
    await free(orphan.email);
  });

  it('as a keyed hash that other servers of the same database know, and nothing else', async (t) => {
    const customer = await addCustomer(db, { email: address('contact') });
    await gone(customer);
    const rows = await db.query('select address_hash from reclaim.address_cooldowns');
    assert.ok(rows.length > 0);
    for (const { address_hash } of rows) assert.match(address_hash, /^[0-9a-f]{64}$/);
    assert.deepEqual(await found(db, [customer.user.email]), []);
    const second = await serve(t, { database: db, env: { ...settings, ...provider.env, RECLAIM_HOOK_SECRET: fresh, RECLAIM_LANGUAGE: 'de' } });
    const answer = signUpOf(await callHook(second, eventOf(customer.user.email), { secrets: [fresh] }));
    assert.equal(answer.status, 403);
    assert.match(answer.message, /^Mit dieser E-Mail-Adresse ist derzeit keine Registrierung möglich\./);
  });

  it('and its last mail says so', async () => {
    const customer = await addCustomer(db);
    await gone(customer);
    const { mail } = await until('last mail', () => provider.mailsTo(customer.email)[0]);
    assert.match(mail.text, /For a while nobody can register with it again/);
    assert.doesNotMatch(mail.text, /You can register with it again/);
  });

  it('as long as the setting said when it was deleted, by the clock of the installation', async () => {
    const customer = await addCustomer(db);
    await gone(customer);
    const advance = async (by) => {
      const done = await request(server, { method: 'POST', path: '/v1/sandbox/clock', headers: { 'Content-Type': 'application/json', ...asAdmin() }, body: JSON.stringify({ advance: by }) });
      assert.equal(done.status, 200, done.body);
    };
    await advance('89d');
    await cools(customer.user.email);
    await advance('2d');
    await free(customer.user.email);
  });
});

describe('reclaim doctor', () => {
  it('warns of a cool-down that no hook enforces', async () => {
    const said = async (env) => (await run(stage, ['doctor'], { database: db, env })).stdout;
    assert.match(await said({ RECLAIM_COOLDOWN: '30d' }), /RECLAIM_COOLDOWN.*RECLAIM_HOOK_SECRET/);
    assert.doesNotMatch(await said({ RECLAIM_COOLDOWN: '30d', RECLAIM_HOOK_SECRET: old }), /RECLAIM_HOOK_SECRET/);
  });
});

describe('without the database', () => {
  it('the answer is 503 without a time to try again, which Supabase Auth takes for a no', async () => {
    const known = customerAddress();
    await cluster.stop('fast');
    const answer = await until('503', async () => {
      const one = await hook(eventOf(known));
      return one.status === 503 && one;
    });
    assertError(answer, 503, 'UNAVAILABLE');
    assert.equal(answer.headers['retry-after'], undefined, 'older releases of it create the user after three answers with one');
    assert.deepEqual(signUpOf(answer), { status: 500 });
    assert.ok(answer.answeredAt - answer.sentAt < 4500, 'it waits for five seconds');
    assertError(await hook(eventOf(known), { secrets: [other] }), 401, 'INVALID_SIGNATURE');
  });
});
