// World 7: other programs change customers, keys and accounts by plain SQL meanwhile, and hold transactions open.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { pause, Stage } from '../service/lib/stage.js';
import { layersAgree } from './lib/layers.js';
import { coreStory } from './lib/story.js';
import { addSubject, databaseWorld } from './lib/world.js';

const bystanders = 12;

/** Repeats `act` until it is stopped; a failure is kept. */
function program(act) {
  let stopped = false, runs = 0;
  const running = (async () => {
    for (; !stopped; runs++) {
      await act(runs);
      await pause(15);
    }
  })();
  running.catch(() => {});
  return async () => {
    stopped = true;
    await running;
    return runs;
  };
}

describe('beside programs that write the same tables', () => {
  const stage = new Stage();
  let world, others, stops, holder;
  const some = (n) => others[n % others.length];

  before(async () => {
    world = await databaseWorld(stage);
    const { db } = world;
    others = [];
    for (let n = 0; n < bystanders; n++) others.push(await addSubject(world));

    // A report that began before everything, and a writer that holds rows of others for a long time.
    const report = await db.session(stage, 'report');
    await report.query('begin isolation level repeatable read');
    await report.query('select count(*) from reclaim.customer_customers');
    const writer = await db.session(stage, 'writer');
    await writer.query('begin');
    const [{ id: busy }] = await db.query(`insert into reclaim.customer_customers (name) values ('Busy') returning id`);
    await writer.query(`update reclaim.customer_customers set detail = 'being edited' where id = $1`, [busy]);
    holder = await db.session(stage, 'holder');

    const [crm, shop, keys, desk] = await Promise.all(['crm', 'shop', 'keys', 'desk'].map((name) => db.session(stage, name)));
    stops = [
      program((n) => crm.query('update reclaim.customer_customers set detail = $2, address = $3 where id = $1', [some(n).id, `Detail ${n}`, `${n} Street`])),
      program((n) => shop.query('update reclaim.billing_accounts set balance_micros = balance_micros + 5 where id = $1', [some(n).account.id])),
      program((n) =>
        n % 2
          ? keys.query(`insert into reclaim.access_keys (customer_id, key_hash) values ($1, $2)`, [some(n).id, `other ${n}`])
          : keys.query(`update reclaim.access_keys set revoked_at = now() where key_hash = $1`, [`other ${n - 3}`]),
      ),
      program((n) => desk.query(`update reclaim.customer_customers set status = case status when 'active' then 'frozen' else 'active' end where id = any ($1)`,
        [[some(n).id, some(n + 5).id]])),
    ];
  });
  after(() => stage.end());

  /** Another program holds the customer's row in a transaction, and ends that a little later. */
  async function whileHeld(step, act) {
    if (step === 'end') return endPrograms();
    const customer = (await world.db.query(`select id from reclaim.customer_customers where status <> 'deleted' order by tm_create desc limit 1`))[0];
    await holder.query('begin');
    await holder.query(`update reclaim.customer_customers set webhook_method = 'PUT' where id = $1`, [customer.id]);
    const acting = act();
    await pause(200);
    await holder.query('commit');
    return acting;
  }

  async function endPrograms() {
    for (const stop of stops) assert.ok((await stop()) > 5);
  }

  before(() => {
    world.during = whileHeld;
  });
  coreStory(() => world, { first: 'sql', second: 'admin' });

  it('and the layers agree about every customer that those programs changed meanwhile', async () => {
    await layersAgree(world.db);
    const [{ changed }] = await world.db.query(`select count(distinct customer_id)::int as changed from reclaim.event_outbox where customer_id = any ($1)`, [
      others.map(({ id }) => id),
    ]);
    assert.equal(changed, bystanders);
  });
});
