// The examples in deploy/, as they are but for their addresses, in the real proxies: whom the gate lets pass reaches the
// API, the others do not, and are told why.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, addKey, asKey, asUser, env, unregister } from './lib/customers.js';
import { FakeProvider } from './lib/fake-provider.js';
import { ask, deployed, startApi, startCaddy, startNginx } from './lib/front.js';
import { addUser, address, canaryProxyKey } from './lib/people.js';
import { Cluster, freePort } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const addresses = ({ listen, everything, reclaim, api }) => ({
  '127.0.0.1:8087': `127.0.0.1:${everything}`,
  '127.0.0.1:8088': `127.0.0.1:${listen}`,
  '127.0.0.1:8080': `127.0.0.1:${reclaim}`,
  '127.0.0.1:9000': `127.0.0.1:${api}`,
});

const gateways = {
  nginx: (stage, ports) => startNginx(stage, deployed('nginx/reclaim.conf', addresses(ports)), { port: ports.listen }),
  caddy: (stage, ports) => startCaddy(stage, deployed('caddy/Caddyfile', addresses(ports)), { port: ports.listen }),
};

for (const [name, start] of Object.entries(gateways))
  describe(`deploy/${name}`, () => {
    const stage = new Stage();
    const limits = { RECLAIM_TRUSTED_PROXIES: '127.0.0.1', RECLAIM_PROXY_KEY: canaryProxyKey, RECLAIM_LIMIT_IP: '2/3600', RECLAIM_LIMIT_PROBE: '2/3600', RECLAIM_HOLD_MS: '300' };
    let db, provider, server, api, listen, everything, customer, key;

    before(async () => {
      const cluster = await Cluster.create(stage);
      db = await cluster.database(stage);
      provider = await FakeProvider.start(stage, 'resend');
      server = await serve(stage, { database: db, env: { ...env, ...provider.env, ...limits } });
      api = await startApi(stage);
      [listen, everything] = [await freePort(), await freePort()];
      await start(stage, { listen, everything, reclaim: server.address().port, api: api.port });
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

    it('counts an edge function’s clients by what the function says, and only with the right key', async () => {
      const from = (key, claimed) =>
        ask(everything, {
          method: 'POST',
          path: '/functions/v1/check-email-status',
          localAddress: '127.0.0.64',
          headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': claimed, 'X-Reclaim-Proxy-Key': key },
          body: JSON.stringify({ email: address('nobody') }),
        });
      for (const n of [1, 2, 3]) assert.equal((await from(canaryProxyKey, `203.0.113.4${n}`)).status, 200);
      assert.equal((await from(canaryProxyKey, '203.0.113.50, 203.0.113.41')).status, 200);
      assert.equal((await from(canaryProxyKey, '203.0.113.51, 203.0.113.41')).status, 429);
      for (const n of [1, 2]) assert.equal((await from(`${canaryProxyKey}x`, `203.0.113.6${n}`)).status, 200);
      assert.equal((await from(`${canaryProxyKey}x`, '203.0.113.63')).status, 429);
    });

    it('serves everything under a name of its own: pages, their forms, the API and its description', async () => {
      const [{ body: description }, page] = [await ask(everything, { path: '/openapi.json' }), await ask(everything, { path: '/recover' })];
      assert.equal(JSON.parse(description).openapi, '3.1.0');
      assert.equal(page.status, 200);
      const asset = await ask(everything, { path: /\/assets\/[^"]+\.css/.exec(page.body)[0] });
      assert.match(asset.headers['content-type'], /^text\/css/);
      const form = (origin) => {
        const token = /name="token" value="([^"]+)"/.exec(page.body)[1];
        return ask(everything, {
          method: 'POST',
          path: '/recover',
          localAddress: '127.0.0.65',
          headers: { Cookie: page.headers['set-cookie'].map((cookie) => cookie.split(';')[0]).join('; '), Origin: origin, 'Content-Type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams({ token, email: address('nobody') }).toString(),
        });
      };
      assert.equal((await form(`http://127.0.0.1:${everything}`)).status, 303);
      assert.equal((await form('http://127.0.0.1:1')).status, 403);

      const own = await ask(everything, { path: `/v1/customers/${customer.id}`, headers: asKey(key) });
      assert.equal(JSON.parse(own.body).id, customer.id);
      assert.equal((await ask(everything, { path: '/auth/session', headers: asUser(customer.user.id) })).status, 200);
      for (const path of ['/gate', '/gate/things']) assert.equal((await ask(everything, { path, headers: asKey(key) })).status, 404);
    });

    it('the proxy key never reaches the API', async () => {
      assert.equal((await ask(listen, { headers: { ...asKey(key), 'X-Reclaim-Proxy-Key': canaryProxyKey } })).status, 200);
      assert.ok(!JSON.stringify(api.heard.at(-1).headers).includes(canaryProxyKey));
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
