// The gate: who passes, who does not and why; from memory while that may be trusted, else by the database.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, addKey, asAdmin, asKey, assertError, asUser, bearer, canaryPassword, env, freeze, frozenEverywhere, recover, rowOf, tokenOf, unregister } from './lib/customers.js';
import { ops, request } from './lib/http.js';
import { Cluster } from './lib/postgres.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const gate = (server, headers = {}, more = {}) => request(server, { path: '/gate', headers, ...more });

function assertPasses(answer, customer) {
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.headers['x-customer-id'], customer.id);
  assert.equal(answer.headers['x-customer-status'], 'active');
}

/** How often the gate decided so, from this source. */
async function decided(server, verdict, source) {
  const metrics = parseMetrics((await ops(server, '/metrics')).body);
  return valueOf(metrics, 'reclaim_gate_decisions_total', { verdict, source }) ?? 0;
}

/** Asks until the answer came from memory: the lease may have run out on a machine that is busy. */
const fromMemory = (server, verdict, ask) =>
  until(`«${verdict}» from memory`, async () => {
    const before = await decided(server, verdict, 'memory');
    const answer = await ask();
    return (await decided(server, verdict, 'memory')) > before && answer;
  });

describe('the gate', () => {
  const stage = new Stage();
  let cluster, db, server;

  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env });
  });
  after(() => stage.end());

  it('lets an active customer pass, with a token or a key, whatever the method and the body', async (t) => {
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    for (const headers of [asUser(customer.user.id), asKey(key)])
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'])
        assertPasses(await gate(server, headers, { method }), customer);
    assertPasses(await gate(server, asKey(key), { method: 'POST', body: 'x'.repeat(100_000) }), customer);
  });

  it('answers beneath its path as well, whatever a proxy adds there', async (t) => {
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    for (const path of ['/gate/', '/gate/rest/v1/things?select=*', '/gate//functions/v1/check-email-status', '/gate/%zz', `/gate/${'x'.repeat(4000)}`]) {
      for (const method of ['GET', 'OPTIONS', 'DELETE']) assertPasses(await gate(server, asKey(key), { method, path }), customer);
      assertError(await gate(server, { Accept: 'text/html' }, { path }), 401, 'NO_CREDENTIALS');
    }
    assertError(await gate(server, asKey(key), { path: '/gates/x' }), 404, 'NOT_FOUND');
  });

  it('answers from memory whom it has seen before', async (t) => {
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    for (const headers of [asUser(customer.user.id), asKey(key)]) {
      assertPasses(await gate(server, headers), customer);
      assertPasses(await fromMemory(server, 'passed', () => gate(server, headers)), customer);
    }
  });

  it('knows a user by a second token from memory too', async () => {
    const customer = await addCustomer(db);
    assertPasses(await gate(server, asUser(customer.user.id)), customer);
    let n = 0;
    const fresh = () => gate(server, bearer(tokenOf({ sub: customer.user.id, n: n++ })));
    assertPasses(await fromMemory(server, 'passed', fresh), customer);
  });

  it('refuses credentials that are missing, wrong, expired or of no form, and says which', async (t) => {
    const customer = await addCustomer(db);
    const sub = customer.user.id;
    assertError(await gate(server), 401, 'NO_CREDENTIALS');
    assertError(await gate(server, { Authorization: 'Basic eDp5' }), 401, 'NO_CREDENTIALS');
    assertError(await gate(server, bearer('nonsense')), 401, 'INVALID_TOKEN');
    assertError(await gate(server, bearer('x'.repeat(9000))), 401, 'INVALID_TOKEN');
    assertError(await gate(server, bearer(tokenOf({ sub }, { secret: 'another-secret-of-more-than-32-characters' }))), 401, 'INVALID_TOKEN');
    assertError(await gate(server, bearer(tokenOf({ sub }, { header: { alg: 'none' } }))), 401, 'INVALID_TOKEN');
    assertError(await gate(server, bearer(tokenOf({ sub }, { lifeS: -3600 }))), 401, 'TOKEN_EXPIRED');
    assertError(await gate(server, asKey('nonsense')), 401, 'INVALID_API_KEY');
    assertError(await gate(server, asKey(`rk_${'A'.repeat(43)}`)), 401, 'INVALID_API_KEY');
    const answer = await gate(server);
    assert.match(answer.headers['www-authenticate'], /^Bearer/);
    assert.equal(answer.headers['x-gate-body'], answer.body);
    // Both must be good: tests/service/scopes.test.js has two that are.
    const key = await addKey(t, db, customer);
    assertError(await gate(server, { ...bearer('nonsense'), ...asKey(key) }), 401, 'INVALID_TOKEN');
    assertPasses(await gate(server, { Authorization: 'Basic eDp5', ...asKey(key) }), customer);
  });

  it('refuses users without a customer, admins among them', async () => {
    const { user } = await addCustomer(db);
    await db.query('update reclaim.customer_customers set owner_user_id = null where owner_user_id = $1', [user.id]);
    assertError(await gate(server, asUser(user.id)), 403, 'NO_CUSTOMER');
    assertError(await gate(server, asAdmin()), 403, 'NO_CUSTOMER');
  });

  it('refuses a frozen customer from the answer on, tells when it ends and how to recover, and passes it again', async (t) => {
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    for (const headers of [asUser(customer.user.id), asKey(key)]) assertPasses(await gate(server, headers), customer);

    const { json: frozen } = await unregister(server, asKey(key), { confirmation_phrase: 'DELETE' });
    for (const headers of [asUser(customer.user.id), asKey(key)]) {
      const answer = await gate(server, headers);
      assert.equal(answer.status, 403, answer.body);
      assert.deepEqual(answer.json, {
        error: 'DELETION_SCHEDULED',
        message: 'Account deletion scheduled',
        deletion_scheduled_at: frozen.tm_deletion_scheduled,
        deletion_effective_at: new Date(Date.parse(frozen.tm_deletion_scheduled) + 30 * 86400e3)
          .toISOString()
          .replace(/\d{3}Z$/, `${frozen.tm_deletion_scheduled.slice(-7)}`),
        recovery_endpoint: 'DELETE /auth/unregister',
      });
    }
    assert.equal((await fromMemory(server, 'frozen', () => gate(server, asKey(key)))).status, 403);

    assert.equal((await recover(server, customer.id)).status, 200);
    for (const headers of [asUser(customer.user.id), asKey(key)]) assertPasses(await gate(server, headers), customer);
  });

  it('shows the date that was promised, and who may recover; under a legal hold none in the past', async () => {
    const refusal = async (changes) => {
      const customer = await addCustomer(db);
      const own = asUser(customer.user.id);
      await db.query(`update reclaim.customer_customers set status = 'frozen', ${changes} where id = $1`, [customer.id]);
      await until('frozen', async () => (await gate(server, own)).status === 403);
      const answer = await fromMemory(server, 'frozen', () => gate(server, own));
      assert.equal(answer.json.error, 'DELETION_SCHEDULED');
      // By the database: the route asks it in any case.
      assert.equal((await request(server, { path: '/v1/customers', headers: own })).json.recovery_endpoint, answer.json.recovery_endpoint);
      return answer.json;
    };
    const days = (time) => (Date.parse(time) - Date.now()) / 86_400_000;
    const stored = await refusal(`deletion_effective_at = '2031-02-03T04:05:06.000007Z', frozen_by = 'owner'`);
    assert.equal(stored.deletion_effective_at, '2031-02-03T04:05:06.000007Z');
    assert.equal(stored.recovery_endpoint, 'DELETE /auth/unregister');
    assert.equal((await refusal(`frozen_by = 'admin'`)).recovery_endpoint, '');
    const late = `tm_deletion_scheduled = now() - interval '40 days', deletion_effective_at = now() - interval '10 days'`;
    assert.ok(Math.abs(days((await refusal(late)).deletion_effective_at) + 10) < 0.1, 'due, and the next pass deletes it');
    const held = `hold_at = now(), hold_reason = 'a lawsuit'`;
    assert.ok(Math.abs(days((await refusal(`${late}, ${held}`)).deletion_effective_at) - 7) < 0.1);
    const ahead = await refusal(`deletion_effective_at = now() + interval '2 days', ${held}`);
    assert.ok(Math.abs(days(ahead.deletion_effective_at) - 2) < 0.1, 'a date that has not come yet stays');
  });

  const addMember = (customer, userId) =>
    db.query(`insert into reclaim.customer_members (customer_id, user_id, role) values ($1, $2, 'member')`, [customer.id, userId]);
  const choosing = (userId, id) => ({ ...asUser(userId), 'X-Reclaim-Customer': id });
  const addUser = async () => {
    const { user } = await addCustomer(db, { status: 'deleted' });
    return user;
  };

  it('lets a member pass as its customer, refuses it with the customer, and when it is removed', async () => {
    const customer = await addCustomer(db);
    const member = await addUser();
    assertError(await gate(server, asUser(member.id)), 401, 'ACCOUNT_DELETED');
    await addMember(customer, member.id);
    assertPasses(await gate(server, asUser(member.id)), customer);
    assertPasses(await fromMemory(server, 'passed', () => gate(server, asUser(member.id))), customer);
    assert.equal((await request(server, { path: `/v1/customers/${customer.id}`, headers: asUser(member.id) })).json.id, customer.id);
    for (const method of ['POST', 'DELETE'])
      assertError(await request(server, { method, path: '/auth/unregister', headers: asUser(member.id), body: '{}' }), 403, 'NOT_OWNER');
    await freeze(server, customer.id);
    assertError(await gate(server, asUser(member.id)), 403, 'DELETION_SCHEDULED');
    assertError(await request(server, { method: 'DELETE', path: '/auth/unregister', headers: asUser(member.id) }), 403, 'NOT_OWNER');
    await recover(server, customer.id);
    assertPasses(await gate(server, asUser(member.id)), customer);
    await db.query(
      `with gone as (delete from reclaim.customer_members where user_id = $1 returning user_id)
       insert into reclaim.gate_ended (kind, id) select 'user', user_id from gone`, [member.id]);
    await until('the member refused', async () => (await gate(server, asUser(member.id))).status === 401);
    assertPasses(await gate(server, asUser(customer.user.id)), customer);
  });

  it('of several customers takes the oldest, or the one that the request chooses', async (t) => {
    const oldest = await addCustomer(db, { tm_create: '2020-01-01T00:00:00Z' });
    const [second, foreign] = [await addCustomer(db, { tm_create: '2021-01-01T00:00:00Z' }), await addCustomer(db)];
    const { id } = oldest.user;
    await addMember(second, id);
    for (let twice = 0; twice < 2; twice++) {
      assertPasses(await gate(server, asUser(id)), oldest);
      assertPasses(await gate(server, choosing(id, second.id.toUpperCase())), second);
      assertPasses(await gate(server, choosing(id, oldest.id)), oldest);
      assertError(await gate(server, choosing(id, foreign.id)), 403, 'NO_CUSTOMER');
      assertError(await gate(server, choosing(id, 'nonsense')), 403, 'NO_CUSTOMER');
    }
    assertPasses(await fromMemory(server, 'passed', () => gate(server, choosing(id, second.id))), second);
    assertError(await request(server, { path: `/v1/customers/${oldest.id}`, headers: choosing(id, 'nonsense') }), 400, 'INVALID_CUSTOMER');
    assertError(await request(server, { path: `/v1/customers/${oldest.id}`, headers: choosing(id, second.id) }), 403, 'FORBIDDEN');

    const unregister = (headers, method = 'POST') =>
      request(server, { method, path: '/auth/unregister', headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify({ password: canaryPassword }) });
    for (const method of ['POST', 'DELETE']) {
      assertError(await unregister(asUser(id), method), 400, 'WHICH_CUSTOMER');
      assertError(await unregister(choosing(id, second.id), method), 403, 'NOT_OWNER');
      assertError(await unregister(choosing(id, foreign.id), method), 403, 'NO_CUSTOMER');
    }
    const frozen = await unregister(choosing(id, oldest.id));
    assert.equal(frozen.status, 200, frozen.body);
    // The oldest counts though it is frozen; the other is not concerned.
    assertError(await gate(server, asUser(id)), 403, 'DELETION_SCHEDULED');
    assertPasses(await gate(server, choosing(id, second.id)), second);
    const key = asKey(await addKey(t, db, second));
    assertPasses(await gate(server, { ...key, 'X-Reclaim-Customer': second.id }), second);
    assertError(await gate(server, { ...key, 'X-Reclaim-Customer': oldest.id }), 403, 'NO_CUSTOMER');
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [oldest.id]);
    await until('the next oldest', async () => (await gate(server, asUser(id))).status === 200);
    assertPasses(await gate(server, asUser(id)), second);
    assertError(await unregister(asUser(id)), 403, 'NOT_OWNER');
  });

  it('asks which customer is to be deleted as soon as there is a second, cached or not', async () => {
    const customer = await addCustomer(db);
    const own = asUser(customer.user.id);
    assertPasses(await fromMemory(server, 'passed', () => gate(server, own)), customer);
    await db.query('insert into reclaim.customer_customers (owner_user_id) values ($1)', [customer.user.id]);
    assertError(await request(server, { method: 'DELETE', path: '/auth/unregister', headers: own }), 400, 'WHICH_CUSTOMER');
  });

  it('refuses a customer and a key whose rows are gone, and all that a user has, as fast as a freeze', async (t) => {
    const [gone, other] = [await addCustomer(db), await addCustomer(db)];
    const key = asKey(await addKey(t, db, other));
    for (const [headers, customer] of [[asUser(gone.user.id), gone], [key, other], [asUser(other.user.id), other]])
      assertPasses(await fromMemory(server, 'passed', () => gate(server, headers)), customer);
    await db.query(
      `with gone as (delete from reclaim.customer_customers where id = $1 returning id)
       insert into reclaim.gate_ended (kind, id) select 'customer', id from gone`, [gone.id]);
    await until('the customer gone', async () => (await gate(server, asUser(gone.user.id))).status === 403);
    await db.query('delete from reclaim.access_keys where customer_id = $1', [other.id]);
    await until('the key gone', async () => (await gate(server, key)).status === 401);
    assertPasses(await gate(server, asUser(other.user.id)), other);
  });

  it('keeps a frozen customer out of all of Reclaim but what frees it', async () => {
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    const own = asUser(customer.user.id);
    assertError(await request(server, { path: '/v1/customers', headers: own }), 403, 'DELETION_SCHEDULED');
    assertError(await request(server, { method: 'POST', path: `/v1/customers/${customer.id}/recover`, headers: own }), 403, 'DELETION_SCHEDULED');
    assert.equal((await request(server, { path: `/v1/customers/${customer.id}`, headers: own })).json.status, 'frozen');
  });

  it('tells others that only administrators may', async () => {
    const customer = await addCustomer(db);
    assertError(await request(server, { path: '/v1/customers', headers: asUser(customer.user.id) }), 403, 'FORBIDDEN');
  });

  it('hears of a freeze that another program wrote into the table', async () => {
    const customer = await addCustomer(db);
    const own = asUser(customer.user.id);
    assertPasses(await gate(server, own), customer);
    await db.query(`update reclaim.customer_customers set status = 'frozen' where id = $1`, [customer.id]);
    await until('the freeze heard', async () => (await gate(server, own)).status === 403);
    await db.query(`update reclaim.customer_customers set status = 'active' where id = $1`, [customer.id]);
    await until('the recovery heard', async () => (await gate(server, own)).status === 200);
  });

  it('misses no freeze that commits long after its transaction began', async (t) => {
    const [late, other] = [await addCustomer(db), await addCustomer(db)];
    const slow = await db.session(t);
    await slow.query('begin');
    await slow.query(`update reclaim.customer_customers set status = 'frozen' where id = $1`, [late.id]);
    for (const customer of [late, other]) assertPasses(await gate(server, asUser(customer.user.id)), customer);
    await freeze(server, other.id); // a later transaction that is read first
    await fromMemory(server, 'frozen', () => gate(server, asUser(other.user.id)));
    assertPasses(await gate(server, asUser(late.user.id)), late);
    await slow.query('commit');
    await until('the late freeze', async () => (await gate(server, asUser(late.user.id))).status === 403);
    assert.equal((await fromMemory(server, 'frozen', () => gate(server, asUser(late.user.id)))).status, 403);
  });

  it('refuses the credentials of a deleted customer, frozen before or not, seen before or not', async (t) => {
    for (const wasFrozen of [false, true])
      for (const seen of [false, true]) {
        const customer = await addCustomer(db);
        const ways = { ACCOUNT_DELETED: asUser(customer.user.id), INVALID_API_KEY: asKey(await addKey(t, db, customer)) };
        if (seen) for (const headers of Object.values(ways)) assertPasses(await gate(server, headers), customer);
        if (wasFrozen) await freeze(server, customer.id);
        await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
        for (const [error, headers] of Object.entries(ways)) {
          await until('the deletion heard', async () => (await gate(server, headers)).status === 401);
          assertError(await gate(server, headers), 401, error);
        }
      }
  });

  it('lets a user who was deleted and came back pass as the new customer', async () => {
    const first = await addCustomer(db);
    const own = asUser(first.user.id);
    assertPasses(await gate(server, own), first);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [first.id]);
    await until('the deletion heard', async () => (await gate(server, own)).status === 401);
    await until('the login removed', async () => (await db.query('select from auth.users where id = $1', [first.user.id])).length === 0);
    const [second] = await db.query('insert into reclaim.customer_customers (owner_user_id) values ($1) returning id', [first.user.id]);
    assertPasses(await gate(server, own), second);
  });

  it('follows a customer to its new owner', async () => {
    const [customer, heir] = [await addCustomer(db), await addCustomer(db, { status: 'deleted' })];
    assertPasses(await gate(server, asUser(customer.user.id)), customer);
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [customer.id, heir.user.id]);
    await until('the old owner refused', async () => (await gate(server, asUser(customer.user.id))).status === 403);
    assertPasses(await gate(server, asUser(heir.user.id)), customer);
  });

  it('forgets a key that is revoked', async (t) => {
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    assertPasses(await gate(server, asKey(key)), customer);
    const [{ id }] = await db.query('select id from reclaim.access_keys where customer_id = $1', [customer.id]);
    const revoked = await run(t, ['key', 'revoke', id, '--customer', customer.id], { database: db });
    assert.equal(revoked.code, 0, revoked.stderr);
    await until('the key refused', async () => (await gate(server, asKey(key))).status === 401);
  });

  it('notes in the customer that the API layer has the freeze, without another version', async () => {
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    const { version } = await rowOf(db, customer);
    const noted = await frozenEverywhere(server, customer.id, ['api']);
    assert.match(noted.freeze.api, /^\d{4}-.*Z$/);
    assert.ok(noted.freeze.api > noted.tm_deletion_scheduled);
    assert.equal((await rowOf(db, customer)).version, version);
  });

  it('lets nobody pass while the database is away, and is itself again when that is back', async (t) => {
    const own = await Cluster.create(t);
    const base = await own.database(t);
    const here = await serve(t, { database: base, env });
    const customer = await addCustomer(base);
    assertPasses(await gate(here, asUser(customer.user.id)), customer);
    await own.stop('immediate');
    await until('503', async () => (await gate(here, asUser(customer.user.id))).status === 503);
    for (let n = 0; n < 20; n++) assertError(await gate(here, asUser(customer.user.id)), 503, 'UNAVAILABLE');
    assertError(await gate(here), 401, 'NO_CREDENTIALS'); // that takes no database
    await own.start();
    await until('passing again', async () => (await gate(here, asUser(customer.user.id))).status === 200);
    await fromMemory(here, 'passed', () => gate(here, asUser(customer.user.id)));
  });
});

describe('reclaim.customer_is_active', () => {
  it('serves a row-level security policy of a role that may not read customers', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t);
    const server = await serve(t, { database: db, env });
    const [active, frozen, gone] = [await addCustomer(db), await addCustomer(db), await addCustomer(db, { status: 'deleted' })];
    await db.query(`
      create table public.notes (customer_id uuid, body text);
      create role policy_reader_${process.pid};
      grant usage on schema reclaim to policy_reader_${process.pid};
      grant select on public.notes to policy_reader_${process.pid};
      grant execute on function reclaim.customer_is_active(uuid) to policy_reader_${process.pid};
      alter table public.notes enable row level security;
      create policy active_only on public.notes using (reclaim.customer_is_active(customer_id))`);
    for (const { id } of [active, frozen, gone]) await db.query(`insert into public.notes values ($1, 'x')`, [id]);

    const reader = await db.session(t);
    await reader.query(`set role policy_reader_${process.pid}`);
    const visible = async () => (await reader.query('select customer_id from public.notes')).rows.map((row) => row.customer_id).sort();
    assert.deepEqual(await visible(), [active.id, frozen.id].sort());
    await freeze(server, frozen.id);
    assert.deepEqual(await visible(), [active.id]);
    await recover(server, frozen.id);
    assert.deepEqual(await visible(), [active.id, frozen.id].sort());
    await assert.rejects(reader.query('select * from reclaim.customer_customers'), /permission denied/);
  });
});
