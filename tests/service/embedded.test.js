// Without RECLAIM_DATABASE_URL the server makes and runs a PostgreSQL of its own, and never leaves it behind.
// takes long

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { clusterProcesses, connectTo, keepServerLog, postmasterOf } from './lib/embedded.js';
import { ops, probe, request } from './lib/http.js';
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

  it('is never made by a command: without a URL and a cluster each says what to set, and leaves no file', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const id = '00000000-0000-4000-8000-000000000000';
    for (const args of [['orphans'], ['trace', id], ['show', id], ['freeze', id], ['locks'], ['limits', 'show', 'global'], ['key', 'list'], ['expire'], ['migrate'], ['doctor']]) {
      const { code, stdout, stderr } = await run(t, args, { directory, env: { RECLAIM_SECRET_KEY: undefined } });
      assert.equal(code, 1, args.join(' '));
      assert.match(stdout + stderr, /there is no database: RECLAIM_DATABASE_URL is not set.*RECLAIM_DATA_DIR/, args.join(' '));
      assert.equal((stdout + stderr).includes('RECLAIM_SECRET_KEY'), false, 'one reason, not two');
      assert.deepEqual(fs.readdirSync(directory), [], args.join(' '));
    }
    fs.mkdirSync(path.join(directory, 'data'));
    assert.equal((await run(t, ['orphans'], { directory })).code, 1, 'an empty data directory is no cluster');
    assert.deepEqual(fs.readdirSync(path.join(directory, 'data')), []);
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

  it('starts --demo again whatever was tried in it', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const start = () => serve(t, { directory, args: ['--demo'] });
    const id = (letter, number) => `${letter}0000000-0000-4000-8000-000000000${number}`;
    let server = await start();
    let db = await connectTo(t, postmasterOf(server).data);
    const { json } = await request(server, { method: 'POST', path: '/auth/login', headers: { 'Content-Type': 'application/json' }, body: '{"email":"ada@example.com","password":"demo-password"}' });
    const own = { Authorization: `Bearer ${json.token}`, 'Content-Type': 'application/json' };
    assert.equal((await request(server, { method: 'POST', path: '/auth/unregister', headers: own, body: '{"password":"demo-password"}' })).status, 200);
    const token = await run(t, ['token', '--role', 'admin', '--ttl', '1h'], { directory });
    const admin = { Authorization: `Bearer ${token.stdout.trim()}` };
    assert.equal((await request(server, { path: '/v1/sandbox/clock', headers: admin })).json.sandbox, true, 'it is a sandbox');
    for (const number of [102, 103]) assert.equal((await request(server, { method: 'DELETE', path: `/v1/customers/${id('e', number)}`, headers: admin })).status, 200);
    for (const [sql, ...values] of [
      [`delete from reclaim.customer_customers where id = $1`, id('e', 103)], // deleted, and removed
      [`delete from reclaim.customer_customers where id = any($1)`, [id('e', 104), id('e', 105)]], // removed in one step
      [`delete from public.companies where id = any($1)`, [id('c', 105), id('c', 106)]],
      [`delete from auth.users where id = $1`, id('d', 105)],
      [`insert into auth.users (email) values ('dario@example.com')`], // 105's address
      [`update reclaim.customer_customers set billing_account_id = null where id = $1`, id('e', 107)],
      [`delete from reclaim.billing_accounts where customer_id = any($1)`, [id('e', 107), id('e', 108), id('e', '004')]],
      [`update reclaim.customer_customers set owner_user_id = null where id = $1`, id('e', 109)],
      [`insert into reclaim.customer_customers (name, owner_user_id) values ('another', $1)`, id('d', 109)],
      [`update reclaim.customer_customers set status = 'frozen' where id = $1`, id('e', 110)],
      [`insert into public.companies (owner_admin_uuid) values ($1)`, id('d', 104)],
      [`update auth.users set email = 'other@example.com' where id = $1`, id('d', 111)],
      [`drop table demo.number_numbers`],
      [`delete from reclaim.cascade_participants where name = 'queue'`],
      [`update reclaim.installation set clock_shift = '400 days'`],
    ])
      await db.query(sql, values);
    await db.end();
    await server.stop();
    server = await start();
    db = await connectTo(t, postmasterOf(server).data);
    const ids = async (sql) => (await db.query(sql)).map((row) => row.id);
    assert.ok((await ids('select id from public.companies')).includes(id('c', 106)), 'what is missing is there again');
    const customers = await ids('select id from reclaim.customer_customers');
    assert.deepEqual([102, 103, 104].filter((number) => customers.includes(id('e', number))), [102], 'what was deleted is not');
    await db.query(`insert into reclaim.customer_customers (id, name) values ($1, 'again')`, [id('e', 104)]);
    assert.equal((await request(server, { method: 'POST', path: `/v1/customers/${id('e', 104)}/freeze`, headers: admin })).status, 200);
    for (const table of ['auth.users', 'public.companies', 'public.company_admins', 'reclaim.customer_customers', 'reclaim.billing_accounts', 'demo.tag_tags']) {
      await db.query(`alter table ${table} add column extra text not null default ''`);
      await db.query(`alter table ${table} alter column extra drop default`);
    }
    for (const sql of [
      `alter table demo.agent_agents drop column name`,
      `drop table demo.flow_flows`,
      `create view demo.flow_flows as select 1 as one`,
      `delete from reclaim.customer_customers`,
      `delete from public.companies`,
      `delete from auth.users where id <> '${id('d', 101)}'`,
    ])
      await db.query(sql);
    await db.end();
    await server.stop();
    server = await start();
    assert.equal((await ops(server, '/readyz')).status, 200);
    await server.line('the warning', (line) => line.level === 'warn' && /demo/.test(line.event));
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
