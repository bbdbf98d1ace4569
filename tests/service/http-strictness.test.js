// Shapes of requests that two servers in a row may read differently, and clients that dawdle or leave.

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';

import { ops, probe, probePath, request } from './lib/http.js';
import { faultsOf } from './lib/openapi.js';
import { addUser, address, domain } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { RawConnection, exchange, rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage, pause, until } from './lib/stage.js';

const json = `{"email":"someone@${domain}"}`;
const length = `Content-Length: ${json.length}`;
const head = (...lines) => `${[`POST ${probePath} HTTP/1.1`, ...lines].join('\r\n')}\r\n\r\n`;
const host = 'Host: reclaim.example.com';
const smuggled = `GET /smuggled HTTP/1.1\r\n${host}\r\n\r\n`;
const chunked = `${json.length.toString(16)}\r\n${json}\r\n0\r\n\r\n`;

/** Each is answered with 400, exactly once, and the connection is closed: nothing behind it is read as a request. */
const refused = {
  'a length beside a transfer coding': head(host, length, 'Transfer-Encoding: chunked') + chunked + smuggled,
  'a transfer coding beside a length': head(host, 'Transfer-Encoding: chunked', length) + chunked + smuggled,
  'the same length twice': head(host, length, length) + json + smuggled,
  'two different lengths': head(host, length, 'Content-Length: 5') + json + smuggled,
  'two lengths in one field': head(host, `Content-Length: ${json.length}, ${json.length}`) + json + smuggled,
  'a length with a sign': head(host, `Content-Length: +${json.length}`) + json + smuggled,
  'a negative length': head(host, 'Content-Length: -1') + json + smuggled,
  'a hexadecimal length': head(host, `Content-Length: 0x${json.length.toString(16)}`) + json + smuggled,
  'an empty length': head(host, 'Content-Length:') + json + smuggled,
  'a length in words': head(host, 'Content-Length: many') + json + smuggled,
  'no host': head(length) + json + smuggled,
  'two hosts': head(host, 'Host: other.example.com', length) + json + smuggled,
  'the same host twice': head(host, host, length) + json + smuggled,
  'a space in front of the colon': head(host, 'X-Odd : value', length) + json + smuggled,
  'a space in front of the colon of the length': head(host, `Content-Length : ${json.length}`) + json + smuggled,
  'a space in front of the colon of the transfer coding': head(host, 'Transfer-Encoding : chunked') + chunked + smuggled,
  'a field without a name': head(host, ': value', length) + json + smuggled,
  'a field without a colon': head(host, 'X-Odd', length) + json + smuggled,
  'a field continued on the next line': head(host, 'X-Odd: one\r\n two', length) + json + smuggled,
  'a NUL in a field': head(host, 'X-Odd: a\0b', length) + json + smuggled,
  'a NUL in the length': head(host, `Content-Length: ${json.length}\x000`) + json + smuggled,
  'a length continued on the next line': head(host, `Content-Length:\r\n ${json.length}`) + json + smuggled,
  'an unknown transfer coding': head(host, 'Transfer-Encoding: gzip') + chunked + smuggled,
  'two transfer codings': head(host, 'Transfer-Encoding: gzip, chunked') + chunked + smuggled,
  'chunked twice': head(host, 'Transfer-Encoding: chunked', 'Transfer-Encoding: chunked') + chunked + smuggled,
  'chunked, then identity': head(host, 'Transfer-Encoding: chunked', 'Transfer-Encoding: identity') + chunked + smuggled,
  'the identity coding': head(host, 'Transfer-Encoding: identity', length) + json + smuggled,
  'almost chunked': head(host, 'Transfer-Encoding: xchunked') + chunked + smuggled,
  'chunked with a vertical tab': head(host, 'Transfer-Encoding: \x0bchunked') + chunked + smuggled,
  'a bare carriage return in a field': head(host, 'X-Odd: a\rb', length) + json + smuggled,
  'a transfer coding in HTTP/1.0': `POST ${probePath} HTTP/1.0\r\n${host}\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}${smuggled}`,
};

/** libmicrohttpd answers before the server sees the request. */
const inTheLibrarysWords = 'a field without a colon';

/** Each ends with a refusal or a closed connection: the body cannot be read, so nothing behind it can. */
const brokenBodies = {
  'a chunk size in no digits': `${head(host, 'Transfer-Encoding: chunked')}xyz\r\n${json}\r\n0\r\n\r\n`,
  'a negative chunk size': `${head(host, 'Transfer-Encoding: chunked')}-5\r\n${json}\r\n0\r\n\r\n`,
  'a chunk size with 0x': `${head(host, 'Transfer-Encoding: chunked')}0x${chunked}`,
  'a chunk size past all bounds': `${head(host, 'Transfer-Encoding: chunked')}fffffffffffffffffff\r\n${json}\r\n0\r\n\r\n`,
  'a chunk longer than its size': `${head(host, 'Transfer-Encoding: chunked')}5\r\n${json}\r\n0\r\n\r\n`,
  'an empty chunk size': `${head(host, 'Transfer-Encoding: chunked')}\r\n${json}\r\n0\r\n\r\n`,
};

/** Not HTTP/1.1 at all: refused by the first look, whatever words are found for it. */
const foreign = {
  'HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'a version from the future': `GET /openapi.json HTTP/3.0\r\n${host}\r\n\r\n`,
  'a version that is none': `GET /openapi.json HTP/1.1\r\n${host}\r\n\r\n`,
  'a request line of one word': 'HELLO\r\n\r\n',
  'TLS': Buffer.from('16030100a5010000a10303', 'hex'),
  'a header of 64 KiB': head(host, `X-Long: ${'x'.repeat(65536)}`, length) + json,
  '2,000 headers': head(host, ...Array.from({ length: 2000 }, (_, n) => `X-Many-${n}: value of some length`), length) + json,
  'a path of 64 KiB': `GET /${'x'.repeat(65536)} HTTP/1.1\r\n${host}\r\n\r\n`,
};

describe('a request that can be read in two ways', () => {
  const stage = new Stage();
  let server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    server = await serve(stage, { database: await cluster.database(stage), env: { RECLAIM_TEST_REQUEST_DEADLINE_MS: '2000' } });
  });
  after(() => stage.end());

  const assertStillWell = async () => assert.equal((await probe(server, address('nobody'))).status, 200);

  for (const [what, bytes] of Object.entries(refused))
    it(`${what} is refused and the connection closed`, async () => {
      const { answers, rest } = await exchange(server, bytes);
      assert.deepEqual(answers.map((answer) => answer.status), [400]);
      assert.equal(answers[0].headers.connection?.toLowerCase(), 'close');
      if (what !== inTheLibrarysWords) assert.deepEqual(faultsOf('#/components/responses/FunctionMalformed', answers[0]), []);
      assert.equal(rest, '');
      await assertStillWell();
    });

  for (const [what, bytes] of Object.entries(brokenBodies))
    it(`${what} is not taken`, async () => {
      const { answers } = await exchange(server, bytes, { halfClose: true });
      assert.ok(answers.length <= 1);
      if (answers.length) assert.ok([400, 413].includes(answers[0].status), String(answers[0].status));
      await assertStillWell();
    });

  for (const [what, bytes] of Object.entries(foreign))
    it(`${what} is turned away`, async () => {
      const { answers } = await exchange(server, bytes, { halfClose: true });
      assert.ok(answers.length <= 1);
      if (answers.length) assert.ok(answers[0].status >= 400 && answers[0].status < 506, String(answers[0].status));
      await assertStillWell();
    });

  for (const [what, bytes] of [
    ['two hosts', head(host, host, length) + json],
    ['two lengths', head(host, length, length) + json],
    ['a length beside a transfer coding', head(host, length, 'Transfer-Encoding: chunked') + chunked],
    ['no host', head(length) + json],
  ])
    it(`the refusal of ${what} is the error envelope`, async () => {
      const { answers } = await exchange(server, bytes);
      assert.deepEqual(answers.map((answer) => answer.status), [400]);
      assert.deepEqual(faultsOf('#/components/responses/FunctionMalformed', answers[0]), []);
    });

  it('outside /functions/v1 the refusal is a plain error', async () => {
    const { answers } = await exchange(server, `GET /openapi.json HTTP/1.1\r\n${host}\r\n${host}\r\n\r\n`);
    assert.deepEqual(answers.map((answer) => answer.status), [400]);
    assert.deepEqual(faultsOf('#/components/responses/BadRequest', answers[0]), []);
    assert.equal(JSON.parse(answers[0].body).error, 'BAD_REQUEST');
  });

  it('a head that leaves no room for its answer is too large', async () => {
    for (const fields of [[`X-Long: ${'x'.repeat(15000)}`], [`Cookie: session=${'x'.repeat(7300)}`], Array.from({ length: 220 }, (_, n) => `X-${n}: y`)]) {
      const { answers, rest } = await exchange(server, `GET /openapi.json HTTP/1.1\r\n${[host, ...fields].join('\r\n')}\r\n\r\n`);
      assert.deepEqual(answers.map((answer) => answer.status), [431]);
      assert.deepEqual(faultsOf('#/components/responses/HeadersTooLarge', answers[0]), []);
      assert.equal(rest, '');
    }
    const inside = await exchange(server, head(host, `X-Long: ${'x'.repeat(15000)}`, length) + json);
    assert.deepEqual(inside.answers.map((answer) => [answer.status, JSON.parse(answer.body).error.httpStatus]), [[431, 431]]);
    await assertStillWell();
  });

  it('a length past all bounds is too large', async () => {
    const { answers, rest } = await exchange(server, head(host, 'Content-Length: 99999999999999999999999999') + json + smuggled);
    assert.deepEqual(answers.map((answer) => answer.status), [413]);
    assert.equal(JSON.parse(answers[0].body).error.httpStatus, 413);
    assert.equal(rest, '');
    await assertStillWell();
  });

  it('lines that end in LF alone are never read as two requests', async () => {
    const { answers } = await exchange(server, `${head(host, length)}`.replaceAll('\r\n', '\n') + json, { halfClose: true });
    assert.ok(answers.length <= 1);
  });

  it('a request of HTTP/0.9 gets no page', async () => {
    const { answers } = await exchange(server, 'GET /openapi.json\r\n', { halfClose: true });
    for (const answer of answers) assert.ok(answer.status >= 400);
  });

  it('HTTP/1.0 is served, and the connection closed', async () => {
    const { answers } = await exchange(server, `POST ${probePath} HTTP/1.0\r\n${length}\r\n\r\n${json}`);
    assert.deepEqual(answers.map((answer) => answer.status), [200]);
  });

  it('the absolute form of a path leads to the same place or is refused', async () => {
    const bytes = rawPost(json, { path: `http://reclaim.example.com${probePath}`, close: true });
    const { answers } = await exchange(server, bytes);
    assert.equal(answers.length, 1);
    assert.ok([200, 400, 404].includes(answers[0].status));
  });

  for (const [path, promise] of [
    ['/functions/v1/check-email-status/', 'a slash at the end'],
    ['/functions/v1//check-email-status', 'two slashes'],
    ['/functions/v1/../v1/check-email-status', 'dots'],
    ['/FUNCTIONS/v1/check-email-status', 'capitals'],
    ['/functions/v1/check-email-status%00', 'an escaped NUL'],
    ['/functions/v1/check-email-statusx', 'one letter more'],
  ])
    it(`${promise} in the path is another path`, async () => {
      const { answers } = await exchange(server, rawPost(json, { path, close: true }));
      assert.deepEqual(answers.map((answer) => answer.status), [404]);
    });

  it('a query behind the path changes nothing', async () => {
    const { answers } = await exchange(server, rawPost(json, { path: `${probePath}?email=x&email=y`, close: true }));
    assert.deepEqual(answers.map((answer) => answer.status), [200]);
  });

  for (const method of ['GET', 'PUT', 'DELETE', 'PATCH', 'BREW'])
    it(`${method} is answered 405 and told what is allowed`, async () => {
      const answer = await request(server, { method: method === 'BREW' ? 'PROPFIND' : method, path: probePath });
      assert.equal(answer.status, 405);
      assert.equal(answer.headers.allow, 'POST, OPTIONS');
      assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_007');
      assert.equal(answer.json.error.httpStatus, 405);
    });

  it('HEAD is answered 405 without a body', async () => {
    const answer = await request(server, { method: 'HEAD', path: probePath });
    assert.equal(answer.status, 405);
    assert.equal(answer.body, '');
  });

  it('TRACE gives nothing back', async () => {
    const { answers } = await exchange(server, `TRACE /openapi.json HTTP/1.1\r\n${host}\r\nX-Secret: canary-token-b5f1\r\nConnection: close\r\n\r\n`);
    assert.equal(answers[0].status, 405);
    assert.ok(!answers[0].body.includes('canary'));
  });

  it('a path that leads nowhere is answered 404', async () => {
    for (const path of ['/nowhere', '/functions', '/livez', '/metrics']) {
      const answer = await request(server, { path });
      assert.equal(answer.status, 404, path);
      assert.equal(answer.json.error, 'NOT_FOUND');
    }
    const inside = await request(server, { method: 'POST', path: '/functions/v1/nowhere', body: json });
    assert.equal(inside.status, 404);
    assert.equal(inside.json.success, false);
  });
});

describe('a client that dawdles', () => {
  const deadlineMs = 1500;
  const stage = new Stage();
  let server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    server = await serve(stage, {
      database: await cluster.database(stage),
      env: { RECLAIM_TEST_REQUEST_DEADLINE_MS: String(deadlineMs) },
    });
  });
  after(() => stage.end());

  /** Sends the start at once, then byte after byte for ever; the server must end it, and not before its time. */
  async function drip(start, forEver) {
    const began = performance.now();
    const connection = await RawConnection.open(server);
    connection.send(start);
    const timer = setInterval(() => connection.send(forEver), 50);
    try {
      await connection.untilClosed();
    } finally {
      clearInterval(timer);
      connection.destroy();
    }
    assert.ok(performance.now() - began >= deadlineMs * 0.9, 'closed before its deadline');
    assert.ok(!connection.answers.some((answer) => answer.status < 400));
  }

  it('with its first line is cut off', () => drip('PO', 'S'));
  it('with its headers is cut off, though it is never idle', () => drip(`POST ${probePath} HTTP/1.1\r\n${host}\r\n`, 'X-A: b\r\n'));
  it('in the middle of a header is cut off', () => drip(`POST ${probePath} HTTP/1.1\r\n${host}\r\nX-A: `, 'b'));
  it('with its body is cut off', () => drip(head(host, 'Content-Length: 10000'), ' '));
  it('with its chunks is cut off', () => drip(head(host, 'Transfer-Encoding: chunked'), '1\r\n \r\n'));
  it('with a body that is thrown away anyway is cut off', () => drip(head(host, 'Content-Length: 1000000') + ' '.repeat(20000), ' '));
  it('by saying nothing at all is cut off', () => drip('', ''));

  it('on its second request is cut off as well', async () => {
    const connection = await RawConnection.open(server);
    const began = performance.now();
    connection.send(rawPost(json));
    assert.equal((await connection.answer(1)).status, 200);
    connection.send(`POST ${probePath} HTTP/1.1\r\n${host}\r\nX-A: `);
    const timer = setInterval(() => connection.send('b'), 50);
    try {
      await connection.untilClosed();
    } finally {
      clearInterval(timer);
      connection.destroy();
    }
    assert.ok(performance.now() - began >= deadlineMs * 0.9, 'closed before its deadline');
  });

  it('five hundred of them keep nobody else waiting', async () => {
    const loris = await Promise.all(Array.from({ length: 500 }, () => RawConnection.open(server)));
    for (const connection of loris) connection.send(`POST ${probePath} HTTP/1.1\r\n${host}\r\nX-A: `);
    for (let n = 0; n < 20; n++) assert.equal((await probe(server, address('nobody'))).status, 200);
    await Promise.all(loris.map((connection) => connection.untilClosed()));
    loris.forEach((connection) => connection.destroy());
  });
});

describe('a client that keeps, halves or leaves its connection', () => {
  const holdMs = 300;
  const stage = new Stage();
  let server, db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { RECLAIM_PROBE_HOLD_MS: String(holdMs) } });
  });
  after(() => stage.end());

  const held = async () => Number(/^reclaim_http_held (\S+)$/m.exec((await ops(server, '/metrics')).body)[1]);

  it('still gets its answer when it has closed its sending side', async () => {
    const { answers, closed } = await exchange(server, rawPost(json), { halfClose: true });
    assert.deepEqual(answers.map((answer) => answer.status), [200]);
    assert.equal(closed, 'end');
  });

  it('gets answers to pipelined requests in order', async () => {
    const ids = Array.from({ length: 5 }, (_, n) => `0000000${n}-1111-4111-8111-111111111111`);
    const connection = await RawConnection.open(server);
    connection.send(ids.map((id) => rawPost(json, { headers: [`X-Correlation-Id: ${id}`] })).join(''));
    await connection.answer(5);
    assert.deepEqual(connection.answers.map((answer) => answer.headers['x-correlation-id']), ids);
    assert.deepEqual(connection.answers.map((answer) => answer.status), Array(5).fill(200));
    connection.destroy();
  });

  it('gets pipelined answers when it then closed its sending side', async () => {
    const { answers } = await exchange(server, rawPost(json) + rawPost(json), { halfClose: true });
    assert.deepEqual(answers.map((answer) => answer.status), [200, 200]);
  });

  it('uses one connection for many requests', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    let sockets = 0;
    agent.on('free', () => {});
    const create = agent.createConnection;
    agent.createConnection = function (...args) {
      sockets++;
      return create.apply(this, args);
    };
    for (let n = 0; n < 5; n++) assert.equal((await probe(server, address('nobody'), { agent })).status, 200);
    assert.equal(sockets, 1);
    agent.destroy();
  });

  it('may send its request in single bytes', async () => {
    const connection = await RawConnection.open(server);
    for (const byte of rawPost(json)) {
      connection.send(byte);
      await new Promise(setImmediate);
    }
    assert.equal((await connection.answer(1)).status, 200);
    connection.destroy();
  });

  it('may leave while its answer is held, and others do not notice', async () => {
    const user = await addUser(db);
    for (const leave of ['abort', 'destroy']) {
      const leavers = await Promise.all(Array.from({ length: 100 }, () => RawConnection.open(server)));
      for (const connection of leavers) connection.send(rawPost(JSON.stringify({ email: user.email })));
      const others = Promise.all(Array.from({ length: 10 }, () => probe(server, user.email)));
      await pause(20);
      for (const connection of leavers) connection[leave]();
      for (const answer of await others) assert.equal(answer.json.data.isOrphaned, true);
    }
    await until('no answer held for those who left', async () => (await held()) === 0);
  });

  it('may leave in the middle of its body', async () => {
    for (let n = 0; n < 50; n++) {
      const connection = await RawConnection.open(server);
      connection.send(head(host, 'Content-Length: 1000') + json);
      connection.abort();
    }
    assert.equal((await probe(server, address('nobody'))).status, 200);
  });
});

describe('two thousand clients at once', () => {
  const holdMs = 3000;
  const stage = new Stage();
  let server, db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env: { RECLAIM_PROBE_HOLD_MS: String(holdMs) } });
  });
  after(() => stage.end());

  it('are all held, and all answered', async () => {
    const orphan = await addUser(db);
    const connections = [];
    const sentAt = [];
    const ask = async (n) => {
      connections[n] = await RawConnection.open(server);
      sentAt[n] = performance.now();
      connections[n].send(rawPost(JSON.stringify({ email: n % 2 ? orphan.email : address('nobody') })));
    };
    for (let n = 0; n < 2000; n += 100) await Promise.all(Array.from({ length: 100 }, (_, m) => ask(n + m)));
    for (const [n, connection] of connections.entries()) {
      const answer = await connection.answer(1, 120_000);
      assert.equal(answer.status, 200, answer.body);
      assert.equal(JSON.parse(answer.body).data.isOrphaned, n % 2 === 1);
      assert.ok(answer.answeredAt - sentAt[n] >= holdMs, 'released early');
      connection.destroy();
    }
  });
});

describe('more connections than there may be', () => {
  const stage = new Stage();
  let server;
  const metric = async (name) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec((await ops(server, '/metrics')).body)?.[1] ?? 0);
  const open = (count, localAddress) => Promise.all(Array.from({ length: count }, () => RawConnection.open(server, { localAddress })));
  before(async () => {
    const cluster = await Cluster.create(stage);
    server = await serve(stage, {
      database: await cluster.database(stage),
      env: { RECLAIM_MAX_CONNECTIONS: '32', RECLAIM_CONNECTIONS_PER_NETWORK: '20', RECLAIM_TEST_COUNT_LOOPBACK: '1' },
    });
  });
  after(() => stage.end());

  it('of one client network are closed at once, and other networks are served', async () => {
    const many = await open(30, '127.0.0.20');
    await until('ten of them closed', () => many.filter((connection) => connection.closed).length === 10);
    assert.equal(await metric('reclaim_http_refused_connections_total'), 10);
    assert.equal((await probe(server, address('nobody'))).status, 200);
    many.forEach((connection) => connection.destroy());
    await server.withoutConnections();
  });

  it('of many client networks cost those that are idle for longest theirs', async () => {
    const idle = [];
    for (let n = 0; n < 20; n++) idle.push(...(await open(4, `127.0.1.${n + 1}`)));
    for (let n = 0; n < 5; n++) assert.equal((await probe(server, address('nobody'))).status, 200);
    await until('no more open than may be', () => idle.filter((connection) => !connection.closed).length <= 32);
    assert.ok((await metric('reclaim_http_idle_closed_total')) >= 48);
    idle.forEach((connection) => connection.destroy());
    await server.withoutConnections();
  });
});
