// Which key reaches which route. The table is held against the server's own: a route that is not in it fails.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addBillingAccount, addCustomer, asAdmin, asKey, assertError, asUser, auditOf, bearer, env } from './lib/customers.js';
import { request } from './lib/http.js';
import { description } from './lib/openapi.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const anyone = null;
const own = ['customer', 'frozen', 'owner_only'];
const seen = ['admin', 'customer', 'frozen', 'read'];
const admin = ['admin'];
const reads = ['admin', 'read'];

/** Whom each route admits; null: it asks for no credentials, or decides about them itself. */
const expected = {
  'ANY /gate': anyone,
  'ANY /gate/*': anyone,
  'POST /functions/v1/check-email-status': anyone,
  'POST /functions/v1/cleanup-orphaned-user': anyone,
  'POST /hooks/before-user-created': anyone, // who has the hook's secret
  'GET /openapi.json': anyone,
  'GET /test/routes': anyone,
  'POST /auth/login': anyone,
  'POST /auth/code': anyone,
  'POST /auth/logout': anyone,
  'GET /auth/session': anyone,
  'POST /auth/unregister': own,
  'DELETE /auth/unregister': own,
  'GET /v1/customers': reads,
  'POST /v1/customers': admin,
  'GET /v1/customers/{id}/members': reads,
  'POST /v1/customers/{id}/members': admin,
  'DELETE /v1/customers/{id}/members/{user_id}': admin,
  'GET /v1/customers/{id}': seen,
  'DELETE /v1/customers/{id}': admin,
  'POST /v1/customers/{id}/freeze': admin,
  'POST /v1/customers/{id}/recover': admin,
  'POST /v1/customers/{id}/hold': admin,
  'DELETE /v1/customers/{id}/hold': admin,
  'GET /v1/erasure/participants': anyone,
  'GET /v1/customers/{id}/erasure': seen,
  'GET /v1/customers/{id}/certificate': seen,
  'POST /v1/customers/{id}/erasure/{participant}': ['admin', 'receipts'],
  'POST /v1/billing/charges': ['admin', 'billing'],
  'GET /v1/billing/charges': ['admin', 'read', 'billing'],
  'GET /v1/billing/accounts': ['admin', 'read', 'billing'],
  'GET /v1/billing/accounts/{id}': ['admin', 'read', 'billing'],
  'DELETE /v1/billing/accounts/{id}': ['admin', 'billing'],
  'GET /v1/billing/accounts/{id}/valid-balance': ['admin', 'read', 'billing'],
  'POST /v1/billing/accounts/{id}/adjustments': ['admin', 'billing'],
  'GET /v1/billing/accounts/{id}/adjustments': ['admin', 'read', 'billing'],
  'GET /v1/billing/subscriptions': ['admin', 'read', 'billing'],
  'POST /v1/billing/subscriptions': ['admin', 'billing'],
  'GET /v1/billing/subscriptions/{id}': ['admin', 'read', 'billing'],
  'DELETE /v1/billing/subscriptions/{id}': ['admin', 'billing'],
  'GET /v1/sandbox/clock': reads,
  'POST /v1/sandbox/clock': admin,
  'DELETE /v1/sandbox/clock': admin,
  'GET /v1/stats': reads,
  'GET /v1/audit': reads,
  'GET /v1/customers/{id}/timeline': reads,
  'GET /v1/limits/{key}': reads,
  'DELETE /v1/limits/{key}': admin,
  'GET /v1/orphans': reads,
  'GET /v1/events/dead': reads,
  'POST /v1/events/dead/{id}/redrive': admin,
  'GET /v1/participants': reads,
  'GET /v1/settings': reads,
  'POST /v1/console/sessions': reads,
  'DELETE /v1/console/sessions': reads,
  'GET /v1/console/sessions/{id}': reads,
  'DELETE /v1/console/sessions/{id}': reads,
  'POST /v1/console/reveals': reads,
  'POST /v1/calls': ['admin', 'calls'],
  'GET /v1/calls': ['admin', 'read', 'calls'],
  'GET /v1/calls/{id}': ['admin', 'read', 'calls'],
  'POST /v1/calls/{id}/progress': ['admin', 'calls'],
  'POST /v1/calls/{id}/hangup': ['admin', 'calls'],
};
const scopes = ['admin', 'read', 'calls', 'billing', 'receipts:archive'];
const nameOf = (scope) => scope.split(':')[0];

describe('a key with a scope', () => {
  const stage = new Stage();
  let db, server;
  const keys = {};
  const create = async (...args) => {
    const { code, stdout, stderr } = await run(stage, ['key', 'create', ...args], { database: db });
    assert.equal(code, 0, stderr);
    return { text: stdout.trim(), id: /its id is ([0-9a-f-]{36});/.exec(stderr)[1] };
  };
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { ...env, RECLAIM_TEST_ROUTES: '1', RECLAIM_PAGES: 'off' } });
    await Promise.all(scopes.map(async (scope) => (keys[scope] = await create('--scope', scope))));
  });
  after(() => stage.end());

  const routes = async () => {
    const { host, port } = server.address('public');
    const json = await (await fetch(`http://${host}:${port}/test/routes`)).json();
    const isApi = ({ path }) => /^\/(v1|auth|functions|hooks|gate|openapi\.json|mailbox\.json|test)\b/.test(path);
    // A page asks the API with the reader's own credentials.
    for (const page of json.filter((route) => !isApi(route))) assert.equal(page.admits, null, page.path);
    return json.filter(isApi).map(({ method, path, admits }) => [`${method.includes(',') ? 'ANY' : method} ${path}`, admits]);
  };
  const ask = (route, headers, participant = 'archive') => {
    const [method, path] = route.split(' ');
    return request(server, {
      method: method === 'ANY' ? 'GET' : method,
      path: path.replace('{id}', randomUUID()).replace('{participant}', participant).replace('{user_id}', randomUUID()).replace('{key}', 'global'),
      headers: { ...headers, ...(method === 'POST' ? { 'Content-Type': 'application/json' } : {}) },
      body: method === 'POST' ? '{}' : undefined,
    });
  };

  it('the table of routes is as expected here: whoever adds a route says whom it admits', async () => {
    const found = Object.fromEntries((await routes()).map(([route, admits]) => [route, admits && [...admits].sort()]));
    assert.deepEqual(found, Object.fromEntries(Object.entries(expected).map(([route, admits]) => [route, admits && [...admits].sort()])));
  });

  it('the description says of each operation whom it admits', () => {
    for (const [route, admits] of Object.entries(expected)) {
      const [method, path] = route.split(' ');
      const operation = description.paths[path]?.[method.toLowerCase()];
      assert.deepEqual([...(operation?.['x-admits'] ?? [])].sort(), [...(admits ?? [])].sort(), route);
    }
  });

  for (const scope of scopes)
    it(`«${scope}» reaches what the table says and nothing else, as X-API-Key and as a bearer`, async () => {
      for (const [route, admits] of Object.entries(expected)) {
        if (!admits) continue;
        for (const headers of [asKey(keys[scope].text), bearer(keys[scope].text)]) {
          const answer = await ask(route, headers);
          if (admits.includes(nameOf(scope))) assert.ok(![401, 403].includes(answer.status), `${route}: ${answer.status} ${answer.body}`);
          else assertError(answer, 403, 'FORBIDDEN');
        }
      }
      assertError(await ask('ANY /gate', asKey(keys[scope].text)), 403, 'NO_CUSTOMER');
    });

  it('receipts are for one participant only', async () => {
    const route = 'POST /v1/customers/{id}/erasure/{participant}';
    assertError(await ask(route, asKey(keys['receipts:archive'].text)), 404, 'RECEIPT_NOT_EXPECTED');
    for (const other of ['archive2', 'archiv', 'Archive', '*'])
      assertError(await ask(route, asKey(keys['receipts:archive'].text), other), 403, 'FORBIDDEN');
  });

  it('sees customers as administrators do, and is named in the audit', async () => {
    const customer = await addCustomer(db);
    const account = await addBillingAccount(db, customer);
    const show = (headers) => request(server, { path: `/v1/customers/${customer.id}`, headers });
    assert.deepEqual((await show(asKey(keys.read.text))).json, (await show(asAdmin())).json);
    const frozen = await request(server, { method: 'POST', path: `/v1/customers/${customer.id}/freeze`, headers: asKey(keys.admin.text) });
    assert.equal(frozen.status, 200, frozen.body);
    await request(server, { method: 'DELETE', path: `/v1/billing/accounts/${account.id}`, headers: asKey(keys.billing.text) });
    const audit = (await auditOf(db, customer)).map(({ action, actor, actor_id }) => ({ action, actor, actor_id }));
    assert.deepEqual(audit, [
      { action: 'freeze', actor: 'admin', actor_id: keys.admin.id },
      { action: 'delete_billing_account', actor: 'key', actor_id: keys.billing.id },
    ]);
  });

  const list = (key) => request(server, { path: '/v1/calls', headers: asKey(key.text) });
  const ends = (what, key, error) => until(what, async () => (await list(key)).json.error === error);

  it('ends when it is revoked, when its row is gone, when it expires and when its life is cut short', async (t) => {
    const [revoked, gone, expired, cut] = await Promise.all([1, 2, 3, 4].map(() => create('--scope', 'calls', '--expires', '1h')));
    const brief = await create('--scope', 'calls', '--expires', '5s');
    for (const one of [revoked, gone, expired, cut]) assert.notEqual((await list(one)).status, 401);
    assert.equal((await run(t, ['key', 'revoke', revoked.text], { database: db })).code, 0);
    await ends('revoked', revoked, 'INVALID_API_KEY');
    await db.query('delete from reclaim.access_keys where id = $1', [gone.id]);
    await ends('gone', gone, 'INVALID_API_KEY');
    await db.query(`update reclaim.access_keys set expires_at = now() where id = $1`, [expired.id]);
    await ends('expired', expired, 'API_KEY_EXPIRED');
    const rotated = await run(t, ['key', 'rotate', cut.id, '--grace', '0s'], { database: db });
    await ends('rotated', cut, 'API_KEY_EXPIRED');
    assert.notEqual((await list({ text: rotated.stdout.trim() })).status, 401);
    // Cached or not: from the instant on.
    const { rows: [{ end }] } = { rows: await db.query('select expires_at as end from reclaim.access_keys where id = $1', [brief.id]) };
    for (;;) {
      const asked = Date.now();
      const answer = await list(brief);
      if (asked > end) {
        assertError(answer, 401, 'API_KEY_EXPIRED');
        break;
      }
    }
  });

  it('both keys work after a rotation', async (t) => {
    const old = await create('--scope', 'calls');
    const rotated = await run(t, ['key', 'rotate', old.id], { database: db });
    for (const one of [old, { text: rotated.stdout.trim() }]) assert.notEqual((await list(one)).status, 401);
  });

  it('narrowed by plain SQL reaches less at once', async () => {
    const one = await create('--scope', 'admin');
    const customers = () => request(server, { path: '/v1/customers', headers: asKey(one.text) });
    assert.equal((await customers()).status, 200);
    await db.query(`update reclaim.access_keys set scope = 'calls' where id = $1`, [one.id]);
    await until('narrowed', async () => (await customers()).status === 403);
  });

  it('two credentials in a request must mean the same', async () => {
    const [customer, other] = [await addCustomer(db), await addCustomer(db)];
    const [key, foreign] = [await create('--customer', customer.id), await create('--customer', other.id)];
    const gate = (headers) => request(server, { path: '/gate', headers });
    const list = (headers) => request(server, { path: '/v1/customers', headers });
    for (let twice = 0; twice < 2; twice++) { // by the database, then from memory
      assert.equal((await gate({ ...asUser(customer.user.id), ...asKey(key.text) })).status, 200);
      assert.equal((await gate({ ...bearer(key.text), ...asKey(key.text) })).status, 200);
      assertError(await gate({ ...asUser(customer.user.id), ...asKey(foreign.text) }), 401, 'CREDENTIALS_DIFFER');
      assertError(await gate({ ...bearer(foreign.text), ...asKey(key.text) }), 401, 'CREDENTIALS_DIFFER');
      assertError(await gate({ ...asUser(customer.user.id), ...asKey(keys.admin.text) }), 401, 'CREDENTIALS_DIFFER');
      assertError(await gate({ ...asUser(customer.user.id), ...asKey(`rk_${'A'.repeat(43)}`) }), 401, 'INVALID_API_KEY');
      assertError(await gate({ ...asUser(customer.user.id), ...asKey('nonsense') }), 401, 'INVALID_API_KEY');
      assertError(await gate({ ...bearer('nonsense'), ...asKey(key.text) }), 401, 'INVALID_TOKEN');
      assert.equal((await list({ ...asAdmin(), ...asKey(keys.admin.text) })).status, 200);
      assertError(await list({ ...asAdmin(), ...asKey(key.text) }), 401, 'CREDENTIALS_DIFFER');
      assertError(await list({ ...asAdmin(), ...asKey(keys.read.text) }), 401, 'CREDENTIALS_DIFFER');
      assert.equal((await gate({ ...asUser(customer.user.id), apikey: foreign.text })).status, 200);
    }
  });
});
