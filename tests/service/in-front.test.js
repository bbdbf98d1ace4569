// Several instances behind HAProxy, and edge functions in Deno: deploy/haproxy and deploy/edge-function as they are, but for
// their addresses.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';
import { FunctionsClient, FunctionsHttpError } from '@supabase/functions-js';

import { cleanupPath } from './lib/cleanup.js';
import { asKey, env as customerEnv, addCustomer, addKey } from './lib/customers.js';
import { FakeProvider } from './lib/fake-provider.js';
import { ask, checkTypes, deployed, startEdgeFunction, startHaproxy } from './lib/front.js';
import { probePath } from './lib/http.js';
import { countOf, ipKey } from './lib/limits.js';
import { assertDescribed } from './lib/openapi.js';
import { addUser, address, canaryProxyKey, canaryToken } from './lib/people.js';
import { Cluster, freePort } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const without = (answer, names) => ({ ...answer, headers: Object.fromEntries(Object.entries(answer.headers).filter(([name]) => !names.includes(name))) });
const json = { 'Content-Type': 'application/json' };
const stage = new Stage();
let db, provider, servers;
before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  provider = await FakeProvider.start(stage, 'resend');
  const env = { ...customerEnv, ...provider.env, RECLAIM_TRUSTED_PROXIES: '127.0.0.1', RECLAIM_PROXY_KEY: canaryProxyKey, RECLAIM_LIMIT_PROBE: '10000/3600', RECLAIM_LIMIT_IP: '4/3600', RECLAIM_LIMIT_EMAIL: 'off', RECLAIM_HOLD_MS: '50', RECLAIM_HOLD_SIGMA_MS: '0', RECLAIM_PROBE_HOLD_MS: '0' };
  servers = [await serve(stage, { database: db, env }), await serve(stage, { database: db, env })];
});
after(() => stage.end());

describe('deploy/edge-function, in Deno', { skip: process.arch !== 'x64' && 'npm has Deno for x64 pinned here' }, () => {
  const names = ['check-email-status', 'cleanup-orphaned-user'];
  const ports = {};
  const output = {};
  before(async () => {
    const { port } = servers[0].address();
    const secrets = { RECLAIM_URL: `http://127.0.0.1:${port}/`, RECLAIM_PROXY_KEY: canaryProxyKey };
    for (const name of names) {
      ports[name] = await freePort();
      output[name] = await startEdgeFunction(stage, name, ports[name], secrets);
    }
  });

  /** The client of supabase-js, as if the platform had put this address before the function. */
  const client = (name, ip) =>
    new FunctionsClient(`http://127.0.0.1:${ports[name]}/functions/v1`, { headers: { Authorization: `Bearer ${canaryToken}`, apikey: canaryToken, 'cf-connecting-ip': ip } });
  const call = (name, { ip = '198.51.100.30', headers = {}, ...more }) =>
    ask(ports[name], { method: 'POST', path: `/${name}`, headers: { ...json, 'cf-connecting-ip': ip, ...headers }, ...more });

  it('has no wrong types', (t) => {
    checkTypes(t, 'deploy/edge-function/supabase/functions/check-email-status/index.ts');
  });

  it('recovers a registration by FunctionsClient, both steps, under the id that the caller chose', async () => {
    const orphan = await addUser(db);
    const invoke = async (name, body) => {
      const { data, error } = await client(name, '198.51.100.31').invoke(name, { body });
      assert.equal(error, null, await error?.context?.text?.());
      return data;
    };
    assert.equal((await invoke('check-email-status', { email: orphan.email })).data.isOrphaned, true);
    const correlationId = randomUUID();
    const sent = await invoke('cleanup-orphaned-user', { step: 'request-code', email: orphan.email, correlationId });
    assert.deepEqual([sent.data.step, sent.correlationId], ['code-sent', correlationId]);
    const { code } = await provider.mailTo(orphan.email);
    const deleted = await invoke('cleanup-orphaned-user', { step: 'validate-and-cleanup', email: orphan.email, verificationCode: code });
    assert.equal(deleted.data.deletedUserId, orphan.id);
    assert.equal(await countOf(db, ipKey('ip', '198.51.100.31')), 2);
  });

  it('errors come as FunctionsHttpError, with their status, code and headers', async () => {
    const { error } = await client('cleanup-orphaned-user', '198.51.100.32').invoke('cleanup-orphaned-user', { body: { step: 'request-code', email: address('nobody') } });
    assert.ok(error instanceof FunctionsHttpError);
    assert.equal(error.context.status, 404);
    assert.equal((await error.context.json()).error.code, 'ORPHAN_CLEANUP_004');
    assert.equal(error.context.headers.get('x-ratelimit-remaining'), '3');
  });

  it('answers byte for byte as Reclaim does, preflights and refusals included', async () => {
    const { port } = servers[0].address();
    const cases = [
      { method: 'OPTIONS', headers: { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': 'authorization,apikey' } },
      { method: 'GET' },
      { method: 'DELETE', body: 'x' },
      { body: '' },
      { body: '{"email":' },
      { body: Buffer.from([0xff, 0x00, 0x7b]) },
      { body: '{"email":"nonsense"}', headers: { Accept: 'application/problem+json' } },
      { body: JSON.stringify({ email: 'x'.repeat(16 * 1024) }) },
      { body: 'x'.repeat(500_000) },
    ];
    let clients = 0;
    for (const name of names)
      for (const { method = 'POST', headers = {}, body } of cases) {
        const same = { method, body, headers: { ...json, 'x-correlation-id': randomUUID(), ...headers } };
        const direct = await ask(port, { ...same, path: `/functions/v1/${name}`, headers: { ...same.headers, 'X-Forwarded-For': `2001:db8:ca11:${++clients}a::1` } });
        const through = await call(name, { ...same, ip: `2001:db8:ca11:${clients}b::1` });
        // What belongs to a connection, or to the instant.
        const own = ['date', 'connection', 'keep-alive', 'content-length', 'transfer-encoding', 'x-ratelimit-reset', 'vary'];
        assert.deepEqual(without(through, own), without(direct, own), `${name} ${method} ${String(body).slice(0, 40)}`);
      }
  });

  it('counts each client by its own address, whatever the client says about it', async () => {
    const ip = '198.51.100.35';
    const forged = { 'X-Forwarded-For': '203.0.113.70', 'X-Reclaim-Proxy-Key': 'canary-forged-key-of-more-than-32-characters' };
    const from = async (address, headers) => (await call('cleanup-orphaned-user', { ip: address, body: asked, headers })).status;
    const asked = JSON.stringify({ step: 'request-code', email: address('nobody') });
    for (let n = 1; n <= 4; n++) assert.equal(await from(ip, forged), 404);
    assert.equal(await from(ip, forged), 429);
    assert.equal(await from('2001:db8:ca11:35::1'), 404);
    assert.equal(await countOf(db, ipKey('ip', '203.0.113.70')), 0);
    assert.equal(await countOf(db, ipKey('ip', '2001:db8:ca11:35::2')), 1);
  });

  it('keeps credentials and the key to itself', () => {
    const logged = JSON.stringify(servers[0].lines) + names.map((name) => output[name]()).join('');
    for (const secret of [canaryProxyKey, canaryToken, '198.51.100.3']) assert.ok(!logged.includes(secret), secret);
  });

  it('says 006 in Reclaim’s form when Reclaim is away or does not answer in time', async (t) => {
    const silent = net.createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const open = new Set();
    silent.on('connection', (socket) => open.add(socket));
    t.after(() => {
      for (const socket of open) socket.destroy();
      silent.close();
    });
    for (const [name, port, path, status] of [
      ['cleanup-orphaned-user', await freePort(), cleanupPath, 500],
      ['check-email-status', silent.address().port, probePath, 503],
    ]) {
      const own = await freePort();
      await startEdgeFunction(t, name, own, { RECLAIM_URL: `http://127.0.0.1:${port}`, RECLAIM_PROXY_KEY: canaryProxyKey, RECLAIM_CLIENT_ADDRESS: 'x-forwarded-for 1', RECLAIM_TIMEOUT_MS: '200' });
      const [inBody, inHeader] = [randomUUID(), randomUUID()];
      for (const [body, expected] of [
        [JSON.stringify({ email: address('nobody'), correlationId: inBody.toUpperCase() }), inBody],
        ['nonsense', inHeader],
        ['', inHeader],
      ]) {
        const answer = await ask(own, { method: 'POST', path: `/${name}`, body, headers: { ...json, 'x-correlation-id': inHeader } });
        assert.equal(answer.status, status, answer.body);
        assertDescribed({ method: 'POST', path, listener: 'public' }, without(answer, ['vary']));
        const told = JSON.parse(answer.body);
        assert.deepEqual([told.success, told.error.code, told.error.httpStatus, told.correlationId], [false, 'ORPHAN_CLEANUP_006', status, expected]);
        assert.equal(answer.headers['access-control-allow-origin'], '*');
      }
    }
  });

  for (const [name, value] of [
    ['RECLAIM_URL', 'https://reclaim.example.com/path'],
    ['RECLAIM_PROXY_KEY', 'canary-short'],
    ['RECLAIM_CLIENT_ADDRESS', 'x-forwarded-for first'],
    ['RECLAIM_TIMEOUT_MS', '0'],
  ])
    it(`does not start with a wrong ${name}, and says which it is`, async (t) => {
      const secrets = { RECLAIM_URL: 'https://reclaim.example.com', RECLAIM_PROXY_KEY: canaryProxyKey, [name]: value };
      await assert.rejects(startEdgeFunction(t, 'check-email-status', await freePort(), secrets), (fault) => fault.message.includes(name) && !fault.message.includes('canary-'));
    });
});

describe('deploy/haproxy', () => {
  let listen, tell, key;
  before(async () => {
    listen = await freePort();
    const [first, second] = servers.map((server) => [server.address().port, server.address('ops').port]);
    const settings = (socket) =>
      deployed('haproxy/haproxy.cfg', {
        '127.0.0.1:8088': `127.0.0.1:${listen}`,
        '127.0.0.1:8080 port 8081': `127.0.0.1:${first[0]} port ${first[1]}`,
        '127.0.0.1:8090 port 8091': `127.0.0.1:${second[0]} port ${second[1]}`,
        '/run/haproxy/admin.sock mode': `${socket} mode`,
      });
    tell = await startHaproxy(stage, settings, { port: listen });
    key = await addKey(stage, db, await addCustomer(db, { password: false }));
  });

  const probe = (n, more = {}) =>
    ask(listen, { method: 'POST', path: probePath, localAddress: `127.0.1.${n}`, headers: { ...json, ...more }, body: JSON.stringify({ email: address('nobody') }) });
  /** Of both instances: [{ status, sessions, requests }, …]. */
  const state = async () => {
    const [names, ...rows] = (await tell('show stat')).trim().split('\n').map((line) => line.replace(/^# /, '').split(','));
    const at = (row, name) => row[names.indexOf(name)];
    return rows
      .filter((row) => at(row, 'pxname') === 'reclaim' && ['first', 'second'].includes(at(row, 'svname')))
      .map((row) => ({ status: at(row, 'status'), sessions: Number(at(row, 'scur')), requests: Number(at(row, 'stot')) }));
  };

  it('spreads requests over both instances, and each client is counted by its own address, as a function’s clients are', async () => {
    await until('both instances in service', async () => (await state()).every(({ status }) => status === 'UP'));
    const answers = await Promise.all(Array.from({ length: 20 }, (_, n) => probe(n + 1, { 'X-Forwarded-For': '203.0.113.80' })));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    for (const { requests } of await state()) assert.ok(requests > 0);
    assert.equal(await countOf(db, ipKey('probe', '203.0.113.80')), 0);
    assert.equal(await countOf(db, ipKey('probe', '127.0.1.7')), 1);
    assert.equal((await probe(1, { 'X-Forwarded-For': '203.0.113.81', 'X-Reclaim-Proxy-Key': canaryProxyKey })).status, 200);
    assert.equal(await countOf(db, ipKey('probe', '203.0.113.81')), 1);
    for (const path of ['/gate', '/gate/x']) assert.equal((await ask(listen, { path, headers: asKey(key) })).status, 404);
  });

  it('loses no request when an instance is taken out and stopped', async () => {
    let stop = false;
    const answers = [];
    const stream = async (n) => {
      while (!stop) answers.push((await probe(n)).status, (await ask(listen, { path: '/openapi.json' })).status);
    };
    const streams = Promise.all([30, 31, 32, 33].map(stream));
    await until('requests at both instances', async () => answers.length > 8);
    await tell('set server reclaim/first state drain');
    const before = await until('no request under way at the first', async () => (await state())[0].sessions === 0 && state());
    await servers[0].stop();
    assert.equal((await state())[0].requests, before[0].requests);
    await tell('set server reclaim/first state ready'); // although it is away: refused connections go to the other
    const seen = answers.length;
    await until('further answers', () => answers.length > seen + 8);
    stop = true;
    await streams;
    assert.deepEqual(new Set(answers), new Set([200]));
  });

  it('answers 503 when no instance is left', async () => {
    await servers[1].kill9();
    assert.equal((await probe(40)).status, 503);
  });
});
