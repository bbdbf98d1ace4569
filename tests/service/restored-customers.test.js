// A restore where users are customers, where customers have members, and two replays at once.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { dumpOf } from './lib/backups.js';
import { addCustomer, addKey, asKey, asUser, customerAddress, env, freeze, passwordHash, rowOf } from './lib/customers.js';
import { addServices, erased, remove, statusOf } from './lib/erasure.js';
import { gate } from './lib/gate.js';
import { says } from './lib/journal.js';
import { addUser as addBareUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addSupabaseRoles, documentedStatements } from './lib/roles.js';
import { Stage, until } from './lib/stage.js';
import { stopBefore } from './lib/stops.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const isThere = async (db, { id }) => (await db.query('select from auth.users where id = $1 and deleted_at is null', [id])).length === 1;
const isActive = async (db, { id }) => (await db.query('select reclaim.customer_is_active($1) as active', [id]))[0].active;

describe('a restore where users are customers', () => {
  let db, server, settings, home, backup, gone, frozen, stays;
  const notesOf = async ({ id }) => (await db.query('select count(*)::int as n from public.notes where author = $1', [id]))[0].n;
  const command = (...args) => run(stage, args, { env: settings, directory: home });

  async function addUser() {
    const user = await addBareUser(db, { email: customerAddress('user'), confirmed: '2025-10-02T00:00:00Z' });
    await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, passwordHash]);
    await db.query(`insert into public.notes (author, text) values ($1, 'a note')`, [user.id]);
    return user;
  }

  before(async () => {
    db = await cluster.database(stage, { auth: 'supabase' });
    home = temporaryDirectory(stage);
    const reach = await addSupabaseRoles(stage, db, documentedStatements().users);
    settings = { ...env, ...reach, RECLAIM_CUSTOMERS: 'users', RECLAIM_EXPIRY_INTERVAL: '1s' };
    server = await serve(stage, { env: settings, directory: home });
    await db.query(`create table public.notes (id bigint generated always as identity, author uuid not null, text text);
      create index on public.notes (author); grant select, delete on public.notes to reclaim`);
    assert.equal((await command('cascade', 'add', 'notes', '--table', 'public.notes', '--column', 'author', '--by', 'user')).code, 0);
    [gone, frozen, stays] = [await addUser(), await addUser(), await addUser()];
    backup = dumpOf(stage, db);
    await backup.take();
    assert.equal((await freeze(server, frozen.id)).status, 200);
    for (const user of [gone, frozen]) {
      assert.equal((await remove(server, user.id)).status, 200);
      await erased(server, user);
    }
    await server.withoutConnections();
    await server.stop();
    await backup.restore();
    server = await serve(stage, { env: settings, directory: home, wait: 'listening' });
    await says(server, 'restored');
  });

  it('serves none of the erased, who have no row in the backup, and all others', async () => {
    for (const user of [gone, frozen]) {
      assert.equal(await isThere(db, user), true, 'the backup brought the login back');
      assert.equal(await rowOf(db, user), undefined);
      assert.equal((await gate(server, asUser(user.id))).status, 401);
      assert.equal(await isActive(db, user), false);
    }
    assert.equal((await gate(server, asUser(stays.id))).status, 200);
  });

  it('erases them again with their logins', async () => {
    const done = await command('replay-erasures');
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 2 customers that the backup had brought back; 0 that it did not have\./);
    await says(server, 'ready');
    for (const user of [gone, frozen]) {
      await erased(server, user);
      assert.deepEqual([await isThere(db, user), await notesOf(user)], [false, 0]);
      assert.equal((await gate(server, asUser(user.id))).status, 401);
    }
    assert.deepEqual([await isThere(db, stays), await notesOf(stays)], [true, 1]);
    assert.equal((await gate(server, asUser(stays.id))).status, 200);
  });
});

describe('a restore where customers have members', () => {
  let db, server, home, gone, other, member, partner;
  const start = ({ wait = 'ready' } = {}) => serve(stage, { database: db, env, directory: home, wait });

  before(async () => {
    db = await cluster.database(stage);
    home = temporaryDirectory(stage);
    server = await start();
    await addServices(stage, db, ['contact']);
    [gone, other] = [await addCustomer(db), await addCustomer(db)];
    [member, partner] = [await addBareUser(db), other.user];
    for (const { id } of [member, partner]) await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [gone.id, id]);
    const backup = dumpOf(stage, db);
    await backup.take();
    assert.equal((await remove(server, gone.id)).status, 200);
    await erased(server, gone);
    assert.deepEqual([await isThere(db, member), await isThere(db, partner)], [false, true]);
    await server.stop();
    await backup.restore();
    server = await start({ wait: 'listening' });
    await says(server, 'restored');
  });

  it('refuses members whose logins were erased, and serves those who have another customer', async () => {
    assert.equal((await gate(server, asUser(member.id))).status, 401);
    assert.equal((await gate(server, { ...asUser(partner.id), 'X-Reclaim-Customer': other.id })).status, 200);
    assert.notEqual((await gate(server, { ...asUser(partner.id), 'X-Reclaim-Customer': gone.id })).status, 200);
  });

  it('erases the same logins again', async () => {
    const done = await run(stage, ['replay-erasures'], { database: db, directory: home });
    assert.equal(done.code, 0, done.stderr);
    await says(server, 'ready');
    await erased(server, gone);
    assert.deepEqual([await isThere(db, member), await isThere(db, gone.user), await isThere(db, partner)], [false, false, true]);
    assert.equal((await gate(server, asUser(partner.id))).status, 200);
    assert.equal(await statusOf(db, other), 'active');
  });
});

describe('two replays at once', () => {
  it('erase each customer once, and end with one line', async () => {
    const db = await cluster.database(stage);
    const home = temporaryDirectory(stage);
    const command = (...args) => run(stage, args, { database: db, directory: home });
    let server = await serve(stage, { database: db, env, directory: home });
    await addServices(stage, db, ['contact']);
    const customers = [await addCustomer(db), await addCustomer(db), await addCustomer(db)];
    const key = await addKey(stage, db, customers[0]);
    const backup = dumpOf(stage, db);
    await backup.take();
    for (const customer of customers) {
      assert.equal((await remove(server, customer.id)).status, 200);
      await erased(server, customer);
    }
    await server.stop();
    await backup.restore();
    server = await serve(stage, { database: db, env, directory: home, wait: 'listening' });
    await says(server, 'restored');
    const stopped = await stopBefore(stage, db, `insert on reclaim.journal_lines for each row when (new.kind = 'restore')`);
    const replays = [command('replay-erasures')];
    await stopped.reached();
    replays.push(command('replay-erasures'));
    await until('the second waits for the first', async () => (await db.query(`select from pg_stat_activity where wait_event_type = 'Lock' and query like '%replay%' and datname = current_database()`)).length > 0);
    await stopped.lift();
    const done = await Promise.all(replays);
    for (const { code, stderr } of done) assert.equal(code, 0, stderr);
    const erasedBy = done.map(({ stdout }) => Number(stdout.match(/Erased again: (\d+) customer/)?.[1] ?? 0));
    assert.equal(erasedBy[0] + erasedBy[1], customers.length);
    await says(server, 'ready');
    for (const customer of customers) await erased(server, customer);
    assert.equal((await gate(server, asKey(key))).status, 401);
    assert.equal((await db.query(`select from reclaim.journal_lines where kind = 'restore'`)).length, 1);
    for (const args of [['journal', 'verify'], ['audit', 'verify']]) {
      const verified = await command(...args);
      assert.equal(verified.code, 0, verified.stdout + verified.stderr);
    }
  });
});
