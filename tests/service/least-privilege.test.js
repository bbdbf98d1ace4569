// docs/security.md promises that two roles with few privileges are enough: its statements are followed as they stand.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, asUser, canaryPassword, env, login, recoverOwn, unregister } from './lib/customers.js';
import { assertDeleted, assertRefused, assertSent, isThere, mailedCode, requestCode, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { probe, request } from './lib/http.js';
import { addCompany, addUser } from './lib/people.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addDocumentedRoles, documentedStatements } from './lib/roles.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
const documented = documentedStatements();
let cluster, db, as, server, provider;

before(async () => {
  cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  as = await addDocumentedRoles(stage, db);
  provider = await FakeProvider.start(stage, 'resend');
  server = await serve(stage, { database: as('reclaim'), env: { ...env, ...provider.env, RECLAIM_MIGRATE: 'off' } });
});
after(() => stage.end());

it('an orphan is found, mailed and deleted', async () => {
  const user = await addUser(db);
  assert.equal((await probe(server, user.email)).json.data.isOrphaned, true);
  assertSent(await requestCode(server, user.email), 'cleanup-v1');
  const { code } = await provider.mailTo(user.email);
  assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
});

it('a customer signs in, leaves and comes back', async () => {
  const customer = await addCustomer(db);
  const me = asUser(customer.user.id);
  assert.equal((await login(server, customer.user.email, canaryPassword)).status, 200);
  assert.equal((await unregister(server, me, { password: canaryPassword })).json.status, 'frozen');
  assert.equal((await recoverOwn(server, me)).json.status, 'active');
});

it('a customer signs in with a mailed code, and out again', async () => {
  const { user } = await addCustomer(db, { sso: true });
  const say = (path, body, headers) => request(server, { method: 'POST', path, headers, body: body && JSON.stringify(body) });
  assert.equal((await say('/auth/code', { email: user.email })).status, 202);
  const { code } = await provider.mailTo(user.email);
  const { json } = await say('/auth/login', { email: user.email, code });
  const me = { Authorization: `Bearer ${json.token}` };
  assert.equal((await request(server, { path: '/gate', headers: me })).status, 200);
  assert.equal((await say('/auth/logout', undefined, me)).status, 204);
  assert.equal((await request(server, { path: '/gate', headers: me })).json.error, 'SESSION_ENDED');
});

it('nobody is signed in on a guess: not while second factors cannot be read, or might be hidden', async () => {
  const customer = await addCustomer(db);
  const attempt = (password = canaryPassword) => login(server, customer.user.email, password);
  const said = async () => (await run(stage, ['doctor'], { database: as('reclaim'), env: { RECLAIM_MIGRATE: 'off', ...env, ...provider.env } })).stdout;
  await db.query('create table auth.mfa_factors (user_id uuid, status text)');
  try {
    assert.equal((await attempt('canary-password-wrong')).status, 401);
    assert.equal((await attempt()).status, 503);
    await server.line('login refused', ({ event }) => event === 'login refused: auth.mfa_factors cannot be read in full');
    assert.match(await said(), /^warn .*auth\.mfa_factors/m);

    const page = fs.readFileSync(path.join(repository, 'docs/security.md'), 'utf8');
    await db.query(/^GRANT SELECT \(user_id, status\) ON auth\.mfa_factors TO reclaim;$/m.exec(page)[0]);
    assert.equal((await attempt()).status, 200);
    assert.doesNotMatch(await said(), /cannot read all of auth\.mfa_factors/);

    await db.query(`insert into auth.mfa_factors values ($1, 'verified')`, [customer.user.id]);
    assert.equal((await attempt()).status, 403);
    await db.query('alter table auth.mfa_factors enable row level security');
    assert.equal((await attempt()).status, 503, 'a factor that is hidden is not taken for none');
  } finally {
    await db.query('drop table auth.mfa_factors');
  }
  assert.equal((await attempt()).status, 200);
});

it('a customer is deleted, and its user with it or, where a company still refers to it, unrecognisable', async () => {
  for (const company of [false, true]) {
    const customer = await addCustomer(db);
    if (company) await addCompany(db, customer.user);
    const answer = await request(server, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.json.status, 'deleted');
    const [user] = await db.query('select email, encrypted_password from auth.users where id = $1', [customer.user.id]);
    if (company) assert.deepEqual(user, { email: `deleted_${customer.user.id}@removed.invalid`, encrypted_password: '' });
    else assert.equal(user, undefined);
  }
});

it('a customer is created, found and given a member, whose login goes with it', async () => {
  const user = await addUser(db, { confirmed: '2025-10-02T00:00:00Z' });
  const call = (method, path, body) =>
    request(server, { method, path, headers: { 'Content-Type': 'application/json', ...asAdmin() }, body: body && JSON.stringify(body) });
  const { json: customer } = await call('POST', '/v1/customers', { name: 'Fewest rights', owner_user_id: user.id });
  assert.equal((await call('GET', '/v1/customers?q=fewest')).json.items[0].id, customer.id);
  const member = await addUser(db, { confirmed: '2025-10-02T00:00:00Z' });
  assert.equal((await call('POST', `/v1/customers/${customer.id}/members`, { user_id: member.id })).status, 201);
  assert.equal((await call('GET', `/v1/customers/${customer.id}/members`)).json.items[0].email, member.email);
  const imported = await run(stage, ['customers', 'import', '--from-users'], { database: as('reclaim') });
  assert.equal(imported.code, 0, imported.stderr);
  assert.equal((await call('DELETE', `/v1/customers/${customer.id}`)).status, 200);
  assert.deepEqual(await db.query('select from auth.users where id in ($1, $2)', [user.id, member.id]), []);
});

it('the doctor has nothing to say against it', async () => {
  const said = await run(stage, ['doctor'], { database: as('reclaim'), env: { RECLAIM_MIGRATE: 'off', ...env, ...provider.env } });
  assert.doesNotMatch(said.stdout, /FAIL/);
  assert.equal(said.code, 0, said.stdout + said.stderr);
});

it('and nothing more is allowed: no company is read, no table made, no migration forged', async () => {
  const client = await db.session(stage);
  await client.query('set role reclaim');
  for (const sql of [
    'select name from public.companies',
    'create table reclaim.mine ()',
    'create table public.mine ()',
    'delete from reclaim.schema_migrations',
    'insert into auth.users (id) values (gen_random_uuid())',
  ])
    await assert.rejects(client.query(sql), { code: '42501' }, sql);
});

describe('on Supabase Auth’s schema, with row security on for every table', () => {
  const own = new Stage();
  let there, narrow, mails;
  const doctor = async () => (await run(own, ['doctor'], { database: there.url.replace('postgres@', 'reclaim@'), env: { RECLAIM_MIGRATE: 'off', ...env, ...mails.env } })).stdout;
  const complaints = async () => (await doctor()).split('\n').filter((line) => /^(FAIL|warn)/.test(line) && !line.includes('fsync'));

  before(async () => {
    there = await cluster.database(own, { auth: 'supabase' });
    await addDocumentedRoles(own, there, { exist: true });
    for (const sql of documented.supabase) await there.query(sql);
    await there.query(`do $$ declare t regclass; begin
      for t in select c.oid from pg_class c where relnamespace in ('auth'::regnamespace, 'public'::regnamespace) and relkind in ('r', 'p')
      loop execute format('alter table %s enable row level security', t); end loop; end $$`);
    for (const sql of documented.policies) await there.query(sql);
    mails = await FakeProvider.start(own, 'resend');
    narrow = await serve(own, { database: there.url.replace('postgres@', 'reclaim@'), env: { ...env, ...mails.env, RECLAIM_MIGRATE: 'off' } });
  });
  after(() => own.end());

  it('the documented policies are enough for all of it, and doctor agrees', async () => {
    assert.deepEqual(await complaints(), []);
    assert.equal(narrow.events('the database is not as it should be').length, 0);
    const orphan = await addUser(there);
    assertDeleted(await validate(narrow, orphan.email, await mailedCode(narrow, mails, orphan.email)), 'cleanup-v1', orphan);
    const owner = await addUser(there);
    await addCompany(there, owner);
    assertRefused(await requestCode(narrow, owner.email), 'cleanup-v1', '005');

    const customer = await addCustomer(there);
    assert.equal((await login(narrow, customer.user.email, canaryPassword)).status, 200);
    await addCompany(there, customer.user);
    await there.query(`insert into auth.identities (provider_id, user_id, identity_data, provider) values ($1, $2, '{}', 'email')`, [customer.user.id, customer.user.id]);
    const answer = await request(narrow, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
    assert.equal(answer.status, 200, answer.body);
    assert.deepEqual(await there.query('select email, (select count(*)::int from auth.identities where user_id = u.id) as left from auth.users u where id = $1', [customer.user.id]),
      [{ email: `deleted_${customer.user.id}@removed.invalid`, left: 0 }]);
  });

  const all = 'create policy reclaim_all on auth.users for all to reclaim using (true)';
  const lacking = {
    'no policy': '',
    'a policy for reading only': 'create policy lacking on auth.users for select to reclaim using (true)',
    'no policy for the lock': 'create policy lacking on auth.users for select to reclaim using (true); create policy lacking2 on auth.users for delete to reclaim using (true)',
    'no policy for deleting': 'create policy lacking on auth.users for select to reclaim using (true); create policy lacking2 on auth.users for update to reclaim using (true)',
    'a restrictive policy beside it': `${all}; create policy lacking on auth.users as restrictive to reclaim using (email not like 'user%')`,
  };
  for (const [lack, policies] of Object.entries(lacking))
    it(`with ${lack} on auth.users nobody gets a code, or is called unknown when typing one; doctor prints what mends it`, async () => {
      const [user, other] = [await addUser(there), await addUser(there)];
      const code = await mailedCode(narrow, mails, user.email);
      await there.query(`drop policy reclaim_all on auth.users; ${policies}`);
      assertRefused(await requestCode(narrow, other.email), 'cleanup-v1', '006');
      assertRefused(await validate(narrow, user.email, code), 'cleanup-v1', '006');
      assert.equal(await isThere(there, user), true);
      const said = await complaints();
      const mend = /^FAIL {2}row-level security .* auth\.users .*: ((CREATE|ALTER) .*)$/m.exec(said.join('\n'))?.[1];
      assert.ok(mend, said.join('\n'));
      await there.query(mend);
      assert.deepEqual(await complaints(), []);
      assertDeleted(await validate(narrow, user.email, code), 'cleanup-v1', user);
      assertSent(await requestCode(narrow, other.email), 'cleanup-v1');
      await there.query(`drop policy if exists lacking on auth.users; drop policy if exists lacking2 on auth.users; drop policy if exists reclaim_all on auth.users; ${all}; alter role reclaim nobypassrls`);
    });

  it('a table of Reclaim’s own whose rows are hidden is found too', async () => {
    await there.query('alter table reclaim.verification_codes enable row level security');
    const said = await complaints();
    const mend = /^FAIL {2}row-level security .* reclaim\.verification_codes .*: (CREATE .*)$/m.exec(said.join('\n'))?.[1];
    assert.ok(mend, said.join('\n'));
    await there.query(mend);
    assert.deepEqual(await complaints(), []);
    const orphan = await addUser(there);
    assertDeleted(await validate(narrow, orphan.email, await mailedCode(narrow, mails, orphan.email)), 'cleanup-v1', orphan);
  });

  it('privileges that are missing are named with their GRANT', async () => {
    for (const [revoke, told] of [
      ['revoke update on auth.users from reclaim; revoke update (email, encrypted_password, deleted_at, raw_app_meta_data, raw_user_meta_data, phone, email_change, phone_change, confirmation_token, recovery_token, email_change_token_new, email_change_token_current, phone_change_token, reauthentication_token) on auth.users from reclaim',
        /^FAIL {2}this role may not lock rows of auth\.users: (GRANT UPDATE \(.*\) ON auth\.users TO reclaim)$/m],
      ['revoke delete on auth.users from reclaim', /^FAIL {2}this role may not delete from auth\.users: (GRANT DELETE ON auth\.users TO reclaim)$/m],
      ['revoke select (admin_uuid) on public.company_admins from reclaim', /^FAIL {2}this role may not read public\.company_admins: (GRANT SELECT \(admin_uuid\) ON public\.company_admins TO reclaim)$/m],
    ]) {
      await there.query(revoke);
      const said = await doctor();
      const mend = told.exec(said)?.[1];
      assert.ok(mend, said);
      await there.query(mend);
      assert.doesNotMatch(await doctor(), /^FAIL/m);
      for (const sql of [documented.before, documented.after, documented.owner, ...documented.supabase].filter((sql) => sql.includes('auth.users'))) await there.query(sql);
    }
  });
});
