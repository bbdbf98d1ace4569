// The examples in deploy/, as they are but for their addresses, in the real proxies: whom the gate lets pass reaches the
// API, the others do not, and are told why.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, addKey, asKey, asUser, env, unregister } from './lib/customers.js';
import { FakeProvider } from './lib/fake-provider.js';
import { addUser, address } from './lib/people.js';
import { repository, temporaryDirectory } from './lib/place.js';
import { Cluster, freePort } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Ended, Stage, until } from './lib/stage.js';
import { keepEnded } from './lib/watchdog.js';

/** An answer that is not Reclaim's own, so not held against the description. */
function ask(port, { method = 'GET', path: target = '/things', headers = {}, body, localAddress } = {}) {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const call = http.request({ host: '127.0.0.1', port, localAddress, method, path: target, agent: false, headers: { ...length, ...headers } }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts).toString() }));
      answer.on('error', reject);
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** Somebody's API: says what it heard. */
async function startApi(stage) {
  const heard = [];
  const api = http.createServer((incoming, answer) => {
    const parts = [];
    incoming.on('data', (part) => parts.push(part));
    incoming.on('end', () => {
      heard.push({ method: incoming.method, path: incoming.url, headers: incoming.headers, body: Buffer.concat(parts).toString() });
      answer.end('from the API');
    });
  });
  await new Promise((resolve) => api.listen(0, '127.0.0.1', resolve));
  stage.after(() => {
    api.closeAllConnections();
    return new Promise((resolve) => api.close(resolve));
  });
  return { port: api.address().port, heard };
}

async function startProgram(stage, port, program, args, options) {
  const log = [];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => log.push(part));
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  const forget = keepEnded(child.pid);
  const ended = new Promise((resolve) => child.once('close', resolve));
  ended.then(forget);
  stage.after(async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
  });
  await until(`${program} answering`, async () => {
    if (child.exitCode !== null) throw new Ended(`${program} ended: ${Buffer.concat(log)}`);
    return ask(port);
  });
}

const example = (name, { listen, reclaim, api }) =>
  fs
    .readFileSync(path.join(repository, 'deploy', name), 'utf8')
    .replaceAll('127.0.0.1:8088', `127.0.0.1:${listen}`)
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${reclaim}`)
    .replaceAll('127.0.0.1:9000', `127.0.0.1:${api}`);

const gateways = {
  async nginx(stage, addresses) {
    const home = temporaryDirectory(stage);
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${home}/${kind};`).join(' ');
    const settings = path.join(home, 'nginx.conf');
    fs.writeFileSync(
      settings,
      `daemon off; worker_processes 1; pid ${home}/pid; error_log ${home}/error.log;
       events { worker_connections 256; }
       http { access_log off; ${places} ${example('nginx/reclaim-gate.conf', addresses)} }`,
    );
    await startProgram(stage, addresses.listen, '/usr/sbin/nginx', ['-p', home, '-c', settings, '-e', path.join(home, 'error.log')]);
  },

  async caddy(stage, addresses) {
    const home = temporaryDirectory(stage);
    const settings = path.join(home, 'Caddyfile');
    fs.writeFileSync(settings, `{\n\tadmin off\n}\n${example('caddy/Caddyfile', addresses)}`);
    await startProgram(stage, addresses.listen, 'caddy', ['run', '--config', settings, '--adapter', 'caddyfile'], {
      env: { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home },
    });
  },
};

for (const [name, start] of Object.entries(gateways))
  describe(`deploy/${name}`, () => {
    const stage = new Stage();
    const limits = { RECLAIM_TRUSTED_PROXIES: '127.0.0.1', RECLAIM_LIMIT_IP: '2/3600', RECLAIM_LIMIT_PROBE: '2/3600', RECLAIM_HOLD_MS: '300' };
    let db, provider, server, api, listen, customer, key;

    before(async () => {
      const cluster = await Cluster.create(stage);
      db = await cluster.database(stage);
      provider = await FakeProvider.start(stage, 'resend');
      server = await serve(stage, { database: db, env: { ...env, ...provider.env, ...limits } });
      api = await startApi(stage);
      listen = await freePort();
      await start(stage, { listen, reclaim: server.address().port, api: api.port });
      customer = await addCustomer(db, { password: false });
      key = await addKey(stage, db, customer);
    });
    after(() => stage.end());

    it('brings an active customer to the API, body and all, under the name that the gate gave', async () => {
      for (const headers of [asUser(customer.user.id), asKey(key)]) {
        const body = 'b'.repeat(50_000);
        const answer = await ask(listen, {
          method: 'POST',
          path: '/things?x=1',
          headers: { ...headers, 'X-Customer-Id': 'somebody else', 'X-Customer-Status': 'anything' },
          body,
        });
        assert.equal(answer.status, 200, answer.body);
        assert.equal(answer.body, 'from the API');
        const last = api.heard.at(-1);
        assert.equal(last.headers['x-customer-id'], customer.id);
        assert.equal(last.headers['x-customer-status'], 'active');
        assert.deepEqual([last.method, last.path, last.body], ['POST', '/things?x=1', body]);
      }
    });

    it('tells strangers why not, and the API hears nothing of them', async () => {
      const before = api.heard.length;
      for (const [headers, error] of [
        [{}, 'NO_CREDENTIALS'],
        [{ Authorization: 'Bearer nonsense' }, 'INVALID_TOKEN'],
        [{ 'X-API-Key': 'nonsense' }, 'INVALID_API_KEY'],
      ]) {
        const answer = await ask(listen, { headers });
        assert.equal(answer.status, 401, answer.body);
        assert.equal(JSON.parse(answer.body).error, error);
        assert.match(answer.headers['content-type'], /^application\/json/);
        assert.match(answer.headers['www-authenticate'], /^Bearer/);
      }
      assert.equal(api.heard.length, before);
    });

    it('tells a frozen customer when it ends and how to recover, and lets it do so', async () => {
      const { json: frozen } = await unregister(server, asKey(key), { confirmation_phrase: 'DELETE' });
      const before = api.heard.length;
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await ask(listen, { method, headers: asKey(key) });
        assert.equal(answer.status, 403, answer.body);
        assert.match(answer.headers['content-type'], /^application\/json/);
        const told = JSON.parse(answer.body);
        assert.deepEqual(Object.keys(told), ['error', 'message', 'deletion_scheduled_at', 'deletion_effective_at', 'recovery_endpoint']);
        assert.equal(told.error, 'DELETION_SCHEDULED');
        assert.equal(told.deletion_scheduled_at, frozen.tm_deletion_scheduled);
      }
      assert.equal(api.heard.length, before);

      const recovered = await ask(listen, { method: 'DELETE', path: '/auth/unregister', headers: asKey(key) });
      assert.equal(recovered.status, 200, recovered.body);
      assert.equal(JSON.parse(recovered.body).status, 'active');
      assert.equal((await ask(listen, { headers: asKey(key) })).status, 200);
    });

    for (const [what, target, body, admitted] of [
      ['a probe', '/functions/v1/check-email-status', { email: address('nobody') }, 200],
      ['a clean-up', '/functions/v1/cleanup-orphaned-user', { step: 'request-code', email: address('nobody') }, 404],
    ])
      it(`brings ${what} to Reclaim, which counts by the client’s own address, not by what it claims`, async () => {
        const from = (localAddress, claimed) =>
          ask(listen, { method: 'POST', path: target, localAddress, headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': claimed }, body: JSON.stringify(body) });
        for (const claimed of ['203.0.113.1', '203.0.113.2, 127.0.0.1']) assert.equal((await from('127.0.0.61', claimed)).status, admitted);
        const refused = await from('127.0.0.61', '203.0.113.3');
        assert.equal(refused.status, 429, refused.body);
        assert.equal(JSON.parse(refused.body).error.code, 'ORPHAN_CLEANUP_003');
        assert.equal((await from('127.0.0.62', '203.0.113.3')).status, admitted);
        assert.ok(!server.lines.some((line) => /X-Forwarded-For/.test(line.event)), 'warned of an untrusted proxy');
      });

    it('recovers a registration, and passes on what Reclaim says to a body that is too large', async () => {
      const orphan = await addUser(db);
      const post = (body) => ask(listen, { method: 'POST', path: '/functions/v1/cleanup-orphaned-user', localAddress: '127.0.0.63', body: JSON.stringify(body) });
      const sent = await post({ step: 'request-code', email: orphan.email });
      assert.equal(sent.status, 200, sent.body);
      const { code } = await provider.mailTo(orphan.email);
      const deleted = await post({ step: 'validate-and-cleanup', email: orphan.email, verificationCode: code });
      assert.equal(deleted.status, 200, deleted.body);
      assert.equal(JSON.parse(deleted.body).data.deletedUserId, orphan.id);
      const large = await post({ email: 'x'.repeat(20_000) });
      assert.equal(large.status, 413, large.body);
      assert.equal(JSON.parse(large.body).error.httpStatus, 413);
    });

    it('leaves CORS to Reclaim: one answer to a preflight, and one header', async () => {
      const answer = await ask(listen, {
        method: 'OPTIONS',
        path: '/functions/v1/check-email-status',
        headers: { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' },
      });
      assert.equal(answer.status, 204);
      assert.equal(answer.headers['access-control-allow-origin'], '*');
      assert.match(answer.headers['access-control-allow-methods'], /POST/);
    });

    it('lets nobody pass when the gate is away', async () => {
      const before = api.heard.length;
      await server.stop();
      const answer = await ask(listen, { headers: asKey(key) });
      assert.ok([502, 503].includes(answer.status), `${answer.status}`);
      assert.equal(api.heard.length, before);
    });
  });
