// The operators' listener: health and metrics.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ops, post, probe, probePath, request } from './lib/http.js';
import { addUser, address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

describe('the ops listener', () => {
  const stage = new Stage();
  let db, server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '50' } });
  });
  after(() => stage.end());

  const metrics = async () => parseMetrics((await ops(server, '/metrics')).body);

  it('says live and ready', async () => {
    assert.deepEqual((await ops(server, '/livez')).json, { status: 'live' });
    assert.deepEqual((await ops(server, '/readyz')).json, { status: 'ready' });
  });

  it('answers HEAD as GET without a body', async () => {
    for (const path of ['/livez', '/readyz', '/metrics']) {
      const answer = await ops(server, path, { method: 'HEAD' });
      assert.equal(answer.status, 200);
      assert.equal(answer.body, '');
    }
  });

  it('takes no other method and knows no other path', async () => {
    const wrong = await ops(server, '/livez', { method: 'POST', body: '{}' });
    assert.equal(wrong.status, 405);
    assert.equal(wrong.json.error, 'METHOD_NOT_ALLOWED');
    assert.match(wrong.headers.allow, /\bGET\b/);
    assert.equal((await ops(server, '/')).status, 404);
    const api = await request(server, { method: 'POST', path: probePath, body: '{}', listener: 'ops' });
    assert.equal(api.status, 404, 'the API is not served here');
  });

  it('gives metrics that Prometheus can read, all with help and type', async () => {
    const { families, samples } = await metrics();
    for (const [name, family] of families) {
      assert.ok(family.help.length > 5, name);
      assert.match(name, /^(reclaim|process)_[a-z0-9_]+$/);
      if (family.type === 'counter') assert.match(name, /_total$/, name);
      if (family.type === 'histogram') assert.match(name, /_(seconds|bytes)$/, name);
    }
    assert.ok(samples.length > families.size / 2);
  });

  it('counts answers by route and status', async () => {
    const earlier = await metrics();
    const user = await addUser(db);
    for (let n = 0; n < 3; n++) await probe(server, user.email);
    await post(server, 'x');
    await request(server, { path: '/nowhere' });
    const later = await metrics();
    const grown = (labels) => valueOf(later, 'reclaim_http_answers_total', labels) - valueOf(earlier, 'reclaim_http_answers_total', labels);
    assert.equal(grown({ route: probePath, status: '200' }), 3);
    assert.equal(grown({ route: probePath, status: '400' }), 1);
    assert.equal(grown({ status: '404' }), 1);
  });

  it('counts what the probe found, without telling about whom', async () => {
    const earlier = await metrics();
    const user = await addUser(db);
    await probe(server, user.email);
    await probe(server, address('nobody'));
    const later = await metrics();
    const grown = (labels) => valueOf(later, 'reclaim_probe_answers_total', labels) - valueOf(earlier, 'reclaim_probe_answers_total', labels);
    assert.equal(grown({ status: 'registered_unverified', orphaned: 'true' }), 1);
    assert.equal(grown({ status: 'not_registered', orphaned: 'false' }), 1);
  });

  it('measures how late held answers leave', async () => {
    const earlier = valueOf(await metrics(), 'reclaim_http_release_lateness_seconds_count', {});
    await Promise.all(Array.from({ length: 20 }, () => probe(server, address('nobody'))));
    const later = valueOf(await metrics(), 'reclaim_http_release_lateness_seconds_count', {});
    assert.equal(later - earlier, 20);
  });

  it('never makes labels out of what clients send', async () => {
    const count = async () => (await metrics()).samples.length;
    await request(server, { path: '/nowhere' });
    const earlier = await count();
    for (let n = 0; n < 20; n++) await request(server, { path: `/nowhere-${n}` });
    assert.equal(await count(), earlier);
  });
});
