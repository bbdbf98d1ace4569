import { addCustomers, change } from '../tests/service/lib/changes.js';
import { Broker, exchange } from '../tests/service/lib/rabbitmq.js';
import { pause, until } from '../tests/service/lib/stage.js';
import { Metrics } from './lib/metrics.js';
import { residentBytes } from './lib/process.js';
import { median, quantile } from './lib/stats.js';
import { findTool, start } from './lib/tool.js';
import { migrate, startCluster, startServer } from './lib/world.js';

export const about = 'events from the outbox to RabbitMQ, against the same publishing loop without a database; delay, and a backlog of a million';

const queue = 'bench';
const mebibyte = 2 ** 20;

/** A quorum queue for every event; it is short and drops the oldest, so that the broker does not grow. */
async function bindQueue(channel) {
  await channel.assertExchange(exchange, 'topic', { durable: true });
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-queue-type': 'quorum', 'x-max-length': 20_000 } });
  await channel.bindQueue(queue, exchange, '#');
}

async function fill(database, events, customers) {
  await database.query('truncate reclaim.event_outbox restart identity cascade');
  await database.query(
    `insert into reclaim.event_outbox (sequence, type, customer_id, payload)
     select 10 + n / cardinality($2::uuid[]), case n % 2 when 0 then 'customer_frozen' else 'customer_recovered' end, c.id, reclaim.customer_object(c)::jsonb
     from generate_series(0, $1::int - 1) n join reclaim.customer_customers c on c.id = ($2::uuid[])[1 + n % cardinality($2::uuid[])]`,
    [events, customers],
  );
  await database.query('vacuum analyze reclaim.event_outbox');
}

const unpublished = async (database) => (await database.query('select 1 from reclaim.event_outbox where published_at is null limit 1')).length;

/** Events per second between the first batch's confirm and the last one's. */
async function relayed(scope, database, env, events, customers) {
  await fill(database, events, customers);
  const server = await startServer(scope, database, env);
  await until('all published', async () => {
    await pause(200);
    return !(await unpublished(database));
  }, 600_000);
  await server.stop();
  const [{ rate }] = await database.query(
    `select (count(*) - 1000) / extract(epoch from max(published_at) - min(published_at))::float8 as rate from reclaim.event_outbox`,
  );
  return rate;
}

async function throughput(b, { database, broker, env, customers }) {
  const events = b.smoke ? 5000 : 60_000;
  const [{ bytes }] = await database.query('select 260 + avg(length(payload::text))::int as bytes from (select reclaim.customer_object(c)::jsonb as payload from reclaim.customer_customers c limit 100) p');
  const { ours, peer, ratios } = await b.compare(5, {
    ours: (scope) => relayed(scope, database, env, events, customers),
    peer: async () => JSON.parse(await start(findTool('relay_driver'), [broker.url(), events, bytes]).ended).per_second,
  });
  b.measure('events, of the loop without a database', { rounds: ratios, unit: 'times', atLeast: 0.5 });
  b.measure('events per second', { rounds: ours, beside: [{ name: 'the loop', values: peer }] });
}

/** From the reply after the commit to the delivery at a subscriber. */
async function delay(b, { database, broker, env, customers }) {
  const found = await b.rounds(5, async (number, scope) => {
    await database.query('truncate reclaim.event_outbox restart identity cascade');
    const server = await startServer(scope, database, env);
    const channel = await broker.channel(scope);
    await channel.purgeQueue(queue);
    const arrived = new Map();
    const { consumerTag } = await channel.consume(queue, (message) => arrived.set(message.properties.messageId, performance.now()), { noAck: true });
    const first = await change(database, customers[0]);
    await until('the first delivery', () => arrived.has(first.id)); // the relay is leader, and connected
    const committed = new Map();
    for (let n = 0; n < (b.smoke ? 50 : 1000); n++) {
      const { id } = await change(database, customers[n % customers.length]);
      committed.set(id, performance.now());
      await pause(5);
    }
    await until('all deliveries', () => arrived.size === committed.size + 1);
    await channel.cancel(consumerTag);
    const delays = [...committed].map(([id, at]) => Math.max(0, arrived.get(id) - at));
    await server.stop();
    b.say(`relay: round ${number}: p50 ${quantile(delays, 0.5).toFixed(1)} ms, p99 ${quantile(delays, 0.99).toFixed(1)} ms`);
    return { p50: quantile(delays, 0.5), p99: quantile(delays, 0.99) };
  });
  b.measure('commit to delivery, median', { rounds: found.map(({ p50 }) => p50), unit: 'ms' });
  b.measure('commit to delivery, p99', { rounds: found.map(({ p99 }) => p99), unit: 'ms' });
}

async function backlog(b, { database, env, customers }) {
  const events = b.smoke ? 10_000 : 1_000_000;
  await b.rounds(1, async (_, scope) => {
    await fill(database, events, customers);
    const server = await startServer(scope, database, env);
    const samples = [];
    const began = performance.now();
    await until('the backlog gone', async () => {
      await pause(b.smoke ? 100 : 1000);
      const metrics = await Metrics.of(server);
      const done = metrics.value('reclaim_events_published_total');
      samples.push({ at: performance.now() - began, done, resident: residentBytes(server.pid) });
      return done >= events;
    }, 1_800_000);
    await server.stop();
    const tenths = await database.query(
      `select count(*) / extract(epoch from max(at) - min(at))::float8 as rate
       from (select published_at as at, ntile(10) over (order by published_at) as tenth from reclaim.event_outbox) parts group by tenth order by tenth`,
    );
    const rates = tenths.map(({ rate }) => rate);
    const whole = rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0);
    b.note(`the backlog's rate, by tenths: ${rates.map((rate) => Math.round(rate)).join(', ')} a second`);
    const full = samples.filter(({ done }) => done > 0);
    const grown = Math.max(...full.map(({ resident }) => resident)) - full[0].resident;
    b.bars('backlog: events per second, by tenths', rates.map((value, i) => ({ label: String(i + 1), value })));
    b.measure('backlog: events', { rounds: [events], plot: false });
    b.measure('backlog: events per second', { rounds: [whole], plot: false });
    b.measure('backlog: the second half’s rate, of the first’s', { rounds: [median(rates.slice(5)) / median(rates.slice(0, 5))], unit: 'times', atLeast: 0.7, plot: false });
    b.measure('backlog: memory grown while it drains', { rounds: [grown / mebibyte], unit: 'MiB', atMost: 16, plot: false });
  });
}

export async function bench(b) {
  const [cluster, broker] = await Promise.all([startCluster(b.stage), Broker.start(b.stage)]);
  const database = await cluster.database(b.stage);
  await migrate(b.stage, database);
  await bindQueue(await broker.channel(b.stage));
  const customers = await addCustomers(database, 1000);
  const world = { database, broker, env: { RECLAIM_AMQP_URL: broker.url() }, customers };
  await throughput(b, world);
  await delay(b, world);
  await backlog(b, world);
}
