import { Visitor } from '../tests/service/lib/pages.js';
import { startLoad } from './lib/load.js';
import { startCluster, startServer } from './lib/world.js';

export const about = 'pages on a first visit against a constant answer of the same server, with the same headers and as many bytes';

const callers = 64;
const headers = { Accept: 'text/html', 'Accept-Language': 'de-AT,de;q=0.9,en;q=0.8' };

async function load(server, path, times) {
  const ended = await startLoad(server, { path, headers, callers, ...times }).ended;
  if ((ended.statuses[200] ?? 0) < ended.answers * 0.99) throw new Error(`${path}: ${JSON.stringify(ended)}`);
  return ended.per_second;
}

export async function bench(b) {
  const times = b.smoke ? { warmMs: 100, runMs: 300 } : { warmMs: 300, runMs: 1500 };
  const cluster = await startCluster(b.stage);
  const server = await startServer(b.stage, await cluster.database(b.stage), { RECLAIM_TEST_CONSTANT: '1' });
  for (const path of ['/recover', '/']) {
    const bytes = Buffer.byteLength((await new Visitor(server).get(path)).body);
    const contest = { ours: () => load(server, path, times), peer: () => load(server, `/constant-page/${bytes}`, times) };
    const found = await b.compare(11, contest, `pages, ${path}`);
    b.measure(`${path}, of constant answers`, { rounds: found.ratios, unit: 'times', atLeast: 0.5 });
    b.measure(`${path} per second`, { rounds: found.ours, beside: [{ name: 'constant answers', values: found.peer }] });
  }
}
