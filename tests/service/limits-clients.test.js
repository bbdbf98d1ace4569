// Whom a request is counted for: the peer of the connection, or whoever a trusted proxy says; IPv6 by /64.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { ops, probe } from './lib/http.js';
import { countOf, from, ipKey, limitsOf } from './lib/limits.js';
import { address, canaryProxyKey, clientAddress } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const hasIPv6 = await new Promise((resolve) => {
  const server = net.createServer();
  server.once('error', () => resolve(false)).listen(0, '::1', () => server.close(() => resolve(true)));
});

describe('whom a request is counted for', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
  });
  after(() => stage.end());

  const serveTrusting = (proxies, more = {}) =>
    serve(stage, { database: db, env: { RECLAIM_LIMIT_PROBE: '100/3600', RECLAIM_TRUSTED_PROXIES: proxies, ...more } });

  /** Who was counted for a request with these hops. */
  async function countedFor(server, hops, candidates, key) {
    const earlier = await Promise.all(candidates.map((ip) => countOf(db, ipKey('probe', ip))));
    const answer = await probe(server, address('nobody'), {
      headers: { ...(hops === undefined ? {} : from(hops).headers), ...(key === undefined ? {} : { 'X-Reclaim-Proxy-Key': key }) },
    });
    assert.equal(answer.status, 200, answer.body);
    const later = await Promise.all(candidates.map((ip) => countOf(db, ipKey('probe', ip))));
    const counted = candidates.filter((_, n) => later[n] > earlier[n]);
    assert.equal(counted.length, 1, `${hops}: ${counted}`);
    assert.equal(limitsOf(answer).remaining, 100 - later[candidates.indexOf(counted[0])]);
    return counted[0];
  }

  const first = '198.51.100.7';
  const second = '198.51.100.8';
  const inner = '203.0.113.1';

  describe('behind trusted proxies', () => {
    let server;
    before(async () => {
      server = await serveTrusting('127.0.0.0/8, 203.0.113.0/28');
    });
    const cases = [
      ['a client without X-Forwarded-For is the proxy itself', undefined, clientAddress],
      ['the client that the proxy names', first, first],
      ['another client, another count', second, second],
      ['the last address is what our proxy saw; those before it anybody may have invented', `${second}, ${first}`, first],
      ['a trusted hop is passed over', `${second}, ${first}, ${inner}`, first],
      ['several header lines are one list', [second, first], first],
      ['a proxy just outside the trusted network is a client', `${first}, 203.0.113.16`, '203.0.113.16'],
      ['hops all trusted lead to the farthest', `203.0.113.2, ${inner}`, '203.0.113.2'],
      ['a port is no part of it', `${first}:4711`, first],
      ['white space makes no difference', `  ${second} ,\t${first}  `, first],
      ['an IPv4 address in IPv6’s clothes is the same client', `::ffff:${first}`, first],
      ['nonsense from a trusted proxy counts for the proxy', `${first}, nonsense`, clientAddress],
      ['nonsense further away counts for the last that is known', `nonsense, ${inner}`, inner],
    ];
    const candidates = [clientAddress, first, second, inner, '203.0.113.2', '203.0.113.16'];
    for (const [promise, hops, expected] of cases)
      it(promise, async () => {
        assert.equal(await countedFor(server, hops, candidates), expected);
      });

    it('a client cannot get a fresh count by inventing hops', async () => {
      const remaining = [];
      for (let n = 1; n <= 5; n++) remaining.push(limitsOf(await probe(server, address('nobody'), from(`198.51.100.${100 + n}, 198.51.100.9`))).remaining);
      assert.deepEqual(remaining, [99, 98, 97, 96, 95]);
    });

    it('IPv6 clients of one /64 share a count, those of another do not', async () => {
      const near = ['2001:db8:ca11:ff::1', '2001:db8:ca11:ff:ffff:ffff:ffff:ffff', '[2001:db8:ca11:ff::2]:4711', '2001:DB8:CA11:00FF:1:2:3:4'];
      const remaining = [];
      for (const client of near) remaining.push(limitsOf(await probe(server, address('nobody'), from(client))).remaining);
      assert.deepEqual(remaining, [99, 98, 97, 96]);
      for (const client of ['2001:db8:ca11:100::1', '2001:db8:ca11:fe:ffff:ffff:ffff:ffff'])
        assert.equal(limitsOf(await probe(server, address('nobody'), from(client))).remaining, 99, client);
      assert.equal(await countOf(db, ipKey('probe', near[1])), 4);
    });
  });

  describe('with the proxy key, from an address that no setting names', () => {
    const proxy = '203.0.113.17'; // as a balancer in front of Reclaim names the caller that has the key
    let server, network, secret;
    before(async () => {
      secret = path.join(temporaryDirectory(stage), 'proxy-key');
      fs.writeFileSync(secret, `${canaryProxyKey}\n`, { mode: 0o600 });
      const key = { RECLAIM_PROXY_KEY_FILE: secret, RECLAIM_LOG_LEVEL: 'debug' };
      server = await serveTrusting(undefined, key);
      network = await serveTrusting('127.0.0.0/8', { RECLAIM_PROXY_KEY: canaryProxyKey });
    });
    const candidates = [clientAddress, first, second, proxy];

    for (const [promise, key] of [
      ['none', undefined],
      ['an empty one', ''],
      ['a part of it', canaryProxyKey.slice(0, -1)],
      ['more than it', `${canaryProxyKey}x`],
      ['another of its length', canaryProxyKey.replace(/.$/, 'X')],
      ['itself twice', [canaryProxyKey.replace(/.$/, 'X'), canaryProxyKey]],
    ])
      it(`${promise} is not the key: the caller is counted`, async () => {
        assert.equal(await countedFor(server, first, candidates, key), clientAddress);
      });

    it('an unknown key is warned about once, and no key is ever in a log or metric', async () => {
      assert.equal(await countedFor(server, first, candidates, canaryProxyKey), first);
      const warnings = server.lines.filter((line) => line.level === 'warn' && line.event.includes('RECLAIM_PROXY_KEY'));
      assert.equal(warnings.length, 1);
      const told = JSON.stringify(server.lines) + (await ops(server, '/metrics')).body;
      assert.ok(!told.includes(canaryProxyKey.slice(0, 20)));
    });

    it('the last address of X-Forwarded-For counts, IPv6 by its /64; without one the caller', async () => {
      assert.equal(await countedFor(server, `${second}, ${first}`, candidates, canaryProxyKey), first);
      assert.equal(await countedFor(server, [second, first], candidates, canaryProxyKey), first);
      assert.equal(await countedFor(server, undefined, candidates, canaryProxyKey), clientAddress);
      assert.equal(await countedFor(server, `${first}, nonsense`, candidates, canaryProxyKey), clientAddress);
      const near = ['2001:db8:ca11:1ff::1', '2001:db8:ca11:1ff::2'];
      for (const client of near) assert.equal(await countedFor(server, client, [clientAddress, near[0]], canaryProxyKey), near[0]);
    });

    it('SIGHUP replaces the key, and the old one is none any more', async () => {
      const next = `${canaryProxyKey}-next`;
      fs.writeFileSync(secret, `${next}\n`);
      server.signal('SIGHUP');
      await until('the new key', async () => (await countedFor(server, second, candidates, next)) === second);
      assert.equal(await countedFor(server, second, candidates, canaryProxyKey), clientAddress);
    });

    it('behind a trusted proxy it is that of the caller whom the proxy names, and vouches for this one alone', async () => {
      assert.equal(await countedFor(network, `${first}, ${proxy}`, candidates, canaryProxyKey), first);
      assert.equal(await countedFor(network, `${second}, ${first}, ${proxy}, 127.0.0.3`, candidates, canaryProxyKey), first);
      assert.equal(await countedFor(network, `${first}, ${proxy}`, candidates), proxy);
      assert.equal(await countedFor(network, `${first}, ${proxy}`, candidates, `${canaryProxyKey}x`), proxy);
      assert.equal(await countedFor(network, first, candidates, canaryProxyKey), first);
    });
  });

  it('a stranger’s X-Forwarded-For is ignored', async () => {
    const server = await serveTrusting('203.0.113.0/28');
    for (const hops of [undefined, first, `${first}, ${inner}`, 'nonsense'])
      assert.equal(await countedFor(server, hops, [clientAddress, first, inner]), clientAddress);
  });

  it('without trusted proxies nobody’s X-Forwarded-For counts', async () => {
    const server = await serveTrusting(undefined);
    for (const hops of [first, `${first}, ${clientAddress}`]) assert.equal(await countedFor(server, hops, [clientAddress, first]), clientAddress);
  });

  it('a peer over IPv6 is counted by its /64', { skip: !hasIPv6 }, async () => {
    const server = await serveTrusting(undefined, { RECLAIM_LISTEN: '[::1]:0' });
    assert.equal(await countedFor(server, first, ['::1', first, clientAddress]), '::1');
    const trusting = await serveTrusting('::1', { RECLAIM_LISTEN: '[::1]:0' });
    assert.equal(await countedFor(trusting, second, ['::1', second]), second);
  });
});
