// A server with the public keys of a key set: it takes what their private halves signed, and nothing else.

import assert from 'node:assert/strict';
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, bearer, jwtSecret, scene, show } from './lib/customers.js';
import { temporaryDirectory } from './lib/place.js';
import { Stage, stageOf } from './lib/stage.js';

const rsa = generateKeyPairSync('rsa', { modulusLength: 2048 });
const ec = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const strangers = { rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }), ec: generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1000);

/** `by` makes the signature of a text. */
function token(header, claims, by) {
  const body = `${encoded(header)}.${encoded({ role: 'service_role', exp: now() + 3600, ...claims })}`;
  return `${body}.${Buffer.from(by(body)).toString('base64url')}`;
}

const rs256 = (key) => (text) => sign('sha256', Buffer.from(text), key.privateKey);
const es256 = (key, dsaEncoding = 'ieee-p1363') => (text) => sign('sha256', Buffer.from(text), { key: key.privateKey, dsaEncoding });
const hs256 = (secret) => (text) => createHmac('sha256', secret).update(text).digest();
const jwk = (pair, more) => ({ ...pair.publicKey.export({ format: 'jwk' }), use: 'sig', ...more });

/** In one step: a server that reads meanwhile has the old file or the new one. */
function write(file, text) {
  fs.writeFileSync(`${file}.new`, text);
  fs.renameSync(`${file}.new`, file);
}

const pem = rsa.publicKey.export({ type: 'spki', format: 'pem' });
const der = rsa.publicKey.export({ type: 'spki', format: 'der' });

describe('a server with a key set', () => {
  const stage = new Stage();
  let server, customer;
  before(async () => {
    const file = path.join(temporaryDirectory(stage), 'jwks.json');
    write(file, JSON.stringify({ keys: [jwk(rsa, { kid: 'r', alg: 'RS256' }), jwk(ec, { kid: 'e', alg: 'ES256' })] }));
    const made = await scene(stage, { settings: { RECLAIM_JWT_SECRET: null, RECLAIM_JWKS_FILE: file } });
    server = made.server;
    customer = await addCustomer(made.db);
  });
  after(() => stage.end());

  const good = {
    'RS256 with its key named': () => token({ alg: 'RS256', kid: 'r' }, {}, rs256(rsa)),
    'ES256 with its key named': () => token({ alg: 'ES256', kid: 'e' }, {}, es256(ec)),
    'RS256 without a name': () => token({ alg: 'RS256' }, {}, rs256(rsa)),
    'ES256 without a name': () => token({ alg: 'ES256' }, {}, es256(ec)),
    'one that is some seconds late': () => token({ alg: 'ES256' }, { exp: now() - 5 }, es256(ec)),
  };
  for (const [what, make] of Object.entries(good))
    it(`takes ${what}`, async () => {
      assert.equal((await show(server, customer.id, bearer(make()))).status, 200);
    });

  it('knows the owner by the subject, in either case', async () => {
    const own = token({ alg: 'ES256' }, { role: 'authenticated', sub: customer.user.id.toUpperCase() }, es256(ec));
    assert.equal((await show(server, customer.id, bearer(own))).status, 200);
  });

  const bad = {
    'no signature at all': () => token({ alg: 'none' }, {}, () => ''),
    'none, with a good signature': () => token({ alg: 'None', kid: 'r' }, {}, rs256(rsa)),
    'HS256 under the public key as PEM': () => token({ alg: 'HS256', kid: 'r' }, {}, hs256(pem)),
    'HS256 under the public key as DER': () => token({ alg: 'HS256' }, {}, hs256(der)),
    'RS256 with an HMAC under the public key': () => token({ alg: 'RS256', kid: 'r' }, {}, hs256(pem)),
    'HS256 under an empty secret': () => token({ alg: 'HS256' }, {}, hs256('')),
    'the key of a stranger, RS256': () => token({ alg: 'RS256', kid: 'r' }, {}, rs256(strangers.rsa)),
    'the key of a stranger, ES256': () => token({ alg: 'ES256', kid: 'e' }, {}, es256(strangers.ec)),
    'a key named that is not there': () => token({ alg: 'RS256', kid: 'x' }, {}, rs256(rsa)),
    'the key of the other algorithm named': () => token({ alg: 'RS256', kid: 'e' }, {}, rs256(rsa)),
    'the key brought along': () => token({ alg: 'RS256', jwk: strangers.rsa.publicKey.export({ format: 'jwk' }) }, {}, rs256(strangers.rsa)),
    'ES256 in DER': () => token({ alg: 'ES256', kid: 'e' }, {}, es256(ec, 'der')),
    'ES256 of zeros': () => token({ alg: 'ES256', kid: 'e' }, {}, () => Buffer.alloc(64)),
    'one that has expired': () => token({ alg: 'ES256' }, { exp: now() - 600 }, es256(ec)),
    'one that never expires': () => token({ alg: 'ES256' }, { exp: undefined }, es256(ec)),
    'an end that is text': () => token({ alg: 'ES256' }, { exp: String(now() + 3600) }, es256(ec)),
    'one for later': () => token({ alg: 'ES256' }, { nbf: now() + 600 }, es256(ec)),
    'an extension nobody knows': () => token({ alg: 'ES256', crit: ['b64'], b64: true }, {}, es256(ec)),
    'one of 9,000 bytes': () => token({ alg: 'ES256' }, { x: 'x'.repeat(6500) }, es256(ec)),
    'padding': () => `${token({ alg: 'ES256' }, {}, es256(ec))}==`,
  };
  for (const [what, make] of Object.entries(bad))
    it(`refuses ${what}`, async () => {
      const answer = await show(server, customer.id, bearer(make()));
      assert.equal(answer.status, 401, answer.text);
      assert.match(answer.json.error, /^[A-Z_]+$/);
    });
});

describe('a key set beside a secret', () => {
  it('takes what either of them signed: while tokens move from the one to the other', async (t) => {
    const file = path.join(temporaryDirectory(stageOf(t)), 'jwks.json');
    write(file, JSON.stringify({ keys: [jwk(ec, { kid: 'e' })] }));
    const { server, db } = await scene(t, { settings: { RECLAIM_JWKS_FILE: file } });
    const customer = await addCustomer(db);
    const statusOf = async (own) => (await show(server, customer.id, bearer(own))).status;
    assert.equal(await statusOf(token({ alg: 'ES256', kid: 'e' }, {}, es256(ec))), 200);
    assert.equal(await statusOf(token({ alg: 'HS256' }, {}, hs256(jwtSecret))), 200);
    assert.equal(await statusOf(token({ alg: 'HS256' }, {}, hs256(`${jwtSecret}-but-another`))), 401);
    assert.equal(await statusOf(token({ alg: 'ES256', kid: 'e' }, { iss: 'reclaim', aud: 'reclaim' }, es256(ec))), 401);
  });
});

describe('a key set that is replaced', () => {
  const stage = new Stage();
  const file = path.join(temporaryDirectory(stage), 'jwks.json');
  let server, customer;
  before(async () => {
    write(file, JSON.stringify({ keys: [jwk(rsa)] }));
    const made = await scene(stage, { settings: { RECLAIM_JWT_SECRET: null, RECLAIM_JWKS_FILE: file } });
    server = made.server;
    customer = await addCustomer(made.db);
  });
  after(() => stage.end());

  const statusOf = async (own) => (await show(server, customer.id, bearer(own))).status;
  const signedBy = (alg, by) => token({ alg }, { role: 'authenticated', sub: customer.user.id }, by);
  async function reload(text) {
    const before = server.lines.length;
    write(file, text);
    server.signal('SIGHUP');
    return server.line('a word about it', (line, n) => n >= before && /reload/.test(line.event));
  }

  it('is read again on SIGHUP: tokens of keys that are gone count no more, remembered or not', async () => {
    const old = signedBy('RS256', rs256(rsa)), other = signedBy('RS256', rs256(rsa)), fresh = signedBy('ES256', es256(ec));
    assert.deepEqual([await statusOf(old), await statusOf(old), await statusOf(fresh)], [200, 200, 401]);
    assert.equal((await reload(JSON.stringify({ keys: [jwk(ec)] }))).event, 'settings reloaded');
    assert.deepEqual([await statusOf(old), await statusOf(other), await statusOf(fresh), await statusOf(fresh)], [401, 401, 200, 200]);
    await reload(JSON.stringify({ keys: [jwk(ec), jwk(rsa)] }));
    assert.deepEqual([await statusOf(old), await statusOf(fresh)], [200, 200]);
  });

  for (const [what, text] of Object.entries({ 'no JSON': '{"keys":', 'no keys': '{"keys":[]}', nothing: '' }))
    it(`is refused with ${what} in it, and the keys of before stay`, async () => {
      const own = signedBy('ES256', es256(ec));
      const line = await reload(text);
      assert.equal(line.level, 'error');
      assert.match(line.why, /RECLAIM_JWKS_FILE/);
      assert.equal(await statusOf(own), 200);
    });
});
