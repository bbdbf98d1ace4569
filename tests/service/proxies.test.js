// X-Forwarded-For: believed from trusted proxies only, and never a way to break or read anything.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ops, probe } from './lib/http.js';
import { address, clientAddress, forwardedAddress, forwardedAddress6 } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const values = [
  forwardedAddress,
  forwardedAddress6,
  `[${forwardedAddress6}]:4711`,
  `${forwardedAddress}:4711`,
  `203.0.113.9, ${forwardedAddress}, ${clientAddress}`,
  `${forwardedAddress},,,`,
  ', ,',
  'unknown',
  '_hidden, "quoted"',
  '999.999.999.999',
  '::ffff:198.51.100.24',
  Array.from({ length: 500 }, () => forwardedAddress).join(', '),
];

for (const [who, trusted] of [
  ['a stranger', undefined],
  ['a trusted proxy', '127.0.0.0/8, ::1'],
])
  describe(`X-Forwarded-For from ${who}`, () => {
    const stage = new Stage();
    let server;
    before(async () => {
      const cluster = await Cluster.create(stage);
      const database = await cluster.database(stage);
      server = await serve(stage, { database, env: { RECLAIM_TRUSTED_PROXIES: trusted, RECLAIM_LOG_LEVEL: 'debug' } });
    });
    after(() => stage.end());

    it('never changes the answer, nonsense included', async () => {
      for (const value of values) {
        const answer = await probe(server, address('nobody'), { headers: { 'X-Forwarded-For': value } });
        assert.equal(answer.status, 200, value);
        assert.ok(!answer.body.includes('198.51.100'));
      }
      const twice = await probe(server, address('nobody'), { headers: { 'X-Forwarded-For': [forwardedAddress, 'nonsense'] } });
      assert.equal(twice.status, 200);
    });

    it(trusted ? 'is no reason for a warning' : 'is warned about once, with the setting and the network of the peer alone', async () => {
      const warnings = server.lines.filter((line) => line.level === 'warn' && line.event.includes('X-Forwarded-For'));
      assert.deepEqual(warnings.map((line) => line.network), trusted ? [] : ['127.0.0.0/8']);
      for (const line of warnings) assert.ok(line.event.includes('RECLAIM_TRUSTED_PROXIES'));
    });

    it('leaves no address in logs or metrics', async () => {
      const metrics = (await ops(server, '/metrics')).body;
      const logged = JSON.stringify(server.lines);
      for (const ip of [forwardedAddress, '198.51.100.24', forwardedAddress6, clientAddress, '203.0.113.9']) {
        assert.ok(!logged.includes(ip), `${ip} was logged`);
        assert.ok(!metrics.includes(ip), `${ip} is in the metrics`);
      }
    });
  });
