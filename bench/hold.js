import { probePath } from '../tests/service/lib/http.js';
import { pause } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { Metrics } from './lib/metrics.js';
import { residentBytes } from './lib/process.js';
import { median } from './lib/stats.js';
import { anyAddress, filledDatabase, startCluster, startServer } from './lib/world.js';

export const about = 'ten thousand answers, held on one event loop, leave on time and cost little memory';

const latenessMetric = 'reclaim_http_release_lateness_seconds';
const pool = 16 * 1024; // what libmicrohttpd sets aside for a connection
const holdMs = 500;
const request = { path: probePath, body: `{"email":"${anyAddress}"}`, headers: { 'Content-Type': 'application/json' }, numbers: 12_500 };

const full = { callers: 10_000, spreadMs: holdMs, warmMs: 2500, runMs: 8000 };
const short = { callers: 500, spreadMs: holdMs, warmMs: 200, runMs: 800 };

/** How many answers are held, looked at now and then until `over`. */
async function watchHeld(server, over) {
  const seen = [];
  for (let ended = false; !ended; ) {
    seen.push((await Metrics.of(server)).value('reclaim_http_held'));
    ended = await Promise.race([over.then(() => true), pause(250)]);
  }
  return seen;
}

async function round(b, number, scope, database) {
  const size = b.smoke ? short : full;
  const server = await startServer(scope, database, {
    RECLAIM_WORKERS: '1',
    RECLAIM_PROBE_HOLD_MS: String(holdMs),
    RECLAIM_PROBE_HOLD_SIGMA_MS: '25',
  });
  await startLoad(server, { ...request, callers: 32, runMs: 600 }).ended; // statements prepared, buffers there
  const before = residentBytes(server.pid);

  const load = startLoad(server, { ...request, ...size, runMs: size.runMs + 1000 });
  await Promise.race([pause(size.spreadMs + size.warmMs), load.ended]);
  const first = await Metrics.of(server);
  const held = await watchHeld(server, pause(size.runMs));
  const last = await Metrics.of(server);
  const memory = residentBytes(server.pid); // walks the server's memory: after the time measured, before the load ends
  const outside = await load.ended;

  const lateness = last.histogram(latenessMetric).since(first.histogram(latenessMetric));
  const failed = Object.entries(outside.statuses).reduce((sum, [status, count]) => sum + (status >= 500 ? count : 0), 0);
  const found = {
    lateness,
    p50: lateness.quantile(0.5) * 1000,
    p99: lateness.quantile(0.99) * 1000,
    waiting: outside.waiting.mean,
    held: median(held),
    perRequest: (memory - before) / size.callers,
    perSecond: outside.per_second,
    failed: failed + outside.broken + outside.refused,
    statuses: outside.statuses,
  };
  b.say(
    `hold: round ${number}: ${Math.round(found.waiting)} in flight, ${Math.round(found.held)} held, p99 ${found.p99.toFixed(1)} ms late, ` +
      `${Math.round(found.perRequest)} bytes each, ${Math.round(found.perSecond)} answers/s, ${JSON.stringify(found.statuses)}`,
  );
  return found;
}

const bucketName = (bound) => (bound === Infinity ? 'more' : String(bound * 1000));

export async function bench(b) {
  const cluster = await startCluster(b.stage);
  const database = await filledDatabase(b.stage, cluster);
  const found = await b.rounds(5, (number, scope) => round(b, number, scope, database));
  const each = (name) => found.map((one) => one[name]);

  b.measure('lateness of release, p99', { rounds: each('p99'), unit: 'ms', atMost: 30 });
  b.measure('lateness of release, median', { rounds: each('p50'), unit: 'ms', plot: false });
  b.measure('memory of a request in flight', { rounds: each('perRequest'), unit: 'bytes', atMost: pool + 2048 });
  b.measure('requests in flight', { rounds: each('waiting'), atLeast: b.smoke ? undefined : full.callers, plot: false });
  b.measure('of those, answers held', { rounds: each('held') });
  b.measure('answers per second', { rounds: each('perSecond'), plot: false });
  b.measure('answers 5xx or none', { rounds: each('failed'), atMost: 0, plot: false });

  const shares = found.map(({ lateness }) => lateness.shares());
  b.bars(
    'answers by lateness, upper bounds in ms (percent, median of rounds)',
    shares[0].map(({ bound }, i) => ({ label: bucketName(bound), value: 100 * median(shares.map((one) => one[i].share)), over: bound > 0.03 })),
  );
}
