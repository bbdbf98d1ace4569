// Looking again at customers whose erasure is complete: logins and ownership rows that had to stay, and customers that cannot be
// looked at.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, scene } from './lib/customers.js';
import { erased, ledger, remove } from './lib/erasure.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(() => stage.end());

async function erase(customer) {
  assert.equal((await remove(server, customer.id)).status, 200);
  return erased(server, customer);
}

const partsOf = async (customer) => Object.fromEntries((await ledger(server, customer.id)).json.participants.map((one) => [one.name, one]));

async function rescan(...customers) {
  const { code, stderr } = await run(stage, ['cascade', 'rescan'], { database: db });
  assert.equal(code, 0, stderr);
  await until('looked at', async () => (await db.query('select from reclaim.erasures where customer_id = any ($1) and completed_at is not null and rescan_at > reclaim.now()',
    [customers.map(({ id }) => id)])).length === customers.length);
}

describe('a login that had to stay', () => {
  it('and its ownership rows are cleared again when something is written into them, which the ledger tells once', async () => {
    const customer = await addCustomer(db), other = await addCustomer(db);
    await db.query(`insert into public.companies (owner_admin_uuid, name) values ($1, 'First')`, [customer.user.id]);
    await db.query(`create table public.signatures (user_id uuid not null references auth.users on delete restrict)`);
    await db.query('insert into public.signatures values ($1), ($2)', [customer.user.id, other.user.id]);
    await erase(customer);
    assert.match((await db.query('select email from auth.users where id = $1', [customer.user.id]))[0].email, /^deleted_/);
    await db.query(`update public.companies set name = 'Bakery' where owner_admin_uuid = $1`, [customer.user.id]);
    await db.query(`update auth.users set email = 'back@people.example.com' where id = $1`, [customer.user.id]);
    await rescan(customer);
    assert.deepEqual(await db.query('select name from public.companies where owner_admin_uuid = $1', [customer.user.id]), [{ name: '' }]);
    assert.equal((await db.query('select email from auth.users where id = $1', [customer.user.id]))[0].email, `deleted_${customer.user.id}@removed.invalid`);
    const late = ({ status, rows, late_rows }) => [status, rows, late_rows];
    const parts = await partsOf(customer);
    assert.deepEqual([late(parts['auth.users']), late(parts['public.companies'])], [['done', 1, 1], ['done', 1, 1]]);
    await rescan(customer);
    assert.deepEqual(await partsOf(customer), parts, 'nothing more is found');
    assert.equal((await db.query('select email from auth.users where id = $1', [other.user.id]))[0].email, other.user.email);
  });

  it('is left alone once it has a customer again', async () => {
    const customer = await addCustomer(db);
    await db.query('insert into public.signatures values ($1)', [customer.user.id]);
    await erase(customer);
    await db.query(`update auth.users set email = 'again@people.example.com', deleted_at = null where id = $1`, [customer.user.id]);
    await db.query(`insert into reclaim.customer_customers (name, owner_user_id) values ('Again', $1)`, [customer.user.id]);
    await rescan(customer);
    assert.equal((await db.query('select email from auth.users where id = $1', [customer.user.id]))[0].email, 'again@people.example.com');
  });
});

describe('a customer that cannot be looked at again', () => {
  it('does not keep the others from it, is logged, and has its turn again', async () => {
    const stuck = await addCustomer(db), other = await addCustomer(db);
    for (const one of [stuck, other]) await erase(one);
    await db.query(`create function public.refuse() returns trigger language plpgsql as $$ begin raise exception 'about %', new.name; end $$`);
    await db.query(`create trigger refuse before update on reclaim.billing_accounts for each row when (new.customer_id = '${stuck.id}') execute function public.refuse()`);
    // Accounts as a restored table may have them: no trigger saw them come.
    await db.query(`begin; set local session_replication_role = replica;
      insert into reclaim.billing_accounts (customer_id, name) values ('${stuck.id}', 'Late'), ('${other.id}', 'Late'); commit`);
    await rescan(stuck, other);
    await server.line('the trouble', (line) => line.level === 'warn' && /cannot be looked at again/.test(line.event) && line.what.includes(`${stuck.id} P0001`) && !line.what.includes(other.id));
    const accounts = (customer) => db.query('select name, status from reclaim.billing_accounts where customer_id = $1', [customer.id]);
    assert.deepEqual(await accounts(other), [{ name: '', status: 'deleted' }]);
    assert.deepEqual(await accounts(stuck), [{ name: 'Late', status: 'active' }]);
    const [{ minutes }] = await db.query('select round(extract(epoch from rescan_at - reclaim.now()) / 60)::int as minutes from reclaim.erasures where customer_id = $1', [stuck.id]);
    assert.ok(minutes >= 59 && minutes <= 60, `in ${minutes} minutes`);
    await db.query('drop trigger refuse on reclaim.billing_accounts');
    await rescan(stuck);
    assert.deepEqual(await accounts(stuck), [{ name: '', status: 'deleted' }]);
  });
});
