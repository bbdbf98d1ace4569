// Tokens that an operator signs at the command line, read by means other than Reclaim's own.

import assert from 'node:assert/strict';
import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

import { request } from './lib/http.js';
import { canaryJwtSecret, canaryKey, canaryPassword } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { run, serve } from './lib/reclaim.js';
import { stageOf } from './lib/stage.js';

/** The claims of a token, after its form and signature were checked: with a key that is derived from the master key. */
function claimsOf(stdout, master = canaryKey) {
  const secret = Buffer.from(hkdfSync('sha256', master, '', 'tokens', 32));
  assert.match(stdout, /^[\w-]+\.[\w-]+\.[\w-]{43}\n$/, 'the token stands alone on stdout');
  const [header, payload, signature] = stdout.trim().split('.');
  assert.equal(signature, createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url'));
  assert.deepEqual(JSON.parse(Buffer.from(header, 'base64url')), { alg: 'HS256', typ: 'JWT' });
  return JSON.parse(Buffer.from(payload, 'base64url'));
}

describe('reclaim token', () => {
  it('signs for a user, for an hour', async (t) => {
    const sub = randomUUID();
    const before = Math.floor(Date.now() / 1000);
    const { code, stdout, stderr } = await run(t, ['token', '--role', 'authenticated', '--sub', sub]);
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '');
    const claims = claimsOf(stdout);
    assert.equal(claims.sub, sub);
    assert.equal(claims.role, 'authenticated');
    assert.equal(claims.iss, 'reclaim');
    assert.equal(claims.aud, 'reclaim');
    assert.equal(claims.exp - claims.iat, 3600);
    assert.ok(claims.iat >= before && claims.iat <= Math.floor(Date.now() / 1000));
  });

  it('signs for an admin, for as long as it is told', async (t) => {
    const { stdout } = await run(t, ['token', '--role=admin', '--ttl=30d']);
    const claims = claimsOf(stdout);
    assert.equal(claims.role, 'service_role');
    assert.equal('sub' in claims, false);
    assert.equal(claims.exp - claims.iat, 30 * 86400);
  });

  it('takes the master key from a file, and the identity provider’s secret signs nothing', async (t) => {
    const file = path.join(temporaryDirectory(stageOf(t)), 'key');
    fs.writeFileSync(file, `${canaryKey}-of-a-file\n`, { mode: 0o600 });
    const env = { RECLAIM_SECRET_KEY: null, RECLAIM_SECRET_KEY_FILE: file, RECLAIM_JWT_SECRET: canaryJwtSecret };
    const { stdout, stderr } = await run(t, ['token', '--role', 'admin'], { env });
    assert.equal(stderr, '');
    claimsOf(stdout, `${canaryKey}-of-a-file`);
  });

  it('of a demo is signed with the key that the demo made', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const env = { RECLAIM_SECRET_KEY: null };
    const server = await serve(t, { directory, args: ['--demo'], env });
    const master = fs.readFileSync(path.join(directory, 'data', 'secret-key'), 'utf8').trim();
    const { code, stdout, stderr } = await run(t, ['token', '--role', 'admin'], { directory, env });
    assert.equal(code, 0, stderr);
    assert.equal(claimsOf(stdout, master).role, 'service_role');
    const answer = await request(server, { path: '/v1/customers', headers: { Authorization: `Bearer ${stdout.trim()}` } });
    assert.equal(answer.status, 200);
    assert.deepEqual(fs.readdirSync(path.join(directory, 'data')).filter((name) => /secret/.test(name)), ['secret-key']);
    await server.stop();
    assert.ok(!fs.readFileSync(server.logPath, 'utf8').includes(master));
  });

  it('without the servers’ key says what to do, and makes none', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const none = await run(t, ['token', '--role', 'admin'], { directory, env: { RECLAIM_SECRET_KEY: null } });
    assert.equal(none.code, 1);
    assert.equal(none.stdout, '');
    assert.match(none.stderr, /^reclaim token: RECLAIM_SECRET_KEY is not set, .*RECLAIM_DATA_DIR\n$/);
    assert.deepEqual(fs.readdirSync(directory), []);
  });

  it('with a key that is too short is refused, and the key not shown', async (t) => {
    for (const name of ['RECLAIM_SECRET_KEY', 'RECLAIM_JWT_SECRET']) {
      const { code, stderr } = await run(t, ['token', '--role', 'admin'], { env: { [name]: canaryPassword } });
      assert.equal(code, 1);
      assert.match(stderr, new RegExp(`${name}: its value \\(not shown\\) is not a secret of 32 to 512 characters`));
      assert.ok(!stderr.includes('canary'), stderr);
    }
  });

  for (const args of [
    [],
    ['--role'],
    ['--role', 'root'],
    ['--role', 'admin', '--sub', 'me'],
    ['--role', 'admin', '--ttl', '60'],
    ['--role', 'admin', '--ttl', '0s'],
    ['--role', 'admin', '--ttl', '3651d'],
    ['--role', 'admin', 'word'],
  ])
    it(`«reclaim token ${args.join(' ')}» is not understood`, async (t) => {
      const { code, stdout, stderr } = await run(t, ['token', ...args]);
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
    });

  it('has help', async (t) => {
    const { code, stdout } = await run(t, ['token', '--help']);
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: reclaim token --role admin\|authenticated/);
  });
});
