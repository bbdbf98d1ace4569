// A change of state has the same consequences whoever writes it: equal customers are frozen, recovered, frozen again and
// deleted, each in a way of its own, and then every column of every table that names them is compared.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { begin } from '../service/lib/calls.js';
import { asKey, auditOf, rowOf } from '../service/lib/customers.js';
import { found, frozenSince } from '../service/lib/erasure.js';
import { gate } from '../service/lib/gate.js';
import { Stage, until } from '../service/lib/stage.js';
import { troubles } from './lib/invariants.js';
import { layersAgree } from './lib/layers.js';
import { eventsAbout, rowsAbout, settled } from './lib/rows.js';
import { actors, deletes, freezes, frozenBy, recovers } from './lib/ways.js';
import { addSubject, databaseWorld } from './lib/world.js';

/** How each of them is changed; the first is what the others are compared with. */
const plans = [
  { name: 'an admin', by: 'admin', deletion: 'admin' },
  { name: 'the owner, then expiry', by: 'owner', deletion: 'expiry' },
  { name: 'the command line', by: 'cli', deletion: 'cli' },
  { name: 'SQL that sets tm_delete', by: 'sql', deletion: 'sql tm_delete' },
  { name: 'SQL that sets the status', by: 'sql', deletion: 'sql status' },
  { name: 'SQL that deletes the row', by: 'sql', deletion: 'sql DELETE' },
];
const [model, ...others] = plans;

const stage = new Stage();
let world, db;
before(async () => {
  world = await databaseWorld(stage, { env: { RECLAIM_EXPIRY_INTERVAL: '1h' } });
  ({ db } = world);
  for (const plan of plans) {
    plan.customer = await addSubject(world);
    plan.calls = [await begin(world.server, plan.customer), await begin(world.server, plan.customer)];
    for (const { status, body } of plan.calls) assert.equal(status, 201, body);
  }
});
after(() => stage.end());

const mailsTo = async ({ email }) => (await world.mails(email)).map(({ subject }) => subject);

/** Changes all of them and keeps what was found then. */
async function changeAll(kind, ways, wayOf) {
  for (const plan of plans) await ways[wayOf(plan)](world, plan.customer);
  await settled(db, plans.map(({ customer }) => customer));
  for (const plan of plans) {
    await until(`mails about ${plan.name}`, async () => kind.mails(plan) === undefined || (await mailsTo(plan.customer)).length === kind.mails(plan).length);
    const rows = await rowsAbout(db, plan.customer);
    for (const row of rows.customer_log) if (row.action === 'expire') row.action = 'delete'; // the audit's word for this way
    // Other programs have no key for the last mail: their deletions are cleared right after, which is a version of its own.
    if (['sql tm_delete', 'sql status'].includes(wayOf(plan))) for (const row of rows.customer_customers) row.version = String(row.version - 1);
    plan.found = { rows, events: await eventsAbout(db, plan.customer), mails: await mailsTo(plan.customer) };
  }
}

function compare(only = () => true) {
  for (const { name, found: there } of others.filter(only)) {
    for (const table of Object.keys(there.rows)) assert.deepEqual(there.rows[table], model.found.rows[table], `${table}, ${name}`);
    assert.deepEqual(there.events, model.found.events, `events, ${name}`);
    assert.deepEqual(there.mails, model.found.mails, `mails, ${name}`);
  }
}

const lastLog = async ({ customer }, action) => (await auditOf(db, customer)).filter((row) => row.action === action).at(-1);
const mails = { frozen: 'Your account will be deleted', active: 'Your account is active again', gone: 'Your account was deleted' };

describe('a freeze', () => {
  before(() => changeAll({ mails: () => [mails.frozen] }, freezes, ({ by }) => by));

  it('has reached every layer when an admin writes it', async () => {
    const { customer_customers: [row], billing_accounts: accounts, billing_freezes: intervals, billing_subscriptions: subscriptions, call_calls: calls } = model.found.rows;
    assert.equal(row.status, 'frozen');
    for (const column of ['tm_deletion_scheduled', 'deletion_effective_at', 'frozen_api_at', 'frozen_calls_at', 'frozen_billing_at'])
      assert.equal(row[column], '<time>', column);
    assert.deepEqual(accounts.map(({ hold_reasons }) => hold_reasons).sort(), [['account_frozen'], ['disputed', 'account_frozen']]);
    assert.deepEqual(intervals.map(({ thawed_at }) => thawed_at), [null, null]);
    assert.deepEqual(subscriptions.map(({ status }) => status), ['paused']);
    assert.deepEqual(calls.map(({ status, hangup_reason }) => `${status} ${hangup_reason}`), ['hangup account_frozen', 'hangup account_frozen']);
    assert.deepEqual(model.found.events.map(({ type }) => type), ['customer_frozen']);
    assert.deepEqual(model.found.rows.work_items, []);
    assert.deepEqual(model.found.mails, [mails.frozen]);
  });

  it('has the same consequences in every column, whoever writes it', () => compare());

  it('is promised a date one grace later, and billing stops at the moment of the freeze', async () => {
    for (const { name, customer } of plans) {
      const [times] = await db.query(
        `select deletion_effective_at = tm_deletion_scheduled + interval '30 days' as promised, frozen_billing_at >= tm_deletion_scheduled as billing,
           frozen_api_at >= tm_deletion_scheduled as api, frozen_calls_at >= tm_deletion_scheduled as calls,
           (select bool_and(f.frozen_at = c.tm_deletion_scheduled) from reclaim.billing_freezes f join reclaim.billing_accounts a on a.id = f.billing_account_id
             where a.customer_id = c.id) as interval,
           (select bool_and(l.tm_hangup >= c.tm_deletion_scheduled) from reclaim.call_calls l where l.customer_id = c.id) as hung_up
         from reclaim.customer_customers c where id = $1`,
        [customer.id],
      );
      assert.deepEqual(times, { promised: true, billing: true, api: true, calls: true, interval: true, hung_up: true }, name);
    }
  });

  it('says who it was', async () => {
    for (const { by, customer } of plans) {
      assert.equal((await rowOf(db, customer)).frozen_by, frozenBy[by], by);
      const { actor, outcome } = await lastLog({ customer }, 'freeze');
      assert.deepEqual({ actor, outcome }, { actor: actors[by], outcome: 'done' });
    }
    const [{ actor_role: role }] = await db.query(`select actor_role from reclaim.customer_log where customer_id = $1 and action = 'freeze'`, [plans[3].customer.id]);
    assert.equal(role, 'postgres');
  });

  it('repeated in another way, changes nothing', async () => {
    const customer = await addSubject(world);
    await freezes.sql(world, customer);
    const { version } = await rowOf(db, customer);
    await freezes.sql(world, customer);
    await freezes.owner(world, customer);
    assert.equal((await rowOf(db, customer)).version, version);
    assert.equal((await eventsAbout(db, customer)).length, 1);
    await layersAgree(db);
  });
});

describe('a recovery', () => {
  before(() => changeAll({ mails: () => [mails.frozen, mails.active] }, recovers, ({ by }) => by));

  it('gives everything back when an admin writes it', () => {
    const { customer_customers: [row], billing_accounts: accounts, billing_freezes: intervals, billing_subscriptions: subscriptions } = model.found.rows;
    assert.equal(row.status, 'active');
    for (const column of ['tm_deletion_scheduled', 'deletion_effective_at', 'frozen_api_at', 'frozen_calls_at', 'frozen_billing_at'])
      assert.equal(row[column], null, column);
    assert.deepEqual(accounts.map(({ hold_reasons }) => hold_reasons).sort(), [[], ['disputed']]);
    assert.deepEqual(accounts.map(({ status }) => status).sort(), ['active', 'frozen']);
    assert.deepEqual(intervals.map(({ thawed_at }) => thawed_at), ['<time>', '<time>']);
    assert.deepEqual(subscriptions.map(({ status }) => status), ['active']);
    assert.deepEqual(model.found.events.map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
  });

  it('has the same consequences in every column, whoever writes it', () => compare());

  it('says who it was', async () => {
    for (const { by, customer } of plans) assert.equal((await lastLog({ customer }, 'recover')).actor, actors[by]);
  });
});

describe('a deletion', () => {
  before(async () => {
    await changeAll({ mails: () => [mails.frozen, mails.active, mails.frozen] }, freezes, ({ by }) => by);
    compare(); // the second freeze is like the first
    const lasts = (plan) => [mails.frozen, mails.active, mails.frozen, ...(plan.deletion === 'sql DELETE' ? [] : [mails.gone])];
    for (const { customer, deletion } of plans) await frozenSince(db, customer, deletion === 'expiry' ? '31 days' : '20 days');
    await changeAll({ mails: lasts }, deletes, ({ deletion }) => deletion);
  });

  const kept = ({ deletion }) => deletion !== 'sql DELETE';

  it('leaves nothing when an admin asks for it', async () => {
    const { customer_customers: [row], billing_accounts: accounts, access_keys: keys, erasures, cascade_receipts: receipts } = model.found.rows;
    assert.equal(row.status, 'deleted');
    assert.equal(row.name, 'deleted_user_<customer>');
    assert.equal(row.email, 'deleted_<customer>@removed.invalid');
    assert.equal(row.detail + row.phone_number + row.address + row.webhook_method + row.webhook_uri, '');
    assert.deepEqual(accounts.map(({ status, name }) => `${status} ${name}`), ['deleted ', 'deleted ']);
    assert.deepEqual(keys.map(({ revoked_at, name }) => `${revoked_at} ${name}`), ['<time> ']);
    assert.deepEqual(erasures.map(({ completed_at }) => completed_at), ['<time>']);
    assert.ok(receipts.length > 0 && receipts.every(({ status }) => status === 'done'));
    assert.deepEqual(model.found.rows['auth.users'], []);
    assert.deepEqual(model.found.mails.at(-1), mails.gone);
  });

  it('has the same consequences in every column, whoever writes it', () => compare(kept));

  it('of the row itself has all of them but the row and the last mail, for which no address is left', () => {
    const { found: there } = plans.find((plan) => !kept(plan));
    const { customer_customers: none, gate_ended: tombstones, customer_log: log, ...rows } = there.rows;
    const { customer_customers: row, gate_ended: nothing, customer_log: modelLog, ...modelRows } = model.found.rows;
    assert.equal(none.length, 0);
    assert.equal(row.length, 1);
    assert.deepEqual(tombstones.map(({ kind }) => kind), ['customer']);
    modelRows.customer_mails = modelRows.customer_mails.filter(({ template }) => template !== 'customer-deleted');
    for (const certificate of modelRows.erasure_certificates) certificate.fact = certificate.fact.replace(/"address":\{[^}]*\},/, '');
    for (const table of Object.keys(rows)) assert.deepEqual(rows[table], modelRows[table], table);
    assert.deepEqual(log, modelLog);
    assert.deepEqual(there.events.map(({ type, sequence }) => ({ type, sequence })), model.found.events.map(({ type, sequence }) => ({ type, sequence })));
    assert.deepEqual(there.mails, model.found.mails.slice(0, -1));
    assert.deepEqual(nothing, []);
  });

  it('is told to consumers with anonymised data, in every event', () => {
    for (const { name, found: there } of plans)
      for (const { payload } of there.events) {
        assert.equal(payload.name, 'deleted_user_<customer>', name);
        assert.equal(payload.email, 'deleted_<customer>@removed.invalid', name);
        assert.equal(payload.detail + payload.phone_number + payload.address + payload.webhook_method + payload.webhook_uri, '', name);
      }
  });

  it('ends every credential, and no table names the customer any more', async () => {
    for (const { name, customer } of plans) {
      await until(`${name}: refused`, async () => (await gate(world.server, asKey(customer.key))).status === 401);
      assert.deepEqual(await found(db, customer.strings), [], name);
    }
    await layersAgree(db);
    assert.deepEqual(troubles(world), []);
  });

  it('cannot be taken back, and neither can an id be changed', async () => {
    const { id } = plans[3].customer;
    for (const change of [`status = 'active'`, `status = 'frozen'`, 'tm_delete = null', 'id = gen_random_uuid()'])
      await assert.rejects(world.sql(`update reclaim.customer_customers set ${change} where id = $1`, [id]), /deleted|id/, change);
    await assert.rejects(world.sql('truncate reclaim.customer_customers'), /truncate/);
  });
});

it('a customer under legal hold cannot be deleted by any program', async () => {
  const customer = await addSubject(world);
  const { code, stderr } = await world.run(['hold', customer.id, '--reason', 'Case 17']);
  assert.equal(code, 0, stderr);
  for (const way of ['sql tm_delete', 'sql status', 'sql DELETE']) await assert.rejects(deletes[way](world, customer), /legal hold/, way);
  assert.equal((await rowOf(db, customer)).status, 'active');
  assert.equal((await eventsAbout(db, customer)).length, 0);
});

it('what was written behind the triggers is found by doctor, and mended by doctor --repair', async () => {
  const behind = await db.session(stage, 'behind');
  const subjects = [];
  for (let n = 0; n < 4; n++) subjects.push(await addSubject(world));
  const [frozen, active, gone, removed] = subjects;
  await freezes.admin(world, active);
  const call = await begin(world.server, frozen);
  assert.equal(call.status, 201, call.body);
  await behind.query('set session_replication_role = replica');
  await behind.query(`update reclaim.customer_customers set status = 'frozen', tm_deletion_scheduled = now() where id = $1`, [frozen.id]);
  await behind.query(`update reclaim.customer_customers set status = 'active', tm_deletion_scheduled = null where id = $1`, [active.id]);
  await behind.query(`update reclaim.customer_customers set status = 'deleted', tm_delete = now() where id = $1`, [gone.id]);
  await behind.query(`delete from reclaim.customer_customers where id = $1`, [removed.id]);
  const looked = await world.run(['doctor']);
  for (const [name, { id }] of Object.entries({ frozen, active, gone, removed })) assert.ok(looked.stdout.includes(id), `${name}: ${looked.stdout}`);
  const mended = await world.run(['doctor', '--repair']);
  assert.equal(mended.code, 0, mended.stdout + mended.stderr);
  await settled(db, subjects);
  await layersAgree(db);
  assert.deepEqual((await eventsAbout(db, frozen)).map(({ type }) => type), ['customer_frozen']);
  const again = await world.run(['doctor']);
  for (const { id } of subjects) assert.ok(!again.stdout.includes(id), again.stdout);
});
