// Billing accounts that a team's program writes for customers that were deleted before, into a table of its own shape.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { env } from './lib/customers.js';
import { erased, ledger, remove } from './lib/erasure.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await db.query(`
    create table public.customer_customers (id uuid primary key, name text not null, email text not null, status text);
    create table public.billing_accounts (id uuid primary key, customer_id uuid, name text not null unique check (name <> ''), payer text)`);
  server = await serve(stage, { database: db, env });
});
after(() => stage.end());

async function gone() {
  const id = randomUUID();
  await db.query('insert into public.customer_customers (id, name, email) values ($1, $2, $3)', [id, `N ${id}`, `${id}@customers.example.com`]);
  const answer = await remove(server, id);
  assert.equal(answer.status, 200, answer.body);
  await erased(server, { id });
  return { id };
}

const open = async (customer, name) => {
  const id = randomUUID();
  await db.query('insert into public.billing_accounts (id, customer_id, name, payer) values ($1, $2, $3, $3)', [id, customer.id, name]);
  return id;
};
const account = async (id) => (await db.query('select name, payer, status, tm_delete is not null as ended from public.billing_accounts where id = $1', [id]))[0];
const cleared = (id) => until('cleared', async () => (await account(id)).payer === null);

describe('a billing account that comes after the deletion', () => {
  it('is taken whatever the table asks of its name, is deleted at once, and cleared soon after', async () => {
    const customer = await gone(), other = await gone();
    const late = await open(customer, 'Late Person'), later = await open(other, 'Later Person');
    assert.deepEqual([(await account(late)).status, (await account(late)).ended], ['deleted', true]);
    for (const id of [late, later]) {
      await cleared(id);
      assert.deepEqual(await account(id), { name: `deleted_${id}`, payer: null, status: 'deleted', ended: true });
    }
    const part = (await ledger(server, customer.id)).json.participants.find(({ name }) => name === 'public.billing_accounts');
    assert.deepEqual([part.status, part.late_rows], ['done', 1]);
    assert.deepEqual(await db.query('select from reclaim.erasure_late'), []);
  });

  it('comes in a transaction that stays open: nobody waits for it', async () => {
    const customer = await gone(), other = await gone();
    const program = await db.session(stage, 'program');
    await program.query('begin');
    await program.query(`insert into public.billing_accounts (id, customer_id, name, payer) values (gen_random_uuid(), $1, 'Open Person', 'x')`, [customer.id]);
    await cleared(await open(other, 'Other Person'));
    const { code, stderr } = await run(stage, ['cascade', 'rescan'], { database: db });
    assert.equal(code, 0, stderr);
    await program.query('commit');
    await until('cleared', async () => (await db.query(`select from public.billing_accounts where name = 'Open Person'`)).length === 0);
  });

  it('is deleted and cleared too when the customer’s row is gone', async () => {
    const customer = await gone();
    await db.query('delete from public.customer_customers where id = $1', [customer.id]);
    const late = await open(customer, 'Last Person');
    assert.equal((await account(late)).status, 'deleted');
    await cleared(late);
    const nobody = await open({ id: randomUUID() }, 'Of nobody that Reclaim knows');
    assert.deepEqual(await account(nobody), { name: 'Of nobody that Reclaim knows', payer: 'Of nobody that Reclaim knows', status: 'active', ended: false });
  });
});
