// Events under fault: relays, the broker, or both killed with -9, a leader that is stopped and continued, a network
// that is cut, at random times during freezes and recoveries. ROUNDS times five; SEED determines the times.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomers, states } from '../service/lib/changes.js';
import { buildConsumer, consumed, Consumer } from '../service/lib/consumer.js';
import { asAdmin, env, freeze, recover } from '../service/lib/customers.js';
import { Cluster } from '../service/lib/postgres.js';
import { Broker, exchange } from '../service/lib/rabbitmq.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, Stage, until } from '../service/lib/stage.js';
import { Wire } from '../service/lib/wire.js';

const short = process.env.ROUNDS === '1';
const rounds = Number(process.env.ROUNDS ?? 20) * 5;
const cutMs = short ? 3000 : 60_000;
const patienceMs = 240_000;
let seed = Number(process.env.SEED ?? 20251115);

/** Mulberry32: the same times for the same seed. */
function random() {
  seed = (seed + 0x6d2b79f5) | 0;
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
}

const stage = new Stage();
const ledger = 'ledger'; // a queue without a consumer during the faults
let broker, db, mine, wire, customers;
const servers = [];
before(async () => {
  const [cluster, started] = await Promise.all([Cluster.create(stage), Broker.start(stage)]);
  broker = started;
  wire = await Wire.start(stage, broker.port);
  [db, mine] = [await cluster.database(stage), await cluster.database(stage, { auth: 'none' })];
  const channel = await broker.channel(stage);
  await channel.assertExchange(exchange, 'topic', { durable: true });
  await channel.assertQueue(ledger, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
  await channel.bindQueue(ledger, exchange, '#');
  for (let n = 0; n < 2; n++) await startServer(n);
  await Consumer.start(stage, buildConsumer(stage), { amqpUrl: broker.url(), database: mine, queue: 'example.customers' });
  customers = await addCustomers(db, 36);
  await until('the consumer’s queue', async () => {
    await turn(customers[0]); // the queue receives nothing until it is bound
    return (await consumed(mine))[customers[0]];
  });
});
after(() => stage.end());

async function startServer(n) {
  servers[n] = await serve(stage, { database: db, env: { ...env, RECLAIM_AMQP_URL: broker.url(wire.port) } });
}

/** Whether a server leads, by its last log line about it; a killed one does not. */
const leads = (server) => !server.exit && server.lines.filter(({ event }) => /leading$/.test(event ?? '')).at(-1)?.event === 'leading';
const leader = () => until('a leader', () => servers.find(leads), patienceMs);

const state = new Map(); // of each customer, according to the replies
const headers = asAdmin();

/** Freezes or recovers a customer by any running server; true if there was a reply and a change. */
async function turn(customer) {
  const up = servers.filter((server) => !server.exit && !server.stalled);
  const before = state.get(customer) ?? 'active';
  const [verb, next] = before === 'frozen' ? [recover, 'active'] : [freeze, 'frozen'];
  try {
    const { status } = await verb(up[Math.floor(random() * up.length)], customer, headers);
    state.set(customer, status === 200 ? next : 'unknown');
    return status === 200 && before !== 'unknown';
  } catch {
    state.set(customer, 'unknown'); // the server was killed
    await pause(20);
    return false;
  }
}

/** Freezes and recovers customers, several at a time, until stopped; returns the number of replies. */
async function stream(flow) {
  const makers = Array.from({ length: 12 }, async (_, maker) => {
    let made = 0;
    while (!flow.done) made += await turn(customers[maker + 12 * Math.floor(random() * (customers.length / 12))]);
    return made;
  });
  return (await Promise.all(makers)).reduce((sum, made) => sum + made, 0);
}

const faults = {
  async 'kill -9 of the relay'() {
    const victim = await leader();
    await victim.kill9();
    await startServer(servers.indexOf(victim));
  },
  async 'kill -9 of RabbitMQ'() {
    await broker.kill9();
    await pause(random() * 500);
    await broker.start();
  },
  async 'kill -9 of both'() {
    const victim = await leader();
    await Promise.all([victim.kill9(), broker.kill9()]);
    await Promise.all([broker.start(), startServer(servers.indexOf(victim))]);
  },
  async 'SIGSTOP of the leader, and its return'() {
    const old = await leader();
    old.stalled = true;
    old.signal('SIGSTOP');
    try {
      await until('another leads', () => servers.some((server) => server !== old && leads(server)), patienceMs);
      await pause(random() * 500);
    } finally {
      old.signal('SIGCONT');
      old.stalled = false;
    }
    await until('the old one knows', () => !leads(old), patienceMs);
  },
  async 'a network cut'() {
    wire.cut();
    await pause(cutMs);
    wire.mend();
  },
};

/** Reads the ledger until all wanted events have arrived; id → customer and sequence, by first arrival. */
async function readLedger(wanted) {
  const seen = new Map();
  const connection = await broker.connect();
  try {
    const channel = await connection.createChannel();
    channel.on('error', () => {});
    await channel.consume(ledger, (message) => {
      const { id, subject, sequence } = JSON.parse(message.content.toString());
      if (!seen.has(id)) seen.set(id, { subject, sequence });
      channel.ack(message);
    });
    await until('every committed change delivered', () => wanted.every(({ id }) => seen.has(id)), patienceMs);
  } finally {
    await connection.close().catch(() => {});
  }
  return seen;
}

const ids = new Set(); // of all events that have arrived

/**
 * All events committed from this position on have arrived, in order per customer, and the consumer has the final state.
 */
async function assertNothingLost(since) {
  await until('all published', async () => (await db.query('select 1 from reclaim.event_outbox where published_at is null limit 1')).length === 0, patienceMs);
  const committed = await db.query('select id from reclaim.event_outbox where position > $1', [since]);
  const seen = await readLedger(committed);
  const last = {};
  for (const { id } of committed) assert.ok(seen.has(id));
  for (const [id, { subject, sequence }] of seen) {
    if (!ids.has(id)) assert.ok(sequence > (last[subject] ?? 0), `${subject}: ${sequence} came after ${last[subject]}`);
    if (!ids.has(id)) last[subject] = sequence;
    ids.add(id);
  }
  const wanted = await states(db);
  await until('the consumer at the end', async () => JSON.stringify(await consumed(mine)) === JSON.stringify(wanted), patienceMs).catch(() => {});
  assert.deepEqual(await consumed(mine), wanted);
  assert.deepEqual(await db.query('select event_id from reclaim.event_returns'), [], 'there was a queue all the time');
  return committed.length;
}

describe(`events under faults, ${rounds} rounds`, () => {
  const names = Object.keys(faults);
  for (let round = 0; round < rounds; round++) {
    const name = names[round % names.length];
    it(`round ${round + 1}: ${name}`, async (t) => {
      const [{ since }] = await db.query('select coalesce(max(position), 0) as since from reclaim.event_outbox');
      const flow = { done: false };
      const changes = stream(flow);
      try {
        await pause(random() * 400);
        await faults[name]();
        await pause(random() * 400);
      } finally {
        flow.done = true;
      }
      const made = await changes;
      const committed = await assertNothingLost(since);
      assert.ok(committed >= made, `${made} changes were answered, ${committed} have events`);
      t.diagnostic(`${committed} changes, ${made} of them answered`);
    });
  }
});
