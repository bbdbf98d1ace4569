import fs from 'node:fs';

import { freeze, jwtSecret, tokenOf } from '../tests/service/lib/customers.js';
import { addKeys } from '../tests/service/lib/gate.js';
import { until } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { Metrics } from './lib/metrics.js';
import { migrate, secretKey, startCluster, startServer } from './lib/world.js';

export const about = 'decisions at the gate against a constant answer of the same server, and with a million frozen customers';

const keyed = 1000; // active customers that send requests
const callers = 64;
const digits = 6;
const anyKey = `rk_${'#'.repeat(digits)}${'k'.repeat(42 - digits)}A`;
const keyOf = (n) => anyKey.replace(/#+/, String(n).padStart(digits, '0'));

/** Customers with keys, one of them with a token too, and so many frozen customers. */
async function world(b, cluster, frozen) {
  const database = await cluster.database(b.stage);
  await migrate(b.stage, database);
  await database.query(
    "insert into reclaim.customer_customers (status) select 'frozen' from generate_series(1, $1::int)",
    [frozen],
  );
  const customers = await database.query(
    'insert into reclaim.customer_customers (owner_user_id) select gen_random_uuid() from generate_series(1, $1::int) returning id, owner_user_id as owner',
    [keyed],
  );
  await addKeys(database, customers, { secret: secretKey, keys: customers.map((_, n) => keyOf(n)) });
  const server = await startServer(b.stage, database, { RECLAIM_JWT_SECRET: jwtSecret, RECLAIM_TEST_CONSTANT: '1' });
  await until('all frozen customers in memory', async () => (await Metrics.of(server)).value('reclaim_frozen_customers') === frozen);
  // What follows from a million new freezes is written first, or the decisions are measured beside that.
  await until(
    'every freeze noted',
    async () => (await database.query("select 1 from reclaim.customer_customers where status = 'frozen' and frozen_api_at is null limit 1")).length === 0,
    300_000,
  );
  await until('no work left', async () => (await database.query('select 1 from reclaim.work_items limit 1')).length === 0, 300_000);
  await database.query('vacuum analyze');
  return { server, database, token: { Authorization: `Bearer ${tokenOf({ sub: customers[0].owner })}` } };
}

/** Processor time of the server's threads, in nanoseconds. */
function spentBy(server) {
  const tasks = `/proc/${server.pid}/task`;
  return fs.readdirSync(tasks).reduce((sum, task) => sum + Number(fs.readFileSync(`${tasks}/${task}/schedstat`, 'utf8').split(' ')[0]), 0);
}

/** Replies per second; a few may have another status, when a lease expired or at the end. */
async function load(server, path, headers, times, spent = []) {
  const before = spentBy(server);
  const ended = await startLoad(server, { path, headers, callers, numbers: keyed, ...times }).ended;
  const right = ended.statuses[200] ?? 0;
  if (right < ended.answers * 0.99) throw new Error(`not let pass: ${JSON.stringify(ended)}`);
  const answers = (ended.per_second * (times.warmMs + times.runMs)) / 1000;
  spent.push((spentBy(server) - before) / 1000 / answers); // µs
  return ended.per_second;
}

const decisions = async (server) => {
  const metrics = await Metrics.of(server);
  const by = (source) => metrics.value('reclaim_gate_decisions_total', { source });
  return { memory: by('memory'), database: by('database') };
};

/** Freezes one after another during load at the gate: from commit to reply, the 99th percentile in ms. */
async function freezeTimes({ server, database }, count) {
  const rows = await database.query('insert into reclaim.customer_customers (name) select $1 from generate_series(1, $2::int) returning id', ['Someone', count]);
  const asking = startLoad(server, { path: '/gate', headers: { 'X-API-Key': anyKey }, callers: 2, numbers: keyed, runMs: 600_000 });
  const took = [];
  for (const { id } of rows) {
    const { status, json } = await freeze(server, id);
    if (status !== 200) throw new Error(`freeze: ${status}`);
    took.push(Date.now() - Date.parse(json.tm_deletion_scheduled));
  }
  asking.stop();
  await asking.ended.catch(() => {});
  took.sort((x, y) => x - y);
  return took[Math.ceil(took.length * 0.99) - 1];
}

export async function bench(b) {
  const many = b.smoke ? 20_000 : 1_000_000;
  const times = b.smoke ? { warmMs: 100, runMs: 300 } : { warmMs: 300, runMs: 1500 };
  const cluster = await startCluster(b.stage);
  const few = await world(b, cluster, 10);
  const keys = { 'X-API-Key': anyKey };
  const constant = (headers, spent) => () => load(few.server, '/constant-pass', headers, times, spent);
  const gate = (server, headers, spent) => () => load(server, '/gate', headers, times, spent);

  for (const [name, headers] of Object.entries({ 'API keys': keys, 'tokens seen before': few.token })) {
    const before = await decisions(few.server);
    const spent = { ours: [], peer: [] };
    const contest = { ours: gate(few.server, headers, spent.ours), peer: constant(headers, spent.peer) };
    const found = await b.compare(15, contest, `gate, ${name}`);
    const after = await decisions(few.server);
    const asked = (after.database - before.database) / (after.database - before.database + after.memory - before.memory);
    b.measure(`decisions with ${name}, of constant answers`, { rounds: found.ratios, unit: 'times', atLeast: 0.9 });
    b.measure(`decisions per second with ${name}`, { rounds: found.ours, beside: [{ name: 'constant answers', values: found.peer }] });
    b.measure(`processor time of a decision with ${name}`, { rounds: spent.ours, unit: 'µs', beside: [{ name: 'constant answers', values: spent.peer }] });
    b.measure(`of these, decided by the database, ${name}`, { rounds: [100 * asked], unit: '%', plot: false });
  }

  const times99 = await b.rounds(5, () => freezeTimes(few, b.smoke ? 5 : 100));
  b.measure("from a freeze's commit to its answer, p99", { rounds: times99, unit: 'ms', atMost: 150 });

  const crowd = await world(b, cluster, many);
  const found = await b.compare(15, { ours: gate(crowd.server, keys), peer: gate(few.server, keys) }, `gate, ${many} frozen beside 10`);
  b.measure(`decisions with ${many.toLocaleString('en')} frozen, of those with 10`, { rounds: found.ratios, unit: 'times', atLeast: 0.95 });
  const metrics = await Metrics.of(crowd.server);
  const each = metrics.value('reclaim_frozen_bytes') / metrics.value('reclaim_frozen_customers');
  b.measure('memory of a frozen customer', { rounds: [each], unit: 'bytes', atMost: 64, plot: false });
}
