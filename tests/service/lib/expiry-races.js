// Expiry against recovery, and passes that are killed; the service tests run a few rounds, the fault tests many.

import assert from 'node:assert/strict';

import { addBillingAccount, addCustomer, eventsOf, freeze, recover, rowOf } from './customers.js';
import { addMany, frozenSince, services, tableOf } from './erasure.js';
import { serve } from './reclaim.js';
import { pause, until } from './stage.js';

/** Asserts that a customer that was frozen is entirely as before or entirely deleted; returns which. */
export async function assertWhole(db, customer, account) {
  const row = await rowOf(db, customer);
  const events = (await eventsOf(db, customer)).map(({ type }) => type);
  const [bill] = await db.query('select status, hold_reasons, tm_delete from reclaim.billing_accounts where id = $1', [account.id]);
  const users = await db.query('select email from auth.users where id = $1', [customer.user.id]);
  if (row.status !== 'deleted') {
    assert.equal(row.status, 'active');
    assert.equal(row.email, customer.email);
    assert.equal(row.tm_deletion_scheduled, null);
    assert.deepEqual(events, ['customer_frozen', 'customer_recovered']);
    assert.deepEqual(bill, { status: 'active', hold_reasons: [], tm_delete: null });
    assert.deepEqual(users, [{ email: customer.user.email }]);
    return 'recovered';
  }
  assert.equal(row.email, `deleted_${customer.id}@removed.invalid`);
  assert.deepEqual(events, ['customer_frozen', 'customer_deleted']);
  assert.equal(bill.status, 'deleted');
  assert.ok(bill.tm_delete);
  assert.deepEqual(users, []);
  return 'deleted';
}

/**
 * Recovery races the leader's pass at the end of the grace: the customer is then entirely active or entirely deleted.
 */
export async function raceRecovery({ db, server }, random = Math.random) {
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer);
  await freeze(server, customer.id);
  // The grace ends at about the next pass; recovery is attempted around then.
  await frozenSince(db, customer, `29 days 23 hours 59 minutes ${(60 - random() * 1.2).toFixed(3)} seconds`);
  await pause(random() * 2200);
  const answer = await recover(server, customer.id);
  assert.ok([200, 404].includes(answer.status), answer.body);
  const outcome = await assertWhole(db, customer, account);
  assert.equal(outcome, answer.status === 200 ? 'recovered' : 'deleted');
  return { customer, outcome };
}

/**
 * Kills servers during a pass over `count` customers with rows at every service. Afterwards all erasures are complete,
 * and every receipt, event and audit row exists once.
 */
export async function killPasses(scope, { db, env, count, kills, random = Math.random, deadlineMs }) {
  const batch = await addMany(db, count);
  for (const name of services)
    await db.query(`insert into ${tableOf(name)} (customer_id, note) select id, 'x' from reclaim.customer_customers
      where name = $1`, [`Many ${batch}`]);
  const left = async () => Number((await db.query(`select count(*) from reclaim.customer_customers where status = 'frozen'`))[0].count);
  const open = async () => Number((await db.query('select count(*) from reclaim.erasures where completed_at is null'))[0].count);
  const receipts = async () => Number((await db.query(`select count(*) from reclaim.cascade_receipts where status = 'done'`))[0].count);
  const progress = async () => count - (await left()) + (await receipts());
  const total = count * (services.length + 1);
  let killed = 0;
  for (let n = 1; n <= kills; n++) {
    const server = await serve(scope, { database: db, env });
    const wanted = (total * n) / (kills + 1);
    await until(`work ${n} of ${kills}`, async () => (await progress()) >= wanted, deadlineMs);
    await pause(random() * 50);
    killed += (await left()) > 0 || (await open()) > 0 ? 1 : 0;
    await server.kill9();
  }
  const server = await serve(scope, { database: db, env });
  await until('everything complete', async () => (await left()) === 0 && (await open()) === 0, deadlineMs);
  await server.stop();

  const numbers = async (sql) => Object.values((await db.query(sql))[0]).map(Number);
  assert.deepEqual(await numbers(`select count(*) as all_of, count(distinct customer_id) as each_of from reclaim.event_outbox where type = 'customer_deleted'`), [count, count]);
  assert.deepEqual(await numbers(`select count(*) as all_of, count(distinct customer_id) as each_of from reclaim.customer_log where action = 'expire'`), [count, count]);
  assert.deepEqual(await numbers(`select count(*) as all_of, count(*) filter (where status = 'done' and rows = 1 and tries = 1) as each_of from reclaim.cascade_receipts`), [
    count * services.length,
    count * services.length,
  ]);
  assert.deepEqual(await numbers(`select count(*) from auth.users where email like 'many.%'`), [0]);
  for (const name of services) assert.deepEqual(await numbers(`select count(*) from ${tableOf(name)} where tm_delete is null`), [0], name);
  return killed;
}
