// `reclaim orphans delete` and `purge`: what an operator deletes is checked, locked and logged as by the clean-up.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { hashOf, isThere, logOf } from './lib/cleanup.js';
import { addCustomer } from './lib/customers.js';
import { addCoAdmin, addCompany, addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage } from './lib/stage.js';

describe('an operator', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    db = await (await Cluster.create(stage)).database(stage);
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
  });
  after(() => stage.end());

  const orphans = (t, ...args) => run(t, ['orphans', ...args], { database: db });
  const remove = (t, user, options = {}) => run(t, ['orphans', 'delete', user.id, '--reason', 'asked for by mail'], { database: db, ...options });
  /** All that a deletion writes beside auth.users. */
  const traces = async () =>
    (
      await db.query(`select (select count(*) from reclaim.auth_cleanup_log)::int as log, (select count(*) from reclaim.auth_cleanup_reasons)::int as reasons,
        (select count(*) from reclaim.verification_codes)::int as codes`)
    )[0];

  async function assertLeftAlone(user, deletion, sentence) {
    const earlier = await traces();
    const { code, stdout, stderr } = await deletion;
    assert.equal(code, 1, stdout);
    assert.match(stderr, sentence);
    assert.equal(stdout, '');
    assert.equal(await isThere(db, user), true);
    assert.deepEqual(await traces(), earlier, 'nothing is left of a deletion that did not happen');
  }

  it('deletes an orphan with its code, and the log has who, why and when', async (t) => {
    for (const confirmed of [null, '2025-10-20T14:30:00Z']) {
      const user = await addUser(db, { confirmed });
      await db.query(
        `insert into reclaim.verification_codes (email_hash, user_id, code_hash, code_salt, expires_at, log_id) values ($1, $2, 'x', 'y', now() + interval '5 minutes', 1)`,
        [hashOf(user.email), user.id],
      );
      const { code, stdout, stderr } = await remove(t, user);
      assert.equal(code, 0, stderr);
      const { deleted, correlation_id } = JSON.parse(stdout);
      assert.equal(deleted, 1);
      assert.equal(await isThere(db, user), false);
      const [row, ...others] = await logOf(db, correlation_id);
      assert.equal(others.length, 0);
      assert.deepEqual(
        [row.step, row.status, row.error_code, row.email_hash, row.orphan_classification],
        ['orphans-delete', 'completed', null, hashOf(user.email), confirmed ? 'case_1_2' : 'case_1_1'],
      );
      assert.deepEqual(
        await db.query(
          `select r.actor, r.reason from reclaim.auth_cleanup_reasons r join reclaim.auth_cleanup_log l on l.id = r.log_id and l.created_at = r.created_at
           where l.correlation_id = $1`,
          [correlation_id],
        ),
        [{ actor: 'operator', reason: 'asked for by mail' }],
      );
      assert.equal((await db.query('select 1 from reclaim.verification_codes where email_hash = $1', [hashOf(user.email)])).length, 0);
      const { stdout: trail } = await run(t, ['trace', user.email], { database: db });
      assert.match(trail, /orphans-delete\s+completed.*operator: asked for by mail/);
      await assertLeftAlone({ id: (await addUser(db)).id }, remove(t, user), /there is no user/);
    }
  });

  it('cannot delete whoever is no orphan', async (t) => {
    const owner = await addUser(db), admin = await addUser(db), banned = await addUser(db), ssoUser = await addUser(db, { sso: true });
    const customer = await addUser(db), member = await addUser(db), gone = await addUser(db, { deleted: '2025-11-01T00:00:00Z' });
    await addCoAdmin(db, admin, await addCompany(db, owner));
    await db.query(`update auth.users set banned_until = now() + interval '1 day' where id = $1`, [banned.id]);
    const { id } = await addCustomer(db);
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [id, customer.id]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [id, member.id]);
    for (const user of [owner, admin, banned, customer, member]) await assertLeftAlone(user, remove(t, user), /is not orphaned/);
    for (const user of [ssoUser, gone]) await assertLeftAlone(user, remove(t, user), /there is no user/);
    const { stdout } = await orphans(t, 'purge', '--older-than', '0s');
    assert.ok(JSON.parse(stdout).deleted >= 0);
    for (const user of [owner, admin, banned, customer, member, ssoUser, gone]) assert.equal(await isThere(db, user), true);
  });

  it('waits for nobody long: a registration that is completing wins', async (t) => {
    const user = await addUser(db);
    const product = await db.session(t);
    await product.query('begin');
    await product.query('insert into companies (owner_admin_uuid) values ($1)', [user.id]);
    await assertLeftAlone(user, remove(t, user), /try again/);
    await product.query('commit');
    await assertLeftAlone(user, remove(t, user), /is not orphaned/);
  });

  it('keeps away from an address that another session works on', async (t) => {
    const user = await addUser(db);
    const program = await db.session(t);
    await program.query('select reclaim.acquire_cleanup_lock($1)', [user.email]);
    await assertLeftAlone(user, remove(t, user), /try again/);
    await program.query('select reclaim.release_cleanup_lock($1)', [user.email]);
    assert.equal((await remove(t, user)).code, 0);
  });

  it('locks an ownership table that has no foreign key', async (t) => {
    const user = await addUser(db);
    await db.query('create table seats (holder uuid)');
    t.after(() => db.query('drop table seats'));
    const env = { RECLAIM_OWNERSHIP: 'seats.holder' };
    const product = await db.session(t);
    await product.query('begin');
    await product.query('insert into seats values ($1)', [user.id]);
    await assertLeftAlone(user, remove(t, user, { env }), /try again/);
    await product.query('commit');
    await assertLeftAlone(user, remove(t, user, { env }), /is not orphaned/);
  });

  it('deletes nothing without its row in the log', async (t) => {
    const user = await addUser(db);
    await db.query(`create function refuse() returns trigger language plpgsql as 'begin raise exception ''full''; end'`);
    await db.query('create trigger refuse before update on reclaim.auth_cleanup_log for each row execute function refuse()');
    t.after(() => db.query('drop function refuse() cascade'));
    await assertLeftAlone(user, remove(t, user), /could not be deleted/);
  });

  it('deletes nothing where row security hides who owns what', async (t) => {
    const user = await addUser(db);
    await addCompany(db, user);
    const url = await addServingRole(db, 'hidden_from');
    await db.query('alter table companies enable row level security');
    t.after(() => db.query('alter table companies disable row level security'));
    await assertLeftAlone(user, remove(t, user, { database: url }), /row-level security hides rows/);
    const purged = await run(t, ['orphans', 'purge', '--older-than', '0s'], { database: url });
    assert.equal(purged.code, 1);
    assert.equal(await isThere(db, user), true);
  });

  it('leaves whom a row of another table refers to, and purges the others', async (t) => {
    const [buyer, other] = [await addUser(db), await addUser(db)];
    await db.query('create table invoices (id int, buyer uuid references auth.users)');
    t.after(() => db.query('drop table invoices'));
    await db.query('insert into invoices values (1, $1)', [buyer.id]);
    await assertLeftAlone(buyer, remove(t, buyer), /^reclaim orphans: /);
    const { deleted, skipped, failed } = JSON.parse((await orphans(t, 'purge', '--older-than', '0s')).stdout);
    assert.deepEqual([deleted >= 1, skipped + failed], [true, 1]);
    assert.deepEqual([await isThere(db, buyer), await isThere(db, other)], [true, false]);
  });

  it('must say why, and whom', async (t) => {
    const { id } = await addUser(db);
    for (const args of [
      ['delete', id], ['delete'], ['delete', 'everyone', '--reason', 'x'], ['delete', id, '--reason', ' '], ['delete', id, '--reason', 'x'.repeat(1001)],
      ['delete', id, '--reason', 'x', '--dry-run'], ['purge'], ['purge', id, '--older-than', '1d'], ['purge', '--older-than', 'long'],
      ['purge', '--older-than', '1d', '--format', 'csv'], ['--dry-run'], ['--reason', 'x'], ['remove', id],
    ])
      assert.equal((await orphans(t, ...args)).code, 2, args.join(' '));
  });

  it('purges by age, in pages, and says how many; a dry run lists the same and deletes none', async (t) => {
    await orphans(t, 'purge', '--older-than', '0s');
    await db.query(
      `insert into auth.users (id, email, created_at) select gen_random_uuid(), 'many' || n || '@canary-reclaim.example.com', now() - interval '40 days' from generate_series(1, 501) n`,
    );
    const young = await addUser(db, { created: new Date().toISOString() });
    const dry = await orphans(t, 'purge', '--older-than', '30d', '--dry-run', '--format', 'json');
    assert.equal(JSON.parse(dry.stdout).length, 501, dry.stderr);
    const { code, stdout, stderr } = await orphans(t, 'purge', '--older-than', '30d', '--reason', 'never came back');
    assert.equal(code, 0, stderr);
    const { correlation_id, ...counts } = JSON.parse(stdout);
    assert.deepEqual(counts, { deleted: 501, skipped: 0, failed: 0 });
    assert.equal(await isThere(db, young), true);
    const logged = await db.query(
      `select l.step, l.status, r.reason, count(*)::int as n from reclaim.auth_cleanup_log l join reclaim.auth_cleanup_reasons r on r.log_id = l.id
       where l.correlation_id = $1 group by 1, 2, 3`,
      [correlation_id],
    );
    assert.deepEqual(logged, [{ step: 'orphans-purge', status: 'completed', reason: 'never came back', n: 501 }]);
    assert.equal(JSON.parse((await orphans(t, 'purge', '--older-than', '30d')).stdout).deleted, 0);
  });

  it('purges the others when one is in use', async (t) => {
    const [busy, free] = [await addUser(db), await addUser(db)];
    const product = await db.session(t);
    await product.query('begin');
    await product.query('select 1 from auth.users where id = $1 for update', [busy.id]);
    const { code, stdout } = await orphans(t, 'purge', '--older-than', '1d');
    assert.equal(code, 0);
    const { deleted, skipped } = JSON.parse(stdout);
    assert.deepEqual([deleted >= 1, skipped], [true, 1]);
    assert.deepEqual([await isThere(db, busy), await isThere(db, free)], [true, false]);
  });
});
