// Who may call from a browser.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { post, probe, probePath, request } from './lib/http.js';
import { description } from './lib/openapi.js';
import { address, canaryToken } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const ours = 'https://app.example.com';
const ours2 = 'http://localhost:5173';
const theirs = 'https://evil.example.net';
const asked = { 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'content-type,x-client-info' };

/** What supabase-js sends (tests/browser/supabase-js.test.js compares), and what callers of Reclaim add. */
const requestHeaders = [
  'apikey',
  'authorization',
  'baggage',
  'content-type',
  'traceparent',
  'tracestate',
  'x-api-key',
  'x-client-info',
  'x-correlation-id',
  'x-reclaim-customer',
  'x-region',
  'x-retry-count',
  'x-supabase-api-version',
];

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
    assert.deepEqual(allowed.sort(), requestHeaders);
    assert.equal(headers['access-control-allow-credentials'], undefined);
  });

  const paths = Object.keys(description.paths).filter((path) => /^\/(functions\/v1|auth|v1)\//.test(path));
  it('a preflight is granted at every path of the API, for the path’s methods and all headers', async () => {
    assert.ok(paths.length > 30);
    for (const path of paths) {
      const methods = Object.keys(description.paths[path]).map((method) => method.toUpperCase());
      if (methods.includes('GET')) methods.push('HEAD');
      const { status, headers } = await request(open, { method: 'OPTIONS', path: path.replace(/\{[^}]+\}/g, 'x'), headers: { Origin: theirs, ...asked } });
      assert.equal(status, 204, path);
      assert.equal(headers['access-control-allow-origin'], '*', path);
      assert.deepEqual(headers['access-control-allow-methods'].split(', ').sort(), [...new Set([...methods, 'OPTIONS'])].sort(), path);
      assert.deepEqual(headers['access-control-allow-headers'].split(', ').sort(), requestHeaders, path);
    }
  });

  it('a page can read the answers of /auth and /v1, refusals too, and that a path is not there', async () => {
    const credentials = { Authorization: `Bearer ${canaryToken}` };
    for (const [method, path, status] of [
      ['POST', '/auth/unregister', 401],
      ['GET', '/auth/session', 401],
      ['GET', '/v1/customers', 401],
      ['PUT', '/v1/customers', 405],
      ['GET', '/v1/erasure/participants', 200],
      ['GET', '/v1/nowhere', 404],
      ['GET', '/auth/v1/user', 404],
    ]) {
      const answer = await request(choosy, { method, path, headers: { Origin: ours, ...credentials } });
      assert.equal(answer.status, status, path);
      assert.equal(answer.headers['access-control-allow-origin'], ours, path);
      assert.equal(answer.headers.vary, 'Origin', path);
      assert.match(answer.headers['access-control-expose-headers'], /^x-correlation-id, retry-after, x-ratelimit-limit, .*ratelimit$/, path);
      const granted = await request(choosy, { method: 'OPTIONS', path, headers: { Origin: ours, ...asked } });
      assert.equal(granted.status, 204, path);
      const refused = await request(choosy, { method, path, headers: { Origin: theirs, ...credentials } });
      assert.equal(refused.headers['access-control-allow-origin'], undefined, path);
    }
    const plain = await request(open, { method: 'OPTIONS', path: '/v1/nowhere' });
    assert.equal(plain.status, 404, 'no preflight');
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

  it('the description may be read by any page, paths outside the API by none', async () => {
    const { headers } = await request(choosy, { path: '/openapi.json', headers: { Origin: theirs } });
    assert.equal(headers['access-control-allow-origin'], '*');
    for (const path of ['/nowhere', '/gate', '/account', '/v1', '/authority/x']) {
      const { host, port } = open.address();
      const answer = await fetch(`http://${host}:${port}${path}`, { headers: { Origin: theirs } });
      assert.equal(answer.headers.get('access-control-allow-origin'), null, path);
    }
  });
});
