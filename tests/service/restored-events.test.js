// What consumers of events have after a restore that is noticed late: of every customer the state of the database.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { dumpOf } from './lib/backups.js';
import { change, fold, states } from './lib/changes.js';
import { addCustomer, env, freeze, recover } from './lib/customers.js';
import { receipt, remove } from './lib/erasure.js';
import { readyz, saidIn, says } from './lib/journal.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { Broker, Subscriber } from './lib/rabbitmq.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

describe('a restore that is noticed after events were published', () => {
  const stage = new Stage();
  const homes = [temporaryDirectory(stage), temporaryDirectory(stage)];
  let cluster, broker, db, all, server, behind, gone, frozen, back, open, quiet, done;
  const start = (n, wait = 'ready') => serve(stage, { database: db, env: { ...env, RECLAIM_AMQP_URL: broker.url() }, directory: homes[n], wait });
  const command = (...args) => run(stage, args, { database: db, directory: homes[0] });
  const published = () => until('all events published', async () => (await db.query('select from reclaim.event_outbox where published_at is null')).length === 0);
  const consumed = () => fold(all.events.map(({ event }) => event));
  const received = async () => {
    await published();
    const [{ count }] = await db.query('select count(*)::int as count from reclaim.event_outbox');
    await until('all events received', () => new Set(all.ids()).size >= count);
  };

  before(async () => {
    [cluster, broker] = await Promise.all([Cluster.create(stage), Broker.start(stage)]);
    db = await cluster.database(stage);
    all = await Subscriber.start(stage, broker);
    server = await start(0);
    assert.equal((await command('cascade', 'add', 'archive', '--remote')).code, 0);
    [gone, frozen, back, open, quiet] = await Promise.all([1, 2, 3, 4, 5].map(() => addCustomer(db)));
    for (let n = 0; n < 4; n++) for (const { id } of [gone, frozen, back, open]) await change(db, id);
    await change(db, back.id); // is frozen at the backup
    await change(db, quiet.id);
    await db.query(`update reclaim.event_outbox set created_at = created_at - interval '2 hours'`);
    await received();
    const backup = dumpOf(stage, db);
    await backup.take();

    for (let n = 0; n < 6; n++) for (const { id } of [gone, frozen, back, open]) await change(db, id);
    await received();
    const size = async () => (await db.query('select max(size)::int as size from reclaim.sealed_heads'))[0].size;
    await until('sealed', async () => (await db.query('select from reclaim.customer_log l where not exists (select from reclaim.sealed_leaves s where s.fact_id = l.id)')).length === 0);
    await until('in the journal', async () => saidIn(homes[0]).at(-1).size === (await size()));
    await server.stop();
    await backup.restore();

    behind = await start(1);
    assert.equal(await readyz(behind), 'ready', 'its journal has nothing of what was lost');
    assert.equal((await remove(behind, gone.id)).status, 200);
    assert.equal((await freeze(behind, frozen.id)).status, 200);
    assert.equal((await recover(behind, back.id)).status, 200);
    await published();
    assert.notDeepEqual(consumed(), await states(db), 'consumers drop them');
    server = await start(0, 'listening');
    for (const one of [server, behind]) await says(one, 'restored');
  });
  after(() => stage.end());

  it('is replayed when transactions that write events have ended', async () => {
    const session = await db.session(stage);
    await session.query('begin');
    await session.query(`update reclaim.customer_customers set status = 'frozen' where id = $1`, [open.id]);
    const replay = command('replay-erasures');
    await until('the replay waits', async () => (await db.query(`select from pg_locks where relation = 'reclaim.event_outbox'::regclass and not granted`)).length > 0);
    await session.query('commit');
    done = await replay;
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Events now have epoch 2; 4 of changes around the backup and since are published again\./);
    for (const one of [server, behind]) await says(one, 'ready');
  });

  it('ends with consumers that have the state of the database', async () => {
    await received();
    await until('the state of the database', async () => JSON.stringify(consumed()) === JSON.stringify(await states(db)));
    for (const { id } of [gone, frozen, back, open]) assert.equal(consumed()[id].epoch, 2);
    assert.deepEqual([gone, frozen, back].map(({ id }) => consumed()[id].status), ['deleted', 'frozen', 'active']);
  });

  it('gives what is published again another id', () => {
    const [former, later] = [1, 2].map((epoch) => new Set(all.of(gone.id).filter((event) => event.epoch === epoch).map(({ id }) => id)));
    assert.ok(former.size > 0 && later.size > 0);
    for (const id of later) assert.ok(!former.has(id), id);
  });

  it('publishes nothing again that was written long before the backup', () => {
    assert.deepEqual(all.of(quiet.id).map(({ epoch }) => epoch), [1]);
  });

  it('keeps no service from taking a deletion that is published once more', async () => {
    const before = all.of(gone.id).length;
    await db.query('update reclaim.installation set epoch = 5');
    assert.equal((await command('cascade', 'redrive', gone.id)).code, 0);
    const last = await until('published again', () => all.of(gone.id).length > before && all.of(gone.id).at(-1));
    assert.deepEqual([last.type, last.epoch], ['customer_deleted', 5]);
    assert.equal((await receipt(server, gone.id, 'archive', { status: 'done', rows: 1 })).status, 200);
  });
});
