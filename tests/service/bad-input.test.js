// Bodies that are not what the probe takes: each gets a clear answer, and the server goes on.

import assert from 'node:assert/strict';
import http from 'node:http';
import { after, before, describe, it } from 'node:test';

import { post, probe } from './lib/http.js';
import { address, domain } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { RawConnection, exchange, rawPost } from './lib/raw.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const good = `someone@${domain}`;
const bytes = (...parts) => Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([].concat(part)))));
const inAddress = (...middle) => bytes('{"email":"a', ...middle, `b@${domain}"}`);

const malformed = {
  'an empty body': '',
  'only white space': ' \n\t ',
  'no JSON': 'hello',
  'a form': `email=${good}`,
  'an unfinished object': `{"email":"${good}"`,
  'a single quote': `{'email':'${good}'}`,
  'a trailing comma': `{"email":"${good}",}`,
  'a comment': `{"email":"${good}"/* */}`,
  'something behind the object': `{"email":"${good}"} x`,
  'two objects': `{"email":"${good}"}{"email":"${good}"}`,
  'an array': `[{"email":"${good}"}]`,
  'an empty array': '[]',
  'a number': '5',
  'a string': `"${good}"`,
  'null': 'null',
  'true': 'true',
  'arrays nested 10,000 deep': '['.repeat(10_000),
  'objects nested 3,000 deep': '{"a":'.repeat(3_000),
  'arrays nested 8,000 deep and closed': `${'['.repeat(8_000)}${']'.repeat(8_000)}`,
  'arrays nested 8,000 deep as the address': `{"email":${'['.repeat(8_000)}${']'.repeat(8_000)}}`,
  'no address': '{}',
  'an address under another name': `{"Email":"${good}"}`,
  'a number as address': '{"email":5}',
  'null as address': '{"email":null}',
  'true as address': '{"email":true}',
  'an array as address': `{"email":["${good}"]}`,
  'an object as address': `{"email":{"value":"${good}"}}`,
  'the address twice': `{"email":"${good}","email":"${good}"}`,
  'another field twice': `{"email":"${good}","x":1,"x":1}`,
  'a field twice further in': `{"email":"${good}","x":{"y":{"z":1,"z":2}}}`,
  'a field twice, once written with an escape': `{"email":"${good}","\\u0065mail":"${good}"}`,
  'a NUL byte in the address': inAddress(0),
  'an escaped NUL in the address': inAddress('\\u0000'),
  'a NUL behind the object': bytes(`{"email":"${good}"}`, 0),
  'an escaped NUL in a name': `{"email":"${good}","a\\u0000b":1}`,
  'a bare new line in the address': inAddress('\n'),
  'an overlong slash': inAddress([0xc0, 0xaf]),
  'an overlong NUL': inAddress([0xc0, 0x80]),
  'an overlong dot of three bytes': inAddress([0xe0, 0x80, 0xae]),
  'a byte that UTF-8 never has': inAddress(0xff),
  'a character cut short': inAddress([0xe2, 0x82]),
  'a surrogate in UTF-8': inAddress([0xed, 0xa0, 0x80]),
  'half a surrogate pair, escaped': inAddress('\\ud800'),
  'a character past U+10FFFF': inAddress([0xf4, 0x90, 0x80, 0x80]),
  'UTF-16': Buffer.from(`{"email":"${good}"}`, 'utf16le'),
  'an empty address': '{"email":""}',
  'an address of white space': '{"email":"  \\t "}',
  'an address without @': `{"email":"someone.${domain}"}`,
  'an address without a name': `{"email":"@${domain}"}`,
  'an address without a domain': '{"email":"someone@"}',
  'an address with two @': `{"email":"a@b@${domain}"}`,
  'an address with a space inside': `{"email":"some one@${domain}"}`,
  'an address in angle brackets': `{"email":"Some One <${good}>"}`,
  'two addresses': `{"email":"${good},${good}"}`,
  'a domain of one label': '{"email":"someone@canary-reclaim"}',
  'a correlation id that is no UUID': `{"email":"${good}","correlationId":"42"}`,
  'a correlation id that is no string': `{"email":"${good}","correlationId":42}`,
};

describe('a body that the probe does not take', () => {
  const stage = new Stage();
  let server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    server = await serve(stage, { database: await cluster.database(stage) });
  });
  after(() => stage.end());

  const assertStillWell = async () => assert.equal((await probe(server, address('nobody'))).status, 200);

  for (const [what, body] of Object.entries(malformed))
    it(`${what} is refused as malformed`, async () => {
      const answer = await post(server, body);
      assert.equal(answer.status, 400, answer.body);
      assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_007');
      assert.equal(answer.json.error.httpStatus, 400);
      assert.equal(answer.json.correlationId, answer.headers['x-correlation-id']);
    });

  it('nothing of a refused body comes back', async () => {
    const answer = await post(server, '{"email":"<script>canary-token-b5f1</script>"}');
    assert.equal(answer.status, 400);
    assert.ok(!answer.body.includes('canary'), answer.body);
  });

  const wellFormed = {
    'white space around everything': ` \r\n{ "email" :\t"${good}" } \n`,
    'the address written with escapes': `{"email":"some\\u006fne\\u0040${domain}"}`,
    'other fields in front and behind': `{"a":[[]],"email":"${good}","b":{"email":7}}`,
    'a body of 16 KiB': `{"email":"${good}"}`.padEnd(16 * 1024, ' '),
  };
  for (const [what, body] of Object.entries(wellFormed))
    it(`${what} is taken`, async () => {
      const answer = await post(server, body);
      assert.equal(answer.status, 200, answer.body);
      assert.equal(answer.json.data.status, 'not_registered');
    });

  it('a body in chunks is taken', async () => {
    const json = JSON.stringify({ email: good });
    const chunks = [...json].map((byte) => `1\r\n${byte}\r\n`).join('');
    const { answers } = await exchange(server, rawPost(`${chunks}0\r\n\r\n`, { headers: ['Transfer-Encoding: chunked'], close: true }));
    assert.equal(answers.length, 1);
    assert.equal(answers[0].status, 200);
  });

  it('a client that waits for 100 Continue gets it, and its answer', async () => {
    const json = JSON.stringify({ email: good });
    const connection = await RawConnection.open(server);
    connection.send(rawPost('', { headers: [`Content-Length: ${json.length}`, 'Expect: 100-continue'], close: true }));
    assert.equal((await connection.answer(1)).status, 100);
    connection.send(json);
    assert.equal((await connection.answer(2)).status, 200);
    connection.destroy();
  });

  for (const size of [16 * 1024 + 1, 20_000, 1024 * 1024])
    it(`a body of ${size} bytes is read, thrown away and answered 413`, async () => {
      const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
      const answer = await post(server, `{"email":"${good}"}`.padEnd(size, ' '), { agent });
      assert.equal(answer.status, 413);
      assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_007');
      assert.equal(answer.json.error.httpStatus, 413);
      const next = await probe(server, good, { agent }); // over the same connection, or a new one if it was closed
      assert.equal(next.status, 200);
      agent.destroy();
    });

  it('twenty-five clients with 1 MB each all live to see the 413', async () => {
    const body = '['.repeat(1024 * 1024);
    const answers = await Promise.all(Array.from({ length: 25 }, () => post(server, body)));
    assert.deepEqual(answers.map((answer) => answer.status), Array(25).fill(413));
  });

  it('1 MB in chunks is answered 413', async () => {
    const chunk = `1000\r\n${' '.repeat(0x1000)}\r\n`;
    const connection = await RawConnection.open(server);
    connection.send(rawPost(`${chunk.repeat(256)}0\r\n\r\n`, { headers: ['Transfer-Encoding: chunked'] }));
    assert.equal((await connection.answer(1)).status, 413);
    connection.destroy();
  });

  it('10,000 arrays opened and closed are too large', async () => {
    const answer = await post(server, `${'['.repeat(10_000)}${']'.repeat(10_000)}`);
    assert.equal(answer.status, 413);
  });

  it('one connection gets its answers through a mix of good and bad bodies', async () => {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    const statuses = [];
    for (const body of [`{"email":"${good}"}`, 'x', `{"email":"${good}"}`, '', '['.repeat(9_000), `{"email":"${good}"}`])
      statuses.push((await post(server, body, { agent })).status);
    assert.deepEqual(statuses, [200, 400, 200, 400, 400, 200]);
    agent.destroy();
  });

  it('a random body never gets anything but 200 or 400', async () => {
    let seed = 20251027;
    const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
    const template = Buffer.from(`{"email":"${good}","x":[1,{"y":"\\u00e4"}]}`);
    for (let round = 0; round < 300; round++) {
      const body = Buffer.from(template);
      for (let changes = 1 + random(4); changes > 0; changes--) body[random(body.length)] = random(256);
      const answer = await post(server, body.subarray(0, body.length - (random(4) ? 0 : random(body.length))));
      assert.ok([200, 400].includes(answer.status), `${answer.status} for ${body.toString('latin1')}`);
    }
    await assertStillWell();
  });

  it('bad bodies are no errors of the server', async () => {
    await assertStillWell();
    assert.deepEqual(server.lines.filter((line) => line.level === 'error'), []);
  });
});
