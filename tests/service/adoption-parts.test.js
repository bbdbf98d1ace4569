// Tables of a team's that are adopted beside its programs: killed and gone on with, waited for, refused, given back as they were.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { env, eventsOf } from './lib/customers.js';
import { addUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const versions = fs.readdirSync('/usr/lib/postgresql').sort((a, b) => a - b);
const dump = (db) =>
  execFileSync(`/usr/lib/postgresql/${versions.at(-1)}/bin/pg_dump`, ['-s', '-d', db.url], { encoding: 'utf8' }).replace(/^\\.*$/gm, '');

/** Customers of which every tenth is deleted and every 25th frozen, one account each, and nothing that Reclaim needs. */
const filled = (count) => `
  create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text, status varchar(16),
    notes text, tm_update timestamp, tm_delete timestamp not null default '9999-01-01 00:00:00');
  create table public.billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid, balance numeric(12,2), tm_delete timestamptz);
  insert into public.customer_customers (name, status, tm_delete)
    select 'c' || n, case when n % 25 = 1 then 'frozen' end, case when n % 10 = 0 then '2025-05-06 07:08:09' else '9999-01-01 00:00:00' end::timestamp
    from generate_series(1, ${count}) n;
  insert into public.billing_accounts (customer_id, balance) select id, 12.34 from public.customer_customers;`;

async function assertAdopted(db, count) {
  const [rows] = await db.query(`select count(*)::int as all, count(*) filter (where status = 'deleted')::int as deleted,
      count(*) filter (where status = 'frozen' and tm_deletion_scheduled is not null)::int as frozen,
      count(*) filter (where (status = 'deleted') <> (tm_delete is not null))::int as wrong from public.customer_customers`);
  assert.deepEqual(rows, { all: count, deleted: count / 10, frozen: count / 25, wrong: 0 });
  const [accounts] = await db.query(`select count(*) filter (where status = 'frozen' and hold_reasons = '{account_frozen}')::int as frozen,
      count(*) filter (where status = 'deleted')::int as deleted,
      (select count(*)::int from reclaim.billing_freezes where thawed_at is null) as since from public.billing_accounts`);
  assert.deepEqual(accounts, { frozen: count / 25, deleted: count / 10, since: count / 25 });
  assert.deepEqual(await db.query(`select indexrelid::regclass::text as name from pg_index where not indisvalid`), []);
  assert.deepEqual(await db.query(`select conname from pg_constraint where not convalidated`), []);
  assert.deepEqual(await db.query(`select tgname from pg_trigger where tgname like '%adopting%'`), []);
  // The server drops the temporary ones a moment after the command has ended.
  await until('no function of the adoption left', async () => (await db.query(`select proname from pg_proc where proname ~ '^adopt|^step_'`)).length === 0);
  assert.deepEqual(await db.query(`select * from reclaim.customer_disagreements(10) where what !~ 'without the date'`), []);
}

describe('an adoption', () => {
  it('that is killed again and again goes on each time, and loses nothing that the team writes meanwhile', async (t) => {
    const db = await cluster.database(t);
    await db.query(filled(2000));
    const team = await db.session(t);
    const [{ id: frozen }] = await db.query(`select id from public.customer_customers where name = 'c7'`);
    let kills = 0;
    let writes = 0;
    for (let ended = null; ended?.code !== 0; ) {
      const at = 1 + ((kills * 7) % 5);
      ended = await run(t, ['migrate', '--balance', 'balance'], {
        database: db,
        said: (text, child) => text.split('\n').length > at && kills < 8 && child.kill('SIGKILL'),
      });
      if (ended.signal === 'SIGKILL') kills++;
      else assert.equal(ended.code, 0, ended.stderr);
      await team.query(`update public.customer_customers set notes = 'kept' where name = 'c${3 + 20 * writes}'`);
      await team.query(`insert into public.customer_customers (name, notes) values ('new${writes}', 'kept')`);
      if (kills === 4) await team.query(`update public.customer_customers set status = 'frozen' where id = $1 and status is distinct from 'frozen'`, [frozen]);
      await team.query(`update public.billing_accounts set balance = 99.5 where customer_id = $1`, [frozen]);
      writes++;
    }
    assert.ok(kills >= 5, `killed ${kills} times`);
    const [{ kept, added }] = await db.query(`select count(*) filter (where notes = 'kept')::int as kept, count(*) filter (where name like 'new%')::int as added
      from public.customer_customers where status = 'active' and tm_delete is null`);
    assert.deepEqual({ kept, added }, { kept: 2 * writes, added: writes });
    const server = await serve(t, { database: db, env });
    await until('a freeze made meanwhile has its consequences', async () => (await eventsOf(db, { id: frozen })).some(({ type }) => type === 'customer_frozen'));
    await server.stop();
    const [account] = await db.query('select status, balance_micros::text from public.billing_accounts where customer_id = $1', [frozen]);
    assert.deepEqual(account, { status: 'frozen', balance_micros: '99500000' });
    await db.query(`delete from public.customer_customers where name like 'new%'`);
    await db.query(`update public.customer_customers set status = 'active' where id = $1`, [frozen]);
    await assertAdopted(db, 2000);
    const [{ sum }] = await db.query(`select sum(balance_micros)::text as sum from public.billing_accounts where customer_id <> $1`, [frozen]);
    assert.equal(sum, String(1999 * 12_340_000));
  });

  it('waits for a transaction of the team’s that holds the table, and nobody waits behind it', async (t) => {
    const db = await cluster.database(t);
    await db.query(filled(100));
    const holder = await db.session(t);
    await holder.query('begin; select from public.customer_customers limit 1');
    let waiting = false;
    const migrated = run(t, ['migrate'], { database: db, said: (text) => (waiting ||= text.includes('waiting for a lock')) });
    await until('the adoption waits', () => waiting);
    const team = await db.session(t);
    await team.query(`set statement_timeout = '20s'`);
    for (let n = 0; n < 20; n++) await team.query(`update public.customer_customers set notes = '${n}' where name = 'c2'`);
    await holder.query('commit');
    const ended = await migrated;
    assert.equal(ended.code, 0, ended.stderr);
    await assertAdopted(db, 100);
  });

  it('that was begun is taken back by --down, and the table is as it was', async (t) => {
    const db = await cluster.database(t);
    await db.query(filled(100));
    const shape = dump(db);
    const killed = await run(t, ['migrate'], { database: db, said: (text, child) => text.includes('index') && child.kill('SIGKILL') });
    assert.equal(killed.signal, 'SIGKILL');
    assert.notEqual(dump(db), shape);
    const down = await run(t, ['migrate', '--down', '99'], { database: db });
    assert.equal(down.code, 0, down.stderr);
    assert.equal(dump(db), shape);
  });

  it('of odd shapes works, and after --down pg_dump -s tells no difference, or --down does', async (t) => {
    const db = await cluster.database(t);
    await db.query(`create type public.state as enum ('active', 'deleted');
      create table public.customer_customers (id varchar(36) primary key default gen_random_uuid()::text, name text not null, email varchar(200),
        status public.state not null default 'active', tm_create timestamp(6), tm_delete timestamp(6) not null default '9999-01-01 00:00:00');
      create unique index live_email on public.customer_customers (email) where tm_delete = '9999-01-01 00:00:00';
      create view public.live as select id, name, status, tm_delete from public.customer_customers where tm_delete > now();
      create view public.live_names as select name from public.live;
      grant select on public.live_names to public; comment on view public.live is 'theirs';
      create function public.touch() returns trigger language plpgsql as 'begin return new; end';
      create trigger touch before update on public.customer_customers for each row execute function public.touch();
      create table public.billing_accounts (id text primary key, customer_id varchar(36) not null, balance_cents bigint);
      insert into public.customer_customers (name, email) select 'n' || n, 'e' || n from generate_series(1, 200) n;
      update public.customer_customers set tm_delete = '2025-01-01' where name like '%7';
      insert into public.billing_accounts select gen_random_uuid()::text, id, 125 from public.customer_customers`);
    const shape = dump(db);
    const check = await run(t, ['migrate', '--check', '--balance', 'balance_cents:cents', '--format', 'json'], { database: db });
    assert.equal(check.code, 0, check.stderr);
    const findings = JSON.parse(check.stdout);
    assert.equal(Object.keys(findings[0]).join(), 'kind,table,subject,what,advice,lock_ms');
    for (const subject of ['column id', 'column status', 'index public.live_email', 'view public.live', 'trigger touch', 'column balance_cents', 'table'])
      assert.ok(findings.some((one) => one.subject === subject), `${subject} in ${check.stdout}`);
    assert.equal(dump(db), shape, '--check changes nothing');

    const migrated = await run(t, ['migrate', '--balance', 'balance_cents:cents'], { database: db });
    assert.equal(migrated.code, 0, migrated.stderr);
    assert.deepEqual(await db.query('select count(*)::int as live, (select count(*)::int from public.live_names) as names from public.live'), [{ live: 180, names: 180 }], 'as before');
    const [one] = await db.query(`select c.status, a.balance_micros::text as micros from customer_customers c join billing_accounts a on a.customer_id = c.id where c.name = 'n1'`);
    assert.deepEqual(one, { status: 'active', micros: '1250000' });
    await assert.rejects(db.query(`insert into public.customer_customers (name, email) values ('again', 'e1')`), /live_email/, 'one live customer an address, as before');
    const [{ id }] = await db.query(`update public.customer_customers set status = 'frozen' where name = 'n2' returning id`);
    const blocked = await run(t, ['migrate', '--down', '99'], { database: db });
    assert.equal(blocked.code, 0, blocked.stderr);
    assert.match(blocked.stdout, /not as before the adoption: .*status/, 'frozen is no label of its type');
    await db.query(`update public.customer_customers set status = 'active' where id = $1;`, [id]);
    await db.query(`alter table public.customer_customers alter status drop default`);
    await db.query(`alter table public.customer_customers add status_again public.state not null default 'active'`);

    const again = await cluster.database(t);
    await again.query(filled(50));
    const before = dump(again);
    assert.equal((await run(t, ['migrate'], { database: again })).code, 0);
    const down = await run(t, ['migrate', '--down', '99'], { database: again });
    assert.equal(down.code, 0, down.stderr);
    assert.doesNotMatch(down.stdout, /not as before/);
    assert.equal(dump(again), before);
  });

  it('leaves customers without owners, doctor says so, and import --owners finds them by address, file or query', async (t) => {
    const db = await cluster.database(t);
    const users = [];
    for (let n = 0; n < 4; n++) users.push(await addUser(db, { confirmed: n < 3 ? '2025-10-02T00:00:00Z' : undefined }));
    await db.query('create table public.customer_customers (id uuid primary key default gen_random_uuid(), email text, login text)');
    for (const [n, user] of users.entries())
      await db.query('insert into public.customer_customers (email, login) values ($1, $2)', [n === 0 || n === 3 ? user.email.toUpperCase() : '', n === 2 ? user.email : null]);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
    const doctor = async () => (await run(t, ['doctor'], { database: db })).stdout;
    assert.match(await doctor(), /no customer has an owner.*reclaim customers import --owners/);
    const owners = async (...args) => {
      const { code, stdout, stderr } = await run(t, ['customers', 'import', '--owners', ...args], { database: db });
      assert.equal(code, 0, stderr);
      return JSON.parse(stdout);
    };
    assert.deepEqual(await owners('--dry-run'), { imported: 0, due: 1 });
    assert.deepEqual(await owners(), { imported: 1, skipped: 0 }, 'not the one whose address is not confirmed');
    assert.doesNotMatch(await doctor(), /no customer has an owner/);
    const byLogin = `select c.id as customer_id, u.id as owner_user_id from public.customer_customers c join auth.users u on u.email = c.login`;
    assert.deepEqual(await owners('--query', byLogin), { imported: 1, skipped: 0 });
    const [{ id }] = await db.query(`select id from public.customer_customers where email = '' and login is null`);
    const file = path.join(temporaryDirectory(stage), 'owners.csv');
    fs.writeFileSync(file, `customer_id,owner_user_id\n${id},${users[1].id}\n${id},${users[1].id}\n`);
    assert.deepEqual(await owners(file), { imported: 1, skipped: 1 });
    const found = await db.query('select owner_user_id as id from public.customer_customers where owner_user_id is not null order by 1');
    assert.deepEqual(found.map((one) => one.id), users.slice(0, 3).map((user) => user.id).sort());
    fs.writeFileSync(file, 'customer_id,owner_user_id\nx,y\n');
    const wrong = await run(t, ['customers', 'import', '--owners', file], { database: db });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stderr, /line 2/);
    assert.equal((await run(t, ['customers', 'import', '--owners', '--query', 'select 1'], { database: db })).code, 1);
    assert.equal((await run(t, ['customers', 'import', '--query', byLogin], { database: db })).code, 2);
  });

  for (const [shape, sql, words] of [
    ['a view', 'create view public.customer_customers as select 1 as id', /is a view/],
    ['ids that are no uuids', `create table public.customer_customers (id text primary key); insert into public.customer_customers values ('seven')`, /1 of its values are no uuids/],
    ['numbers as ids', 'create table public.customer_customers (id bigint primary key)', /column id: it is bigint, Reclaim needs uuid/],
    ['no unique id', 'create table public.customer_customers (id uuid)', /no unique index.*ADD PRIMARY KEY/],
    ['another status', `create table public.customer_customers (id uuid primary key, status text); insert into public.customer_customers values (gen_random_uuid(), 'suspended')`, /1 rows have status "suspended"/],
    ['a check of the status', `create table public.customer_customers (id uuid primary key, status text check (status in ('active', 'deleted')))`, /does not allow the status frozen.*DROP CONSTRAINT/],
    ['accounts without a customer', `create table public.billing_accounts (id uuid primary key, customer_id uuid); insert into public.billing_accounts values (gen_random_uuid())`, /1 accounts have no customer/],
    ['a name that is taken', 'create table public.customer_customers (id uuid primary key); create table public.customer_by_status ()', /needs this name for an index/],
    ['a materialized view on a column whose type changes', `create table public.customer_customers (id uuid primary key, tm_delete timestamp);
      create materialized view public.m as select tm_delete from public.customer_customers`, /materialized view.*drop it/],
    ['a generated status', `create table public.customer_customers (id uuid primary key, n int, status text generated always as ('active') stored)`, /generated/],
  ])
    it(`of ${shape} is refused before anything is changed, with what to do`, async (t) => {
      const db = await cluster.database(t);
      await db.query(sql);
      const shapes = dump(db);
      const check = await run(t, ['migrate', '--check', '--format', 'csv'], { database: db });
      assert.equal(check.code, 1, check.stdout);
      assert.match(check.stdout, /refused/);
      const refused = await run(t, ['migrate'], { database: db });
      assert.equal(refused.code, 1, refused.stderr);
      assert.match(refused.stderr, words);
      assert.match(refused.stderr, /What to do: /);
      assert.equal(dump(db), shapes);
    });

  it('by the release before is accepted as it is', async (t) => {
    const db = await cluster.database(t);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
    await db.query(`update reclaim.schema_migrations set checksum = '9daecd973da9c251bc216f5e36189479f8ca7ca3623108587c171cabb21f416e' where version = 11`);
    assert.match((await run(t, ['migrate'], { database: db })).stdout, /nothing to do/);
    const check = await run(t, ['migrate', '--check'], { database: db });
    assert.equal(check.code, 0, check.stderr);
  });
});
