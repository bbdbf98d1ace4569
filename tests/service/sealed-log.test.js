// The sealed log against somebody with full rights in the database: whatever is changed, removed or inserted afterwards is found.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, scene } from './lib/customers.js';
import { addServices, erased, fillServices, remove } from './lib/erasure.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
const customers = [];
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
  await addServices(stage, db, ['contact', 'flow']);
  for (let n = 0; n < 12; n++) {
    customers.push(await addCustomer(db));
    await fillServices(db, customers[n], 2, ['contact', 'flow']);
    await remove(server, customers[n].id);
  }
  for (const customer of customers) await erased(server, customer);
  await until('everything sealed', async () => / 0 not sealed yet/.test((await verify()).stdout));
});
after(() => stage.end());

const verify = (database = db) => run(stage, ['audit', 'verify'], { database });

describe('the sealed log', () => {
  it('fits what is there, and says so', async () => {
    const done = await verify();
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /Everything is as it was sealed/);
  });

  it('finds a row that was inserted and dated back, once it is sealed', async () => {
    await db.query(`insert into reclaim.customer_log (customer_id, action, actor, outcome, created_at)
      values ($1, 'recover', 'admin', 'done', clock_timestamp() - interval '10 minutes')`, [customers[0].id]);
    const [{ id }] = await db.query('select max(id) as id from reclaim.customer_log');
    await until('sealed', async () => (await db.query(`select from reclaim.sealed_leaves where source = 'customer' and fact_id = $1`, [id])).length);
    const done = await verify();
    assert.equal(done.code, 1);
    assert.match(done.stdout, new RegExp(`inserted: row ${id} of customer_log .* dated back`));
  });
});
