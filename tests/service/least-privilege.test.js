// docs/security.md promises that two roles with few privileges are enough: its statements are followed as they stand.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, it } from 'node:test';

import { addCustomer, asAdmin, asUser, canaryPassword, env, login, recoverOwn, unregister } from './lib/customers.js';
import { assertDeleted, assertSent, requestCode, validate } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { probe, request } from './lib/http.js';
import { addCompany, addUser } from './lib/people.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addDocumentedRoles } from './lib/roles.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
let db, as, server, provider;

before(async () => {
  const cluster = await Cluster.create(stage);
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
    assert.equal(server.events('login refused: auth.mfa_factors cannot be read in full').length, 1);
    assert.match(await said(), /^warn .*auth\.mfa_factors/m);

    const page = fs.readFileSync(path.join(repository, 'docs/security.md'), 'utf8');
    await db.query(/^GRANT SELECT \(user_id, status\) ON auth\.mfa_factors TO reclaim;$/m.exec(page)[0]);
    assert.equal((await attempt()).status, 200);
    assert.doesNotMatch(await said(), /auth\.mfa_factors/);

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
