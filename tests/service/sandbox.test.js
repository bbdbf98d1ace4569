// The clock of a sandbox: thirty days pass in seconds, on every instance, for everything that goes by dates; tokens, sessions,
// keys, limits and leases of work go on in real time.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { balanceOf, chargesOf, showSubscription, subscribe } from './lib/billing.js';
import { assertRefused, assertSent, requestCode, validate } from './lib/cleanup.js';
import {
  addBillingAccount, addCustomer, addKey, addScopedKey, asAdmin, asKey, assertError, asUser, bearer, canaryPassword, env, freeze,
  login, recoverOwn, rowOf, scene, show, unregister,
} from './lib/customers.js';
import { deleted, erased, ledger } from './lib/erasure.js';
import { gate } from './lib/gate.js';
import { request } from './lib/http.js';
import { addUser } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const dayMs = 86_400_000;
const settings = { RECLAIM_SANDBOX: 'on', RECLAIM_EXPIRY_BRAKE: '0', RECLAIM_LIMIT_IP: 'off', RECLAIM_HOLD_MS: '0', RECLAIM_HOLD_SIGMA_MS: '0', RECLAIM_LIMIT_EMAIL: '4/86400' };
const daysAhead = (time) => (Date.parse(time) - Date.now()) / dayMs;
const near = (days, expected, what) => assert.ok(Math.abs(days - expected) < 0.01, `${what}: ${days} days`);

const clock = (server, headers = asAdmin()) => request(server, { path: '/v1/sandbox/clock', headers });
const post = (server, body, headers = asAdmin()) =>
  request(server, { method: 'POST', path: '/v1/sandbox/clock', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) });
async function advance(server, by) {
  const answer = await post(server, { advance: by });
  assert.equal(answer.status, 200, answer.body);
  return answer.json;
}

describe('thirty days in seconds', () => {
  const stage = new Stage();
  let db, server, other, provider;
  const reclaim = (...args) => run(stage, ['clock', ...args], { database: db });
  const done = async (...args) => {
    const { code, stdout, stderr } = await reclaim(...args, '--format', 'json');
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout)[0];
  };
  const subjects = ({ email }) => provider.mailsTo(email).map(({ mail }) => mail.subject);
  const reminder = 'Your account will soon be gone';
  const own = {};

  before(async () => {
    ({ db, server, provider } = await scene(stage, { settings }));
    other = await serve(stage, { database: db, env: { ...env, ...provider.env, ...settings } });
  });
  after(() => stage.end());

  it('the clock begins at the real time, and every page can ask for it', async () => {
    const key = await addScopedKey(stage, db, 'read');
    for (const answer of [await clock(server), await clock(other, asKey(key))]) {
      assert.equal(answer.status, 200, answer.body);
      assert.equal(answer.json.sandbox, true);
      assert.equal(answer.json.shift_ms, 0);
      near(daysAhead(answer.json.now), 0, 'now');
    }
    assertError(await post(server, { advance: '1d' }, asKey(key)), 403, 'FORBIDDEN');
    assertError(await post(server, { advance: '1d' }, asUser((await addCustomer(db)).user.id)), 403, 'FORBIDDEN');
    const shown = await done();
    assert.deepEqual([shown.shift_ms, shown.sandbox], [0, 'on']);
  });

  it('it takes durations as in settings, and only those', async () => {
    for (const body of [{}, { advance: null }, { advance: 30 }, { advance: '30' }, { advance: '-1d' }, { advance: '0s' }, { advance: '1 month' }, { advance: '99999999999d' }, { advance: '3651d' }, []])
      assertError(await post(server, body), 400, 'INVALID_ADVANCE');
    for (const args of [['advance'], ['advance', '-1d'], ['advance', '0s'], ['advance', '30'], ['reset', '1d'], ['back'], ['advance', '1d', '2d']])
      assert.equal((await reclaim(...args)).code, 2, args.join(' '));
    assert.equal((await clock(server)).json.shift_ms, 0);
  });

  it('every move is in the audit, with who and by how much; an administrator sets it back', async () => {
    const moves = async () => (await request(server, { path: '/v1/audit?limit=20', headers: asAdmin() })).json.items.filter(({ action }) => action.startsWith('clock-'));
    const before = (await moves()).length;
    await advance(server, '36h');
    assert.equal((await done('advance', '90s')).shift_ms, 36 * 3_600_000 + 90_000);
    const reset = await request(server, { method: 'DELETE', path: '/v1/sandbox/clock', headers: asAdmin() });
    assert.deepEqual([reset.status, reset.json.shift_ms], [200, 0]);
    assert.deepEqual((await moves()).slice(0, -before || undefined).map(({ action, actor, outcome, detail }) => [action, actor, outcome, detail]), [
      ['clock-reset', 'admin', 'done', null],
      ['clock-advance', 'operator', 'done', '1m 30s'],
      ['clock-advance', 'admin', 'done', '1d 12h'],
    ]);
  });

  it('moved by mistake, it can be set back while nothing was dated by it', async () => {
    const customer = await addCustomer(db);
    const promised = (await freeze(server, customer.id)).json.deletion_effective_at;
    await until('the mail', () => subjects(customer).length === 1);
    assert.equal((await advance(server, '24d')).shift_ms, 24 * dayMs);
    await until('the reminder', () => subjects(customer).includes(reminder));
    const back = await done('reset');
    assert.equal(back.shift_ms, 0);
    near(daysAhead(back.now), 0, 'now');
    await until('the other instance', async () => (await clock(other)).json.shift_ms === 0);
    assert.equal((await rowOf(db, customer)).status, 'frozen');
    assert.equal((await show(server, customer.id)).json.deletion_effective_at, promised);
    own.frozen = customer;
    // Frozen by a test before it, and reminded again when its time comes.
    provider.attempts.length = 0;
  });

  it('after 29 days the reminders are there, on the way and in their order', async () => {
    const { frozen } = own;
    own.payer = await addCustomer(db);
    own.account = await addBillingAccount(db, own.payer);
    own.subscription = (await subscribe(server, { billing_account_id: own.account.id, amount_micros: 100, period: '12h' })).json;
    await until('the first charge', async () => (await chargesOf(db, own.account)).length === 1);
    own.user = await addUser(db);
    assertSent(await requestCode(server, own.user.email), 'cleanup-v1');
    own.code = (await provider.mailTo(own.user.email)).code;
    const kept = (own.kept = await addCustomer(db));
    own.session = bearer((await login(server, kept.user.email, canaryPassword)).json.token);
    own.token = asUser(kept.user.id);
    own.key = asKey(await addKey(stage, db, kept));
    await db.query(`insert into reclaim.work_items (kind, payload, leased_until, leased_by) values ('mail', '{"template":"none"}', clock_timestamp() + interval '1 hour', 1)`);

    const at = await done('advance', '29d');
    near(daysAhead(at.now), 29, 'now');
    await until('both reminders', () => subjects(frozen).length === 2);
    assert.deepEqual(subjects(frozen), [reminder, reminder]);
    assert.equal((await rowOf(db, frozen)).status, 'frozen');
    for (const instance of [server, other]) {
      const { json } = await clock(instance);
      assert.equal(json.shift_ms, 29 * dayMs);
      near(daysAhead(json.now), 29, 'now');
    }
  });

  it('subscriptions are charged for every period, codes have expired', async () => {
    await until('59 charges', async () => (await chargesOf(db, own.account)).length === 59);
    assert.equal(await balanceOf(db, own.account), 1_000_000 - 5900);
    near(daysAhead((await showSubscription(server, own.subscription.id)).json.next_charge_at), 29.5, 'the next charge');
    for (const instance of [server, other]) assertRefused(await validate(instance, own.user.email, own.code), 'cleanup-v1', '001');
    const sent = assertSent(await requestCode(other, own.user.email), 'cleanup-v1');
    near(daysAhead(sent.json.data.expiresAt), 29, 'expiresAt');
  });

  it('it cannot go back once something was dated ahead', async () => {
    const { code, stderr } = await reclaim('reset');
    assert.equal(code, 1);
    assert.match(stderr, /the clock stays as it is: (customers|codes|accounts) were/);
    assert.equal((await clock(server)).json.shift_ms, 29 * dayMs);
  });

  it('a day later the customer is deleted, with its last mail, and its erasure is dated as the deletion', async () => {
    const { frozen } = own;
    const { now } = await advance(other, '1d');
    near(daysAhead(now), 30, 'now');
    await deleted(db, frozen);
    near(daysAhead((await rowOf(db, frozen)).tm_delete), 30, 'tm_delete');
    await until('the last mail', () => subjects(frozen).includes('Your account was deleted'));
    const { requested_at, completed_at } = await erased(server, frozen);
    near(daysAhead(requested_at), 30, 'requested_at');
    near(daysAhead(completed_at), 30, 'completed_at');
    assert.equal((await gate(server, asUser(frozen.user.id))).status, 401);
  });

  it('sessions, tokens, keys, limits and leases of work know nothing of it', async () => {
    for (const instance of [server, other])
      for (const headers of [own.session, own.token, own.key]) {
        assert.equal((await show(instance, own.kept.id, headers)).status, 200);
        assert.equal((await gate(instance, headers)).status, 200);
      }
    const again = await login(other, own.kept.user.email, canaryPassword);
    assert.equal(again.status, 200, again.body);
    assert.equal((await gate(server, bearer(again.json.token))).status, 200);
    const sent = [];
    for (let i = 0; i < 4; i++) sent.push((await requestCode(server, own.user.email)).status);
    assert.deepEqual(sent, [200, 200, 429, 429], 'two of the four of this day were used before');
    const [{ untouched }] = await db.query(`select leased_by = 1 as untouched from reclaim.work_items where payload ->> 'template' = 'none'`);
    assert.equal(untouched, true);
  });

  it('a freeze is dated by it, and one advance past its date sends both reminders before it deletes', async () => {
    const customer = await addCustomer(db);
    const answer = await unregister(server, asUser(customer.user.id), { password: canaryPassword });
    near(daysAhead(answer.json.tm_deletion_scheduled), 30, 'scheduled');
    near(daysAhead(answer.json.deletion_effective_at), 60, 'effective');
    const refusal = assertError(await gate(other, asUser(customer.user.id)), 403, 'DELETION_SCHEDULED');
    assert.equal(refusal.json.deletion_effective_at, answer.json.deletion_effective_at);
    await done('advance', '31d');
    await deleted(db, customer);
    const expected = ['Your account will be deleted', reminder, reminder, 'Your account was deleted'];
    await until('every mail', () => subjects(customer).length === expected.length);
    assert.deepEqual(subjects(customer), expected);
  });

  it('erasures are looked at again and alarm by it', async () => {
    const customer = await addCustomer(db);
    const added = await run(stage, ['cascade', 'add', 'archive', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    await request(server, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
    assert.equal((await ledger(server, customer.id)).json.status, 'pending');
    await advance(server, '61m');
    await until('the alarm', () => [server, other].some(({ lines }) => lines.some(({ event }) => event?.startsWith('erasures are overdue'))));
    const rescan = async () =>
      (await db.query(`select reclaim.rfc3339(rescan_at) as at from reclaim.erasures where customer_id = $1`, [own.frozen.id]))[0].at;
    await until('looked at for the last time', async () => (await rescan()) === null);
  });

  it('how often a customer froze itself is counted by it', async () => {
    await db.query('update reclaim.installation set freeze_limit = 1');
    const customer = await addCustomer(db);
    const leave = async () => (await unregister(server, asUser(customer.user.id), { password: canaryPassword })).status;
    const comeBack = async () => assert.equal((await recoverOwn(server, asUser(customer.user.id))).status, 200);
    assert.equal(await leave(), 200);
    await comeBack();
    assert.equal(await leave(), 429);
    await advance(server, '31d');
    assert.equal(await leave(), 200, 'thirty days later it may');
    await comeBack();
    assert.equal(await leave(), 429, 'and has then used that up');
    await db.query('update reclaim.installation set freeze_limit = null');
  });

  it('advances at the same time add up', async () => {
    const { shift_ms: from } = (await clock(server)).json;
    await Promise.all([...[server, other].flatMap((instance) => [1, 2, 3].map(() => advance(instance, '1h'))), done('advance', '1h')]);
    assert.equal((await clock(server)).json.shift_ms, from + 7 * 3_600_000);
  });

  it('it is no further ahead than ten years', async () => {
    const { shift_ms } = (await clock(server)).json;
    assertError(await post(server, { advance: '3650d' }), 409, 'TOO_FAR_AHEAD');
    const { code, stderr } = await reclaim('advance', '3650d');
    assert.equal(code, 1);
    assert.match(stderr, /up to 3650d/);
    assert.equal((await clock(server)).json.shift_ms, shift_ms);
  });

  it('a restart keeps it, and a server that is to be no sandbox does not start on it', async () => {
    const { shift_ms } = (await clock(server)).json;
    await other.stop();
    const refused = await run(stage, ['serve'], { database: db, env: { ...env, RECLAIM_SANDBOX: 'off' } });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /this database is a sandbox whose clock was moved/);
    await server.stop();
    server = await serve(stage, { database: db, env: { ...env, ...provider.env, ...settings } });
    assert.equal((await clock(server)).json.shift_ms, shift_ms);
  });
});
