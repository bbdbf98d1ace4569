// The installation's time, reclaim.now(): customers, codes, subscriptions and reminders go by it; limits, tokens and work
// go by the real time.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { balanceOf, chargesOf, showSubscription, subscribe } from './lib/billing.js';
import { assertRefused, assertSent, requestCode, validate } from './lib/cleanup.js';
import { addBillingAccount, addCustomer, asAdmin, assertError, asUser, canaryPassword, env, freeze, login, recover, rowOf, scene, show } from './lib/customers.js';
import { probe, request } from './lib/http.js';
import { addUser } from './lib/people.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, provider;
before(async () => {
  ({ db, server, provider } = await scene(stage, {
    settings: { RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_LIMIT_EMAIL: '2/86400', RECLAIM_LIMIT_IP: 'off', RECLAIM_HOLD_MS: '0', RECLAIM_HOLD_SIGMA_MS: '0' },
  }));
});
after(() => stage.end());

const shift = (by) => db.query('update reclaim.installation set clock_shift = $1::interval', [by]);
const ahead = async (time) => (new Date(time) - Date.now()) / 86_400_000;

it('31 days later the frozen are deleted, subscriptions charged, codes expired; limits and tokens know nothing of it', async () => {
  const [frozen, kept, payer] = await Promise.all([addCustomer(db), addCustomer(db), addCustomer(db)]);
  const session = await login(server, kept.user.email, canaryPassword);
  const own = { Authorization: `Bearer ${session.json.token}` };
  const account = await addBillingAccount(db, payer);
  const { json: subscription } = await subscribe(server, { billing_account_id: account.id, amount_micros: 100, period: '10d' });
  await until('the first charge', async () => (await chargesOf(db, account)).length === 1);
  const user = await addUser(db);
  assertSent(await requestCode(server, user.email), 'cleanup-v1');
  const { code } = await provider.mailTo(user.email);
  assert.equal((await freeze(server, frozen.id)).status, 200);

  await shift('24 days');
  await until('the reminder', () => provider.mailsTo(frozen.email).some(({ mail }) => /deleted/.test(mail.subject)));
  assert.equal((await rowOf(db, frozen)).status, 'frozen');
  assertRefused(await validate(server, user.email, code), 'cleanup-v1', '001');

  await shift('31 days');
  await until('the deletion', async () => (await rowOf(db, frozen)).status === 'deleted');
  assert.ok(Math.abs((await ahead((await rowOf(db, frozen)).tm_delete)) - 31) < 0.01, 'deleted at the installation’s time');
  await until('four charges', async () => (await chargesOf(db, account)).length === 4);
  assert.equal(Number(await balanceOf(db, account)), 1_000_000 - 400);
  const next = (await showSubscription(server, subscription.id)).json.next_charge_at;
  assert.ok(Math.abs((await ahead(next)) - 40) < 0.01);

  assert.equal((await show(server, kept.id, own)).status, 200, 'a session lasts as long as it did');
  assert.equal((await show(server, kept.id, asUser(kept.user.id))).status, 200, 'a token too');
  assertSent(await requestCode(server, user.email), 'cleanup-v1');
  assert.equal((await requestCode(server, user.email)).status, 429, 'the address is still at its limit of a day');
  assert.equal((await probe(server, user.email)).status, 200);
});

it('a freeze and its recovery under a shifted clock carry its times, and the layers follow within the real second', async () => {
  await shift('400 days');
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer);
  await freeze(server, customer.id);
  const seen = await until('every layer', async () => {
    const { json } = await show(server, customer.id);
    return json.freeze.api && json.freeze.calls && json.freeze.billing && json;
  });
  for (const time of [seen.tm_deletion_scheduled, ...Object.values(seen.freeze)]) assert.ok(Math.abs((await ahead(time)) - 400) < 0.01, time);
  await recover(server, customer.id);
  const [{ days }] = await db.query(
    `select extract(epoch from thawed_at - frozen_at) / 86400 as days from reclaim.billing_freezes where billing_account_id = $1`,
    [account.id],
  );
  assert.ok(Number(days) >= 0 && Number(days) < 0.01, 'frozen as long as it really was');
  await db.query(`update reclaim.customer_customers set tm_delete = reclaim.now() where id = $1`, [customer.id]);
  assert.equal((await rowOf(db, customer)).status, 'deleted', 'a time of today is not taken for "not deleted"');
});

it('outside of a sandbox nothing of Reclaim moves it', async () => {
  await shift('0');
  const answer = await request(server, {
    method: 'POST', path: '/v1/sandbox/clock', headers: { 'Content-Type': 'application/json', ...asAdmin() }, body: '{"advance":"30d"}',
  });
  assertError(answer, 409, 'NOT_A_SANDBOX');
  for (const args of [['advance', '30d'], ['reset']]) {
    const { code, stderr } = await run(stage, ['clock', ...args], { database: db });
    assert.equal(code, 1);
    assert.match(stderr, /this installation is no sandbox/);
  }
  const { json } = await request(server, { path: '/v1/sandbox/clock', headers: asAdmin() });
  assert.deepEqual([json.sandbox, json.shift_ms], [false, 0]);
});

it('where customers were deleted before, no sandbox is made', async () => {
  const gone = await addCustomer(db);
  assert.equal((await run(stage, ['delete', gone.id], { database: db })).code, 0);
  await db.query('delete from reclaim.customer_customers where id = $1', [gone.id]);
  const refused = await run(stage, ['serve'], { database: db, env: { ...env, RECLAIM_SANDBOX: 'on' } });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /RECLAIM_SANDBOX is on, but customers were deleted in this database/);
  const { json } = await request(server, { path: '/v1/sandbox/clock', headers: asAdmin() });
  assert.equal(json.sandbox, false);
});

it('no setting of a session moves it', async () => {
  await shift('0');
  const session = await db.session(stage);
  await session.query(`set reclaim.clock_shift = '31 days'; set reclaim.now = '2040-01-01'`);
  const { rows: [{ real }] } = await session.query(`select reclaim.now() between clock_timestamp() - interval '1 minute' and clock_timestamp() as real`);
  assert.equal(real, true);
  assert.equal((await request(server, { path: '/v1/customers' })).status, 401);
});
