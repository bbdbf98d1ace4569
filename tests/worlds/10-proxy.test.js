// World 10: nginx in front, and IPv6 clients. Reclaim sees one peer, nginx, and counts the clients that it names.

import assert from 'node:assert/strict';
import net from 'node:net';
import { after, before, describe, it } from 'node:test';

import { assertRefused, requestCode } from '../service/lib/cleanup.js';
import { probe } from '../service/lib/http.js';
import { countOf, from, ipKey, limitsOf } from '../service/lib/limits.js';
import { deployed as deployedFile, startNginx } from '../service/lib/front.js';
import { address, clientAddress } from '../service/lib/people.js';
import { freePort } from '../service/lib/postgres.js';
import { Stage } from '../service/lib/stage.js';
import { coreStory } from './lib/story.js';
import { databaseWorld } from './lib/world.js';

const nginxAddress = '127.0.0.5'; // from which nginx connects; no other client has it
const probeLimit = 12, cleanupLimit = 15; // the story needs 7 and 9

const hasIPv6 = await new Promise((resolve) => {
  const server = net.createServer();
  server.once('error', () => resolve(false)).listen(0, '::1', () => server.close(() => resolve(true)));
});
const host = hasIPv6 ? '::1' : '127.0.0.1';
const client = hasIPv6 ? '::1' : clientAddress;
const listen = (port) => `listen ${hasIPv6 ? '[::1]' : '127.0.0.1'}:${port};`;

const forward = `location / {
    proxy_set_header Host $host;
    proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
    proxy_pass http://front;
  }`;

/** deploy/nginx as it is, but for its addresses. */
const deployed = ({ port, reclaim, unused }) =>
  deployedFile('nginx/reclaim.conf', { 'listen 127.0.0.1:8088;': listen(port), '127.0.0.1:8087': `127.0.0.1:${unused}`, '127.0.0.1:8080': `127.0.0.1:${reclaim}` });

describe(`behind nginx, with ${hasIPv6 ? 'IPv6' : 'IPv4'} clients`, () => {
  const stage = new Stage();
  let world, deployment, balanced;

  before(async () => {
    world = await databaseWorld(stage, {
      contract: 'registration-recovery',
      env: {
        RECLAIM_CONTRACT: 'registration-recovery',
        RECLAIM_TRUSTED_PROXIES: `${nginxAddress}/32`,
        RECLAIM_LIMIT_PROBE: `${probeLimit}/3600`,
        RECLAIM_LIMIT_IP: `${cleanupLimit}/3600`,
      },
    });
    const [server] = world.servers;
    const reclaim = server.address().port;
    const at = (port) => ({ adds: ['server'], address: (listener) => (listener === 'ops' ? server.address('ops') : { host, port }) });
    const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
    [world.front, balanced, deployment] = ports.map(at);
    await startNginx(
      stage,
      `proxy_bind ${nginxAddress};
       upstream front { server 127.0.0.1:${reclaim}; }
       server { ${listen(ports[0])} ${forward} }
       server { ${listen(ports[1])} set_real_ip_from ${host}; set_real_ip_from 127.0.0.0/8; real_ip_header X-Client-Address; ${forward} }
       ${deployed({ port: ports[2], reclaim, unused: ports[3] })}`,
      { host, port: ports[2] },
    );
  });
  after(() => stage.end());

  coreStory(() => world, { first: 'owner', second: 'admin' });

  it('the story was counted for its client, not for nginx', async () => {
    for (const tier of ['probe', 'ip']) {
      assert.ok((await countOf(world.db, ipKey(tier, client))) > 0, tier);
      assert.equal(await countOf(world.db, ipKey(tier, nginxAddress)), 0, tier);
    }
  });

  it('a client that names others in X-Forwarded-For is counted all the same', async () => {
    const earlier = await countOf(world.db, ipKey('probe', client));
    for (const hops of ['2001:db8:ca11:9::1', `198.51.100.77, ${nginxAddress}`, 'nonsense']) assert.equal((await probe(world.front, address('nobody'), from(hops))).status, 200);
    assert.equal(await countOf(world.db, ipKey('probe', client)), earlier + 3);
  });

  /** As the load balancer in front of nginx passes them on. */
  const as = (ip) => ({ headers: { 'X-Client-Address': ip } });

  it('addresses of one IPv6 network share a limit, and another network is not concerned', async () => {
    for (let n = 1; n <= cleanupLimit; n++) assertRefused(await requestCode(balanced, address('nobody'), {}, as(`2001:db8:ca11:64::${n}`)), world.contract, '004');
    const refused = assertRefused(await requestCode(balanced, address('nobody'), {}, as('2001:db8:ca11:64:ffff:ffff:ffff:ffff')), world.contract, '003');
    assert.deepEqual([limitsOf(refused).tier, limitsOf(refused).limit], ['ip', cleanupLimit]);
    assertRefused(await requestCode(balanced, address('nobody'), {}, as('2001:db8:ca11:65::1')), world.contract, '004');
  });

  it('a site with 65,536 such networks has ten times the limit, and no more', async () => {
    const probed = async (network) => (await probe(balanced, address('nobody'), as(`${network}::1`))).status;
    for (let n = 0; n < 10; n++) for (let i = 0; i < probeLimit; i++) assert.equal(await probed(`2001:db8:ca11:${480 + n}`), 200);
    assert.equal(await probed('2001:db8:ca11:499'), 429);
    assert.equal(await probed('2001:db8:ca12:499'), 200);
  });

  it('deploy/nginx leads to the probe and the clean-up, and names the client', async () => {
    const earlier = { probe: await countOf(world.db, ipKey('probe', client)), ip: await countOf(world.db, ipKey('ip', client)) };
    assert.equal((await probe(deployment, address('nobody'), from('198.51.100.78'))).json.data.status, 'not_registered');
    assertRefused(await requestCode(deployment, address('nobody'), {}, from('198.51.100.78')), world.contract, '004');
    for (const tier of ['probe', 'ip']) assert.equal(await countOf(world.db, ipKey(tier, client)), earlier[tier] + 1, tier);
  });
});
