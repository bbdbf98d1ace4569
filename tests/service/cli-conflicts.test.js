// Commands that PostgreSQL ends as the victim of a deadlock: they repeat their transaction, as the server does.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, auditOf, rowOf } from './lib/customers.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

// What each change of a customer locks, in this order. A command waits for the gate until the other session waits for
// what the command holds; so the wait that closes the circle is always the command's, and the command is the victim.
const [HELD_BY_COMMAND, GATE, HELD_BY_OTHER] = [7001, 7002, 7003];
const lockInOrder = `
  create function public.lock_in_order() returns trigger language plpgsql as $$
  begin
    perform pg_advisory_xact_lock(${HELD_BY_COMMAND});
    perform pg_advisory_xact_lock(${GATE});
    perform pg_advisory_xact_lock(${HELD_BY_OTHER});
    return new;
  end $$;
  create trigger zz_lock_in_order before update on reclaim.customer_customers
    for each row execute function public.lock_in_order();
  create trigger zz_lock_in_order before insert or update on reclaim.access_keys
    for each row execute function public.lock_in_order()`;

describe('a deadlock with another session', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
    await db.query(lockInOrder);
  });
  after(() => stage.end());

  const waitsFor = (lock) =>
    until(`a session waits for ${lock}`, async () => {
      const rows = await db.query(`select 1 from pg_locks where locktype = 'advisory' and objid = $1 and not granted`, [lock]);
      return rows.length > 0;
    });
  const deadlocks = async () => {
    await db.query('select pg_stat_clear_snapshot()');
    const [{ deadlocks: count }] = await db.query('select deadlocks::int from pg_stat_database where datname = current_database()');
    return count;
  };

  /** Runs the command into a deadlock, which ends when PostgreSQL has ended the command's transaction. */
  const runIntoDeadlock = async (t, args) => {
    const [other, gatekeeper] = [await db.session(t), await db.session(t)];
    await gatekeeper.query('select pg_advisory_lock($1)', [GATE]);
    await other.query("set deadlock_timeout = '10min'"); // it is never the one to find the deadlock
    await other.query('begin');
    await other.query('select pg_advisory_xact_lock($1)', [HELD_BY_OTHER]);
    const ran = run(t, args, { database: db });
    await waitsFor(GATE);
    const wanted = other.query('select pg_advisory_xact_lock($1)', [HELD_BY_COMMAND]);
    await waitsFor(HELD_BY_COMMAND);
    await gatekeeper.query('select pg_advisory_unlock($1)', [GATE]);
    await wanted;
    await other.query('commit');
    return ran;
  };

  for (const [command, status, after, ...options] of [
    ['freeze', 'active', 'frozen'],
    ['recover', 'frozen', 'active'],
    ['hold', 'active', 'active', '--reason', 'a lawsuit'],
    ['unhold', 'active', 'active'],
    ['delete', 'active', 'deleted'],
  ])
    it(`${command} is tried again, done once and printed once`, async (t) => {
      const customer = await addCustomer(db, { status });
      const before = await deadlocks();
      const { code, stdout, stderr } = await runIntoDeadlock(t, [command, customer.id, ...options]);
      assert.equal(code, 0, stderr);
      assert.equal(stdout.trim().split('\n').length, 1, stdout);
      assert.equal(JSON.parse(stdout).id, customer.id);
      assert.equal((await rowOf(db, customer)).status, after);
      assert.equal((await auditOf(db, customer)).filter(({ actor }) => actor === 'operator').length, 1);
      await until('the deadlock is counted', async () => (await deadlocks()) > before);
    });

  it('key create and key revoke are tried again: one key is printed and stored, and then revoked', async (t) => {
    const { id } = await addCustomer(db);
    const keys = () => db.query('select prefix, revoked_at is not null as revoked from reclaim.access_keys where customer_id = $1', [id]);
    const made = await runIntoDeadlock(t, ['key', 'create', '--customer', id]);
    assert.equal(made.code, 0, made.stderr);
    assert.match(made.stdout, /^rk_\S+\n$/);
    assert.deepEqual(await keys(), [{ prefix: made.stdout.slice(0, 9), revoked: false }]);
    const revoked = await runIntoDeadlock(t, ['key', 'revoke', '--customer', id]);
    assert.equal(revoked.stdout, '1 key revoked\n', revoked.stderr);
    assert.deepEqual(await keys(), [{ prefix: made.stdout.slice(0, 9), revoked: true }]);
  });
});
