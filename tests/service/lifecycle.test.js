// Signals: answers already promised are given before the end, and settings can change without one.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { ops, post, probe, probePath, request } from './lib/http.js';
import { metric } from './lib/limits.js';
import { addUser, address } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { RawConnection, rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage, stageOf, until } from './lib/stage.js';

const held = async (server) => Number(/^reclaim_http_held (\S+)$/m.exec((await ops(server, '/metrics')).body)[1]);

describe('the end', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
  });
  after(() => stage.end());

  for (const signal of ['SIGTERM', 'SIGINT'])
    it(`by ${signal} gives every answer that is under way, held ones at their time`, async (t) => {
      const user = await addUser(db);
      const server = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '4000' } });
      const under = Array.from({ length: 100 }, () => probe(server, user.email));
      await until('all of them held', async () => (await held(server)) === 100);
      server.signal(signal);
      for (const answer of await Promise.all(under)) {
        assert.equal(answer.status, 200);
        assert.equal(answer.json.data.isOrphaned, true);
        assert.ok(answer.answeredAt - answer.sentAt >= 2000, 'not even now does it leave early');
      }
      assert.deepEqual(await server.ended(), { code: 0, signal: null });
    });

  it('is announced: not ready, draining, while the answers go out', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '3000' } });
    const under = probe(server, address('nobody'));
    await until('held', async () => (await held(server)) === 1);
    server.signal('SIGTERM');
    const draining = await until('not ready', async () => {
      const answer = await ops(server, '/readyz');
      return answer.status === 503 && answer;
    });
    assert.equal(draining.json.status, 'draining');
    assert.equal((await ops(server, '/livez')).status, 200);
    assert.equal((await under).status, 200);
    assert.equal((await server.ended()).code, 0);
  });

  it('is for a connection that waits for nothing the end at once', async (t) => {
    const server = await serve(t, { database: db });
    const connection = await RawConnection.open(server);
    connection.send(rawPost(JSON.stringify({ email: address('nobody') })));
    await connection.answer(1);
    server.signal('SIGTERM');
    await connection.untilClosed();
    connection.destroy();
    assert.equal((await server.ended()).code, 0);
  });

  it('is not put off by a client that never finishes its request', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_DRAIN: '2s' } });
    const dawdler = await RawConnection.open(server);
    dawdler.send(`POST ${probePath} HTTP/1.1\r\nHost: reclaim.example.com\r\nContent-Length: 1000\r\n\r\n{`);
    await until('its connection accepted', async () => (await metric(server, 'reclaim_http_connections')) === 1);
    server.signal('SIGTERM');
    assert.equal((await server.ended()).signal, null, 'it ended by itself');
    dawdler.destroy();
  });

  it('lets new connections go elsewhere', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '4000' } });
    const under = probe(server, address('nobody'));
    await until('held', async () => (await held(server)) === 1);
    server.signal('SIGTERM');
    await until('no new connection accepted', async () => {
      try {
        const connection = await RawConnection.open(server);
        connection.destroy();
        return false;
      } catch (fault) {
        return fault.code === 'ECONNREFUSED';
      }
    });
    assert.equal((await under).status, 200);
    await server.ended();
  });

  it('leaves no session in the database', async (t) => {
    const server = await serve(t, { database: db });
    await probe(server, address('nobody'));
    await server.stop();
    await until('no session of it left', async () => {
      const [{ n }] = await db.query(`select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name like 'reclaim%'`);
      return n === 0;
    });
  });
});

describe('SIGHUP', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
  });
  after(() => stage.end());

  async function serveWith(t, text) {
    const file = path.join(temporaryDirectory(stageOf(t)), 'reclaim.ini');
    fs.writeFileSync(file, text, { mode: 0o600 });
    const server = await serve(t, { database: db, args: ['--config', file], env: { RECLAIM_PROBE_HOLD_MS: undefined } });
    let reloads = 0;
    return {
      server,
      reload: async (fresh, event = 'settings reloaded') => {
        fs.writeFileSync(file, fresh, { mode: 0o600 });
        server.signal('SIGHUP');
        reloads++;
        await until('the settings read', () => server.lines.filter((line) => line.event.includes('reload')).length === reloads);
        return server.lines.filter((line) => line.event.includes('reload')).at(-1);
      },
    };
  }

  it('brings in a new hold and new origins, without losing a request', async (t) => {
    const { server, reload } = await serveWith(t, 'RECLAIM_PROBE_HOLD_MS=4000\n');
    const under = probe(server, address('nobody'));
    await until('held', async () => (await held(server)) === 1);
    await reload('RECLAIM_PROBE_HOLD_MS=700\nRECLAIM_CORS_ORIGINS=https://app.example.com\n');
    const answer = await probe(server, address('nobody'), { headers: { Origin: 'https://app.example.com' } });
    assert.ok(answer.answeredAt - answer.sentAt >= 700);
    assert.equal(answer.headers['access-control-allow-origin'], 'https://app.example.com');
    const first = await under;
    assert.equal(first.status, 200);
    assert.ok(first.answeredAt - first.sentAt >= 4000, 'a request keeps the hold it was given');
    await server.stop();
  });

  it('with a wrong value keeps the old settings and says so', async (t) => {
    const { server, reload } = await serveWith(t, 'RECLAIM_PROBE_HOLD_MS=600\n');
    const line = await reload('RECLAIM_PROBE_HOLD_MS=soon\n');
    assert.equal(line.level, 'error');
    assert.ok(JSON.stringify(line).includes('RECLAIM_PROBE_HOLD_MS'));
    const answer = await probe(server, address('nobody'));
    assert.ok(answer.answeredAt - answer.sentAt >= 600);
    await server.stop();
  });

  it('warns that what needs a restart stays as it was', async (t) => {
    const { server, reload } = await serveWith(t, 'RECLAIM_PROBE_HOLD_MS=0\n');
    await reload('RECLAIM_PROBE_HOLD_MS=0\nRECLAIM_CONTRACT=registration-recovery\n');
    assert.equal((await post(server, 'x')).json.error.code, 'ORPHAN_CLEANUP_007');
    await server.line('a warning about RECLAIM_CONTRACT', (line) => line.level === 'warn' && JSON.stringify(line).includes('RECLAIM_CONTRACT'));
    await server.stop();
  });

  it('a hundred times under load loses nothing', async (t) => {
    const { server } = await serveWith(t, 'RECLAIM_PROBE_HOLD_MS=50\n');
    let going = true;
    const load = Array.from({ length: 10 }, async () => {
      while (going) assert.equal((await probe(server, address('nobody'))).status, 200);
    });
    for (let n = 1; n <= 100; n++) {
      server.signal('SIGHUP');
      await until('the settings read again', () => server.events('settings reloaded').length === n);
    }
    going = false;
    await Promise.all(load);
    assert.equal((await request(server, { path: '/openapi.json' })).status, 200);
    await server.stop();
  });
});
