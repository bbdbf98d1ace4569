// The journal outside the database: every instance has all lines, a damaged or foreign one is refused with its place, and a database that lacks
// lines was restored, whichever instance has them.
// takes long

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, randomBytes, sign } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { dumpOf } from './lib/backups.js';
import { addCustomer, addKey, asKey, env, freeze, recover } from './lib/customers.js';
import { addServices, erased, eraseSomeone, fillServices, ledger, remove, statusOf } from './lib/erasure.js';
import { gate } from './lib/gate.js';
import { ops } from './lib/http.js';
import { dateBack, filesOf, folderOf, linesIn, readyz, saidIn, says, textOf } from './lib/journal.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { run, serve } from './lib/reclaim.js';
import { pause, Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const linesOf = async (db) => (await db.query(`select coalesce(string_agg(line || E'\\n', '' order by id), '') as text from reclaim.journal_lines`))[0].text;

const wasFilled = 'the journal was empty: it was filled from the database';

/** Has journals looked at now, not in a minute: a lost connection could mean another database. */
const loseConnections = (db) => db.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'reclaim'`);

/** A database, and homes of instances. What they start ends with the scope: the cluster has room for some only. */
async function prepare(scope) {
  const db = await cluster.database(scope);
  assert.equal((await run(scope, ['migrate'], { database: db })).code, 0);
  await addServices(scope, db, ['contact']);
  const homes = [temporaryDirectory(scope), temporaryDirectory(scope)];
  return {
    db,
    homes,
    start: (n = 0, more = {}) => serve(scope, { database: db, env, directory: homes[n], ...more }),
    run: (args, n = 0) => run(scope, args, { database: db, directory: homes[n] }),
  };
}

describe('a journal', () => {
  const own = new Stage();
  after(() => own.end());
  let scene, servers, customer;
  before(async () => {
    scene = await prepare(own);
    servers = [await scene.start(0)];
    customer = await eraseSomeone(scene.db, servers[0]);
  });

  it('lists who was erased, in ids and hashes, and the heads of the sealed log', () => {
    const lines = saidIn(scene.homes[0]);
    const line = lines.find(({ kind }) => kind === 'erasure');
    assert.equal(line.customer, customer.id);
    assert.deepEqual(line.users, [customer.user.id]);
    assert.match(line.keyed_address, /^[0-9a-f]{64}$/);
    assert.ok(lines.some(({ kind }) => kind === 'head'));
    for (const personal of [customer.email, customer.user.email, customer.name]) assert.ok(!textOf(scene.homes[0]).includes(personal), personal);
  });

  it('is for its owner alone', () => {
    for (const at of [folderOf(scene.homes[0]), ...filesOf(scene.homes[0])]) assert.equal(fs.statSync(at).mode & 0o077, 0, at);
  });

  it('is filled when it is empty, and gets what others write within a minute', async () => {
    servers.push(await scene.start(1));
    assert.ok(textOf(scene.homes[1]).includes(customer.id));
    assert.deepEqual(servers.map((server) => server.events(wasFilled).length), [0, 1]);
    const next = await eraseSomeone(scene.db, servers[0]);
    await until('the line copied', () => textOf(scene.homes[1]).includes(next.id), 75_000);
    const text = await linesOf(scene.db);
    for (const home of scene.homes) assert.ok(text.startsWith(textOf(home).slice(0, 200)));
    for (const n of [0, 1]) assert.equal((await scene.run(['journal', 'verify'], n)).code, 0);
  });

  it('is exported, verified and compared', async () => {
    const file = path.join(scene.homes[0], 'exported.jsonl');
    assert.equal((await scene.run(['journal', 'export', file])).code, 0);
    assert.ok((await linesOf(scene.db)).startsWith(fs.readFileSync(file, 'utf8')));
    assert.match((await scene.run(['journal', 'verify', file])).stdout, /all signed and in order: 2 erasures/);
    assert.match((await scene.run(['journal', 'import', file])).stdout, /has every line/);
    const again = await scene.run(['journal', 'export', file]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /must not exist yet/);
    assert.equal((await scene.run(['journal', 'import', path.join(scene.homes[0], 'nothing')])).code, 1);
    assert.match((await scene.run(['replay-erasures'])).stdout, /nothing to replay/);
  });

  it('that cannot be written keeps erasures from being complete, and says so', async () => {
    const obstacle = path.join(folderOf(scene.homes[0]), '00009999.jsonl');
    fs.mkdirSync(obstacle);
    const other = await addCustomer(scene.db);
    await servers[1].stop(); // it might lead
    servers.pop();
    assert.equal((await remove(servers[0], other.id)).status, 200);
    await servers[0].line('the journal cannot be written', ({ event }) => /the journal cannot be written/.test(event));
    assert.equal((await ledger(servers[0], other.id)).json.status, 'pending');
    assert.match((await ops(servers[0], '/metrics')).body, /^reclaim_journal_failing 1$/m);
    fs.rmdirSync(obstacle);
    await erased(servers[0], other);
    assert.match((await ops(servers[0], '/metrics')).body, /^reclaim_journal_failing 0$/m);
  });

  it('that was removed under a running server is filled again, and the log says so', async () => {
    for (const file of filesOf(scene.homes[0])) fs.rmSync(file);
    await loseConnections(scene.db);
    await servers[0].line('filled', ({ event }) => event === wasFilled);
    assert.ok(textOf(scene.homes[0]).includes(customer.id));
  });

  it('is put back in order after a line without its end', async () => {
    await servers[0].kill9();
    fs.appendFileSync(filesOf(scene.homes[0]).at(-1), '{"v":1,"kind":"era');
    servers = [await scene.start(0)];
    assert.equal((await scene.run(['journal', 'verify'])).code, 0);
  });
});

describe('a journal of more than RECLAIM_BACKUP_RETENTION', () => {
  const own = new Stage();
  after(() => own.end());
  let scene, ages;
  const dayMs = 86_400_000;
  const customersIn = (lines) => lines.map((line) => JSON.parse(line.split('\t')[0])).filter(({ kind }) => kind === 'erasure').map(({ customer }) => customer);
  const inDatabase = async () => customersIn((await linesOf(scene.db)).split('\n').slice(0, -1));

  /** 35 days, which is what backups are kept by default, have passed since one file was last written to, but not a day more since all of its lines. */
  before(async () => {
    scene = await prepare(own);
    const server = await scene.start();
    ages = new Map();
    for (const days of [36.5, 35.2, 34.5, 0]) ages.set((await eraseSomeone(scene.db, server)).id, days);
    await server.withoutConnections();
    await server.stop();
    let days;
    const lines = await dateBack(scene.db, ({ customer }) => (days = ages.get(customer) ?? days ?? 36.5));
    const daysOf = (line) => (Date.now() / 1000 - JSON.parse(line.split('\t')[0]).at) / 86_400;
    for (const file of filesOf(scene.homes[0])) fs.rmSync(file);
    for (const [n, [from, to]] of [[100, 35], [35, 34], [34, -1]].entries()) {
      const file = path.join(folderOf(scene.homes[0]), `0000000${n + 1}.jsonl`);
      const own = lines.filter((line) => daysOf(line) < from && daysOf(line) >= to);
      fs.writeFileSync(file, own.map((line) => `${line}\n`).join(''));
      const written = new Date(Date.now() - Math.min(...own.map(daysOf)) * dayMs);
      fs.utimesSync(file, written, written);
    }
    assert.equal((await scene.run(['journal', 'verify'])).code, 0);
    fs.cpSync(folderOf(scene.homes[0]), folderOf(scene.homes[1]), { recursive: true, preserveTimestamps: true }); // of an instance that does not run
  });

  it('loses what is older, in its files and in the database', async () => {
    const server = await scene.start();
    const [oldest, old, ...others] = ages.keys();
    await until('removed from the database', async () => !(await inDatabase()).includes(oldest));
    assert.deepEqual(await inDatabase(), [old, ...others], 'which keeps a day more: files are removed as a whole');
    await loseConnections(scene.db);
    await until('a file removed', () => filesOf(scene.homes[0]).length === 2);
    assert.deepEqual(customersIn(linesIn(scene.homes[0])), others);
    assert.equal((await scene.run(['journal', 'verify'])).code, 0);
    await server.withoutConnections();
    await server.stop();
  });

  it('loses nothing while the clock of the machine is wrong', async () => {
    const server = await scene.start(0, { env: { ...env, RECLAIM_TEST_CLOCK_AHEAD_DAYS: '1000' } });
    const before = filesOf(scene.homes[0]).length;
    assert.ok(before > 1);
    await until('connected', () => server.events('frozen customers loaded').length === 1);
    await loseConnections(scene.db);
    await until('connected again', () => server.events('frozen customers loaded').length === 2);
    await pause(1500); // a look
    assert.equal(filesOf(scene.homes[0]).length, before);
    await server.withoutConnections();
    await server.stop();
  });

  it('misses nothing of it afterwards, at that start and at the next, nor where a journal still has it', async () => {
    for (const n of [1, 0, 0]) {
      const server = await scene.start(n);
      assert.equal(await readyz(server), 'ready');
      ages.set((await eraseSomeone(scene.db, server)).id, 0);
      assert.equal((await scene.db.query('select restored_at from reclaim.installation'))[0].restored_at, null);
      await server.withoutConnections();
      await server.stop();
      for (const id of [...ages.keys()].slice(2)) assert.ok(customersIn(linesIn(scene.homes[n])).includes(id));
    }
  });

  it('is as sound afterwards as before, without what was removed', async () => {
    const verified = await scene.run(['journal', 'verify']);
    assert.equal(verified.code, 0, verified.stderr);
    assert.deepEqual(customersIn(linesIn(scene.homes[0])), [...ages.keys()].slice(2));
    const compared = await scene.run(['replay-erasures']);
    assert.equal(compared.code, 0, compared.stderr);
    assert.match(compared.stdout, /nothing to replay/);
  });
});

describe('a row of reclaim.journal_lines that is no signed line', () => {
  const own = new Stage();
  after(() => own.end());
  let scene, server, mark, last;
  const verifies = async (n) => {
    const verified = await scene.run(['journal', 'verify'], n);
    assert.equal(verified.code, 0, verified.stderr);
  };

  before(async () => {
    scene = await prepare(own);
    server = await scene.start();
    await eraseSomeone(scene.db, server);
    mark = `hostile-${randomBytes(8).toString('hex')}`;
    [last] = linesIn(scene.homes[0]).slice(-1);
  });

  /** Lines that somebody with full rights in the database may write: text, a changed line, one signed with another key, one with more behind it. */
  const hostile = () => {
    const [text, signature] = last.split('\t');
    const said = { ...JSON.parse(text), mark };
    const other = JSON.stringify({ ...said, kind: 'erasure', customer: '00000000-0000-4000-8000-000000000000', users: [] });
    const { privateKey } = generateKeyPairSync('ed25519');
    return [mark, `${JSON.stringify(said)}\t${signature}`, `${other}\t${sign(null, Buffer.from(other), privateKey).toString('base64url')}`, `${last}\n${mark}`];
  };

  it('goes to no journal; erasures wait until it is deleted, which the log says', async () => {
    for (const line of hostile()) {
      const [{ id }] = await scene.db.query(`insert into reclaim.journal_lines (hash, line, kind) values (sha256(convert_to($1, 'UTF8')), $1, 'head') returning id`, [line]);
      const customer = await addCustomer(scene.db);
      assert.equal((await remove(server, customer.id)).status, 200);
      await server.line(`row ${id} refused`, ({ event, why }) => event.startsWith('erasures cannot be completed') && why.startsWith(`row ${id} of reclaim.journal_lines was not written by Reclaim`));
      assert.equal((await ledger(server, customer.id)).json.status, 'pending');
      assert.ok(!textOf(scene.homes[0]).includes(mark) && !textOf(scene.homes[0]).includes(customer.id));
      assert.equal(await readyz(server), 'ready');
      await scene.db.query('delete from reclaim.journal_lines where id = $1', [id]);
      await erased(server, customer);
    }
    await verifies(0);
  });

  it('keeps no instance from starting, and a journal that is filled from having the others once it is deleted', async () => {
    const [line] = hostile();
    const [{ id }] = await scene.db.query(`insert into reclaim.journal_lines (hash, line, kind) values (sha256('x'), $1, 'head') returning id`, [line]);
    const filled = await scene.start(1);
    await filled.line('the row refused', ({ event, why }) => event === 'the journal is not kept' && why.startsWith(`row ${id} of`));
    await scene.db.query('delete from reclaim.journal_lines where id = $1', [id]);
    const customer = await eraseSomeone(scene.db, server);
    await loseConnections(scene.db);
    await until('filled', () => textOf(scene.homes[1]).includes(customer.id));
    assert.ok(!textOf(scene.homes[1]).includes(mark));
    for (const n of [0, 1]) await verifies(n);
  });
});

describe('a start is refused, with the place,', () => {
  const own = new Stage();
  after(() => own.end());
  let scene;
  before(async () => {
    scene = await prepare(own);
    const server = await scene.start();
    await eraseSomeone(scene.db, server);
    await server.stop();
  });

  /** With the journal changed so. */
  async function refused(change, why, database = scene.db) {
    const [file] = filesOf(scene.homes[0]);
    const text = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, change(text));
    try {
      const server = await serve(stage, { database, env, directory: scene.homes[0], wait: 'nothing' });
      await server.exited;
      assert.equal(server.exit.code, 1);
      assert.match(JSON.stringify(server.events('cannot start')), why);
      const replay = await run(stage, ['replay-erasures'], { database, directory: scene.homes[0] });
      assert.equal(replay.code, 1);
      assert.match(replay.stderr, why);
    } finally {
      fs.writeFileSync(file, text);
    }
  }

  it('for a damaged journal', async () => {
    await refused((text) => text.replace('"kind":"erasure"', '"kind":"erasurf"'), /00000001\.jsonl, line \d+: /);
    await refused((text) => text.replace(/"requested_at":"2/, '"requested_at":"3'), /00000001\.jsonl, line \d+: it was changed/);
  });

  it('but not for a line that the database has: it is copied again', async () => {
    const [file] = filesOf(scene.homes[0]);
    fs.writeFileSync(file, fs.readFileSync(file, 'utf8').replace(/(\n)[^\n]*\n/, '$1'));
    const missing = await scene.run(['journal', 'verify']);
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /00000001\.jsonl, line 2: the line before it is missing/);
    await (await scene.start()).stop();
    assert.equal((await scene.run(['journal', 'verify'])).code, 0);
  });

  it('for one of a newer release', () => refused((text) => text.replace('{"v":1', '{"v":7'), /newer release/));

  it('for one of another installation', async () => {
    const other = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: other })).code, 0);
    await refused((text) => text, /another installation: set RECLAIM_JOURNAL/, other);
  });
});

describe('a database that was restored', () => {
  it('is noticed by the instance whose journal has more, and then by all', async (t) => {
    const { db, homes, start, run: command } = await prepare(t);
    let servers = [await start(0), await start(1)];
    const customer = await addCustomer(db);
    await fillServices(db, customer, 2, ['contact']);
    await servers[1].stop(); // its journal stays behind
    const backup = dumpOf(t, db);
    await backup.take();
    assert.equal((await remove(servers[0], customer.id)).status, 200);
    await erased(servers[0], customer);
    await servers[0].stop();
    await backup.restore();
    servers = [await start(1)];
    assert.equal(await readyz(servers[0]), 'ready', 'this journal knows nothing of it');
    const newer = await eraseSomeone(db, servers[0]); // meanwhile lines are written that the other journal lacks
    servers.push(await start(0, { wait: 'listening' }));
    for (const server of servers) await says(server, 'restored');
    assert.equal(await statusOf(db, customer), 'active');
    const done = await command(['replay-erasures'], 0);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 1 customer /);
    for (const server of servers) await says(server, 'ready');
    await erased(servers[0], customer);
    for (const n of [0, 1]) {
      await until('all lines in both', () => textOf(homes[n]).includes('"kind":"restore"') && textOf(homes[n]).includes(newer.id) && textOf(homes[n]).includes(customer.id));
      const lines = textOf(homes[n]).trimEnd().split('\n');
      assert.equal(new Set(lines).size, lines.length, 'no line twice');
      const verified = await command(['journal', 'verify'], n);
      assert.equal(verified.code, 0, verified.stderr);
      const audit = await command(['audit', 'verify'], n);
      assert.equal(audit.code, 0, audit.stdout + audit.stderr);
    }
    for (const server of servers) await server.stop();
    servers = [await start(0), await start(1)]; // nothing is left to notice
    for (const server of servers) assert.equal(await readyz(server), 'ready');
  });

  it('is noticed when nobody was erased since, so that events are newer all the same', async (t) => {
    const { db, start, run: command } = await prepare(t);
    let server = await start();
    const customer = await addCustomer(db);
    const backup = dumpOf(t, db);
    await backup.take();
    for (const act of [freeze, recover]) assert.equal((await act(server, customer.id)).status, 200);
    await until('sealed', async () => (await db.query(`select from reclaim.sealed_leaves l join reclaim.customer_log c on l.source = 'customer' and l.fact_id = c.id where c.customer_id = $1 and c.action = 'recover'`, [customer.id])).length);
    await until('in the journal', async () => (await db.query('select max(size) as size from reclaim.sealed_heads'))[0].size === saidIn(server.directory).at(-1).size?.toString());
    const published = await db.query('select epoch, sequence from reclaim.event_outbox where customer_id = $1 order by position', [customer.id]);
    await server.stop();
    await backup.restore();
    server = await start(0, { wait: 'listening' });
    await says(server, 'restored');
    const done = await command(['replay-erasures']);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 0 customers/);
    await says(server, 'ready');
    assert.equal((await freeze(server, customer.id)).status, 200);
    const [event] = await db.query('select epoch, sequence from reclaim.event_outbox where customer_id = $1 order by position desc limit 1', [customer.id]);
    const newest = published.at(-1);
    assert.ok(event.epoch > newest.epoch || (event.epoch === newest.epoch && event.sequence > newest.sequence), JSON.stringify({ event, newest }));
  });

  it('is noticed by a server that ran through it', async (t) => {
    const { db, start, run: command } = await prepare(t);
    const server = await start();
    const customer = await addCustomer(db);
    const backup = dumpOf(t, db);
    await backup.take();
    assert.equal((await remove(server, customer.id)).status, 200);
    await erased(server, customer);
    await backup.restore();
    await says(server, 'restored');
    assert.equal((await command(['replay-erasures'])).code, 0);
    await says(server, 'ready');
    await erased(server, customer);
  });

  it('in place, so that no connection was lost, is noticed by every server at once', async (t) => {
    const { db, start, run: command } = await prepare(t);
    const servers = [await start(0), await start(1)];
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    for (const server of servers) assert.equal((await gate(server, asKey(key))).status, 200);
    const backup = dumpOf(t, db);
    await backup.take();
    assert.equal((await remove(servers[0], customer.id)).status, 200);
    await erased(servers[0], customer);
    await backup.restoreInPlace();
    for (const server of servers) {
      await server.line('noticed', ({ reason }) => reason === 'the database was replaced in place');
      await says(server, 'restored');
      assert.notEqual((await gate(server, asKey(key))).status, 200);
    }
    assert.equal((await command(['replay-erasures'])).code, 0);
    for (const server of servers) await says(server, 'ready');
    await erased(servers[0], customer);
  });

  it('is noticed by a server whose clock is ahead by more than backups are kept', async (t) => {
    const { db, start } = await prepare(t);
    let server = await start();
    const customer = await addCustomer(db);
    const backup = dumpOf(t, db);
    await backup.take();
    assert.equal((await remove(server, customer.id)).status, 200);
    await erased(server, customer);
    await server.stop();
    await backup.restore();
    server = await start(0, { wait: 'listening', env: { ...env, RECLAIM_TEST_CLOCK_AHEAD_DAYS: '40' } });
    await says(server, 'restored');
  });

  it('is noticed by a command that deletes, before any server has looked', async (t) => {
    const { db, start, run: command } = await prepare(t);
    const server = await start();
    const [customer, other] = [await addCustomer(db), await addCustomer(db)];
    const backup = dumpOf(t, db);
    await backup.take();
    assert.equal((await remove(server, customer.id)).status, 200);
    await erased(server, customer);
    await server.stop();
    await backup.restore();
    for (const args of [['delete', other.id], ['expire']]) {
      const done = await command(args);
      assert.equal(done.code, 1, args.join(' '));
      assert.match(done.stderr, /restored from a backup: run reclaim replay-erasures first/);
    }
    assert.equal(await statusOf(db, other), 'active');
  });

  it('is noticed once the journal can be read, whatever other instances have written meanwhile', async (t) => {
    const { db, homes, start } = await prepare(t);
    const server = await start();
    const [customer] = [await eraseSomeone(db, server), await eraseSomeone(db, server)];
    const backup = dumpOf(t, db);
    await backup.take();
    await eraseSomeone(db, server);
    const [file] = filesOf(homes[0]);
    const sound = fs.readFileSync(file, 'utf8');
    fs.writeFileSync(file, sound.replace(customer.id, customer.id.replace(/^./, (digit) => (digit === '0' ? '1' : '0'))));
    await backup.restore();
    const failing = async () => valueOf(parseMetrics((await ops(server, '/metrics')).body), 'reclaim_journal_failing');
    await until('the damage noticed', async () => (await failing()) === 1);
    const other = await start(1); // whose journal is empty
    await eraseSomeone(db, other);
    await pause(1500); // two looks
    assert.equal(await failing(), 1);
    fs.writeFileSync(file, sound + fs.readFileSync(file, 'utf8').slice(sound.length));
    for (const one of [server, other]) await says(one, 'restored');
  });

  it('is replayed with what an instance records in the last moment', async (t) => {
    const { db, homes, start, run: command } = await prepare(t);
    const server = await start();
    const [first, second] = [await addCustomer(db), await addCustomer(db)];
    const backup = dumpOf(t, db);
    await backup.take();
    const exported = ['first', 'second'].map((name) => path.join(homes[0], name));
    for (const [n, customer] of [first, second].entries()) {
      assert.equal((await remove(server, customer.id)).status, 200);
      await erased(server, customer);
      assert.equal((await command(['journal', 'export', exported[n]])).code, 0);
    }
    await server.stop();
    await backup.restore();
    assert.equal((await command(['journal', 'import', exported[0]], 1)).code, 0);
    const late = fs.readFileSync(exported[1], 'utf8').slice(fs.readFileSync(exported[0], 'utf8').length).trimEnd().split('\n');
    const instance = await db.session(t, 'an instance');
    await instance.query('begin');
    await instance.query('select reclaim.journal_lose($1, $2)', [late.map((line) => createHash('sha256').update(line).digest('hex')), late]);
    const replay = command(['replay-erasures', '--journal', exported[0]], 1);
    await until('the replay waits', async () => (await db.query(`select from pg_stat_activity where wait_event = 'advisory' and query like '%pg_advisory_xact_lock%'`)).length > 0);
    await instance.query('commit');
    const done = await replay;
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 2 customers/);
    for (const customer of [first, second]) assert.equal(await statusOf(db, customer), 'deleted');
  });

  it('is told apart from one whose newest part was removed: the journal lists the heads', async (t) => {
    const { db, start, run: command } = await prepare(t);
    const server = await start();
    await eraseSomeone(db, server);
    await until('another head', async () => Number((await db.query('select count(*) from reclaim.sealed_heads'))[0].count) > 1);
    await server.stop();
    await db.query(`delete from reclaim.sealed_leaves where position >= (select max(size) from reclaim.sealed_heads where size < (select max(size) from reclaim.sealed_heads));
      delete from reclaim.sealed_heads where size = (select max(size) from reclaim.sealed_heads)`);
    const audit = await command(['audit', 'verify']);
    assert.equal(audit.code, 1);
    assert.match(audit.stdout, /removed: the head of size \d+, which the journal lists/);
  });
});
