// RECLAIM_CUSTOMERS=users: every user of auth.users is a customer of the same id, whose row is made when it is first needed. On
// Supabase Auth's schema, with the documented roles and policies.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { begin, over } from './lib/calls.js';
import { assertDeleted, assertRefused, isThere, mailedCode, requestCode, validate } from './lib/cleanup.js';
import {
  addBillingAccount, addCustomer, addKey, asAdmin, asKey, assertError, asUser, auditOf, canaryPassword, customerAddress, env, eventsOf, freeze,
  list, login, passwordHash, recover, recoverOwn, rowOf, show, unregister,
} from './lib/customers.js';
import { deleted, erased, frozenSince, hold, ledger, preview, remove, unhold } from './lib/erasure.js';
import { FakeProvider } from './lib/fake-provider.js';
import { addKeys, gate } from './lib/gate.js';
import { probe, request } from './lib/http.js';
import { addUser as addBareUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addSupabaseRoles, documentedStatements } from './lib/roles.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
const confirmed = '2025-10-02T00:00:00Z';
let cluster, db, server, provider, settings;

before(async () => {
  cluster = await Cluster.create(stage);
  db = await cluster.database(stage, { auth: 'supabase' });
  provider = await FakeProvider.start(stage, 'resend');
  const reach = await addSupabaseRoles(stage, db, documentedStatements().users);
  settings = { ...env, ...provider.env, ...reach, RECLAIM_CUSTOMERS: 'users', RECLAIM_HOLD_MS: '5', RECLAIM_HOLD_SIGMA_MS: '0', RECLAIM_LIMIT_IP: 'off' };
  server = await serve(stage, { env: { ...settings, RECLAIM_EXPIRY_INTERVAL: '1s' } });
  // Data of the product, by user.
  await db.query(`create table public.notes (id bigint generated always as identity, author uuid not null, text text);
    create index on public.notes (author); grant select, delete on public.notes to reclaim`);
  assert.equal((await reclaim('cascade', 'add', 'notes', '--table', 'public.notes', '--column', 'author', '--by', 'user')).code, 0);
});
after(() => stage.end());

const reclaim = (...args) => run(stage, args, { env: settings });
const call = (method, path, headers, body) =>
  request(server, { method, path, headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers }, body: body && JSON.stringify(body) });

/** A user with a password and a note, and no row among customers; addresses of customers may be in Reclaim's tables. */
async function addUser(given = {}) {
  const user = await addBareUser(db, { email: customerAddress('user'), confirmed, ...given });
  await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, passwordHash]);
  await db.query('insert into public.notes (author, text) values ($1, $2)', [user.id, 'a note']);
  return user;
}

const rows = async () => (await db.query('select count(*)::int as n from reclaim.customer_customers'))[0].n;
const notesOf = async ({ id }) => (await db.query('select count(*)::int as n from public.notes where author = $1', [id]))[0].n;
const isActive = async ({ id }) => (await db.query('select reclaim.customer_is_active($1) as active', [id]))[0].active;

/** Nothing has made a row meanwhile. */
async function withoutRow(user) {
  assert.equal(await rowOf(db, user), undefined);
}

/** As a deleted customer: no credential, no call, no policy counts. */
async function isGone(user) {
  assertError(await gate(server, asUser(user.id)), 401, 'ACCOUNT_DELETED');
  assert.equal(await isActive(user), false);
  assert.notEqual((await begin(server, user)).status, 201);
}

describe('a user without a row', () => {
  let user;
  before(async () => (user = await addUser()));

  it('passes the gate as the customer of its id', async () => {
    const answer = await gate(server, asUser(user.id));
    assert.deepEqual([answer.status, answer.headers['x-customer-id'], answer.headers['x-customer-status']], [200, user.id, 'active']);
    assert.equal((await gate(server, { ...asUser(user.id), 'X-Reclaim-Customer': user.id })).status, 200);
    assertError(await gate(server, { ...asUser(user.id), 'X-Reclaim-Customer': randomUUID() }), 403, 'NO_CUSTOMER');
  });

  it('is active in policies, calls, and is shown', async () => {
    assert.equal(await isActive(user), true);
    assert.equal((await begin(server, user)).status, 201);
    for (const headers of [asUser(user.id), asAdmin()]) {
      const { status, json } = await show(server, user.id, headers);
      assert.equal(status, 200);
      assert.deepEqual(
        { id: json.id, status: json.status, email: json.email, tm_create: json.tm_create },
        { id: user.id, status: 'active', email: user.email, tm_create: '2025-10-01T00:00:00.000000Z' },
      );
    }
    const session = await call('GET', '/auth/session', asUser(user.id));
    assert.deepEqual(session.json.customers.map(({ id, status, role }) => ({ id, status, role })), [{ id: user.id, status: 'active', role: 'owner' }]);
    assert.equal((await login(server, user.email, canaryPassword)).status, 200);
  });

  it('has an empty ledger, a preview, no members, a timeline, and is not frozen', async () => {
    assert.equal((await ledger(server, user.id)).json.status, 'not_started');
    const { json } = await preview(server, user.id, { headers: asUser(user.id) });
    assert.equal(json.participants.find(({ name }) => name === 'notes').rows, 1);
    assert.deepEqual((await call('GET', `/v1/customers/${user.id}/members`, asAdmin())).json.items, []);
    assert.equal((await call('GET', `/v1/customers/${user.id}/timeline`, asAdmin())).json.customer.status, 'active');
    assertError(await recoverOwn(server, asUser(user.id)), 404, 'NOT_FROZEN');
    assertError(await recover(server, user.id), 404, 'NOT_FROZEN');
  });

  it('is found by its id or its address, and is on no list', async () => {
    for (const q of [user.id, user.email, user.email.toUpperCase()]) {
      const { json } = await list(server, `?counts=1&q=${encodeURIComponent(q)}`);
      assert.deepEqual(json.items.map(({ id }) => id), [user.id], q);
      assert.equal(json.counts.active, 1);
      assert.deepEqual((await list(server, `?status=frozen&q=${encodeURIComponent(q)}`)).json.items, []);
    }
    assert.deepEqual((await list(server, '?limit=100')).json.items.filter(({ id }) => id === user.id), []);
    const shown = await reclaim('show', user.id);
    assert.equal(JSON.parse(shown.stdout).status, 'active', shown.stderr);
    const imported = await reclaim('customers', 'import', '--from-users');
    assert.equal(imported.code, 0, imported.stderr);
    assert.match(imported.stderr, /not needed/);
  });

  it('and for all that has got no row', async () => withoutRow(user));

  it('a random id, and a user marked as deleted, are none', async () => {
    const marked = await addUser({ deleted: confirmed });
    for (const nobody of [{ id: randomUUID() }, marked]) {
      await isGone(nobody);
      assert.equal((await show(server, nobody.id)).status, 404);
      assert.equal((await freeze(server, nobody.id)).status, 404);
      assert.equal((await remove(server, nobody.id)).status, 404);
      assert.equal((await hold(server, nobody.id, 'none')).status, 404);
      assert.equal((await reclaim('key', 'create', '--customer', nobody.id)).code, 1);
      await withoutRow(nobody);
    }
  });
});

describe('leaving', () => {
  it('its own freeze makes the row, every layer has it, and recovery gives everything back', async () => {
    const user = await addUser();
    const account = await addBillingAccount(db, user);
    await withoutRow(user);
    assert.equal((await gate(server, asUser(user.id))).status, 200);
    const { json: live } = await begin(server, user);
    const frozen = await unregister(server, asUser(user.id), { password: canaryPassword });
    assert.equal(frozen.status, 200, frozen.body);
    assert.deepEqual([frozen.json.id, frozen.json.status, frozen.json.frozen_by, frozen.json.email], [user.id, 'frozen', 'owner', user.email]);
    assert.equal((await rowOf(db, user)).owner_user_id, user.id);
    assertError(await gate(server, asUser(user.id)), 403, 'DELETION_SCHEDULED');
    assert.equal(await isActive(user), false);
    assert.equal((await begin(server, user)).status, 403);
    assert.equal((await over(server, live.id)).hangup_reason, 'account_frozen');
    const [{ hold_reasons: reasons }] = await db.query('select hold_reasons from reclaim.billing_accounts where id = $1', [account.id]);
    assert.deepEqual(reasons, ['account_frozen']);
    assert.ok(await provider.mailTo(user.email));
    const thawed = await recoverOwn(server, asUser(user.id));
    assert.deepEqual([thawed.status, thawed.json.status], [200, 'active'], thawed.body);
    assert.equal((await gate(server, asUser(user.id))).headers['x-customer-id'], user.id);
    assert.equal(await isActive(user), true);
    assert.deepEqual((await eventsOf(db, user)).map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
  });

  it('mails go to the address that the user has by now', async () => {
    const user = await addUser();
    await freeze(server, user.id);
    const moved = customerAddress('moved');
    await db.query('update auth.users set email = $2 where id = $1', [user.id, moved]);
    await recover(server, user.id);
    assert.ok(await provider.mailTo(moved));
  });

  it('it expires as others do: erased by user, the login gone, and the id never comes back', async () => {
    const user = await addUser();
    const keep = await addUser();
    assert.equal((await gate(server, asUser(user.id))).status, 200);
    assert.equal((await freeze(server, user.id)).status, 200);
    await frozenSince(db, user);
    await deleted(db, user);
    assert.equal((await erased(server, user)).participants.find(({ name }) => name === 'notes').rows, 1);
    assert.deepEqual([await notesOf(user), await notesOf(keep)], [0, 1]);
    assert.equal(await isThere(db, user), false);
    await until('401', async () => (await gate(server, asUser(user.id))).status === 401);
    await isGone(user);
    // Not even when a program puts the user back, or removes the row.
    await addBareUser(db, { id: user.id, email: customerAddress(), confirmed });
    await isGone(user);
    await db.query('delete from reclaim.customer_customers where id = $1', [user.id]);
    await isGone(user);
    assert.equal((await freeze(server, user.id)).status, 404);
  });

  it('an administrator deletes one at once; one whose login has to stay is aliased and stays deleted', async () => {
    const [plain, owner] = [await addUser(), await addUser()];
    await db.query('insert into public.companies (owner_admin_uuid) values ($1)', [owner.id]);
    for (const user of [plain, owner]) {
      const answer = await remove(server, user.id);
      assert.deepEqual([answer.status, answer.json?.status], [200, 'deleted'], answer.body);
      await isGone(user);
      assert.ok(await provider.mailTo(user.email), 'the last mail');
    }
    assert.deepEqual([await isThere(db, plain), await isThere(db, owner)], [false, true]);
  });

  it('by hand: freeze, recover, hold, delete of a user id', async () => {
    const user = await addUser();
    for (const [args, status] of [[['freeze', user.id], 'frozen'], [['recover', user.id], 'active']]) assert.equal(JSON.parse((await reclaim(...args)).stdout).status, status);
    const other = await addUser();
    assert.equal(JSON.parse((await reclaim('hold', other.id, '--reason', 'a lawsuit')).stdout).legal_hold.reason, 'a lawsuit');
    assertError(await remove(server, other.id), 409, 'LEGAL_HOLD');
    assert.equal((await unhold(server, other.id)).status, 200);
    assert.equal(JSON.parse((await reclaim('delete', other.id)).stdout).status, 'deleted');
    await isGone(other);
  });

  it('plain SQL that inserts the row, frozen, is as complete', async () => {
    const user = await addUser();
    assert.equal((await gate(server, asUser(user.id))).status, 200);
    await db.query(`insert into reclaim.customer_customers (id, status) values ($1, 'frozen')`, [user.id]);
    assert.equal((await rowOf(db, user)).owner_user_id, user.id);
    await until('403', async () => (await gate(server, asUser(user.id))).status === 403);
    assert.deepEqual((await eventsOf(db, user)).map(({ type }) => type), ['customer_frozen']);
  });
});

describe('orphans', () => {
  it('a user who is a customer without a row is one, and its token is refused once it is cleaned up', async () => {
    const user = await addUser({ confirmed: null });
    assert.equal((await gate(server, asUser(user.id))).status, 200);
    const { json } = await probe(server, user.email);
    assert.deepEqual([json.data.hasCompanyData, json.data.isOrphaned], [false, true]);
    const code = await mailedCode(server, provider, user.email);
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    await until('401', async () => (await gate(server, asUser(user.id))).status === 401);
    await withoutRow(user);
    assert.deepEqual(await db.query(`select from reclaim.work_items where kind = 'user_removed'`), []);
  });

  it('who has a row is none: frozen, held, or with a key', async () => {
    const [frozen, held, keyed] = [await addUser(), await addUser(), await addUser()];
    const code = await mailedCode(server, provider, frozen.email);
    await freeze(server, frozen.id);
    await hold(server, held.id, 'a lawsuit');
    await addKey(stage, db, keyed);
    for (const user of [frozen, held, keyed]) {
      const { json } = await probe(server, user.email);
      assert.deepEqual([json.data.hasCompanyData, json.data.isOrphaned], [true, false]);
      assertRefused(await requestCode(server, user.email), 'cleanup-v1', '005');
    }
    assertRefused(await validate(server, frozen.email, code), 'cleanup-v1', '005');
    assert.equal(await isThere(db, frozen), true);
  });

  it('one with a live call is cleaned up, its call ends and its account is closed', async () => {
    const user = await addUser();
    const account = await addBillingAccount(db, user);
    const { json: live } = await begin(server, user);
    const code = await mailedCode(server, provider, user.email);
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    assert.equal((await over(server, live.id)).status, 'hangup');
    assert.equal((await db.query('select status from reclaim.billing_accounts where id = $1', [account.id]))[0].status, 'deleted');
  });
});

describe('a user removed in auth.users', () => {
  const ways = {
    'deleted by plain SQL': (user) => db.query('delete from auth.users where id = $1', [user.id]),
    'marked as deleted': (user) => db.query('update auth.users set deleted_at = now() where id = $1', [user.id]),
  };
  for (const [how, away] of Object.entries(ways))
    it(`${how}, is refused as fast as after a freeze, its calls end, and it is erased`, async () => {
      const [bare, kept] = [await addUser(), await addUser()];
      const key = await addKey(stage, db, kept);
      const { json: live } = await begin(server, bare);
      const credentials = [asUser(bare.id), asUser(kept.id), asKey(key)];
      for (const headers of credentials) assert.equal((await gate(server, headers)).status, 200);
      await away(bare);
      await away(kept);
      await until('refused', async () => (await Promise.all(credentials.map((headers) => gate(server, headers)))).every(({ status }) => status === 401));
      for (const user of [bare, kept]) {
        await isGone(user);
        await deleted(db, { id: (await until('its row', () => rowOf(db, user))).id });
        assert.equal((await erased(server, user)).participants.find(({ name }) => name === 'notes').rows, 1);
        assert.deepEqual((await eventsOf(db, user)).map(({ type }) => type), ['customer_deleted']);
        const log = (await auditOf(db, user)).find(({ action }) => action === 'delete');
        assert.deepEqual([log.actor, log.outcome], ['sql', 'done']);
        assert.equal((await db.query(`select actor_role from reclaim.customer_log where customer_id = $1 and action = 'delete'`, [user.id]))[0].actor_role, 'postgres');
      }
      assert.equal((await over(server, live.id)).status, 'hangup');
    });

  it('hundreds at once, within one statement', async () => {
    const [{ ids }] = await db.query(
      `with made as (insert into auth.users (id, email, email_confirmed_at) select gen_random_uuid(), 'many.' || n || '@customers.example.com', now()
       from generate_series(1, 120) n returning id) select array_agg(id) as ids from made`,
    );
    await db.query('delete from auth.users where id = any ($1)', [ids]);
    await until('all deleted', async () =>
      (await db.query(`select from reclaim.customer_customers where id = any ($1) and status = 'deleted'`, [ids])).length === ids.length);
  });

  it('a legal hold keeps it from being removed', async () => {
    const user = await addUser();
    await hold(server, user.id, 'a lawsuit');
    for (const away of Object.values(ways)) await assert.rejects(away(user), /is under legal hold and cannot be deleted/);
    assert.equal((await gate(server, asUser(user.id))).status, 200);
    await unhold(server, user.id);
    await ways['deleted by plain SQL'](user);
    await deleted(db, user);
  });

  it('the product’s role that removes users needs no right in Reclaim’s schema', async () => {
    const user = await addUser();
    await db.query(`create role product login; grant usage on schema auth to product; grant select, delete on auth.users to product;
      create policy product on auth.users for all to product using (true); grant delete on all tables in schema auth to product`);
    await db.query(`begin; set local role product; delete from auth.users where id = '${user.id}'; commit`);
    await deleted(db, await until('its row', () => rowOf(db, user)));
  });
});

describe('several customers', () => {
  it('a customer with a row comes before the one that the user is; a member keeps both', async () => {
    const [owner, member] = [await addUser(), await addUser()];
    assert.equal((await gate(server, asUser(member.id))).headers['x-customer-id'], member.id);
    assert.equal((await call('POST', `/v1/customers/${owner.id}/members`, asAdmin(), { user_id: member.id })).status, 201);
    assert.equal((await rowOf(db, owner)).owner_user_id, owner.id);
    await withoutRow(member);
    await until('leads to the team', async () => (await gate(server, asUser(member.id))).headers['x-customer-id'] === owner.id);
    const own = { ...asUser(member.id), 'X-Reclaim-Customer': member.id };
    assert.equal((await gate(server, own)).headers['x-customer-id'], member.id);
    assertError(await unregister(server, asUser(member.id), { password: canaryPassword }), 400, 'WHICH_CUSTOMER');
    assert.equal((await unregister(server, own, { password: canaryPassword })).json.id, member.id);
    // The row does not change the order.
    assert.equal((await gate(server, asUser(member.id))).headers['x-customer-id'], owner.id);
    assert.equal((await gate(server, own)).status, 403);
    assert.equal((await recoverOwn(server, own)).status, 200);

    // The team is deleted, and its member goes on as its own customer, with or without a row.
    const other = await addUser();
    assert.equal((await call('POST', `/v1/customers/${owner.id}/members`, asAdmin(), { user_id: other.id })).status, 201);
    assert.equal((await remove(server, owner.id)).status, 200);
    await erased(server, owner);
    for (const user of [member, other]) {
      assert.equal(await isThere(db, user), true);
      assert.equal(await notesOf(user), 1, 'a live customer was erased');
      assert.equal((await gate(server, asUser(user.id))).headers['x-customer-id'], user.id);
    }
    await withoutRow(other);
  });

  it('who owns a customer of another id is that customer', async () => {
    const user = await addUser();
    assert.equal((await gate(server, asUser(user.id))).headers['x-customer-id'], user.id);
    const { json: made } = await call('POST', '/v1/customers', asAdmin(), { name: 'Own id', owner_user_id: user.id });
    await until('leads there', async () => (await gate(server, asUser(user.id))).headers['x-customer-id'] === made.id);
    assert.equal((await show(server, user.id)).status, 404);
    assert.equal(await isActive(user), true, 'as its customer is');
    assert.equal((await unregister(server, asUser(user.id), { password: canaryPassword })).json.id, made.id);
    assert.equal(await isActive(user), false);
    // The row is removed by another program: the user is nobody until its login is gone, too.
    await db.query('delete from reclaim.customer_customers where id = $1', [made.id]);
    assert.equal(await isActive(user), false);
    await until('401', async () => (await gate(server, asUser(user.id))).status === 401);
    await until('login gone', async () => !(await isThere(db, user)));
  });

  it('a key that another program inserted for a user without a row works', async () => {
    const user = await addUser();
    const [key] = await addKeys(db, [user]);
    assert.equal((await gate(server, asKey(key))).headers['x-customer-id'], user.id);
    await freeze(server, user.id);
    assert.equal((await gate(server, asKey(key))).status, 403);
  });

  it('a row of the user’s id without an owner, as adopted tables have them, is the user’s', async () => {
    const user = await addUser();
    await db.query('insert into reclaim.customer_customers (id) values ($1)', [user.id]);
    await db.query('alter table reclaim.customer_customers disable trigger user');
    await db.query('update reclaim.customer_customers set owner_user_id = null where id = $1', [user.id]);
    await db.query('alter table reclaim.customer_customers enable trigger user');
    assert.equal((await gate(server, asUser(user.id))).headers['x-customer-id'], user.id);
    assert.equal((await probe(server, user.email)).json.data.isOrphaned, false);
    const frozen = await unregister(server, asUser(user.id), { password: canaryPassword });
    assert.equal(frozen.json.status, 'frozen', frozen.body);
    assert.equal((await rowOf(db, user)).owner_user_id, user.id);
  });
});

it('many ask and call at once, and no row is made', async () => {
  const users = await Promise.all(Array.from({ length: 8 }, () => addUser()));
  const before = await rows();
  await Promise.all(users.flatMap((user) => [gate(server, asUser(user.id)), begin(server, user), begin(server, user), show(server, user.id)]));
  assert.equal(await rows(), before);
});

it('two freezes of the same user at once make one row and one event', async () => {
  const user = await addUser();
  const answers = await Promise.all([freeze(server, user.id), freeze(server, user.id), unregister(server, asUser(user.id), { password: canaryPassword })]);
  assert.deepEqual(answers.map(({ status }) => status), [200, 200, 200]);
  assert.deepEqual((await eventsOf(db, user)).map(({ type }) => type), ['customer_frozen']);
});

it('users that row security hides are not taken for deleted: the gate does not know', async () => {
  const user = await addUser();
  await db.query('alter policy reclaim_all on auth.users to postgres');
  try {
    assert.equal((await gate(server, asUser(user.id))).status, 503);
    assert.ok((await show(server, user.id)).status >= 500);
    await assert.rejects(db.query(`begin; set local role reclaim; select * from reclaim.customer_row('${user.id}')`), /row-level security hides users/);
    await db.query('rollback');
  } finally {
    await db.query('alter policy reclaim_all on auth.users to reclaim');
  }
  assert.equal((await gate(server, asUser(user.id))).status, 200);
});

describe('without the trigger', () => {
  it('the doctor says so, the gate forgets within seconds, the row is found; --repair puts it back', async () => {
    const [bare, kept] = [await addUser(), await addUser()];
    await hold(server, kept.id, 'a lawsuit');
    await unhold(server, kept.id);
    const good = await reclaim('doctor');
    assert.match(good.stdout, /^ok +customers: every user is one/m);
    assert.equal(good.code, 0, good.stdout);
    await db.query('drop trigger reclaim_user_deleted on auth.users; revoke trigger on auth.users from reclaim_owner');
    assert.match((await reclaim('doctor')).stdout, /^warn +.*GRANT TRIGGER ON auth\.users TO reclaim_owner/m);
    for (const user of [bare, kept]) assert.equal((await gate(server, asUser(user.id))).status, 200);
    await db.query('delete from auth.users where id = any ($1)', [[bare.id, kept.id]]);
    for (const user of [bare, kept]) assert.equal(await isActive(user), false);
    await until('refused', async () => (await gate(server, asUser(bare.id))).status === 401 && (await gate(server, asUser(kept.id))).status === 401, 20_000);
    await deleted(db, kept);
    await db.query('grant trigger on auth.users to reclaim_owner');
    const repaired = await reclaim('doctor', '--repair');
    assert.match(repaired.stdout, /^ok +customers: every user is one/m);
  });
});

it('a table of the team’s gets the row; columns that must not be null and have no default are named before', async () => {
  const other = await cluster.database(stage);
  await other.query(`create table public.customer_customers (id uuid primary key, name text, email varchar(200), tier text not null, status text, tm_delete timestamp)`);
  const adopted = (...args) => run(stage, args, { database: other, env: { RECLAIM_CUSTOMERS: 'users' } });
  assert.equal((await adopted('migrate')).code, 0);
  await other.query(`update reclaim.installation set customers = 'users'`);
  const user = await addBareUser(other, { email: customerAddress(), confirmed });
  assert.equal((await adopted('freeze', user.id)).code, 1);
  assert.match((await adopted('doctor')).stdout, /^FAIL .*ALTER COLUMN tier SET DEFAULT/m);
  await other.query(`alter table public.customer_customers alter column tier set default 'free'`);
  const frozen = await adopted('freeze', user.id);
  assert.equal(JSON.parse(frozen.stdout).status, 'frozen', frozen.stderr);
  assert.equal((await other.query('select owner_user_id from public.customer_customers where id = $1', [user.id]))[0].owner_user_id, user.id);
});

describe('switching', () => {
  it('to table and back: what is frozen stays frozen, users without a row have no customer meanwhile, and doctor says so', async () => {
    const [bare, frozen] = [await addUser(), await addUser()];
    await freeze(server, frozen.id);
    const as = async (customers, act) => {
      const other = await serve(stage, { env: { ...settings, RECLAIM_CUSTOMERS: customers } });
      try {
        await act(other);
      } finally {
        await other.stop();
      }
    };
    assert.equal((await gate(server, asUser(bare.id))).status, 200);
    await as('table', async (other) => {
      for (const one of [other, server]) {
        await until('as the latest start says', async () => (await gate(one, asUser(bare.id))).json?.error === 'NO_CUSTOMER');
        assert.equal((await gate(one, asUser(frozen.id))).status, 403);
        assert.equal((await show(one, bare.id)).status, 404);
      }
      assert.equal(await isActive(bare), false);
      const said = await reclaim('doctor');
      assert.match(said.stdout, /^warn +.*RECLAIM_CUSTOMERS is users here.*table/m);
      await db.query('delete from auth.users where id = $1', [frozen.id]); // as ever in this mode: the customer stays
      assert.equal((await rowOf(db, frozen)).status, 'frozen');
    });
    await as('users', async () => {
      await until('200', async () => (await gate(server, asUser(bare.id))).status === 200);
      await until('its user was removed meanwhile', async () => (await rowOf(db, frozen)).status === 'deleted');
      const explicit = await addCustomer(db);
      assert.equal((await gate(server, asUser(explicit.user.id))).headers['x-customer-id'], explicit.id);
    });
  });
});
