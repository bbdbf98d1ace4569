// Tokens that an operator signs at the command line, read by means other than Reclaim's own.

import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';

import { canaryJwtSecret, canaryPassword } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { run, serve } from './lib/reclaim.js';
import { stageOf } from './lib/stage.js';

const secretly = { env: { RECLAIM_JWT_SECRET: canaryJwtSecret } };

/** The claims of a token, after its form and signature were checked. */
function claimsOf(stdout, secret) {
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
    const { code, stdout, stderr } = await run(t, ['token', '--role', 'authenticated', '--sub', sub], secretly);
    assert.equal(code, 0, stderr);
    assert.equal(stderr, '');
    const claims = claimsOf(stdout, canaryJwtSecret);
    assert.equal(claims.sub, sub);
    assert.equal(claims.role, 'authenticated');
    assert.equal(claims.aud, 'authenticated');
    assert.equal(claims.exp - claims.iat, 3600);
    assert.ok(claims.iat >= before && claims.iat <= Math.floor(Date.now() / 1000));
  });

  it('signs for an admin, for as long as it is told', async (t) => {
    const { stdout } = await run(t, ['token', '--role=admin', '--ttl=30d'], secretly);
    const claims = claimsOf(stdout, canaryJwtSecret);
    assert.equal(claims.role, 'service_role');
    assert.equal('sub' in claims, false);
    assert.equal(claims.exp - claims.iat, 30 * 86400);
  });

  it('takes the secret from a file', async (t) => {
    const file = path.join(temporaryDirectory(stageOf(t)), 'jwt');
    fs.writeFileSync(file, `${canaryJwtSecret}\n`, { mode: 0o600 });
    const { stdout, stderr } = await run(t, ['token', '--role', 'admin'], { env: { RECLAIM_JWT_SECRET_FILE: file } });
    assert.equal(stderr, '');
    claimsOf(stdout, canaryJwtSecret);
  });

  it('of a demo is signed with the secret that the demo made', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const server = await serve(t, { directory, args: ['--demo'] });
    const file = path.join(directory, 'data', 'jwt-secret');
    const secret = fs.readFileSync(file, 'utf8').trim();
    assert.equal(Buffer.from(secret, 'base64url').length, 32);
    assert.equal(fs.statSync(file).mode & 0o7777, 0o600);
    const { code, stdout, stderr } = await run(t, ['token', '--role', 'admin'], { directory });
    assert.equal(code, 0, stderr);
    assert.equal(claimsOf(stdout, secret).role, 'service_role');
    await server.stop();
    assert.ok(!fs.readFileSync(server.logPath, 'utf8').includes(secret));
  });

  it('without a secret says what to do', async (t) => {
    const none = await run(t, ['token', '--role', 'admin']);
    assert.equal(none.code, 1);
    assert.equal(none.stdout, '');
    assert.match(none.stderr, /^reclaim token: RECLAIM_JWT_SECRET is not set: .*RECLAIM_DATA_DIR\n$/);

    const { publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const file = path.join(temporaryDirectory(stageOf(t)), 'jwks.json');
    fs.writeFileSync(file, JSON.stringify({ keys: [{ ...publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'ES256' }] }));
    const publicOnly = await run(t, ['token', '--role', 'admin'], { env: { RECLAIM_JWKS_FILE: file } });
    assert.equal(publicOnly.code, 1);
    assert.match(publicOnly.stderr, /RECLAIM_JWKS_FILE holds public keys, which sign nothing/);
  });

  it('settings that contradict each other are refused, and no secret is shown', async (t) => {
    const both = await run(t, ['token', '--role', 'admin'], {
      env: { RECLAIM_JWT_SECRET: canaryJwtSecret, RECLAIM_JWKS_FILE: '/nowhere' },
    });
    assert.equal(both.code, 1);
    assert.match(both.stderr, /RECLAIM_JWT_SECRET and RECLAIM_JWKS_FILE are both set/);
    const short = await run(t, ['token', '--role', 'admin'], { env: { RECLAIM_JWT_SECRET: canaryPassword } });
    assert.equal(short.code, 1);
    assert.match(short.stderr, /RECLAIM_JWT_SECRET: its value \(not shown\) is not a secret of 32 to 512 characters/);
    for (const { stderr } of [both, short]) assert.ok(!stderr.includes('canary'), stderr);
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
      const { code, stdout, stderr } = await run(t, ['token', ...args], secretly);
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
