// Kill -9 of the server and of PostgreSQL at random times, under load: no reply is wrong, and the service recovers.
// ROUNDS rounds; SEED determines the times.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { clusterProcesses, connectTo, postmasterOf } from '../service/lib/embedded.js';
import { ops, probe } from '../service/lib/http.js';
import { addCompany, addUser, address } from '../service/lib/people.js';
import { temporaryDirectory } from '../service/lib/place.js';
import { Cluster } from '../service/lib/postgres.js';
import { seeded } from '../service/lib/random.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, stageOf, until } from '../service/lib/stage.js';

const rounds = Number(process.env.ROUNDS ?? 3);
const random = seeded(Number(process.env.SEED ?? 20251027));

async function addPeople(db) {
  const confirmed = '2025-10-20T14:30:00Z';
  const orphan = await addUser(db);
  const halfway = await addUser(db, { confirmed });
  const owner = await addUser(db, { confirmed });
  await addCompany(db, owner);
  return [
    [orphan.email, { status: 'registered_unverified', isOrphaned: true }],
    [halfway.email, { status: 'registered_verified', isOrphaned: true }],
    [owner.email, { status: 'registered_verified', isOrphaned: false }],
    [address('nobody'), { status: 'not_registered', isOrphaned: false }],
  ];
}

/** The allowed replies about each of them during faults: the correct one, a partial one, or 503. */
function assertTrue(answer, truth) {
  if (answer.status === 503) return;
  assert.equal(answer.status, 200, answer.body);
  const { data } = answer.json;
  assert.equal(data.status, truth.status);
  if (data.isOrphaned !== null) assert.equal(data.isOrphaned, truth.isOrphaned);
}

class Load {
  constructor(scope, serverNow, people) {
    stageOf(scope).after(() => (this.going = false)); // if the test fails
    this.counts = { answered: 0, unavailable: 0, cut: 0 };
    this.going = true;
    this.workers = Array.from({ length: 24 }, (_, n) => this.#work(serverNow, ...people[n % people.length]));
  }

  async #work(serverNow, email, truth) {
    while (this.going) {
      let answer;
      try {
        answer = await probe(serverNow(), email);
      } catch (fault) {
        // A killed server closes its connections; anything else is an error.
        if (!['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(fault.code)) throw fault;
        this.counts.cut++;
        await pause(20);
        continue;
      }
      assertTrue(answer, truth);
      this.counts[answer.status === 200 ? 'answered' : 'unavailable']++;
    }
  }

  async stop() {
    this.going = false;
    await Promise.all(this.workers);
    return this.counts;
  }
}

async function assertWell(server, people) {
  await until('ready', async () => (await ops(server, '/readyz')).status === 200);
  for (const [email, truth] of people)
    await until(`the whole truth again about a ${truth.status} address`, async () => {
      const answer = await probe(server, email);
      assertTrue(answer, truth);
      return answer.status === 200 && answer.json.data.isOrphaned === truth.isOrphaned;
    });
}

describe(`faults, ${rounds} rounds`, () => {
  it('kill -9 of the server or of its private PostgreSQL never makes it tell anything wrong', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    let server = await serve(t, { directory });
    const { data } = postmasterOf(server);
    const people = await addPeople(await connectTo(t, data));
    const load = new Load(t, () => server, people);
    for (let round = 0; round < rounds; round++)
      for (const victim of ['server', 'postmaster', 'backend', 'both']) {
        await pause(random.below(400));
        const postmaster = postmasterOf(server);
        if (victim === 'backend') {
          const backends = clusterProcesses(data).filter((pid) => pid !== postmaster?.pid);
          if (backends.length) process.kill(backends[random.below(backends.length)], 'SIGKILL');
        } else if (victim !== 'server' && postmaster) {
          process.kill(postmaster.pid, 'SIGKILL');
        }
        if (victim === 'server' || victim === 'both') {
          await server.kill9();
          server = await serve(t, { directory });
        }
        await assertWell(server, people);
      }
    const counts = await load.stop();
    assert.ok(counts.answered > 0);
    t.diagnostic(JSON.stringify(counts));
    await server.withoutConnections();
    await server.stop();
    assert.deepEqual(clusterProcesses(data), []);
  });

  it('kill -9 and restarts of an external PostgreSQL never make two instances tell anything wrong', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t);
    const people = await addPeople(db);
    const servers = [await serve(t, { database: db }), await serve(t, { database: db, env: { RECLAIM_PREPARE: 'off' } })];
    const loads = servers.map((server) => new Load(t, () => server, people));
    for (let round = 0; round < rounds; round++)
      for (const blow of ['kill9', 'fast', 'immediate', 'terminate']) {
        await pause(random.below(300));
        if (blow === 'kill9') await cluster.kill9();
        else if (blow === 'terminate') await db.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()');
        else await cluster.stop(blow);
        await pause(random.below(300));
        if (!cluster.running) await cluster.start();
        for (const server of servers) await assertWell(server, people);
      }
    for (const load of loads) {
      const counts = await load.stop();
      assert.ok(counts.answered > 0);
      assert.equal(counts.cut, 0, 'the servers themselves never went away');
      t.diagnostic(JSON.stringify(counts));
    }
  });
});
