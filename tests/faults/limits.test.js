// Kill -9 of instances, and PostgreSQL stopped immediately or killed, under load: every admitted request is counted,
// and no client is admitted beyond its limit. ROUNDS rounds; SEED determines the times.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { ops, probe } from '../service/lib/http.js';
import { behindProxy, from, ipKey, limitsOf, newClient } from '../service/lib/limits.js';
import { address } from '../service/lib/people.js';
import { Cluster } from '../service/lib/postgres.js';
import { seeded } from '../service/lib/random.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, stageOf, until } from '../service/lib/stage.js';

const rounds = Number(process.env.ROUNDS ?? 3);
const most = 40;
const random = seeded(Number(process.env.SEED ?? 20251028));

/** Many concurrent callers as one client after another, at both instances. */
class Load {
  acknowledged = new Map(); // key of a client: number of replies that admitted it
  counts = { 200: 0, 429: 0, 503: 0, cut: 0 };
  #asked = 0;
  #client;

  constructor(scope, servers) {
    stageOf(scope).after(() => (this.going = false)); // if the test fails
    this.going = true;
    this.workers = Array.from({ length: 24 }, (_, n) => this.#work(() => servers[n % servers.length]));
  }

  /** The next client, whenever the last may have been refused for a while. */
  #next() {
    if (this.#asked++ % (3 * most) === 0) this.#client = newClient();
    return this.#client;
  }

  async #work(serverNow) {
    while (this.going) {
      const client = this.#next();
      let answer;
      try {
        answer = await probe(serverNow(), address('nobody'), from(client));
      } catch (fault) {
        // A killed server closes its connections; anything else is an error.
        if (!['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(fault.code)) throw fault;
        this.counts.cut++;
        await pause(20);
        continue;
      }
      this.counts[answer.status]++;
      if (answer.status === 200) {
        const key = ipKey('probe', client);
        this.acknowledged.set(key, (this.acknowledged.get(key) ?? 0) + 1);
      } else if (answer.status === 503) await pause(20);
      else assert.equal(limitsOf(answer).remaining, 0, answer.body);
    }
  }

  async stop() {
    this.going = false;
    await Promise.all(this.workers);
  }
}

/** Every request admitted before this read is counted, and no client beyond its limit. */
async function assertRemembered(db, load) {
  const told = new Map(load.acknowledged);
  const rows = await until('the database answering', () => db.query('select key, sum(count)::int as n from reclaim.rate_limits group by key'));
  const counted = new Map(rows.map(({ key, n }) => [key, n]));
  for (const [key, n] of told) {
    assert.ok((counted.get(key) ?? 0) >= n, `${n} were told to be let in, ${counted.get(key) ?? 0} are counted`);
    assert.ok(n <= most);
  }
  for (const [key, n] of counted) assert.ok(n <= most, `${key} is counted ${n} times`);
}

describe(`limits under faults, ${rounds} rounds`, () => {
  it('no admission that was acknowledged is forgotten, none is granted twice', async (t) => {
    const cluster = await Cluster.create(t, { settings: { fsync: 'on', full_page_writes: 'on' } });
    const db = await cluster.database(t);
    const start = () => serve(t, { database: db, env: behindProxy(`${most}/86400`) });
    const servers = [await start(), await start()];
    const load = new Load(t, servers);
    const blows = {
      instance: async () => {
        const n = random.below(servers.length);
        await servers[n].kill9();
        servers[n] = await start();
      },
      immediate: () => cluster.restart('immediate'),
      postmaster: async () => {
        await cluster.kill9();
        await cluster.start();
      },
      backend: async () => {
        const sessions = await db.query("select pid from pg_stat_activity where datname = current_database() and application_name = 'reclaim'");
        if (sessions.length) process.kill(sessions[random.below(sessions.length)].pid, 'SIGKILL');
      },
    };
    for (let round = 0; round < rounds; round++)
      for (const [name, blow] of Object.entries(blows)) {
        const before = load.counts[200];
        await until('admissions under way', () => load.counts[200] > before + 50);
        await pause(random.below(300));
        await blow();
        for (const server of servers) await until(`ready after ${name}`, async () => (await ops(server, '/readyz')).status === 200);
        await assertRemembered(db, load);
      }
    await load.stop();
    await assertRemembered(db, load);
    assert.ok(load.counts[429] > 0);
    t.diagnostic(JSON.stringify(load.counts));
  });
});
