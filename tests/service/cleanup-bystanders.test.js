// What a request to the clean-up may do to others: hold up nobody, and delete no login that is in use.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, contracts, isThere, mailedCode, requestCode, scene, validate, wrong } from './lib/cleanup.js';
import { addCustomer } from './lib/customers.js';
import { probe } from './lib/http.js';
import { addCompany, addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage, until } from './lib/stage.js';

const confirmed = '2025-10-20T14:30:00Z';
const contract = 'cleanup-v1';
const stage = new Stage();
let cluster, db, provider, server;
before(async () => {
  cluster = await Cluster.create(stage);
  ({ db, provider, servers: { [contract]: server } } = await scene(stage, { cluster, only: [contract] }));
});
after(() => stage.end());

/** Another program's transaction that has these rows of auth.users and does not end. */
async function holding(t, users, database = db) {
  const session = await database.session(t);
  await session.query('begin');
  await session.query('select 1 from auth.users where id = any ($1) for update', [users.map(({ id }) => id)]);
  return session;
}

describe('rows that another program holds', () => {
  it('do not stop anybody whose code is invented, however many they are', async (t) => {
    const users = await Promise.all(Array.from({ length: 40 }, () => addUser(db)));
    const codes = await Promise.all(users.slice(0, 20).map((user) => mailedCode(server, provider, user.email)));
    const holder = await holding(t, users);
    const never = contracts[contract].neverRight;
    const answers = await Promise.all(users.map((user, n) => validate(server, user.email, codes[n] ? wrong(codes[n]) : never)));
    answers.forEach((answer, n) => assertRefused(answer, contract, codes[n] ? '002' : '001'));
    assert.equal((await probe(server, users[0].email)).json.data.isOrphaned, true);
    await holder.query('rollback');
  });

  it('nor where an ownership table has no foreign key and is locked as a whole', async (t) => {
    const own = await cluster.database(t);
    await own.query('alter table companies drop constraint companies_owner_admin_uuid_fkey');
    const locking = await serve(t, { database: own, env: provider.env });
    const user = await addUser(own);
    const session = await own.session(t);
    await session.query('begin; lock table companies in row exclusive mode');
    const answers = await Promise.all(Array.from({ length: 20 }, () => validate(locking, user.email, contracts[contract].neverRight)));
    for (const answer of answers) assert.match(answer.json.error.code, /_00(1|9)$/);
    await session.query('rollback');
  });

  it('have the right code answered 009, as often as it is typed, and it stays good', async (t) => {
    const user = await addUser(db, { confirmed });
    const code = await mailedCode(server, provider, user.email);
    const holder = await holding(t, [user]);
    for (let typed = 0; typed < 4; typed++) assertRefused(await validate(server, user.email, code), contract, '009');
    assert.equal(await isThere(db, user), true);
    await holder.query('rollback');
    assertDeleted(await validate(server, user.email, code), contract, user);
  });

  it('keep nobody waiting whose address is being worked on already', async (t) => {
    const user = await addUser(db);
    const [operator, migration] = [await db.session(t), await db.session(t)];
    await operator.query('select reclaim.acquire_cleanup_lock($1)', [user.email]);
    await migration.query('begin; lock table public.companies in access exclusive mode');
    assertRefused(await requestCode(server, user.email), contract, '009');
    await migration.query('rollback');
    await operator.query('select reclaim.release_cleanup_lock($1)', [user.email]);
    assertSent(await requestCode(server, user.email), contract);
  });
});

describe('codes asked for at the same time', () => {
  it('are stored together, and each request has the answer it would have alone', async (t) => {
    const [held, owner, twice] = [await addUser(db), await addUser(db), await addUser(db)];
    await addCompany(db, owner);
    await mailedCode(server, provider, held.email);
    const holder = await db.session(t);
    await holder.query('begin');
    await holder.query('select 1 from reclaim.verification_codes where user_id = $1 for update', [held.id]);

    const users = await Promise.all(Array.from({ length: 60 }, () => addUser(db)));
    const expected = new Map([[held.email, '009'], [owner.email, '005'], ['nobody-at-all@example.com', '004']]);
    const addresses = [...users.map(({ email }) => email), twice.email, twice.email, ...expected.keys()].sort();
    const [{ last }] = await db.query('select coalesce(max(id), 0) as last from reclaim.auth_cleanup_log');
    const answers = await Promise.all(addresses.map((email) => requestCode(server, email)));

    const answersTo = (email) => answers.filter((_, n) => addresses[n] === email);
    for (const [email, code] of expected) for (const answer of answersTo(email)) assertRefused(answer, contract, code);
    for (const { email } of users) for (const answer of answersTo(email)) assertSent(answer, contract);
    const both = answersTo(twice.email).map((answer) => answer.status);
    assert.ok(both.includes(200) && both.every((status) => status === 200 || status === 409), both.join());
    await holder.query('rollback');

    const [{ rows, transactions }] = await db.query(
      `select count(*)::int as rows, count(distinct xmin::text)::int as transactions
       from reclaim.auth_cleanup_log where id > $1 and status <> 'failed'`,
      [last],
    );
    assert.ok(rows >= users.length + 1 && transactions < rows, `${rows} rows in ${transactions} transactions`);
  });
});

describe('the login of a live customer', () => {
  const states = {
    'that is active': '',
    'that is frozen': `update reclaim.customer_customers set status = 'frozen' where id = $1`,
    'under legal hold': `update reclaim.customer_customers set hold_reason = 'case', hold_at = now() where id = $1`,
  };
  for (const [state, change] of Object.entries(states))
    it(`${state} is not deleted, though it has no company`, async () => {
      const user = await addUser(db, { confirmed });
      const code = await mailedCode(server, provider, user.email);
      const customer = await addCustomer(db, { owner: false });
      await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [customer.id, user.id]);
      if (change) await db.query(change, [customer.id]);
      assertRefused(await validate(server, user.email, code), contract, '005');
      assertRefused(await requestCode(server, user.email), contract, '005');
      assert.equal(await isThere(db, user), true);
      const { data } = (await probe(server, user.email)).json;
      assert.deepEqual([data.hasCompanyData, data.isOrphaned], [true, false]);
      const { stdout } = await run(stage, ['orphans', '--older-than', '0s', '--format', 'csv'], { database: db });
      assert.ok(!stdout.includes(user.id), stdout);
    });

  it('as its member is not deleted, whether it is active or frozen, until it is deleted or the membership ends', async () => {
    for (const status of ['active', 'frozen']) {
      const user = await addUser(db, { confirmed });
      const code = await mailedCode(server, provider, user.email);
      const customer = await addCustomer(db);
      await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [customer.id, user.id]);
      await db.query('update reclaim.customer_customers set status = $2 where id = $1', [customer.id, status]);
      assertRefused(await validate(server, user.email, code), contract, '005');
      assertRefused(await requestCode(server, user.email), contract, '005');
      assert.equal(await isThere(db, user), true);
      const { data } = (await probe(server, user.email)).json;
      assert.deepEqual([data.hasCompanyData, data.isOrphaned], [true, false]);
      const { stdout } = await run(stage, ['orphans', '--older-than', '0s', '--format', 'csv'], { database: db });
      assert.ok(!stdout.includes(user.id), stdout);

      if (status === 'active') await db.query('delete from reclaim.customer_members where user_id = $1', [user.id]);
      else await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
      assert.equal((await probe(server, user.email)).json.data.hasCompanyData, false);
      const asked = await requestCode(server, user.email);
      if (status === 'frozen' && asked.status === 404) assertRefused(asked, contract, '004'); // the deletion has taken the login away
      else assertSent(asked, contract);
    }
  });

  it('that is created while the right code is typed is not deleted either', async (t) => {
    const user = await addUser(db, { confirmed });
    const code = await mailedCode(server, provider, user.email);
    const session = await db.session(t);
    await session.query('begin');
    await session.query('insert into reclaim.customer_customers (owner_user_id) values ($1)', [user.id]);
    assertRefused(await validate(server, user.email, code), contract, '009');
    await session.query('commit');
    assertRefused(await validate(server, user.email, code), contract, '005');
    assert.equal(await isThere(db, user), true);
  });

  it('that was just deleted is not given a customer', async (t) => {
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin');
    await session.query('delete from auth.users where id = $1', [user.id]);
    const creating = assert.rejects(db.query('insert into reclaim.customer_customers (owner_user_id) values ($1)', [user.id]), /deleted/);
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until('the customer waiting for its owner', async () => (await db.query(waiting)).length > 0);
    await session.query('commit');
    await creating;
  });

  it('is an orphan again when its only customer is deleted', async () => {
    const user = await addUser(db);
    await db.query(`insert into reclaim.customer_customers (owner_user_id, status, tm_delete) values ($1, 'deleted', now())`, [user.id]);
    assertSent(await requestCode(server, user.email), contract);
  });
});

describe('a banned user', () => {
  const ban = (user, until) => db.query('update auth.users set banned_until = $2 where id = $1', [user.id, until]);

  it('is not deleted by either step, and is probed like any other', async () => {
    const user = await addUser(db, { confirmed });
    const code = await mailedCode(server, provider, user.email);
    await ban(user, '2999-01-01');
    assertRefused(await validate(server, user.email, code), contract, '005');
    assertRefused(await requestCode(server, user.email), contract, '005');
    assert.equal((await probe(server, user.email)).json.data.isOrphaned, true);
    assert.equal(await isThere(db, user), true);
    const { stdout } = await run(stage, ['orphans', '--older-than', '0s', '--format', 'csv'], { database: db });
    assert.match(stdout, new RegExp(`^${user.id},.*,banned$`, 'm'));
    await ban(user, '2001-01-01');
    assertDeleted(await validate(server, user.email, code), contract, user);
  });
});

describe('users that row security hides', () => {
  it('are not called unregistered: nothing is known of them', async (t) => {
    const own = await cluster.database(t);
    await run(t, ['migrate'], { database: own });
    const url = await addServingRole(own, 'blind');
    const blind = await serve(t, { env: { ...provider.env, RECLAIM_DATABASE_URL: url, RECLAIM_MIGRATE: 'off' } });
    const user = await addUser(own, { confirmed });
    await addCompany(own, user);
    await own.query('alter table auth.users enable row level security');
    assert.equal((await probe(blind, user.email)).status, 503);
    assertRefused(await requestCode(blind, user.email), contract, '006');
    await own.query('create policy everyone on auth.users for all to blind using (true)');
    assert.equal((await probe(blind, user.email)).json.data.isOrphaned, false);
    assertRefused(await requestCode(blind, user.email), contract, '005');
    await own.query('alter table reclaim.customer_customers enable row level security');
    assertRefused(await requestCode(blind, user.email), contract, '006');
    await blind.stop();
    await own.query('drop owned by blind; drop role blind');
  });
});
