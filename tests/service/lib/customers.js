// Customers over the API: people with accounts, their credentials, and the actions of admins.

import assert from 'node:assert/strict';
import { createHmac, randomBytes, randomUUID } from 'node:crypto';

import { FakeProvider } from './fake-provider.js';
import { request } from './http.js';
import { address, canaryPassword } from './people.js';
import { Cluster } from './postgres.js';
import { run, serve } from './reclaim.js';
import { until } from './stage.js';

export const jwtSecret = 'canary-jwt-secret-of-more-than-32-characters';
/** bcrypt of canaryPassword, at the lowest cost. */
export const passwordHash = '$2b$04$PyDOIgvBvOuDd7H7zP/KbOrdOVLRACbKJ7wwSpluvP4rDia8cNbI6';

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');

/** A token as Supabase Auth would sign it. */
export function tokenOf(claims = {}, { secret = jwtSecret, header = { alg: 'HS256', typ: 'JWT' }, lifeS = 3600 } = {}) {
  const now = Math.floor(Date.now() / 1000);
  const body = `${encoded(header)}.${encoded({ role: 'authenticated', iat: now, exp: now + lifeS, ...claims })}`;
  return `${body}.${createHmac('sha256', secret).update(body).digest('base64url')}`;
}

export const bearer = (token) => ({ Authorization: `Bearer ${token}` });
/** What a user and an administrator send; a file about another identity provider replaces them. */
export const credentials = { user: (id) => bearer(tokenOf({ sub: id })), admin: () => bearer(tokenOf({ role: 'service_role' })) };
export const asUser = (id) => credentials.user(id);
export const asAdmin = () => credentials.admin();
export const asKey = (key) => ({ 'X-API-Key': key });

/** Addresses without the marker that must not be stored, since customers contain addresses. */
export const customerAddress = (name = 'customer') => `${name}.${randomBytes(4).toString('hex')}@customers.example.com`;

/** A customer with the user who owns it: { id, user, email }. `password: false` creates a user without one. */
export async function addCustomer(db, { password = true, sso = false, owner = true, ...given } = {}) {
  const user = { id: randomUUID(), email: address('owner') };
  const customer = { id: randomUUID(), name: 'Someone', email: customerAddress(), phone_number: '+15550100', ...given };
  if (owner)
    await db.query(
      `insert into auth.users (id, email, encrypted_password, is_sso_user, email_confirmed_at) values ($1, $2, $3, $4, now())`,
      [user.id, user.email, password && !sso ? passwordHash : '', sso],
    );
  const columns = Object.keys(customer);
  await db.query(
    `insert into reclaim.customer_customers (${columns.join(', ')}, owner_user_id)
     values (${columns.map((_, i) => `$${i + 1}`).join(', ')}, $${columns.length + 1})`,
    [...Object.values(customer), owner ? user.id : null],
  );
  return { ...customer, user };
}

/** Text in every personal column, each marked; `found` in erasure.js searches for the mark. */
const personalColumns = (mark) => ({
  name: `Name ${mark}`,
  detail: `Detail ${mark}`,
  phone_number: `+1555${parseInt(mark, 16)}`,
  address: `${mark} Street`,
  webhook_method: 'POST',
  webhook_uri: `https://hook-${mark}.example.com/`,
});

/** A customer with all personal columns; its `strings` must not be found once it is deleted. */
export async function addMarkedCustomer(db, given = {}) {
  const mark = randomBytes(5).toString('hex');
  const customer = await addCustomer(db, { ...personalColumns(mark), ...given });
  const strings = [mark, String(parseInt(mark, 16)), customer.email, customer.user.email].filter(Boolean);
  return Object.assign(customer, { mark, strings });
}

/** A user that is a customer without a row (RECLAIM_CUSTOMERS=users), of whom the same is true. */
export async function addMarkedUser(db) {
  const mark = randomBytes(5).toString('hex');
  const user = { id: randomUUID(), email: customerAddress(mark) };
  await db.query(
    `insert into auth.users (id, email, encrypted_password, email_confirmed_at) values ($1, $2, $3, now())`,
    [user.id, user.email, passwordHash],
  );
  return { id: user.id, email: user.email, user, mark, strings: [mark, user.email] };
}

export async function addBillingAccount(db, customer, { balance = 1_000_000, ...given } = {}) {
  const account = { id: randomUUID(), customer_id: customer.id, balance_micros: balance, ...given };
  const columns = Object.keys(account);
  await db.query(
    `insert into reclaim.billing_accounts (${columns.join(', ')}) values (${columns.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(account),
  );
  await db.query('update reclaim.customer_customers set billing_account_id = $2 where id = $1', [customer.id, account.id]);
  return account;
}

export async function addKey(scope, db, customer) {
  const made = await run(scope, ['key', 'create', '--customer', customer.id], { database: db });
  assert.equal(made.code, 0, made.stderr);
  return made.stdout.trim();
}

/** A key for a program: `calls`, `billing`, …. */
export async function addScopedKey(scope, db, name) {
  const made = await run(scope, ['key', 'create', '--scope', name], { database: db });
  assert.equal(made.code, 0, made.stderr);
  return made.stdout.trim();
}

const call = (method, path) => (server, headers, body, more = {}) =>
  request(server, {
    method,
    path,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  });

export const login = (server, email, password, options) => call('POST', '/auth/login')(server, {}, { email, password }, options);
export const unregister = call('POST', '/auth/unregister');
export const recoverOwn = call('DELETE', '/auth/unregister');
export const show = (server, id, headers = asAdmin()) => call('GET', `/v1/customers/${id}`)(server, headers);
export const freeze = (server, id, headers = asAdmin(), body) => call('POST', `/v1/customers/${id}/freeze`)(server, headers, body);
export const recover = (server, id, headers = asAdmin()) => call('POST', `/v1/customers/${id}/recover`)(server, headers);
export const list = (server, query = '', headers = asAdmin()) => call('GET', `/v1/customers${query}`)(server, headers);

export const rowOf = async (db, customer) =>
  (await db.query('select * from reclaim.customer_customers where id = $1', [customer.id]))[0];
export const eventsOf = (db, customer) =>
  db.query('select type, sequence, payload from reclaim.event_outbox where customer_id = $1 order by position', [customer.id]);
export const auditOf = (db, customer) =>
  db.query('select action, actor, actor_id, outcome, correlation_id from reclaim.customer_log where customer_id = $1 order by id', [
    customer.id,
  ]);

/** The customer, once every layer that reports has applied the freeze. */
export const frozenEverywhere = (server, id, layers = ['api']) =>
  until(`freeze heard by ${layers}`, async () => {
    const { json } = await show(server, id);
    return json.status === 'frozen' && layers.every((layer) => json.freeze[layer]) && json;
  });

export function assertError(answer, status, error) {
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.json.error, error, answer.body);
  assert.match(answer.json.message, /^\S.{10,}$/);
  return answer;
}

export const env = { RECLAIM_JWT_SECRET: jwtSecret, RECLAIM_LIMIT_LOGIN: 'off' };

/** A database, a mail provider and a server that accepts tokens. */
export async function scene(stage, { cluster, settings = {}, auth } = {}) {
  cluster ??= await Cluster.create(stage);
  const db = await cluster.database(stage, { auth });
  const provider = await FakeProvider.start(stage, 'resend');
  const server = await serve(stage, { database: db, env: { ...env, ...provider.env, ...settings } });
  return { cluster, db, provider, server };
}

export { canaryPassword };
