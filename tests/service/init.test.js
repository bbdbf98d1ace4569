// `reclaim init`: from a connection string to a server that deletes an orphan, and what it says when something is in the way.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, mailedCode, requestCode, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { probe } from './lib/http.js';
import { IdentityProvider } from './lib/identity-provider.js';
import { addCompany, addUser, canaryPassword } from './lib/people.js';
import { Pooler } from './lib/pgbouncer.js';
import { reclaimProgram, temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { documentedStatements } from './lib/roles.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
const users = 10_000;
let cluster, db;

/** A server that asks for passwords, and a database with Supabase Auth's schema in it. */
before(async () => {
  cluster = await Cluster.create(stage, { tcp: true });
  const hba = path.join(cluster.data, 'pg_hba.conf');
  fs.writeFileSync(hba, fs.readFileSync(hba, 'utf8').replace(/^(host .*)trust$/gm, '$1scram-sha-256'));
  await cluster.admin(`alter role postgres password '${canaryPassword}'; select pg_reload_conf()`);
  db = await cluster.database(stage, { auth: 'supabase' });
  await db.query(
    `insert into auth.users (id, instance_id, email, created_at) select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'user' || n || '@canary-reclaim.example.com', '2025-10-01'
       from generate_series(1, ${users - 2}) n;
     insert into public.companies (owner_admin_uuid) select id from auth.users;
     alter table public.companies enable row level security`,
  );
});
after(() => stage.end());

const urlOf = (database, { user = 'postgres', password = canaryPassword, host = '127.0.0.1', port = cluster.port } = {}) =>
  `postgresql://${user}:${password}@${host}:${port}/${database.name ?? database}`;

/** Runs it with nothing in the environment but what is given; nothing it prints has a secret. */
async function init(folder, args, { env = {}, said } = {}) {
  const done = await run(stage, ['init', ...args], { directory: folder, env: { RECLAIM_SECRET_KEY: undefined, RECLAIM_DATA_DIR: undefined, ...env }, said });
  for (const secret of [canaryPassword, ...secretsIn(folder)]) assert.ok(!(done.stdout + done.stderr).includes(secret), 'a secret was printed');
  return done;
}

function secretsIn(folder) {
  return ['reclaim-secret-key', 'reclaim-database-url']
    .map((name) => path.join(folder, name))
    .filter((file) => fs.existsSync(file))
    .map((file) => fs.readFileSync(file, 'utf8').trim());
}

const setting = (folder, name) => new RegExp(`^${name} = (.*)$`, 'm').exec(fs.readFileSync(path.join(folder, 'reclaim.ini'), 'utf8'))?.[1];

/** A small database with Supabase Auth's schema. */
const another = (scope, more) => cluster.database(scope, { auth: 'supabase', ...more });

const serveFrom = async (folder, env) =>
  serve(stage, { args: ['--config', 'reclaim.ini'], directory: folder, env: { RECLAIM_SECRET_KEY: undefined, RECLAIM_DATA_DIR: undefined, RECLAIM_DATABASE_URL: undefined, ...env } });

describe('from an empty folder', () => {
  let folder, server, mails, orphan;
  before(() => (folder = temporaryDirectory(stage)));

  it('two commands lead to a server that deletes an orphan', async (t) => {
    const owner = await addUser(db);
    await addCompany(db, owner);
    orphan = await addUser(db);
    mails = await FakeProvider.start(stage, 'resend');
    const began = Date.now();
    const made = await init(folder, ['--yes', '--database-url', urlOf(db)]);
    assert.equal(made.code, 0, made.stdout + made.stderr);
    server = await serveFrom(folder, mails.env);
    const ready = Date.now();
    assert.equal((await probe(server, orphan.email)).json.data.isOrphaned, true);
    assert.equal((await probe(server, owner.email)).json.data.isOrphaned, false);
    assertDeleted(await validate(server, orphan.email, await mailedCode(server, mails, orphan.email)), 'cleanup-v1', orphan);
    assertRefused(await requestCode(server, owner.email), 'cleanup-v1', '005');
    t.diagnostic(`${users} users: 2 commands, ready after ${((ready - began) / 1000).toFixed(1)} s, an orphan deleted after ${((Date.now() - began) / 1000).toFixed(1)} s`);

    const lines = made.stdout.split('\n');
    assert.ok(lines.length <= 40, `${lines.length} lines`);
    assert.match(made.stdout, /^Users {6}10000$/m);
    assert.match(made.stdout, /companies\.owner_admin_uuid +9999 rows of 9999 users/);
    assert.doesNotMatch(made.stdout, /FAIL/);
    assert.equal(setting(folder, 'RECLAIM_OWNERSHIP'), 'companies.owner_admin_uuid,company_admins.admin_uuid');
    assert.equal(setting(folder, 'RECLAIM_CUSTOMERS'), 'users');
  });

  it('nothing that it wrote can be read by others, and the settings hold no secret', () => {
    assert.equal(fs.statSync(path.join(folder, 'reclaim-data')).mode & 0o777, 0o700, 'the folder of the journal, which the server made');
    const files = fs.readdirSync(folder).filter((name) => name.startsWith('reclaim') && name !== 'reclaim-data');
    assert.deepEqual(files.sort(), ['reclaim-database-url', 'reclaim-nginx.conf', 'reclaim-participants.sh', 'reclaim-role.sql', 'reclaim-secret-key', 'reclaim.ini']);
    for (const name of files) assert.equal(fs.statSync(path.join(folder, name)).mode & 0o777, 0o600, name);
    const [key, url] = secretsIn(folder);
    const password = new URL(url).password;
    for (const name of ['reclaim.ini', 'reclaim-role.sql', 'reclaim-nginx.conf', 'reclaim-participants.sh']) {
      const text = fs.readFileSync(path.join(folder, name), 'utf8');
      for (const secret of [key, password, canaryPassword]) assert.ok(!text.includes(secret), name);
    }
    assert.match(url, /^postgresql:\/\/reclaim:[\w-]{43}@127\.0\.0\.1:\d+\//);
  });

  it('the role has what the documentation says, and no more', async () => {
    const script = fs.readFileSync(path.join(folder, 'reclaim-role.sql'), 'utf8');
    const granted = script.split('\n').filter((line) => /^GRANT/.test(line)).join('\n');
    const { owner, supabase, users: whereUsers } = documentedStatements();
    const documented = [owner, ...supabase, ...whereUsers.map((sql) => sql.replaceAll('reclaim_owner', 'reclaim'))].join('\n').replace(/\n\s+/g, ' ').split(';').map((sql) => sql.trim()).filter((sql) => / TO reclaim$/.test(sql));
    const privilegesOf = (statements) => {
      const all = new Set();
      for (const sql of statements) {
        const [, what, on] = /^GRANT (.*?) ON (.*) TO/s.exec(sql);
        for (const [, privilege, columns] of what.matchAll(/(\w+)(?: \(([^)]*)\))?/g))
          for (const table of on.split(/,\s*/)) for (const column of (columns ?? '').split(/,\s*/)) all.add(`${privilege} ${table.replace('public.', '')} ${column}`);
      }
      return [...all].filter((one) => !one.includes('DATABASE')).sort();
    };
    assert.deepEqual(privilegesOf(granted.replace(/;$/gm, '').split('\n')), privilegesOf(documented));
    const as = new URL(secretsIn(folder)[1]);
    const [mine] = await db.query(
      `select rolsuper or rolcreaterole or rolcreatedb or rolbypassrls as powerful,
         (select count(*)::int from pg_class c where c.relowner = r.oid and c.relnamespace <> 'reclaim'::regnamespace and c.relnamespace <> 'pg_toast'::regnamespace) as elsewhere
       from pg_roles r where rolname = $1`, [as.username]);
    assert.deepEqual(mine, { powerful: false, elsewhere: 0 });
  });

  it('run again it leaves everything as it is, and with --force it keeps key and role', async () => {
    const before = secretsIn(folder);
    const again = await init(folder, ['--yes', '--database-url', urlOf(db)]);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /reclaim\.ini exists and was left as it is: start with reclaim serve --config .*, write it anew with --force/);
    const forced = await init(folder, ['--yes', '--force', '--database-url', urlOf(db)]);
    assert.equal(forced.code, 0, forced.stdout + forced.stderr);
    assert.match(forced.stdout, /^Role {7}reclaim, as it was/m);
    assert.deepEqual(secretsIn(folder), before);
    assert.equal((await probe(server, orphan.email)).status, 200);
  });

  it('another folder does not take the database from the first', async (t) => {
    const elsewhere = temporaryDirectory(t);
    const other = await init(elsewhere, ['--yes', '--database-url', urlOf(db)]);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /set up in this database already, with another master key: put that key into .*reclaim-secret-key/);
    fs.copyFileSync(path.join(folder, 'reclaim-secret-key'), path.join(elsewhere, 'reclaim-secret-key'));
    const copied = await init(elsewhere, ['--yes', '--database-url', urlOf(db)]);
    assert.equal(copied.code, 1);
    assert.match(copied.stderr, /the role reclaim exists, and its password is not known here: copy reclaim\.ini/);
    assert.deepEqual(fs.readdirSync(elsewhere).filter((name) => name.startsWith('reclaim')), ['reclaim-secret-key']);
  });

  it('nor does another role', async (t) => {
    const done = await init(temporaryDirectory(t), ['--yes', '--role', 'reclaim_second', '--database-url', urlOf(db)], { env: { RECLAIM_SECRET_KEY: secretsIn(folder)[0] } });
    assert.equal(done.code, 1);
    assert.match(done.stderr, /its schema belongs to reclaim: name that role with --role/);
  });

  it('the participants that it proposes can be added as they stand', async () => {
    const script = fs.readFileSync(path.join(folder, 'reclaim-participants.sh'), 'utf8');
    const args = /^reclaim .*company_admins.*$/m.exec(script)[0].split(' ').slice(1).map((word) => word.replaceAll("'", ''));
    await db.query('grant select, delete on company_admins to reclaim');
    const added = await run(stage, args, { directory: folder, env: { RECLAIM_SECRET_KEY: undefined } });
    assert.equal(added.code, 0, `${args}: ${added.stderr}`);
  });
});

it('a URL is out of the list of processes while it is being used', async (t) => {
  const silent = net.createServer(() => {});
  await new Promise((resolve) => silent.listen(0, '127.0.0.1', resolve));
  t.after(() => silent.close());
  const folder = temporaryDirectory(t);
  const { port } = silent.address();
  let shown;
  silent.once('connection', (socket) => {
    const pids = fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    const lines = pids.map((pid) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8'); } catch { return ''; } });
    shown = lines.filter((line) => line.includes('--database-url') && line.includes('init'));
    socket.destroy();
  });
  const done = await init(folder, ['--yes', '--database-url', `postgresql://postgres:${canaryPassword}@127.0.0.1:${port}/app`]);
  assert.equal(done.code, 1);
  assert.match(done.stderr, /the database cannot be reached/);
  assert.ok(shown.length > 0);
  assert.ok(shown.every((line) => !line.includes(canaryPassword)), 'the password stands in the list of processes');
});

it('on a terminal it asks, and shows no secret that is typed', async (t) => {
  const there = await another(t);
  const folder = temporaryDirectory(t);
  const answers = [
    [/Database URL.*: $/, urlOf(there)],
    [/URL of the project's API.*: $/, ''],
    [/RECLAIM_OWNERSHIP, .* \[companies\.owner_admin_uuid,company_admins\.admin_uuid\]: $/, 'companies.owner_admin_uuid'],
    [/Set the database up now: .*\? \[Y\/n\]: $/, 'n'],
  ];
  const child = spawn('script', ['-qec', `${reclaimProgram()} init --role reclaim_asked`, '/dev/null'], { cwd: folder, env: { PATH: process.env.PATH, ASAN_OPTIONS: process.env.ASAN_OPTIONS } });
  let shown = '';
  child.stdout.on('data', (part) => {
    shown += part;
    if (answers.length && answers[0][0].test(shown)) child.stdin.write(`${answers.shift()[1]}\n`);
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  assert.deepEqual(answers, [], shown);
  assert.equal(code, 0, shown);
  assert.ok(!shown.includes(canaryPassword));
  assert.equal(setting(folder, 'RECLAIM_OWNERSHIP'), 'companies.owner_admin_uuid');
  assert.match(shown, /1\. as an administrator of the database: psql -f .*reclaim-role\.sql/);
});

describe('what is in the way is said with what to do', () => {
  const cases = {
    'a wrong password': [() => ['--database-url', urlOf(db, { password: 'canary-wrong' })], /the password of postgres was refused: check it in the database URL/],
    'a host that is not known': [() => ['--database-url', urlOf(db, { host: 'db.nowhere.invalid' })], /the host db\.nowhere\.invalid is not known: check the database URL/],
    'the direct host of a hosted project, without IPv6': [
      () => ['--database-url', urlOf('postgres', { host: 'db.abcdefghijklmnopqrst.supabase.co', port: 5432 })],
      /an IPv6 address only\. .* use the session pooler .*user postgres\.abcdefghijklmnopqrst, port 5432/,
    ],
    'a database that does not exist': [() => ['--database-url', urlOf('nowhere')], /database "nowhere" does not exist: check the name/],
    'a database without Supabase Auth': [() => ['--database-url', urlOf('template1')], /has no table auth\.users: name the database of Supabase Auth .*migrate --standalone/],
    'no URL at all': [() => [], /which database\? Give --database-url/],
    'what is no URL': [() => ['--database-url', 'mysql://me@h/db'], /the database URL cannot be read/],
    'ownership that is none': [() => ['--database-url', urlOf(db), '--ownership', 'companies', '--role', 'other'], /"companies" is not a column such as/],
  };
  for (const [what, [args, sentence]] of Object.entries(cases))
    it(what, async (t) => {
      const folder = temporaryDirectory(t);
      const done = await init(folder, ['--yes', ...args()]);
      assert.equal(done.code, 1, done.stdout);
      assert.match(done.stderr, sentence);
      assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('reclaim')), []);
    });

  it('nobody to ask, and arguments that exclude each other', async (t) => {
    for (const args of [['--database-url', 'postgresql:///x'], ['--yes', '--apply', '--files-only'], ['--yes', '--role', 'a%b'], ['--yes', '--supabase', 'example.com']])
      assert.equal((await init(temporaryDirectory(t), args)).code, 2, args.join(' '));
  });

  it('a folder that cannot be written, or made', async (t) => {
    for (const [folder, sentence] of [['/proc', /files cannot be written in \/proc: .*; name another folder with --output/], ['/proc/nowhere', /the folder \/proc\/nowhere cannot be made: .*--output/]]) {
      const done = await init(temporaryDirectory(t), ['--yes', '--database-url', urlOf(db), '--output', folder]);
      assert.equal(done.code, 1);
      assert.match(done.stderr, sentence);
    }
  });

  it('a role without rights: files are written, and who has to run which', async (t) => {
    const there = await another(t);
    await there.query(`do $$ begin if not exists (select from pg_roles where rolname = 'powerless') then create role powerless login password '${canaryPassword}'; end if; end $$`);
    const folder = temporaryDirectory(t);
    const done = await init(folder, ['--yes', '--role', 'reclaim_late', '--database-url', urlOf(there, { user: 'powerless' })]);
    assert.equal(done.code, 1);
    assert.match(done.stderr, /the role reclaim_late could not be made by powerless \(.*\): run .*\/reclaim-role\.sql as an administrator .*, then reclaim serve/);
    // An administrator does, and the settings work without another word.
    await there.query(fs.readFileSync(path.join(folder, 'reclaim-role.sql'), 'utf8'));
    const found = await run(t, ['migrate', '--config', 'reclaim.ini'], { directory: folder, env: { RECLAIM_SECRET_KEY: undefined } });
    assert.equal(found.code, 0, found.stderr);
    const doctor = await run(t, ['doctor', '--config', 'reclaim.ini'], { directory: folder, env: { RECLAIM_SECRET_KEY: undefined } });
    assert.doesNotMatch(doctor.stdout, /^FAIL/m, doctor.stdout);
    await there.query('drop owned by reclaim_late cascade; drop role reclaim_late');
  });

  it('a role that cannot give its rights away, as postgres of hosted projects, is the server’s own', async (t) => {
    const there = await another(t);
    await there.query(`create role hosted login createrole bypassrls password '${canaryPassword}'`);
    t.after(() => cluster.admin('drop owned by hosted; drop role hosted').catch(() => {}));
    await there.query(`grant create, connect on database "${there.name}" to hosted; grant all on schema auth to hosted; grant all on all tables in schema auth to hosted;
      alter table public.companies owner to hosted; alter table public.company_admins owner to hosted; grant usage, create on schema public to hosted`);
    const folder = temporaryDirectory(t);
    const done = await init(folder, ['--yes', '--database-url', urlOf(there, { user: 'hosted' })]);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /Role +hosted, the given one: it does not own auth\.users/);
    assert.doesNotMatch(done.stdout, /no trigger on auth\.users|has recorded table/, 'users are customers, and watched');
    assert.equal(done.stderr, '');
    const named = await init(temporaryDirectory(t), ['--yes', '--role', 'reclaim_hosted', '--database-url', urlOf(there, { user: 'hosted' })]);
    assert.equal(named.code, 1, 'a role that was asked for is not left out silently');
  });

  it('a pooler in transaction mode asks for the server itself, which becomes the direct URL', async (t) => {
    const there = await another(t);
    const pooler = await Pooler.start(t, cluster);
    const folder = temporaryDirectory(t);
    const refused = await init(folder, ['--yes', '--database-url', pooler.url(there)]);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /goes through a pooler in transaction mode: give the URL of the PostgreSQL server itself too, with --direct-url; it becomes RECLAIM_DATABASE_DIRECT_URL/);
    const done = await init(folder, ['--yes', '--same-role', '--database-url', pooler.url(there), '--direct-url', urlOf(there)]);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /through a pooler in transaction mode/);
    assert.equal(fs.readFileSync(path.join(folder, 'reclaim-direct-url'), 'utf8').trim(), urlOf(there));
    assert.equal(setting(folder, 'RECLAIM_DATABASE_DIRECT_URL_FILE'), path.join(fs.realpathSync(folder), 'reclaim-direct-url'));
  });

  it('an address without an index, a column without one, and a clock that is two minutes off', async (t) => {
    const there = await another(t);
    await there.query(
      `drop index auth.users_email_partial_key; drop index public.companies_owner_admin_uuid_idx; create schema fake;
       create function fake.clock_timestamp() returns timestamptz language sql as $$ select pg_catalog.clock_timestamp() + interval '2 minutes' $$;
       alter database "${there.name}" set search_path = fake, pg_catalog, public`,
    );
    const done = await init(temporaryDirectory(t), ['--yes', '--same-role', '--database-url', urlOf(there)]);
    assert.equal(done.code, 1);
    assert.match(done.stdout, /companies\.owner_admin_uuid .*no index: CREATE INDEX CONCURRENTLY ON public\.companies \(owner_admin_uuid\)/);
    assert.match(done.stdout, /^FAIL {2}auth\.users has no index on email.*CREATE INDEX CONCURRENTLY ON auth\.users \(email\)$/m);
    assert.match(done.stdout, /^warn {2}the clock of the database's machine is 1(19|20) seconds ahead of this one's: run NTP on both/m);
    assert.match(done.stderr, /1 of these have to be mended: then reclaim doctor --config/);
  });

  it('a key set that is HTML, and one that is right', async (t) => {
    const there = await another(t);
    const provider = await IdentityProvider.start(t);
    const api = `http://127.0.0.1:${provider.port}`;
    const right = provider.answer;
    provider.answer = (response) => response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Sign in</title>');
    const folder = temporaryDirectory(t);
    const args = ['--yes', '--same-role', '--database-url', urlOf(there), '--supabase', `${api}/`];
    const refused = await init(folder, args);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /RECLAIM_JWKS_URL.* is not a JSON Web Key Set.*: check --supabase, the address of the project's API \(http:\/\/127\.0\.0\.1:\d+\)/);
    assert.deepEqual(fs.readdirSync(folder).filter((name) => name.startsWith('reclaim')), []);
    provider.answer = right;
    const done = await init(folder, [...args, '--files-only']);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.equal(setting(folder, 'RECLAIM_JWKS_URL'), `${api}/auth/v1/.well-known/jwks.json`);
    assert.equal(setting(folder, 'RECLAIM_JWT_ISSUER'), `${api}/auth/v1`);
    assert.equal(setting(folder, 'RECLAIM_JWT_AUDIENCE'), 'authenticated');
  });

  it('the pooler of hosted projects finds the project by the name of the role', async (t) => {
    const there = await another(t);
    const provider = await IdentityProvider.start(t);
    await there.query(`create role "postgres.abcdefghij" superuser login password '${canaryPassword}'`);
    const hosted = `postgresql://postgres.abcdefghij:${canaryPassword}@aws-0-eu-central-1.pooler.supabase.com:${cluster.port}/${there.name}?hostaddr=127.0.0.1`;
    const folder = temporaryDirectory(t);
    const done = await init(folder, ['--yes', '--files-only', '--role', 'reclaim_hosted', '--supabase', `http://127.0.0.1:${provider.port}`, '--database-url', hosted]);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /Supabase, hosted/);
    assert.match(secretsIn(folder)[1], /^postgresql:\/\/reclaim_hosted\.abcdefghij:[\w-]{43}@aws-0-eu-central-1\.pooler\.supabase\.com:/);
    assert.deepEqual(await there.query(`select from pg_roles where rolname like 'reclaim_hosted%'`), []);
    await there.query('drop role "postgres.abcdefghij"');
  });

  it('a table in which every user has a row: nobody is an orphan until a condition says who is', async (t) => {
    const there = await another(t, { companies: false });
    await there.query(`create table profiles (id uuid primary key references auth.users on delete cascade, onboarded_at timestamptz);
      create table "odd name" (id uuid references auth.users)`);
    const user = await addUser(there);
    await there.query('insert into profiles (id) values ($1)', [user.id]);
    const folder = temporaryDirectory(t);
    const done = await init(folder, ['--yes', '--files-only', '--same-role', '--database-url', urlOf(there)]);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /profiles\.id +1 row of 1 user\n +every user has one, so nobody would be an orphan; if these tell who finished: profiles\.id where onboarded_at is not null/);
    await there.query(/no index: (CREATE INDEX CONCURRENTLY ON .*)/.exec(done.stdout)[1]); // as it is printed
    assert.equal(setting(folder, 'RECLAIM_OWNERSHIP'), 'profiles.id');
    const again = await init(folder, ['--yes', '--force', '--same-role', '--ownership', 'profiles.id where onboarded_at is not null', '--database-url', urlOf(there)]);
    assert.equal(again.code, 0, again.stdout + again.stderr);
    const listed = await run(t, ['orphans', '--older-than', '0s', '--format', 'json', '--config', 'reclaim.ini'], { directory: folder, env: { RECLAIM_SECRET_KEY: undefined } });
    assert.deepEqual(JSON.parse(listed.stdout).map(({ id }) => id), [user.id]);
  });

  it('tables to adopt: balances are named, and taken over when told', async (t) => {
    const there = await another(t);
    await there.query(`create table customer_customers (id uuid primary key default gen_random_uuid(), name text not null default '', status text not null default 'active', owner_user_id uuid);
      create table billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid references customer_customers, balance numeric not null default 0);
      insert into customer_customers default values; insert into billing_accounts (customer_id, balance) select id, 12.5 from customer_customers`);
    const folder = temporaryDirectory(t);
    const done = await init(folder, ['--yes', '--database-url', urlOf(there), '--files-only']);
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /^Adoption /m);
    assert.match(done.stdout, /^Balances {3}column balance, numeric: balances in this column are not taken over$/m);
    assert.deepEqual(await there.query(`select from pg_namespace where nspname = 'reclaim'`), []);
    const told = await init(folder, ['--yes', '--force', '--balance', 'balance', '--database-url', urlOf(there)]);
    assert.doesNotMatch(told.stderr, /stop/, told.stdout + told.stderr);
    assert.deepEqual(await there.query('select balance_micros from billing_accounts'), [{ balance_micros: '12500000' }]);
  });
});
