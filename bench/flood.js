import { probePath } from '../tests/service/lib/http.js';
import { pause } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { Metrics } from './lib/metrics.js';
import { watchThreads } from './lib/process.js';
import { anyAddress, filledDatabase, migrate, startCluster, startServer } from './lib/world.js';

export const about = 'one client far over its limit: refusals cost little, reach no database, and keep nobody else waiting';

const latenessMetric = 'reclaim_http_release_lateness_seconds';
const people = 10_000;
const admitted = 30;
const limit = `${admitted}/60`;
const request = { path: probePath, body: `{"email":"${anyAddress}"}`, numbers: people };
const json = { 'Content-Type': 'application/json' };

const sum = (values) => values.reduce((total, value) => total + value, 0);
const others = (ended, status) => ended.broken + ended.refused + sum(Object.entries(ended.statuses).map(([one, count]) => (Number(one) === status ? 0 : count)));

/** Refusals, compared with a constant reply of the same length from the same server. */
async function compareRefusals(b, database, times) {
  const server = await startServer(b.stage, database, { RECLAIM_LIMIT_PROBE: limit, RECLAIM_TEST_CONSTANT: '1' });
  const load = async (path) => {
    const ended = await startLoad(server, { ...request, path, headers: json, callers: 100, ...times }).ended;
    if (others(ended, 429) > admitted + ended.answers / 100) throw new Error(`not refused: ${JSON.stringify(ended)}`);
    return ended.per_second;
  };
  const found = await b.compare(15, { ours: () => load(probePath), peer: () => load('/functions/v1/constant') }, 'flood, refusals');
  await server.stop();
  b.measure('refusals, of constant answers', { rounds: found.ratios, unit: 'times', atLeast: 0.8 });
  b.measure('refusals per second', { rounds: found.ours, beside: [{ name: 'constant answers', values: found.peer }] });
}

/** Number of calls of each statement in this database, without the benchmark's own. */
async function statementCalls(database) {
  const rows = await database.query(
    `select s.queryid::text id, sum(s.calls)::float8 calls from public.pg_stat_statements s join pg_database d on d.oid = s.dbid
     where d.datname = current_database() and s.query !~ 'pg_stat_statements' group by 1`,
  );
  return new Map(rows.map(({ id, calls }) => [id, calls]));
}

const callsBetween = (first, last) => new Map([...last].map(([id, calls]) => [id, calls - (first.get(id) ?? 0)]).filter(([, calls]) => calls > 0));

/** Statements caused by refusals: all statements minus those that an idle server sends. */
async function countStatements(b, scope, database, times) {
  await database.query('truncate reclaim.rate_limits');
  const server = await startServer(scope, database, { RECLAIM_LIMIT_PROBE: limit });
  const idleFrom = await statementCalls(database);
  await pause(times.warmMs + times.runMs);
  const idle = callsBetween(idleFrom, await statementCalls(database));

  const load = startLoad(server, { ...request, headers: json, callers: 100, warmMs: times.warmMs + 200, runMs: times.runMs + 200 });
  await Promise.race([pause(times.warmMs), load.ended]);
  const from = await statementCalls(database);
  await Promise.race([pause(times.runMs), load.ended]);
  const sent = callsBetween(from, await statementCalls(database));
  const { answers } = await load.ended;
  await server.stop();
  // Statements of an idle server depend on time, and their number may vary a little.
  const upkeep = (id) => (idle.has(id) ? 2 * idle.get(id) + 2 : 0);
  const caused = sum([...sent].map(([id, calls]) => Math.max(0, calls - upkeep(id))));
  return { answers, caused };
}

/** With the standard hold: other clients send requests while one client floods. */
async function honestMeanwhile(scope, database, size) {
  await database.query('truncate reclaim.rate_limits');
  const server = await startServer(scope, database, {
    RECLAIM_LIMIT_PROBE: limit,
    RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
    RECLAIM_PROBE_HOLD_MS: '150',
    RECLAIM_PROBE_HOLD_SIGMA_MS: '10',
  });
  const from = (address) => ({ ...json, 'X-Forwarded-For': address });
  const flood = startLoad(server, { ...request, headers: from('192.0.2.1'), callers: size.flood, spreadMs: 150, warmMs: size.warmMs, runMs: size.runMs + 500 });
  const honest = startLoad(server, { ...request, headers: from('2001:db8:0:####::1'), callers: size.honest, spreadMs: 150, warmMs: size.warmMs, runMs: size.runMs });
  await Promise.race([pause(150 + size.warmMs), honest.ended]);
  const threads = watchThreads(server.pid);
  const first = await Metrics.of(server);
  const told = await honest.ended;
  const loop = threads();
  const lateness = (await Metrics.of(server)).histogram(latenessMetric).since(first.histogram(latenessMetric));
  const refusals = await flood.ended;
  await server.stop();
  return {
    lateness: lateness.quantile(0.99) * 1000,
    refused: others(told, 200),
    waited: told.ms.p99,
    perSecond: told.per_second,
    refusals: refusals.statuses[429] / refusals.seconds,
    waiting: 100 * loop.waiting,
  };
}

export async function bench(b) {
  const cluster = await startCluster(b.stage, { shared_preload_libraries: 'pg_stat_statements' });
  const database = await filledDatabase(b.stage, cluster, people);
  await migrate(b.stage, database);
  await database.query('create extension pg_stat_statements');
  const times = b.smoke ? { warmMs: 100, runMs: 300 } : { warmMs: 1000, runMs: 4000 };
  await compareRefusals(b, database, b.smoke ? times : { warmMs: 300, runMs: 1500 });

  const counted = await b.rounds(3, async (number, scope) => {
    const { answers, caused } = await countStatements(b, scope, database, times);
    b.say(`flood: round ${number}: ${caused} statements for ${answers} refusals`);
    return caused / answers;
  });
  b.measure('statements per refusal', { rounds: counted, atMost: 0, plot: false });

  const size = b.smoke ? { flood: 100, honest: 10, warmMs: 200, runMs: 400 } : { flood: 2000, honest: 100, warmMs: 1500, runMs: 6000 };
  const found = await b.rounds(5, async (number, scope) => {
    const round = await honestMeanwhile(scope, database, size);
    b.say(
      `flood: round ${number}: p99 ${round.lateness.toFixed(1)} ms late, ${Math.round(round.refusals)} refusals/s, ` +
        `${Math.round(round.perSecond)} others/s, ${round.refused} of them refused or not answered, loop waited ${round.waiting.toFixed(0)} % of the time`,
    );
    return round;
  });
  const each = (what) => found.map((round) => round[what]);
  b.measure('in a flood: lateness of release, p99', { rounds: each('lateness'), unit: 'ms', atMost: 30 });
  b.measure('in a flood: others refused or not answered', { rounds: each('refused'), atMost: 0, plot: false });
  b.measure('in a flood: what others wait for an answer, p99', { rounds: each('waited'), unit: 'ms' });
  b.measure('in a flood: answers to others per second', { rounds: each('perSecond'), plot: false });
  b.measure('in a flood: refusals per second', { rounds: each('refusals'), plot: false });
  b.measure('in a flood: time the busiest loop waited for a processor', { rounds: each('waiting'), unit: '%', plot: false });
}
