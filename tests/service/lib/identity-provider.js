// Supabase Auth as far as tokens go: keys that it signs with, its key set at a URL, tokens with the claims that it gives them.

import { createHmac, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import http from 'node:http';

import { stageOf } from './stage.js';

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
const now = () => Math.floor(Date.now() / 1000);

const kinds = {
  ES256: { make: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }), sign: (text, key) => sign('sha256', text, { key, dsaEncoding: 'ieee-p1363' }) },
  RS256: { make: () => generateKeyPairSync('rsa', { modulusLength: 2048 }), sign: (text, key) => sign('sha256', text, key) },
  EdDSA: { make: () => generateKeyPairSync('ed25519'), sign: (text, key) => sign(null, text, key) },
};

/** A key that signs tokens, named as Supabase names them. */
export class SigningKey {
  constructor(alg, kid = randomUUID()) {
    this.alg = alg;
    this.kid = kid;
    this.pair = kinds[alg].make();
  }

  get jwk() {
    return { ...this.pair.publicKey.export({ format: 'jwk' }), alg: this.alg, use: 'sig', key_ops: ['verify'], ext: true, kid: this.kid };
  }

  token(claims, header = {}) {
    const text = `${encoded({ alg: this.alg, kid: this.kid, typ: 'JWT', ...header })}.${encoded(claims)}`;
    return `${text}.${kinds[this.alg].sign(Buffer.from(text), this.pair.privateKey).toString('base64url')}`;
  }
}

/** The legacy secret, or one of a key set (then with a name). */
export function hs256(secret, claims, header = {}) {
  const text = `${encoded({ alg: 'HS256', typ: 'JWT', ...header })}.${encoded(claims)}`;
  return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
}

export class IdentityProvider {
  reads = 0;
  waiting = [];

  static async start(scope, { keys = [new SigningKey('ES256')] } = {}) {
    const provider = new IdentityProvider(keys);
    await provider.listen();
    stageOf(scope).after(() => provider.close());
    return provider;
  }

  constructor(keys) {
    this.keys = keys;
  }

  /** The set it publishes; a function of the response instead answers as it likes. */
  answer = (response) => response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ keys: this.keys.map((key) => key.jwk) }));

  async listen(port = 0) {
    this.server = http.createServer((request, response) => {
      this.reads++;
      this.answer(response, request);
    });
    await new Promise((resolve, reject) => this.server.once('error', reject).listen(port, '127.0.0.1', resolve));
    this.port = this.server.address().port;
    this.issuer = `http://127.0.0.1:${this.port}/auth/v1`;
  }

  async close() {
    this.server.closeAllConnections();
    if (this.server.listening) await new Promise((resolve) => this.server.close(resolve));
  }

  get env() {
    return { RECLAIM_JWT_SECRET: null, RECLAIM_JWKS_URL: `${this.issuer}/.well-known/jwks.json`, RECLAIM_JWT_ISSUER: this.issuer, RECLAIM_JWT_AUDIENCE: 'authenticated' };
  }

  /** What it says of a user who signed in with a password. */
  claims(user, more = {}) {
    return {
      iss: this.issuer,
      sub: user.id,
      aud: 'authenticated',
      exp: now() + 3600,
      iat: now(),
      email: user.email,
      phone: '',
      app_metadata: { provider: 'email', providers: ['email'] },
      user_metadata: { email_verified: true },
      role: 'authenticated',
      aal: 'aal1',
      amr: [{ method: 'password', timestamp: now() }],
      session_id: randomUUID(),
      is_anonymous: false,
      ...more,
    };
  }

  token(user, more, key = this.keys[0]) {
    return key.token(this.claims(user, more));
  }
}
