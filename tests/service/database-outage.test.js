// The database goes away, comes back, freezes, or was never there.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Crowd } from './lib/crowd.js';
import { ops, post, probe } from './lib/http.js';
import { addCompany, addUser, address } from './lib/people.js';
import { Cluster, freePort, processesIn } from './lib/postgres.js';
import { rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage, pause, until } from './lib/stage.js';

describe('an outage of the database', () => {
  const holdMs = 200;
  const stage = new Stage();
  let cluster, db, server, orphan, owner;
  before(async () => {
    cluster = await Cluster.create(stage, { tcp: true });
    db = await cluster.database(stage);
    orphan = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    owner = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    await addCompany(db, owner);
    server = await serve(stage, { database: db, env: { RECLAIM_PROBE_HOLD_MS: String(holdMs) } });
  });
  after(async () => {
    if (!cluster.running) await cluster.start();
    await stage.end();
  });

  const assertUnavailable = (answer) => {
    assert.equal(answer.status, 503, answer.body);
    assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_006');
    assert.equal(answer.json.error.httpStatus, 503);
    assert.ok(answer.answeredAt - answer.sentAt >= holdMs, 'a 503 is held like any other answer');
  };

  const assertHealed = async () => {
    await until('a probe answered', async () => (await probe(server, orphan.email)).status === 200);
    await until('ready again', async () => (await ops(server, '/readyz')).status === 200);
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    assert.equal((await probe(server, owner.email)).json.data.isOrphaned, false);
    assert.equal(server.exit, undefined, 'it is the same process');
  };

  for (const mode of ['fast', 'immediate'])
    it(`is answered 503 after a ${mode} shutdown, and is over when the database is back`, async () => {
      await cluster.stop(mode);
      assertUnavailable(await until('503', async () => {
        const answer = await probe(server, orphan.email);
        return answer.status === 503 && answer;
      }));
      const notReady = await until('not ready', async () => {
        const answer = await ops(server, '/readyz');
        return answer.status === 503 && answer;
      });
      assert.equal(notReady.json.status, 'database_down');
      assert.equal((await ops(server, '/livez')).status, 200);
      assert.equal((await post(server, 'x')).status, 400, 'what needs no database is answered as ever');
      await cluster.start();
      await assertHealed();
    });

  it('by kill -9 of the postmaster heals without a restart', async () => {
    await cluster.kill9();
    await until('503', async () => (await probe(server, orphan.email)).status === 503);
    await cluster.start();
    await assertHealed();
  });

  it('that ends every session heals by itself', async () => {
    for (let round = 0; round < 3; round++) {
      await db.query('select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()');
      await assertHealed();
    }
  });

  it('is said in the log once, not once a request', async () => {
    await cluster.stop();
    await until('503', async () => (await probe(server, orphan.email)).status === 503);
    const heard = server.lines.length;
    for (let n = 0; n < 5; n++) assertUnavailable(await probe(server, address('nobody')));
    const errors = server.lines.slice(heard).filter((line) => line.level === 'error');
    assert.ok(errors.length < 5, JSON.stringify(errors));
    await cluster.start();
    await assertHealed();
  });

  it('under load gives 503 or the truth, never anything else', async () => {
    const seen = { 200: 0, 503: 0 };
    let going = true;
    const load = Array.from({ length: 20 }, async (_, n) => {
      const user = n % 2 ? orphan : owner;
      while (going) {
        const answer = await probe(server, user.email);
        seen[answer.status]++;
        if (answer.status === 200) {
          assert.equal(answer.json.data.status, 'registered_verified');
          if (answer.json.data.isOrphaned !== null) assert.equal(answer.json.data.isOrphaned, user === orphan);
        }
      }
    });
    try {
      for (const mode of ['fast', 'immediate', 'fast']) {
        await pause(300);
        await cluster.restart(mode);
        await assertHealed();
      }
    } finally {
      going = false;
    }
    await Promise.all(load);
    assert.ok(seen[200] > 0);
  });

  it('under load leaves nobody waiting for an answer', async (t) => {
    const crowded = await serve(t, { database: db, env: { RECLAIM_WORKERS: '2', RECLAIM_LIMIT_PROBE: '1000000/60' } });
    const crowd = await Crowd.gather(t, crowded, 1000, rawPost(JSON.stringify({ email: orphan.email })));
    try {
      for (let outage = 0; outage < 3; outage++) {
        await crowd.answered(200);
        await cluster.stop('immediate');
        await crowd.answered(503);
        await cluster.start();
      }
    } finally {
      if (!cluster.running) await cluster.start();
    }
    await crowd.disperse();
    assert.deepEqual(Object.keys(crowd.counts), ['200', '503']);
    await crowded.withoutConnections();
    await crowded.stop();
  });

  it('that freezes instead of dying is answered 503, and is over when it thaws', async () => {
    const frozen = processesIn(cluster.data);
    frozen.forEach((pid) => process.kill(pid, 'SIGSTOP'));
    try {
      assertUnavailable(await probe(server, orphan.email));
    } finally {
      frozen.forEach((pid) => process.kill(pid, 'SIGCONT'));
    }
    await assertHealed();
  });

  it('that locks the users makes the probe give up with 503, not wait for ever', async (t) => {
    const session = await db.session(t);
    await session.query('begin; lock table auth.users in access exclusive mode');
    assertUnavailable(await probe(server, orphan.email));
    await session.query('rollback');
    await assertHealed();
  });
});

describe('a start without a database', () => {
  it('waits for it, saying so, and then serves', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t);
    const orphan = await addUser(db);
    await cluster.stop();
    const server = await serve(t, { database: db, wait: 'listening' });
    assert.equal((await ops(server, '/livez')).status, 200);
    const notReady = await ops(server, '/readyz');
    assert.equal(notReady.status, 503);
    assert.equal(notReady.json.status, 'starting');
    assert.equal((await probe(server, orphan.email)).status, 503);
    await cluster.start();
    await server.ready();
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    await server.stop();
  });

  it('can be ended while it waits', async (t) => {
    const server = await serve(t, {
      env: { RECLAIM_DATABASE_URL: `postgresql://postgres@127.0.0.1:${await freePort()}/none` },
      wait: 'listening',
    });
    await server.stop();
  });

  it('takes the host that answers out of several', async (t) => {
    const cluster = await Cluster.create(t, { tcp: true });
    const db = await cluster.database(t);
    const dead = await freePort();
    const url = `postgresql://postgres@127.0.0.1:${dead},127.0.0.1:${cluster.port}/${db.name}`;
    const server = await serve(t, { env: { RECLAIM_DATABASE_URL: url } });
    assert.equal((await probe(server, address('nobody'))).status, 200);
    await server.stop();
  });

  it('takes the host that can write out of several', async (t) => {
    const readOnly = await Cluster.create(t, { tcp: true });
    const writable = await Cluster.create(t, { tcp: true });
    const db = await writable.database(t);
    const orphan = await addUser(db);
    await readOnly.admin(`create database "${db.name}"`);
    await readOnly.admin(`alter database "${db.name}" set default_transaction_read_only = on`);
    const url = `postgresql://postgres@127.0.0.1:${readOnly.port},127.0.0.1:${writable.port}/${db.name}`;
    const server = await serve(t, { env: { RECLAIM_DATABASE_URL: url } });
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    await server.stop();
  });

  it('against a database without users says what is missing and ends with 1', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t, { auth: 'none' });
    const server = await serve(t, { database: db, wait: 'nothing' });
    const exit = await server.ended();
    assert.equal(exit.code, 1);
    assert.match(server.tail(), /auth\.users|probe_find_user/);
  });

  it('with a wrong password says so without showing it', async (t) => {
    const cluster = await Cluster.create(t, { tcp: true });
    const fs = await import('node:fs');
    fs.writeFileSync(`${cluster.data}/pg_hba.conf`, 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n');
    await cluster.admin("set password_encryption = 'scram-sha-256'; create role guarded login password 'right'");
    await cluster.admin('select pg_reload_conf()');
    const server = await serve(t, {
      env: { RECLAIM_DATABASE_URL: `postgresql://guarded:canary-password-94c2@127.0.0.1:${cluster.port}/postgres` },
      wait: 'nothing',
    });
    await until('a line about the password', () => /password authentication/.test(server.tail()));
    assert.ok(!server.tail().includes('canary-password'));
    if (!server.exit) server.signal('SIGTERM');
    await server.ended();
  });
});
