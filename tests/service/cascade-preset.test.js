// The ready set of tables, and what becomes of the columns of rows that stay: emptied, or kept and listed, whatever their types
// and constraints, and whenever the team added them.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, scene } from './lib/customers.js';
import { erased, ledger, preview, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(() => stage.end());

const cascade = (...args) => run(stage, ['cascade', ...args], { database: db });
const keptOf = ({ participants }) => Object.fromEntries(participants.filter(({ status }) => status === 'kept').map(({ name, reason, rows }) => [name, [reason, rows]]));

async function erase(customer) {
  assert.equal((await remove(server, customer.id)).status, 200);
  return erased(server, customer);
}

/** Looks again at one customer, and waits for it. */
async function rescan(customer) {
  const { code, stderr } = await cascade('rescan', customer.id);
  assert.equal(code, 0, stderr);
  await until('looked at', async () => (await db.query(
    'select from reclaim.erasures where customer_id = $1 and completed_at is not null and rescan_at > reclaim.now()', [customer.id])).length);
}

describe('the ready set for a telephone company', () => {
  it('takes the tables that fit, says what it empties and keeps, and names those that do not fit', async () => {
    await db.query(`
      create table public.tag_tags (id varchar(36) primary key, customer_id varchar(36) not null, name varchar(255) not null, detail text, rank int not null, tm_delete timestamp);
      create index on public.tag_tags (customer_id);
      create table public.number_numbers (id uuid primary key, customer_id uuid not null, number varchar(20) not null unique, status text not null check (status <> ''),
        region text not null, line bigint not null unique, t38 boolean not null, tm_delete timestamptz not null default '9999-01-01');
      create index on public.number_numbers (customer_id);
      create table public.contact_contacts (id uuid primary key, customer_id uuid not null references reclaim.customer_customers, emails text[], birth date,
        email text check (email like '%@%'), work_email text not null check (work_email like '%@%'), company text not null, level int not null check (level between 1 and 3),
        tm_create timestamptz default now(), tm_delete timestamptz, search text generated always as (lower(company)) stored);
      create index on public.contact_contacts (customer_id);
      create table public.flow_flows (id uuid primary key, customer_id uuid, actions jsonb not null, tm_delete timestamptz);
      create table public.queue_queues (id uuid primary key, customer_id uuid, name text);
      create index on public.queue_queues (customer_id)`);
    const { code, stdout, stderr } = await cascade('add', '--preset', 'voip');
    assert.equal(code, 0, stdout + stderr);
    assert.equal(stdout.trim().split('\n').length, 14);
    assert.match(stdout, /^tag +public\.tag_tags +takes part, empties detail, name, rank, keeps id \(primary key\)$/m);
    assert.match(stdout, /^number +public\.number_numbers +takes part, empties number, region, t38, keeps line \(it must be unique, and no value of its type can replace it\)$/m);
    assert.match(stdout, /^contact +public\.contact_contacts +takes part, empties birth, company, email, emails, work_email, keeps level \(check constraint .*\)$/m);
    assert.match(stdout, /^flow +public\.flow_flows +NOT ADDED: .*CREATE INDEX CONCURRENTLY/m);
    assert.match(stdout, /^queue +public\.queue_queues +NOT ADDED: .*no column tm_delete/m);
    assert.match(stdout, /^accesskey +public\.customer_accesskeys +NOT ADDED: there is no table/m);
    assert.match((await cascade('list')).stdout, /^tag +"Tags" public\.tag_tags \(customer_id\), marked in tm_delete, empties detail, name, rank, keeps id \(primary key\), pages of 1000$/m);
  });

  it('marks and empties rows, lists what is kept, and has labels for people', async () => {
    const customer = await addCustomer(db), stays = await addCustomer(db);
    for (const { id } of [customer, stays]) {
      await db.query(`insert into public.tag_tags values ($1, $1, 'Person', 'about a person', 3, null)`, [id]);
      await db.query(`insert into public.number_numbers (id, customer_id, number, status, region, line, t38)
        select gen_random_uuid(), $1, '+1555' || (random() * 1e9)::int, 'active', 'Bavaria', (random() * 1e15)::bigint, true from generate_series(1, 2)`, [id]);
      await db.query(`insert into public.contact_contacts values (gen_random_uuid(), $1, '{a@people.example.com}', '1980-02-03', 'b@people.example.com', 'c@people.example.com', 'Bakery', 2)`, [id]);
    }
    const shown = (await preview(server, customer.id)).json.participants;
    assert.deepEqual(shown.filter(({ rows }) => rows).map(({ name, label, rows }) => [name, label, rows]), [['contact', 'Contacts', 1], ['number', 'Telephone numbers', 2], ['tag', 'Tags', 1]]);
    const done = await erase(customer);
    assert.deepEqual(keptOf(done), {
      'public.contact_contacts.level': ['check constraint contact_contacts_level_check', 1],
      'public.number_numbers.line': ['it must be unique, and no value of its type can replace it', 2],
    });
    assert.deepEqual(await db.query('select name, detail, rank, tm_delete is not null as marked from public.tag_tags where id = $1', [customer.id]), [{ name: '', detail: null, rank: 0, marked: true }]);
    const numbers = await db.query('select number, status, region, t38, tm_delete < now() as ended from public.number_numbers where customer_id = $1', [customer.id]);
    assert.equal(new Set(numbers.map(({ number }) => number)).size, 2);
    for (const { number, ...rest } of numbers) {
      assert.match(number, /^[A-Za-z0-9+/]{20}$/);
      assert.deepEqual(rest, { status: 'active', region: '', t38: false, ended: true });
    }
    const [contact] = await db.query('select emails, birth, email, work_email, company, level, search, tm_create is not null as dated, id from public.contact_contacts where customer_id = $1', [customer.id]);
    assert.deepEqual(contact, { emails: null, birth: null, email: null, work_email: `deleted_${contact.id}@removed.invalid`, company: '', level: 2, search: '', dated: true, id: contact.id });
    assert.equal((await db.query(`select from public.tag_tags g join public.contact_contacts c on c.customer_id = g.customer_id::uuid
      where g.id = $1 and g.name = 'Person' and g.tm_delete is null and c.company = 'Bakery'`, [stays.id])).length, 1);
    const { items } = (await request(server, { path: '/v1/erasure/participants' })).json;
    for (const label of ['Tags', 'Telephone numbers', 'Contacts']) assert.ok(items.some((one) => one.label === label), label);
    await rescan(customer);
    assert.deepEqual((await ledger(server, customer.id)).json.participants.map(({ late_rows }) => late_rows).filter(Boolean), [], 'what is emptied or kept is not taken for new');
  });

  it('empties columns that the team added later, and keeps the label that the team gave', async () => {
    await db.query(`alter table public.contact_contacts add birthplace text, add pin text not null default 'none' check (pin ~ '^[a-z]+$')`);
    assert.equal((await cascade('add', 'contact', '--table', 'contact_contacts', '--column', 'customer_id', '--soft-delete', 'tm_delete', '--scrub', '*', '--label', 'People you know')).code, 0);
    assert.equal((await cascade('add', '--preset', 'voip')).code, 0);
    const customer = await addCustomer(db);
    await db.query(`insert into public.contact_contacts (id, customer_id, work_email, company, level, birthplace, pin) values (gen_random_uuid(), $1, 'c@people.example.com', 'Bakery', 2, 'Bavaria', 'secret')`, [customer.id]);
    const done = await erase(customer);
    assert.deepEqual(Object.keys(keptOf(done)), ['public.contact_contacts.level', 'public.contact_contacts.pin']);
    assert.equal(done.participants.find(({ name }) => name === 'contact').label, 'People you know');
    assert.deepEqual(await db.query('select birthplace, pin from public.contact_contacts where customer_id = $1', [customer.id]), [{ birthplace: null, pin: 'secret' }]);
    // Once the table lets it go, it is found and emptied.
    await db.query('alter table public.contact_contacts drop constraint contact_contacts_pin_check');
    await rescan(customer);
    assert.deepEqual(await db.query('select pin from public.contact_contacts where customer_id = $1', [customer.id]), [{ pin: '' }]);
    assert.deepEqual(Object.keys(keptOf((await ledger(server, customer.id)).json)), ['public.contact_contacts.level']);
  });
});

describe('a table that refuses', () => {
  before(async () => {
    await db.query(`create table public.notes (id bigint generated always as identity primary key, customer_id uuid not null, title text, body text, shown text, tm_delete timestamptz,
      check (title is not null or body is not distinct from 'open'))`);
    await db.query('create index on public.notes (customer_id)');
    const { code, stdout, stderr } = await cascade('add', 'notes', '--table', 'notes', '--column', 'customer_id', '--soft-delete', 'tm_delete', '--scrub', 'title,body,shown');
    assert.equal(code, 0, stderr);
    assert.equal(stdout, 'notes takes part, empties body, shown, title\n');
  });
  const rowsOf = (customer) => db.query('select title, body, shown, tm_delete is not null as marked from public.notes where customer_id = $1 order by id', [customer.id]);

  it('to empty a column keeps that column of that row, and says so; other rows and customers are emptied', async () => {
    const customer = await addCustomer(db), other = await addCustomer(db);
    await db.query(`insert into public.notes (customer_id, title, body, shown) values ($1, 'Anna', 'about Anna', 'x'), ($2, 'Bert', 'open', 'x'), ($1, 'Cora', 'open', 'x')`, [customer.id, other.id]);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = any ($1)`, [[customer.id, other.id]]);
    const refused = ['the table refuses to have it emptied (23514)', 1];
    assert.deepEqual(keptOf(await erased(server, customer)), { 'public.notes.body': refused, 'public.notes.title': refused });
    assert.deepEqual(keptOf(await erased(server, other)), { 'public.notes.body': refused });
    assert.deepEqual(await rowsOf(customer), [{ title: 'Anna', body: null }, { title: null, body: 'open' }].map((row) => ({ ...row, shown: null, marked: true })));
    await db.query('alter table public.notes drop constraint notes_check');
    await rescan(customer);
    assert.deepEqual((await rowsOf(customer)).map(({ title, body }) => [title, body]), [[null, null], [null, null]], 'asked to look again, it tries again');
    assert.deepEqual(keptOf((await ledger(server, customer.id)).json), {});
  });

  it('what it kept stays in the ledger until it is emptied, also when it cannot be looked at again', async () => {
    await db.query(`alter table public.notes add constraint stays check (title is not null or body is not distinct from 'open') not valid`);
    const customer = await addCustomer(db);
    await db.query(`insert into public.notes (customer_id, title, body) values ($1, 'Anna', 'about Anna')`, [customer.id]);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    const kept = keptOf(await erased(server, customer));
    assert.ok(kept['public.notes.title'] || kept['public.notes.body'], JSON.stringify(kept));
    assert.equal((await cascade('disable', 'notes')).code, 0);
    await rescan(customer);
    assert.deepEqual(keptOf((await ledger(server, customer.id)).json), kept, 'the certificate would not have it');
    assert.equal((await cascade('enable', 'notes')).code, 0);
    await db.query('alter table public.notes drop constraint stays');
    await rescan(customer);
    assert.deepEqual(keptOf((await erased(server, customer))), {});
  });

  it('by filling a column again does not go on for ever', async () => {
    await db.query(`create function public.fill() returns trigger language plpgsql as $$ begin new.shown := 'by a trigger'; return new; end $$`);
    await db.query('create trigger fill before update on public.notes for each row execute function public.fill()');
    const customer = await addCustomer(db);
    await db.query(`insert into public.notes (customer_id, title, shown) select $1, 'Anna', 'x' from generate_series(1, 1500)`, [customer.id]);
    const done = await erase(customer);
    assert.deepEqual(Object.keys(keptOf(done)), ['public.notes.shown']);
    assert.equal(done.participants.find(({ name, status }) => name === 'notes' && status === 'done').rows, 1500);
    assert.deepEqual(new Set((await rowsOf(customer)).map((row) => JSON.stringify(row))), new Set([JSON.stringify({ title: null, body: null, shown: 'by a trigger', marked: true })]));
    await db.query('drop trigger fill on public.notes');
  });

  it('by putting rows back has its receipt fail, and nobody waits for ever', async () => {
    await db.query(`create table public.stubborn (customer_id uuid, note text); create index on public.stubborn (customer_id)`);
    assert.equal((await cascade('add', 'stubborn', '--table', 'stubborn', '--column', 'customer_id')).code, 0);
    await db.query(`create function public.put_back() returns trigger language plpgsql as $$ begin insert into public.stubborn values (old.*); return null; end $$`);
    await db.query('create trigger put_back after delete on public.stubborn for each row execute function public.put_back()');
    const customer = await addCustomer(db), other = await addCustomer(db);
    await db.query(`insert into public.stubborn values ($1, 'Anna')`, [customer.id]);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = any ($1)`, [[customer.id, other.id]]);
    await erased(server, other);
    const part = await until('failed', async () => (await ledger(server, customer.id)).json.participants.find(({ name, status }) => name === 'stubborn' && status === 'failed'));
    assert.deepEqual([part.error, part.rows], ['RCL01 rows stay: a trigger or rule keeps them', 0]);
    await db.query('drop trigger put_back on public.stubborn');
    assert.equal((await cascade('redrive', customer.id)).code, 0);
    assert.equal((await erased(server, customer)).participants.find(({ name }) => name === 'stubborn').rows, 1);
    assert.equal((await cascade('remove', 'stubborn')).code, 0);
  });
});
