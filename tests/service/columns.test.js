// Columns of adopted tables that Reclaim does not know: personal, so cleared by a deletion, whatever their type and whenever they
// were added, unless that is impossible or the team has decided otherwise.

import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { asAdmin, env, freeze, show } from './lib/customers.js';
import { erased, expire, found, frozenSince, ledger, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

/** A column of a team: its definition, a value that holds the mark, and what a deletion leaves; `kept` names the reason. */
const columns = {
  // null where the column may be
  iban: { type: 'text', value: (m) => `IBAN ${m}`, left: null },
  born: { type: 'date', value: () => '1970-02-03', left: null },
  notes: { type: 'jsonb', value: (m) => JSON.stringify({ note: m }), left: null },
  nicknames: { type: 'text[]', value: (m) => `{${m}}`, left: null },
  referrer: { type: 'uuid references public.customer_customers', value: () => null, left: null },
  tax_number: { type: 'bigint unique', value: (m) => parseInt(m, 16), left: null },
  // else the type's neutral value
  title: { type: 'text not null', value: (m) => m, left: '' },
  score: { type: 'numeric(8,2) not null', value: () => 12.5, left: '0.00' },
  vip: { type: 'boolean not null', value: () => true, left: 'false' },
  profile: { type: 'jsonb not null', value: (m) => JSON.stringify({ a: m }), left: '{}' },
  raw: { type: 'json not null', value: (m) => JSON.stringify({ a: m }), left: '{}' },
  tags: { type: 'text[] not null', value: (m) => `{${m}}`, left: '{}' },
  seen: { type: 'timestamptz not null', value: () => '2026-01-01Z', left: '1970-01-01 00:00:00+00' },
  since: { type: 'date not null', value: () => '2026-01-01', left: '1970-01-01' },
  hours: { type: 'time not null', value: () => '12:00', left: '00:00:00' },
  period: { type: 'tstzrange not null', value: () => '[2026-01-01,2026-02-01)', left: 'empty' },
  plan: { type: 'public.plan not null', value: () => 'gold', left: 'free' },
  host: { type: 'inet not null', value: () => '192.0.2.1', left: '0.0.0.0/32' },
  mac: { type: 'macaddr not null', value: () => '08:00:2b:01:02:03', left: '00:00:00:00:00:00' },
  place: { type: 'point not null', value: () => '(1,2)', left: '(0,0)' },
  bits: { type: 'bit(4) not null', value: () => '1010', left: '0000' },
  photo: { type: 'bytea not null', value: (m) => `\\x${m}`, left: '\\x' },
  words: { type: 'tsvector not null', value: (m) => m, left: '' },
  doc: { type: 'xml not null', value: (m) => `<a>${m}</a>`, left: '' },
  pair: { type: 'public.pair not null', value: (m) => `(${m},1)`, left: '(,)' },
  grade: { type: 'public.grade not null', value: () => 5, left: '0' },
  code: { type: 'public.code not null', value: (m) => `c${m}`, left: (id) => `deleted_${id}` },
  money: { type: 'money not null', value: () => '5', left: '$0.00' },
  span: { type: 'interval not null', value: () => '3 days', left: '00:00:00' },
  // unique: with the id in it
  api_key: { type: 'text not null unique', value: (m) => m, left: (id) => `deleted_${id}` },
  login: { type: 'varchar(32) not null unique', value: (m) => m, left: (id) => id.replaceAll('-', '') },
  handle: { type: 'varchar(24) not null unique', value: (m) => m, left: (id) => Buffer.from(id.replaceAll('-', ''), 'hex').toString('base64').replace(/=+$/, '') },
  device: { type: 'uuid not null unique', value: () => randomUUID(), left: (id) => id },
  only_live: { type: 'text not null', value: (m) => m, left: (id) => `deleted_${id}` }, // a partial unique index
  folded: { type: 'text not null', value: (m) => m, left: (id) => `deleted_${id}` }, // a unique index on lower(folded)
  branch: { type: 'text not null', value: (m) => m, left: (id) => `deleted_${id}` }, // unique together:
  seat: { type: 'integer not null', value: () => 7, left: '0' },
  // what cannot be cleared
  number: { type: 'integer generated always as identity', kept: /identity/ },
  shown: { type: `text generated always as (upper(title)) stored`, kept: /generated/ },
  serial_no: { type: 'bigint not null unique', value: (m) => parseInt(m, 16), kept: /unique index/ },
  level: { type: 'integer not null check (level between 1 and 3)', value: () => 2, kept: /check constraint/ },
  region: { type: 'integer not null references public.regions', value: () => 1, kept: /foreign key/ },
  booked: { type: 'int4range not null, exclude using gist (booked with &&)', value: (m) => `[${parseInt(m.slice(0, 6), 16)},${parseInt(m.slice(0, 6), 16) + 1})`, kept: /exclusion/ },
  short_key: { type: 'varchar(12) not null unique', value: (m) => m, kept: /unique index/ },
  old_key: { type: 'text not null unique', value: (m) => m, kept: /foreign key refers/ },
};
const names = Object.keys(columns);
const clears = names.filter((name) => !columns[name].kept);
const keeps = names.filter((name) => columns[name].kept);

const schema = `
  create type public.plan as enum ('free', 'gold');
  create type public.pair as (a text, b int);
  create domain public.grade as int not null check (value >= 0);
  create domain public.code as text check (value ~ '^[a-z]');
  create table public.regions (id int primary key); insert into public.regions values (1);
  create table public.customer_customers (
    id uuid primary key, name varchar(20) not null, email varchar(255) not null unique, phone_number text not null unique,
    webhook_uri text unique, status text,
    ${names.map((name) => `${name} ${columns[name].type}`).join(',\n    ')});
  create unique index only_live_once on public.customer_customers (only_live) where only_live <> '';
  create unique index folded_once on public.customer_customers (lower(folded));
  create unique index seat_once on public.customer_customers (branch, seat);
  create table public.letters (id int, old_key text references public.customer_customers (old_key));
  create table public.billing_accounts (id uuid primary key, customer_id uuid, name text not null unique, contact text,
    vat text not null unique, invoice_no bigint not null unique, limit_micros bigint not null);
  create role reader; `;

const stage = new Stage();
let cluster, db, server;
before(async () => {
  cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await db.query(schema);
  server = await serve(stage, { database: db, env });
});
after(() => stage.end());

let invoices = 0;

/** A customer of the team's own programs, with a value in every column; `more` are columns that were added since. */
async function add(more = {}) {
  const mark = randomBytes(4).toString('hex');
  const id = randomUUID();
  const row = { id, name: `N ${mark}`, email: `${mark}@customers.example.com`, phone_number: `+1 ${mark}`, webhook_uri: `https://${mark}.example.com/`, ...more };
  for (const name of names) if (columns[name].value) row[name] = columns[name].value(mark);
  const given = Object.keys(row);
  await db.query(`insert into public.customer_customers (${given.join(', ')}) values (${given.map((_, i) => `$${i + 1}`).join(', ')})`, Object.values(row));
  await db.query(`insert into public.billing_accounts (id, customer_id, name, contact, vat, invoice_no, limit_micros)
    select gen_random_uuid(), $1, $2::text || n, $2, $2::text || n, $3::int + n, 5 from generate_series(1, 2) n`, [id, mark, (invoices += 10)]);
  return { id, mark, email: row.email };
}

const textOf = async (customer) => {
  const [row] = await db.query(`select to_jsonb(texts) as row from (select ${clears.map((name) => `${name}::text as ${name}`).join(', ')}
    from public.customer_customers where id = $1) texts`, [customer.id]);
  return row.row;
};
const keptOf = async (customer) =>
  Object.fromEntries((await ledger(server, customer.id)).json.participants.filter(({ status }) => status === 'kept').map(({ name, reason }) => [name, reason]));
const reclaim = (...args) => run(stage, args, { database: db });
async function removed(customer) {
  const answer = await remove(server, customer.id);
  assert.equal(answer.status, 200, answer.body);
  await erased(server, customer);
}

describe('a deletion', () => {
  it('clears every column that Reclaim does not know, of one customer and of a second', async () => {
    for (const customer of [await add(), await add()]) {
      await removed(customer);
      const left = await textOf(customer);
      const wanted = Object.fromEntries(clears.map((name) => {
        const { left: value } = columns[name];
        return [name, typeof value === 'function' ? value(customer.id) : value];
      }));
      assert.deepEqual(left, wanted);
    }
  });

  it('clears the columns that it knows, in whatever shape the team has them', async () => {
    const customer = await add();
    await removed(customer);
    const [row] = await db.query('select name, email, phone_number, webhook_uri, status from public.customer_customers where id = $1', [customer.id]);
    assert.deepEqual(row, {
      name: `deleted_user_${customer.id}`.slice(0, 20), email: `deleted_${customer.id}@removed.invalid`,
      phone_number: `deleted_${customer.id}`, webhook_uri: null, status: 'deleted',
    });
    assert.equal((await show(server, customer.id)).json.webhook_uri, '');
  });

  it('clears the accounts of the customer as well', async () => {
    const customer = await add();
    await removed(customer);
    const rows = await db.query('select id, name, contact, vat, limit_micros::int, status from public.billing_accounts where customer_id = $1', [customer.id]);
    assert.equal(rows.length, 2);
    for (const { id, ...row } of rows)
      assert.deepEqual(row, { name: `deleted_${id}`, contact: null, vat: `deleted_${id}`, limit_micros: 0, status: 'deleted' });
  });

  it('keeps what cannot be cleared, and the ledger says which and why', async () => {
    const customer = await add();
    await removed(customer);
    const kept = await keptOf(customer);
    assert.deepEqual(Object.keys(kept).sort(), [...keeps.map((name) => `public.customer_customers.${name}`), 'public.billing_accounts.invoice_no'].sort());
    for (const name of keeps) assert.match(kept[`public.customer_customers.${name}`], columns[name].kept);
    assert.match(kept['public.billing_accounts.invoice_no'], /unique index/);
    const places = await found(db, [customer.mark]);
    const rest = places.filter((place) => !/^customer_customers:/.test(place));
    assert.deepEqual(rest, [], 'but old_key, serial_no, short_key of the row itself');
  });

  it('by a role that has no privileges on the team’s tables clears them, and lends none', async (t) => {
    const customer = await add();
    await db.query(`create role few; grant usage on schema reclaim, auth to few; grant select, insert, update, delete on all tables in schema reclaim to few;
      grant usage on all sequences in schema reclaim to few; grant execute on all functions in schema reclaim to few;
      grant select, update, delete on all tables in schema auth to few`);
    const session = await db.session(t);
    await session.query('set role few');
    await assert.rejects(session.query('select iban from public.customer_customers'), /permission denied/);
    const { rows } = await session.query(`select reclaim.delete_customers(array[$1::uuid], array[null::text], 'delete', 'operator', null, null) as n`, [customer.id]);
    assert.deepEqual(rows, [{ n: 1 }]);
    assert.equal((await textOf(customer)).iban, null);
    const asked = await session.query(`select reclaim.value_fault('public.customer_customers', 1::smallint, 'x', 'text', '(select min(name) from public.customer_customers)') as fault`);
    assert.match(asked.rows[0].fault, /no neutral value/);
  });

  it('of a batch is a few statements, not one for each customer', async () => {
    await db.query(`create table public.statements (n int); grant all on public.statements to public;
      create function public.count_statement() returns trigger language plpgsql as $$ begin
        insert into public.statements select count(*) from changed where status = 'deleted' having count(*) > 0; return null; end $$;
      create trigger count_statement after update on public.customer_customers referencing new table as changed
        for each statement execute function public.count_statement()`);
    const customers = [];
    for (let i = 0; i < 30; i++) customers.push(await add());
    for (const customer of customers) await freeze(server, customer.id);
    await db.query(`update public.customer_customers set tm_deletion_scheduled = tm_deletion_scheduled - interval '31 days' where status = 'frozen'`);
    await db.query('delete from public.statements');
    assert.equal(await expire(stage, db), 30);
    const [{ n }] = await db.query('select count(*)::int as n from public.statements');
    assert.ok(n <= 3, `${n} statements`);
    await db.query('drop trigger count_statement on public.customer_customers');
    for (const customer of customers) assert.equal((await textOf(customer)).iban, null);
  });
});

describe('a table that the team changes afterwards', () => {
  it('gets a column, and the next deletion clears it', async () => {
    await db.query('alter table public.customer_customers add column billing_email text, add column "Odd ""Name" text not null default \'x\'');
    await db.query('alter table public.billing_accounts add column payer text');
    const customer = await add({ billing_email: 'bill@customers.example.com' });
    await db.query(`update public.billing_accounts set payer = 'Payer' where customer_id = $1`, [customer.id]);
    await removed(customer);
    const [row] = await db.query('select billing_email, "Odd ""Name" as odd from public.customer_customers where id = $1', [customer.id]);
    assert.deepEqual(row, { billing_email: null, odd: '' });
    assert.deepEqual(await db.query('select distinct payer from public.billing_accounts where customer_id = $1', [customer.id]), [{ payer: null }]);
  });

  it('loses and renames columns of the team’s own', async () => {
    await db.query('alter table public.customer_customers drop column billing_email');
    await db.query('alter table public.customer_customers rename column "Odd ""Name" to plain');
    await db.query('alter table public.billing_accounts drop column payer');
    const customer = await add({ plain: 'y' });
    await removed(customer);
    assert.deepEqual(await db.query('select plain from public.customer_customers where id = $1', [customer.id]), [{ plain: '' }]);
    await db.query('alter table public.customer_customers drop column plain');
  });

  it('gets a trigger that refuses to clear a column of some customers: those keep it, and are deleted', async () => {
    await db.query(`create function public.refuse() returns trigger language plpgsql as $$ begin
        if old.title like 'kept%' and new.title <> old.title then raise exception 'title % may not change', old.title; end if; return new; end $$;
      create trigger refuse before update on public.customer_customers for each row execute function public.refuse()`);
    const [customer, other] = [await add(), await add()];
    await db.query(`update public.customer_customers set title = 'keptxx' where id = $1`, [customer.id]);
    for (const one of [customer, other]) {
      await freeze(server, one.id);
      await frozenSince(db, one);
    }
    assert.equal(await expire(stage, db), 2);
    await db.query('drop trigger refuse on public.customer_customers');
    assert.deepEqual({ ...(await textOf(customer)), title: '' }, { ...(await textOf(other)), ...differing(customer) });
    assert.equal((await textOf(customer)).title, 'keptxx');
    assert.match((await keptOf(customer))['public.customer_customers.title'], /P0001/);
    assert.equal((await keptOf(other))['public.customer_customers.title'], undefined);
  });

  it('gets a trigger that refuses at the commit: the column is kept, the customer deleted', async () => {
    await db.query(`create function public.refuse_late() returns trigger language plpgsql as $$ begin
        if new.score <> old.score then raise exception 'score may not change'; end if; return null; end $$;
      create constraint trigger refuse_late after update on public.customer_customers deferrable initially deferred
        for each row execute function public.refuse_late()`);
    const customer = await add();
    await removed(customer);
    await db.query('drop trigger refuse_late on public.customer_customers');
    assert.equal((await textOf(customer)).score, '12.50');
    assert.match((await keptOf(customer))['public.customer_customers.score'], /P0001/);
    assert.equal((await textOf(customer)).iban, null);
  });

  it('gets a trigger that puts a value back: the ledger says so', async () => {
    await db.query(`create function public.restore() returns trigger language plpgsql as $$ begin
        new.iban := old.iban; new.seen := now(); return new; end $$;
      create trigger restore before update on public.customer_customers for each row execute function public.restore()`);
    const customer = await add();
    await removed(customer);
    await db.query('drop trigger restore on public.customer_customers');
    const kept = await keptOf(customer);
    assert.match(kept['public.customer_customers.iban'], /trigger/);
    assert.equal(kept['public.customer_customers.seen'], undefined, 'a time that the trigger writes is nothing that was kept');
  });

  it('gets constraints over several columns: what they refuse is kept, the rest is cleared', async () => {
    await db.query(`alter table public.customer_customers add constraint title_or_vip check (title <> '' or vip) not valid`);
    const customer = await add();
    await removed(customer);
    await db.query('alter table public.customer_customers drop constraint title_or_vip');
    const kept = Object.keys(await keptOf(customer)).filter((name) => /title|vip/.test(name));
    assert.equal(kept.length, 1, kept.join());
    assert.equal((await textOf(customer)).iban, null);
  });

  it('gets a constraint on a column that Reclaim knows: that is kept too, and the doctor names it', async () => {
    await db.query(`alter table public.customer_customers add constraint phone_form check (phone_number ~ '^[+]') not valid`);
    const customer = await add();
    await removed(customer);
    const { stdout } = await reclaim('doctor');
    await db.query('alter table public.customer_customers drop constraint phone_form');
    assert.match((await keptOf(customer))['public.customer_customers.phone_number'], /unique index/); // a neutral value would not be unique, one with the id has another form
    assert.match(stdout, /warn.*personal columns of public\.customer_customers cannot be cleared.*phone_number \(unique index/);
  });

  it('is cleared again when another program writes it into the row of a deleted customer, and the ledger counts it', async () => {
    const customer = await add();
    await removed(customer);
    const before = await keptOf(customer);
    await db.query(`update public.customer_customers set email = 'back@customers.example.com', iban = 'IBAN back', api_key = 'Key back' where id = $1`, [customer.id]);
    assert.equal((await reclaim('cascade', 'rescan', customer.id)).code, 0);
    const part = await until('cleared again', async () =>
      (await ledger(server, customer.id)).json.participants.find(({ name }) => name === 'public.customer_customers'));
    assert.deepEqual([part.status, part.late_rows], ['done', 1]);
    assert.deepEqual(await found(db, ['back@customers', 'IBAN back', 'Key back']), []);
    assert.deepEqual(await keptOf(customer), before);
  });

  it('is cleared too when another program deletes the customer in plain SQL', async () => {
    const customer = await add();
    await db.query(`update public.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    await erased(server, customer);
    assert.equal((await textOf(customer)).iban, null);
    assert.equal((await textOf(customer)).api_key, `deleted_${customer.id}`);
  });
});

/** Columns whose values have the customer's id in them. */
const differing = (customer) =>
  Object.fromEntries(clears.filter((name) => typeof columns[name].left === 'function').map((name) => [name, columns[name].left(customer.id)]));

describe('reclaim columns', () => {
  const listed = async () => JSON.parse((await reclaim('columns', 'list', '--format', 'json')).stdout);
  const one = async (column) => (await listed()).find((row) => row.column === column);

  it('lists what Reclaim does not know, and what a deletion does to it', async () => {
    const rows = await listed();
    assert.deepEqual(rows.filter(({ table }) => table === 'public.customer_customers').map(({ column }) => column).sort(), [...names].sort());
    assert.deepEqual(await one('iban'), { table: 'public.customer_customers', column: 'iban', type: 'text', decision: null, deletion: 'clears', detail: 'NULL' });
    const level = await one('level');
    assert.equal(level.deletion, 'keeps');
    assert.match(level.detail, /check constraint/);
  });

  it('the doctor warns until each is decided', async () => {
    const { stdout, code } = await reclaim('doctor');
    assert.match(stdout, /warn.*public\.customer_customers.*iban.*reclaim columns/s);
    assert.match(stdout, /warn.*cannot be cleared.*level/s);
    assert.equal(code, 0, stdout);
    for (const { table, column } of await listed()) assert.equal((await reclaim('columns', column === 'iban' || keeps.includes(column) || column === 'invoice_no' ? 'keep' : 'clear', table, column)).code, 0);
    const after = await reclaim('doctor');
    assert.doesNotMatch(after.stdout, /reclaim columns/);
  });

  it('a column that was decided to be kept is kept, and the ledger says by decision', async () => {
    const customer = await add();
    await removed(customer);
    assert.match((await textOf(customer)).iban, new RegExp(customer.mark));
    assert.equal((await keptOf(customer))['public.customer_customers.iban'], 'by decision');
  });

  it('by which law it is kept stands in the ledger and in the certificate', async () => {
    const law = 'by decision: tax law, ten years';
    assert.equal((await reclaim('columns', 'keep', 'customer_customers', 'iban', '--reason', 'tax law, ten years')).code, 0);
    assert.equal((await one('iban')).detail, law);
    const customer = await add();
    await removed(customer);
    assert.equal((await keptOf(customer))['public.customer_customers.iban'], law);
    const certificate = await request(server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() });
    const { kept } = JSON.parse(Buffer.from(certificate.body.split('.')[1], 'base64url'));
    assert.equal(kept.find(({ name }) => name === 'public.customer_customers.iban').reason, law);
    assert.equal((await reclaim('columns', 'keep', 'customer_customers', 'iban')).code, 0);
  });

  it('a decision can be changed, and is in the audit', async () => {
    assert.equal((await reclaim('columns', 'clear', 'customer_customers', 'iban')).code, 0);
    assert.equal((await one('iban')).decision, 'clear');
    const rows = await db.query(`select action, actor, outcome, detail from reclaim.customer_log where action like 'column%' and detail like '%.iban' order by id`);
    assert.deepEqual(rows, ['keep', 'keep', 'clear'].map((word) => ({ action: `column_${word}`, actor: 'operator', outcome: 'done', detail: 'customer_customers.iban' })));
    const customer = await add();
    await removed(customer);
    assert.equal((await textOf(customer)).iban, null);
  });

  it('refuses what makes no sense, with words', async () => {
    for (const [args, exit, words] of [
      [['keep', 'customer_customers', 'nothing'], 1, /has no column nothing/],
      [['keep', 'customer_customers', 'email'], 1, /Reclaim's own/],
      [['keep', 'companies', 'name'], 1, /none of the tables/],
      [['keep', 'customer_customers'], 2, /TABLE COLUMN/],
      [['forget'], 2, /list, keep or clear/],
      [['keep', 'customer_customers', 'iban', '--format', 'csv'], 2, /--format/],
      [['clear', 'customer_customers', 'iban', '--reason', 'law'], 2, /goes with keep/],
      [['keep', 'customer_customers', 'iban', '--reason', ' '], 2, /up to 200 bytes/],
    ]) {
      const { code, stderr } = await reclaim('columns', ...args);
      assert.equal(code, exit, stderr);
      assert.match(stderr, words);
    }
  });
});

describe('an installation from before', () => {
  it('gets a view of the columns that Reclaim knows, with its privileges and the functions that take its rows', async (t) => {
    const old = await cluster.database(t);
    const migrate = (...args) => run(t, ['migrate', ...args], { database: old });
    assert.equal((await migrate()).code, 0);
    const [{ steps }] = await old.query('select count(*)::int as steps from reclaim.schema_migrations');
    assert.equal((await migrate('--down', String(steps - 20))).code, 0);
    // As the release before left adopted tables: in public, and views of all of their columns.
    for (const name of ['customer_customers', 'billing_accounts'])
      await old.query(`alter table reclaim.${name} set schema public; alter table public.${name} add column iban text;
        create view reclaim.${name} as select * from public.${name}; update reclaim.adopted_columns set relation = 'public.${name}' where relation = 'reclaim.${name}'`);
    await old.query(`insert into public.customer_customers (name, iban) values ('A', 'x')`);
    await old.query(`create function reclaim.told(c reclaim.customer_customers) returns text language sql as 'select c.name';
      revoke all on function reclaim.told from public; grant execute on function reclaim.told to reader; grant select on reclaim.customer_customers to reader;
      create view public.shown as select iban from reclaim.customer_customers`);
    const refused = await migrate();
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /depend on the view reclaim.customer_customers/);
    await old.query('drop view public.shown');
    const migrated = await migrate();
    assert.equal(migrated.code, 0, migrated.stderr);
    await old.query('alter table public.customer_customers drop column iban');
    assert.deepEqual(await old.query('select reclaim.told(c) as told from reclaim.customer_customers c'), [{ told: 'A' }]);
    const [may] = await old.query(`select has_function_privilege('reader', 'reclaim.told(reclaim.customer_customers)', 'execute') as runs,
      has_table_privilege('reader', 'reclaim.customer_customers', 'select') as reads,
      exists (select from pg_proc, aclexplode(proacl) a where oid = 'reclaim.told(reclaim.customer_customers)'::regprocedure and a.grantee = 0) as open`);
    assert.deepEqual(may, { runs: true, reads: true, open: false });
    await old.query('drop function reclaim.told');
  });
});
