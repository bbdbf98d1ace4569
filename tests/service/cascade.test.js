// Who takes part in an erasure, and what happens when a participant fails: for a while, for ever, or with its table gone.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, scene } from './lib/customers.js';
import { addServices, erased, fillServices, ledger, metric, remove, tableOf } from './lib/erasure.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
const names = ['agent', 'contact', 'tag'];
let db, server;
before(async () => {
  ({ db, server } = await scene(stage, { settings: { RECLAIM_CASCADE_DEADLINE: '1s' } }));
  await addServices(stage, db, names);
});
after(() => stage.end());

const cascade = (...args) => run(stage, ['cascade', ...args], { database: db });
const partOf = async (customer, name) => (await ledger(server, customer.id)).json.participants.find((one) => one.name === name);
const ended = async (customer, name) =>
  until(`${name} done`, async () => {
    const part = await partOf(customer, name);
    return part.status === 'done' && part;
  });
const failedAt = async (customer, name) =>
  until(`${name} failed`, async () => {
    const part = await partOf(customer, name);
    return part.status === 'failed' && part;
  });

async function gone(rows = 2) {
  const customer = await addCustomer(db);
  await fillServices(db, customer, rows, names);
  assert.equal((await remove(server, customer.id)).status, 200);
  return customer;
}

describe('reclaim cascade add', () => {
  const add = (...args) => cascade('add', 'newcomer', ...args);

  it('looks at table, column and index, and says what to do', async () => {
    await db.query('create table public.newcomer (customer_id uuid, tm_delete timestamptz)');
    const refusals = [
      [['--table', 'nowhere', '--column', 'customer_id'], /there is no table nowhere/],
      [['--table', 'newcomer', '--column', 'who'], /public\.newcomer has no column who/],
      [['--table', 'newcomer', '--column', 'tm_delete'], /must be a uuid, text or varchar/],
      [['--table', 'newcomer', '--column', 'customer_id'], /CREATE INDEX CONCURRENTLY ON public\.newcomer \(customer_id\)/],
      [['--table', 'reclaim.customer_customers', '--column', 'id'], /looked after by Reclaim itself/],
    ];
    for (const [args, words] of refusals) {
      const { code, stderr } = await add(...args);
      assert.equal(code, 1, stderr);
      assert.match(stderr, words);
    }
    await db.query('create index on public.newcomer (customer_id)');
    const bad = await add('--table', 'newcomer', '--column', 'customer_id', '--soft-delete', 'customer_id');
    assert.match(bad.stderr, /no column customer_id that holds a time/);
    const good = await add('--table', 'newcomer', '--column', 'customer_id');
    assert.equal(good.code, 0, good.stderr);
    const { stdout } = await cascade('list');
    assert.match(stdout, /^newcomer +public\.newcomer \(customer_id\), deleted, pages of 1000$/m);
    assert.match(stdout, /^contact +public\.service_contact \(customer_id\), marked in tm_delete, pages of 1000$/m);
  });

  it('takes in what customers left who were deleted before, when asked to', async () => {
    const customer = await gone();
    await erased(server, customer);
    await db.query('create table public.latecomer (customer_id varchar(36), note text)');
    await db.query('create index on public.latecomer (customer_id)');
    await db.query(`insert into public.latecomer values ($1, 'left over'), ('someone else', 'stays')`, [customer.id]);
    assert.equal((await cascade('add', 'latecomer', '--table', 'latecomer', '--column', 'customer_id', '--past')).code, 0);
    assert.equal((await ended(customer, 'latecomer')).rows, 1);
    await erased(server, customer);
    assert.deepEqual(await db.query('select note from public.latecomer'), [{ note: 'stays' }]);
    await db.query(`delete from reclaim.cascade_participants where name in ('latecomer', 'newcomer')`);
  });

  it('is not misunderstood', async () => {
    const odd = [[], ['add'], ['add', 'Bad Name', '--remote'], ['add', 'x'], ['add', 'x', '--remote', '--table', 'y'], ['add', 'x', '--table', 'y'],
      ['add', 'x', '--table', 'y', '--column', 'z', '--page', '0'], ['add', 'x', '--table', 'y', '--column', 'z', '--scrub', 'a'], ['list', '--remote'],
      ['status', 'x'], ['redrive', 'x'], ['list', '--participant', 'x'], ['forget']];
    for (const args of odd) assert.equal((await cascade(...args)).code, 2, args.join(' '));
  });
});

describe('an erasure', () => {
  it('goes on in pages until nothing is left, and counts each row once', async () => {
    assert.equal((await cascade('add', 'tag', '--table', tableOf('tag'), '--column', 'customer_id', '--page', '10')).code, 0);
    const customer = await gone(1234);
    const { participants } = await erased(server, customer);
    assert.deepEqual(participants.map(({ name, rows, tries }) => [name, rows, tries]), names.map((name) => [name, 1234, 1]));
    for (const name of names) {
      const [{ live }] = await db.query(`select count(*)::int as live from ${tableOf(name)} where customer_id = $1 and tm_delete is null`, [customer.id]);
      assert.equal(live, 0, name);
    }
  });

  it('leaves everyone else alone', async () => {
    const stays = await addCustomer(db);
    await fillServices(db, stays, 3, names);
    await erased(server, await gone());
    for (const name of names) {
      const rows = await db.query(`select note, tm_delete from ${tableOf(name)} where customer_id = $1`, [stays.id]);
      assert.equal(rows.length, 3);
      assert.ok(rows.every(({ note, tm_delete }) => note && tm_delete === null), name);
    }
  });

  it('is shown by reclaim cascade status, all together and one by one', async () => {
    const customer = await gone();
    await erased(server, customer);
    const { stdout } = await cascade('status');
    assert.match(stdout, /^participant +pending +failed +done +rows +oldest +error$/m);
    assert.match(stdout, /^agent +0 +0 +\d+ +\d+ +- +-$/m);
    const one = await cascade('status', customer.id);
    assert.deepEqual(JSON.parse(one.stdout), (await ledger(server, customer.id)).json);
  });
});

describe('a participant that fails', () => {
  it('for one customer keeps that one waiting, and nobody else; redriven, it completes', async () => {
    await db.query(`create function public.refuse() returns trigger language plpgsql as $$ begin
      if old.note like 'keep%' then raise exception 'about %', old.note; end if; return old; end $$`);
    await db.query(`create trigger refuse before delete on ${tableOf('agent')} for each row execute function public.refuse()`);
    const stuck = await addCustomer(db, { name: 'keep me' });
    const others = [await addCustomer(db), await addCustomer(db)];
    for (const one of [stuck, ...others]) await fillServices(db, one, 2, names);
    await Promise.all([stuck, ...others].map((one) => remove(server, one.id)));
    for (const one of others) await erased(server, one);
    assert.equal((await failedAt(stuck, 'agent')).error, 'P0001', 'and not what the trigger said');
    await ended(stuck, 'contact');
    await ended(stuck, 'tag');
    await until('the alarm', async () => (await metric(server, 'reclaim_cascade_overdue')) === 1);
    await server.line('the alarm', (line) => line.level === 'error' && /overdue/.test(line.event));
    await db.query(`drop trigger refuse on ${tableOf('agent')}`);
    const driven = await cascade('redrive', stuck.id);
    assert.ok(JSON.parse(driven.stdout).redriven <= 1, 'unless it went on by itself meanwhile');
    const part = (await erased(server, stuck)).participants.find(({ name }) => name === 'agent');
    assert.equal(part.rows, 2);
    assert.ok(part.tries >= 2);
    await until('no alarm', async () => (await metric(server, 'reclaim_cascade_overdue')) === 0);
  });

  it('for a while, goes on by itself', async () => {
    await db.query(`create function public.down() returns trigger language plpgsql as $$ begin raise exception using errcode = '53000'; end $$`);
    await db.query(`create trigger down before delete on ${tableOf('tag')} for each statement execute function public.down()`);
    const customer = await gone();
    await failedAt(customer, 'tag');
    await ended(customer, 'agent');
    await db.query(`drop trigger down on ${tableOf('tag')}`);
    assert.equal((await erased(server, customer)).participants.find(({ name }) => name === 'tag').rows, 2);
  });

  it('because its table is gone: the others finish, the alarm is up, and redriving with the table back completes', async () => {
    await db.query(`alter table ${tableOf('contact')} rename to away`);
    const customers = [await gone0(), await gone0()];
    async function gone0() {
      const customer = await addCustomer(db);
      await fillServices(db, customer, 2, ['agent', 'tag']);
      await db.query('insert into public.away (customer_id) values ($1)', [customer.id]);
      await remove(server, customer.id);
      return customer;
    }
    for (const customer of customers) {
      await ended(customer, 'agent');
      await ended(customer, 'tag');
      assert.match((await failedAt(customer, 'contact')).error, /^42P01 there is no table public\.service_contact/);
    }
    await until('the alarm', async () => (await metric(server, 'reclaim_cascade_overdue')) === 2);
    const doctor = await run(stage, ['doctor'], { database: db, env: { RECLAIM_CASCADE_DEADLINE: '1s' } });
    assert.equal(doctor.code, 1);
    assert.match(doctor.stdout, /FAIL {2}participant contact: there is no table public\.service_contact/);
    assert.match(doctor.stdout, /warn {2}erasures are overdue/);
    assert.match((await cascade('list')).stdout, /FAULTY: there is no table/);

    await db.query('alter table public.away rename to service_contact');
    const driven = await cascade('redrive', '--participant', 'contact');
    assert.ok(JSON.parse(driven.stdout).redriven <= 2, 'unless it went on by itself meanwhile');
    for (const customer of customers) await erased(server, customer);
    await until('no alarm', async () => (await metric(server, 'reclaim_cascade_overdue')) === 0);
    assert.match((await run(stage, ['doctor'], { database: db })).stdout, /^ok {4}expiry: every participant/m);
  });

  it('because a trigger silently keeps its rows', async () => {
    await db.query(`create function public.silent() returns trigger language plpgsql as $$ begin return null; end $$`);
    await db.query(`create trigger silent before delete on ${tableOf('agent')} for each row execute function public.silent()`);
    const customer = await gone();
    assert.match((await failedAt(customer, 'agent')).error, /^RCL01 rows stay/);
    await db.query(`drop trigger silent on ${tableOf('agent')}`);
    await remove(server, customer.id); // repeated, it drives what is unfinished
    await erased(server, customer);
  });
});
