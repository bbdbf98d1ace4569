// The queue reclaim.receipts: what other services report, and whatever else ends up in it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addCustomers } from './lib/changes.js';
import { asAdmin, env as tokens } from './lib/customers.js';
import { ops } from './lib/events.js';
import { request } from './lib/http.js';
import { Cluster } from './lib/postgres.js';
import { valueOf } from './lib/prometheus.js';
import { Broker, deadReceipts, receipts, Subscriber } from './lib/rabbitmq.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

describe('receipts', () => {
  const stage = new Stage();
  let cluster, broker, db, server, channel;
  const env = () => ({ ...tokens, RECLAIM_AMQP_URL: broker.url() });

  before(async () => {
    [cluster, broker] = await Promise.all([Cluster.create(stage, { tcp: true }), Broker.start(stage)]);
    db = await cluster.database(stage);
    await Subscriber.start(stage, broker); // events are not what this is about
    server = await serve(stage, { database: db, env: env() });
    channel = await broker.channel(stage);
    await server.line('receipts connected', (line) => line.event === 'receipts connected');
  });
  after(() => stage.end());

  const send = async (body, options = {}) => {
    channel.sendToQueue(receipts, Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)), { persistent: true, ...options });
    await channel.waitForConfirms();
  };
  const outcome = async (name) => valueOf(await ops(server), 'reclaim_receipts_total', { outcome: name });
  const empty = () => until('the queue empty', async () => (await channel.checkQueue(receipts)).messageCount === 0);

  /** Takes the next dead letter away. */
  const dead = () =>
    until('a dead letter', async () => {
      const message = await channel.get(deadReceipts);
      if (message) channel.ack(message);
      return message;
    });

  const customer = randomUUID();
  const good = { customer_id: customer, participant: 'files', status: 'done', rows: 3 };
  const bad = {
    'no JSON': ['garbage', /not a JSON object/],
    'bytes that are no text': [Buffer.from([0xff, 0xfe, 0x00, 0x80]), /not a JSON object/],
    'nothing at all': ['', /not a JSON object/],
    'an array': ['[]', /not a JSON object/],
    'a key twice': ['{"customer_id":"a","customer_id":"b"}', /not a JSON object/],
    'brackets without end': ['{"a":'.repeat(5000), /not a JSON object/],
    'no customer': [{ ...good, customer_id: undefined }, /customer_id is not a UUID/],
    'a customer that is no UUID': [{ ...good, customer_id: "'; drop table x" }, /customer_id is not a UUID/],
    'no participant': [{ ...good, participant: '' }, /participant/],
    'a participant of endless length': [{ ...good, participant: 'p'.repeat(5000) }, /participant/],
    'another status': [{ ...good, status: 'perhaps' }, /status is neither done nor failed/],
    'rows below zero': [{ ...good, rows: -1 }, /rows/],
    'too many bytes': [JSON.stringify({ ...good, error: 'x'.repeat(70_000) }), /longer than/],
    'an unknown customer': [good, /no cascade of this customer waits for this participant/],
  };

  for (const [what, [body, reason]] of Object.entries(bad))
    it(`${what}: kept as it came, with the reason`, async () => {
      await send(body, { contentType: 'application/json' });
      const message = await dead();
      assert.match(message.properties.headers['x-reclaim-reason'], reason);
      assert.equal(message.properties.contentType, 'application/json');
      assert.equal(message.properties.deliveryMode, 2);
      const sent = Buffer.isBuffer(body) ? body : Buffer.from(typeof body === 'string' ? body : JSON.stringify(body));
      assert.deepEqual(message.content, sent);
      await empty();
    });

  it('an unknown participant of a known customer is refused too', async () => {
    const [id] = await addCustomers(db, 1);
    await send({ ...good, customer_id: id, participant: 'nobody' });
    assert.match((await dead()).properties.headers['x-reclaim-reason'], /participant/);
  });

  it('a receipt that a cascade waits for is applied, once, however often it comes, and completes it', async (t) => {
    const added = await run(t, ['cascade', 'add', 'files', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    const [id] = await addCustomers(db, 1);
    assert.equal((await request(server, { method: 'DELETE', path: `/v1/customers/${id}`, headers: asAdmin() })).status, 200);
    const applied = await outcome('applied');
    const part = async () => (await db.query(`select status, rows::int, error from reclaim.cascade_receipts where customer_id = $1 and participant = 'files'`, [id]))[0];
    await send({ ...good, customer_id: id, status: 'failed', rows: undefined, error: 'disk full' });
    await until('the failure noted', async () => (await part()).status === 'failed');
    assert.equal((await part()).error, 'disk full');
    for (let n = 0; n < 3; n++) await send({ ...good, customer_id: id, rows: 7 });
    await until('all taken', async () => (await outcome('applied')) === applied + 4);
    const done = { status: 'done', rows: 7, error: null };
    assert.deepEqual(await part(), done);
    await send({ ...good, customer_id: id, status: 'failed', error: 'late and wrong' });
    await until('the late one taken', async () => (await outcome('applied')) === applied + 5);
    assert.deepEqual(await part(), done, 'what is done is not undone');
    assert.deepEqual(await db.query(`select kind, how, reported_by from reclaim.receipt_facts where customer_id = $1 and participant = 'files'`, [id]),
      [{ kind: 'remote', how: 'reported', reported_by: 'service' }]);
    await send({ ...good, customer_id: id, participant: 'nobody' });
    assert.match((await dead()).properties.headers['x-reclaim-reason'], /participant/);
    await empty();
  });

  it('a flood of bad ones loses none, and the good way stays open', async () => {
    const before = await outcome('malformed');
    for (let n = 0; n < 200; n++) channel.sendToQueue(receipts, Buffer.from(`garbage ${n}`));
    await channel.waitForConfirms();
    await until('all refused', async () => (await outcome('malformed')) - before === 200);
    const seen = new Set();
    for (let n = 0; n < 200; n++) seen.add((await dead()).content.toString());
    assert.equal(seen.size, 200);
  });

  it('events dead shows them and takes none; redrive tries them again', async (t) => {
    await send('garbage \u001b[31m red');
    await send({ ...good, status: 'perhaps' });
    await until('both refused', async () => (await channel.checkQueue(deadReceipts)).messageCount === 2);
    for (let n = 0; n < 3; n++) {
      const { stdout, stderr } = await run(t, ['events', 'dead'], { database: db, env: env() });
      assert.match(stdout, /^0 events, 2 receipts$/m, stderr);
      assert.match(stdout, /^receipt {2}[0-9a-f-]{36} {2}"not a JSON object/m);
      assert.ok(!stdout.includes('\u001b'), 'nothing that moves a cursor');
      await until('both back', async () => (await channel.checkQueue(deadReceipts)).messageCount === 2);
      if (n < 2) continue;
      const id = /([0-9a-f-]{36}) {2}"status/.exec(stdout)[1];
      const one = await run(t, ['events', 'redrive', id], { database: db, env: env() });
      assert.equal(one.stdout, '0 events, 1 receipt sent again\n', one.stderr);
    }
    const bothDead = async () => (await channel.checkQueue(deadReceipts)).messageCount === 2;
    await until('refused again', bothDead);
    const refused = await outcome('malformed'), since = new Date();
    const all = await run(t, ['events', 'redrive'], { database: db, env: env() });
    assert.equal(all.stdout, '0 events, 2 receipts sent again\n', all.stderr);
    // Otherwise the broker may drop the last acknowledgement, and the receipt is there twice.
    await until('its connections ended', () => broker.endedConnections(since).length === 2);
    assert.deepEqual(broker.endedConnections(since), ['info', 'info'], 'both were closed in order');
    // Counted a moment before or after they are in the queue: the one that was sent again alone may be among those counted.
    await until('all refused again', async () => (await outcome('malformed')) >= refused + 2 && (await bothDead()));
    await dead();
    await dead();
  });

  it('while the database is away a receipt waits, and is decided once it is back', async () => {
    await cluster.stop('immediate');
    await send(good);
    await server.line('the warning', (line) => line.event === 'receipts wait for the database');
    assert.equal((await channel.checkQueue(deadReceipts)).messageCount, 0);
    await cluster.start();
    assert.match((await dead()).properties.headers['x-reclaim-reason'], /no cascade/);
  });

  it('a receipt that was being decided when its server died is decided by another', async (t) => {
    await cluster.stop('immediate');
    await send(good);
    await until('taken', async () => (await channel.checkQueue(receipts)).messageCount === 0);
    await server.kill9();
    await cluster.start();
    const next = await serve(t, { database: db, env: env() });
    assert.match((await dead()).properties.headers['x-reclaim-reason'], /no cascade/);
    assert.ok(valueOf(await ops(next), 'reclaim_receipts_redelivered_total') >= 1);
    server = next;
  });
});
