// Refusals from memory: no statement reaches the database, none outlives a reset, and none is given unless resets are
// being heard.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { behindProxy, conclusively, countOf, emailKey, from, fromMemory, ipKey, limitsOf, newClient } from './lib/limits.js';
import { address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { pause, Stage, stageOf, until } from './lib/stage.js';

describe('refusals from memory', () => {
  const stage = new Stage();
  const servers = [];
  let cluster, db;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    for (let n = 0; n < 2; n++) servers.push(await serve(stage, { database: db, env: behindProxy('2/3600') }));
  });
  after(() => stage.end());

  const ask = (server, client) => probe(server, address('nobody'), from(client));

  /** The server refuses this client, and does so without the database. */
  async function remembers(server, client) {
    await until('a refusal from memory', async () => {
      const earlier = await fromMemory(server);
      assert.equal((await ask(server, client)).status, 429);
      return (await fromMemory(server)) > earlier;
    });
  }

  /** A client that both instances refuse from memory. */
  async function refusedClient() {
    const client = newClient();
    assert.equal((await ask(servers[0], client)).status, 200);
    assert.equal((await ask(servers[1], client)).status, 200);
    for (const server of servers) await remembers(server, client);
    return client;
  }

  const limits = (t, ...args) =>
    run(t, ['limits', ...args], { database: db, env: { RECLAIM_LIMIT_PROBE: '2/3600', RECLAIM_LIMIT_EMAIL: 'off' } });

  const listeners = (sql) => db.query(`${sql} from pg_stat_activity where datname = current_database() and query ~ '^SELECT 1 AS one|^LISTEN'`);

  it('cost the database no statement', async (t) => {
    const client = await refusedClient();
    const file = path.join(cluster.home, 'log');
    const session = await db.session(t);
    await session.query("alter system set log_statement = 'all'");
    await session.query('select pg_reload_conf()');
    await until('statements logged', async () => {
      await ask(servers[0], newClient()); // one that the database decides
      return ['pg_locks', 'AS one', 'reclaim.admit'].every((part) => fs.readFileSync(file, 'utf8').includes(part));
    });
    const size = fs.statSync(file).size;
    const answers = await Promise.all(Array.from({ length: 300 }, (_, n) => ask(servers[n % 2], client)));
    await session.query("select 'the end of it'");
    const lines = fs.readFileSync(file, 'utf8').slice(size).split('\n');
    await session.query('alter system reset log_statement');
    await session.query('select pg_reload_conf()');
    assert.ok(answers.every(({ status }) => status === 429));
    const statements = lines.filter((line) => /statement: |execute [^:]*: /.test(line));
    const end = statements.findIndex((line) => line.includes('the end of it')); // the background goes on after it
    assert.notEqual(end, -1);
    const about = statements.slice(0, end).filter((line) => /reclaim\.(admit|rate_limit)|auth\.users|companies/.test(line));
    assert.deepEqual(about, [], 'nothing but what is done in the background');
  });

  it('are given while the database cannot decide at all', async () => {
    const client = await refusedClient();
    await db.query('alter function reclaim.admit_batch rename to admit_away');
    try {
      const undecided = await ask(servers[0], newClient());
      assert.equal(undecided.status, 503);
      assert.equal(limitsOf(undecided), null, 'nothing is known to be counted');
      for (const server of servers) {
        const answer = await ask(server, client);
        assert.equal(answer.status, 429);
        assert.deepEqual([limitsOf(answer).limit, limitsOf(answer).remaining], [2, 0]);
        assert.ok(limitsOf(answer).seconds > 3000);
      }
    } finally {
      await db.query('alter function reclaim.admit_away rename to admit_batch');
    }
  });

  it('`reclaim limits reset` reaches every instance, and `show` tells the count', async (t) => {
    const client = await refusedClient();
    const other = await refusedClient();
    const shown = await limits(t, 'show', `ip:${client}`);
    assert.equal(shown.code, 0, shown.stderr);
    assert.match(shown.stdout, /^probe +2 of 2 in 3600 s, 0 left, one more in 3[56]\d\d s$/m);
    assert.match(shown.stdout, /^ip +0 of 5 in 60 s, 5 left$/m);

    const neighbour = client.replace('::1', ':a:b:c:d'); // of the same /64
    const reset = await limits(t, 'reset', `ip:${neighbour}`);
    assert.deepEqual([reset.code, reset.stdout], [0, 'reset\n'], reset.stderr);
    assert.equal(await countOf(db, ipKey('probe', client)), 0);
    for (const server of servers) await until('let in again', async () => (await ask(server, client)).status === 200);
    assert.match((await limits(t, 'show', `ip:${client}`)).stdout, /^probe +2 of 2 /m);
    for (const server of servers) assert.equal((await ask(server, other)).status, 429, 'another client stays refused');
  });

  it('`reclaim limits` knows addresses as they are counted, everyone together, and what is off', async (t) => {
    const email = address('limited');
    await db.query("insert into reclaim.rate_limits values ('global', now(), 7), ($1, now(), 2), ($2, now(), 1)", [
      emailKey('email', email),
      emailKey('email-validate', email),
    ]);
    const hour = { database: db, env: { RECLAIM_LIMIT_GLOBAL: '1000/3600', RECLAIM_LIMIT_EMAIL: '3/3600', RECLAIM_LIMIT_LOGIN: 'off' } };
    assert.equal((await run(t, ['limits', 'show', 'global'], hour)).stdout, 'global           7 of 1000 in 3600 s, 993 left\nglobal-validate  0 of 1000 in 3600 s, 1000 left\n');
    assert.match((await limits(t, 'show', `email:${email}`)).stdout, /^email +off\nemail-validate +off\n/);
    const shown = await run(t, ['limits', 'show', `email: ${email.toUpperCase()}`], hour);
    const told = 'email            2 of 3 in 3600 s, 1 left\nemail-validate   1 of 3 in 3600 s, 2 left\nlogin-address    off\ncode             0 of 3 in 3600 s, 3 left\n';
    assert.equal(shown.stdout, told, shown.stderr);
    for (const key of [`email:${email}`, 'global']) assert.equal((await limits(t, 'reset', key)).code, 0);
    assert.deepEqual(await db.query("select * from reclaim.rate_limits where key ~ '^(global|email)'"), []);
  });

  for (const args of [[], ['show'], ['reset'], ['clear', 'global'], ['show', 'ip:nonsense'], ['reset', 'email:nonsense'], ['show', 'nonsense']])
    it(`\`reclaim limits ${args.join(' ')}\` is told to be of no use, and resets nothing`, async (t) => {
      const told = await limits(t, ...args);
      assert.equal(told.code, 2, told.stderr);
      assert.equal(told.stdout, '');
      assert.match(told.stderr, /ip:ADDRESS, email:ADDRESS or global/);
    });

  it('`reclaim limits` with another key than the database’s refuses, since it would count others', async (t) => {
    const client = await refusedClient();
    for (const verb of ['show', 'reset']) {
      const told = await run(t, ['limits', verb, `ip:${client}`], { database: db, env: { RECLAIM_SECRET_KEY: 'another-canary-key-of-more-than-32-characters' } });
      assert.deepEqual([told.code, told.stdout], [1, ''], `${verb}: ${told.stderr}`);
      assert.match(told.stderr, /RECLAIM_SECRET_KEY/);
    }
  });

  /** Until the scope ends, the database does what `body` says between a decision and its answer. */
  async function slowAnswer(scope, body) {
    await db.query('alter function reclaim.admit_batch rename to admit_soon');
    await db.query(`create function reclaim.admit_batch(text[], integer[], integer[], integer[], integer, integer, integer, out admitted boolean[], out counts integer[], out leaves_us bigint[],
        out waits_us bigint[]) language plpgsql as $$
      begin
        select a.* into admitted, counts, leaves_us, waits_us from reclaim.admit_soon($1, $2, $3, $4, $5, $6, $7) a;
        ${body};
      end $$`);
    stageOf(scope).after(async () => {
      await db.query('drop function reclaim.admit_batch');
      await db.query('alter function reclaim.admit_soon rename to admit_batch');
    });
  }

  it('a reset while the database decides is not overruled by what it decided', async (t) => {
    await db.query('create table public.stalled ()');
    await slowAnswer(t, 'while exists (select from public.stalled) loop perform pg_sleep(0.01); end loop');
    await conclusively(async () => {
      const client = newClient();
      assert.equal((await ask(servers[0], client)).status, 200);
      assert.equal((await ask(servers[0], client)).status, 200);
      await db.query('insert into public.stalled default values');
      const refusal = ask(servers[1], client); // it is decided; the answer is not there yet
      await until('the decision under way', async () => {
        const [{ n }] = await db.query("select count(*)::int as n from pg_stat_activity where wait_event = 'PgSleep'");
        return n > 0;
      });
      const reset = limits(t, 'reset', `ip:${client}`); // may wait until the decision is made
      await Promise.race([reset, pause(1000)]);
      await pause(200); // for those who are told
      await db.query('delete from public.stalled');
      assert.equal((await reset).code, 0);
      if ((await refusal).status === 503) return false; // it took too long
      return until('let in again', async () => (await ask(servers[1], client)).status === 200, 10_000);
    });
  });

  it('are not given while resets cannot be heard, and start afresh once they can', async () => {
    const client = await refusedClient();
    await db.query('delete from reclaim.rate_limits where key = $1', [ipKey('probe', client)]);
    for (const server of servers) assert.equal((await ask(server, client)).status, 429, 'a deletion that nobody was told of');

    await cluster.admin(`alter database "${db.name}" with allow_connections false`); // the pool's connections stay
    try {
      assert.equal((await listeners('select count(pg_terminate_backend(pid, 10000))::int as n'))[0].n, 4, 'two at each instance: for resets and for work');
      for (const server of servers) await until('let in by the database', async () => (await ask(server, client)).status === 200);
      const earlier = await Promise.all(servers.map(fromMemory));
      for (const server of servers) for (let n = 0; n < 5; n++) assert.equal((await ask(server, client)).status, 429);
      assert.deepEqual(await Promise.all(servers.map(fromMemory)), earlier, 'each of them was decided by the database');
      await db.query('delete from reclaim.rate_limits where key = $1', [ipKey('probe', client)]); // nobody hears of it
    } finally {
      await cluster.admin(`alter database "${db.name}" with allow_connections true`);
    }
    await until('all listen again', async () => (await listeners('select count(*)::int as n'))[0].n === 4);
    for (const server of servers) {
      await until('a listener that is heard of', () => server.events('listener connected').length === 4);
      assert.equal((await ask(server, client)).status, 200, 'what was learnt while deaf is forgotten');
    }
    for (const server of servers) await remembers(server, client);
  });

  it('are not given when the listener’s session hangs', async (t) => {
    const client = await refusedClient();
    const hung = (await listeners('select pid')).map(({ pid }) => pid);
    assert.equal(hung.length, 4);
    const signal = (name) => hung.forEach((pid) => process.kill(pid, name));
    signal('SIGSTOP');
    try {
      await db.query('delete from reclaim.rate_limits where key = $1', [ipKey('probe', client)]);
      for (const server of servers) await until('let in by the database', async () => (await ask(server, client)).status === 200);
    } finally {
      signal('SIGCONT');
    }
    t.diagnostic(`${hung.length} sessions hung`);
  });

  it('end with the window, however long the database took to answer', async (t) => {
    const hasty = await serve(t, { database: db, env: behindProxy('1/1') });
    await slowAnswer(t, 'perform pg_sleep(1.5)');
    await conclusively(async () => {
      const client = newClient();
      if ((await ask(hasty, client)).status === 503) return false; // it took too long
      const [{ counted }] = await db.query(
        "select exists (select from reclaim.rate_limits where key = $1 and last_at > clock_timestamp() - '1 s'::interval) as counted",
        [ipKey('probe', client)],
      );
      assert.equal(counted, false);
      const answer = await ask(hasty, client);
      if (answer.status === 503) return false;
      assert.equal(answer.status, 200, `nothing is counted any more, yet: ${answer.body}`);
      return true;
    });
  });
});
