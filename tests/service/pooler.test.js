// Behind PgBouncer in transaction mode: questions go through it, migrations and the like go straight.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ops, probe } from './lib/http.js';
import { matrix } from './lib/matrix.js';
import { addUser } from './lib/people.js';
import { Pooler } from './lib/pgbouncer.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

for (const prepare of ['auto', 'off'])
  describe(`behind a transaction pooler, RECLAIM_PREPARE=${prepare}`, () => {
    const stage = new Stage();
    let cluster, db, pooler, server;
    before(async () => {
      cluster = await Cluster.create(stage);
      db = await cluster.database(stage);
      pooler = await Pooler.start(stage, cluster, { poolSize: 3 });
      server = await serve(stage, {
        env: { RECLAIM_DATABASE_URL: pooler.url(db), RECLAIM_DATABASE_DIRECT_URL: db.url, RECLAIM_PREPARE: prepare, RECLAIM_PROBE_TIMEOUT_MS: '300' },
      });
    });
    after(() => stage.end());

    it('every row of the state matrix is answered', async () => {
      for (const [promise, arrange, expected] of matrix) {
        const { correlationId, ...data } = (await probe(server, await arrange(db))).json.data;
        assert.ok(correlationId);
        assert.deepEqual(data, expected, promise);
      }
    });

    it('more requests at once than the pooler has sessions are all answered', async () => {
      const user = await addUser(db);
      for (let round = 0; round < 5; round++) {
        const answers = await Promise.all(Array.from({ length: 60 }, () => probe(server, user.email)));
        for (const answer of answers) {
          assert.equal(answer.status, 200, answer.body);
          assert.equal(answer.json.data.status, 'registered_unverified');
          assert.notEqual(answer.json.data.isOrphaned, false); // null where a slow machine missed the time-out
        }
      }
    });

    it('a time-out of one question never reaches another through the shared session', async (t) => {
      const user = await addUser(db);
      const session = await db.session(t);
      await session.query('begin; lock table companies in access exclusive mode');
      const degraded = await Promise.all(Array.from({ length: 9 }, () => probe(server, user.email)));
      for (const answer of degraded) assert.equal(answer.status, 200, answer.body);
      await session.query('rollback');
      const client = await db.session(t);
      const stray = await client.query(`select count(*)::int as n from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`);
      assert.equal(stray.rows[0].n, 0);
      assert.equal((await probe(server, user.email)).json.data.isOrphaned, true);
    });

    it('a restart of the database behind the pooler heals', async () => {
      const user = await addUser(db);
      await cluster.restart('fast');
      await until('a probe answered', async () => (await probe(server, user.email)).status === 200);
      await until('ready', async () => (await ops(server, '/readyz')).status === 200);
    });

    it('doctor finds the pooler', async (t) => {
      const { code, stdout, stderr } = await run(t, ['doctor'], {
        env: { RECLAIM_DATABASE_URL: pooler.url(db), RECLAIM_DATABASE_DIRECT_URL: db.url, RECLAIM_PREPARE: prepare },
      });
      assert.equal(code, 0, stdout + stderr);
      assert.match(stdout, /pooler/);
    });
  });

describe('behind a transaction pooler without a direct URL', () => {
  const stage = new Stage();
  let db, pooler;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    pooler = await Pooler.start(stage, cluster, { poolSize: 3 });
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
  });
  after(() => stage.end());

  it('no instance leads: each refuses to start and names the setting, also with RECLAIM_MIGRATE=off', async (t) => {
    const instances = [];
    for (const migrate of ['on', 'off', 'off'])
      instances.push(await serve(t, { env: { RECLAIM_DATABASE_URL: pooler.url(db), RECLAIM_MIGRATE: migrate }, wait: 'nothing' }));
    for (const instance of instances) {
      assert.deepEqual(await instance.ended(), { code: 1, signal: null });
      const faults = instance.lines.filter(({ level }) => level === 'error');
      assert.equal(faults.length, 1, instance.tail());
      assert.match(faults[0].why, /pooler.*RECLAIM_DATABASE_DIRECT_URL/);
      assert.equal(instance.events('leading').length, 0);
    }
  });

  it('migrate and doctor say the same, other commands work', async (t) => {
    const env = { RECLAIM_DATABASE_URL: pooler.url(db) };
    const migrate = await run(t, ['migrate'], { env });
    assert.equal(migrate.code, 1);
    assert.match(migrate.stderr, /^reclaim migrate: .*pooler.*RECLAIM_DATABASE_DIRECT_URL.*\n$/);
    const doctor = await run(t, ['doctor'], { env });
    assert.equal(doctor.code, 1, doctor.stdout);
    assert.match(doctor.stdout, /^FAIL .*pooler.*RECLAIM_DATABASE_DIRECT_URL/m);
    assert.equal((await run(t, ['orphans'], { env })).code, 0);
  });

  it('is recognised on every connection', async (t) => {
    // Each command is a connection of its own; the pooler gives all of them the same few backends.
    const all = await Promise.all(Array.from({ length: 12 }, () => run(t, ['migrate'], { env: { RECLAIM_DATABASE_URL: pooler.url(db) } })));
    assert.deepEqual(new Set(all.map(({ code }) => code)), new Set([1]));
  });
});
