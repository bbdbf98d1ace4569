// After a complete erasure pg_dump shows nothing of the customer but what its ledger lists as kept.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';

import { ledger } from '../../service/lib/erasure.js';
import { binaries } from '../../service/lib/postgres.js';

const run = promisify(execFile);

/** Lines of data in the dump, each with its table: [{ table, line }]. */
export async function dumped(db) {
  const { stdout } = await run(path.join(binaries, 'pg_dump'), ['--data-only', '--dbname', db.url], { maxBuffer: 1 << 30 });
  const lines = [];
  let table;
  for (const line of stdout.split('\n')) {
    const copy = /^COPY (\S+) /.exec(line);
    if (copy) table = copy[1].replaceAll('"', '');
    else if (line === '\\.') table = undefined;
    else if (table) lines.push({ table, line });
  }
  return lines;
}

/** Tables that the customer's ledger lists as kept, or of which it keeps a column. */
export async function keptTables(server, customer) {
  const { json } = await ledger(server, customer.id);
  assert.equal(json.status, 'complete');
  const kept = json.participants.filter(({ status }) => status === 'kept');
  for (const entry of kept) assert.ok(entry.reason, `${entry.name} is kept without a reason`);
  return kept.map(({ name, kind }) => (kind === 'column' ? name.slice(0, name.lastIndexOf('.')) : name).replaceAll('"', ''));
}

/** `customer.strings` and `more` are nowhere in the dump but in tables that the ledger says are kept, or that match `may`. */
export async function assertNoResidue(world, customer, { more = [], may = world.mayName ?? [] } = {}) {
  const kept = await keptTables(world.server, customer);
  const needles = [...customer.strings, ...more].map((text) => text.toLowerCase());
  const left = (await dumped(world.db))
    .filter(({ table, line }) => !kept.includes(table) && !may.some((pattern) => pattern.test(`${table}:`)) && needles.some((text) => line.toLowerCase().includes(text)))
    .map(({ table, line }) => `${table}: ${line}`);
  assert.deepEqual(left, [], 'residues of the customer');
}
