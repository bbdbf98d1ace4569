// Tokens of an identity provider whose public keys are at a URL: they change there, and the URL is not always within reach.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, assertError, bearer, jwtSecret, scene as sceneOn, show } from './lib/customers.js';
import { gate } from './lib/gate.js';
import { ops } from './lib/http.js';
import { hs256, IdentityProvider, SigningKey } from './lib/identity-provider.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, stageOf, until } from './lib/stage.js';

const whole = new Stage();
let cluster;
before(async () => (cluster = await Cluster.create(whole)));
after(() => whole.end());
const scene = (scope, options) => sceneOn(scope, { cluster, ...options });

const hour = { RECLAIM_TEST_KEY_SET_EVERY_MS: '60000', RECLAIM_TEST_KEY_SET_AGAIN_MS: '60000' };
const often = { RECLAIM_TEST_KEY_SET_AGAIN_MS: '20' };

describe('a server with the URL of a key set', () => {
  const stage = new Stage();
  const keys = { ES256: new SigningKey('ES256'), RS256: new SigningKey('RS256'), EdDSA: new SigningKey('EdDSA') };
  let provider, server, database, customer;
  before(async () => {
    provider = await IdentityProvider.start(stage, { keys: Object.values(keys) });
    const made = await scene(stage, { settings: { ...provider.env, ...hour } });
    server = made.server;
    database = made.db;
    customer = await addCustomer(made.db);
  });
  after(() => stage.end());

  for (const alg of Object.keys(keys))
    it(`takes tokens signed with ${alg}`, async () => {
      assert.equal((await gate(server, bearer(provider.token(customer.user, {}, keys[alg])))).status, 200);
    });

  const bad = {
    'another issuer': () => provider.token(customer.user, { iss: 'https://project.supabase.co/auth/v1' }),
    'another audience': () => provider.token(customer.user, { aud: 'anon' }),
    'the issuer "reclaim"': () => provider.token(customer.user, { iss: 'reclaim', aud: 'reclaim' }),
    'a signature of a key of another kind under the same name': () => new SigningKey('EdDSA', keys.ES256.kid).token(provider.claims(customer.user)),
    'EdDSA with the key of ES256 named': () => keys.EdDSA.token(provider.claims(customer.user), { kid: keys.ES256.kid }),
    'HS256 with a public key as the secret': () =>
      hs256(keys.RS256.pair.publicKey.export({ type: 'spki', format: 'pem' }), provider.claims(customer.user), { kid: keys.RS256.kid }),
    'HS256 with the point of the Ed25519 key as the secret': () =>
      hs256(Buffer.from(keys.EdDSA.jwk.x, 'base64url'), provider.claims(customer.user), { kid: keys.EdDSA.kid }),
    'a changed payload': () => {
      const [header, , signature] = provider.token(customer.user).split('.');
      return [header, provider.token(customer.user, { role: 'service_role' }).split('.')[1], signature].join('.');
    },
    'an Ed25519 signature of zeros': () => keys.EdDSA.token(provider.claims(customer.user)).replace(/[^.]*$/, Buffer.alloc(64).toString('base64url')),
    'an Ed25519 signature that is cut': () => keys.EdDSA.token(provider.claims(customer.user)).slice(0, -2),
  };
  for (const [what, make] of Object.entries(bad))
    it(`refuses ${what}`, async () => assertError(await gate(server, bearer(make())), 401, 'INVALID_TOKEN'));

  it("still takes Reclaim's own tokens", async () => {
    const { stdout } = await run(stage, ['token', '--role', 'admin'], { database });
    assert.equal((await show(server, customer.id, bearer(stdout.trim()))).status, 200);
  });
});

describe('a token with an unknown key', () => {
  it('waits for the set to be read again, and is taken once its key is there', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    const rotated = new SigningKey('RS256');
    provider.keys = [rotated];
    const before = provider.reads;
    const answers = await Promise.all(Array.from({ length: 20 }, () => gate(server, bearer(provider.token(customer.user, {}, rotated)))));
    assert.deepEqual([...new Set(answers.map((answer) => answer.status))], [200]);
    assert.equal(provider.reads, before + 1, 'one read for all of them');
  });

  it('has the set read at most every 30 seconds, and others do not wait', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    const before = provider.reads;
    for (let n = 0; n < 5; n++)
      assertError(await gate(server, bearer(new SigningKey('ES256').token(provider.claims(customer.user)))), 401, 'INVALID_TOKEN');
    assert.equal(provider.reads, before + 1);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
  });

  it('is 503 while the set cannot be read: nothing says that its key does not exist', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    await provider.close();
    const rotated = new SigningKey('ES256');
    for (let n = 0; n < 2; n++) assert.equal((await gate(server, bearer(provider.token(customer.user, {}, rotated)))).status, 503);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200, 'known keys stay in force');
  });

  it('keeps nobody else waiting while the URL is silent', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    let release;
    provider.answer = (response) => (release = () => response.end(JSON.stringify({ keys: provider.keys.map((key) => key.jwk) })));
    const rotated = new SigningKey('ES256');
    const waiting = gate(server, bearer(provider.token(customer.user, {}, rotated)));
    await until('the read has begun', () => release);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
    provider.keys.push(rotated);
    release();
    assert.equal((await waiting).status, 200);
  });
});

describe('a key set that changes', () => {
  it('is read again after a while: keys that are gone count no more', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, RECLAIM_TEST_KEY_SET_EVERY_MS: '50' } });
    const customer = await addCustomer(db);
    const old = provider.token(customer.user);
    assert.equal((await gate(server, bearer(old))).status, 200);
    provider.keys = [new SigningKey('ES256')];
    await until('the old key is refused', async () => (await gate(server, bearer(old))).status === 401);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
  });

  it('may have a key of another type under the same name', async (t) => {
    const provider = await IdentityProvider.start(t, { keys: [new SigningKey('RS256', 'current')] });
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    const old = provider.token(customer.user);
    assert.equal((await gate(server, bearer(old))).status, 200);
    provider.keys = [new SigningKey('ES256', 'current')];
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
    assertError(await gate(server, bearer(old)), 401, 'INVALID_TOKEN');
  });

  const valid = new SigningKey('ES256');
  const hostile = {
    'an HTML page': (response) => response.end('<!doctype html><title>Sign in</title>'),
    nothing: (response) => response.end(''),
    'no keys': (response) => response.end('{"keys":[]}'),
    'a list': (response) => response.end('[]'),
    'ten thousand keys': (response) => response.end(JSON.stringify({ keys: Array.from({ length: 10_000 }, (_, n) => ({ ...valid.jwk, kid: `${n}` })) })),
    '33 keys': (response) => response.end(JSON.stringify({ keys: Array.from({ length: 33 }, (_, n) => ({ ...valid.jwk, kid: `${n}` })) })),
    'a megabyte': (response) => response.end(JSON.stringify({ keys: [{ ...valid.jwk, x5c: 'x'.repeat(1 << 20) }] })),
    'deep nesting': (response) => response.end('['.repeat(30_000)),
    'symmetric keys alone': (response) => response.end(JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', alg: 'HS256', k: Buffer.alloc(32, 7).toString('base64url') }] })),
    'members of wrong types': (response) => response.end(JSON.stringify({ keys: [7, null, 'x', {}, { kty: 7 }, { kty: 'EC', crv: 'P-256', x: 1, y: [] }] })),
    'points that are not on the curve': (response) => response.end(JSON.stringify({ keys: [{ ...valid.jwk, y: valid.jwk.x }] })),
    'an Ed25519 point of small order': (response) =>
      response.end(JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', kid: 'a', x: Buffer.concat([Buffer.from([1]), Buffer.alloc(31)]).toString('base64url') }] })),
    'status 500': (response) => response.writeHead(500).end(JSON.stringify({ keys: [valid.jwk] })),
    'a redirect': (response) => response.writeHead(302, { Location: 'http://127.0.0.1:1/' }).end(),
    'an answer that is cut': (response) => response.writeHead(200, { 'Content-Length': 1000 }).end('{"keys":', () => response.destroy()),
  };
  const stage = new Stage();
  let provider, server, customer;
  before(async () => {
    provider = await IdentityProvider.start(stage);
    const made = await scene(stage, { settings: { ...provider.env, ...often } });
    server = made.server;
    customer = await addCustomer(made.db);
  });
  after(() => stage.end());
  for (const [what, answer] of Object.entries(hostile))
    it(`is not replaced by ${what}`, async () => {
      const good = provider.answer;
      const stranger = new SigningKey('ES256').token(provider.claims(customer.user));
      let before = Infinity;
      provider.answer = (response) => {
        before = Math.min(before, provider.reads);
        answer(response);
      };
      await until('the answer was not taken for a set', async () => (await gate(server, bearer(stranger))).status === 503 && provider.reads > before);
      assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
      provider.answer = good;
    });

  it('is used for its good keys when others in it are of no use', async () => {
    const fresh = new SigningKey('EdDSA');
    const good = provider.answer;
    provider.answer = (response) =>
      response.end(JSON.stringify({ keys: [{ kty: 'oct', kid: 'a', k: Buffer.alloc(32, 7).toString('base64url') }, { kty: 'EC' }, 7, valid.jwk, fresh.jwk] }));
    await until('its good key counts', async () => (await gate(server, bearer(provider.token(customer.user, {}, fresh)))).status === 200);
    const forged = hs256(Buffer.alloc(32, 7), provider.claims(customer.user), { kid: 'a' });
    assertError(await gate(server, bearer(forged)), 401, 'INVALID_TOKEN');
    provider.answer = good;
  });
});

describe('a start while the URL cannot be read', () => {
  it('waits, and is ready once it can', async (t) => {
    const provider = await IdentityProvider.start(t);
    await provider.close();
    const { db } = await scene(t, { settings: { RECLAIM_JWT_SECRET: null } });
    const customer = await addCustomer(db);
    const server = await serve(t, { database: db, env: { ...provider.env, ...hour }, wait: 'listening' });
    const line = await server.line('the reason', (one) => one.event === 'waiting for the key set');
    assert.match(line.why, /^RECLAIM_JWKS_URL cannot be read .* keeps no set/);
    assert.equal((await ops(server, '/readyz')).status, 503);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 503);
    await provider.listen(provider.port);
    await until('it is ready', async () => (await ops(server, '/readyz')).status === 200);
    assert.equal((await gate(server, bearer(provider.token(customer.user)))).status, 200);
  });

  it('goes on with the set that was read before', async (t) => {
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    const customer = await addCustomer(db);
    await server.stop();
    await provider.close();
    const next = await serve(t, { database: db, env: { ...provider.env, ...hour } });
    assert.equal((await gate(next, bearer(provider.token(customer.user)))).status, 200);
    await next.line('a warning', (one) => one.level === 'warn' && /set read last/.test(one.event));
  });

  it('does not take the set of another URL', async (t) => {
    const provider = await IdentityProvider.start(t), other = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour } });
    await server.stop();
    await other.close();
    const next = await serve(t, { database: db, env: { ...other.env, ...hour }, wait: 'listening' });
    await next.line('the reason', (one) => one.event === 'waiting for the key set');
  });
});

describe('several sources of keys', () => {
  it('are used side by side: a secret, a file with secrets and public keys, a URL', async (t) => {
    const stage = stageOf(t);
    const inFile = new SigningKey('RS256'), oct = Buffer.alloc(40, 9), other = Buffer.alloc(40, 10);
    const file = path.join(temporaryDirectory(stage), 'jwks.json');
    fs.writeFileSync(file, JSON.stringify({ keys: [inFile.jwk, { kty: 'oct', kid: 'legacy', alg: 'HS256', k: oct.toString('base64url') }] }));
    const provider = await IdentityProvider.start(t);
    const { server, db } = await scene(t, { settings: { ...provider.env, ...hour, RECLAIM_JWT_SECRET: jwtSecret, RECLAIM_JWKS_FILE: file } });
    const customer = await addCustomer(db);
    const claims = provider.claims(customer.user);
    const statusOf = async (token) => (await gate(server, bearer(token))).status;
    assert.equal(await statusOf(provider.token(customer.user)), 200, 'the URL');
    assert.equal(await statusOf(inFile.token(claims)), 200, 'the file');
    assert.equal(await statusOf(hs256(oct, claims, { kid: 'legacy' })), 200, 'the secret in the file, by name');
    assert.equal(await statusOf(hs256(oct, claims)), 200, 'the secret in the file, without a name');
    assert.equal(await statusOf(hs256(jwtSecret, claims)), 200, 'the setting');
    assert.equal(await statusOf(hs256(jwtSecret, claims, { kid: 'any' })), 200, 'the setting, whatever the name');
    assert.equal(await statusOf(hs256(other, claims, { kid: 'legacy' })), 401, 'a stranger');
    assert.equal(await statusOf(hs256(oct, { ...claims, iss: 'reclaim', aud: 'reclaim' })), 401, "a secret does not sign Reclaim's own tokens");

    server.signal('SIGHUP');
    await server.line('it was reloaded', (line) => line.event === 'settings reloaded');
    assert.equal(await statusOf(provider.token(customer.user)), 200, 'the URL, after a reload');
    assert.equal((await show(server, customer.id, asAdmin())).status, 401, 'an admin token of no audience');
  });
});

describe('reclaim doctor', () => {
  const examine = async (t, db, env) => (await run(t, ['doctor'], { database: db, env: { RECLAIM_JWT_SECRET: null, ...env } })).stdout;

  it('reads the key set and says how many keys it has, or what is wrong with it', async (t) => {
    const provider = await IdentityProvider.start(t, { keys: [new SigningKey('ES256'), new SigningKey('RS256')] });
    const { db } = await scene(t);
    assert.match(await examine(t, db, provider.env), /^ok +tokens: 2 keys of your identity provider$/m);
    provider.answer = (response) => response.end('<!doctype html>');
    assert.match(await examine(t, db, provider.env), /^FAIL +RECLAIM_JWKS_URL is not a JSON Web Key Set: .*no token of your identity provider can be verified$/m);
    await provider.close();
    assert.match(await examine(t, db, provider.env), /^FAIL +RECLAIM_JWKS_URL cannot be read/m);
    assert.match(await examine(t, db, {}), /^ok +tokens: Reclaim's own only/m);
    assert.match(await examine(t, db, { RECLAIM_JWT_SECRET: jwtSecret }), /^ok +tokens: 1 key of your identity provider$/m);
  });
});

describe('RECLAIM_JWKS_URL', () => {
  const fine = { RECLAIM_JWT_ISSUER: 'https://project.supabase.co/auth/v1', RECLAIM_JWT_AUDIENCE: 'authenticated' };
  const url = 'https://project.supabase.co/auth/v1/.well-known/jwks.json';
  for (const [what, env, words] of [
    ['without an issuer', { RECLAIM_JWKS_URL: url, RECLAIM_JWT_AUDIENCE: 'authenticated' }, /RECLAIM_JWT_ISSUER: not set, and RECLAIM_JWKS_URL needs it/],
    ['without an audience', { RECLAIM_JWKS_URL: url, RECLAIM_JWT_ISSUER: 'https://project.supabase.co/auth/v1' }, /RECLAIM_JWT_AUDIENCE: not set, and RECLAIM_JWKS_URL needs it/],
    ['with http to another machine', { ...fine, RECLAIM_JWKS_URL: 'http://project.supabase.co/jwks.json' }, /RECLAIM_JWKS_URL/],
    ['with a file', { ...fine, RECLAIM_JWKS_URL: 'file:///etc/passwd' }, /RECLAIM_JWKS_URL/],
  ])
    it(`${what} stops the start with a line that says so`, async (t) => {
      const { code, stderr } = await run(t, ['serve'], { env });
      assert.notEqual(code, 0);
      assert.match(stderr, words);
    });
});
