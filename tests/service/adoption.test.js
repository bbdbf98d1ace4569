// Tables that a team had before Reclaim: taken over where they are, old rows made to say what they meant.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { asAdmin, asUser, env, eventsOf, freeze, list, recover, show } from './lib/customers.js';
import { request } from './lib/http.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const ids = { live: randomUUID(), empty: randomUUID(), gone: randomUUID() };
const account = { live: randomUUID(), gone: randomUUID() };

/** As the seed's own programs had them: times without a zone, a sentinel for "not deleted", no status. */
const old = (schema) => `
  create table ${schema}.customer_customers (
    id uuid primary key, name varchar(255), detail text, email varchar(255), billing_account_id uuid, status varchar(16),
    tm_create timestamp(6), tm_update timestamp(6), tm_delete timestamp(6) not null default '9999-01-01 00:00:00');
  insert into ${schema}.customer_customers values
    ('${ids.live}', 'Live', 'x', 'live@example.com', '${account.live}', 'active', '2024-01-02 03:04:05', null, '9999-01-01 00:00:00'),
    ('${ids.empty}', 'Empty', 'x', 'empty@example.com', null, '', '2024-01-02 03:04:05', null, '9999-12-31 23:59:59'),
    ('${ids.gone}', 'Gone', 'x', 'gone@example.com', null, null, '2024-01-02 03:04:05', null, '2025-05-06 07:08:09');
  create table ${schema}.billing_accounts (id uuid primary key, customer_id uuid, balance float, tm_delete timestamp);
  insert into ${schema}.billing_accounts values
    ('${account.live}', '${ids.live}', 5, null), ('${account.gone}', '${ids.gone}', 0, '2025-05-06 07:08:09');`;

for (const schema of ['public', 'reclaim'])
  describe(`a customer_customers in ${schema}`, () => {
    let db, server;
    before(async () => {
      db = await cluster.database(stage);
      if (schema === 'reclaim') await db.query('create schema reclaim');
      await db.query(old(schema));
      server = await serve(stage, { database: db, env });
    });

    it('stays where it is, with its rows meaning what they meant', async () => {
      const rows = await db.query(`select id, status, tm_delete from ${schema}.customer_customers order by name`);
      assert.deepEqual(rows, [
        { id: ids.empty, status: 'active', tm_delete: null },
        { id: ids.gone, status: 'deleted', tm_delete: new Date('2025-05-06T07:08:09Z') },
        { id: ids.live, status: 'active', tm_delete: null },
      ]);
      const accounts = await db.query(`select id, status from ${schema}.billing_accounts order by status`);
      assert.deepEqual(accounts, [
        { id: account.live, status: 'active' },
        { id: account.gone, status: 'deleted' },
      ]);
      assert.equal((await list(server)).json.items.length, 3);
      assert.equal((await show(server, ids.live)).json.tm_create, '2024-01-02T03:04:05.000000Z');
    });

    it('freezes and recovers, with its billing', async () => {
      const owner = randomUUID();
      await db.query(`update ${schema}.customer_customers set owner_user_id = $2 where id = $1`, [ids.live, owner]);
      const frozen = await freeze(server, ids.live, asAdmin());
      assert.equal(frozen.json.status, 'frozen', frozen.body);
      const status = async () => (await db.query(`select status from ${schema}.billing_accounts where id = $1`, [account.live]))[0].status;
      assert.equal(await status(), 'frozen');
      assert.equal((await show(server, ids.live, asUser(owner))).json.status, 'frozen');
      assert.equal((await recover(server, ids.live)).json.status, 'active');
      assert.equal(await status(), 'active');
      assert.deepEqual((await eventsOf(db, { id: ids.live })).map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
    });

    it('goes on being written by programs that know nothing of Reclaim', async () => {
      const id = randomUUID();
      await db.query(`insert into ${schema}.customer_customers (id, name) values ($1, 'New')`, [id]);
      assert.equal((await show(server, id)).json.status, 'active');
      await db.query(`update ${schema}.customer_customers set tm_delete = '2026-01-01' where id = $1`, [id]);
      assert.equal((await show(server, id)).json.status, 'deleted');
    });

    it('is searched, gets rows and members through the API, and an owner of several', async () => {
      const user = await addUser(db, { confirmed: '2025-10-02T00:00:00Z' });
      const create = (body) => request(server, {
        method: 'POST', path: '/v1/customers', headers: { 'Content-Type': 'application/json', ...asAdmin() }, body: JSON.stringify(body) });
      for (const name of ['Second', 'Third']) assert.equal((await create({ name, owner_user_id: user.id })).status, 201);
      assert.equal((await create({ name: 'n'.repeat(256) })).json.error, 'CUSTOMER_REFUSED', 'longer than the column');
      assert.deepEqual((await list(server, '?q=sec')).json.items.map(({ name }) => name), ['Second']);
      const add = () => db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [ids.live, user.id]);
      await add();
      await db.query('delete from reclaim.customer_members');
      await assert.rejects(db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [ids.gone, user.id]), /is deleted/);
      assert.equal((await db.query(`select from reclaim.gate_ended where kind = 'user' and id = $1`, [user.id])).length, 2);
    });

    it('is given back as it was when Reclaim goes; one in Reclaim’s schema not before each owner has one customer as before', async () => {
      await server.stop();
      if (schema === 'reclaim') {
        const refused = await run(stage, ['migrate', '--down', '99'], { database: db });
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /owns several customers/);
      }
      await db.query(`delete from ${schema}.customer_customers where name in ('Second', 'Third')`);
      const down = await run(stage, ['migrate', '--down', '99'], { database: db });
      // The schema itself goes only when nothing of others lies in it.
      assert.equal(down.code, schema === 'public' ? 0 : 1, down.stderr);
      const columns = await db.query(
        `select column_name from information_schema.columns where table_schema = $1 and table_name = 'customer_customers' order by 1`,
        [schema],
      );
      assert.deepEqual(
        columns.map(({ column_name }) => column_name),
        ['billing_account_id', 'detail', 'email', 'id', 'name', 'status', 'tm_create', 'tm_delete', 'tm_update'],
      );
      assert.equal((await db.query(`select from ${schema}.customer_customers`)).length, 4);
    });
  });

it('a status that Reclaim does not know stops the migration with words, and changes nothing', async (t) => {
  const db = await cluster.database(t);
  await db.query(`create table public.customer_customers (id uuid primary key, status text);
    insert into public.customer_customers values (gen_random_uuid(), 'suspended')`);
  const refused = await run(t, ['migrate'], { database: db });
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /suspended/);
  const columns = await db.query(`select column_name from information_schema.columns where table_name = 'customer_customers'`);
  assert.equal(columns.length, 2);
});

it('a deleted customer whose tm_delete means "not deleted" is adopted as deleted when it was last changed', async (t) => {
  const db = await cluster.database(t);
  await db.query(`create table public.customer_customers (id uuid primary key, status text, tm_update timestamp, tm_delete timestamp default '9999-01-01');
    insert into public.customer_customers values (gen_random_uuid(), 'deleted', '2025-05-06 07:08:09')`);
  const migrated = await run(t, ['migrate'], { database: db });
  assert.equal(migrated.code, 0, migrated.stderr);
  const rows = await db.query('select status, tm_delete from public.customer_customers');
  assert.deepEqual(rows, [{ status: 'deleted', tm_delete: new Date('2025-05-06T07:08:09Z') }]);
});
