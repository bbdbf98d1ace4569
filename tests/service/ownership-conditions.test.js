// Conditions in RECLAIM_OWNERSHIP, for products in which every user has a row: only rows under the condition count.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, isThere, mailedCode, requestCode, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { probe } from './lib/http.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
const ownership = `profiles.id where onboarded_at is not null and plan in ('free,', '('),company_admins.admin_uuid`;
let db, server, provider, env, asRole;

before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await db.query(
    `create table profiles (id uuid primary key references auth.users on delete cascade, onboarded_at timestamptz, plan text not null default '(');
     create table notes (author uuid references profiles, body text)`,
  );
  provider = await FakeProvider.start(stage, 'resend');
  env = { ...provider.env, RECLAIM_OWNERSHIP: ownership };
  await run(stage, ['migrate'], { database: db });
  asRole = await addServingRole(db, 'conditional');
  await db.query('grant select (id) on profiles to conditional');
  server = await serve(stage, { database: db, env });
});
after(() => stage.end());

const addProfile = async (columns = 'id', values = '$1') => {
  const user = await addUser(db);
  await db.query(`insert into profiles (${columns}) values (${values})`, [user.id]);
  return user;
};
const addFinished = () => addProfile('id, onboarded_at', '$1, now()');
const assertBlocked = ({ json, body }) => assert.match(`${json.error?.code} ${json.error?.message}`, /^ORPHAN_CLEANUP_005 Your account has other data/, body);
const doctor = async (more = {}) => (await run(stage, ['doctor'], { database: db, env: { ...env, ...more } })).stdout;

it('a user whose row is not under the condition is an orphan for probe, report and clean-up, and its row goes with it', async () => {
  const [orphan, other, finished] = [await addProfile(), await addProfile('id, onboarded_at, plan', `$1, now(), 'paid'`), await addFinished()];
  for (const user of [orphan, other]) assert.equal((await probe(server, user.email)).json.data.isOrphaned, true);
  assert.equal((await probe(server, finished.email)).json.data.hasCompanyData, true);
  const listed = await run(stage, ['orphans', '--format', 'json'], { database: db, env });
  const ids = JSON.parse(listed.stdout).map(({ id }) => id);
  assert.deepEqual([orphan, other, finished].map(({ id }) => ids.includes(id)), [true, true, false], listed.stderr);
  assertRefused(await requestCode(server, finished.email), 'cleanup-v1', '005');
  assertDeleted(await validate(server, orphan.email, await mailedCode(server, provider, orphan.email)), 'cleanup-v1', orphan);
  assert.deepEqual(await db.query('select from profiles where id = $1', [orphan.id]), []);
  const purged = await run(stage, ['orphans', 'delete', other.id, '--reason', 'asked for'], { database: db, env });
  assert.equal(purged.code, 0, purged.stderr);
  assert.deepEqual(await db.query('select id from profiles where id in ($1, $2)', [other.id, finished.id]), [{ id: finished.id }]);
});

it('who finishes after the code was mailed keeps the account', async () => {
  const user = await addProfile();
  const code = await mailedCode(server, provider, user.email);
  await db.query('update profiles set onboarded_at = now() where id = $1', [user.id]);
  assertRefused(await validate(server, user.email, code), 'cleanup-v1', '005');
  assert.equal(await isThere(db, user), true);
});

it('while another program holds the row nothing is deleted', async (t) => {
  const user = await addProfile();
  const code = await mailedCode(server, provider, user.email);
  const program = await db.session(t);
  await program.query('begin');
  await program.query('update profiles set onboarded_at = now() where id = $1', [user.id]);
  assertRefused(await validate(server, user.email, code), 'cleanup-v1', '009');
  await program.query('rollback');
  assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
});

it('a row that does not go with the user refuses its deletion with 005, and doctor says how to change that', async () => {
  await db.query('alter table profiles drop constraint profiles_id_fkey, add constraint profiles_id_fkey foreign key (id) references auth.users');
  try {
    const user = await addProfile();
    assertBlocked(await requestCode(server, user.email));
    assert.match(await doctor(), /^warn {2}public\.profiles \(id\) refers to auth\.users.*\(005\): take the condition of public\.profiles\.id out of RECLAIM_OWNERSHIP.* ON DELETE CASCADE$/m);
  } finally {
    await db.query('alter table profiles drop constraint profiles_id_fkey, add constraint profiles_id_fkey foreign key (id) references auth.users on delete cascade');
  }
  const noted = await addProfile();
  await db.query('insert into notes (author) values ($1)', [noted.id]);
  assertBlocked(await requestCode(server, noted.email));
});

it('a condition that PostgreSQL does not take stops the start, and doctor says why', async (t) => {
  for (const [condition, why] of [
    ['onbarded_at is not null', /column "onbarded_at" does not exist/],
    ['email_confirmed_at is not null', /column "email_confirmed_at" does not exist/], // one of auth.users
    ['profiles.onboarded_at is not null', /missing FROM-clause|invalid reference to FROM-clause/],
    ['1', /must be type boolean/],
    ['count(*) > 1', /aggregate functions are not allowed/],
  ]) {
    const wrong = { RECLAIM_OWNERSHIP: `profiles.id where ${condition}` };
    const said = await doctor(wrong);
    assert.match(said, new RegExp(`^FAIL {2}RECLAIM_OWNERSHIP: .*${why.source}`, 'm'), said);
    if (condition !== '1') continue;
    const refused = await serve(t, { database: db, env: { ...env, ...wrong }, wait: 'nothing' });
    assert.equal((await refused.ended()).code, 1);
    assert.match(refused.events('cannot start')[0].why, why);
  }
  const typed = await run(t, ['orphans'], { database: db, env: { RECLAIM_OWNERSHIP: 'profiles.id where id in (select id from notes)' } });
  assert.equal(typed.code, 1);
  assert.match(typed.stderr, /RECLAIM_OWNERSHIP: "profiles\.id where .*" is not a column .* sub-select/);
});

it('a role that cannot read or lock those rows deletes nobody, and doctor prints what it needs', async (t) => {
  const user = await addProfile();
  const code = await mailedCode(server, provider, user.email);
  const narrow = await serve(t, { database: asRole, env: { ...env, RECLAIM_MIGRATE: 'off' } });
  const complaint = async () => (await run(t, ['doctor'], { database: asRole, env: { ...env, RECLAIM_MIGRATE: 'off' } })).stdout;
  const mend = async (pattern) => {
    const said = await complaint();
    assert.match(said, pattern);
    await db.query(pattern.exec(said)[1]);
  };
  assertRefused(await validate(narrow, user.email, code), 'cleanup-v1', '006');
  await mend(/^FAIL {2}this role may not read public\.profiles: (GRANT SELECT \(id, onboarded_at, plan\) ON public\.profiles TO conditional)$/m);
  assertRefused(await validate(narrow, user.email, code), 'cleanup-v1', '006');
  await mend(/^FAIL {2}this role may not lock rows of public\.profiles, .*: (GRANT UPDATE \(id\) ON public\.profiles TO conditional)$/m);

  // A policy for reading leaves rows that cannot be locked: silently, unless asked for.
  await db.query('alter table profiles enable row level security; create policy reads on profiles for select to conditional using (true)');
  assertRefused(await validate(narrow, user.email, code), 'cleanup-v1', '006');
  await mend(/^FAIL {2}row-level security .* public\.profiles .*: (CREATE POLICY .* FOR ALL TO conditional USING \(true\))$/m);
  assertDeleted(await validate(narrow, user.email, code), 'cleanup-v1', user);
  assertSent(await requestCode(narrow, (await addProfile()).email), 'cleanup-v1');
  await narrow.stop();
  await db.query('drop owned by conditional; drop role conditional');
});
