import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { probePath } from '../tests/service/lib/http.js';
import { startLoad } from './lib/load.js';
import { pgbench } from './lib/pgbench.js';
import { findTool, start } from './lib/tool.js';
import { anyAddress, filledDatabase, migrate, startCluster, startServer } from './lib/world.js';

export const about = 'decisions per second against two usual limiters on the same PostgreSQL, and who lets in too many';

const callers = 100;
const connections = 32; // to the database, for each contestant: more makes the peers slower
const people = 10_000;
const much = 100_000_000;
const lets = { global: [much, 60], ip: [much, 60], email: [much, 3600] };
const standard = { global: [1000, 60], ip: [5, 60], email: [3, 3600] };
const five = { ...lets, ip: [5, 60] };
/* What check-email-status is limited by. */
const probeLets = { ip: [1_000_000, 60] };
const probeStandard = { ip: [30, 60] };

const peerFile = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));

/** Those who decide. Each turn begins with nothing counted and returns decisions per second. */
class Contest {
  constructor(database, times) {
    this.database = database;
    this.times = times;
  }

  async #clear() {
    await this.database.query('truncate reclaim.rate_limits, three_calls.rate_limits, flexible.limits');
  }

  async #askOurs(limits, more) {
    const given = { callers, people, connections, warm: this.times.warmMs, run: this.times.runMs, ...more };
    for (const [tier, limit] of Object.entries(limits)) given[tier] = limit.join('/');
    const options = Object.entries(given).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, value]));
    await this.#clear();
    return JSON.parse(await start(findTool('limits_driver'), [...options, this.database.url]).ended);
  }

  async #askCalls(limits, more) {
    const variables = { people, ...more.variables };
    for (const [tier, [limit, seconds]] of Object.entries(limits)) Object.assign(variables, { [`${tier}_limit`]: limit, [`${tier}_window`]: seconds });
    const seconds = Math.ceil((this.times.warmMs + this.times.runMs) / 1000);
    await this.#clear();
    return pgbench(this.database, { script: 'three_calls.pgbench', clients: connections, seconds, searchPath: 'three_calls', ...more, variables });
  }

  #limiter(name, limits) {
    return { name, limits, connections, connection: this.database.cluster.connection(this.database.name) };
  }

  async #askFlexible(limits, more) {
    const task = { ...this.#limiter('flexible', limits), callers, people, ...this.times, ...more };
    await this.#clear();
    return JSON.parse(await start(process.execPath, [peerFile('driver.js'), JSON.stringify(task)]).ended);
  }

  ours = async (limits) => (await this.#askOurs(limits)).per_second;
  calls = (limits) => this.#askCalls(limits, {});
  flexible = async (limits) => (await this.#askFlexible(limits)).per_second;

  /** Requests of so many clients, as a trusted proxy forwards them. */
  async #load(server, clients) {
    const ended = await startLoad(server, {
      path: probePath,
      body: `{"email":"${anyAddress}"}`,
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '2001:db8:0:####::1' },
      numbers: clients,
      callers,
      ...this.times,
    }).ended;
    if (ended.broken + ended.refused + (ended.statuses[503] ?? 0) > 0) throw new Error(`not answered: ${JSON.stringify(ended)}`);
    return ended.per_second;
  }

  async oursOverHttp(scope, limits, clients) {
    await this.#clear();
    const server = await startServer(scope, this.database, {
      RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
      RECLAIM_LIMIT_PROBE: limits.ip.join('/'),
      RECLAIM_DATABASE_CONNECTIONS: String(connections),
    });
    const rate = await this.#load(server, clients);
    await server.stop();
    return rate;
  }

  async peerOverHttp(name, limits, clients) {
    await this.#clear();
    const peer = start(process.execPath, [peerFile('server.js'), JSON.stringify(this.#limiter(name, limits))]);
    const port = Number(await peer.line);
    try {
      return await this.#load({ address: () => ({ host: '127.0.0.1', port }) }, clients);
    } finally {
      peer.stop();
      await peer.ended;
    }
  }

  /** One client, and as many at the same time as there are callers, where five may: how many too many get in. */
  overOurs = async () => (await this.#askOurs(five, { people: 1, instances: 2, once: true })).admitted - 5;

  overCalls = async () => {
    await this.#askCalls(five, { clients: callers, times: 1, variables: { people: 1 } });
    const [{ admitted }] = await this.database.query("select sum(count)::int admitted from three_calls.rate_limits where key like 'ip:%'");
    return admitted - 5;
  };

  overFlexible = async () => (await this.#askFlexible(five, { people: 1, connections: callers, once: true })).admitted - 5;
}

async function prepare(b) {
  const cluster = await startCluster(b.stage);
  const database = await filledDatabase(b.stage, cluster, people);
  await migrate(b.stage, database);
  await database.query(fs.readFileSync(peerFile('three_calls.sql'), 'utf8'));
  await database.query('create schema flexible; create table flexible.limits (key varchar(255) primary key, points integer not null default 0, expire bigint)');
  return new Contest(database, b.smoke ? { warmMs: 1, runMs: 250 } : { warmMs: 1000, runMs: 4000 });
}

const peers = { calls: 'three calls', flexible: 'rate-limiter-flexible' };

async function decide(b, what, contestants) {
  const found = await b.turns(3, contestants, `limits, ${what}`);
  for (const [peer, name] of Object.entries(peers)) {
    const ratios = found.ours.map((value, i) => value / found[peer][i]);
    b.measure(`${what}: decisions, of ${name}`, { rounds: ratios, unit: 'times', atLeast: 5 });
  }
  const beside = Object.entries(peers).map(([peer, name]) => ({ name, values: found[peer] }));
  b.measure(`${what}: decisions per second`, { rounds: found.ours, beside });
}

export async function bench(b) {
  const contest = await prepare(b);
  const overHttp = (limits, clients) => ({
    ours: (scope) => contest.oursOverHttp(scope, limits, clients),
    calls: () => contest.peerOverHttp('calls', limits, clients),
    flexible: () => contest.peerOverHttp('flexible', limits, clients),
  });
  const alone = (limits) => Object.fromEntries(['ours', 'calls', 'flexible'].map((name) => [name, () => contest[name](limits)]));

  await decide(b, 'admitting', alone(lets));
  await decide(b, 'refusing', alone(standard));
  await decide(b, 'admitting over HTTP', overHttp(probeLets, people));
  await decide(b, 'refusing over HTTP', overHttp(probeStandard, 1));

  const over = await b.turns(20, { ours: contest.overOurs, calls: contest.overCalls, flexible: contest.overFlexible }, 'limits, 100 at once where 5 may, too many');
  b.measure('100 at once where 5 may, on two instances: too many', { rounds: over.ours, atMost: 0, beside: Object.entries(peers).map(([peer, name]) => ({ name, values: over[peer] })) });
  for (const [peer, name] of Object.entries(peers)) b.measure(`the same with ${name}: too many`, { rounds: over[peer], plot: false });
}
