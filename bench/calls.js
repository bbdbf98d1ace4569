import { asAdmin, env } from '../tests/service/lib/customers.js';
import { startLoad } from './lib/load.js';
import { pgbench } from './lib/pgbench.js';
import { startCluster, startServer } from './lib/world.js';

export const about = 'call set-ups admitted over HTTP, against pgbench with the same share lock and insert in one round trip, over as many connections';

const connections = 16; // to the database, for both sides
const callers = 64;
const customers = 1000;

const body = JSON.stringify({
  customer_id: '00000000-0000-4000-8000-000000000###',
  direction: 'outgoing',
  source: '+15550100',
  destination: '+15550199',
  sip_call_id: '############',
  from_tag: 'from',
  cseq: 1,
});

export async function bench(b) {
  const cluster = await startCluster(b.stage);
  const database = await cluster.database(b.stage);
  const server = await startServer(b.stage, database, { ...env, RECLAIM_DATABASE_CONNECTIONS: String(connections) });
  await database.query(
    `insert into reclaim.customer_customers (id) select ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid from generate_series(0, $1::int - 1) n`,
    [customers],
  );
  const times = b.smoke ? { warmMs: 100, runMs: 400 } : { warmMs: 1000, runMs: 5000 };
  /** Every turn starts with the same tables. */
  const anew = async () => {
    await database.query('truncate reclaim.call_calls');
    await database.query('vacuum (analyze) reclaim.customer_customers');
    await database.query('checkpoint');
  };
  const ours = async () => {
    await anew();
    const ended = await startLoad(server, {
      path: '/v1/calls',
      body,
      headers: { 'Content-Type': 'application/json', ...asAdmin() },
      numbers: 999_999_999_999,
      callers,
      ...times,
    }).ended;
    const { 201: admitted = 0, ...others } = ended.statuses;
    if (ended.broken + ended.refused > 0 || Object.keys(others).length > 0 || admitted === 0) throw new Error(`not admitted: ${JSON.stringify(ended)}`);
    return ended.per_second;
  };
  const peer = async () => {
    await anew();
    return pgbench(database, { script: 'call_begin.pgbench', clients: connections, seconds: Math.ceil((times.warmMs + times.runMs) / 1000), variables: { customers } });
  };
  const found = await b.compare(7, { ours, peer });
  b.measure('call set-ups, of pgbench', { rounds: found.ratios, unit: 'times', atLeast: 0.9 });
  b.measure('call set-ups a second', { rounds: found.ours, beside: [{ name: 'pgbench', values: found.peer }] });
}
