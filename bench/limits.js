import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { cleanupPath } from '../tests/service/lib/cleanup.js';
import { probePath } from '../tests/service/lib/http.js';
import { startLoad } from './lib/load.js';
import { pgbench } from './lib/pgbench.js';
import { findTool, start } from './lib/tool.js';
import { anyAddress, filledDatabase, migrate, startCluster, startServer } from './lib/world.js';

export const about = 'decisions per second against two usual limiters on the same PostgreSQL, and who lets in too many';

const callers = 100;
const connections = 32; // to the database, for each side: the peers are slower with more
const people = 10_000;

const much = 100_000_000;
const loose = { global: [much, 60], ip: [much, 60], email: [much, 3600] };
const standard = { global: [1000, 60], ip: [5, 60], email: [3, 3600] };
const five = { ...loose, ip: [5, 60] };
const oneTier = { ip: loose.ip };
const twoTiers = { global: loose.global, ip: loose.ip };

const peerFile = (name) => fileURLToPath(new URL(`peers/${name}`, import.meta.url));

/** The limiters that are compared. Each turn starts with empty tables. */
class Contest {
  constructor(database, times) {
    this.database = database;
    this.times = times;
  }

  async clear() {
    await this.database.query('truncate reclaim.rate_limits, three_calls.rate_limits, flexible.limits');
  }

  async ours(limits, more = {}) {
    const given = { callers, people, connections, warm: this.times.warmMs, run: this.times.runMs, ...more };
    for (const [tier, limit] of Object.entries(limits)) given[tier] = limit.join('/');
    const options = Object.entries(given).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name}`, value]));
    await this.clear();
    return JSON.parse(await start(findTool('limits_driver'), [...options, this.database.url]).ended);
  }

  async calls(limits, more = {}) {
    const variables = { people, ...more.variables };
    for (const [tier, [limit, seconds]] of Object.entries(limits)) Object.assign(variables, { [`${tier}_limit`]: limit, [`${tier}_window`]: seconds });
    const seconds = Math.ceil((this.times.warmMs + this.times.runMs) / 1000);
    await this.clear();
    return { per_second: await pgbench(this.database, { script: 'three_calls.pgbench', clients: connections, seconds, searchPath: 'three_calls', ...more, variables }) };
  }

  #limiter(name, limits) {
    return { name, limits, connections, connection: this.database.cluster.connection(this.database.name) };
  }

  async flexible(limits, more = {}) {
    const task = { ...this.#limiter('flexible', limits), callers, people, ...this.times, ...more };
    await this.clear();
    return JSON.parse(await start(process.execPath, [peerFile('driver.js'), JSON.stringify(task)]).ended);
  }

  /** Requests of so many clients, as a trusted proxy forwards them. */
  async #load(server, clients, { path = probePath, body = `{"email":"${anyAddress}"}` } = {}) {
    const ended = await startLoad(server, {
      path,
      body,
      headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': '2001:db8:0:####::1' },
      numbers: clients,
      callers,
      ...this.times,
    }).ended;
    if (ended.broken + ended.refused + (ended.statuses[503] ?? 0) > 0) throw new Error(`not answered: ${JSON.stringify(ended)}`);
    return ended;
  }

  async #oursOverHttp(scope, limits, clients, request) {
    await this.clear();
    const server = await startServer(scope, this.database, {
      RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
      RECLAIM_DATABASE_CONNECTIONS: String(connections),
      ...limits,
    });
    const ended = await this.#load(server, clients, request);
    await server.stop();
    return ended;
  }

  /** One tier, and a look-up when admitted. */
  oursOverHttp(scope, limit, clients) {
    return this.#oursOverHttp(scope, { RECLAIM_LIMIT_PROBE: limit }, clients);
  }

  /** An invalid body counts against two tiers, and causes no look-up. */
  oursTwoTiers(scope, limit, clients) {
    return this.#oursOverHttp(scope, { RECLAIM_LIMIT_GLOBAL: limit, RECLAIM_LIMIT_IP: limit }, clients, { path: cleanupPath, body: '{}' });
  }

  async peerOverHttp(name, limits, clients, { body, ...more } = {}) {
    await this.clear();
    const peer = start(process.execPath, [peerFile('server.js'), JSON.stringify({ ...this.#limiter(name, limits), ...more })]);
    const port = Number(await peer.line);
    try {
      return await this.#load({ address: () => ({ host: '127.0.0.1', port }) }, clients, { body });
    } finally {
      peer.stop();
      await peer.ended;
    }
  }
}

async function prepare(b) {
  const cluster = await startCluster(b.stage);
  const database = await filledDatabase(b.stage, cluster, people);
  await migrate(b.stage, database);
  await database.query(fs.readFileSync(peerFile('three_calls.sql'), 'utf8'));
  await database.query('create schema flexible; create table flexible.limits (key varchar(255) primary key, points integer not null default 0, expire bigint)');
  return new Contest(database, b.smoke ? { warmMs: 1, runMs: 500 } : { warmMs: 1000, runMs: 3000 });
}

const names = {
  calls: 'three calls',
  flexible: 'rate-limiter-flexible',
  remembering: 'the same, set to remember refusals',
  oneCall: 'one call',
  oneLimiter: 'one limiter of rate-limiter-flexible',
  twoCalls: 'two calls',
  twoLimiters: 'two limiters of rate-limiter-flexible',
};
const goals = { calls: 5, flexible: 5, twoCalls: 5, twoLimiters: 5 }; // the others are only shown

async function decide(b, what, contestants) {
  const turns = Object.entries(contestants).map(([name, turn]) => [name, async (scope) => (await turn(scope)).per_second]);
  const { ours, ...peers } = await b.turns(5, Object.fromEntries(turns), `limits, ${what}`);
  for (const [peer, values] of Object.entries(peers)) {
    const ratios = ours.map((value, i) => value / values[i]);
    b.measure(`${what}: decisions, of ${names[peer]}`, { rounds: ratios, unit: 'times', atLeast: goals[peer], plot: peer in goals });
  }
  const beside = Object.keys(peers).filter((peer) => peer in goals).map((peer) => ({ name: names[peer], values: peers[peer] }));
  b.measure(`${what}: decisions per second`, { rounds: ours, beside });
}

async function decideAlone(b, contest) {
  await decide(b, 'admitting', {
    ours: () => contest.ours(loose),
    calls: () => contest.calls(loose),
    flexible: () => contest.flexible(loose),
  });
  if (b.smoke) return;
  await decide(b, 'refusing', {
    ours: () => contest.ours(standard),
    calls: () => contest.calls(standard),
    flexible: () => contest.flexible(standard),
    remembering: () => contest.flexible(standard, { remembers: true }),
  });
}

async function decideOverHttp(b, contest) {
  b.note('over HTTP ours is check-email-status, which charges one tier and looks the person up; peers charge three tiers, or the one, and look nobody up. With the same two tiers ours is cleanup-orphaned-user, which stops at a body that is no request');
  if (!b.smoke) {
    await decide(b, 'admitting over HTTP', {
      ours: (scope) => contest.oursOverHttp(scope, '1000000/60', people),
      calls: () => contest.peerOverHttp('calls', loose, people),
      flexible: () => contest.peerOverHttp('flexible', loose, people),
      oneCall: () => contest.peerOverHttp('calls', oneTier, people),
      oneLimiter: () => contest.peerOverHttp('flexible', oneTier, people),
    });
    await decide(b, 'admitting over HTTP, the same two tiers', {
      ours: (scope) => contest.oursTwoTiers(scope, '1000000/60', people),
      twoCalls: () => contest.peerOverHttp('calls', twoTiers, people, { body: '{}' }),
      twoLimiters: () => contest.peerOverHttp('flexible', twoTiers, people, { body: '{}' }),
    });
  }
  await decide(b, 'refusing over HTTP', {
    ours: (scope) => contest.oursOverHttp(scope, '30/60', 1),
    calls: () => contest.peerOverHttp('calls', standard, 1),
    flexible: () => contest.peerOverHttp('flexible', standard, 1),
    remembering: () => contest.peerOverHttp('flexible', standard, 1, { remembers: true }),
  });
}

/** One client whose limit is five, with as many concurrent requests as there are callers. */
async function countOver(b, contest) {
  const once = { people: 1, once: true };
  const over = await b.turns(
    20,
    {
      ours: async () => (await contest.ours(five, { ...once, instances: 2 })).admitted - 5,
      calls: async () => {
        await contest.calls(five, { clients: callers, times: 1, variables: { people: 1 } });
        const [{ admitted }] = await contest.database.query("select sum(count)::int admitted from three_calls.rate_limits where key like 'ip:%'");
        return admitted - 5;
      },
      flexible: async () => (await contest.flexible(five, { ...once, connections: callers })).admitted - 5,
    },
    'limits, 100 at once where 5 may, too many',
  );
  const { ours, ...peers } = over;
  const beside = Object.entries(peers).map(([peer, values]) => ({ name: names[peer], values }));
  b.measure('100 at once where 5 may, over two instances: too many', { rounds: ours, atMost: 0, beside });
  for (const peer of Object.keys(peers)) b.measure(`the same with ${names[peer]}: too many`, { rounds: over[peer], plot: false });
}

export async function bench(b) {
  const contest = await prepare(b);
  await decideAlone(b, contest);
  await decideOverHttp(b, contest);
  await countOver(b, contest);
}
