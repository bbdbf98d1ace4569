// The same promises on a database laid out by Supabase Auth, with all its tables, keys and row security.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { matrix } from './lib/matrix.js';
import { addCompany, addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage } from './lib/stage.js';

/** What Supabase Auth writes beside a user who signed in. */
async function addSignIn(db, user) {
  const session = randomUUID();
  const factor = randomUUID();
  await db.query(
    `insert into auth.identities (provider_id, user_id, identity_data, provider, created_at)
     values ($1, $2, jsonb_build_object('sub', $1::text, 'email', $3::text), 'email', now())`,
    [user.id, user.id, user.email],
  );
  await db.query(`insert into auth.sessions (id, user_id, created_at, aal) values ($1, $2, now(), 'aal1')`, [session, user.id]);
  await db.query(`insert into auth.refresh_tokens (token, user_id, session_id, revoked) values ($1, $2, $3, false)`, [randomUUID(), user.id, session]);
  await db.query(
    `insert into auth.mfa_amr_claims (session_id, created_at, updated_at, authentication_method, id) values ($1, now(), now(), 'password', $2)`,
    [session, randomUUID()],
  );
  await db.query(
    `insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at) values ($1, $2, 'totp', 'verified', now(), now())`,
    [factor, user.id],
  );
  await db.query(
    `insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to) values ($1, $2, 'recovery_token', 'hash', $3)`,
    [randomUUID(), user.id, user.email],
  );
}

describe('check-email-status on Supabase Auth’s schema', () => {
  const stage = new Stage();
  let cluster, db, server;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage, { auth: 'supabase' });
    server = await serve(stage, { database: db });
  });
  after(() => stage.end());

  for (const [promise, arrange, expected] of matrix)
    it(promise, async () => {
      const answer = await probe(server, await arrange(db));
      assert.equal(answer.status, 200, answer.body);
      const { correlationId, ...data } = answer.json.data;
      assert.ok(correlationId);
      assert.deepEqual(data, expected);
    });

  it('a user confirmed by phone alone has not confirmed the address', async () => {
    const user = await addUser(db);
    await db.query(`update auth.users set phone = '15550100', phone_confirmed_at = now() where id = $1`, [user.id]);
    const { data } = (await probe(server, user.email)).json;
    assert.equal(data.status, 'registered_unverified');
    assert.equal(data.verifiedAt, null);
  });

  it('identities, sessions, tokens and factors make nobody complete', async () => {
    const user = await addUser(db, { confirmed: '2025-10-20T14:30:00Z', lastSignIn: '2025-10-21T00:00:00Z' });
    await addSignIn(db, user);
    const { data } = (await probe(server, user.email)).json;
    assert.equal(data.status, 'registered_verified');
    assert.equal(data.isOrphaned, true);
  });

  it('the address is found by its index', async () => {
    await db.query(
      `insert into auth.users (id, email) select gen_random_uuid(), 'crowd' || n || '@canary-reclaim.example.com' from generate_series(1, 20000) n`,
    );
    await db.query('analyze auth.users');
    const earlier = await db.query(`select seq_scan::int, idx_scan::int from pg_stat_user_tables where relid = 'auth.users'::regclass`);
    for (let n = 1; n <= 20; n++) await probe(server, `crowd${n * 900}@canary-reclaim.example.com`);
    await server.stop(); // a session reports its counts at the latest when it ends
    const later = await db.query(`select seq_scan::int, idx_scan::int from pg_stat_user_tables where relid = 'auth.users'::regclass`);
    assert.equal(later[0].seq_scan, earlier[0].seq_scan, 'no probe read the whole table');
    assert.ok(later[0].idx_scan >= earlier[0].idx_scan + 20);
    server = await serve(stage, { database: db });
  });

  it('serving leaves the auth and public schemas as they were', async (t) => {
    const fresh = await cluster.database(t, { auth: 'supabase' });
    const look = () =>
      fresh.query(
        `select n.nspname, c.relname, c.relkind::text, a.attname, format_type(a.atttypid, a.atttypmod) as type
         from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
         where n.nspname in ('auth', 'public') order by 1, 2, a.attnum`,
      );
    const earlier = await look();
    const other = await serve(t, { database: fresh });
    await other.stop();
    assert.deepEqual(await look(), earlier);
  });

  it('an owner whose company row security hides is never called an orphan', async (t) => {
    const fresh = await cluster.database(t);
    const owner = await addUser(fresh, { confirmed: '2025-10-20T14:30:00Z', created: '2020-01-01T00:00:00Z' });
    await addCompany(fresh, owner);
    await run(t, ['migrate'], { database: fresh });
    await fresh.query('alter table companies enable row level security');
    const url = await addServingRole(fresh, 'narrow');
    const narrow = await serve(t, { env: { RECLAIM_DATABASE_URL: url, RECLAIM_DATABASE_DIRECT_URL: url, RECLAIM_MIGRATE: 'off' } });
    const { data } = (await probe(narrow, owner.email)).json;
    assert.equal(data.status, 'registered_verified');
    assert.equal(data.isOrphaned, null);
    const listed = await run(t, ['orphans'], { database: url });
    assert.equal(listed.code, 1);
    assert.ok(!listed.stdout.includes(owner.id));
    await fresh.query('create policy all_of_them on companies for select using (true)');
    await narrow.stop();
    const seeing = await serve(t, { env: { RECLAIM_DATABASE_URL: url, RECLAIM_DATABASE_DIRECT_URL: url, RECLAIM_MIGRATE: 'off' } });
    assert.equal((await probe(seeing, owner.email)).json.data.isOrphaned, false);
    await seeing.stop();
    await fresh.query('drop owned by narrow; drop role narrow');
  });

  it('doctor notices a role that row security keeps from seeing any user', async (t) => {
    const fresh = await cluster.database(t, { auth: 'supabase' });
    await addUser(fresh);
    await run(t, ['migrate'], { database: fresh });
    await fresh.query('create role shortsighted login');
    await fresh.query(
      `grant usage on schema auth, reclaim to shortsighted; grant all on all tables in schema reclaim to shortsighted;
       grant select on companies, company_admins to shortsighted; grant select, update, delete on auth.users to shortsighted`,
    );
    const doctor = () => run(t, ['doctor'], { database: fresh.url.replace('postgres@', 'shortsighted@') });
    const unable = await doctor();
    assert.equal(unable.code, 1, unable.stdout);
    assert.match(unable.stdout, /FAIL  whether row security hides rows cannot be asked .*EXECUTE ON ALL FUNCTIONS/);
    await fresh.query('grant execute on all functions in schema reclaim to shortsighted');
    const found = await doctor();
    assert.equal(found.code, 1, found.stdout);
    assert.match(found.stdout, /FAIL  row-level security hides rows of auth\.users from this role/);
    await fresh.query('drop owned by shortsighted; drop role shortsighted');
  });
});
