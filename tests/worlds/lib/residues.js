// After a complete erasure pg_dump shows nothing of the customer but what its ledger lists as kept.

import assert from 'node:assert/strict';

import { dumpText } from '../../service/lib/backups.js';
import { ledger } from '../../service/lib/erasure.js';

const unquoted = (name) => name.replaceAll('"', '');

/** Rows of data in the dump: [{ table, line, cells }], `cells` being [column, text] in the order of the line. */
export async function dumped(db) {
  const rows = [];
  let table, columns;
  for (const line of (await dumpText(db, '--data-only')).split('\n')) {
    const copy = /^COPY (\S+) \((.*)\) FROM stdin;$/.exec(line);
    if (copy) {
      table = unquoted(copy[1]);
      columns = copy[2].split(', ').map(unquoted);
    } else if (line === '\\.') table = undefined;
    else if (table) {
      const texts = line.split('\t');
      assert.equal(texts.length, columns.length, `the columns of ${table}`);
      rows.push({ table, line, cells: columns.map((column, n) => [column, texts[n]]) });
    }
  }
  return rows;
}

/** What the customer's ledger lists as kept: whole tables, and single columns as 'schema.table.column'. */
export async function keptOf(server, customer) {
  const { json } = await ledger(server, customer.id);
  assert.equal(json.status, 'complete', JSON.stringify(json));
  const kept = json.participants.filter(({ status }) => status === 'kept');
  for (const entry of kept) assert.ok(entry.reason, `${entry.name} is kept without a reason`);
  return new Set(kept.map(({ name }) => unquoted(name)));
}

const needlesOf = (strings) => strings.flatMap((text) => [text.toLowerCase(), Buffer.from(text).toString('hex')]);

/** The search finds the customer, as long as it is there, in its own row and in its accounts. */
export async function assertSearched(world, customer) {
  const needles = needlesOf(customer.strings);
  const places = new Set((await dumped(world.db)).filter(({ line }) => needles.some((text) => line.toLowerCase().includes(text))).map(({ table }) => table));
  const homes = await world.db.query(`select n.nspname || '.' || c.relname as name from unnest(array['customer_customers', 'billing_accounts']) as one
    join pg_class c on c.oid = reclaim.table_home(one) join pg_namespace n on n.oid = c.relnamespace`);
  for (const { name } of homes) assert.ok(places.has(name), `the search finds what is in ${name}`);
}

/** `customer.strings` and `more` are nowhere in the dump but in tables and columns that the ledger says are kept, or in tables that match `may`. */
export async function assertNoResidue(world, customer, { more = [], may = world.mayName ?? [] } = {}) {
  const kept = await keptOf(world.server, customer);
  const needles = needlesOf([...customer.strings, ...more]);
  const personal = ([, text]) => needles.some((needle) => text.toLowerCase().includes(needle));
  const left = (await dumped(world.db))
    .filter(({ table }) => !kept.has(table) && !may.some((pattern) => pattern.test(`${table}:`)))
    .flatMap(({ table, cells }) => cells.filter(([column]) => !kept.has(`${table}.${column}`)).filter(personal).map(([column, text]) => `${table}.${column}: ${text}`));
  assert.deepEqual(left, [], 'residues of the customer');
}
