// Two instances with nothing to do: what they cost in processor time, leading or not, while all is well and while the
// broker or the database is away.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { metric } from './lib/limits.js';
import { Cluster } from './lib/postgres.js';
import { processorSeconds, wakeUps } from './lib/process.js';
import { Broker } from './lib/rabbitmq.js';
import { serve } from './lib/reclaim.js';
import { Stage, pause, until } from './lib/stage.js';

// A thread that does not wait takes a large part of a core even on a busy machine. The sanitizers make everything several
// times as expensive; ./dev bench idle holds the release program against 1 %.
const mostShare = 0.05;
const measureMs = 8000;

describe('an idle instance', () => {
  const stage = new Stage();
  let cluster, broker, servers;
  before(async () => {
    [cluster, broker] = await Promise.all([Cluster.create(stage), Broker.start(stage)]);
    const database = await cluster.database(stage);
    const start = () => serve(stage, { database, env: { RECLAIM_AMQP_URL: broker.url() } });
    servers = [await start(), await start()];
  });
  after(async () => {
    if (!cluster.running) await cluster.start();
    await stage.end();
  });

  const everywhere = (what, look) => until(what, async () => (await Promise.all(servers.map(look))).every(Boolean));
  const sumOf = async (name) => (await Promise.all(servers.map((server) => metric(server, name)))).reduce((a, b) => a + b, 0);
  const oneLeads = () => until('one of them leads', async () => (await sumOf('reclaim_leader')) === 1);

  async function assertIdle(t) {
    const look = () => servers.map(({ pid }) => ({ seconds: processorSeconds(pid), wakeUps: wakeUps(pid) }));
    const [before, began] = [look(), performance.now()];
    await pause(measureMs);
    const [now, seconds] = [look(), (performance.now() - began) / 1000];
    const found = now.map((one, n) => ({
      share: (one.seconds - before[n].seconds) / seconds,
      wakeUps: Math.round((one.wakeUps - before[n].wakeUps) / seconds),
    }));
    t.diagnostic(JSON.stringify(found));
    for (const { share } of found) assert.ok(share < mostShare, `shares of a core, and wake-ups a second: ${JSON.stringify(found)}`);
  }

  it('leaves the cores alone, whether or not it leads', async (t) => {
    await oneLeads();
    await until('the leader has its connection to the broker', async () => (await sumOf('reclaim_events_broker_connected')) === 1);
    await assertIdle(t);
  });

  it('leaves the cores alone while the broker is gone', async (t) => {
    await broker.kill9();
    await until('the leader has lost the broker', async () => (await sumOf('reclaim_events_broker_connected')) === 0);
    await assertIdle(t);
  });

  it('leaves the cores alone while the database is gone', async (t) => {
    await cluster.stop();
    await everywhere('no connection to the database', async (server) => (await metric(server, 'reclaim_database_connections')) === 0);
    await until('none leads', async () => (await sumOf('reclaim_leader')) === 0);
    await assertIdle(t);
  });

  it('leaves the cores alone once the database is back', async (t) => {
    await cluster.start();
    await Promise.all(servers.map((server) => server.ready()));
    await oneLeads();
    await assertIdle(t);
  });
});
