// What the operators' console shows, as JSON: figures, audit, timeline, limits, orphans, dead letters, participants, settings.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addBillingAccount, addCustomer, addScopedKey, asAdmin, asKey, assertError, asUser, customerAddress, env, freeze, frozenEverywhere, list, login, recover, scene } from './lib/customers.js';
import { request } from './lib/http.js';
import { addCompany, addUser, clientAddress } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, provider, readKey;
before(async () => {
  ({ db, server, provider } = await scene(stage, { settings: { RECLAIM_LIMIT_IP: '1000/60', RECLAIM_LIMIT_EMAIL: '1/3600', RECLAIM_CASCADE_DEADLINE: '2h' } }));
  readKey = await addScopedKey(stage, db, 'read');
});
after(() => stage.end());

const get = (path, headers = asAdmin()) => request(server, { path, headers });
const call = (method, path, headers = asAdmin(), body) => request(server, { method, path, headers: { 'Content-Type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
const items = async (path) => {
  const answer = await get(path);
  assert.equal(answer.status, 200, answer.body);
  return answer.json.items;
};
const cleanup = (email, correlationId) =>
  call('POST', '/functions/v1/cleanup-orphaned-user', {}, { action: 'request-code', step: 'request-code', email, correlationId });
/** All pages of a list. */
async function everything(path, limit) {
  const all = [];
  for (let next = ''; next !== null; ) {
    const { json, status, body } = await get(`${path}${path.includes('?') ? '&' : '?'}limit=${limit}${next && `&after=${next}`}`);
    assert.equal(status, 200, body);
    assert.ok(json.items.length <= limit);
    all.push(...json.items);
    next = json.next;
  }
  return all;
}

describe('GET /v1/stats', () => {
  it('counts customers by state, erasures, dead letters, refusals and codes, and shows the last freeze by layer', async () => {
    const before = (await get('/v1/stats')).json;
    const [frozen, , held] = await Promise.all([addCustomer(db, { name: 'Last to freeze' }), addCustomer(db), addCustomer(db)]);
    assert.equal((await call('POST', `/v1/customers/${held.id}/hold`, asAdmin(), { reason: 'a lawsuit' })).status, 200);
    assert.equal((await freeze(server, frozen.id)).status, 200);
    await frozenEverywhere(server, frozen.id, ['api', 'calls', 'billing']);
    const { json: now } = await get('/v1/stats', asKey(readKey));
    assert.equal(now.customers.active, before.customers.active + 2);
    assert.equal(now.customers.frozen, before.customers.frozen + 1);
    assert.equal(now.customers.held, before.customers.held + 1);
    assert.equal(now.customers.due, before.customers.due);
    assert.deepEqual([now.last_freeze.customer_id, now.last_freeze.name], [frozen.id, 'Last to freeze']);
    for (const layer of ['api_ms', 'calls_ms', 'billing_ms']) assert.ok(now.last_freeze.layers[layer] >= 0, JSON.stringify(now.last_freeze));
    assert.equal(now.erasures.deadline_seconds, 7200);
    const sum = ({ freezes }) => freezes.reduce((a, b) => a + b, 0);
    assert.deepEqual([now.hour.freezes.length, now.day.freezes.length], [60, 96]);
    assert.deepEqual([now.hour.step_seconds, now.day.step_seconds], [60, 900]);
    assert.ok(sum(now.hour) >= 1 && sum(now.day) >= sum(now.hour));
    assert.deepEqual([now.requests.hour.per_second.length, now.requests.day.per_second.length], [60, 96]);
    assert.deepEqual(now.attention.filter(({ state }) => state === 'held').map(({ customer_id: id, reason }) => [id, reason]), [[held.id, 'a lawsuit']]);
  });

  it('counts what limits refused, sign-ins included, and no malformed request; and codes for signing in', async () => {
    const limited = await serve(stage, { database: db, env: { ...env, ...provider.env, RECLAIM_LIMIT_LOGIN: '2/900' } });
    const before = (await get('/v1/stats')).json;
    const hash = randomUUID().replaceAll('-', '').repeat(2);
    await db.query(`insert into reclaim.auth_cleanup_events (kind, outcome, count, network_hash) values ('refusals', 'ORPHAN_CLEANUP_007', 5, $1)`, [hash]);
    const { user } = await addCustomer(db);
    const statuses = [];
    for (let i = 0; i < 5; i++) statuses.push((await login(limited, user.email, 'not the password')).status);
    assert.deepEqual(statuses.slice(2), [429, 429, 429]);
    const refused = await until('the refusals are counted', async () => {
      const { refusals } = (await get('/v1/stats')).json;
      return refusals.last_hour > before.refusals.last_hour && refusals;
    });
    assert.deepEqual(refused, { last_hour: before.refusals.last_hour + 3, networks: before.refusals.networks });
    assert.equal((await call('POST', '/auth/code', {}, { email: user.email })).status, 202);
    await until('the sign-in code is counted', async () => (await get('/v1/stats')).json.codes_today.delivered === before.codes_today.delivered + 1);
    const mails = await items('/v1/audit?kind=mail');
    assert.deepEqual([mails[0].action, mails[0].outcome], ['mail', 'sent']);
    await db.query(`insert into reclaim.auth_cleanup_events (kind, outcome, detail, network_hash) values ('refusals', 'ORPHAN_CLEANUP_003', 'ip', $1)`, [hash]);
    const refusals = await everything('/v1/audit?kind=refusals', 1);
    assert.ok(refusals.length > 0 && refusals.every(({ action, outcome }) => action === 'refusals' && outcome === 'ORPHAN_CLEANUP_003'));
    assert.equal((await get('/v1/stats')).json.refusals.networks, before.refusals.networks + 1);
    assertError(await get('/v1/audit?kind=x'), 400, 'INVALID_QUERY');
    await limited.stop();
  });

  it('shows a customer that is due within the week, and an erasure that is not complete, as what needs attention', async () => {
    const due = await addCustomer(db);
    assert.equal((await freeze(server, due.id)).status, 200);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '3 days' where id = $1`, [due.id]);
    const erased = randomUUID();
    await db.query(`insert into reclaim.erasures (customer_id, requested_at) values ($1, now() - interval '3 hours')`, [erased]);
    await db.query(`insert into reclaim.cascade_receipts (customer_id, participant, status, error) values ($1, 'archive', 'failed', 'no')`, [erased]);
    const { json } = await get('/v1/stats');
    assert.ok(json.customers.due >= 1);
    assert.ok(json.attention.some(({ customer_id: id, state }) => id === due.id && state === 'frozen'));
    const erasure = json.attention.find(({ customer_id: id }) => id === erased);
    assert.deepEqual([erasure.state, erasure.overdue, erasure.receipts_done, erasure.receipts], ['deleting', true, 0, 1]);
    assert.ok(json.erasures.open >= 1 && json.erasures.overdue >= 1 && json.erasures.oldest_seconds >= 3 * 3600 && json.participants_failing >= 1);
    await db.query('delete from reclaim.cascade_receipts where customer_id = $1', [erased]);
    await db.query('delete from reclaim.erasures where customer_id = $1', [erased]);
  });

  it('lists every instance with its version and lag, and one that was stopped no more', async () => {
    const listed = async () => (await get('/v1/stats')).json;
    const own = await until('this instance is recorded', async () => {
      const { instances, instance_id: id } = await listed();
      return instances.find((one) => one.id === id && one.is_alive && one.gate_lag_ms !== null);
    });
    assert.match(own.version, /^\d+\.\d+/);
    const { port } = server.address('public');
    assert.match(own.name, new RegExp(`127\\.0\\.0\\.1:${port}$`));
    const other = await serve(stage, { database: db, env: provider.env }); // the latest start decides whether mails are sent
    const { port: otherPort } = other.address('public');
    const isListed = async () => (await listed()).instances.some(({ name }) => name.endsWith(`:${otherPort}`));
    await until('the other instance is recorded', isListed);
    await until('one of them leads', async () => (await listed()).instances.filter((one) => one.is_leader).length === 1);
    await other.stop();
    assert.equal(await isListed(), false);
  });
});

describe('GET /v1/audit', () => {
  it('shows what was done, newest first, page by page and without gaps', async () => {
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    await recover(server, customer.id);
    const email = (await addUser(db)).email;
    assert.equal((await cleanup(email)).status, 200);
    const all = await everything('/v1/audit', 200);
    const times = all.map(({ at }) => at);
    assert.deepEqual(times, [...times].sort().reverse());
    assert.deepEqual(all.filter(({ customer_id: id }) => id === customer.id).map(({ action }) => action), ['recover', 'freeze']);
    assert.ok(all.some(({ source, outcome }) => source === 'recovery' && outcome === 'code-sent'));
    assert.deepEqual((await everything('/v1/audit', 3)).slice(-all.length), all);
  });

  it('finds by customer, by correlation id and by address', async () => {
    const user = await addUser(db);
    const customer = await addCustomer(db);
    const { headers } = await freeze(server, customer.id);
    const correlation = randomUUID();
    assert.equal((await cleanup(user.email, correlation)).status, 200);
    assert.deepEqual((await items(`/v1/audit?customer=${customer.id}`)).map(({ action, customer_id: id }) => [action, id]), [['freeze', customer.id]]);
    assert.deepEqual((await items(`/v1/audit?correlation=${headers['x-correlation-id']}`)).map(({ action }) => action), ['freeze']);
    const mailed = () => items(`/v1/audit?correlation=${correlation}`);
    await until('the mail has ended', async () => (await mailed()).some(({ action }) => action === 'mail'));
    assert.deepEqual((await mailed()).map(({ action, outcome }) => `${action} ${outcome}`), ['mail sent', 'request-code code-sent']);
    const byAddress = await items(`/v1/audit?email=${encodeURIComponent(user.email)}`);
    assert.deepEqual(byAddress.map(({ correlation_id: id }) => id), [correlation, correlation]);
    const owned = await items(`/v1/audit?email=${encodeURIComponent(customer.user.email)}`);
    assert.deepEqual(owned.map(({ action, customer_id: id }) => [action, id]), [['freeze', customer.id]]);
    assert.deepEqual((await items(`/v1/audit?email=${encodeURIComponent(customer.email.toUpperCase())}`)).map(({ action }) => action), ['freeze']);
    assert.deepEqual(await items(`/v1/audit?email=${customerAddress('nobody')}`), []);
    const traced = await run(stage, ['trace', user.email, '--format', 'json'], { database: db });
    assert.equal(traced.code, 0, traced.stderr);
    assert.deepEqual(JSON.parse(traced.stdout).map(({ what, outcome }) => `${what} ${outcome}`), ['request-code code-sent', 'mail sent']);
  });

  it('refuses what is no id, no address and no place', async () => {
    for (const query of ['customer=1', 'correlation=x', 'after=x', 'after=1-c', 'after=1-c-2-3', 'after=1-C-2', 'after=-1-c-2', 'after=99999999999999999999-c-1', 'limit=0', 'email=nobody', 'email=%ff', `customer=${randomUUID()}&email=a@example.com`])
      assert.equal((await get(`/v1/audit?${query}`)).status, 400, query);
  });
});

describe('GET /v1/customers/{id}/timeline', () => {
  it('has audit, events, receipts and the freeze by layer, newest first, and pages', async () => {
    const customer = await addCustomer(db);
    const account = await addBillingAccount(db, customer);
    await db.query(`insert into reclaim.billing_charges (billing_account_id, amount_micros, reference, occurred_at, balance_after_micros, created_at)
      values ($1, 5, 'Anna rang', now(), 0, now())`, [account.id]);
    await db.query(`insert into reclaim.cascade_participants (name, kind) values ('archive', 'remote') on conflict do nothing`);
    await freeze(server, customer.id);
    await frozenEverywhere(server, customer.id, ['api', 'calls', 'billing']);
    const path = `/v1/customers/${customer.id}/timeline`;
    const frozen = await until('the mail about the freeze is sent', async () => {
      const { json } = await get(path, asKey(readKey));
      return json.items.some(({ kind, outcome }) => kind === 'mail' && outcome === 'sent') && json;
    });
    assert.equal(frozen.customer.email, customer.email);
    assert.ok(frozen.layers.api_ms >= 0 && frozen.layers.billing_ms >= 0);
    assert.equal(frozen.erasure.status, 'not_started');
    assert.equal((await call('DELETE', `/v1/customers/${customer.id}`)).status, 200);
    const done = await until('both mails are sent, and only the remote participant has not erased', async () => {
      const { json } = await get(path);
      const mails = json.items.filter(({ kind, outcome }) => kind === 'mail' && outcome === 'sent');
      return json.erasure.participants.every(({ kind, status }) => kind === 'remote' || status === 'done') && mails.length === 2 && json;
    });
    assert.deepEqual([done.customer.status, done.layers, done.erasure.status], ['deleted', frozen.layers, 'pending']);
    const found = done.items.map(({ kind, what, outcome }) => `${kind} ${what} ${outcome}`);
    for (const one of ['audit delete done', 'event customer_deleted kept', 'receipt archive pending', 'audit freeze done', 'event customer_frozen kept', 'mail customer-frozen sent'])
      assert.ok(found.includes(one), `${one}: ${found}`);
    const receipts = done.items.filter(({ kind }) => kind === 'receipt').map(({ what, at }) => [what, at]);
    assert.deepEqual(receipts.sort(), done.erasure.participants.map((one) => [one.name, one.done_at ?? done.erasure.requested_at]).sort());
    assert.ok(receipts.length > 1, 'one of them is done');
    const times = done.items.map(({ at }) => at);
    assert.deepEqual(times, [...times].sort().reverse());
    assert.deepEqual((await everything(path, 2)).map(({ at }) => at), times);
    await db.query(`delete from reclaim.cascade_receipts where participant = 'archive'`);
    await db.query(`delete from reclaim.cascade_participants where name = 'archive'`);
  });

  it('is not there for others, and not without the customer', async () => {
    assertError(await get(`/v1/customers/${randomUUID()}/timeline`), 404, 'CUSTOMER_NOT_FOUND');
    assertError(await get('/v1/customers/1/timeline'), 400, 'INVALID_ID');
    const customer = await addCustomer(db);
    assertError(await get(`/v1/customers/${customer.id}/timeline`, asUser(customer.user.id)), 403, 'FORBIDDEN');
  });
});

describe('GET /v1/customers with status', () => {
  it('due and erasing has those that the figures count', async () => {
    const [due, later, held] = await Promise.all([addCustomer(db), addCustomer(db), addCustomer(db)]);
    for (const { id } of [due, later, held]) await freeze(server, id);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '3 days' where id = any ($1)`, [[due.id, held.id]]);
    assert.equal((await call('POST', `/v1/customers/${held.id}/hold`, asAdmin(), { reason: 'a lawsuit' })).status, 200);
    const ids = async (status) => (await list(server, `?limit=200&status=${status}`)).json.items.map(({ id }) => id);
    const found = await ids('due');
    assert.deepEqual([due, later, held].map(({ id }) => found.includes(id)), [true, false, false]);
    assert.equal(found.length, (await get('/v1/stats')).json.customers.due);
    await db.query(`insert into reclaim.cascade_participants (name, kind) values ('slow', 'remote')`);
    assert.equal((await call('DELETE', `/v1/customers/${later.id}`)).status, 200);
    assert.ok((await ids('erasing')).includes(later.id));
    await db.query(`delete from reclaim.cascade_receipts where participant = 'slow'`);
    await db.query(`delete from reclaim.cascade_participants where name = 'slow'`);
    await db.query(`update reclaim.erasures set completed_at = now() where customer_id = $1`, [later.id]);
    assert.ok(!(await ids('erasing')).includes(later.id));
    assertError(await list(server, '?status=gone'), 400, 'INVALID_STATUS');
  });
});

describe('GET /v1/customers with counts=1', () => {
  it('has the numbers by state of what q finds', async () => {
    const name = `Counted ${randomUUID()}`;
    const [a] = await Promise.all([addCustomer(db, { name }), addCustomer(db, { name })]);
    await freeze(server, a.id);
    const { json } = await list(server, `?counts=1&status=frozen&q=${encodeURIComponent(name)}`);
    assert.deepEqual(json.items.map(({ id }) => id), [a.id]);
    assert.deepEqual(json.counts, { active: 1, frozen: 1, deleted: 0, held: 0, due: 0 });
    assert.equal((await list(server, '')).json.counts, undefined);
    assertError(await list(server, '?counts=2'), 400, 'INVALID_COUNTS');
  });
});

describe('/v1/limits/{key}', () => {
  const key = (email) => `/v1/limits/email:${encodeURIComponent(email)}`;
  it('shows what an address has used, and a reset lets it go on and is audited', async () => {
    const { email } = await addUser(db);
    assert.equal((await cleanup(email)).status, 200);
    assert.equal((await cleanup(email)).status, 429);
    const tier = ({ json }) => json.items.find((one) => one.tier === 'email');
    const used = tier(await get(key(email), asKey(readKey)));
    assert.deepEqual([used.requests, used.limit, used.window_seconds, used.left], [1, 1, 3600, 0]);
    assert.ok(used.wait_seconds > 3000 && used.wait_seconds <= 3600);
    assertError(await call('DELETE', key(email), asKey(readKey)), 403, 'FORBIDDEN');
    const reset = await call('DELETE', key(email));
    assert.deepEqual([reset.status, tier(reset).requests, tier(reset).left], [200, 0, 1]);
    await until('every instance has forgotten it', async () => (await cleanup(email)).status === 200);
    const [row] = await items(`/v1/audit?correlation=${reset.headers['x-correlation-id']}`);
    assert.deepEqual([row.action, row.actor, row.outcome], ['limits-reset', 'admin', 'done']);
    assert.match(row.detail, /^email:[0-9a-f]{12}$/);
  });

  it('shows those of a client and of everyone, those that are off, and of an address from a client', async () => {
    const tiers = async (path) => (await items(path)).map((one) => one.tier);
    assert.deepEqual(await tiers(`/v1/limits/ip:${clientAddress}`), ['ip', 'probe', 'login-ip', 'code-ip']);
    assert.equal((await tiers('/v1/limits/ip:2001:db8::1')).length, 8);
    assert.deepEqual((await items('/v1/limits/global'))[0], { tier: 'global', requests: null, limit: null, window_seconds: null, left: null, wait_seconds: null });
    assert.equal((await tiers(`/v1/limits/email:a@example.com?client=${clientAddress}`)).length, 5);
    for (const [path, error] of [
      ['ip:x', 'INVALID_KEY'],
      ['email:x', 'INVALID_KEY'],
      ['everyone', 'INVALID_KEY'],
      ['global?client=127.0.0.1', 'INVALID_CLIENT'],
      ['email:a@example.com?client=x', 'INVALID_CLIENT'],
    ])
      assertError(await get(`/v1/limits/${path}`), 400, error);
  });
});

describe('GET /v1/orphans', () => {
  it('lists registrations that were never finished, without owners, page by page', async () => {
    const [orphan, young, owner] = [await addUser(db), await addUser(db, { created: new Date().toISOString() }), await addUser(db)];
    await addCompany(db, owner);
    const found = await everything('/v1/orphans', 1);
    assert.ok(found.some(({ id }) => id === orphan.id) && found.some(({ id }) => id === young.id));
    assert.ok(!found.some(({ id }) => id === owner.id));
    const old = await everything('/v1/orphans?older_than=1h', 200);
    assert.deepEqual(old.find(({ id }) => id === orphan.id), { id: orphan.id, email: orphan.email, created_at: '2025-10-01T00:00:00Z', verified: false, last_sign_in_at: null, blocked_by: null });
    assert.ok(!old.some(({ id }) => id === young.id));
    assertError(await get('/v1/orphans?older_than=x'), 400, 'INVALID_AGE');
  });

  it('lists nobody while a table of owners cannot be read', async () => {
    await db.query('alter table public.companies rename to companies_away');
    const answer = await get('/v1/orphans');
    await db.query('alter table public.companies_away rename to companies');
    assertError(answer, 500, 'INTERNAL');
  });
});

describe('/v1/events/dead', () => {
  it('lists events that nobody took and work that failed, sends them again, and audits it', async () => {
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    const [event] = await db.query(`update reclaim.event_outbox set published_at = now() where customer_id = $1 returning id, position`, [customer.id]);
    await db.query(`insert into reclaim.event_returns (event_id, position) values ($1, $2)`, [event.id, event.position]);
    const [work] = await db.query(
      `insert into reclaim.work_items (kind, payload, state, tries, last_error) values ('nothing-takes-this', $1, 'dead', 8, 'refused') returning id`,
      [JSON.stringify({ customer_id: customer.id })],
    );
    const { json: figures } = await get('/v1/stats');
    assert.deepEqual(figures.dead, { events: 1, work: 1 });
    const dead = await everything('/v1/events/dead', 1);
    assert.deepEqual(
      dead.map(({ kind, id, what, customer_id: of, epoch, reason, tries }) => ({ kind, id, what, of, epoch, reason, tries })),
      [
        { kind: 'event', id: event.id, what: 'customer_frozen', of: customer.id, epoch: 1, reason: 'no queue was bound for it', tries: null },
        { kind: 'work', id: String(work.id), what: 'nothing-takes-this', of: customer.id, epoch: null, reason: 'refused', tries: 8 },
      ],
    );
    assertError(await call('POST', `/v1/events/dead/${event.id}/redrive`, asKey(readKey)), 403, 'FORBIDDEN');
    for (const id of [event.id, work.id]) {
      const answer = await call('POST', `/v1/events/dead/${id}/redrive`);
      assert.deepEqual([answer.status, answer.json], [200, { redriven: 1 }]);
      const [row] = await items(`/v1/audit?correlation=${answer.headers['x-correlation-id']}`);
      assert.deepEqual([row.action, row.detail], ['redrive', `${id === event.id ? 'event' : 'work'} ${id}`]);
      assertError(await call('POST', `/v1/events/dead/${id}/redrive`), 404, 'DEAD_LETTER_NOT_FOUND');
    }
    assert.deepEqual(await items('/v1/events/dead'), []);
    assert.deepEqual(await db.query('select published_at from reclaim.event_outbox where id = $1', [event.id]), [{ published_at: null }]);
    assert.deepEqual(await db.query('delete from reclaim.work_items where id = $1 returning state, tries', [work.id]), [{ state: 'open', tries: 0 }]);
    for (const id of ['x', '-1', '0', '99999999999999999999']) assertError(await call('POST', `/v1/events/dead/${id}/redrive`), 400, 'INVALID_ID');
    for (const after of ['x', 'e', '1-e', 'e-x']) assert.equal((await get(`/v1/events/dead?after=${after}`)).status, 400, after);
  });
});

describe('GET /v1/participants', () => {
  it('lists those that take part with their receipts, and says what is wrong with one', async () => {
    await db.query('create table public.faulty (customer_id uuid)');
    await db.query('create index on public.faulty (customer_id)');
    const added = await run(stage, ['cascade', 'add', 'faulty', '--table', 'public.faulty', '--column', 'customer_id', '--label', 'Faults'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    const faulty = async () => (await items('/v1/participants')).find(({ name }) => name === 'faulty');
    assert.deepEqual([(await faulty()).finding, (await faulty()).label, (await faulty()).done], [null, 'Faults', 0]);
    await db.query('drop table public.faulty');
    assert.match((await faulty()).finding, /\S{3}/);
    assert.ok((await items('/v1/participants')).some(({ name }) => name === 'reclaim.charges'));
    assert.equal((await run(stage, ['cascade', 'remove', 'faulty'], { database: db })).code, 0);
  });
});

describe('GET /v1/settings', () => {
  it('shows what is in force and where it is from, and no secret', async () => {
    const all = await items('/v1/settings');
    const of = (name) => all.find((one) => one.name === name);
    assert.deepEqual([of('RECLAIM_CASCADE_DEADLINE').value, of('RECLAIM_CASCADE_DEADLINE').source], ['2h', 'environment']);
    assert.deepEqual([of('RECLAIM_GRACE').value, of('RECLAIM_GRACE').source], ['30d', 'default']);
    assert.equal(of('RECLAIM_JWT_SECRET').value, '***');
    assert.deepEqual([of('RECLAIM_SANDBOX').value, of('RECLAIM_SANDBOX').source], ['off', 'default']);
    const text = JSON.stringify(all);
    for (const secret of ['canary-', provider.env.RECLAIM_RESEND_API_KEY].filter(Boolean)) assert.ok(!text.includes(secret), secret);
  });
});

describe('/v1/console/sessions', () => {
  const sessions = '/v1/console/sessions';
  const isThere = async (id, headers, query = '') => (await get(`${sessions}/${id}${query}`, headers)).status === 200;
  const begin = async (headers) => {
    const answer = await call('POST', sessions, headers);
    assert.equal(answer.status, 201, answer.body);
    return answer.json;
  };
  it('belongs to its key, has its scope, and ends when it is signed out, here or everywhere', async () => {
    const own = await begin(asKey(readKey));
    const admin = await begin(asAdmin());
    assert.deepEqual([own.scope, admin.scope], ['read', 'admin']);
    assert.ok(await isThere(own.id, asKey(readKey)));
    assertError(await get(`${sessions}/${own.id}`), 404, 'SESSION_ENDED');
    assertError(await get(`${sessions}/${admin.id}`, asKey(readKey)), 404, 'SESSION_ENDED');
    assertError(await get(`${sessions}/1`), 400, 'INVALID_ID');
    assert.equal((await call('DELETE', `${sessions}/${own.id}`, asKey(readKey))).status, 200);
    assert.equal(await isThere(own.id, asKey(readKey)), false);
    const both = [await begin(asKey(readKey)), await begin(asKey(readKey))];
    assert.equal((await call('DELETE', sessions, asKey(readKey))).status, 200);
    for (const { id } of both) assert.equal(await isThere(id, asKey(readKey)), false);
    assert.ok(await isThere(admin.id, asAdmin()));
    const audited = (await everything('/v1/audit', 200)).filter(({ action }) => action.startsWith('console-'));
    assert.deepEqual(audited.map(({ action, actor, detail }) => [action, actor, detail]).slice(0, 3), [
      ['console-sign-out', 'key', 'everywhere'],
      ['console-sign-in', 'key', null],
      ['console-sign-in', 'key', null],
    ]);
  });

  it('ends after 30 minutes without use, after 12 hours, and with its key', async () => {
    const key = await addScopedKey(stage, db, 'admin');
    const { id } = await begin(asKey(key));
    const age = (column, minutes) => db.query(`update reclaim.console_sessions set ${column} = clock_timestamp() - $2 * interval '1 minute' where id = $1`, [id, minutes]);
    const seen = async () => (await db.query('select seen_at from reclaim.console_sessions where id = $1', [id]))[0].seen_at.getTime();
    await age('seen_at', 29);
    const before = await seen();
    assert.ok(await isThere(id, asKey(key), '?use=0'));
    assert.equal(await seen(), before);
    assert.ok(await isThere(id, asKey(key)));
    assert.ok((await seen()) > before);
    await age('seen_at', 31);
    assert.equal(await isThere(id, asKey(key)), false);
    await age('seen_at', 0);
    await age('created_at', 12 * 60 + 1);
    assert.equal(await isThere(id, asKey(key)), false);
    await age('created_at', 0);
    assert.ok(await isThere(id, asKey(key)));
    await db.query(`update reclaim.access_keys set revoked_at = now() where id = (select key_id from reclaim.console_sessions where id = $1)`, [id]);
    await until('the key is refused', async () => (await get(`${sessions}/${id}`, asKey(key))).status === 401);
  });

  it('an address that was shown is in the audit', async () => {
    const customer = await addCustomer(db);
    const reveal = (body) => call('POST', '/v1/console/reveals', asKey(readKey), body);
    assert.equal((await reveal({ customer_id: customer.id })).status, 200);
    assert.deepEqual((await items(`/v1/audit?customer=${customer.id}`)).map(({ action, actor }) => [action, actor]), [['reveal', 'key']]);
    assert.equal((await reveal({ user_id: customer.user.id })).status, 200);
    for (const body of [{}, { customer_id: 'x' }, { customer_id: customer.id, user_id: customer.id }]) assertError(await reveal(body), 400, 'INVALID_BODY');
  });
});
