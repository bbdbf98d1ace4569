import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { asAdmin, env, freeze } from '../tests/service/lib/customers.js';
import { until } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { pgbench } from './lib/pgbench.js';
import { quantile } from './lib/stats.js';
import { migrate, startCluster, startServer } from './lib/world.js';

export const about = 'freezes by the API and by plain SQL, against pgbench with the same writes by hand on tables without triggers; from commit to answer, and until calls are over';

const copies = fileURLToPath(new URL('peers/freeze.sql', import.meta.url));
const connections = 16; // to the database, for all
const rounds = 7;
const drawnAt = (turn) => 1_000_000 * (turn + 1);
const idOf = (n) => `c0000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/**
 * Active customers with an account and a subscription each, by number. take() returns the first of the next `count`.
 * Those that callers draw begin at a whole million for each turn, so that the drawn number replaces the last digits.
 */
class Customers {
  #next = 0;
  #drawn = 0;

  constructor(database) {
    this.database = database;
  }

  async add(first, count) {
    const numbered = (kind) => `('${kind}0000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid`;
    const all = `from generate_series(${first}, ${first + count - 1}) n`;
    await this.database.query(`insert into reclaim.customer_customers (id, name, phone_number, address, billing_account_id)
      select ${numbered('c')}, 'Someone', '+15550100', 'Street 1', ${numbered('b')} ${all}`);
    await this.database.query(`insert into reclaim.billing_accounts (id, customer_id, name, balance_micros)
      select ${numbered('b')}, ${numbered('c')}, 'Account', 1000000 ${all}`);
    await this.database.query(`insert into reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at)
      select ${numbered('b')}, 100, 2592000, now() + interval '20 days' ${all}`);
  }

  take(count) {
    const first = this.#next;
    this.#next += count;
    return first;
  }

  takeDrawn() {
    return drawnAt(this.#drawn++);
  }
}

const numberOf = async (database, sql, values) => Number(Object.values((await database.query(sql, values))[0])[0]);
const idle = (database) => until('all work done', async () => (await numberOf(database, 'select count(*) from reclaim.work_items')) === 0);
const frozenAmong = (database, schema, first, count) =>
  numberOf(database, `select count(*) from ${schema}.event_outbox where customer_id between $1 and $2`, [idOf(first), idOf(first + count - 1)]);

/** Freezes a second by the API. Callers draw customers at random, so that a few were drawn before: these do not count. */
async function byApi({ database, server, customers, sizes }) {
  const first = customers.takeDrawn();
  const digits = String(sizes.drawn - 1).length;
  const path = `/v1/customers/${idOf(first).slice(0, -digits)}${'#'.repeat(digits)}/freeze`;
  const ended = await startLoad(server, { path, body: '{}', headers: { 'Content-Type': 'application/json', ...asAdmin() }, callers: sizes.callers, numbers: sizes.drawn, runMs: sizes.runMs }).ended;
  const { 200: answered = 0, ...others } = ended.statuses;
  if (ended.broken + ended.refused > 0 || Object.keys(others).length > 0 || answered === 0) throw new Error(`not frozen: ${JSON.stringify(ended)}`);
  const frozen = await frozenAmong(database, 'reclaim', first, sizes.drawn);
  await idle(database);
  return (frozen * ended.per_second) / Math.max(frozen, ended.answers);
}

/** Freezes a second by `script`, as many by each client. */
async function byPgbench({ database, server, customers, sizes }, script, schema, channel = 'reclaim_bench') {
  const count = connections * sizes.each;
  const first = customers.take(count);
  const variables = { first, share: sizes.each, k: -1, channel };
  const rate = await pgbench(database, { script, clients: connections, times: sizes.each, variables });
  const frozen = await frozenAmong(database, schema, first, count);
  if (frozen !== count) throw new Error(`${script}: ${frozen} of ${count} are frozen`);
  if (server) await idle(database);
  return rate;
}

/** Freezes one after another: from commit to reply, p99 in ms. */
async function answerTime({ server, customers, sizes }) {
  const first = customers.take(sizes.single);
  const took = [];
  for (let n = 0; n < sizes.single; n++) {
    const { status, json, body } = await freeze(server, idOf(first + n));
    if (status !== 200) throw new Error(`freeze: ${status} ${body}`);
    took.push(Date.now() - Date.parse(json.tm_deletion_scheduled));
  }
  return quantile(took, 0.99);
}

/** Customers with a call each that no switch knows, frozen in plain SQL: from the freeze to the last end of a call, in ms. */
async function callsOver({ database, customers }, count, together) {
  const first = customers.take(count);
  const ids = Array.from({ length: count }, (_, n) => idOf(first + n));
  await database.query(`insert into reclaim.call_calls (customer_id, direction) select unnest($1::uuid[]), 'outgoing'`, [ids]);
  for (const some of together ? [ids] : ids.map((id) => [id]))
    await database.query(`update reclaim.customer_customers set status = 'frozen' where id = any ($1)`, [some]);
  await idle(database);
  const rows = await database.query(
    `select extract(epoch from l.tm_hangup - c.tm_deletion_scheduled) * 1000 as ms from reclaim.call_calls l
     join reclaim.customer_customers c on c.id = l.customer_id where c.id = any ($1)`,
    [ids],
  );
  return Math.max(...rows.map(({ ms }) => (ms === null ? Infinity : Number(ms))));
}

export async function bench(b) {
  // A freeze is answered once every instance must have it: most callers wait for that.
  const sizes = b.smoke ? { drawn: 1000, callers: 16, runMs: 1000, each: 10, single: 5, calls: 5, many: 50 } : { drawn: 30_000, callers: 256, runMs: 3000, each: 250, single: 100, calls: 50, many: 1000 };
  const turns = b.smoke ? 1 : rounds;
  const cluster = await startCluster(b.stage, { max_wal_size: '4GB' });
  const database = await cluster.database(b.stage);
  await migrate(b.stage, database);
  const customers = new Customers(database);
  await customers.add(0, turns * (4 * connections * sizes.each + sizes.single + sizes.calls + sizes.many));
  for (let turn = 0; turn < turns; turn++) await customers.add(drawnAt(turn), sizes.drawn);
  await database.query(fs.readFileSync(copies, 'utf8'));
  await database.query('vacuum analyze');
  await database.query('checkpoint');
  const alone = { database, customers, sizes };
  const sql = (world) => () => byPgbench(world, 'freeze.pgbench', 'reclaim');
  const hand = (world) => () => byPgbench(world, 'freeze_by_hand.pgbench', 'by_hand');

  // What the triggers cost: no instance runs, so that the work that follows a freeze stays in its table.
  const writes = await b.compare(turns, { ours: sql(alone), peer: hand(alone) }, 'freeze, no instance');
  await database.query('truncate reclaim.work_items');

  const server = await startServer(b.stage, database, { ...env, RECLAIM_DATABASE_CONNECTIONS: String(connections) });
  const world = { ...alone, server };
  const found = await b.turns(turns, { api: () => byApi(world), sql: sql(world), hand: hand(world) });
  b.note('with an instance, ours includes the work after each freeze: calls ended, the freeze recorded by gate and switch; the rows by hand have no such work');
  b.measure('freezes by plain SQL, of pgbench, no instance', { rounds: writes.ratios, unit: 'times', atLeast: 0.8 });
  b.measure('freezes by the API, of pgbench', { rounds: found.api.map((value, i) => value / found.hand[i]), unit: 'times', atLeast: 0.8 });
  b.measure('freezes by plain SQL beside an instance, of pgbench', { rounds: found.sql.map((value, i) => value / found.hand[i]), unit: 'times' });
  b.measure('freezes a second by the API', { rounds: found.api, beside: [{ name: 'plain SQL', values: found.sql }, { name: 'pgbench', values: found.hand }] });
  b.measure("from a freeze's commit to its answer, p99", { rounds: await b.rounds(turns, () => answerTime(world)), unit: 'ms', atMost: 150 });
  b.measure('from a plain freeze until its calls are over, the slowest', { rounds: await b.rounds(turns, () => callsOver(world, sizes.calls, false)), unit: 'ms', atMost: 1000 });
  b.measure(`the same, ${sizes.many} customers in one statement`, { rounds: await b.rounds(turns, () => callsOver(world, sizes.many, true)), unit: 'ms' });
}
