// The example consumer: what teams copy must do what it says.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addCustomers, change, restore, states } from './lib/changes.js';
import { buildConsumer, consumed, Consumer } from './lib/consumer.js';
import { Cluster } from './lib/postgres.js';
import { Broker, exchange } from './lib/rabbitmq.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

describe('the example consumer', () => {
  const stage = new Stage();
  const queue = 'example.customers';
  let broker, db, mine, consumer, channel;

  before(async () => {
    const [cluster, started] = await Promise.all([Cluster.create(stage), Broker.start(stage)]);
    broker = started;
    [db, mine] = [await cluster.database(stage), await cluster.database(stage, { auth: 'none' })];
    await serve(stage, { database: db, env: { RECLAIM_AMQP_URL: broker.url() } });
    consumer = await Consumer.start(stage, buildConsumer(stage), { amqpUrl: broker.url(), database: mine, queue });
    channel = await broker.channel(stage);
    await until('its queue', () => exists(queue));
  });
  after(() => stage.end());

  /** Asking for a queue that is not there closes the channel: it gets one of its own. */
  const exists = async (name) => {
    const connection = await broker.connect();
    try {
      const own = await connection.createChannel();
      own.on('error', () => {});
      return await own.checkQueue(name);
    } finally {
      await connection.close();
    }
  };
  const stateOf = async (id) => (await mine.query('select epoch, sequence::int, status, changes::int from customer_states where customer_id = $1', [id]))[0];
  const publish = async (event) => {
    channel.publish(exchange, event.type ?? 'customer_frozen', Buffer.from(typeof event === 'string' ? event : JSON.stringify(event)), { persistent: true });
    await channel.waitForConfirms();
  };
  /** Without an epoch: as releases before it published events. */
  const event = (subject, sequence, status, epoch = undefined) => ({
    specversion: '1.0', id: randomUUID(), source: 'test', type: status === 'frozen' ? 'customer_frozen' : 'customer_recovered', subject, epoch, sequence, data: { status },
  });
  /** All that was published before this has been handled. */
  const handled = async () => {
    const last = randomUUID();
    await publish(event(last, 1, 'frozen'));
    await until('everything before it handled', () => stateOf(last));
    await mine.query('delete from customer_states where customer_id = $1', [last]);
  };

  it('ends in the state of the database', async () => {
    const customers = await addCustomers(db, 10);
    for (let n = 0; n < 60; n++) await change(db, customers[(n * 7) % 10]);
    await change(db, customers[0], 'deleted');
    const wanted = await states(db);
    await until('all applied', async () => (await stateOf(customers[0]))?.status === 'deleted');
    await handled();
    assert.deepEqual(await consumed(mine), wanted);
  });

  it('drops repeats and stale sequences', async () => {
    const id = randomUUID();
    const [first, second] = [event(id, 4, 'frozen'), event(id, 9, 'active')];
    for (const one of [first, first, second, first, second, event(id, 8, 'frozen')]) await publish(one);
    await handled();
    assert.deepEqual(await stateOf(id), { epoch: 1, sequence: 9, status: 'active', changes: 2 });
  });

  it('takes a lower sequence of a later epoch, and then drops what is of the epoch before', async () => {
    const id = randomUUID();
    const [first, second] = [event(id, 9, 'frozen', 1), event(id, 3, 'active', 2)];
    for (const one of [first, second, second, first, event(id, 10, 'frozen'), event(id, 11, 'frozen', 1), event(id, 2, 'frozen', 2)]) await publish(one);
    await handled();
    assert.deepEqual(await stateOf(id), { epoch: 2, sequence: 3, status: 'active', changes: 2 });
  });

  it('counts events without an epoch as of the first', async () => {
    const id = randomUUID();
    for (const one of [event(id, 4, 'frozen'), event(id, 5, 'active', 1), event(id, 6, 'frozen'), event(id, 6, 'active', 1)]) await publish(one);
    await handled();
    assert.deepEqual(await stateOf(id), { epoch: 1, sequence: 6, status: 'frozen', changes: 3 });
  });

  it('a bad message goes to the dead ones and stops nobody', async () => {
    for (const bad of ['garbage', '{}', JSON.stringify(event('no-uuid', 1, 'frozen')), JSON.stringify({ ...event(randomUUID(), 1, 'x'), sequence: 'one' }), JSON.stringify(event(randomUUID(), 1, 'x', 'two'))]) await publish(bad);
    await handled();
    await until('all five there', async () => (await exists(`${queue}.dead`)).messageCount === 5);
    assert.equal((await exists(queue)).messageCount, 0);
  });

  it('killed at any time, it applies each event once', async () => {
    const id = randomUUID();
    for (let sequence = 1; sequence <= 60; sequence++) {
      await publish(event(id, sequence, sequence % 2 ? 'frozen' : 'active'));
      if (sequence % 20 === 0) await consumer.restart();
    }
    await handled();
    assert.deepEqual(await stateOf(id), { epoch: 1, sequence: 60, status: 'active', changes: 60 });
  });

  it('waits for a database that is away, without losing its place', async () => {
    const id = randomUUID();
    await mine.query('alter table customer_states rename to hidden');
    await publish(event(id, 1, 'frozen'));
    await until('it has noticed', async () => (await mine.query(`select 1 from pg_tables where tablename = 'customer_states'`)).length === 1);
    await mine.query('drop table customer_states; alter table hidden rename to customer_states');
    await publish(event(id, 2, 'active'));
    await until('the newer one', async () => (await stateOf(id))?.sequence === 2);
  });

  it('goes on with a table that it made before there were epochs', async () => {
    const id = randomUUID();
    await consumer.kill9();
    await mine.query('alter table customer_states drop column epoch');
    await mine.query(`insert into customer_states (customer_id, sequence, status) values ($1, 7, 'frozen')`, [id]);
    await consumer.spawn();
    for (const one of [event(id, 6, 'active', 1), event(id, 2, 'active', 2)]) await publish(one);
    await handled();
    assert.deepEqual(await stateOf(id), { epoch: 2, sequence: 2, status: 'active', changes: 2 });
  });

  it('ends in the state of the database after a restore, whatever of the epoch before comes again', async (t) => {
    const [id] = await addCustomers(db, 1);
    const kept = await change(db, id);
    for (let n = 0; n < 4; n++) await change(db, id);
    await until('the last one applied', async () => (await stateOf(id))?.sequence === kept.sequence + 4);
    await restore(db, t, id, kept.sequence);
    const again = await change(db, id);
    assert.deepEqual([again.epoch, again.sequence], [2, kept.sequence + 1]);
    await until('the first one since applied', async () => (await stateOf(id))?.epoch === 2);
    await db.query('update reclaim.event_outbox set published_at = null where id = $1', [kept.id]);
    await db.query(`select pg_notify('reclaim_events', '')`);
    await until('the old one published again', async () => (await db.query('select 1 from reclaim.event_outbox where published_at is null')).length === 0);
    await handled();
    assert.deepEqual((await consumed(mine))[id], (await states(db))[id]);
    assert.deepEqual((await consumed(mine))[id], { status: 'active', epoch: 2, sequence: again.sequence });
  });
});
