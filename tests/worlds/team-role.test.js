// A program of the team's own writes the team's own table, which Reclaim adopted, in a role that has rights on that table
// and on nothing else. What it may change has all its consequences, what it may not change keeps its value.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';

import { charge, chargesInsideFreezes, newReference } from '../service/lib/billing.js';
import { begin } from '../service/lib/calls.js';
import { asKey, freeze, recover, rowOf, show } from '../service/lib/customers.js';
import { found, frozenSince } from '../service/lib/erasure.js';
import { gate } from '../service/lib/gate.js';
import { pause, Stage, until } from '../service/lib/stage.js';
import { troubles, workDone } from './lib/invariants.js';
import { layersAgree } from './lib/layers.js';
import { eventsAbout, settled } from './lib/rows.js';
import { addSubject, databaseWorld } from './lib/world.js';

const table = 'public.customer_customers';
const role = 'crm';

const stage = new Stage();
let world, db, crm;
before(async () => {
  world = await databaseWorld(stage, {
    table,
    prepare: (database) =>
      database.query(`create table ${table} (id uuid primary key, name text, email text, status varchar(16), region text, tm_delete timestamp);
        create role ${role} login; grant select, update, delete on ${table} to ${role}`),
  });
  ({ db } = world);
  crm = new pg.Pool({ ...world.cluster.connection(db.name), user: role, max: 12 });
  crm.on('error', () => {});
  stage.after(() => crm.end());
  world.sql = async (text, values) => (await crm.query(text, values)).rows;
});
after(() => stage.end());

const sets = (what, { id }) => crm.query(`update ${table} set ${what} where id = $1`, [id]);
const logOf = (customer) =>
  db.query('select action, actor, actor_id, actor_role, outcome, correlation_id, detail from reclaim.customer_log where customer_id = $1 order by id', [customer.id]);

describe('a role that has the table only', () => {
  const asSql = (action) => ({ action, actor: 'sql', actor_id: null, actor_role: role, outcome: 'done', correlation_id: null, detail: '' });

  /** In one session, as whoever sets them would. */
  async function inSession(statements, ...more) {
    const client = await crm.connect();
    try {
      for (const statement of statements) await client.query(statement);
      await client.query(...more);
    } finally {
      client.release(true);
    }
  }

  it('is named in the audit, whatever settings it makes', async () => {
    const customer = await addSubject(world);
    const pretends = [`set reclaim.actor = 'admin'`, `set reclaim.actor_id = '${randomUUID()}'`, `set reclaim.correlation_id = '${randomUUID()}'`,
      `set reclaim.reason = 'because'`, `set reclaim.action = 'expire'`, `set reclaim.clears = 'true'`, `set reclaim.repairs = 'on'`,
      `set search_path = pg_temp, public`];
    await inSession(pretends, `update ${table} set status = 'frozen' where id = $1`, [customer.id]);
    const row = await rowOf(db, customer);
    assert.deepEqual({ status: row.status, frozen_by: row.frozen_by, freeze_reason: row.freeze_reason }, { status: 'frozen', frozen_by: 'sql', freeze_reason: null });
    await inSession(pretends, `update ${table} set status = 'active' where id = $1`, [customer.id]);
    await inSession(pretends, `update ${table} set tm_delete = now() where id = $1`, [customer.id]);
    assert.deepEqual(await logOf(customer), [asSql('freeze'), asSql('recover'), asSql('delete')]);
    await settled(db, [customer]);
    assert.deepEqual(await found(db, customer.strings), [], 'a deletion that claims to have cleared everything is cleared');
  });

  const forged = `frozen_by = 'owner', freeze_reason = 'forged', deletion_effective_at = now() - interval '1 day', hold_at = now(), hold_reason = 'forged',
    version = 999, frozen_api_at = now(), frozen_calls_at = now(), frozen_billing_at = '2001-01-01'`;
  const columns = ['frozen_by', 'freeze_reason', 'deletion_effective_at', 'hold_at', 'hold_reason', 'frozen_api_at', 'frozen_calls_at', 'frozen_billing_at', 'version', 'changed_xid'];
  const ownColumns = (row) => Object.fromEntries(columns.map((column) => [column, row[column]]));

  it('cannot write what is Reclaim’s: who froze, the promised date, a legal hold, the version', async () => {
    const customer = await addSubject(world);
    const before = await rowOf(db, customer);
    await sets(forged, customer);
    assert.deepEqual(ownColumns(await rowOf(db, customer)), ownColumns(before), 'while active');

    await sets(`status = 'frozen', ${forged}`, customer);
    await settled(db, [customer]);
    const frozen = await rowOf(db, customer);
    assert.deepEqual(
      { frozen_by: frozen.frozen_by, freeze_reason: frozen.freeze_reason, hold_at: frozen.hold_at, hold_reason: frozen.hold_reason },
      { frozen_by: 'sql', freeze_reason: null, hold_at: null, hold_reason: null },
    );
    assert.equal(Number(frozen.version), Number(before.version) + 1);
    const [{ days }] = await db.query(`select (deletion_effective_at - tm_deletion_scheduled)::text as days from ${table} where id = $1`, [customer.id]);
    assert.equal(days, '30 days');
    assert.ok(frozen.frozen_billing_at >= frozen.tm_deletion_scheduled);
    await sets(forged, customer);
    assert.deepEqual(ownColumns(await rowOf(db, customer)), ownColumns(frozen), 'while frozen');
  });

  it('cannot lift a legal hold, nor delete what is under one', async () => {
    const customer = await addSubject(world);
    assert.equal((await world.run(['hold', customer.id, '--reason', 'Case 17'])).code, 0);
    const held = await rowOf(db, customer);
    await sets('hold_at = null, hold_reason = null', customer);
    assert.deepEqual(ownColumns(await rowOf(db, customer)), ownColumns(held));
    for (const what of ['tm_delete = now()', `status = 'deleted'`, `status = 'deleted', hold_at = null`]) await assert.rejects(sets(what, customer), /legal hold/);
    await assert.rejects(crm.query(`delete from ${table} where id = $1`, [customer.id]), /legal hold/);
  });

  it('cannot move the deletion, by no date that it writes', async () => {
    for (const date of [`now() - interval '400 days'`, `'-infinity'`, `'infinity'`, `now()`, 'null']) {
      const customer = await addSubject(world, { email: '' });
      await sets(`status = 'frozen', tm_deletion_scheduled = ${date}`, customer);
      await sets(`tm_deletion_scheduled = ${date}`, customer);
      const [{ days }] = await db.query(`select extract(epoch from deletion_effective_at - now()) / 86400 as days from ${table} where id = $1`, [customer.id]);
      assert.ok(Number(days) > 29.9 && Number(days) < 30.1, `${date}: ${days} days`);
      assert.equal((await show(world.server, customer.id)).status, 200, date);
    }
  });

  it('that may insert too cannot have a new customer deleted at once', async () => {
    await db.query(`create role importer login; grant select, insert on ${table} to importer`);
    const importer = new pg.Client({ ...world.cluster.connection(db.name), user: 'importer' });
    await importer.connect();
    try {
      for (const date of [`now() - interval '400 days'`, `'-infinity'`, `'infinity'`]) {
        const id = randomUUID();
        await importer.query(`insert into ${table} (id, status, tm_deletion_scheduled, deletion_effective_at, frozen_by, hold_at) values ($1, 'frozen', ${date}, now(), 'owner', now())`, [id]);
        const [{ days, ...row }] = await db.query(
          `select extract(epoch from deletion_effective_at - now()) / 86400 as days, frozen_by, hold_at from ${table} where id = $1`,
          [id],
        );
        assert.ok(Number(days) > 29.9 && Number(days) < 30.1, `${date}: ${days} days`);
        assert.deepEqual(row, { frozen_by: 'sql', hold_at: null });
        assert.equal((await show(world.server, id)).status, 200, date);
      }
    } finally {
      await importer.end();
    }
  });

  it('reads and calls nothing else', async () => {
    for (const statement of ['select from reclaim.customer_log', 'select from reclaim.event_outbox', `insert into reclaim.gate_ended (kind, id) values ('customer', gen_random_uuid())`,
      `select reclaim.change_by('admin', null, null)`, 'select reclaim.now()', `truncate ${table}`, 'set session_replication_role = replica',
      `alter table ${table} disable trigger all`])
      await assert.rejects(crm.query(statement), /permission denied|must be owner/, statement);
  });

  it('and an UPSERT of its own does not take the version back', async () => {
    const customer = await addSubject(world);
    await sets(`status = 'frozen'`, customer);
    const { version } = await rowOf(db, customer);
    await db.query(`insert into ${table} (id, status, version) values ($1, 'active', 1) on conflict (id) do update set status = excluded.status, version = excluded.version`, [customer.id]);
    assert.equal(Number((await rowOf(db, customer)).version), Number(version) + 1);
    assert.deepEqual((await eventsAbout(db, customer)).map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
  });
});

describe('a thousand customers in one statement', () => {
  const count = 1000;
  const ids = [];
  before(async () => {
    const users = await db.query(
      `insert into auth.users (id, email, encrypted_password) select gen_random_uuid(), 'thousand.' || n || '@customers.example.com', 'x'
       from generate_series(1, $1::int) n returning id`,
      [count],
    );
    const rows = await db.query(
      `insert into reclaim.customer_customers (id, name, email, owner_user_id)
       select gen_random_uuid(), 'Thousand ' || n, case when n % 50 = 0 then 'thousand.' || n || '@customers.example.com' else '' end, owner
       from unnest($1::uuid[]) with ordinality as u (owner, n) returning id`,
      [users.map(({ id }) => id)],
    );
    ids.push(...rows.map(({ id }) => id));
    await db.query(`insert into reclaim.billing_accounts (customer_id, balance_micros) select unnest($1::uuid[]), 1000`, [ids]);
    await db.query(`insert into reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at)
      select id, 1, 2592000, now() + interval '20 days' from reclaim.billing_accounts where customer_id = any ($1)`, [ids]);
    await db.query(`insert into reclaim.access_keys (customer_id, key_hash) select one, md5(one::text) from unnest($1::uuid[]) as one`, [ids]);
  });

  const calls = () => db.query(`insert into reclaim.call_calls (customer_id, direction) select unnest($1::uuid[]), 'outgoing'`, [ids.slice(0, count / 2)]);
  const everyone = (what) => crm.query(`update ${table} set ${what} where name like 'Thousand %'`);

  /** One event and one row of the audit for each, and all layers as they say. */
  async function assertEach(type, action) {
    await settled(db, ids.map((id) => ({ id })));
    await layersAgree(db);
    const [events] = await db.query('select count(*)::int as all_of, count(distinct customer_id)::int as each_of from reclaim.event_outbox where customer_id = any ($1) and type = $2', [ids, type]);
    assert.deepEqual(events, { all_of: count, each_of: count });
    const [log] = await db.query(
      `select count(*)::int as all_of, count(distinct customer_id)::int as each_of from reclaim.customer_log
       where customer_id = any ($1) and action = $2 and actor = 'sql' and actor_role = $3 and outcome = 'done'`,
      [ids, action, role],
    );
    assert.deepEqual(log, { all_of: count, each_of: count });
  }

  const counted = async (sql) => Number((await db.query(sql, [ids]))[0].count);

  it('are frozen, each with its account, subscription, calls, event and audit', async () => {
    await calls();
    assert.equal((await everyone(`status = 'frozen'`)).rowCount, count);
    await assertEach('customer_frozen', 'freeze');
    assert.equal(await counted(`select count(*) from reclaim.billing_accounts where customer_id = any ($1) and hold_reasons = '{account_frozen}'`), count);
    assert.equal(await counted(`select count(*) from reclaim.call_calls where customer_id = any ($1) and status = 'hangup' and hangup_reason = 'account_frozen'`), count / 2);
  });

  it('are recovered', async () => {
    await everyone(`status = 'active'`);
    await assertEach('customer_recovered', 'recover');
    assert.equal(await counted(`select count(*) from reclaim.billing_accounts where customer_id = any ($1) and hold_reasons = '{}' and status = 'active'`), count);
  });

  it('are deleted, and every one of them is cleared and erased', async () => {
    await everyone('tm_delete = now()');
    await assertEach('customer_deleted', 'delete');
    assert.equal(await counted(`select count(*) from ${table} where id = any ($1) and name = 'deleted_user_' || id and email = 'deleted_' || id || '@removed.invalid'`), count);
    assert.equal(await counted('select count(*) from reclaim.erasures where customer_id = any ($1) and completed_at is not null'), count);
    assert.deepEqual(await found(db, ['thousand.', 'Thousand 1']), []);
  });
});

describe('200 races of plain freezes', () => {
  const rounds = 200;
  const lanes = 16;

  const allowed = (statuses, asking) => asking.then((answer) => assert.ok(statuses.includes(answer.status), `${answer.status}: ${answer.body}`));
  const some = (ms) => pause(Math.random() * ms);
  const after = (ms, act) => some(ms).then(act);
  const use = ({ account }) => charge(world.server, { billing_account_id: account.id, amount_micros: 3, reference: newReference() });
  /** A deleted customer stays so, which a program that comes too late is told. */
  const unlessDeleted = (changing) =>
    changing.catch((fault) => {
      if (!/is deleted, and stays so/.test(fault.message)) throw fault;
    });

  const kinds = {
    async calls(customer) {
      await allowed([201], begin(world.server, customer));
      await Promise.all([
        after(10, () => sets(`status = 'frozen'`, customer)),
        ...[0, 1, 2].map(() => after(15, () => allowed([201, 403], begin(world.server, customer)))),
      ]);
    },
    async charges(customer) {
      await Promise.all([
        after(10, () => sets(`status = 'frozen'`, customer)),
        ...[0, 1, 2].map(() => after(15, () => allowed([201, 403], use(customer)))),
      ]);
    },
    async recoveries(customer) {
      await sets(`status = 'frozen'`, customer);
      await Promise.all([
        after(15, () => sets(`status = 'frozen'`, customer)),
        after(15, () => sets(`status = 'active'`, customer)),
        after(15, () => allowed([200, 404], recover(world.server, customer.id))),
        after(15, () => allowed([200], freeze(world.server, customer.id))),
        after(15, () => allowed([201, 403], begin(world.server, customer))),
      ]);
    },
    async expiry(customer) {
      await sets(`status = 'frozen'`, customer);
      // The grace ends at about the next pass of the leader.
      await frozenSince(db, customer, `29 days 23 hours 59 minutes ${(60 - Math.random()).toFixed(3)} seconds`);
      await Promise.all([
        after(1500, () => unlessDeleted(sets(`status = 'active'`, customer))),
        after(1500, () => unlessDeleted(sets(`status = 'frozen'`, customer))),
        after(1500, () => allowed([200, 404], recover(world.server, customer.id))),
        after(1500, () => allowed([201, 403, 404], begin(world.server, customer))),
        after(1500, () => allowed([201, 403], use(customer))),
      ]);
    },
  };

  const deadlocks = async () => Number((await db.query('select deadlocks from pg_stat_database where datname = current_database()'))[0].deadlocks);

  it('against calls, charges, recoveries and expiry leave every layer as the row says, without a deadlock', async () => {
    const before = await deadlocks();
    const subjects = [];
    for (let n = 0; n < rounds; n++) subjects.push(await addSubject(world, { email: '' }));
    const names = Object.keys(kinds);
    const left = subjects.map((customer, n) => () => kinds[names[n % names.length]](customer));
    await Promise.all(
      Array.from({ length: lanes }, async () => {
        while (left.length) await left.shift()();
      }),
    );
    await settled(db, subjects);
    await layersAgree(db);
    assert.deepEqual(await chargesInsideFreezes(db), []);
    assert.equal(await deadlocks(), before);
    assert.doesNotMatch(fs.readFileSync(path.join(world.cluster.home, 'log'), 'utf8'), /deadlock detected/);
    const statuses = await db.query(`select status, count(*)::int as n from ${table} where id = any ($1) group by 1`, [subjects.map(({ id }) => id)]);
    assert.ok(statuses.length > 1, JSON.stringify(statuses));
  });

  it('and a gate refuses whoever is frozen or deleted in the end', async () => {
    const customer = await addSubject(world);
    await crm.query(`delete from ${table} where id = $1`, [customer.id]);
    await until('refused', async () => (await gate(world.server, asKey(customer.key))).status === 401);
    await workDone(db);
    await layersAgree(db);
    assert.deepEqual(troubles(world), []);
  });
});
