// Events on their way from the outbox to a real RabbitMQ: shape, order, nothing lost, nothing blocked.
// takes long

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomers, change, fold, restore, states } from './lib/changes.js';
import { ops } from './lib/events.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { valueOf } from './lib/prometheus.js';
import { Broker, exchange, Subscriber } from './lib/rabbitmq.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

describe('events', () => {
  const stage = new Stage();
  let cluster, broker, db, server, all;
  const env = () => ({ RECLAIM_AMQP_URL: broker.url() });
  const published = (database = db) =>
    until('all events published', async () => (await database.query('select 1 from reclaim.event_outbox where published_at is null limit 1')).length === 0);

  before(async () => {
    [cluster, broker] = await Promise.all([Cluster.create(stage), Broker.start(stage, { tls: true })]);
    db = await cluster.database(stage);
    all = await Subscriber.start(stage, broker);
    server = await serve(stage, { database: db, env: env() });
  });
  after(() => stage.end());

  it('a change arrives as a CloudEvent, persistent, under its type', async () => {
    const [id] = await addCustomers(db, 1);
    const row = await change(db, id);
    const { message, event } = await until('its event', () => all.events.find((one) => one.event.subject === id));
    assert.equal(message.fields.exchange, exchange);
    assert.equal(message.fields.routingKey, 'customer_frozen');
    assert.equal(message.properties.deliveryMode, 2);
    assert.match(message.properties.contentType, /^application\/cloudevents\+json/);
    assert.equal(message.properties.messageId, row.id);
    const { data, time, ...attributes } = event;
    assert.deepEqual(attributes, {
      specversion: '1.0',
      id: row.id,
      source: '/reclaim/customers',
      type: 'customer_frozen',
      subject: id,
      datacontenttype: 'application/json',
      epoch: 1,
      sequence: row.sequence,
    });
    assert.match(event.id, uuid);
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    const [{ object }] = await db.query('select payload as object from reclaim.event_outbox where id = $1', [row.id]);
    assert.deepEqual(data, object);
    assert.equal(data.status, 'frozen');
  });

  it('each customer’s events arrive in order, whoever else changes meanwhile', async () => {
    const customers = await addCustomers(db, 20);
    await Promise.all(
      Array.from({ length: 8 }, async (_, worker) => {
        for (let n = 0; n < 40; n++) await change(db, customers[(worker * 7 + n * 3) % customers.length]);
      }),
    );
    await published();
    const wanted = await states(db);
    await until('all events', () => customers.every((id) => all.of(id).at(-1)?.sequence === wanted[id]?.sequence));
    for (const id of customers) {
      const sequences = all.of(id).map(({ sequence }) => sequence);
      const stored = await db.query('select sequence::int from reclaim.event_outbox where customer_id = $1 order by position', [id]);
      assert.deepEqual(sequences, stored.map(({ sequence }) => sequence));
    }
    assert.deepEqual(fold(all.events.map(({ event }) => event)), wanted);
  });

  it('after a restore sequences come again, in order, under the next epoch', async (t) => {
    const own = await cluster.database(t);
    const vhost = await broker.addVhost();
    const bound = await Subscriber.start(t, { channel: (scope) => broker.channel(scope, { vhost }) });
    const settings = { RECLAIM_AMQP_URL: `${broker.url()}/${vhost}` };
    const earlier = await serve(t, { database: own, env: settings });
    const [id] = await addCustomers(own, 1);
    for (let n = 0; n < 5; n++) await change(own, id); // sequences 2 to 6
    await until('five events', () => bound.of(id).length === 5);
    await earlier.stop();
    await restore(own, t, id, 4);
    // As a backup has it: the last event had not been published when it was made.
    await own.query('update reclaim.event_outbox set published_at = null where customer_id = $1 and sequence = 4', [id]);
    for (let n = 0; n < 2; n++) await change(own, id); // sequences 5 and 6
    await serve(t, { database: own, env: settings });
    await until('three more events', () => bound.of(id).length === 8);
    assert.deepEqual(bound.of(id).map(({ epoch, sequence }) => [epoch, sequence]), [[1, 2], [1, 3], [1, 4], [1, 5], [1, 6], [1, 4], [2, 5], [2, 6]]);
    assert.deepEqual(fold(bound.of(id)), await states(own));
    assert.deepEqual(await states(own), { [id]: { status: 'frozen', epoch: 2, sequence: 6 } });
    const repeat = await own.query('update reclaim.event_outbox set published_at = null where epoch = 1 returning 1');
    await own.query(`select pg_notify('reclaim_events', '')`);
    await until('the old ones again', () => bound.of(id).length === 8 + repeat.length);
    assert.deepEqual(fold(bound.of(id)), await states(own));
  });

  it('a change that commits late still comes before the customer’s next one', async (t) => {
    const [slow, other] = await addCustomers(db, 2);
    const session = await db.session(t);
    await session.query('begin');
    await change({ query: async (...args) => (await session.query(...args)).rows }, slow);
    for (let n = 0; n < 30; n++) await change(db, other);
    await until('the others past it', () => all.of(other).length === 30);
    assert.equal(all.of(slow).length, 0);
    await session.query('commit');
    await Promise.all([change(db, slow), change(db, other)]);
    await until('both of the late one', () => all.of(slow).length === 2);
    assert.deepEqual(all.of(slow).map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
  });

  it('an event that no queue is bound for is noticed, kept, and delivered on request', async (t) => {
    const own = await cluster.database(t);
    const vhost = await broker.addVhost();
    const settings = { RECLAIM_AMQP_URL: `${broker.url()}/${vhost}` };
    const lonely = await serve(t, { database: own, env: settings });
    const [first, second] = await addCustomers(own, 2);
    const rows = [await change(own, first), await change(own, second), await change(own, first)];
    await published(own);
    await lonely.line('the warning', (line) => line.level === 'warn' && /no queue is bound/.test(line.event));
    assert.equal(valueOf(await ops(lonely), 'reclaim_events_returned_total'), 3);
    const listed = await run(t, ['events', 'dead'], { database: own, env: settings });
    assert.equal(listed.code, 0, listed.stderr);
    for (const { id } of rows) assert.ok(listed.stdout.includes(id), listed.stdout);
    assert.match(listed.stdout, /^3 events, 0 receipts$/m);
    const doctor = await run(t, ['doctor'], { database: own, env: settings });
    assert.match(doctor.stdout, /warn {2}3 events could not be delivered: reclaim events dead says why/);

    const bound = await Subscriber.start(t, { channel: (scope) => broker.channel(scope, { vhost }) });
    const one = await run(t, ['events', 'redrive', rows[1].id], { database: own, env: settings });
    assert.equal(one.stdout, '1 event, 0 receipts sent again\n', one.stderr);
    await until('the one asked for', () => bound.events.length === 1);
    const rest = await run(t, ['events', 'redrive'], { database: own, env: settings });
    assert.equal(rest.stdout, '2 events, 0 receipts sent again\n', rest.stderr);
    await until('the rest', () => bound.events.length === 3);
    assert.deepEqual(bound.ids(), [rows[1].id, rows[0].id, rows[2].id]);
    const none = await run(t, ['events', 'redrive', rows[1].id], { database: own, env: settings });
    assert.equal(none.code, 1);
    assert.match(none.stderr, /there is no dead letter/);
  });

  it('what a full queue refuses is sent again until it is taken', async (t) => {
    const own = await cluster.database(t);
    const vhost = await broker.addVhost();
    const channel = await broker.channel(t, { vhost });
    await channel.assertExchange(exchange, 'topic', { durable: true });
    await channel.assertQueue('narrow', { durable: true, arguments: { 'x-max-length': 5, 'x-overflow': 'reject-publish' } });
    await channel.bindQueue('narrow', exchange, '#');
    const pushing = await serve(t, { database: own, env: { RECLAIM_AMQP_URL: `${broker.url()}/${vhost}` } });
    const customers = await addCustomers(own, 4);
    for (let n = 0; n < 40; n++) await change(own, customers[n % 4]);
    await until('refusals', async () => valueOf(await ops(pushing), 'reclaim_events_refused_total') > 0);
    const arrived = [];
    await channel.consume('narrow', (message) => {
      arrived.push(JSON.parse(message.content.toString()));
      channel.ack(message);
    });
    await published(own);
    const rows = await own.query('select id from reclaim.event_outbox');
    await until('all of them', () => rows.every(({ id }) => arrived.some((event) => event.id === id)));
    assert.deepEqual(fold(arrived), await states(own));
    assert.deepEqual(await own.query('select 1 from reclaim.event_returns'), []);
  });

  it('a large event arrives whole; one that the broker finds too large is kept, and others pass it', async (t) => {
    const own = await cluster.database(t);
    const vhost = await broker.addVhost();
    const settings = { RECLAIM_AMQP_URL: `${broker.url()}/${vhost}` };
    const bound = await Subscriber.start(t, { channel: (scope) => broker.channel(scope, { vhost }) });
    const largest = (bytes) => broker.control('eval', `application:set_env(rabbit, max_message_size, ${bytes}).`);
    await largest(400_000); // read by new channels
    const carrying = await serve(t, { database: own, env: settings });
    const customers = await addCustomers(own, 6);
    const [plain, large, larger, outsize, second, last] = customers;
    const detail = (id, bytes) => own.query('update reclaim.customer_customers set detail = repeat($2, $3) where id = $1', [id, '1', bytes]);
    for (const [id, bytes] of [[large, 300_000], [larger, 450_000], [second, 450_000]]) await detail(id, bytes);
    await carrying.line('the relay', (line) => line.event === 'relay connected');
    const session = await own.session(t); // one transaction: they are read as one batch
    await session.query('begin');
    const inside = { query: async (...args) => (await session.query(...args)).rows };
    const rows = {};
    for (const id of [plain, large, larger, outsize, second]) rows[id] = await change(inside, id);
    await session.query(`update reclaim.event_outbox set payload = jsonb_set(payload, '{detail}', to_jsonb(repeat('2', 17000000))) where id = $1`, [rows[outsize].id]);
    for (const id of [larger, second]) await session.query(`update reclaim.customer_customers set detail = '' where id = $1`, [id]);
    for (const id of [larger, last]) rows[`${id} again`] = await change(inside, id);
    await session.query('commit');

    await published(own);
    const arrive = [plain, large, `${larger} again`, `${last} again`].map((name) => rows[name].id);
    const kept = [larger, outsize, second].map((name) => rows[name].id);
    await until('the others', () => arrive.every((id) => bound.ids().includes(id)));
    assert.deepEqual(bound.ids().filter((id) => kept.includes(id)), []);
    assert.equal(bound.of(large)[0].data.detail.length, 300_000);
    assert.equal(valueOf(await ops(carrying), 'reclaim_events_too_large_total'), 3);
    const warnings = carrying.lines.filter((line) => line.event.startsWith('an event is too large'));
    assert.deepEqual(warnings.map(({ event_id }) => event_id).sort(), [...kept].sort());

    const dead = await run(t, ['events', 'dead', '--format', 'json'], { database: own, env: settings });
    const reasons = Object.fromEntries(JSON.parse(dead.stdout).map(({ id, reason }) => [id, reason]));
    assert.deepEqual(Object.keys(reasons).sort(), [...kept].sort());
    assert.match(reasons[rows[larger].id], /PRECONDITION_FAILED.*message size/);
    assert.match(reasons[rows[outsize].id], /larger than 16 MB/);
    const doctor = await run(t, ['doctor'], { database: own, env: settings });
    assert.match(doctor.stdout, /warn {2}3 events could not be delivered: reclaim events dead/);

    await largest(134217728);
    await carrying.stop();
    await serve(t, { database: own, env: settings });
    const again = await run(t, ['events', 'redrive'], { database: own, env: settings });
    assert.equal(again.stdout, '3 events, 0 receipts sent again\n', again.stderr);
    await until('what fits now', () => [larger, second].every((id) => bound.ids().includes(rows[id].id)));
    await until('the other one back', async () => (await own.query('select event_id from reclaim.event_returns'))[0]?.event_id === rows[outsize].id);
    const { output } = await serve(t, { database: own, wait: 'nothing', command: ['events', 'tail', '--from', '0'] }).then(async (tail) => {
      await until('all lines', () => tail.output.split('\n').length === 8);
      await tail.kill9();
      return tail;
    });
    const tailed = output.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(tailed.filter(({ data }) => data === null).map(({ id }) => id), [rows[outsize].id]);
  });

  it('events tail follows the outbox, from now or from a position', async (t) => {
    const [id] = await addCustomers(db, 1);
    const before = await change(db, id);
    const follow = (...args) => serve(t, { database: db, env: env(), wait: 'nothing', command: ['events', 'tail', ...args] });
    const lines = (tail) => tail.output.trim().split('\n').filter(Boolean);
    const now = await follow();
    const older = await follow('--from', String(before.position - 1));
    const table = await follow('--from', String(before.position - 1), '--format', 'table');
    const csv = await follow('--from', String(before.position - 1), '--format', 'csv');
    await until('the older one', () => lines(older).length >= 1);
    const next = await until('the newer one', async () => {
      const row = await change(db, id);
      return lines(now).length >= 1 ? row : undefined;
    });
    await until('the same in both', () => lines(older).some((line) => line.includes(next.id)) && lines(now).some((line) => line.includes(next.id)));
    const [{ specversion, subject }] = lines(older).map((line) => JSON.parse(line));
    assert.deepEqual({ specversion, subject }, { specversion: '1.0', subject: id });
    assert.ok(!lines(now).some((line) => line.includes(before.id)));
    await until('the table', () => lines(table).some((line) => line.includes(`customer_frozen     ${id}`)));
    await until('the CSV', () => lines(csv).some((line) => line.includes(`,customer_frozen,${id},`)));
    assert.deepEqual(lines(csv).filter((line) => line.startsWith('position')), ['position,time,type,customer_id,epoch,sequence\r']);
    for (const tail of [now, older, table, csv]) await tail.kill9();
  });

  it('metrics tell age, rate, what is unconfirmed and what came twice', async () => {
    const metrics = await ops(server);
    const [{ count }] = await db.query('select count(*)::int from reclaim.event_outbox where published_at is not null');
    assert.ok(valueOf(metrics, 'reclaim_events_published_total') >= count);
    assert.equal(valueOf(metrics, 'reclaim_events_broker_connected'), 1);
    for (const name of ['reclaim_events_unconfirmed', 'reclaim_events_outbox_age_seconds', 'reclaim_events_redelivered_total', 'reclaim_events_returned_total'])
      assert.ok(metrics.families.has(name), name);
    assert.ok(valueOf(metrics, 'reclaim_events_delay_seconds_count') >= count);
  });

  it('doctor reaches the broker and finds exchange and queues', async (t) => {
    const { stdout } = await run(t, ['doctor'], { database: db, env: env() });
    assert.match(stdout, /^ok {4}broker: reached; exchange and queues are there$/m);
    const wrong = await run(t, ['doctor'], { database: db, env: { RECLAIM_AMQP_URL: broker.url(undefined, { secret: 'canary-of-a-password' }) } });
    assert.equal(wrong.code, 1);
    assert.match(wrong.stdout, /^FAIL {2}the broker of RECLAIM_AMQP_URL cannot be used: .*ACCESS_REFUSED/m);
    assert.ok(!wrong.stdout.includes('canary'), wrong.stdout);
  });

  it('doctor says what the broker lacks', async (t) => {
    const vhost = await broker.addVhost();
    const { stdout, code } = await run(t, ['doctor'], { database: db, env: { RECLAIM_AMQP_URL: `${broker.url()}/${vhost}` } });
    assert.equal(code, 0, stdout);
    assert.match(stdout, /^warn {2}the broker has no reclaim\.events yet/m);
  });

  it('over TLS, with an authority of one’s own; a broker that cannot prove itself gets nothing', async (t) => {
    const own = await cluster.database(t);
    const secure = await serve(t, { database: own, env: { RECLAIM_AMQP_URL: broker.tlsUrl() } });
    const [id] = await addCustomers(own, 1);
    await change(own, id);
    await until('its event', () => all.of(id).length === 1);
    await secure.stop();
    const doubtful = await serve(t, { database: own, env: { RECLAIM_AMQP_URL: broker.tlsUrl().replace(/\?.*/, '') } });
    await change(own, id);
    await doubtful.line('the refusal', (line) => line.event.startsWith('broker unreachable'));
    assert.equal(all.of(id).length, 1);
    assert.equal((await own.query('select 1 from reclaim.event_outbox where published_at is null')).length, 1);
    await until('the age grows', async () => valueOf(await ops(doubtful), 'reclaim_events_outbox_age_seconds') > 0);
  });

  it('published rows go after the retention, others stay until they are published', async (t) => {
    const own = await cluster.database(t);
    const nowhere = { RECLAIM_AMQP_URL: 'amqp://127.0.0.1:1', RECLAIM_AUDIT_RETENTION: '1h' };
    const first = await serve(t, { database: own, env: { ...nowhere } });
    const [id] = await addCustomers(own, 1);
    const rows = [];
    for (let n = 0; n < 4; n++) rows.push((await change(own, id)).id);
    await own.query(`update reclaim.event_outbox set created_at = now() - interval '2 hours', published_at = now() where id = any($1)`, [rows.slice(0, 2)]);
    await own.query(`update reclaim.event_outbox set created_at = now() - interval '2 hours' where id = $1`, [rows[2]]);
    const left = async () => (await own.query('select id from reclaim.event_outbox order by position')).map((row) => row.id);
    await first.stop();
    const second = await serve(t, { database: own, env: nowhere }); // a new leader prunes at once
    await until('the old ones gone', async () => (await left()).length === 2);
    assert.deepEqual(await left(), rows.slice(2));
    await second.stop();
    await serve(t, { database: own, env: { RECLAIM_AUDIT_RETENTION: '1h' } }); // without a broker age alone counts
    await until('the unpublished one gone too', async () => (await left()).length === 1);
    assert.deepEqual(await left(), rows.slice(3));
  });
});

describe('without RabbitMQ', () => {
  const stage = new Stage();
  after(() => stage.end());

  it('the outbox fills, can be read, and its channel tells', async (t) => {
    const cluster = await Cluster.create(stage);
    const db = await cluster.database(t);
    const server = await serve(t, { database: db });
    const session = await db.session(t);
    const heard = [];
    session.on('notification', ({ channel }) => heard.push(channel));
    await session.query('listen reclaim_events');
    const [id] = await addCustomers(db, 1);
    const row = await change(db, id);
    await until('the notification', () => heard.includes('reclaim_events'));
    const [, documented] = /```sql\n(SELECT position[^;]*);\n```/.exec(fs.readFileSync(path.join(repository, 'docs/events.md'), 'utf8'));
    const [read] = await db.query(documented, [row.position - 1]);
    assert.equal(read.settled, false);
    assert.deepEqual([read.id, read.epoch, Number(read.sequence), read.type, read.payload.status], [row.id, 1, row.sequence, 'customer_frozen', 'frozen']);
    assert.equal(server.lines.filter((line) => /broker|relay|receipts/.test(line.event)).length, 0);
    const doctor = await run(t, ['doctor'], { database: db });
    assert.match(doctor.stdout, /^ok {4}broker: none set/m);
    const dead = await run(t, ['events', 'dead'], { database: db });
    assert.equal(dead.stdout, '0 events, 0 receipts\n');
  });
});
