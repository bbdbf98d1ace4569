// Log lines: JSON, traceable, and never with anything personal or secret in them.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { ops, post, probe, probePath, request } from './lib/http.js';
import { addUser, address, canaryKey, canaryToken, clientAddress, domain, forwardedAddress } from './lib/people.js';
import { Cluster, freePort } from './lib/postgres.js';
import { RawConnection, exchange, rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

describe('the log', () => {
  const stage = new Stage();
  let cluster, db, server;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { RECLAIM_LOG_LEVEL: 'debug', RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' } });
  });
  after(() => stage.end());

  it('carries the correlation id of the request a line is about', async (t) => {
    const user = await addUser(db);
    const id = randomUUID();
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    await post(server, { email: user.email, correlationId: id });
    await session.query('rollback');
    const line = await server.line('one with the id', (one) => Object.values(one).includes(id));
    assert.ok(['warn', 'info', 'error', 'debug'].includes(line.level));
  });

  it('does not carry one request’s id into another’s line', async (t) => {
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    const ids = Array.from({ length: 40 }, () => randomUUID());
    await Promise.all(ids.map((correlationId) => post(server, { email: user.email, correlationId })));
    await session.query('rollback');
    for (const id of ids) await server.line('one with the id', (one) => Object.values(one).includes(id));
    const others = server.lines.filter((line) => line.event === 'listening' || line.event === 'ready');
    for (const line of others) assert.equal(line.correlation_id, undefined);
  });

  it('has one line for each finished request: route, method, outcome, status, milliseconds, id', async () => {
    const id = randomUUID();
    const lineOf = (correlationId) => server.line('of the request', (one) => one.event === 'request' && one.correlation_id === correlationId);
    await probe(server, address('nobody'), { headers: { 'X-Correlation-Id': id } });
    const { time, ms, ...rest } = await lineOf(id);
    assert.deepEqual(rest, { level: 'info', event: 'request', correlation_id: id, route: probePath, method: 'POST', status: 200 });
    assert.ok(time && ms >= 0, `${ms}`);

    const refused = randomUUID();
    await post(server, { email: 'no address', correlationId: refused });
    assert.equal((await lineOf(refused)).outcome, 'ORPHAN_CLEANUP_007');
    const lost = randomUUID();
    await request(server, { path: `/v1/customers/${randomUUID()}?q=${lost}`, headers: { 'X-Correlation-Id': lost } });
    const line = await lineOf(lost);
    assert.deepEqual([line.route, line.method, line.status, line.outcome], ['/v1/customers/{id}', 'GET', 401, 'NO_CREDENTIALS']);
    const nowhere = randomUUID();
    await request(server, { path: `/${canaryToken}`, headers: { 'X-Correlation-Id': nowhere } });
    assert.equal((await lineOf(nowhere)).route, 'none');
    for (const one of [id, refused, lost, nowhere])
      assert.equal(server.lines.filter((logged) => logged.event === 'request' && logged.correlation_id === one).length, 1);
    await ops(server, '/metrics');
    assert.ok(!server.events('request').some((logged) => /metrics|livez|readyz/.test(logged.route)));
  });

  it('has a line for a request whose client left, without a status', async () => {
    const id = randomUUID();
    const leaver = await RawConnection.open(server);
    leaver.send(rawPost('{', { headers: ['Content-Length: 1000', `X-Correlation-Id: ${id}`] }));
    leaver.destroy();
    const line = await server.line('of the request', (one) => one.event === 'request' && one.correlation_id === id);
    assert.equal(line.outcome, 'incomplete');
    assert.equal(line.status, undefined);
  });

  it('tells nothing that the request brought: addresses, IPs, tokens, bodies', async () => {
    const user = await addUser(db);
    const headers = {
      'X-Forwarded-For': forwardedAddress,
      Authorization: `Bearer ${canaryToken}`,
      apikey: canaryToken,
      Cookie: `session=${canaryToken}`,
      'User-Agent': canaryToken,
      'X-Correlation-Id': canaryToken,
      Origin: `https://${domain}`,
    };
    await probe(server, user.email, { headers });
    await probe(server, `${user.email} ${user.email}`, { headers });
    await post(server, `{"email":"${user.email}"`, { headers });
    await request(server, { path: `/${canaryToken}?email=${user.email}`, headers });
    await request(server, { method: 'GET', path: `${probePath}?email=${user.email}`, headers });
    await exchange(server, rawPost(`{"email":"${user.email}"}`, { headers: ['Content-Length: 7', 'Content-Length: 8', `X-Odd: ${canaryToken}`] }));
    await exchange(server, `${canaryToken} ${user.email}\r\n\r\n`, { halfClose: true });
    const leaver = await RawConnection.open(server);
    leaver.send(rawPost(`{"email":"${user.email}"}`, { headers: ['Content-Length: 1000'] }));
    leaver.abort();
  });

  it('tells nothing when the database fails in the middle of a question', async (t) => {
    const user = await addUser(db);
    await db.query('alter table auth.users rename column last_sign_in_at to gone');
    try {
      const answer = await probe(server, user.email);
      assert.equal(answer.status, 503);
    } finally {
      await db.query('alter table auth.users rename column gone to last_sign_in_at');
    }
    const session = await db.session(t);
    await session.query('begin; lock table auth.users in access exclusive mode');
    assert.equal((await probe(server, user.email)).status, 503);
    await session.query('rollback');
    await until('well again', async () => (await probe(server, user.email)).status === 200);
  });

  it('has had none of it in any line, nor in the metrics', async () => {
    const text = JSON.stringify(server.lines) + (await ops(server, '/metrics')).body;
    for (const secret of [domain, 'canary-token', canaryKey, forwardedAddress, clientAddress]) assert.ok(!text.includes(secret), secret);
  });

  it('is one JSON object a line with time, level and event', async () => {
    server.assertClean();
    let last = '';
    for (const line of server.lines) {
      assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      assert.ok(['debug', 'info', 'warn', 'error'].includes(line.level), JSON.stringify(line));
      assert.ok(typeof line.event === 'string' && line.event.length > 0);
      last = line.time > last ? line.time : last;
    }
    assert.ok(last);
  });

  it('tells the start in a few lines: where it listens, when it is ready', async (t) => {
    const quiet = await serve(t, { database: db });
    assert.deepEqual(quiet.events('listening').map((line) => line.listener), ['public', 'ops']);
    await quiet.line('ready', (line) => line.event === 'ready');
    assert.ok(quiet.lines.length < 15, JSON.stringify(quiet.lines));
    await probe(quiet, address('nobody'));
    await quiet.stop();
  });

  it('has no line for a request with RECLAIM_ACCESS_LOG=off', async (t) => {
    const quiet = await serve(t, { database: db, env: { RECLAIM_ACCESS_LOG: 'off' } });
    await probe(quiet, address('nobody'));
    await quiet.stop();
    assert.deepEqual(quiet.events('request'), []);
  });

  it('leaves out lines below RECLAIM_LOG_LEVEL', async (t) => {
    const port = await freePort();
    const terse = await serve(t, { database: db, env: { RECLAIM_LOG_LEVEL: 'error', RECLAIM_OPS_LISTEN: `127.0.0.1:${port}` }, wait: 'nothing' });
    await until('ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200);
    assert.deepEqual(terse.lines, []);
    await terse.stop();
  });
});
