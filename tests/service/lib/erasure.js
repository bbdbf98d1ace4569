// Deletion of customers over the API and the command line: deleting, legal holds, expiry, participants.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';

import { addBillingAccount, addCustomer, addKey, addMarkedCustomer, asAdmin, freeze } from './customers.js';
import { ops, request } from './http.js';
import { parseMetrics } from './prometheus.js';
import { run } from './reclaim.js';
import { until } from './stage.js';

const call = (method, path) => (server, id, { headers = asAdmin(), body } = {}) =>
  request(server, {
    method,
    path: `/v1/customers/${id}${path}`,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
  });

export const remove = call('DELETE', '');
export const hold = (server, id, reason, options) => call('POST', '/hold')(server, id, { body: { reason }, ...options });
export const unhold = call('DELETE', '/hold');
export const ledger = call('GET', '/erasure');
export const preview = call('GET', '/erasure?preview=1');
export const certificate = call('GET', '/certificate');
export const claimsOf = (jws) => JSON.parse(Buffer.from(jws.split('.')[1], 'base64url'));
export const receipt = (server, id, participant, body, options) => call('POST', `/erasure/${participant}`)(server, id, { body, ...options });

/** Moves the freeze that long into the past: 30 days and a minute are past the grace. */
export const frozenSince = (db, customer, ago = '30 days 1 minute') =>
  db.query(`update reclaim.customer_customers set tm_deletion_scheduled = clock_timestamp() - $2::interval where id = $1`, [customer.id, ago]);

export async function due(server, db, customer) {
  const frozen = await freeze(server, customer.id);
  assert.equal(frozen.status, 200, frozen.body);
  await frozenSince(db, customer);
}

export const statusOf = async (db, customer) =>
  (await db.query('select status from reclaim.customer_customers where id = $1', [customer.id]))[0].status;
export const deleted = (db, customer) => until('customer deleted', async () => (await statusOf(db, customer)) === 'deleted');
export const erased = (server, customer) =>
  until('erasure complete', async () => {
    const { json } = await ledger(server, customer.id);
    return json.status === 'complete' && json;
  });

/** Runs one pass from the command line; returns the number of deletions. */
export async function expire(scope, db, ...args) {
  const done = await run(scope, ['expire', ...args], { database: db });
  assert.equal(done.code, 0, done.stderr);
  const lines = done.stdout.trim().split('\n').map((line) => JSON.parse(line));
  return args.length ? lines : lines.at(-1).processed;
}

/** Services with data of a customer, as at a telephone company. */
export const services = 'tag agent number flow campaign queue contact accesskey conversation call conference route storage billing'.split(' ');

export const tableOf = (service) => `public.service_${service}`;

/** A registered table for each service, and no other participants: every second one only marks its rows. */
export async function addServices(scope, db, names = services) {
  await db.query('delete from reclaim.cascade_participants');
  for (const [n, name] of names.entries()) {
    await db.query(`create table ${tableOf(name)} (id bigint generated always as identity primary key, customer_id uuid not null,
      note text not null default '', tm_delete timestamptz)`);
    await db.query(`create index on ${tableOf(name)} (customer_id)`);
    const soft = n % 2 ? ['--soft-delete', 'tm_delete', '--scrub', 'note'] : [];
    const added = await run(scope, ['cascade', 'add', name, '--table', tableOf(name), '--column', 'customer_id', ...soft], { database: db });
    assert.equal(added.code, 0, added.stderr);
  }
}

export async function fillServices(db, customer, rows = 2, names = services) {
  for (const name of names)
    await db.query(`insert into ${tableOf(name)} (customer_id, note) select $1, $2 || n from generate_series(1, $3::int) n`, [
      customer.id,
      `${customer.name} `,
      rows,
    ]);
}

/** A customer with every kind of data; `strings` must not be found afterwards. */
export async function addPerson(scope, db, given = {}) {
  const customer = await addMarkedCustomer(db, given);
  customer.account = await addBillingAccount(db, customer, { name: `Account ${customer.mark}` });
  customer.key = await addKey(scope, db, customer);
  await db.query(`update reclaim.access_keys set name = $2 where customer_id = $1`, [customer.id, `Key ${customer.mark}`]);
  return customer;
}

const tablesOf = (db) =>
  db.query(`select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where c.relkind in ('r', 'm') and n.nspname not in ('pg_catalog', 'information_schema') and n.nspname not like 'pg_toast%'
    order by 1`);

/**
 * Searches every row of every table, all columns as text and bytea in hex; returns where one of the strings was found.
 */
export async function found(db, strings) {
  const needles = strings.flatMap((text) => [text, Buffer.from(text).toString('hex')]);
  const places = [];
  for (const { name } of await tablesOf(db)) {
    const rows = await db.query(`select t::text as row from ${name} t where exists (
      select from unnest($1::text[]) as needle where strpos(lower(t::text), lower(needle)) > 0)`, [needles]);
    places.push(...rows.map(({ row }) => `${name}: ${row}`));
  }
  return places;
}

export async function metric(server, name, labels = {}) {
  const { samples } = parseMetrics((await ops(server, '/metrics')).body);
  const wanted = samples.filter((one) => one.name === name && Object.entries(labels).every(([key, value]) => one.labels[key] === value));
  return wanted.reduce((sum, one) => sum + one.value, 0);
}

/** Many frozen customers past their grace, with owners, as fast as SQL makes them. */
export async function addMany(db, count, { events = true } = {}) {
  const batch = randomUUID();
  await db.query(
    `with made as (
       insert into auth.users (id, email, encrypted_password) select gen_random_uuid(), 'many.' || n || '.' || $2 || '@customers.example.com', 'x'
       from generate_series(1, $1::int) n returning id, email)
     insert into reclaim.customer_customers (name, email, phone_number, owner_user_id, status, tm_deletion_scheduled)
       select 'Many ' || $2, email, '+15550199', id, 'frozen', clock_timestamp() - interval '31 days' from made`,
    [count, batch],
  );
  if (!events)
    await db.query(`delete from reclaim.event_outbox o using reclaim.customer_customers c where c.id = o.customer_id and c.name = $1`, [`Many ${batch}`]);
  return batch;
}

/** A customer with two rows of a contact (addServices), whose erasure is complete. */
export async function eraseSomeone(db, server) {
  const customer = await addCustomer(db);
  await fillServices(db, customer, 2, ['contact']);
  assert.equal((await remove(server, customer.id)).status, 200);
  await erased(server, customer);
  return customer;
}
