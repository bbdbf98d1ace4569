import { probePath } from '../tests/service/lib/http.js';
import { pause } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { Metrics } from './lib/metrics.js';
import { residentBytes, watchThreads } from './lib/process.js';
import { median } from './lib/stats.js';
import { anyAddress, filledDatabase, startCluster, startServer } from './lib/world.js';

export const about = 'ten thousand answers, held on one event loop, leave on time and cost little memory';

const latenessMetric = 'reclaim_http_release_lateness_seconds';
const pool = 16 * 1024; // memory pool of a connection in libmicrohttpd
const holdMs = 500;

const request = { path: probePath, headers: { 'Content-Type': 'application/json' }, numbers: 12_500 };
const lookUp = { ...request, body: `{"email":"${anyAddress}"}` };
const refused = { ...request, body: '{"email":"person######"}' }; // no address: 400, held like any other reply

const full = { callers: 10_000, spreadMs: holdMs, warmMs: 2500, runMs: 8000 };
const short = { callers: 500, spreadMs: holdMs, warmMs: 200, runMs: 600 };

/** So many callers; this share of them look a person up. */
function startCallers(server, share, { callers, ...times }) {
  const asking = Math.round(callers * share);
  const loads = [startLoad(server, { ...lookUp, ...times, callers: asking })];
  if (asking < callers) loads.push(startLoad(server, { ...refused, ...times, callers: callers - asking }));
  return Promise.all(loads.map((load) => load.ended));
}

/** Samples the number of held replies until `over`. */
async function watchHeld(server, over) {
  const seen = [];
  for (let ended = false; !ended; ) {
    seen.push((await Metrics.of(server)).value('reclaim_http_held'));
    ended = await Promise.race([over.then(() => true), pause(250)]);
  }
  return median(seen);
}

const sum = (values) => values.reduce((total, value) => total + value, 0);

const failures = ({ statuses, broken, refused: unconnected }) =>
  broken + unconnected + sum(Object.entries(statuses).map(([status, count]) => (status >= 500 ? count : 0)));

async function holdMany(scope, database, share, size) {
  const server = await startServer(scope, database, {
    RECLAIM_WORKERS: '1',
    RECLAIM_PROBE_HOLD_MS: String(holdMs),
    RECLAIM_PROBE_HOLD_SIGMA_MS: '25',
  });
  await startLoad(server, { ...lookUp, callers: 32, runMs: 2 * holdMs }).ended; // prepares statements and allocates buffers
  const before = residentBytes(server.pid);

  const outside = startCallers(server, share, { ...size, runMs: size.runMs + 1000 });
  await Promise.race([pause(size.spreadMs + size.warmMs), outside]);
  const threads = watchThreads(server.pid);
  const first = await Metrics.of(server);
  const held = await watchHeld(server, pause(size.runMs));
  const lateness = (await Metrics.of(server)).histogram(latenessMetric).since(first.histogram(latenessMetric));
  const loop = threads();
  const memory = residentBytes(server.pid); // slow, so after the measured time; before the load ends
  if (lateness.count === 0) throw new Error('no answer was held');

  const ended = await outside;
  return {
    lateness,
    p50: lateness.quantile(0.5) * 1000,
    p99: lateness.quantile(0.99) * 1000,
    inFlight: sum(ended.map(({ waiting }) => waiting.mean)),
    held,
    perRequest: (memory - before) / size.callers,
    perSecond: sum(ended.map((one) => one.per_second)),
    failed: sum(ended.map(failures)),
    running: 100 * loop.running,
    waiting: 100 * loop.waiting,
  };
}

const words = (found) =>
  `p99 ${found.p99.toFixed(1)} ms late, ${Math.round(found.inFlight)} in flight, ${Math.round(found.held)} held, ` +
  `${Math.round(found.perRequest)} bytes each, ${Math.round(found.perSecond)} answers/s, ${found.failed} failed, ` +
  `loop ran ${found.running.toFixed(0)} % and waited for a processor ${found.waiting.toFixed(0)} % of the time`;

const bucketName = (bound) => (bound === Infinity ? 'more' : String(bound * 1000));

export async function bench(b) {
  const cluster = await startCluster(b.stage);
  const database = await filledDatabase(b.stage, cluster);
  const size = b.smoke ? short : full;
  const found = await b.rounds(5, async (number) => {
    const round = {};
    for (const [name, share] of [['held', 0.1], ['asking', 1]]) {
      if (b.smoke && name === 'asking') continue;
      [round[name]] = await b.rounds(1, (_, scope) => holdMany(scope, database, share, size));
      b.say(`hold: round ${number}, ${100 * share} % look-ups: ${words(round[name])}`);
    }
    return round;
  });
  const each = (what, name = 'held') => found.map((round) => round[name][what]);

  b.measure('a tenth look-ups: lateness of release, p99', { rounds: each('p99'), unit: 'ms', atMost: 30 });
  b.measure('a tenth look-ups: lateness of release, median', { rounds: each('p50'), unit: 'ms', plot: false });
  b.measure('a tenth look-ups: memory of a request in flight', { rounds: each('perRequest'), unit: 'bytes', atMost: pool + 2048 });
  b.measure('a tenth look-ups: requests in flight', { rounds: each('inFlight'), atLeast: size.callers, plot: false });
  b.measure('of those, answers held', { rounds: each('held') });
  b.measure('a tenth look-ups: answers per second', { rounds: each('perSecond'), plot: false });
  b.measure('a tenth look-ups: answers 5xx or none', { rounds: each('failed'), atMost: 0, plot: false });
  b.measure('time the loop ran', { rounds: each('running'), unit: '%', plot: false });
  b.measure('time the loop waited for a processor', { rounds: each('waiting'), unit: '%' });
  b.note(
    'requests that are no look-ups are refused, which is held alike. PostgreSQL and the load share the cores with the loop: ' +
      'compare the time that it waited for a processor before blaming it for lateness',
  );
  if (!b.smoke) {
    b.measure('all look-ups: lateness of release, p99', { rounds: each('p99', 'asking'), unit: 'ms', atMost: 30 });
    b.measure('all look-ups: answers per second', { rounds: each('perSecond', 'asking'), plot: false });
    b.measure('all look-ups: answers 5xx or none', { rounds: each('failed', 'asking'), atMost: 0, plot: false });
    b.measure('all look-ups: time the loop waited for a processor', { rounds: each('waiting', 'asking'), unit: '%', plot: false });
  }

  const shares = found.map(({ held }) => held.lateness.shares());
  b.bars(
    'answers by lateness, upper bounds in ms (percent, median of rounds)',
    shares[0].map(({ bound }, i) => ({ label: bucketName(bound), value: 100 * median(shares.map((one) => one[i].share)), over: bound > 0.03 })),
  );
}
