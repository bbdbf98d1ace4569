// The sealed log against somebody with full rights in the database: whatever is changed, removed or inserted afterwards is found.
// takes long

import assert from 'node:assert/strict';
import { sign } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, mailedCode, requestCode, validate, wrong } from './lib/cleanup.js';
import { addCustomer, asAdmin, assertError, env, scene } from './lib/customers.js';
import { addMany, addServices, erased, expire, fillServices, ledger, metric, remove } from './lib/erasure.js';
import { Hostile, shuffled } from './lib/hostile.js';
import { request } from './lib/http.js';
import { proofKey } from './lib/journal.js';
import { address, addUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { seeded } from './lib/random.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const manipulations = 200;
/** Repeats the kinds and what is drawn for each; the rows have other ids in each run. */
const seed = Number(process.env.RECLAIM_TEST_SEED ?? 20261118);

const stage = new Stage();
const customers = [];
let cluster, db, server, provider;
const verify = (database = db) => run(stage, ['audit', 'verify'], { database });

/** Deletes some customers and waits until that is certified and sealed, so that heads follow one another. */
async function eraseSome(count) {
  const some = [];
  for (let n = 0; n < count; n++) {
    const customer = await addCustomer(db);
    await fillServices(db, customer, 2, ['contact', 'flow']);
    await remove(server, customer.id);
    some.push(customer);
  }
  for (const customer of some) await erased(server, customer);
  customers.push(...some);
}

const command = async (...args) => {
  const done = await run(stage, args, { database: db });
  assert.equal(done.code, 0, done.stderr);
};

/** Registrations that are deleted, that wait for their code, and refusals: of an address and of a code. */
async function cleanUpSome(count) {
  for (let n = 0; n < count; n++) {
    const [user, waits] = [await addUser(db), await addUser(db)];
    const code = await mailedCode(server, provider, user.email);
    assertRefused(await validate(server, user.email, wrong(code)), 'cleanup-v1', '002');
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    await mailedCode(server, provider, waits.email);
    assertRefused(await requestCode(server, address('nobody')), 'cleanup-v1', '004');
  }
}

/** Rows of every kind: of two keys, a participant that keeps its data, a certificate that replaces another, and a floor. */
before(async () => {
  ({ cluster, db, server, provider } = await scene(stage));
  await addServices(stage, db, ['contact', 'flow']);
  await command('cascade', 'add', 'archive', '--remote');
  await command('cascade', 'disable', 'archive');
  await db.query(`insert into reclaim.auth_cleanup_events (log_id, correlation_id, email_hash, network_hash, kind, outcome, detail, sqlstate, constraint_name, counted_from)
    select n, case when n % 3 > 0 then gen_random_uuid() end, 'hash ' || n, 'network ' || n, 'refusals', 'refused', case when n % 2 = 0 then 'tier' end,
      case when n % 5 = 0 then '40001' end, case when n % 7 = 0 then 'a constraint' end, case when n % 2 = 0 then clock_timestamp() end from generate_series(1, 20) n`);
  await cleanUpSome(3);
  await eraseSome(3);
  await command('key-set', '--rotate');
  await eraseSome(3);
  await db.query('insert into public.service_contact (customer_id, note) values ($1, $2)', [customers[0].id, 'late']);
  await command('cascade', 'rescan', customers[0].id);
  await until('another certificate', async () => (await db.query('select from reclaim.erasure_certificates where customer_id = $1', [customers[0].id])).length === 2);
  await db.query(`update reclaim.sealed_sources set marked_at = '-infinity'`); // as if a minute had passed
  await eraseSome(3);
  await until('a floor', async () => (await db.query(`select from reclaim.sealed_sources where floor > 0`)).length === 3);
  await until('everything sealed', async () => / 0 not sealed yet/.test((await verify()).stdout));
  await server.withoutConnections();
  await server.stop(); // from here on the database is copied
});
after(() => stage.end());

/** A copy to manipulate. */
async function copy() {
  await cluster.admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${db.name}'`);
  return cluster.database(stage, { auth: 'none', template: db.name });
}

describe('the sealed log', () => {
  it('fits what is there, and says so', async () => {
    const done = await verify();
    assert.equal(done.code, 0, done.stdout + done.stderr);
    assert.match(done.stdout, /Everything is as it was sealed/);
  });

  it(`shows ${manipulations} random manipulations of what was sealed, and which row, receipt, leaf or head it was`, async (t) => {
    const copies = [await copy(), await copy()];
    await Promise.all(
      copies.map(async (database, worker) => {
        const draw = seeded(seed + worker);
        const hostile = await Hostile.begin(t, database, draw);
        const own = shuffled([...hostile.kinds().keys()], manipulations, seeded(seed)).filter((_, n) => n % copies.length === worker);
        for (const kind of own) {
          const { what, names } = await hostile.kinds()[kind]();
          const done = await verify(database);
          const said = `seed ${seed}, kind ${kind}: ${what}\n${done.stdout}${done.stderr}`;
          assert.equal(done.code, 1, said);
          assert.match(done.stdout, new RegExp(names), said);
          assert.ok((await hostile.undo()) > 0, `nothing was changed: ${said}`);
        }
        const done = await verify(database);
        assert.equal(done.code, 0, `seed ${seed}: after everything was undone\n${done.stdout}${done.stderr}`);
      }),
    );
  });

  it('does not believe functions, operators or settings that the administrator has replaced', async () => {
    const database = await copy();
    const [{ id }] = await database.query(`update reclaim.customer_log set outcome = 'forged' where id = (select max(id) from reclaim.customer_log) returning id`);
    const [{ customer_id }] = await database.query(`update reclaim.erasures set requested_at = requested_at - interval '1 day'
      where customer_id = (select customer_id from reclaim.erasures limit 1) returning customer_id`);
    const [receipt] = await database.query(`update reclaim.cascade_receipts set rows = 99 where ctid = (select ctid from reclaim.cascade_receipts where status = 'done' limit 1)
      returning customer_id, participant`);
    // Whatever is compared by a name that is not qualified is equal, and nothing is there.
    await database.query(`create schema hostile;
      create function hostile.never(bigint, bigint) returns boolean language sql as 'select false';
      create function hostile.never(text, text) returns boolean language sql as 'select false';
      create operator hostile.= (leftarg = bigint, rightarg = bigint, function = hostile.never);
      create operator hostile.>= (leftarg = bigint, rightarg = bigint, function = hostile.never);
      create operator hostile.> (leftarg = bigint, rightarg = bigint, function = hostile.never);
      create operator hostile.= (leftarg = text, rightarg = text, function = hostile.never);
      create operator hostile.<> (leftarg = text, rightarg = text, function = hostile.never);
      create function hostile.encode(bytea, text) returns text language sql as $$ select '' $$;
      create or replace function reclaim.rfc3339(p_time timestamptz) returns text language sql as $$ select '' $$;
      alter database "${database.name}" set search_path = hostile, pg_catalog`);
    const done = await verify(database);
    assert.equal(done.code, 1, done.stderr);
    assert.match(done.stdout, new RegExp(`changed: row ${id} of customer_log`));
    assert.match(done.stdout, new RegExp(`changed: the erasure of customer ${customer_id}`));
    assert.match(done.stdout, new RegExp(`changed: the receipt of ${receipt.participant} for customer ${receipt.customer_id}`));
    assert.match(done.stderr, /: 3 findings/);
  });

  it('shows rows that were dated back when they are sealed, whatever their ids and the epoch', async () => {
    const database = await copy();
    await database.query(`update reclaim.sealed_sources set floor = 0`);
    await database.query(`update reclaim.installation set epoch = epoch + 1`);
    const ids = (await database.query(`insert into reclaim.customer_log (id, customer_id, action, actor, outcome, created_at) overriding system value
      select id, $1, 'recover', 'admin', 'done', clock_timestamp() - interval '10 minutes' from unnest('{1000000, 2000000}'::bigint[]) id returning id`,
      [customers[0].id])).map((row) => row.id);
    const again = await serve(stage, { database, env: { ...env, ...provider.env } });
    await until('sealed', async () => (await database.query(`select from reclaim.sealed_leaves where source = 'customer' and fact_id = any ($1)`, [ids])).length === 2);
    await again.withoutConnections();
    await again.stop();
    const done = await verify(database);
    assert.equal(done.code, 1, done.stdout);
    for (const id of ids) assert.match(done.stdout, new RegExp(`inserted: row ${id} of customer_log .* dated back`));
    assert.match(done.stderr, /: 2 findings/);
  });

  it('completes no erasure while its last head does not fit, says so, and goes on once that is put right', async () => {
    const database = await copy();
    const own = await serve(stage, { database, env: { ...env, ...provider.env } });
    const broken = (value) => until(`reclaim_sealed_log_broken ${value}`, async () => (await metric(own, 'reclaim_sealed_log_broken')) === value);
    assert.equal(await metric(own, 'reclaim_sealed_log_broken'), 0);
    const flipped = {
      frontier: `set_byte(was.frontier, 0, get_byte(was.frontier, 0) # 1)`,
      jws: `split_part(was.jws, '.', 1) || '.' || translate(split_part(was.jws, '.', 2), 'ABCD', 'DCBA') || '.' || split_part(was.jws, '.', 3)`,
    };
    for (const [column, forged] of Object.entries(flipped)) {
      const session = await database.session(stage, 'hostile');
      const sealing = 'select pg_advisory_xact_lock(1919247212, 7)'; // sql/functions/erasure/journal_lose.sql: no head is added meanwhile
      await session.query(`begin; ${sealing}`);
      const { rows: [head] } = await session.query(`update reclaim.sealed_heads h set ${column} = ${forged} from reclaim.sealed_heads was
        where h.size = was.size and h.size = (select max(size) from reclaim.sealed_heads) returning h.size, was.${column} as genuine, h.${column} as forged`);
      assert.notDeepEqual(head.forged, head.genuine);
      await session.query('commit');
      const customer = await addCustomer(database);
      await fillServices(database, customer, 2, ['contact', 'flow']);
      assert.equal((await remove(own, customer.id)).status, 200);
      await broken(1);
      await until('its last receipt', async () => (await database.query('select from reclaim.erasures where customer_id = $1 and settled_at is not null', [customer.id])).length);
      await broken(1); // and it stays so
      assert.notEqual((await ledger(own, customer.id)).json.status, 'complete', column);
      assertError(await request(own, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() }), 404, 'NOT_COMPLETE');
      assert.equal((await database.query('select max(size) as size from reclaim.sealed_heads'))[0].size, head.size, 'nothing is built on it');
      assert.ok(own.lines.some(({ event }) => /the sealed log does not fit its last signed head/.test(event)));
      await database.query(`update reclaim.sealed_heads set ${column} = $2 where size = $1`, [head.size, head.genuine]);
      await erased(own, customer);
      await broken(0);
    }
    await own.withoutConnections();
    await own.stop();
    const done = await verify(database);
    assert.equal(done.code, 0, done.stdout + done.stderr);
  });

  it('accuses nobody when the clock of the database has gone back', async () => {
    const database = await copy();
    // The last head as it would be if the clock had been five minutes ahead when it was signed.
    const [{ size, jws }] = await database.query('select size, jws from reclaim.sealed_heads order by size desc limit 1');
    const [header, payload] = jws.split('.');
    const claims = JSON.parse(Buffer.from(payload, 'base64url'));
    const signed = `${header}.${Buffer.from(JSON.stringify({ ...claims, iat: claims.iat + 300 })).toString('base64url')}`;
    await database.query('update reclaim.sealed_heads set jws = $2 where size = $1', [size, `${signed}.${sign(null, Buffer.from(signed), proofKey(2)).toString('base64url')}`]);
    const own = await serve(stage, { database, env: { ...env, ...provider.env } });
    for (let n = 0; n < 2; n++) {
      const customer = await addCustomer(database);
      assert.equal((await remove(own, customer.id)).status, 200);
      await erased(own, customer);
    }
    await own.withoutConnections();
    await own.stop();
    const done = await verify(database);
    assert.equal(done.code, 0, done.stdout + done.stderr);
  });

  it('takes an erasure for open whose certificate is not in the journal yet, and not one whose completion was taken away', async () => {
    const database = await copy();
    const [open, taken] = customers.slice(-2);
    await database.query('update reclaim.erasures set completed_at = null, certificate_id = null where customer_id = any ($1)', [[open.id, taken.id]]);
    assert.equal((await verify(database)).code, 0, 'as after a crash before the head was in the journal');
    await database.query('update reclaim.erasures set settled_at = null where customer_id = $1', [taken.id]);
    const done = await verify(database);
    assert.equal(done.code, 1);
    assert.match(done.stdout, new RegExp(`changed: the erasure of customer ${taken.id}`));
    assert.match(done.stderr, /: 1 finding/);
    const own = await serve(stage, { database, env: { ...env, ...provider.env } });
    const redriven = await run(stage, ['cascade', 'redrive', taken.id], { database });
    assert.equal(redriven.code, 0, redriven.stderr);
    for (const customer of [open, taken]) await erased(own, customer);
    await own.withoutConnections();
    await own.stop();
    assert.equal((await verify(database)).code, 0);
  });

  it('reads what is new and no more, however much was sealed and journaled before', async () => {
    const [many, few] = [1500, 5];
    const database = await cluster.database(stage);
    const directory = temporaryDirectory(stage);
    const during = async (act) => {
      const own = await serve(stage, { database, directory, env: { ...env, ...provider.env, RECLAIM_EXPIRY_BRAKE: 'off' } });
      await act(own);
      await own.withoutConnections();
      await own.stop(); // then PostgreSQL has counted what its sessions read
    };
    const complete = async () => (await database.query('select from reclaim.erasures where certificate_id is not null')).length;
    await during(async () => {
      await addMany(database, many);
      await expire(stage, database, '--confirm', String(many));
      await until('all of them complete', async () => (await complete()) === many);
    });
    const eraseOne = async (own) => {
      const customer = await addCustomer(database);
      assert.equal((await remove(own, customer.id)).status, 200);
      await erased(own, customer);
    };
    // What was sealed is passed over once it is a minute old and something else is sealed: two minutes, as it were.
    await during((own) =>
      until('what was sealed is passed over', async () => {
        await database.query(`update reclaim.sealed_sources set marked_at = '-infinity'`);
        await eraseOne(own);
        return (await database.query('select from reclaim.sealed_sources where floor >= $1', [many])).length === 2;
      }));
    await database.query('analyze');
    const tables = ['customer_log', 'receipt_facts', 'sealed_leaves', 'sealed_heads', 'journal_lines', 'erasures', 'erasure_certificates'];
    const readOf = async () =>
      Object.fromEntries((await database.query(
        `select regexp_replace(relname, '_\\d{4}_\\d\\d$|_default$', '') as name, sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_user_tables
         where schemaname = 'reclaim' group by 1 having regexp_replace(relname, '_\\d{4}_\\d\\d$|_default$', '') = any($1)`, [tables])).map(({ name, rows }) => [name, rows]));
    const earlier = await readOf();
    await during(async (own) => {
      for (let n = 0; n < few; n++) await eraseOne(own);
    });
    const later = await readOf();
    for (const table of tables) {
      assert.ok(earlier[table] > 0, `${table} was read`);
      // A start compares the journal with the database, line by line.
      assert.ok(later[table] - earlier[table] < (few * many) / 2, `${later[table] - earlier[table]} rows of ${table} were read for ${few} erasures`);
    }
  });

  it('accuses nobody of what retention and deletions do to an installation that is older than its sealed log', async () => {
    const database = await cluster.database(stage);
    const migrated = await run(stage, ['migrate'], { database });
    assert.equal(migrated.code, 0, migrated.stderr);
    await database.query(`update reclaim.installation set created_at = clock_timestamp() - interval '300 days'`);
    await database.query(`insert into reclaim.customer_log (customer_id, action, actor, outcome, detail, created_at)
      select gen_random_uuid(), 'freeze', 'admin', 'done', 'in words', clock_timestamp() - interval '200 days' + n * interval '10 minutes' from generate_series(1, 10050) n`);
    const first = await serve(stage, { database, env: { ...env, ...provider.env } });
    await until('all of them sealed', async () => (await database.query(`select from reclaim.sealed_leaves where source = 'customer'`)).length >= 10050);
    await first.withoutConnections();
    await first.stop();
    assert.ok((await database.query('select from reclaim.sealed_heads')).length > 1, 'they are sealed by one head');
    await database.query(`update reclaim.customer_log set detail = '' where id % 2 = 0`);
    const gone = await database.query(`delete from reclaim.customer_log where created_at < clock_timestamp() - interval '190 days' returning id`);
    const look = (days) => run(stage, ['audit', 'verify'], { database, env: { RECLAIM_AUDIT_RETENTION: `${days}d` } });
    const fits = await look(190);
    assert.equal(fits.code, 0, fits.stdout);
    assert.match(fits.stdout, new RegExp(`; ${gone.length} rows gone by retention`));
    assert.equal((await look(310)).code, 1, 'retention had removed nothing yet');
    await database.query('delete from reclaim.customer_log where id in (5000, 10040)');
    const done = await look(190);
    assert.equal(done.code, 1);
    for (const id of [5000, 10040]) assert.match(done.stdout, new RegExp(`removed: row ${id} of customer_log`));
    assert.match(done.stderr, /: 2 findings/);
  });
});
