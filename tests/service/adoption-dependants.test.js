// What hangs on the tables that are adopted: indexes, constraints, views, policies and triggers keep their meaning, or the adoption is
// refused before anything is changed, with what to do.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const versions = fs.readdirSync('/usr/lib/postgresql').sort((a, b) => a - b);
const dump = (db) =>
  execFileSync(`/usr/lib/postgresql/${versions.at(-1)}/bin/pg_dump`, ['-s', '-d', db.url], { encoding: 'utf8' }).replace(/^\\.*$/gm, '');

/** Customers by their tm_delete, whose type and default are given. */
const customers = (tmDelete, more = '') => `
  create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text, email text, status text, tm_delete ${tmDelete} ${more});
  insert into public.customer_customers (name, email) select 'n' || n, 'e' || n from generate_series(1, 20) n;
  insert into public.customer_customers (name, email, tm_delete) select 'gone' || n, 'e' || n, '2025-01-01'::timestamp + n * interval '1 day' from generate_series(1, 5) n;`;

const migrate = async (t, db, ...args) => {
  const done = await run(t, ['migrate', ...args], { database: db });
  assert.equal(done.code, 0, done.stderr);
  return done;
};
const findings = async (t, db, ...args) => JSON.parse((await run(t, ['migrate', '--check', '--format', 'json', ...args], { database: db })).stdout);

/** Adopted and given back without any difference; `adopted` is what is looked at in between. */
async function thereAndBack(t, sql, adopted, ...args) {
  const db = await cluster.database(t);
  await db.query(sql);
  const shape = dump(db);
  await migrate(t, db, ...args);
  await adopted(db);
  const down = await migrate(t, db, '--down', '99');
  assert.doesNotMatch(down.stdout, /not as before/);
  assert.equal(dump(db), shape);
  return db;
}

describe('one live customer an address', () => {
  const twice = `insert into public.customer_customers (name, email) values ('again', 'e1')`;
  for (const type of [`timestamp not null default '9999-01-01'`, `timestamptz default '9999-12-31 23:59:59+00'`, `timestamptz not null default 'infinity'`])
    for (const [how, sql] of [
      ['a constraint with tm_delete', `alter table public.customer_customers add constraint one_live unique (email, tm_delete);
        comment on constraint one_live on public.customer_customers is 'theirs'`],
      ['an index with tm_delete first', 'create unique index one_live on public.customer_customers (tm_delete desc, lower(email))'],
      ['an index on live rows that have a name', `create unique index one_live on public.customer_customers (email) where tm_delete > '2100-01-01' and name is not null`],
      ['an index with a quoted name', `create unique index "One live" on public.customer_customers (email) where tm_delete > '2100-01-01';
        comment on index public."One live" is 'theirs'`],
    ])
      it(`is kept by ${how}, ${type}`, async (t) => {
        const db = await thereAndBack(t, `${customers(type)} ${sql}`, async (adopted) => {
          await assert.rejects(adopted.query(twice), /duplicate key/);
          await adopted.query(`insert into public.customer_customers (name, email, tm_delete) values ('old', 'e1', '2025-01-01')`);
          const [{ comment }] = await adopted.query(`select obj_description(indexrelid, 'pg_class') as comment from pg_index where indexrelid::regclass::text ~* 'one.live'`);
          assert.equal(comment, /comment/.test(sql) ? 'theirs' : null);
        });
        await assert.rejects(db.query(twice), /duplicate key/, 'as before, when the table is given back');
      });

  it('is kept while the adoption runs', async (t) => {
    const db = await cluster.database(t);
    await db.query(`${customers(`timestamptz not null default 'infinity'`)} create unique index one_live on public.customer_customers (email) where tm_delete = 'infinity'`);
    const team = await db.session(t);
    const seen = [];
    const migrated = run(t, ['migrate'], { database: db, said: () => seen.push(team.query(twice).then(() => 'taken', (fault) => fault.message)) });
    assert.equal((await migrated).code, 0);
    const answers = await Promise.all(seen);
    assert.ok(answers.length > 3 && answers.every((one) => /duplicate key/.test(one)), answers.join('\n'));
  });

  it('is refused with what to do where rows that are not deleted are twice, by null and by a sentinel', async (t) => {
    const db = await cluster.database(t);
    await db.query(`${customers(`timestamptz default 'infinity'`, ', unique (email, tm_delete)')} insert into public.customer_customers (email, tm_delete) values ('e1', null)`);
    const refused = await run(t, ['migrate'], { database: db });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the same values of email: 1 times.*remove the duplicates/s);
  });

  it('is refused where rows that are not deleted are twice by two sentinels, of which the index has one', async (t) => {
    const db = await cluster.database(t);
    await db.query(`${customers(`timestamptz default '9999-01-01+00'`)} create unique index one_live on public.customer_customers (email) where tm_delete = '9999-01-01+00';
      insert into public.customer_customers (email, tm_delete) values ('e1', '9999-12-31+00')`);
    const refused = await run(t, ['migrate'], { database: db });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /the same values of email: 1 times/);
  });
});

describe('a view', () => {
  const names = `create role anon; create role clerk;`;
  before(async () => (await cluster.database(stage)).query(names));

  for (const type of [`timestamp not null default '9999-01-01'`, `timestamptz default 'infinity'`])
    it(`by the sentinel shows the same rows, ${type}`, async (t) => {
      const views = {
        by_time: `select name, tm_delete from public.customer_customers where tm_delete > now()`,
        by_sentinel: `select name from public.customer_customers c where c.tm_delete > '2100-01-01' and c.name <> 'n1'`,
        by_null: `select name from public.customer_customers where tm_delete is null or tm_delete > now()`,
        by_not: `select name from public.customer_customers where not tm_delete < now()`,
        by_other: `select name from public.customer_customers where coalesce(tm_delete, 'infinity') > now()`,
        gone: `select name from public.customer_customers where tm_delete < now()`,
        above: `select name from public.by_time where tm_delete >= now()`,
      };
      const counts = async (db) => (await db.query(`select ${Object.keys(views).map((name) => `(select count(*)::int from public.${name}) as ${name}`).join(', ')}`))[0];
      const wanted = { by_time: 20, by_sentinel: 19, by_null: 20, by_not: 20, by_other: 20, gone: 5, above: 20 };
      const db = await thereAndBack(t, customers(type) + Object.entries(views).map(([name, sql]) => `create view public.${name} as ${sql}`).join(';'), async (adopted) => assert.deepEqual(await counts(adopted), wanted));
      assert.deepEqual(await counts(db), wanted);
    });

  it('of both tables, each with its own sentinel, shows the same rows', async (t) => {
    await thereAndBack(t, `${customers(`timestamptz default '9999-01-01+00'`)}
      create table public.billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid not null, tm_delete timestamptz default 'infinity');
      insert into public.billing_accounts (customer_id) select id from public.customer_customers;
      create view public.pairs as select c.name from public.customer_customers c join public.billing_accounts a on a.customer_id = c.id
        where c.tm_delete = '9999-01-01+00' and a.tm_delete = 'infinity'`,
    async (db) => assert.deepEqual(await db.query('select count(*)::int as n from public.pairs'), [{ n: 20 }]));
  });

  it('over other columns is not touched, and one that is made again has its privileges, options, defaults and comments', async (t) => {
    const state = async (db) => db.query(`select c.relname, c.oid::int as oid, c.relacl::text, c.reloptions, obj_description(c.oid, 'pg_class') as comment,
        (select array_agg(a.attacl::text order by a.attnum) from pg_attribute a where a.attrelid = c.oid and a.attnum > 0) as columns,
        (select array_agg(tgname::text) from pg_trigger where tgrelid = c.oid) as triggers, c.relowner::regrole::text as owner
      from pg_class c where c.relkind in ('v', 'm') and c.relnamespace = 'public'::regnamespace order by 1`);
    let was;
    const same = (now, keep) => assert.deepEqual(now.map((one) => ({ ...one, oid: keep(one.relname) ? one.oid : 0 })), was.map((one) => ({ ...one, oid: keep(one.relname) ? one.oid : 0 })));
    const db = await cluster.database(t);
    await db.query(`${customers(`timestamp not null default '9999-01-01'`)}
      create view public.only_names as select id, name from public.customer_customers;
      create function public.rename() returns trigger language plpgsql as 'begin update public.customer_customers set name = new.name where id = old.id; return new; end';
      create trigger renames instead of update on public.only_names for each row execute function public.rename();
      create materialized view public.kept_names as select name from public.customer_customers;
      alter default privileges in schema public grant all on tables to anon;
      create view public.secret with (security_barrier) as select id, name, tm_delete from public.customer_customers;
      revoke all on public.secret from anon; grant select (name) on public.secret to clerk; alter view public.secret alter column name set default 'x';
      comment on view public.secret is 'theirs'; comment on column public.secret.name is 'also'; alter view public.secret owner to clerk;
      create view public.shared as select tm_delete from public.secret;`);
    was = await state(db);
    const shape = dump(db);
    const found = await findings(t, db);
    assert.match(found.find(({ subject }) => subject === 'view public.only_names').what, /stays/);
    await migrate(t, db);
    same(await state(db), (name) => /names/.test(name));
    await db.query(`update public.only_names set name = 'renamed' where name = 'n1'`);
    const down = await migrate(t, db, '--down', '99');
    assert.doesNotMatch(down.stdout, /not as before/);
    same(await state(db), (name) => /names/.test(name));
    assert.equal(dump(db), shape);
  });

  it('that lost something meanwhile is told by --down', async (t) => {
    const db = await cluster.database(t);
    await db.query(`${customers(`timestamp not null default '9999-01-01'`)} create view public.live as select name, tm_delete from public.customer_customers where tm_delete > now();
      grant select on public.live to clerk`);
    await migrate(t, db);
    await db.query('revoke all on public.live from clerk; create or replace view public.live as select name, tm_delete from public.customer_customers where tm_delete is null');
    const down = await migrate(t, db, '--down', '99');
    assert.match(down.stdout, /not as before the adoption: public.customer_customers: no longer has view public.live: SELECT to clerk/);
    assert.match(down.stdout, /not as before the adoption: not taken back: .*changed meanwhile/);
  });
});

describe('what PostgreSQL or Reclaim cannot carry over', () => {
  const table = (columns) => `create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text, ${columns});`;
  const trigger = `create function public.touch() returns trigger language plpgsql as 'begin return new; end';`;
  const sentinel = `tm_delete timestamptz not null default '9999-01-01+00'`;
  for (const [what, sql, words] of [
    ['a policy on a column whose type changes', `${table('tm_delete timestamp')} create policy mine on public.customer_customers using (tm_delete is null)`, /policy mine.*type changes.*create it again/s],
    ['a policy by the sentinel', `${table(sentinel)} create policy mine on public.customer_customers using (tm_delete > now())`, /policy mine.*becomes null.*IS NULL OR/s],
    ['a trigger for updates of such a column', `${table('tm_delete timestamp')} ${trigger} create trigger touch before update of tm_delete on public.customer_customers for each row execute function public.touch()`, /trigger touch.*CREATE TRIGGER touch/s],
    ['a trigger with a condition on an enum', `create type public.state as enum ('active', 'frozen', 'deleted'); ${table(`status public.state default 'active'`)} ${trigger}
      create trigger touch before update on public.customer_customers for each row when (new.status = 'deleted') execute function public.touch()`, /trigger touch.*on status/s],
    ['a trigger by the sentinel', `${table(sentinel)} ${trigger} create trigger touch before update on public.customer_customers for each row when (old.tm_delete = '9999-01-01+00') execute function public.touch()`, /trigger touch.*becomes null/s],
    ['a generated column', `${table(`tm_delete timestamp, gone boolean generated always as (tm_delete is not null) stored`)}`, /type changes/],
    ['a rule', `${table('tm_delete timestamp')} create rule keep as on delete to public.customer_customers where old.tm_delete is null do instead nothing`, /rule keep.*CREATE RULE keep/s],
    ['a publication with a filter', `${table('status text, tm_delete timestamp')} alter table public.customer_customers replica identity full; create publication shown for table public.customer_customers where (tm_delete is null)`, /publication.*type changes/s],
    ['a function with a body that is parsed', `${table('tm_delete timestamp')} create function public.f() returns timestamp language sql begin atomic select max(tm_delete) from public.customer_customers; end`, /function.*type changes/s],
    ['a function on a view', `${table('tm_delete timestamp')} create view public.v as select tm_delete from public.customer_customers; create function public.f() returns setof public.v language sql as 'select * from public.v'`, /view public.v.*others need it: function/s],
    ['a materialized view above a view', `${table('tm_delete timestamp')} create view public.v as select tm_delete from public.customer_customers; create materialized view public.m as select 1 as one from public.v`, /view public.m.*materialized/s],
    ['a trigger on a view above a view', `${table('tm_delete timestamp')} ${trigger} create view public.v as select tm_delete from public.customer_customers; create view public.w as select * from public.v;
      create trigger touch instead of insert on public.w for each row execute function public.touch()`, /view public.w.*triggers or rules/s],
    ['a view that a new type breaks', `create table public.customer_customers (id text primary key); create view public.v as select * from public.customer_customers where id like 'a%'`, /view public.v.*PostgreSQL refuses it/s],
    ['a view that takes tm_delete for anything else', `${table(sentinel)} create view public.v as select 1 as one from public.customer_customers where tm_delete is not null`, /view public.v.*cannot be carried over/s],
    ['a view with an outer join', `${table(sentinel)} create view public.v as select 1 as one from (values (1)) n left join public.customer_customers c on true where c.tm_delete > now()`, /view public.v.*cannot be carried over/s],
    ['a check that tm_delete is there', `${table(`${sentinel} check (tm_delete is not null)`)}`, /does not allow.*null.*DROP CONSTRAINT/s],
    ['a check that a new type breaks', `create type public.state as enum ('active', 'frozen', 'deleted'); ${table(`status public.state check (status <> 'frozen'::public.state or name is not null)`)}`, /PostgreSQL refuses.*DROP CONSTRAINT/s],
    ['a status that "deleted" does not fit', table('status varchar(6)'), /7 characters/],
    ['tm_delete in the primary key', `create table public.customer_customers (id uuid unique, ${sentinel}, primary key (id, tm_delete))`, /primary key/],
    ['a deferrable constraint by the sentinel', table(`${sentinel}, unique (name, tm_delete) deferrable`), /deferrable.*unique index/s],
    ['ids that are empty', `create table public.customer_customers (id varchar(36) primary key); insert into public.customer_customers values ('')`, /1 of its values are no uuids/],
    ['a column of its row type', `${table('n int')} create table public.copies (old public.customer_customers)`, /rows of the table's type/],
    ['a table that inherits', `${table('n int')} create table public.more () inherits (public.customer_customers)`, /inherits/],
    ['a foreign key of another table to a varchar id', `create table public.customer_customers (id varchar(36) primary key); create table public.orders (customer varchar(36) references public.customer_customers)`, /foreign key holds it/],
  ])
    it(`${what}: refused before anything is changed`, async (t) => {
      const db = await cluster.database(t);
      await db.query(sql);
      const shape = dump(db);
      const check = await run(t, ['migrate', '--check', '--format', 'csv'], { database: db });
      assert.equal(check.code, 1, check.stdout);
      const refused = await run(t, ['migrate'], { database: db });
      assert.equal(refused.code, 1, refused.stderr);
      assert.match(refused.stderr, words);
      assert.match(refused.stderr, /What to do: /);
      assert.equal(dump(db), shape);
    });

  for (const [what, sql] of [
    ['a policy that is right with nulls', `${table(sentinel)} create policy mine on public.customer_customers using (tm_delete is null or tm_delete > now())`],
    ['a trigger on a change of tm_delete', `${table(sentinel)} ${trigger} create trigger touch before update of tm_delete on public.customer_customers for each row when (old.tm_delete is distinct from new.tm_delete) execute function public.touch()`],
    ['a check that holds of nulls', `${table(`tm_create timestamptz default now(), ${sentinel}, check (tm_delete > tm_create), status text check (status ~ '^[a-z]+$')`)}`],
    ['a varchar that is empty and never null', `create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text, billing_account_id varchar(36) not null default '');
      insert into public.customer_customers (name) values ('n1')`],
  ])
    it(`${what}: adopted and given back`, async (t) => {
      await thereAndBack(t, sql, async (db) => {
        await db.query(`insert into public.customer_customers (name) values ('new')`);
        await db.query(`update public.customer_customers set status = 'frozen' where name = 'new'`);
      });
    });
});

describe('varchar ids', () => {
  it('with a foreign key between the two tables become uuids, with the key and the views over both', async (t) => {
    const id = '0b6f2f0e-6b7c-4a8e-9f3c-0d1e2f3a4b5c';
    await thereAndBack(t, `
      create table public.customer_customers (id varchar(36) primary key, name text, billing_account_id varchar(36) not null default '');
      create table public.billing_accounts (id text primary key, customer_id varchar(36) not null, constraint owner foreign key (customer_id) references public.customer_customers (id) on delete cascade);
      comment on constraint owner on public.billing_accounts is 'theirs';
      create view public.pairs as select c.name, a.id from public.customer_customers c join public.billing_accounts a on a.customer_id = c.id;
      insert into public.customer_customers values ('${id}', 'n1'); insert into public.billing_accounts values ('${id}', '${id}')`,
    async (db) => {
      assert.deepEqual(await db.query('select * from public.pairs'), [{ name: 'n1', id }]);
      const [key] = await db.query(`select convalidated, confdeltype, obj_description(oid, 'pg_constraint') as comment from pg_constraint where conname = 'owner'`);
      assert.deepEqual(key, { convalidated: true, confdeltype: 'c', comment: 'theirs' });
      await assert.rejects(db.query(`insert into public.billing_accounts (id, customer_id) values (gen_random_uuid(), gen_random_uuid())`), /owner/);
    });
  });
});

describe('--balance', () => {
  const accounts = (count) => `create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text, tm_delete timestamptz default 'infinity');
    create table public.billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid not null, credit numeric, note text);
    insert into public.customer_customers (name) select 'n' || n from generate_series(1, ${count}) n;
    insert into public.billing_accounts (customer_id, credit) select id, 1.5 from public.customer_customers`;

  it('of no column, or of texts, is refused by migrate itself, and nothing is changed', async (t) => {
    const db = await cluster.database(t);
    await db.query(accounts(3));
    const shape = dump(db);
    for (const column of ['nosuch', 'note', 'credit:dollars']) {
      const refused = await run(t, ['migrate', '--balance', column], { database: db });
      assert.equal(refused.code, 1, refused.stdout);
      assert.match(refused.stderr, /balance/);
    }
    assert.equal(dump(db), shape);
  });

  it('is kept by an adoption that goes on without it, which --check tells of', async (t) => {
    const db = await cluster.database(t);
    await db.query(accounts(500));
    const killed = await run(t, ['migrate', '--balance', 'credit'], { database: db, said: (text, child) => text.includes('customer_customers: rows') && child.kill('SIGKILL') });
    assert.equal(killed.signal, 'SIGKILL');
    const check = await run(t, ['migrate', '--check'], { database: db });
    assert.equal(check.code, 0, check.stderr);
    assert.match(check.stdout.replace(/\s+/g, ' '), /adoption has begun.*go on with reclaim migrate, or take it back with reclaim migrate --down 1/);
    const other = await run(t, ['migrate', '--balance', 'note'], { database: db });
    assert.equal(other.code, 1);
    assert.match(other.stderr, /begun with --balance credit/);
    await migrate(t, db);
    const [{ micros }] = await db.query('select sum(balance_micros)::int as micros from public.billing_accounts');
    assert.equal(micros, 500 * 1_500_000);
  });

  it('after the adoption is refused with what to do, and doctor tells of balances that were left behind', async (t) => {
    const db = await cluster.database(t);
    await db.query(accounts(3));
    await migrate(t, db);
    const late = await run(t, ['migrate', '--balance', 'credit'], { database: db });
    assert.equal(late.code, 1, late.stdout);
    assert.match(late.stderr, /adjustments/);
    const doctor = async () => (await run(t, ['doctor'], { database: db })).stdout;
    assert.match(await doctor(), /balance_micros is 0 .*: credit/);
    await db.query('update public.billing_accounts set balance_micros = 1500000 where id = (select min(id::text)::uuid from public.billing_accounts)');
    assert.doesNotMatch(await doctor(), /balance_micros is 0/);
  });
});

it('a table is not taken for empty because it was analyzed before it was filled', async (t) => {
  const db = await cluster.database(t);
  await db.query(`create table public.customer_customers (id varchar(36) primary key, name text); analyze public.customer_customers;
    alter table public.customer_customers set (autovacuum_enabled = off);
    insert into public.customer_customers select gen_random_uuid()::text, 'a customer of some length ' || n from generate_series(1, 200000) n`);
  const refused = await run(t, ['migrate'], { database: db });
  assert.equal(refused.code, 1, refused.stdout);
  const rows = /about (\d+) rows/.exec(refused.stderr);
  assert.ok(Math.abs(Number(rows?.[1]) - 200000) < 20000, refused.stderr);
});

it('what --check finds is told in lines of at most 80 characters, what is refused first', async (t) => {
  const db = await cluster.database(t);
  await db.query(`${customers(`timestamp not null default '9999-01-01'`)} create unique index one_live on public.customer_customers (email) where tm_delete = '9999-01-01';
    create policy mine on public.customer_customers using (tm_delete > now())`);
  const check = await run(t, ['migrate', '--check'], { database: db });
  assert.equal(check.code, 1);
  const lines = check.stdout.split('\n');
  assert.deepEqual(lines.filter((line) => line.length > 80), []);
  const at = ['Refused', 'Changes', 'Notes', 'Locks'].map((heading) => lines.findIndex((line) => line.startsWith(heading)));
  assert.deepEqual(at, [...at].sort((a, b) => a - b));
  assert.ok(at[0] >= 0, check.stdout);
  assert.match(check.stdout, /1 refused, \d+ changes, \d+ notes/);
});

it('an import into a table with a column that has no default tells which, and what to do', async (t) => {
  const db = await cluster.database(t);
  await db.query(`create table public.customer_customers (id uuid primary key default gen_random_uuid(), email text, plan text not null, constraint has_email check (email <> 'no@example.com'))`);
  const found = await findings(t, db);
  assert.match(found.find(({ subject }) => subject === 'column plan')?.what ?? '', /without a default/);
  await migrate(t, db);
  const file = path.join(temporaryDirectory(stage), 'import.csv');
  fs.writeFileSync(file, 'email\na@example.com\n');
  const refused = await run(t, ['customers', 'import', file], { database: db });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /column plan of public.customer_customers .*no default.*SET DEFAULT/s);
  await db.query(`alter table public.customer_customers alter column plan set default 'free'`);
  fs.writeFileSync(file, 'email\nno@example.com\n');
  const broken = await run(t, ['customers', 'import', file], { database: db });
  assert.equal(broken.code, 1);
  assert.match(broken.stderr, /constraint has_email/);
});
