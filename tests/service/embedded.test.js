// Without RECLAIM_DATABASE_URL the server makes and runs a PostgreSQL of its own, and never leaves it behind.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { clusterProcesses, connectTo, keepServerLog, postmasterOf } from './lib/embedded.js';
import { ops, probe } from './lib/http.js';
import { addCompany, addUser } from './lib/people.js';
import { isRoot, temporaryDirectory } from './lib/place.js';
import { asPostgres } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, stageOf, until } from './lib/stage.js';

const gone = (data) => until('every process of the cluster gone', () => clusterProcesses(data).length === 0);

/** What the server said about its cluster. */
const said = (server) => server.lines.map((line) => line.event).filter((event) => /cluster/.test(event));

/** TCP ports that the processes listen on. */
function listeningPorts(pids) {
  const sockets = new Set();
  for (const pid of pids)
    for (const fd of fs.readdirSync(`/proc/${pid}/fd`)) {
      try {
        sockets.add(/^socket:\[(\d+)\]$/.exec(fs.readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1]);
      } catch {
        // closed meanwhile
      }
    }
  const ports = [];
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6'])
    for (const line of fs.readFileSync(table, 'utf8').trim().split('\n').slice(1)) {
      const fields = line.trim().split(/\s+/);
      if (fields[3] === '0A' && sockets.has(fields[9])) ports.push(fields[1]);
    }
  return ports;
}

describe('the private cluster', () => {
  it('is made, serves probes, and is gone with the server, a line said each time; its data stays', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    let server = await serve(t, { directory });
    const { data, pid } = postmasterOf(server);
    const db = await connectTo(t, data);
    const orphan = await addUser(db);
    const owner = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    await addCompany(db, owner);
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    assert.equal((await probe(server, owner.email)).json.data.isOrphaned, false);
    if (isRoot) assert.equal(fs.statSync(`/proc/${pid}`).uid, asPostgres.uid, 'PostgreSQL runs as the user postgres');
    assert.deepEqual(listeningPorts(clusterProcesses(data)), [], 'no TCP port');
    await server.stop();
    assert.deepEqual(clusterProcesses(data), []);
    assert.deepEqual(said(server), ['database cluster made', 'database cluster started', 'database cluster stopped']);

    server = await serve(t, { directory });
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true, 'the data is there again');
    await server.stop();
    assert.deepEqual(said(server), ['database cluster started', 'database cluster stopped']);
    keepServerLog(data);
  });

  it('does not outlive a kill -9 of the server, and the next start finds the data', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    let orphan;
    for (let round = 0; round < 3; round++) {
      const server = await serve(t, { directory });
      const { data } = postmasterOf(server);
      const db = await connectTo(t, data);
      if (orphan) assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
      orphan = await addUser(db);
      const load = Array.from({ length: 10 }, () => probe(server, orphan.email).catch(() => {}));
      await server.kill9();
      await Promise.all(load);
      if (round === 2) await gone(data); // the other rounds start again while it is still going
    }
    const server = await serve(t, { directory });
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    await server.stop();
  });

  it('does not outlive a server killed while it starts', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    for (const delay of [20, 300, 900]) {
      const server = await serve(t, { directory, wait: 'nothing' });
      await new Promise((resolve) => setTimeout(resolve, delay));
      await server.kill9();
    }
    await until('nothing left in the directory', () => clusterProcesses(fs.realpathSync(directory)).length === 0);
    const server = await serve(t, { directory });
    assert.equal((await probe(server, 'nobody@canary-reclaim.example.com')).status, 200);
    await server.stop();
  });

  describe('of a server that runs', () => {
    const stage = new Stage();
    let directory, server, db, orphan;
    before(async () => {
      directory = temporaryDirectory(stage);
      server = await serve(stage, { directory });
      db = await connectTo(stage, postmasterOf(server).data);
      orphan = await addUser(db, { created: '2020-01-01T00:00:00Z' });
    });
    after(() => stage.end());

    it('belongs to it: a second one on the same directory is refused in clear words', async (t) => {
      const second = await run(t, ['serve'], { directory, env: { RECLAIM_LISTEN: '127.0.0.1:0', RECLAIM_OPS_LISTEN: '127.0.0.1:0' } });
      assert.equal(second.code, 1);
      const lines = second.stderr.trim().split('\n');
      assert.equal(lines.length, 1, second.stderr);
      assert.ok(lines[0].includes(path.join(directory, 'data')), lines[0]);
      assert.ok(lines[0].includes(String(server.pid)), `${lines[0]} does not tell who owns it`);
      assert.equal((await probe(server, orphan.email)).status, 200, 'the first one is untouched');
    });

    it('is there for commands beside it', async (t) => {
      const { code, stdout, stderr } = await run(t, ['orphans', '--format', 'csv'], { directory });
      assert.equal(code, 0, stderr);
      assert.ok(stdout.includes(orphan.id));
    });

    it('heals after kill -9 of the postmaster, again and again, without a restart', async () => {
      for (let round = 0; round < 2; round++) {
        const earlier = await until('a postmaster', () => postmasterOf(server));
        process.kill(earlier.pid, 'SIGKILL');
        await until('another postmaster', () => {
          const now = postmasterOf(server);
          return now && now.pid !== earlier.pid;
        });
        await until('a probe answered', async () => (await probe(server, orphan.email)).status === 200);
        await until('ready', async () => (await ops(server, '/readyz')).status === 200);
        assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
      }
      assert.equal(server.events('database cluster died').length, 2);
    });

    it('is there for commands without it, and no longer than they take', async (t) => {
      const { data } = postmasterOf(server);
      await server.stop();
      const { code, stdout, stderr } = await run(t, ['orphans', '--format', 'csv'], { directory });
      assert.equal(code, 0, stderr);
      assert.ok(stdout.includes(orphan.id));
      assert.deepEqual(clusterProcesses(data), [], 'the command took the cluster down again');
    });
  });

  it('works in a directory with a long name and spaces', async (t) => {
    const directory = path.join(temporaryDirectory(stageOf(t)), `a folder, ${'very '.repeat(30)}long 'quoted' name`);
    fs.mkdirSync(directory);
    const server = await serve(t, { directory });
    assert.equal((await probe(server, 'nobody@canary-reclaim.example.com')).status, 200);
    await server.stop();
  });

  it('works as root in a directory that the user postgres cannot enter', { skip: !isRoot && 'only root is somebody else' }, async (t) => {
    const directory = temporaryDirectory(stageOf(t), 0o700);
    const server = await serve(t, { directory });
    const { data } = postmasterOf(server);
    stageOf(t).after(() => {
      if (!data.startsWith(directory)) fs.rmSync(path.dirname(data), { recursive: true, force: true });
    });
    assert.equal((await probe(server, 'nobody@canary-reclaim.example.com')).status, 200);
    await server.stop();
  });

  it('is filled with people by --demo, once, in every state of the matrix', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const count = async (server) => {
      const db = await connectTo(t, postmasterOf(server).data);
      const [{ n }] = await db.query('select count(*)::int as n from auth.users');
      const states = await db.query(
        `select distinct u.email_confirmed_at is not null as verified,
                exists (select 1 from companies c where c.owner_admin_uuid = u.id)
                or exists (select 1 from company_admins a where a.admin_uuid = u.id) as complete
         from auth.users u where not is_sso_user and deleted_at is null`,
      );
      await db.end();
      return { n, states: states.length };
    };
    let server = await serve(t, { directory, args: ['--demo'] });
    const first = await count(server);
    assert.ok(first.n >= 5);
    assert.equal(first.states, 4);
    await until('the greeting', () => server.output.includes('curl'));
    const { host, port } = server.address('public');
    assert.ok(server.output.includes(`http://${host}:${port}`), server.output);
    await server.stop();
    server = await serve(t, { directory, args: ['--demo'] });
    assert.deepEqual(await count(server), first);
    await server.stop();
  });

  it('leaves a port that is taken alone, and itself not behind', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const taken = net.createServer();
    await new Promise((resolve) => taken.listen(0, '127.0.0.1', resolve));
    stageOf(t).after(() => new Promise((resolve) => taken.close(resolve)));
    const refused = await run(t, ['serve'], { directory, env: { RECLAIM_LISTEN: `127.0.0.1:${taken.address().port}`, RECLAIM_OPS_LISTEN: '127.0.0.1:0' } });
    assert.equal(refused.code, 1);
    assert.ok(refused.stderr.includes(String(taken.address().port)), refused.stderr);
    assert.equal(clusterProcesses(fs.realpathSync(directory)).length, 0);
  });
});
