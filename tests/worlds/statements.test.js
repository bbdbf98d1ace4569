// A change of state is complete whatever statement makes it, and whatever else its transaction does.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { begin } from '../service/lib/calls.js';
import { asUser, eventsOf, rowOf, show } from '../service/lib/customers.js';
import { found } from '../service/lib/erasure.js';
import { gate } from '../service/lib/gate.js';
import { Stage, until } from '../service/lib/stage.js';
import { troubles, workDone } from './lib/invariants.js';
import { findDisagreements, layersAgree } from './lib/layers.js';
import { settled } from './lib/rows.js';
import { addSubject, databaseWorld } from './lib/world.js';

const stage = new Stage();
const table = 'reclaim.customer_customers';
let world, db, session;
before(async () => {
  world = await databaseWorld(stage);
  ({ db } = world);
  session = await db.session(stage, 'program');
});
after(() => stage.end());

const types = async (customer) => (await eventsOf(db, customer)).map(({ type }) => type.replace('customer_', ''));

/** In one transaction; $1 is the customer's id. */
async function transaction(customer, ...statements) {
  await session.query('begin');
  try {
    for (const statement of statements) await session.query(statement, statement.includes('$1') ? [customer.id] : []);
    await session.query('commit');
  } catch (fault) {
    await session.query('rollback');
    throw fault;
  }
}

const frozen = `update ${table} set status = 'frozen' where id = $1`;
const active = `update ${table} set status = 'active' where id = $1`;
const gone = `update ${table} set tm_delete = now() where id = $1`;
const removed = `delete from ${table} where id = $1`;

const stories = {
  'freezes, recovers and freezes': { statements: [frozen, active, frozen], events: ['frozen', 'recovered', 'frozen'] },
  'freezes and deletes': { statements: [frozen, gone], events: ['frozen', 'deleted'] },
  'freezes and removes the row': { statements: [frozen, removed], events: ['frozen', 'deleted'] },
  'deletes and removes the row': { statements: [gone, removed], events: ['deleted'] },
  'takes a freeze back to a savepoint': { statements: ['savepoint one', frozen, 'rollback to one'], events: [] },
  'takes a deletion back and freezes': { statements: ['savepoint one', gone, 'rollback to one', frozen], events: ['frozen'] },
  'changes the data before and after the freeze': {
    statements: [`update ${table} set detail = 'one' where id = $1`, frozen, `update ${table} set detail = 'two' where id = $1`],
    events: ['frozen'],
  },
  'freezes by MERGE': {
    statements: [`merge into ${table} t using (select $1::uuid as id) s on t.id = s.id when matched then update set status = 'frozen'`],
    events: ['frozen'],
  },
  'freezes by UPSERT': {
    statements: [`insert into ${table} (id, status) values ($1, 'frozen') on conflict (id) do update set status = excluded.status`],
    events: ['frozen'],
  },
  'freezes and takes money in one statement': {
    statements: [`with paid as (update reclaim.billing_accounts set balance_micros = balance_micros - 1 where customer_id = $1)
      update ${table} set status = 'frozen' where id = $1`],
    events: ['frozen'],
  },
  'freezes and deletes under deferred constraints': { statements: ['set constraints all deferred', frozen, gone], events: ['frozen', 'deleted'] },
};

describe('a transaction of another program that', () => {
  for (const [what, { statements, events }] of Object.entries(stories))
    it(`${what} has the consequences of what it did`, async () => {
      const customer = await addSubject(world, { email: '' });
      await begin(world.server, customer);
      await transaction(customer, ...statements);
      await settled(db, [customer]);
      assert.deepEqual(await types(customer), events);
      await layersAgree(db);
      if (events.at(-1) === 'deleted') assert.deepEqual(await found(db, customer.strings), []);
    });

  it('is rolled back leaves no trace', async () => {
    const customer = await addSubject(world);
    const before = await rowOf(db, customer);
    await assert.rejects(transaction(customer, frozen, active, gone, 'select 1 / 0'), /division/);
    assert.deepEqual(await rowOf(db, customer), before);
    assert.deepEqual(await types(customer), []);
    assert.deepEqual(await db.query('select from reclaim.customer_log where customer_id = $1', [customer.id]), []);
    await layersAgree(db);
  });
});

describe('a row that is inserted', () => {
  const insert = (columns, values) => session.query(`insert into ${table} (id, name, ${columns}) values ($1, 'Someone', ${values})`, [customerId]);
  let customerId;

  for (const [what, columns, values, status, events] of [
    ['frozen', 'status', `'frozen'`, 'frozen', ['frozen']],
    ['frozen, ten days ago', 'status, tm_deletion_scheduled', `'frozen', now() - interval '10 days'`, 'frozen', ['frozen']],
    ['active with a sentinel', 'tm_delete', `'9999-01-01'`, 'active', []],
  ])
    it(`${what} is known to every layer`, async () => {
      customerId = randomUUID();
      await insert(columns, values);
      assert.equal((await show(world.server, customerId)).json.status, status);
      await settled(db, [{ id: customerId }]);
      assert.deepEqual(await types({ id: customerId }), events);
      await layersAgree(db);
    });

  it('deleted is history: nobody is told, and nothing is erased', async () => {
    customerId = randomUUID();
    await insert('tm_delete', 'now()');
    assert.equal((await show(world.server, customerId)).json.name, 'Someone');
    assert.deepEqual(await types({ id: customerId }), []);
    assert.deepEqual(await db.query('select from reclaim.erasures where customer_id = $1', [customerId]), []);
    assert.ok(!(await world.run(['doctor'])).stdout.includes(customerId));
    await db.query(`delete from ${table} where id = $1`, [customerId]);
    await layersAgree(db);
  });

  it('under the id of one that was removed is a new customer: it passes, and its events go on counting', async () => {
    const customer = await addSubject(world, { email: '' });
    await transaction(customer, frozen);
    await transaction(customer, removed);
    await settled(db, [customer]);
    const owner = randomUUID();
    await session.query(`insert into ${table} (id, name, owner_user_id) values ($1, 'Someone else', $2)`, [customer.id, owner]);
    await until('passes', async () => (await gate(world.server, asUser(owner))).status === 200);
    const { stdout } = await world.run(['doctor']);
    assert.ok(!stdout.includes(customer.id), stdout);
    await transaction(customer, frozen);
    await settled(db, [customer]);
    const events = await eventsOf(db, customer);
    assert.equal(events.at(-1).type, 'customer_frozen');
    const numbers = events.map(({ sequence }) => Number(sequence));
    assert.deepEqual(numbers, [...new Set(numbers)].sort((a, b) => a - b));
    await until('refused', async () => (await gate(world.server, asUser(owner))).status === 403);
    const faults = (await findDisagreements(db)).filter((line) => line.startsWith(customer.id) && !/account|key|subscription/.test(line));
    assert.deepEqual(faults, []);
  });
});

it('a trigger of the team that writes the row again keeps the layers in agreement', async () => {
  await db.query(`create function public.touch() returns trigger language plpgsql as $$
    begin update ${table} set detail = 'touched by ' || tg_op where id = new.id and detail not like 'touched%'; return null; end $$;
    create trigger team_touch after update of status on ${table} for each row execute function public.touch()`);
  const customer = await addSubject(world);
  for (const [statement, type] of [[frozen, 'frozen'], [active, 'recovered'], [frozen, 'frozen']]) {
    await transaction(customer, statement);
    assert.equal((await types(customer)).at(-1), type);
  }
  await settled(db, [customer]);
  await layersAgree(db);
  await db.query(`drop trigger team_touch on ${table}`);
});

it('a trigger of the team that takes a freeze back at once leaves the customer active, and consumers with that state', async () => {
  await db.query(`create function public.veto() returns trigger language plpgsql as $$
    begin update ${table} set status = 'active' where id = new.id; return null; end $$;
    create trigger team_veto after update of status on ${table} for each row when (new.status = 'frozen') execute function public.veto()`);
  const customer = await addSubject(world);
  await transaction(customer, frozen);
  await db.query(`drop trigger team_veto on ${table}`);
  await settled(db, [customer]);
  assert.equal((await rowOf(db, customer)).status, 'active');
  assert.ok(['', 'frozen recovered'].includes((await types(customer)).join(' ')));
  await layersAgree(db);
});

it('and none of it left work, or a warning', async () => {
  await workDone(db);
  assert.deepEqual(troubles(world), []);
});
