// Constant-time release: an answer leaves when its request's time has come, never before. Times are only ever compared
// as "not earlier than".

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { post, probe, probePath, request } from './lib/http.js';
import { metric } from './lib/limits.js';
import { addCompany, addUser, address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { RawConnection, rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage, pause, until } from './lib/stage.js';

const took = (answer) => answer.answeredAt - answer.sentAt;

describe('a held answer', () => {
  const holdMs = 400;
  const stage = new Stage();
  let cluster, db, server;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { RECLAIM_PROBE_HOLD_MS: String(holdMs) } });
  });
  after(() => stage.end());

  const assertHeld = (answer, status) => {
    assert.equal(answer.status, status, answer.body);
    assert.ok(took(answer) >= holdMs, `left after ${took(answer)} ms`);
  };

  it('never leaves early, whatever it says', async () => {
    const orphan = await addUser(db);
    const owner = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    await addCompany(db, owner);
    const emails = [orphan.email, owner.email, address('nobody')];
    const answers = await Promise.all(Array.from({ length: 60 }, (_, n) => probe(server, emails[n % 3])));
    for (const answer of answers) assertHeld(answer, 200);
  });

  it('never leaves early when it is a refusal', async () => {
    for (const body of ['', 'x', '{}', '{"email":5}', '[]', '{"email":"nobody"}']) assertHeld(await post(server, body), 400);
  });

  it('is held although the ownership tables were slow', async (t) => {
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    const answer = await probe(server, user.email);
    assertHeld(answer, 200);
    assert.equal(answer.json.data.isOrphaned, null);
    await session.query('rollback');
  });

  it('is held from the last byte of the body on', async () => {
    const body = JSON.stringify({ email: address('nobody') });
    const connection = await RawConnection.open(server);
    const bytes = rawPost(body);
    connection.send(bytes.slice(0, -1));
    await pause(holdMs + 200); // longer than the hold itself
    const sentAt = performance.now();
    connection.send(bytes.slice(-1));
    const answer = await connection.answer(1);
    assert.ok(answer.answeredAt - sentAt >= holdMs, `left ${answer.answeredAt - sentAt} ms after the last byte`);
    connection.destroy();
  });

  it('is held on each request of a kept connection', async () => {
    const connection = await RawConnection.open(server);
    for (let n = 1; n <= 3; n++) {
      const sentAt = performance.now();
      connection.send(rawPost(JSON.stringify({ email: address('nobody') })));
      const answer = await connection.answer(n);
      assert.ok(answer.answeredAt - sentAt >= holdMs);
    }
    connection.destroy();
  });

  it('that comes late leaves on the next multiple of the hold', async (t) => {
    const slow = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '400', RECLAIM_PROBE_TIMEOUT_MS: '500' } });
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    const answer = await probe(slow, user.email); // ready after 500 ms, so it has missed its first instant
    assert.equal(answer.json.data.isOrphaned, null);
    assert.ok(took(answer) >= 800, `left after ${took(answer)} ms`);
    await session.query('rollback');
  });

  it('with jitter stays within two sigma below the hold', async (t) => {
    const jittery = await serve(t, { database: db, env: { RECLAIM_PROBE_HOLD_MS: '200', RECLAIM_PROBE_HOLD_SIGMA_MS: '20' } });
    const answers = await Promise.all(Array.from({ length: 200 }, () => probe(jittery, address('nobody'))));
    for (const answer of answers) assert.ok(took(answer) >= 160, `left after ${took(answer)} ms`);
  });
});

describe('what is not held', () => {
  const stage = new Stage();
  let server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    server = await serve(stage, { database: await cluster.database(stage), env: { RECLAIM_PROBE_HOLD_MS: '8000', RECLAIM_DRAIN: '20s' } });
  });
  after(() => stage.end());

  it('overtakes a held answer: preflights, 405, 413, 404 and the description', async () => {
    let heldIsOut = false;
    const held = probe(server, address('nobody')).then((answer) => {
      heldIsOut = true;
      return answer;
    });
    await until('its answer held', async () => (await metric(server, 'reclaim_http_held')) === 1);
    const statuses = [];
    for (const options of [
      { method: 'OPTIONS', path: probePath },
      { method: 'GET', path: probePath },
      { method: 'DELETE', path: probePath },
      { method: 'POST', path: probePath, body: ' '.repeat(20_000) },
      { method: 'POST', path: '/functions/v1/nowhere', body: '{}' },
      { method: 'GET', path: '/openapi.json' },
      { method: 'GET', path: '/livez', listener: 'ops' },
    ]) {
      statuses.push((await request(server, options)).status);
      assert.ok(!heldIsOut, `${options.method} ${options.path} was held`);
    }
    assert.deepEqual(statuses, [204, 405, 405, 413, 404, 200, 200]);
    assert.equal((await held).status, 200);
  });
});
