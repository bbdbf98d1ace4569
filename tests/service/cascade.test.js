// Who takes part in an erasure, and what happens when a participant fails: for a while, for ever, or with its table gone.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addBillingAccount, addCustomer, scene } from './lib/customers.js';
import { addServices, erased, fillServices, found, ledger, metric, preview, receipt, remove, tableOf } from './lib/erasure.js';
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
    assert.match(stdout, /^contact +public\.service_contact \(customer_id\), marked in tm_delete, empties note, pages of 1000$/m);
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
      ['status', 'x'], ['redrive', 'x'], ['list', '--participant', 'x'], ['forget'], ['add', 'x', '--table', 'y', '--column', 'z', '--by', 'nobody'],
      ['add', 'x', '--remote', '--by', 'user'], ['add', '--preset', 'bank'], ['add', 'x', '--preset', 'voip'], ['rescan', 'x'], ['disable'], ['remove', 'Bad Name'],
      ['list', '--label', 'x']];
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
    assert.match(stdout, /^participant +pending +failed +done +rows +oldest +error +kept$/m);
    assert.match(stdout, /^agent +0 +0 +\d+ +\d+ +- +- +0$/m);
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

describe('rows that come after the receipt', () => {
  const openReceipts = async () => (await db.query(`select from reclaim.cascade_receipts where status = 'pending'`)).length;
  const write = (customer, note) => db.query(`insert into ${tableOf('agent')} (customer_id, note) values ($1, $2)`, [customer.id, note]);
  const rowsLeft = async (customer) => (await db.query(`select from ${tableOf('agent')} where customer_id = $1`, [customer.id])).length;

  it('are found and erased when asked to look again, and the ledger tells how many and when', async () => {
    const customer = await gone();
    await erased(server, customer);
    const before = await partOf(customer, 'agent');
    assert.deepEqual([before.rows, before.late_rows, before.late_at], [2, 0, null]);
    await write(customer, 'late');
    await write(customer, 'later');
    const asked = await cascade('rescan', customer.id);
    assert.equal(asked.code, 0, asked.stderr);
    assert.equal(asked.stdout, '{"rescanned":1}\n');
    const part = await until('erased again', async () => {
      const now = await partOf(customer, 'agent');
      return now.late_rows === 2 && now.status === 'done' && now;
    });
    assert.equal(part.rows, 4);
    assert.ok(part.late_at > before.done_at);
    assert.equal(await rowsLeft(customer), 0);
    assert.equal((await erased(server, customer)).participants.length, names.length);
    assert.equal((await partOf(customer, 'contact')).late_at, null);
  });

  it('are found without being asked, an hour, a day and thirty days later', async () => {
    const customer = await gone();
    await erased(server, customer);
    const dueIn = async () =>
      (await db.query(`select round(extract(epoch from rescan_at - completed_at) / 3600)::int as hours from reclaim.erasures where customer_id = $1`, [customer.id]))[0].hours;
    assert.equal(await dueIn(), 1);
    // As if it had been complete for a while.
    for (const [ago, next] of [['61 minutes', 24], ['25 hours', 720], ['31 days', null]]) {
      await db.query(`update reclaim.erasures set completed_at = clock_timestamp() - $2::interval, rescan_at = clock_timestamp() where customer_id = $1`, [customer.id, ago]);
      await until('looked at', async () => (await dueIn()) === next);
    }
    await write(customer, 'late');
    await db.query(`update reclaim.erasures set rescan_at = clock_timestamp() where customer_id = $1`, [customer.id]);
    await until('erased again', async () => (await rowsLeft(customer)) === 0);
    await erased(server, customer);
    assert.equal(await dueIn(), 1, 'and it begins anew');
  });

  it('of customers without a complete erasure are not looked for', async () => {
    const customer = await addCustomer(db);
    const { code, stderr } = await cascade('rescan', customer.id);
    assert.equal(code, 1);
    assert.match(stderr, /no erasure of .* is complete/);
    assert.equal((await cascade('rescan')).code, 0);
    assert.equal(await openReceipts(), 0);
  });

  it('and values that come back into the customer’s own rows are cleared again, and counted', async () => {
    const customer = await gone();
    const account = await addBillingAccount(db, customer);
    await erased(server, customer);
    const counted = await metric(server, 'reclaim_cascade_late_total');
    await db.query(`update reclaim.customer_customers set email = 'back@customers.example.com', address = 'Old Street' where id = $1`, [customer.id]);
    await db.query(`update reclaim.billing_accounts set name = 'Written back' where id = $1`, [account.id]);
    assert.equal((await cascade('rescan', customer.id)).code, 0);
    const part = await until('cleared again', () => partOf(customer, 'reclaim.customer_customers'));
    assert.deepEqual([part.status, part.rows, part.late_rows], ['done', 1, 1]);
    assert.equal((await partOf(customer, 'reclaim.billing_accounts')).late_rows, 1);
    assert.deepEqual(await found(db, ['back@customers', 'Old Street', 'Written back']), []);
    await until('counted', async () => (await metric(server, 'reclaim_cascade_late_total')) === counted + 1);
    await erased(server, customer);
    assert.match((await cascade('status')).stdout, /^reclaim\.customer_customers +0 +0 +1 +1 /m);
  });

  it('belong to somebody else when the id is in use again, and stay', async () => {
    const customer = await gone();
    await erased(server, customer);
    await db.query('delete from reclaim.customer_customers where id = $1', [customer.id]);
    await db.query(`insert into reclaim.customer_customers (id, name) values ($1, 'Another')`, [customer.id]);
    const account = await addBillingAccount(db, customer, { name: 'Of another' });
    await write(customer, 'of another');
    assert.equal((await cascade('rescan', customer.id)).code, 0);
    await until('looked at', async () => (await db.query('select from reclaim.erasures where customer_id = $1 and rescan_at > clock_timestamp()', [customer.id])).length);
    assert.equal(await rowsLeft(customer), 1);
    assert.deepEqual(await db.query('select name, status from reclaim.billing_accounts where id = $1', [account.id]), [{ name: 'Of another', status: 'active' }]);
  });

  it('as a billing account are deleted as they come, or frozen with their customer', async () => {
    const customer = await gone();
    await erased(server, customer);
    const account = await addBillingAccount(db, customer, { name: 'Late Person' });
    assert.deepEqual(await db.query('select status, name, tm_delete is not null as ended from reclaim.billing_accounts where id = $1', [account.id]), [
      { status: 'deleted', name: '', ended: true },
    ]);
    const frozen = await addCustomer(db, { status: 'frozen' });
    const held = await addBillingAccount(db, frozen);
    assert.equal((await db.query('select status from reclaim.billing_accounts where id = $1', [held.id]))[0].status, 'frozen');
  });
});

describe('a participant that takes no part for a while', () => {
  it('holds nobody up, the ledger says what is kept, and enabled again it erases that too', async () => {
    assert.equal((await cascade('disable', 'agent')).code, 0);
    const customer = await gone();
    await erased(server, customer);
    const part = await partOf(customer, 'agent');
    assert.deepEqual([part.status, part.reason, part.error], ['kept', 'the participant is disabled', null]);
    assert.match((await cascade('list')).stdout, /^agent .*; off$/m);
    assert.equal((await cascade('disable', 'agent', '--reason', 'the law on agents')).code, 0);
    const other = await gone();
    await erased(server, other);
    assert.equal((await partOf(other, 'agent')).reason, 'the participant is disabled: the law on agents');
    assert.equal((await cascade('enable', 'agent')).code, 0);
    assert.equal((await ended(customer, 'agent')).rows, 2);
    await erased(server, customer);
  });

  it('lets go whom it kept waiting; removed, it leaves its receipts', async () => {
    assert.equal((await cascade('add', 'archive', '--remote', '--label', 'The archive in the cellar')).code, 0);
    const customer = await gone();
    await until('all others done', async () => (await ledger(server, customer.id)).json.participants.every(({ name, status }) => name === 'archive' || status === 'done'));
    assert.equal((await partOf(customer, 'archive')).label, 'The archive in the cellar');
    assert.equal((await cascade('remove', 'archive')).code, 0);
    await erased(server, customer);
    const part = await partOf(customer, 'archive');
    assert.deepEqual([part.status, part.reason], ['kept', 'the participant was removed before it erased']);
    assert.equal((await cascade('remove', 'archive')).code, 1);
    const next = await gone();
    await erased(server, next);
    assert.equal(await partOf(next, 'archive'), undefined);
  });

  it('is told of customers deleted before when it is added with --past, though their events are kept no more', async () => {
    const customer = await addCustomer(db);
    for (const balance of [7_000_000, -500_000]) await addBillingAccount(db, customer, { balance });
    assert.equal((await remove(server, customer.id)).status, 200);
    await erased(server, customer);
    await db.query('delete from reclaim.event_outbox');
    assert.equal((await cascade('add', 'archive', '--remote', '--past')).code, 0);
    const events = await db.query(`select type, sequence, payload from reclaim.event_outbox where customer_id = $1`, [customer.id]);
    const [{ version }] = await db.query('select version from reclaim.customer_customers where id = $1', [customer.id]);
    assert.deepEqual(events.map(({ type, sequence, payload }) => [type, sequence, payload.name, payload.remaining_balance_micros]),
      [['customer_deleted', version, `deleted_user_${customer.id}`, 6_500_000]]);
    assert.equal((await receipt(server, customer.id, 'archive', { rows: 5 })).status, 200);
    assert.equal((await partOf(customer, 'archive')).rows, 5);
    await erased(server, customer);
    assert.equal((await cascade('remove', 'archive')).code, 0);
  });
});

describe('a table that knows users, not customers', () => {
  it('is erased for owner and members, but not for who has another customer; the preview counts the same', async () => {
    await db.query('create table public.profiles (user_id uuid, nick text); create index on public.profiles (user_id)');
    const added = await cascade('add', 'profiles', '--table', 'profiles', '--column', 'user_id', '--by', 'user', '--label', 'Profiles');
    assert.equal(added.code, 0, added.stderr);
    assert.match((await cascade('list')).stdout, /^profiles +"Profiles" public\.profiles \(user_id, by user\), deleted/m);
    const customer = await addCustomer(db), other = await addCustomer(db);
    const member = randomUUID();
    await db.query(`insert into auth.users (id, email) values ($1, $2)`, [member, `${member}@customers.example.com`]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2), ($1, $3)', [customer.id, member, other.user.id]);
    for (const user of [customer.user.id, member, other.user.id]) await db.query(`insert into public.profiles values ($1, 'x'), ($1, 'y')`, [user]);
    const shown = (await preview(server, customer.id)).json.participants.find(({ name }) => name === 'profiles');
    assert.deepEqual([shown.rows, shown.label], [4, 'Profiles']);
    await remove(server, customer.id);
    const { participants } = await erased(server, customer);
    const part = participants.find(({ name }) => name === 'profiles');
    assert.deepEqual([part.rows, part.label], [4, 'Profiles']);
    assert.deepEqual(participants.filter(({ status }) => status === 'kept').map(({ name }) => name), ['auth.users']);
    assert.deepEqual(await db.query('select distinct user_id from public.profiles'), [{ user_id: other.user.id }]);
    // Deleted in plain SQL: whose logins go is known only once the row is cleared.
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [other.id]);
    await erased(server, other);
    assert.deepEqual(await db.query('select from public.profiles'), []);
    assert.equal((await cascade('remove', 'profiles')).code, 0);
  });
});
