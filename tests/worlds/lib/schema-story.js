// A random schema of a team's tables: adopted, changed, run through freeze, recovery, freeze and deletion, and given back.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';

import { run } from '../../service/lib/reclaim.js';
import { Schema } from './schemas.js';

async function all(db, statements) {
  for (const sql of statements)
    await db.query(sql).catch((fault) => {
      throw new Error(`${fault.message}: ${sql}`);
    });
}

const columnsOf = async (db, name) =>
  (await db.query(`select attname as name from pg_attribute where attrelid = $1::regclass and attnum > 0 and not attisdropped order by attnum`, [`public.${name}`]))
    .map((row) => row.name);

const rowsOf = (db, name, key, id) => db.query(`select to_jsonb(t) as row from public.${name} t where ${key} = $1 order by id`, [id]);

/** Everything of a deleted customer that the team had is changed, or noted as kept. */
async function assertCleared(db, schema, { id, before }) {
  const kept = await db.query("select substr(name, length('public.') + 1) as name from reclaim.erasure_kept where kind = 'column' and customer_id = $1", [id]);
  const isKept = new Set(kept.map(({ name }) => name));
  for (const [table, key] of [[schema.customers, 'id'], [schema.accounts, 'customer_id']]) {
    const rows = await rowsOf(db, table.name, key, id);
    assert.equal(rows.length, before[table.name].length);
    for (const [i, { row }] of rows.entries()) {
      assert.equal(row.status, 'deleted');
      const was = before[table.name][i].row;
      for (const { name: quoted, value } of table.columns) {
        const name = quoted.startsWith('"') ? quoted.slice(1, -1).replaceAll('""', '"') : quoted;
        if (!value || /^(status|tm_)/.test(name) || isKept.has(`${table.name}.${name}`)) continue;
        assert.ok(was[name] === null || JSON.stringify(row[name]) !== JSON.stringify(was[name]), `${table.name}.${name} is left as ${JSON.stringify(row[name])}`);
      }
      const left = Object.entries(row).filter(([, value]) => JSON.stringify(value)?.includes(was.id) === false && /mk\d+x\d/.test(JSON.stringify(value)));
      assert.deepEqual(left.map(([name]) => `${table.name}.${name}`).filter((name) => !isKept.has(name)), [], 'columns that have the mark');
    }
  }
}

const versions = fs.readdirSync('/usr/lib/postgresql').sort((a, b) => a - b);
const dump = (db) =>
  execFileSync(`/usr/lib/postgresql/${versions.at(-1)}/bin/pg_dump`, ['-s', '-d', db.url], { encoding: 'utf8' }).split('\n').filter((line) => line && !/^(--|\\)/.test(line)).sort();

/** The tables are as those of a database that Reclaim never saw; what is not is told by --down, with the name that the line has. */
function assertGivenBack(now, never, said) {
  const common = /^(create|index|unique|public|table|view|only|alter|using|btree|where|with|time|zone|timestamp|without|constraint|add|not|null|select|from|comment|customer_customers|billing_accounts|tm_delete|is|or|and|as|id|name)$/i;
  const missing = never.filter((line) => !now.includes(line));
  const added = now.filter((line) => !never.includes(line));
  const told = said.split('\n').filter((line) => /^not as before|^ /.test(line)).join('\n');
  for (const line of [...missing, ...added]) {
    const words = line.match(/\w+/g).filter((word) => !common.test(word));
    assert.ok(words.some((word) => told.includes(word)), `not told by --down: ${line}\n${said}\nmissing:\n${missing.join('\n')}\nadded:\n${added.join('\n')}`);
  }
}

const live = async (db, { shows }) => shows && (await db.query(`select count(*)::int as n from public.${shows}`))[0].n;

/** The story of the schema of this seed. */
export async function schemaStory(t, cluster, seed) {
  const schema = new Schema(seed);
  const db = await cluster.database(t);
  const reclaim = async (...args) => {
    const done = await run(t, args, { database: db });
    assert.equal(done.code, 0, done.stdout + done.stderr);
    return done.stdout;
  };
  const ids = Array.from({ length: 5 }, () => randomUUID());
  const [first, second, third, kept, idle] = ids;
  try {
    await all(db, [...schema.create(), ...ids.slice(0, 4).flatMap((id, row) => schema.insert(row + 1, id))]);
    const original = await columnsOf(db, 'customer_customers');
    if (schema.obstacle) {
      const [make, take, words] = schema.obstacle;
      await all(db, [make]);
      const refused = await run(t, ['migrate'], { database: db });
      assert.equal(refused.code, 1, `${make} does not stop the adoption`);
      assert.match(refused.stderr, words);
      assert.match(refused.stderr, /What to do: /);
      await all(db, [take]);
    }
    const shown = [await live(db, schema.customers), await live(db, schema.accounts)];
    await reclaim('migrate');
    assert.deepEqual([await live(db, schema.customers), await live(db, schema.accounts)], shown, 'views show the rows that they showed');
    const never = await cluster.database(t);
    const changes = schema.change();
    await all(never, [...schema.create(), ...changes]);
    await all(db, changes);
    await all(db, schema.insert(5, idle));
    const wanted = (await columnsOf(db, 'customer_customers')).filter((name) => original.includes(name) || /^c_/.test(name));

    const before = async (id) => ({
      customer_customers: await rowsOf(db, 'customer_customers', 'id', id),
      billing_accounts: await rowsOf(db, 'billing_accounts', 'customer_id', id),
    });
    const set = (status, ...some) => db.query('update public.customer_customers set status = $1 where id = any ($2)', [status, some]);
    const gone = [];
    for (const id of [first, second, third]) gone.push({ id, before: await before(id) });
    const untouched = [await before(kept), await before(idle)];

    await set('frozen', first, second, third);
    await set('active', first);
    await set('frozen', first);
    await db.query(`update public.customer_customers set tm_deletion_scheduled = tm_deletion_scheduled - interval '31 days' where id = any ($1)`, [[second, third]]);
    await db.query(`select reclaim.delete_customers(array[$1::uuid], array[null::text], 'delete', 'operator', null, null)`, [first]);
    await reclaim('expire');
    for (const customer of gone) await assertCleared(db, schema, customer);
    // Looked at again, nothing is found; what is written into a cleared row is, once.
    const again = async (table) => (await db.query('select customer_id, rows::int from reclaim.clear_again($1, $2)', [table, [first, second, third]]));
    const ledger = () => db.query('select customer_id, name, reason from reclaim.erasure_kept order by 1, 2');
    const ledgers = await ledger();
    for (const table of ['customer_customers', 'billing_accounts']) assert.deepEqual(await again(table), []);
    assert.deepEqual(await ledger(), ledgers);
    await db.query(`update reclaim.customer_customers set address = 'mk1x1' where id = $1`, [second]);
    assert.deepEqual(await again('customer_customers'), [{ customer_id: second, rows: 1 }]);
    assert.deepEqual(await again('customer_customers'), []);
    for (const customer of gone) await assertCleared(db, schema, customer);
    const said = await db.query('select * from reclaim.customer_disagreements(10)');
    assert.deepEqual(said, []);
    assert.deepEqual([await before(kept), await before(idle)], untouched, 'customers that were not deleted are as they were');

    const told = await reclaim('migrate', '--down', '99');
    assertGivenBack(dump(db), dump(never), told);
    assert.deepEqual([await live(db, schema.customers), await live(db, schema.accounts)], [schema.customers.shows && 2, schema.accounts.shows && 4]);
    assert.deepEqual(await columnsOf(db, 'customer_customers'), wanted);
    const [{ n }] = await db.query(`select count(*)::int as n from pg_trigger g join pg_proc f on f.oid = g.tgfoid
      where g.tgrelid = 'public.customer_customers'::regclass and f.pronamespace <> 'public'::regnamespace and not g.tgisinternal`);
    assert.equal(n, 0);
    if (original.includes('status')) await set(/state/.test(schema.customers.typeOf('status')) ? 'frozen' : 'x', kept); // no trigger or constraint of Reclaim's is left
  } catch (fault) {
    fault.message = `seed ${seed}: ${fault.message}\n${new Schema(seed).create().filter((sql) => /^create (table|unique|trigger|function)/.test(sql)).join(';\n')}`;
    throw fault;
  }
}
