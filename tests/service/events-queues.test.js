// The example queues of deploy/rabbitmq, in a real broker.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, it } from 'node:test';

import { addCustomers, change } from './lib/changes.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { Broker, receipts } from './lib/rabbitmq.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

describe('the example queues', () => {
  const stage = new Stage();
  after(() => stage.end());

  it('are taken by a broker, and used by a server that may make nothing', async (t) => {
    const [cluster, broker] = await Promise.all([Cluster.create(stage), Broker.start(stage)]);
    await broker.control('import_definitions', path.join(repository, 'deploy/rabbitmq/definitions.json'));
    await broker.control('add_user', 'modest', 'word');
    await broker.control('set_permissions', 'modest', '', '^(reclaim\\.events|amq\\.default)$', '^reclaim\\.receipts');
    const db = await cluster.database(t);
    const env = { RECLAIM_AMQP_URL: `amqp://modest:word@localhost:${broker.port}` };
    const server = await serve(t, { database: db, env });
    const [id] = await addCustomers(db, 1);
    await change(db, id);
    await change(db, id, 'deleted');
    const channel = await broker.channel(t);
    const count = async (queue) => (await channel.checkQueue(queue)).messageCount;
    await until('both events, and the deletion alone', async () => (await count('example.orders')) === 2 && (await count('example.files')) === 1);
    channel.sendToQueue(receipts, Buffer.from('garbage'));
    await until('the bad receipt put aside', async () => (await count('reclaim.receipts.dead')) === 1);
    const rejected = await channel.get('example.files');
    channel.nack(rejected, false, false);
    await until('what a service rejects is kept', async () => (await count('example.files.dead')) === 1);
    const { stdout } = await run(t, ['doctor'], { database: db, env });
    assert.match(stdout, /^ok {4}broker: reached; exchange and queues are there$/m);
    const warnings = server.lines.filter((line) => line.level === 'warn' && /broker|event|receipt|queue/.test(line.event));
    assert.deepEqual(warnings.map((line) => line.event), ['receipt refused']);
  });
});
