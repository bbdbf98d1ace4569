// Who gets a token at /auth/login, and where that token is good.

import assert from 'node:assert/strict';
import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  addCustomer, assertError, asUser, bearer, canaryPassword, customerAddress, freeze, jwtSecret, login, scene, show, tokenOf,
} from './lib/customers.js';
import { gate } from './lib/gate.js';
import { ops, request } from './lib/http.js';
import { canaryKey } from './lib/people.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

/** The key of Reclaim's own tokens, derived by other means than the program's. */
const ownKey = Buffer.from(hkdfSync('sha256', canaryKey, '', 'tokens', 32));

const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));
function isSignedWith(token, secret) {
  const [header, payload, signature] = token.split('.');
  return signature === createHmac('sha256', secret).update(`${header}.${payload}`).digest('base64url');
}

const addFactor = (db, user, status) =>
  db.query(
    `insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at) values ($1, $2, 'totp', $3, now(), now())`,
    [randomUUID(), user.id, status],
  );

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage, { auth: 'supabase' }));
});
after(() => stage.end());

/** Passwords tried by outcome, as the metrics count them. */
async function counted(outcome) {
  const { body } = await ops(server, '/metrics');
  return Number(new RegExp(`^reclaim_logins_total\\{outcome="${outcome}"\\} (\\d+)$`, 'm').exec(body)?.[1] ?? 0);
}

describe('signing in', () => {
  it('an unconfirmed user gets no token, and the answer that a wrong password gets', async () => {
    const customer = await addCustomer(db);
    const wrong = assertError(await login(server, customer.user.email, 'canary-password-wrong'), 401, 'INVALID_CREDENTIALS');
    await db.query('update auth.users set email_confirmed_at = null where id = $1', [customer.user.id]);
    const unconfirmed = assertError(await login(server, customer.user.email, canaryPassword), 401, 'INVALID_CREDENTIALS');
    assert.deepEqual(unconfirmed.json, wrong.json);
    await db.query('update auth.users set email_confirmed_at = now() where id = $1', [customer.user.id]);
    assert.equal((await login(server, customer.user.email, canaryPassword)).status, 200);
  });

  it('a user with a second factor gets 403 MFA_REQUIRED and no token, but only after the right password', async () => {
    const customer = await addCustomer(db);
    await addFactor(db, customer.user, 'verified');
    const before = await counted('second_factor');
    assertError(await login(server, customer.user.email, 'canary-password-wrong'), 401, 'INVALID_CREDENTIALS');
    assert.equal(await counted('second_factor'), before);
    const refused = assertError(await login(server, customer.user.email, canaryPassword), 403, 'MFA_REQUIRED');
    assert.equal('token' in refused.json, false);
    assert.match(refused.json.message, /identity provider/);
    assert.equal(await counted('second_factor'), before + 1);
    assert.equal((await show(server, customer.id, asUser(customer.user.id))).status, 200, 'the identity provider’s token is good');
  });

  it('a banned or unconfirmed user with a second factor learns nothing of it', async () => {
    for (const state of [`banned_until = now() + interval '1 day'`, 'email_confirmed_at = null']) {
      const customer = await addCustomer(db);
      await addFactor(db, customer.user, 'verified');
      await db.query(`update auth.users set ${state} where id = $1`, [customer.user.id]);
      assertError(await login(server, customer.user.email, canaryPassword), 401, 'INVALID_CREDENTIALS');
    }
  });

  it('a second factor that was never verified, or is somebody else’s, keeps nobody out', async () => {
    const customer = await addCustomer(db);
    await addFactor(db, customer.user, 'unverified');
    await addFactor(db, (await addCustomer(db)).user, 'verified');
    assert.equal((await login(server, customer.user.email, canaryPassword)).status, 200);
  });

  it('a deleted or anonymous user gets no token', async () => {
    for (const state of ['deleted_at = now()', 'is_anonymous = true']) {
      const customer = await addCustomer(db);
      await db.query(`update auth.users set ${state} where id = $1`, [customer.user.id]);
      assertError(await login(server, customer.user.email, canaryPassword), 401, 'INVALID_CREDENTIALS');
    }
  });

  it('an imported user signs in with an Argon2 hash; other kinds are a wrong password, counted and logged once', async () => {
    const hashes = {
      '$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc': 200,
      '$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc': 200,
      '$argon2i$v=19$m=256,t=2,p=1$c29tZXNhbHQ$iekCn0Y3spW+sCcFanM2xBT63UP2sghkUoHLIUpWRS8': 200,
      '$argon2id$v=19$m=4194304,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc': 401,
      '$fbscrypt$v=1,n=14,r=8,p=1,ss=Bw==,sk=c2s=$c2FsdA==$aGFzaA==': 401,
    };
    const { user } = await addCustomer(db);
    for (const [hash, status] of Object.entries(hashes)) {
      await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, hash]);
      assert.equal((await login(server, user.email, 'password')).status, status, hash);
      assert.equal((await login(server, user.email, 'passwords')).status, 401, hash);
    }
    const { body } = await ops(server, '/metrics');
    assert.match(body, /^reclaim_password_hashes_unsupported_total 4$/m);
    const told = server.lines.filter(({ event }) => /password hash/.test(event));
    assert.equal(told.length, 1);
    assert.ok(!JSON.stringify(told).includes('fbscrypt'), 'nothing of the hash');
  });

  it('works without RECLAIM_JWT_SECRET, and the token opens the gate', async (t) => {
    const alone = await scene(t, { settings: { RECLAIM_JWT_SECRET: null } });
    const customer = await addCustomer(alone.db);
    const { status, json } = await login(alone.server, customer.user.email, canaryPassword);
    assert.equal(status, 200);
    assert.equal((await gate(alone.server, bearer(json.token))).status, 200);
    const admin = await run(t, ['token', '--role', 'admin'], { database: alone.db });
    assert.equal(admin.code, 0, admin.stderr);
    assert.equal((await freeze(alone.server, customer.id, bearer(admin.stdout.trim()))).json.status, 'frozen');
    assert.equal((await gate(alone.server, asUser(customer.user.id))).status, 401, 'nobody else’s tokens are known');
  });

  it('without a mail provider a code is promised all the same, to nobody, and the log says so once', async (t) => {
    const alone = await scene(t, { settings: { RECLAIM_RESEND_API_KEY: null, RECLAIM_RESEND_URL: null, RECLAIM_HOLD_MS: '0' } });
    const customer = await addCustomer(alone.db);
    for (const email of [customer.user.email, customerAddress(), customer.user.email])
      assert.equal((await request(alone.server, { method: 'POST', path: '/auth/code', body: JSON.stringify({ email }) })).status, 202);
    assert.deepEqual(await alone.db.query('select 1 from reclaim.sign_in_codes where user_id is not null'), []);
    assert.equal(alone.server.events('no mail provider is set: sign-in codes are not sent').length, 1);
  });
});

describe('a token from /auth/login', () => {
  let customer, token;
  before(async () => {
    customer = await addCustomer(db);
    ({ token } = (await login(server, customer.user.email, canaryPassword)).json);
  });

  it('is refused by anyone who verifies with the project’s JWT secret, and says that it is for Reclaim alone', () => {
    assert.equal(isSignedWith(token, jwtSecret), false);
    assert.equal(isSignedWith(token, canaryKey), false, 'the master key itself signs nothing');
    assert.equal(isSignedWith(token, ownKey), true);
    const { iss, aud, sub, role } = claimsOf(token);
    assert.deepEqual({ iss, aud, sub, role }, { iss: 'reclaim', aud: 'reclaim', sub: customer.user.id, role: 'authenticated' });
  });

  it('is good here and at the gate', async () => {
    assert.equal((await show(server, customer.id, bearer(token))).json.id, customer.id);
    assert.equal((await gate(server, bearer(token))).headers['x-customer-id'], customer.id);
  });

  it('is good at every instance with the same master key, whatever their JWT secret', async (t) => {
    const other = await scene(t, { settings: { RECLAIM_JWT_SECRET: `${jwtSecret}-but-another` } });
    const theirs = await addCustomer(other.db);
    assert.equal((await gate(other.server, bearer(tokenOf({ iss: 'reclaim', aud: 'reclaim', sub: theirs.user.id }, { secret: ownKey })))).status, 200);
  });
});

describe('a token that claims to be what it is not', () => {
  const refused = {
    'signed with the project’s secret, that says iss reclaim': (sub) => tokenOf({ iss: 'reclaim', aud: 'reclaim', sub }),
    'signed with the project’s secret, that says iss reclaim to be an admin': () => tokenOf({ iss: 'reclaim', aud: 'reclaim', role: 'service_role' }),
    'signed with the master key itself': (sub) => tokenOf({ iss: 'reclaim', aud: 'reclaim', sub }, { secret: canaryKey }),
    'signed with Reclaim’s key, that says another issuer': (sub) => tokenOf({ iss: 'https://project.example.com/auth/v1', aud: 'reclaim', sub }, { secret: ownKey }),
    'signed with Reclaim’s key, that says no issuer': (sub) => tokenOf({ aud: 'reclaim', sub }, { secret: ownKey }),
    'signed with Reclaim’s key, that names its issuer in a list': (sub) => tokenOf({ iss: ['reclaim'], aud: 'reclaim', sub }, { secret: ownKey }),
    'signed with Reclaim’s key, for another audience': (sub) => tokenOf({ iss: 'reclaim', aud: 'authenticated', sub }, { secret: ownKey }),
    'signed with Reclaim’s key, for no audience': (sub) => tokenOf({ iss: 'reclaim', sub }, { secret: ownKey }),
    'of Reclaim’s, not signed at all': (sub) => tokenOf({ iss: 'reclaim', aud: 'reclaim', sub }, { header: { alg: 'none' }, secret: ownKey }),
  };
  for (const [what, make] of Object.entries(refused))
    it(`${what}, is refused`, async () => {
      const customer = await addCustomer(db);
      const own = bearer(make(customer.user.id));
      assert.equal((await show(server, customer.id, own)).status, 401);
      assert.equal((await gate(server, own)).status, 401);
    });
});

describe('RECLAIM_JWT_ISSUER and RECLAIM_JWT_AUDIENCE', () => {
  const iss = 'https://project.example.com/auth/v1';
  let strict, customer;
  before(async () => {
    strict = await scene(stage, { settings: { RECLAIM_JWT_ISSUER: iss, RECLAIM_JWT_AUDIENCE: 'authenticated' } });
    customer = await addCustomer(strict.db);
  });
  const statusOf = async (claims) => (await gate(strict.server, bearer(tokenOf({ sub: customer.user.id, ...claims })))).status;

  it('let in what the identity provider issued for this project', async () => {
    assert.equal(await statusOf({ iss, aud: 'authenticated' }), 200);
    assert.equal(await statusOf({ iss, aud: ['other', 'authenticated'] }), 200);
  });

  it('keep out what another project signed with the same secret, or for another service', async () => {
    assert.equal(await statusOf({ iss: 'https://other.example.com/auth/v1', aud: 'authenticated' }), 401);
    assert.equal(await statusOf({ aud: 'authenticated' }), 401);
    assert.equal(await statusOf({ iss, aud: 'other' }), 401);
    assert.equal(await statusOf({ iss, aud: ['other', 7] }), 401);
    assert.equal(await statusOf({ iss }), 401);
  });

  it('do not concern Reclaim’s own', async () => {
    const { json } = await login(strict.server, customer.user.email, canaryPassword);
    assert.equal((await gate(strict.server, bearer(json.token))).status, 200);
  });

  it('the issuer cannot be Reclaim itself', async (t) => {
    const { code, stderr } = await run(t, ['serve'], { database: strict.db, env: { RECLAIM_JWT_ISSUER: 'reclaim' } });
    assert.equal(code, 1);
    assert.match(stderr, /^reclaim: RECLAIM_JWT_ISSUER: "reclaim" is not .*\n$/);
  });
});

it('an unknown address is a wrong password, too', async () => {
  assertError(await login(server, customerAddress(), canaryPassword), 401, 'INVALID_CREDENTIALS');
});
