// One id leads from a client's answer to the server's log lines.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { post, probe, probePath, request } from './lib/http.js';
import { address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

describe('the correlation id', () => {
  const stage = new Stage();
  let database, server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    database = await cluster.database(stage);
    server = await serve(stage, { database });
  });
  after(() => stage.end());

  const idsOf = (answer) => [answer.headers['x-correlation-id'], answer.json?.data?.correlationId ?? answer.json?.correlationId];

  it('is made for a request without one, a new one each time', async () => {
    const answers = await Promise.all(Array.from({ length: 50 }, () => probe(server, address('nobody'))));
    const seen = new Set();
    for (const answer of answers) {
      const [inHeader, inBody] = idsOf(answer);
      assert.equal(inHeader, inBody);
      assert.match(inHeader, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
      seen.add(inHeader);
    }
    assert.equal(seen.size, 50);
  });

  it('is taken from the header', async () => {
    const id = randomUUID();
    assert.deepEqual(idsOf(await probe(server, address('nobody'), { headers: { 'X-Correlation-Id': id } })), [id, id]);
  });

  it('may be a UUID of any version and in any case', async () => {
    for (const id of ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff', '01890A5D-AC96-774B-BCCE-B302099A8057']) {
      const ids = idsOf(await probe(server, address('nobody'), { headers: { 'X-Correlation-Id': id } }));
      assert.deepEqual(ids.map((one) => one.toLowerCase()), [id.toLowerCase(), id.toLowerCase()]);
    }
  });

  for (const bad of ['', 'x', '123', 'g1b2c3d4-e5f6-7890-abcd-ef1234567890', `${'a'.repeat(8)}-1111`, `{${randomUUID()}}`, `${randomUUID()}0`, randomUUID().replaceAll('-', ''), 'é'])
    it(`«${bad}» in the header is ignored and one is made`, async () => {
      const answer = await probe(server, address('nobody'), { headers: { 'X-Correlation-Id': bad } });
      assert.equal(answer.status, 200);
      const [inHeader, inBody] = idsOf(answer);
      assert.equal(inHeader, inBody);
      assert.notEqual(inHeader, bad);
    });

  it('in the body goes before the one in the header', async () => {
    const id = randomUUID();
    const answer = await post(server, { email: address('nobody'), correlationId: id }, { headers: { 'X-Correlation-Id': randomUUID() } });
    assert.deepEqual(idsOf(answer), [id, id]);
  });

  it('in the body that is no UUID makes the body malformed', async () => {
    const id = randomUUID();
    for (const bad of ['x', '', 5, null, {}]) {
      const answer = await post(server, { email: address('nobody'), correlationId: bad }, { headers: { 'X-Correlation-Id': id } });
      assert.equal(answer.status, 400, JSON.stringify(bad));
      assert.deepEqual(idsOf(answer), [id, id]);
    }
  });

  it('comes back with every kind of refusal', async () => {
    const id = randomUUID();
    const headers = { 'X-Correlation-Id': id };
    for (const [options, status] of [
      [{ method: 'POST', path: probePath, body: 'x', headers }, 400],
      [{ method: 'GET', path: probePath, headers }, 405],
      [{ method: 'POST', path: probePath, body: ' '.repeat(20_000), headers }, 413],
      [{ method: 'POST', path: '/functions/v1/nowhere', body: '{}', headers }, 404],
    ]) {
      const answer = await request(server, options);
      assert.equal(answer.status, status);
      assert.deepEqual(idsOf(answer), [id, id]);
    }
    const plain = await request(server, { path: '/nowhere', headers });
    assert.equal(plain.headers['x-correlation-id'], id);
  });

  it('in the body comes back with a refusal from memory, however its name is spelt', async (t) => {
    const limited = await serve(t, { database, env: { RECLAIM_LIMIT_PROBE: '1/3600' } });
    const email = address('nobody');
    assert.equal((await probe(limited, email)).status, 200);
    for (const name of ['correlationId', 'correlation\\u0049d', '\\u0063orrelationId']) {
      const id = randomUUID();
      const answer = await post(limited, `{"email":"${email}","${name}":"${id}"}`);
      assert.equal(answer.status, 429);
      assert.deepEqual(idsOf(answer), [id, id]);
    }
    const [inHeader, inBody] = idsOf(await probe(limited, email));
    assert.equal(inHeader, inBody);
  });
});
