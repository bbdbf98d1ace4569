// Everything that the database has about a customer, table by table and column by column, in a form in which equal
// customers are equal: ids are named after what they are the id of, times are only said to be set.

import assert from 'node:assert/strict';

import { until } from '../../service/lib/stage.js';

const clock = /\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|\+00(:00)?)?/g;
const hash = /\b[0-9a-f]{64}\b/g;
const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

const whose = ['frozen_by', 'freeze_reason']; // differ by design, in rows and in events

/** By whom, times that were measured, and numbers that are counted for all customers together. */
const own = {
  customer_customers: ['changed_xid'],
  customer_frozen: ['by_owner'],
  customer_mails: ['id'],
  customer_told: ['last_freeze'], // milliseconds that were measured
  customer_log: ['id', 'actor', 'actor_id', 'actor_role', 'correlation_id', 'detail'],
  event_outbox: ['position'],
  billing_freezes: ['id'],
  access_keys: ['changed_xid', 'key_hash', 'prefix'],
  gate_ended: ['changed_xid'],
  work_items: ['id', 'leased_by'],
  receipt_facts: ['id'],
  erasures: ['certificate_id', 'address_hash', 'link_hash', 'journal_hash', 'keyed_address'],
  erasure_certificates: ['id', 'jws'], // signed; what it says is the fact
};

/** The tables of Reclaim that name a customer, and those that name what belongs to it. */
async function conditionsOf(db) {
  const rows = await db.query(
    `select c.relname as name, a.attname as column from pg_class c join pg_namespace n on n.oid = c.relnamespace and n.nspname = 'reclaim'
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     where c.relkind in ('r', 'v', 'p') and not c.relispartition and a.attname in ('customer_id', 'billing_account_id') order by 1, 2`,
  );
  const conditions = { customer_customers: 't.id = $1', gate_ended: 't.id = $1', work_items: `t.payload ->> 'customer_id' = $1::text or t.payload -> 'customer_ids' ? $1::text` };
  for (const { name, column } of rows)
    conditions[name] ??= column === 'customer_id' ? 't.customer_id = $1' : 't.billing_account_id in (select id from reclaim.billing_accounts where customer_id = $1)';
  return conditions;
}

/** ids and words of this customer → their names. */
function namesOf(customer) {
  return [
    [customer.id, '<customer>'],
    [customer.account.id, '<account>'],
    [customer.held.id, '<held account>'],
    [customer.subscription.id, '<subscription>'],
    [customer.user.id, '<owner>'],
    [customer.mark, '<mark>'],
    [String(parseInt(customer.mark, 16)), '<number>'],
    [customer.email, '<email>'],
    [customer.user.email, '<owner email>'],
  ];
}

function plain(value, names) {
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
  if (value instanceof Date) return '<time>';
  if (Array.isArray(value)) return value.map((one) => plain(one, names));
  if (typeof value === 'object')
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key]) => !whose.includes(key))
        .map(([key, one]) => [key, plain(one, names)]),
    );
  const named = names.reduce((text, [word, name]) => text.replaceAll(word, name), value);
  return named.replace(clock, '<time>').replace(hash, '<hash>').replace(uuid, '<id>');
}

/** table → rows, each column → value. */
export async function rowsAbout(db, customer) {
  const names = namesOf(customer);
  const tables = {};
  for (const [name, condition] of Object.entries(await conditionsOf(db))) {
    const rows = await db.query(`select * from reclaim.${name} t where ${condition}`, [customer.id]);
    const without = (row) => Object.fromEntries(Object.entries(row).filter(([column]) => !own[name]?.includes(column)));
    tables[name] = rows.map((row) => plain(without(row), names)).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  }
  tables['auth.users'] = (await db.query('select * from auth.users where id = $1', [customer.user.id])).map((row) => plain(row, names));
  return tables;
}

/** What the customer's events say, in order. */
export async function eventsAbout(db, customer) {
  const rows = await db.query('select type, sequence, payload from reclaim.event_outbox where customer_id = $1 order by position', [customer.id]);
  return rows.map((row) => plain(row, namesOf(customer)));
}

/** The work that a change left is done: calls are over, mails sent, gates have recorded the freeze. */
export async function settled(db, customers) {
  let open;
  const look = async () => {
    [open] = await db.query(
      `select (select count(*)::int from reclaim.work_items where payload ->> 'customer_id' = any ($1::text[]) or payload -> 'customer_ids' ?| $1::text[]) as work,
         (select count(*)::int from reclaim.customer_customers where id = any ($1::uuid[]) and status = 'frozen'
            and num_nulls(frozen_api_at, frozen_calls_at, frozen_billing_at) > 0) as freezes,
         (select count(*)::int from reclaim.call_calls l join reclaim.customer_customers c on c.id = l.customer_id
            where c.id = any ($1::uuid[]) and c.status <> 'active' and l.status <> 'hangup') as calls,
         (select count(*)::int from reclaim.erasures where customer_id = any ($1::uuid[]) and completed_at is null) as erasures`,
      [customers.map(({ id }) => id)],
    );
    return Object.values(open).every((count) => count === 0);
  };
  await until('the work done, the freezes recorded', look, 60_000).catch((fault) => assert.fail(`${fault.message}; open: ${JSON.stringify(open)}`));
}
