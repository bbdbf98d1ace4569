// Accounts, charges, subscriptions and adjustments in lists; balances that are corrected; what is left at a deletion; and
// customers that freeze themselves often.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  adjust,
  balanceOf,
  charge,
  deleteAccount,
  listAccounts,
  listAdjustments,
  listCharges,
  listSubscriptions,
  newReference,
  showAccount,
  subscribe,
} from './lib/billing.js';
import {
  addBillingAccount,
  addCustomer,
  assertError,
  asUser,
  auditOf,
  canaryPassword,
  env,
  eventsOf,
  freeze,
  recover,
  recoverOwn,
  scene,
  show,
  unregister,
} from './lib/customers.js';
import { remove } from './lib/erasure.js';
import { ops } from './lib/http.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage, { settings: { RECLAIM_FREEZE_LIMIT: '2' } }));
});
after(() => stage.end());

async function addAccount(given) {
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer, given);
  return { customer, account };
}
const chargeOf = (account, amount_micros, more = {}) => ({ billing_account_id: account.id, amount_micros, reference: newReference(), ...more });

describe('accounts', () => {
  it('are listed, by customer or all, page by page', async () => {
    const { customer, account } = await addAccount();
    const second = await addBillingAccount(db, customer, { balance: 5 });
    const ids = [account.id, second.id].sort();
    const one = await listAccounts(server, `?customer_id=${customer.id}&limit=1`);
    assert.equal(one.status, 200, one.body);
    assert.deepEqual([one.json.items.map(({ id }) => id), one.json.next], [[ids[0]], ids[0]]);
    const two = await listAccounts(server, `?customer_id=${customer.id}&limit=1&after=${one.json.next}`);
    assert.deepEqual([two.json.items.map(({ id }) => id), two.json.next], [[ids[1]], null]);
    assert.deepEqual(two.json.items[0], (await showAccount(server, ids[1])).json);
    assert.deepEqual((await listAccounts(server, `?customer_id=${randomUUID()}`)).json, { items: [], next: null });
    const all = await listAccounts(server, '?limit=200');
    assert.ok(ids.every((id) => all.json.items.some((item) => item.id === id)));
    assertError(await listAccounts(server, '?customer_id=mine'), 400, 'INVALID_ID');
    assertError(await listAccounts(server, '?after=mine'), 400, 'INVALID_ID');
    assertError(await listAccounts(server, '?limit=0'), 400, 'INVALID_LIMIT');
  });

  it('have their charges listed in the order of time, and their subscriptions', async () => {
    const { account } = await addAccount();
    const times = ['2026-01-03T00:00:00Z', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-02T00:00:00Z'];
    for (const occurred_at of times) assert.equal((await charge(server, chargeOf(account, 1, { occurred_at }))).status, 201);
    const found = [];
    for (let next = ''; next !== null; ) {
      const page = await listCharges(server, `?billing_account_id=${account.id}&limit=2${next && `&after=${next}`}`);
      assert.equal(page.status, 200, page.body);
      assert.ok(page.json.items.length <= 2);
      found.push(...page.json.items);
      next = page.json.next;
    }
    assert.deepEqual(found.map(({ occurred_at }) => occurred_at.slice(0, 10)), ['2026-01-01', '2026-01-02', '2026-01-02', '2026-01-02', '2026-01-03']);
    assert.equal(new Set(found.map(({ id }) => id)).size, 5);
    const all = await listCharges(server, `?limit=200`);
    assert.equal(all.status, 200, all.body);
    assert.deepEqual((await listCharges(server, `?billing_account_id=${account.id}&after=${randomUUID()}`)).json, { items: [], next: null });
    const { json: subscription } = await subscribe(server, { billing_account_id: account.id, amount_micros: 1, period: 'month', first_charge_at: '2999-01-31T00:00:00Z' });
    assert.deepEqual([subscription.period, subscription.period_seconds, subscription.anchor_day], ['month', null, 31]);
    assert.deepEqual((await listSubscriptions(server, `?billing_account_id=${account.id}`)).json, { items: [subscription], next: null });
    assert.equal((await listSubscriptions(server)).status, 200);
    assertError(await listCharges(server, '?billing_account_id=7'), 400, 'INVALID_ID');
    assertError(await listSubscriptions(server, '?billing_account_id=7'), 400, 'INVALID_ID');
  });

  it('are adjusted once a reference, whatever holds them, and it is in the audit', async () => {
    const { customer, account } = await addAccount({ balance: 100 });
    const body = { amount_micros: 50, reference: newReference(), reason: 'paid by hand' };
    const first = await adjust(server, account.id, body);
    assert.equal(first.status, 201, first.body);
    const { id, created_at, actor_id, ...rest } = first.json;
    assert.ok(id && created_at);
    assert.equal(actor_id, null);
    assert.deepEqual(rest, { ...body, billing_account_id: account.id, actor: 'admin', balance_after_micros: 150 });
    const again = await adjust(server, account.id, body);
    assert.equal(again.status, 200, again.body);
    assert.deepEqual(again.json, first.json);
    const other = await addAccount();
    assertError(await adjust(server, other.account.id, body), 409, 'REFERENCE_USED');
    assertError(await adjust(server, account.id, { ...body, amount_micros: -50 }), 409, 'REFERENCE_USED');
    assertError(await adjust(server, account.id, { ...body, reason: 'another' }), 409, 'REFERENCE_USED');
    assert.equal(await balanceOf(db, account), 150);
    await freeze(server, customer.id);
    const debt = await adjust(server, account.id, { amount_micros: -200, reference: newReference(), reason: 'charged back' });
    assert.deepEqual([debt.status, debt.json.balance_after_micros], [201, -50], 'frozen accounts are adjusted too, and may owe');
    await recover(server, customer.id);
    assertError(await charge(server, chargeOf(account, 1)), 402, 'BALANCE_TOO_LITTLE');
    const page = await listAdjustments(server, account.id, '?limit=1');
    assert.deepEqual(page.json, { items: [first.json], next: id });
    assert.deepEqual((await listAdjustments(server, account.id, `?limit=1&after=${id}`)).json, { items: [debt.json], next: null });
    const audit = (await auditOf(db, customer)).filter(({ action }) => action === 'adjust_billing_account');
    assert.equal(audit.length, 2, 'one row for each that was booked');
    await Promise.all(Array.from({ length: 12 }, () => adjust(server, account.id, { amount_micros: 7, reference: `${body.reference}-all`, reason: 'at once' })));
    assert.equal(await balanceOf(db, account), -43);
  });

  it('are adjusted within bounds, for a reason, and not once they are deleted', async () => {
    const { customer, account } = await addAccount({ balance: 100 });
    const body = (given) => ({ amount_micros: 1, reference: newReference(), reason: 'why', ...given });
    for (const [error, given] of [
      ['INVALID_AMOUNT', { amount_micros: 0 }],
      ['INVALID_AMOUNT', { amount_micros: 1.5 }],
      ['INVALID_AMOUNT', { amount_micros: undefined }],
      ['INVALID_REFERENCE', { reference: undefined }],
      ['INVALID_REFERENCE', { reference: 'sub:x' }],
      ['INVALID_REASON', { reason: undefined }],
      ['INVALID_REASON', { reason: '  ' }],
      ['INVALID_REASON', { reason: 'x'.repeat(1001) }],
      ['INVALID_REASON', { reason: 7 }],
    ])
      assertError(await adjust(server, account.id, body(given)), 400, error);
    assertError(await adjust(server, account.id, 'nonsense'), 400, 'INVALID_BODY');
    assertError(await adjust(server, 'mine', body()), 400, 'INVALID_ID');
    assertError(await adjust(server, randomUUID(), body()), 404, 'ACCOUNT_NOT_FOUND');
    assertError(await listAdjustments(server, randomUUID()), 404, 'ACCOUNT_NOT_FOUND');
    assertError(await adjust(server, account.id, body({ amount_micros: 9007199254740992 })), 409, 'BALANCE_OUT_OF_RANGE');
    assert.equal((await adjust(server, account.id, body({ amount_micros: -9007199254740992 }))).status, 201);
    assertError(await adjust(server, account.id, body({ amount_micros: -101 })), 409, 'BALANCE_OUT_OF_RANGE');
    await db.query('update reclaim.billing_accounts set balance_micros = 9223372036854775807 where id = $1', [account.id]);
    assertError(await adjust(server, account.id, body()), 409, 'BALANCE_OUT_OF_RANGE');
    assert.equal((await remove(server, customer.id)).status, 200);
    assertError(await adjust(server, account.id, body()), 403, 'ACCOUNT_DELETED');
    const written = () => db.query(`select from reclaim.billing_adjustments where billing_account_id = $1 and (reason <> '' or reference not like 'deleted%')`, [account.id]);
    await until('references and reasons cleared', async () => (await written()).length === 0);
  });

  it('of a customer who is deleted leave their balance in the event, whoever deletes it', async () => {
    const remaining = async (customer) => {
      const events = (await eventsOf(db, customer)).filter(({ type }) => type === 'customer_deleted');
      assert.equal(events.length, 1);
      return events[0].payload.remaining_balance_micros;
    };
    const made = async () => {
      const { customer, account } = await addAccount({ balance: 700 });
      await addBillingAccount(db, customer, { balance: -30 });
      const gone = await addBillingAccount(db, customer, { balance: 5 });
      await deleteAccount(server, gone.id);
      assert.equal((await charge(server, chargeOf(account, 100))).status, 201);
      return customer;
    };
    const byAdmin = await made();
    assert.equal((await remove(server, byAdmin.id)).status, 200);
    assert.equal(await remaining(byAdmin), 570);
    const inSql = await made();
    await freeze(server, inSql.id);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [inSql.id]);
    assert.equal(await remaining(inSql), 570);
    const asRow = await made();
    await db.query('delete from reclaim.customer_customers where id = $1', [asRow.id]);
    assert.equal(await remaining(asRow), 570);
    const without = await addCustomer(db);
    await db.query('update reclaim.customer_customers set tm_delete = now() where id = $1', [without.id]);
    assert.equal(await remaining(without), null, 'none without an account');
  });
});

describe('freezing and recovering in a cycle', () => {
  it('is shown to admins and in a metric, and can be limited for customers, not for admins and SQL', async () => {
    const customer = await addCustomer(db);
    const leave = () => unregister(server, asUser(customer.user.id), { password: canaryPassword });
    for (let n = 0; n < 2; n++) {
      const frozen = await leave();
      assert.equal(frozen.status, 200, frozen.body);
      assert.equal((await leave()).status, 200, 'frozen already, which does not count');
      assert.equal((await recoverOwn(server, asUser(customer.user.id))).status, 200);
    }
    const refused = await leave();
    assertError(refused, 429, 'FROZEN_TOO_OFTEN');
    const wait = Number(refused.headers['retry-after']);
    assert.ok(wait > 29 * 86_400 && wait <= 30 * 86_400, `${wait} seconds`);
    assert.equal((await auditOf(db, customer)).at(-1).outcome, 'too_often');
    assert.equal((await freeze(server, customer.id)).status, 200, 'an admin is not limited');
    assert.equal((await recover(server, customer.id)).status, 200);
    await db.query(`update reclaim.customer_customers set status = 'frozen' where id = $1`, [customer.id]);
    await db.query(`update reclaim.customer_customers set status = 'active' where id = $1`, [customer.id]);
    assert.equal((await show(server, customer.id)).json.freezes_in_30_days, 4);
    assert.equal((await leave()).status, 429, 'what others did neither counts nor helps');
    await db.query('delete from reclaim.customer_log where customer_id = $1', [customer.id]);
    assert.equal((await leave()).status, 429, 'whether the audit is kept that long or not');
    await db.query(`update reclaim.customer_frozen set frozen_at = frozen_at - interval '31 days' where customer_id = $1 and by_owner`, [customer.id]);
    assert.equal((await leave()).status, 200, 'after 30 days it may again');
    assert.equal((await show(server, customer.id)).json.freezes_in_30_days, 3);
    // A leader counts when it starts.
    await server.stop();
    const second = await serve(stage, { database: db, env });
    await until('the metric', async () => valueOf(parseMetrics((await ops(second, '/metrics')).body), 'reclaim_customers_frozen_again') === 1);
    assert.deepEqual(await db.query('select freeze_limit from reclaim.installation'), [{ freeze_limit: null }], 'off by default');
  });
});
