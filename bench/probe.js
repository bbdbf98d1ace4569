import { probePath } from '../tests/service/lib/http.js';
import { domain } from '../tests/service/lib/people.js';
import { startLoad } from './lib/load.js';
import { pgbench } from './lib/pgbench.js';
import { anyAddress, filledDatabase, startCluster, startServer } from './lib/world.js';

export const about = 'check-email-status over HTTP, without hold and limit, against pgbench asking PostgreSQL the same directly';

const callers = 100;
const format = 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'; // a variable, since pgbench substitutes names after colons

async function contest(b, cluster, people, times) {
  const database = await filledDatabase(b.stage, cluster, people);
  const server = await startServer(b.stage, database);
  const ours = async () => {
    const ended = await startLoad(server, {
      path: probePath,
      body: `{"email":"${anyAddress}"}`,
      headers: { 'Content-Type': 'application/json' },
      numbers: people,
      callers,
      ...times,
    }).ended;
    if (ended.broken + ended.refused > 0 || Object.keys(ended.statuses).some((status) => status !== '200')) throw new Error(`not answered: ${JSON.stringify(ended)}`);
    return ended.per_second;
  };
  const peer = () =>
    pgbench(database, { script: 'look_up.pgbench', clients: callers, seconds: Math.ceil(times.runMs / 1000), variables: { people, domain, format } });

  const size = people.toLocaleString('en');
  const found = await b.compare(7, { ours, peer }, `probe, ${size} users`);
  b.measure(`${size} users: requests, of pgbench`, { rounds: found.ratios, unit: 'times', atLeast: 1.2 });
  b.measure(`${size} users: requests per second`, { rounds: found.ours, beside: [{ name: 'pgbench', values: found.peer }] });
}

export async function bench(b) {
  const cluster = await startCluster(b.stage);
  const times = b.smoke ? { warmMs: 100, runMs: 400 } : { warmMs: 1000, runMs: 5000 };
  await contest(b, cluster, 10_000, times);
  if (!b.smoke) await contest(b, cluster, 1_000_000, times);
}
