// Who may call from a browser.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { post, probe, probePath, request } from './lib/http.js';
import { address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const ours = 'https://app.example.com';
const ours2 = 'http://localhost:5173';
const theirs = 'https://evil.example.net';
const asked = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,x-client-info' };

describe('cross-origin calls', () => {
  const stage = new Stage();
  let open, choosy, without;
  before(async () => {
    const cluster = await Cluster.create(stage);
    const database = await cluster.database(stage);
    open = await serve(stage, { database });
    choosy = await serve(stage, { database, env: { RECLAIM_CORS_ORIGINS: `${ours},${ours2}` } });
    without = await serve(stage, { database, env: { RECLAIM_PROBE: 'off' } });
  });
  after(() => stage.end());

  const preflight = (server, origin) => request(server, { method: 'OPTIONS', path: probePath, headers: { ...(origin && { Origin: origin }), ...asked } });

  it('a preflight from anywhere is granted by default', async () => {
    const { status, headers, body } = await preflight(open, theirs);
    assert.equal(status, 204);
    assert.equal(body, '');
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.equal(headers['access-control-allow-methods'], 'POST, OPTIONS');
    const allowed = headers['access-control-allow-headers'].split(', ');
    assert.deepEqual(allowed.sort(), ['apikey', 'authorization', 'content-type', 'x-client-info', 'x-correlation-id']);
    assert.equal(headers['access-control-allow-credentials'], undefined);
  });

  it('an answer may be read from anywhere by default, its correlation id and rate fields too', async () => {
    const { headers } = await probe(open, address('nobody'), { headers: { Origin: theirs } });
    assert.equal(headers['access-control-allow-origin'], '*');
    const exposed = headers['access-control-expose-headers'].toLowerCase().split(', ');
    for (const name of ['x-correlation-id', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'retry-after']) assert.ok(exposed.includes(name), name);
  });

  it('a page can read refusals as well', async () => {
    for (const answer of [
      await post(open, 'x'),
      await request(open, { method: 'GET', path: probePath }),
      await post(open, ' '.repeat(20_000)),
      await request(open, { method: 'POST', path: '/functions/v1/nowhere', body: '{}' }),
    ])
      assert.equal(answer.headers['access-control-allow-origin'], '*', String(answer.status));
  });

  it('a page that asks for the probe where it is switched off can read that it is not served', async () => {
    assert.equal((await preflight(without, ours)).status, 204);
    const { status, json, headers } = await probe(without, address('nobody'), { headers: { Origin: ours } });
    assert.equal(status, 404);
    assert.equal(headers['access-control-allow-origin'], '*');
    assert.deepEqual([json.success, json.error.httpStatus, json.error.message], [false, 404, 'There is no such function.']);
    assert.equal('data' in json, false);
    const cleanup = await request(without, { method: 'POST', path: '/functions/v1/cleanup-orphaned-user', body: '{}' });
    assert.equal(cleanup.status, 400, 'the clean-up is served');
  });

  for (const origin of [ours, ours2])
    it(`${origin} is granted when it is on the list`, async () => {
      const granted = await preflight(choosy, origin);
      assert.equal(granted.headers['access-control-allow-origin'], origin);
      assert.equal(granted.headers.vary, 'Origin');
      const answer = await probe(choosy, address('nobody'), { headers: { Origin: origin } });
      assert.equal(answer.headers['access-control-allow-origin'], origin);
      assert.equal(answer.headers.vary, 'Origin');
    });

  for (const origin of [theirs, 'null', `${ours}.evil.example.net`, ours.toUpperCase(), `${ours}:8443`, 'http://app.example.com', undefined])
    it(`${origin ?? 'no origin'} is granted nothing when it is not on the list`, async () => {
      const refused = await preflight(choosy, origin);
      assert.equal(refused.status, 204);
      assert.equal(refused.headers.vary, 'Origin');
      const answer = await probe(choosy, address('nobody'), { headers: origin ? { Origin: origin } : {} });
      assert.equal(answer.status, 200);
      for (const { headers } of [refused, answer])
        assert.deepEqual(Object.keys(headers).filter((name) => name.startsWith('access-control-')), []);
    });

  it('the description may be read by any page, other paths outside /functions/v1 by none', async () => {
    const { headers } = await request(choosy, { path: '/openapi.json', headers: { Origin: theirs } });
    assert.equal(headers['access-control-allow-origin'], '*');
    const nowhere = await request(open, { path: '/nowhere', headers: { Origin: theirs } });
    assert.equal(nowhere.headers['access-control-allow-origin'], undefined);
  });
});
