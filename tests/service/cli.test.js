// The program's commands: what they print, and their exit codes 0 (done), 1 (failed), 2 (not understood).
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCoAdmin, addCompany, addUser, address, canaryPassword } from './lib/people.js';
import { Cluster, freePort } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const commands = [
  'serve', 'migrate', 'show', 'customers', 'freeze', 'recover', 'hold', 'unhold', 'delete', 'expire', 'cascade', 'orphans', 'trace',
  'limits', 'locks', 'token', 'key', 'events', 'switch', 'columns', 'clock', 'doctor', 'config', 'healthcheck',
  'key-set', 'audit', 'journal', 'replay-erasures',
];

describe('help', () => {
  it('lists every command by purpose, and the exit codes, on one screen', async (t) => {
    const { code, stdout, stderr } = await run(t, ['--help']);
    assert.equal(code, 0);
    assert.equal(stderr, '');
    const lines = stdout.split('\n');
    for (const command of ['init', ...commands, 'completion', 'help']) assert.equal(lines.filter((line) => line.startsWith(`  ${command} `)).length, 1, command);
    assert.ok(lines.length <= 44, `${lines.length} lines`);
    assert.deepEqual(lines.filter((line) => line.length > 80), []);
    assert.ok(lines.includes('Customers') && lines.includes('Operate'));
    assert.match(stdout, /Exit codes: 0 done, 1 failed, 2 not understood/);
    assert.doesNotMatch(stdout, /RECLAIM_LISTEN|RECLAIM_OWNERSHIP/, 'settings have a page of their own');
  });

  it('settings lists every setting', async (t) => {
    const { code, stdout } = await run(t, ['help', 'settings']);
    assert.equal(code, 0);
    for (const name of ['RECLAIM_DATABASE_URL', 'RECLAIM_LISTEN', 'RECLAIM_PROBE_HOLD_MS', 'RECLAIM_OWNERSHIP', 'RECLAIM_TRUSTED_PROXIES'])
      assert.ok(stdout.includes(name), name);
  });

  it('COMMAND and COMMAND --help print the same, ending with --config FILE', async (t) => {
    for (const command of commands) {
      const { stdout } = await run(t, ['help', command]);
      assert.match(stdout, /\n {2}--config FILE +settings from an INI file; the environment wins\n$/, command);
      assert.equal((await run(t, [command, '--help'])).stdout, stdout);
    }
    assert.equal((await run(t, ['help', 'nonsense'])).code, 2);
  });

  for (const command of commands)
    it(`of ${command} tells its options`, async (t) => {
      const { code, stdout, stderr } = await run(t, [command, '--help']);
      assert.equal(code, 0);
      assert.equal(stderr, '');
      assert.match(stdout, new RegExp(`reclaim ${command}`));
      assert.ok(stdout.includes('--config'));
    });

  it('tells the version alone on a line', async (t) => {
    const { code, stdout } = await run(t, ['--version']);
    assert.equal(code, 0);
    assert.match(stdout, /^reclaim \d+\.\d+\.\d+\n$/);
  });

  for (const args of [
    [],
    ['nonsense'],
    ['--nonsense'],
    ['serve', '--nonsense'],
    ['serve', 'word'],
    ['serve', '--config'],
    ['migrate', '--down'],
    ['migrate', '--status', '--standalone'],
    ['orphans', '--format', 'xml'],
    ['orphans', '--older-than', 'long'],
    ['orphans', '--older-than', '-1d'],
    ['doctor', 'quickly'],
    ['trace'],
    ['limits', 'forget', 'global'],
    ['limits', 'show'],
    ['locks', 'all'],
    ['locks', '--format', 'xml'],
    ['locks', '--format', 'csv', '--format', 'csv'],
    ['limits', 'reset', 'global', '--format', 'csv'],
    ['migrate', '--format', 'csv'],
    ['expire', '--format', 'csv'],
    ['events', 'redrive', '--format', 'csv'],
    ['cascade', 'redrive', '--format', 'csv'],
    ['freeze', '--format', 'csv', '00000000-0000-0000-0000-000000000001'],
    ['unhold', '--reason', 'x', '00000000-0000-0000-0000-000000000001'],
  ])
    it(`«reclaim ${args.join(' ')}» is not understood: exit 2 and a line on stderr`, async (t) => {
      const { code, stdout, stderr } = await run(t, args);
      assert.equal(code, 2, stderr);
      assert.equal(stdout, '');
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
      assert.match(stderr, /^reclaim/);
    });

  it('«reclaim migrate --down x» is not understood', async (t) => {
    for (const steps of ['x', '0', '-1', '1.5']) assert.equal((await run(t, ['migrate', '--down', steps])).code, 2, steps);
  });
});

describe('orphans', () => {
  const stage = new Stage();
  const daysAgo = (days) => new Date(Date.now() - days * 86_400_000).toISOString();
  let db, people;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    people = {
      old: await addUser(db, { created: daysAgo(40), email: address('old') }),
      verified: await addUser(db, { created: daysAgo(10), confirmed: daysAgo(9), lastSignIn: daysAgo(8) }),
      fresh: await addUser(db, { created: daysAgo(1) }),
      owner: await addUser(db, { created: daysAgo(40) }),
      coAdmin: await addUser(db, { created: daysAgo(40) }),
      deleted: await addUser(db, { created: daysAgo(40), deleted: daysAgo(1) }),
      sso: await addUser(db, { created: daysAgo(40), sso: true }),
    };
    await addCoAdmin(db, people.coAdmin, await addCompany(db, people.owner));
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
  });
  after(() => stage.end());

  const listed = (text) => Object.keys(people).filter((name) => text.includes(people[name].id));

  for (const format of ['table', 'csv', 'json'])
    it(`are listed as ${format}, those of the last week left out by default`, async (t) => {
      const { code, stdout, stderr } = await run(t, ['orphans', '--format', format], { database: db });
      assert.equal(code, 0, stderr);
      assert.deepEqual(listed(stdout), ['old', 'verified']);
      assert.ok(stdout.includes(people.old.email));
    });

  for (const [age, names] of [
    ['0s', ['old', 'verified', 'fresh']],
    ['12h', ['old', 'verified', 'fresh']],
    ['9d', ['old', 'verified']],
    ['30d', ['old']],
    ['365d', []],
  ])
    it(`older than ${age} are ${names.join(', ') || 'none'}`, async (t) => {
      const { code, stdout, stderr } = await run(t, ['orphans', '--older-than', age, '--format', 'csv'], { database: db });
      assert.equal(code, 0, stderr);
      assert.deepEqual(listed(stdout), names);
    });

  it('are JSON that a program can read', async (t) => {
    const { stdout } = await run(t, ['orphans', '--format', 'json'], { database: db });
    const rows = JSON.parse(stdout);
    assert.deepEqual(rows.map((row) => row.id), [people.old.id, people.verified.id], 'the oldest first');
    assert.equal(rows[0].email, people.old.email);
    assert.equal(rows[0].verified, false);
    assert.equal(rows[0].last_sign_in_at, null);
    assert.equal(rows[1].verified, true);
    for (const row of rows) assert.match(row.created_at, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  it('are an empty list when there are none', async (t) => {
    const { code, stdout } = await run(t, ['orphans', '--older-than', '3650d', '--format', 'json'], { database: db });
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(stdout), []);
  });

  it('are CSV with one header and quoted where it must be', async (t) => {
    const odd = await addUser(db, { created: daysAgo(50), email: `"odd, very",name@canary-reclaim.example.com` });
    const { stdout } = await run(t, ['orphans', '--older-than', '45d', '--format', 'csv'], { database: db });
    const [header, row] = stdout.trim().split('\r\n');
    assert.equal(header.split(',')[0], 'id');
    assert.ok(row.startsWith(`${odd.id},"""odd, very"",name@canary-reclaim.example.com",`), row);
    await db.query('delete from auth.users where id = $1', [odd.id]);
  });

  it('are reported, never deleted', async () => {
    const [{ n }] = await db.query('select count(*)::int as n from auth.users');
    assert.equal(n, Object.keys(people).length);
  });

  it('cannot be told when an ownership table is missing: exit 1, and nobody is called an orphan', async (t) => {
    const { code, stdout, stderr } = await run(t, ['orphans'], { database: db, env: { RECLAIM_OWNERSHIP: 'no_such_table.owner' } });
    assert.equal(code, 1);
    assert.deepEqual(listed(stdout), []);
    assert.match(stderr, /RECLAIM_OWNERSHIP|no_such_table/);
  });

  it('cannot be told without a database: exit 1 and why', async (t) => {
    const url = `postgresql://reclaim:${canaryPassword}@127.0.0.1:${await freePort()}/none`;
    const { code, stdout, stderr } = await run(t, ['orphans'], { database: url });
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /^reclaim orphans: .*(connect|refused)/);
    assert.ok(!stderr.includes(canaryPassword));
  });
});

describe('doctor', () => {
  const stage = new Stage();
  let cluster;
  before(async () => {
    cluster = await Cluster.create(stage);
  });
  after(() => stage.end());

  it('finds nothing to fix in a database that serves', async (t) => {
    const db = await cluster.database(t, { auth: 'supabase' });
    const server = await serve(t, { database: db });
    const { code, stdout, stderr } = await run(t, ['doctor'], { database: db });
    assert.equal(code, 0, stdout + stderr);
    assert.doesNotMatch(stdout, /FAIL/);
    for (const RECLAIM_SECRET_KEY of ['canary-another-key-of-more-than-32-characters', undefined]) {
      const other = await run(t, ['doctor'], { database: db, env: { RECLAIM_SECRET_KEY } });
      assert.equal(other.code, 1, 'without the servers’ master key');
      assert.match(other.stdout, /^FAIL .*RECLAIM_SECRET_KEY/m);
    }
    await server.stop();
  });

  for (const [what, arrange, wanted] of [
    ['a schema that is not up to date', async () => {}, /migrate/],
    ['a missing ownership table', (db) => db.query('drop table company_admins'), /company_admins/],
    ['a missing ownership column', (db) => db.query('alter table company_admins rename admin_uuid to other'), /admin_uuid/],
    ['missing users', (db) => db.query('drop table company_admins, companies; drop table auth.users'), /auth\.users/],
  ])
    it(`finds ${what} and says what to do: exit 1`, async (t) => {
      const db = await cluster.database(t);
      if (!what.includes('schema')) await run(t, ['migrate'], { database: db });
      await arrange(db);
      const { code, stdout } = await run(t, ['doctor'], { database: db });
      assert.equal(code, 1, stdout);
      const failures = stdout.split('\n').filter((line) => line.startsWith('FAIL'));
      assert.ok(failures.some((line) => wanted.test(line)), stdout);
    });

  for (const [what, sql, wanted] of [
    ['an ownership column without an index', 'drop index companies_owner_admin_uuid_idx', /index/],
    ['an ownership column without a foreign key', 'alter table companies drop constraint companies_owner_admin_uuid_fkey', /foreign key/],
  ])
    it(`warns of ${what}`, async (t) => {
      const db = await cluster.database(t);
      await run(t, ['migrate'], { database: db });
      await db.query(sql);
      const { code, stdout } = await run(t, ['doctor'], { database: db });
      assert.equal(code, 0, stdout);
      assert.ok(stdout.split('\n').some((line) => line.startsWith('warn') && wanted.test(line)), stdout);
    });

  it('says that the database cannot be reached: exit 1', async (t) => {
    const { code, stdout, stderr } = await run(t, ['doctor'], { database: `postgresql://reclaim:${canaryPassword}@127.0.0.1:${await freePort()}/none` });
    assert.equal(code, 1);
    assert.match(stdout, /FAIL/);
    assert.ok(!(stdout + stderr).includes(canaryPassword));
  });

  it('says that a setting is wrong: exit 1', async (t) => {
    const { code, stdout } = await run(t, ['doctor'], { env: { RECLAIM_WORKERS: 'many' } });
    assert.equal(code, 1);
    assert.match(stdout, /FAIL.*RECLAIM_WORKERS/);
  });
});
