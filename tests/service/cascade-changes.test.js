// Participants that change while erasures are under way: switched off and on, removed, their tables dropped, widened or
// partitioned, and rows that come when the customer's own row is gone.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addBillingAccount, addCustomer, asAdmin, freeze, scene } from './lib/customers.js';
import { erased, ledger, receipt, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(() => stage.end());

const cascade = async (...args) => {
  const { code, stdout, stderr } = await run(stage, ['cascade', ...args], { database: db });
  assert.equal(code, 0, stdout + stderr);
};
const partOf = async (customer, name) => (await ledger(server, customer.id)).json.participants.find((one) => one.name === name);
const gone = async (customer) => assert.equal((await remove(server, customer.id)).status, 200);
const notesOf = async (table, id, column = 'customer_id') => (await db.query(`select note from public.${table} where ${column} = $1 order by 1`, [id])).map(({ note }) => note);

/** A table that takes part, with rows of the customer. */
async function take(name, columns, ...args) {
  await db.query(`create table public.${name} (${columns})`);
  await db.query(`create index on public.${name} (${/(\w+_id)/.exec(columns)[1]})`);
  await cascade('add', name, '--table', name, '--column', /(\w+_id)/.exec(columns)[1], ...args);
}

const claimsOf = async (customer) => {
  const answer = await request(server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() });
  assert.equal(answer.status, 200, answer.body);
  return JSON.parse(Buffer.from(answer.body.split('.')[1], 'base64url'));
};
const eraserWaits = () =>
  until('the erasure waits', async () => (await db.query(`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%cascade_page%'`)).length > 0);

/** Holds rows of a table, so that its erasure waits; returns how to let go. */
async function held(table) {
  const session = await db.session(stage, `holder of ${table}`);
  await session.query('begin');
  await session.query(`lock table public.${table} in exclusive mode`);
  return () => session.query('commit');
}

describe('a participant', () => {
  it('that is switched off during an erasure lets it complete, and switched on again erases what is left', async () => {
    await take('drafts', 'customer_id uuid, note text');
    const customer = await addCustomer(db);
    await db.query(`insert into public.drafts values ($1, 'a'), ($1, 'b')`, [customer.id]);
    const letGo = await held('drafts');
    await gone(customer);
    await eraserWaits();
    const off = cascade('disable', 'drafts');
    await letGo();
    await off;
    await erased(server, customer);
    const part = await partOf(customer, 'drafts');
    assert.equal((await notesOf('drafts', customer.id)).length, part.status === 'kept' ? 2 : 0, part.status);
    await cascade('enable', 'drafts');
    await until('erased', async () => (await notesOf('drafts', customer.id)).length === 0);
    assert.equal((await erased(server, customer)).participants.find(({ name }) => name === 'drafts').status, 'done');
    await cascade('remove', 'drafts');
  });

  it('that is switched off while a page of it is erased is certified as kept, and the page as never written', async () => {
    await take('letters', 'customer_id uuid, note text', '--page', '2');
    const customer = await addCustomer(db);
    await db.query(`insert into public.letters select $1, n::text from generate_series(1, 5) n`, [customer.id]);
    const letGo = await held('letters');
    await gone(customer);
    await eraserWaits();
    await cascade('disable', 'letters');
    await letGo();
    await erased(server, customer);
    assert.equal((await partOf(customer, 'letters')).status, 'kept');
    assert.deepEqual(await notesOf('letters', customer.id), ['1', '2', '3', '4', '5']);
    const claims = await claimsOf(customer);
    assert.deepEqual(claims.kept.map(({ name }) => name), ['letters']);
    await cascade('enable', 'letters');
    await until('erased', async () => (await notesOf('letters', customer.id)).length === 0);
    await erased(server, customer);
    const later = await claimsOf(customer);
    assert.deepEqual([later.kept, later.participants.find(({ name }) => name === 'letters').rows, later.replaces], [[], 5, claims.jti]);
    await cascade('remove', 'letters');
  });

  it('that is added while the last receipt comes is waited for before anything is certified', async () => {
    await cascade('add', 'archive', '--remote');
    await db.query('create table public.visits (customer_id uuid, note text); create index on public.visits (customer_id)');
    const customer = await addCustomer(db);
    await db.query(`insert into public.visits values ($1, 'a')`, [customer.id]);
    await gone(customer);
    const letGo = await held('visits');
    const session = await db.session(stage, 'cascade add');
    await session.query('begin');
    await session.query(`select reclaim.cascade_add('visits', 'public.visits', 'customer_id', null, '{}', null, true)`);
    assert.equal((await receipt(server, customer.id, 'archive', { status: 'done', rows: 1 })).status, 200);
    await until('settled', async () => (await db.query('select from reclaim.erasures where customer_id = $1 and settled_at is not null', [customer.id])).length > 0);
    await until('sealed since', async () => (await db.query(`select from reclaim.receipt_facts f join reclaim.sealed_leaves l on l.source = 'receipt' and l.fact_id = f.id
      where f.customer_id = $1 and f.participant = 'archive'`, [customer.id])).length > 0);
    await session.query('commit');
    await eraserWaits();
    assert.equal((await ledger(server, customer.id)).json.status, 'pending');
    assert.deepEqual(await db.query('select from reclaim.erasure_certificates where customer_id = $1', [customer.id]), []);
    await letGo();
    await erased(server, customer);
    const names = (await claimsOf(customer)).participants.map(({ name }) => name);
    assert.deepEqual(names.filter((name) => !name.startsWith('reclaim.')), ['archive', 'visits']);
    for (const name of ['archive', 'visits']) await cascade('remove', name);
  });

  it('whose table is locked keeps neither facts from being sealed nor other customers from being looked at again', async () => {
    await take('blogs', 'customer_id uuid, note text');
    await take('alarms', 'customer_id uuid, note text');
    const customer = await addCustomer(db), other = await addCustomer(db);
    await gone(other);
    await erased(server, other);
    await db.query(`insert into public.alarms values ($1, 'late')`, [other.id]);
    const session = await db.session(stage, 'a migration of the team');
    await session.query('begin');
    await session.query('lock table public.blogs in access exclusive mode');
    await cascade('rescan', other.id);
    await until('found at the table that is not locked', async () => (await db.query('select from reclaim.erasures where customer_id = $1 and completed_at is null', [other.id])).length > 0);
    await gone(customer);
    await eraserWaits();
    const since = Number((await db.query('select coalesce(max(position), 0) as last from reclaim.sealed_leaves'))[0].last);
    assert.equal((await freeze(server, (await addCustomer(db)).id)).status, 200);
    await until('sealed while the erasure waits', async () => (await db.query(`select from reclaim.sealed_leaves where source = 'customer' and position > $1`, [since])).length > 0, 20_000);
    assert.ok((await db.query(`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%cascade_page%'`)).length > 0, 'the erasure waits no longer');
    await session.query('commit');
    for (const one of [customer, other]) await erased(server, one);
    for (const name of ['blogs', 'alarms']) await cascade('remove', name);
  });

  it('of accounts that is off is in the ledger of whoever has rows there, and on again it erases them', async () => {
    const customer = await addCustomer(db), other = await addCustomer(db);
    const account = await addBillingAccount(db, customer);
    await addBillingAccount(db, other);
    await db.query(`insert into reclaim.billing_charges (billing_account_id, amount_micros, reference, occurred_at, balance_after_micros, created_at)
      values ($1, 5, 'Anna rang', now(), 0, now())`, [account.id]);
    await cascade('disable', 'reclaim.charges', '--reason', 'tax law');
    for (const one of [customer, other]) await gone(one);
    for (const one of [customer, other]) await erased(server, one);
    const part = await partOf(customer, 'reclaim.charges');
    assert.deepEqual([part.status, part.reason], ['kept', 'the participant is disabled: tax law']);
    assert.equal(await partOf(other, 'reclaim.charges'), undefined);
    await cascade('enable', 'reclaim.charges');
    await until('erased', async () => (await db.query(`select from reclaim.billing_charges where reference = 'Anna rang'`)).length === 0);
    await until('done', async () => (await partOf(customer, 'reclaim.charges')).status === 'done');
    await erased(server, customer);
  });

  it('that is removed with open receipts and added again owes them', async () => {
    await take('scans', 'customer_id uuid, note text');
    await db.query(`create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$;
      create trigger refuse before delete on public.scans for each row execute function public.refuse()`);
    const customer = await addCustomer(db);
    await db.query(`insert into public.scans values ($1, 'a')`, [customer.id]);
    await gone(customer);
    await until('failed', async () => (await partOf(customer, 'scans')).status === 'failed');
    await cascade('remove', 'scans');
    await erased(server, customer);
    assert.equal((await partOf(customer, 'scans')).status, 'kept');
    await db.query('drop trigger refuse on public.scans');
    await cascade('add', 'scans', '--table', 'scans', '--column', 'customer_id');
    await until('erased', async () => (await notesOf('scans', customer.id)).length === 0);
    assert.equal((await erased(server, customer)).participants.find(({ name }) => name === 'scans').status, 'done');
    await cascade('remove', 'scans');
  });

  it('whose table is dropped and made again goes on, and a column added to rows that stay is emptied', async () => {
    await take('cards', 'id uuid primary key, customer_id uuid, note text, tm_delete timestamptz', '--soft-delete', 'tm_delete', '--scrub', '*');
    await db.query('drop table public.cards');
    const customer = await addCustomer(db);
    await gone(customer);
    const failed = await until('failed', async () => {
      const part = await partOf(customer, 'cards');
      return part.status === 'failed' && part;
    });
    assert.match(failed.error, /there is no table public\.cards/);
    await db.query(`create table public.cards (id uuid primary key, customer_id uuid, note text, holder text not null, tm_delete timestamptz); create index on public.cards (customer_id)`);
    await db.query(`insert into public.cards values (gen_random_uuid(), $1, 'a', 'A Person')`, [customer.id]);
    await cascade('redrive', customer.id);
    await erased(server, customer);
    assert.deepEqual(await db.query('select note, holder, tm_delete is not null as marked from public.cards'), [{ note: null, holder: '', marked: true }]);
    await cascade('remove', 'cards');
  });

  it('with a partitioned table erases rows that come later, into a partition that came later, too', async () => {
    await db.query(`create table public.events_of (customer_id uuid not null, at date not null, note text) partition by range (at);
      create table public.events_of_1 partition of public.events_of for values from ('2026-01-01') to ('2026-02-01'); create index on public.events_of (customer_id)`);
    await cascade('add', 'events', '--table', 'events_of', '--column', 'customer_id');
    const customer = await addCustomer(db), stays = await addCustomer(db);
    for (const { id } of [customer, stays]) await db.query(`insert into public.events_of values ($1, '2026-01-02', 'a')`, [id]);
    await gone(customer);
    await erased(server, customer);
    await db.query(`create table public.events_of_2 partition of public.events_of for values from ('2026-02-01') to ('2026-03-01')`);
    for (const { id } of [customer, stays]) await db.query(`insert into public.events_of values ($1, '2026-02-02', 'b'), ($1, '2026-01-03', 'c')`, [id]);
    await cascade('rescan', customer.id);
    await until('erased', async () => (await notesOf('events_of', customer.id)).length === 0);
    assert.deepEqual(await notesOf('events_of', stays.id), ['a', 'b', 'c']);
    assert.equal((await until('done', async () => {
      const part = await partOf(customer, 'events');
      return part.status === 'done' && part;
    })).late_rows, 2);
    await cascade('remove', 'events');
  });

  it('by user empties rows of owner and member in a table whose rows stay, and finds late ones', async () => {
    await take('bios', 'user_id uuid, note text not null, nick varchar(20) not null unique, tm_delete timestamptz', '--by', 'user', '--soft-delete', 'tm_delete', '--scrub', '*');
    const customer = await addCustomer(db), member = randomUUID(), other = await addCustomer(db);
    await db.query('insert into auth.users (id, email) values ($1, $2)', [member, `${member}@customers.example.com`]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [customer.id, member]);
    for (const user of [customer.user.id, member, other.user.id]) await db.query(`insert into public.bios values ($1, 'about', $2)`, [user, user.slice(0, 8)]);
    await gone(customer);
    const done = await erased(server, customer);
    assert.equal(done.participants.find(({ name }) => name === 'bios').rows, 2);
    assert.deepEqual(done.participants.filter(({ status }) => status === 'kept').map(({ name }) => name), ['public.bios.nick'], 'without a primary key nothing short tells rows apart');
    for (const user of [customer.user.id, member]) assert.deepEqual(await notesOf('bios', user, 'user_id'), ['']);
    await db.query(`insert into public.bios values ($1, 'late', 'late')`, [member]);
    await cascade('rescan', customer.id);
    await until('emptied', async () => (await notesOf('bios', member, 'user_id')).every((note) => note === ''));
    assert.deepEqual(await notesOf('bios', other.user.id, 'user_id'), ['about']);
    await cascade('remove', 'bios');
  });

  it('erases rows that come after the customer’s own row was deleted', async () => {
    await take('logs_of', 'customer_id uuid, note text');
    const customer = await addCustomer(db);
    await db.query('delete from reclaim.customer_customers where id = $1', [customer.id]);
    await erased(server, customer);
    await db.query(`insert into public.logs_of values ($1, 'late')`, [customer.id]);
    await cascade('rescan', customer.id);
    await until('erased', async () => (await notesOf('logs_of', customer.id)).length === 0);
    assert.equal((await erased(server, customer)).participants.find(({ name }) => name === 'logs_of').late_rows, 1);
    await cascade('remove', 'logs_of');
  });
});
