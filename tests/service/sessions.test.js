// Sessions: who gets one with a mailed code, and that an ended one is refused at every instance, whoever ends it.

import assert from 'node:assert/strict';
import { hkdfSync, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { assertRefused, hashOf, mailedCode, requestCode, validate, wrong } from './lib/cleanup.js';
import {
  addCustomer, addKey, assertError, asKey, asUser, bearer, canaryPassword, env, freeze, login, passwordHash, scene, tokenOf, unregister,
} from './lib/customers.js';
import { gate } from './lib/gate.js';
import { request } from './lib/http.js';
import { address, addUser, canaryKey } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const ownKey = Buffer.from(hkdfSync('sha256', canaryKey, '', 'tokens', 32));
const claimsOf = (token) => JSON.parse(Buffer.from(token.split('.')[1], 'base64url'));

const stage = new Stage();
let db, provider, here, there; // two instances; at the second limits count, and proofs are strict
before(async () => {
  const settings = { RECLAIM_HOLD_MS: '100', RECLAIM_HOLD_SIGMA_MS: '0', RECLAIM_LIMIT_EMAIL: 'off', RECLAIM_LIMIT_IP: 'off' };
  ({ db, provider, server: here } = await scene(stage, { auth: 'supabase', settings }));
  const limited = { RECLAIM_LIMIT_EMAIL: '2/3600', RECLAIM_LIMIT_LOGIN: '1000/900', RECLAIM_PROOF: 'strict' };
  there = await serve(stage, { database: db, env: { ...env, ...provider.env, ...settings, ...limited } });
});
after(() => stage.end());

const post = (path) => (server, headers, body) =>
  request(server, { method: 'POST', path, headers: { ...(body ? { 'Content-Type': 'application/json' } : {}), ...headers }, body: body && JSON.stringify(body) });
const logout = post('/auth/logout');
const askCode = (server, email) => post('/auth/code')(server, {}, { email });
const loginWith = (server, body) => post('/auth/login')(server, {}, body);

/** The answer, which must not come before the hold is over. */
async function held(ask) {
  const began = performance.now();
  const answer = await ask();
  assert.ok(performance.now() - began >= 99, 'not held');
  return answer;
}

const ownSession = (server, headers) => request(server, { method: 'GET', path: '/auth/session', headers });

const sessionOf = async (token) => (await db.query('select * from reclaim.sessions where id = $1', [claimsOf(token).sid]))[0];

/** A token of a new session, which both instances know unless told otherwise. */
async function signIn(user, { known = [here, there] } = {}) {
  const { status, json, body } = await login(here, user.email, canaryPassword);
  assert.equal(status, 200, body);
  for (const server of known) assert.equal((await gate(server, bearer(json.token))).status, 200);
  return json.token;
}

/** Asks for a code and reads it from the mail. */
async function signInCode(email, server = here) {
  const nth = provider.mailsTo(email).length + 1;
  const asked = await askCode(server, email);
  assert.equal(asked.status, 202);
  assert.equal(asked.json.expires_in, 300);
  return (await provider.mailTo(email, { nth })).code;
}

const refusedAt = async (server, token) => assertError(await gate(server, bearer(token)), 401, 'SESSION_ENDED');

describe('a session', () => {
  it('is recorded, with how it began', async () => {
    const { user } = await addCustomer(db);
    const token = await signIn(user);
    const row = await sessionOf(token);
    assert.equal(row.user_id, user.id);
    assert.equal(row.method, 'password');
    assert.equal(row.ended_at, null);
    assert.equal(Math.round((row.expires_at - row.created_at) / 1000), 3600);
  });

  it('that was ended is refused everywhere from the answer on, and the user’s other sessions are not', async () => {
    const { user } = await addCustomer(db);
    const other = await signIn(user);
    for (let n = 0; n < 10; n++) {
      const token = await signIn(user);
      const answer = await logout(n % 2 ? here : there, bearer(token));
      assert.equal(answer.status, 204, answer.body);
      assert.equal(answer.body, '');
      await refusedAt(there, token);
      await refusedAt(here, token);
    }
    for (const server of [here, there]) assert.equal((await gate(server, bearer(other))).status, 200);
  });

  it('that was ended is refused where its user is known, but its token was never seen', async () => {
    const { user } = await addCustomer(db);
    await signIn(user);
    const token = await signIn(user, { known: [] });
    assert.equal((await logout(here, bearer(token))).status, 204);
    await refusedAt(there, token);
    await refusedAt(here, token);
    assertError(await logout(here, bearer(token)), 401, 'SESSION_ENDED');
  });

  const asRole = async (sql, values) => {
    const client = await db.pool.connect();
    try {
      await client.query('begin; set local role session_ender');
      await client.query(sql, values);
      await client.query('commit');
    } finally {
      client.release();
    }
  };
  before(() => db.query('create role session_ender; grant usage on schema reclaim to session_ender; grant select, update, delete, truncate on reclaim.sessions to session_ender'));
  for (const [how, sql] of Object.entries({
    'an UPDATE': 'update reclaim.sessions set ended_at = now() where id = $1',
    'a DELETE': 'delete from reclaim.sessions where id = $1',
    'an UPDATE of its end': `update reclaim.sessions set expires_at = now() - interval '2 minutes' where id = $1`,
    'a TRUNCATE': 'truncate reclaim.sessions',
  }))
    it(`that ${how} in plain SQL ends, by a role with rights on that table only, is refused everywhere`, async () => {
      const { user } = await addCustomer(db);
      const token = await signIn(user);
      await asRole(sql, sql.includes('$1') ? [claimsOf(token).sid] : []);
      // Cached for a minute: only the change feed can be that fast.
      for (const server of [here, there])
        await until('the refusal', async () => (await gate(server, bearer(token))).status === 401, 10_000);
      await refusedAt(there, token);
    });

  it('of a user who was banned or deleted is refused where it is not cached', async () => {
    for (const change of [`banned_until = now() + interval '1 day'`, 'deleted_at = now()']) {
      const { user } = await addCustomer(db);
      const token = await signIn(user, { known: [] });
      await db.query(`update auth.users set ${change} where id = $1`, [user.id]);
      await refusedAt(there, token);
    }
  });

  it('ends with the password that its user had: at once where it is not cached, and for whoever deletes an account', async () => {
    const customer = await addCustomer(db);
    const { user } = customer;
    const known = await signIn(user);
    const unknown = await signIn(user, { known: [] });
    const nobodyElses = await signIn((await addCustomer(db)).user);
    await db.query(`update auth.users set encrypted_password = replace($2, '$2b$', '$2a$') where id = $1`, [user.id, passwordHash]);
    await refusedAt(here, unknown);
    assertError(await unregister(here, bearer(known), { password: canaryPassword }), 401, 'SESSION_ENDED');
    assertError(await ownSession(there, bearer(known)), 401, 'SESSION_ENDED');
    assert.equal((await ownSession(there, bearer(nobodyElses))).status, 200);
    assert.equal((await ownSession(here, bearer(await signIn(user)))).status, 200, 'a new one begins with the new password');
  });

  it('that began before passwords were compared goes on', async () => {
    const { user } = await addCustomer(db);
    const token = await signIn(user, { known: [] });
    await db.query('update reclaim.sessions set password_digest = null where id = $1', [claimsOf(token).sid]);
    assert.equal((await gate(here, bearer(token))).status, 200);
  });

  it('is ended with all the others of its user by {"everywhere":true}, and nobody else’s', async () => {
    const { user } = await addCustomer(db);
    const other = await signIn((await addCustomer(db)).user);
    const tokens = [await signIn(user), await signIn(user), await signIn(user, { known: [] })];
    for (const body of [{ everywhere: 'yes' }, { everywhere: null }, { everywhere: 1 }])
      assertError(await logout(here, bearer(tokens[0]), body), 400, 'INVALID_BODY');
    assert.equal((await gate(here, bearer(tokens[1]))).status, 200);
    assert.equal((await logout(here, bearer(tokens[0]), { everywhere: true })).status, 204);
    for (const token of tokens) for (const server of [there, here]) await refusedAt(server, token);
    assert.equal((await gate(there, bearer(other))).status, 200);
    assert.equal((await gate(here, bearer(await signIn(user)))).status, 200, 'a later one begins');
  });

  it('with {"everywhere":false} ends alone', async () => {
    const { user } = await addCustomer(db);
    const [one, other] = [await signIn(user), await signIn(user)];
    assert.equal((await logout(here, bearer(one), { everywhere: false })).status, 204);
    await refusedAt(here, one);
    assert.equal((await gate(here, bearer(other))).status, 200);
  });

  it('tells whose it is, with every customer that is not deleted, oldest first, and how a deletion is proved', async () => {
    const first = await addCustomer(db, { name: 'First' });
    const { user } = first;
    const second = await addCustomer(db, { name: 'ثانٍ', owner: false });
    const gone = await addCustomer(db, { owner: false });
    const joined = await addCustomer(db, { name: 'x'.repeat(300) });
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = any($1)', [[second.id, gone.id], user.id]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [joined.id, user.id]);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [gone.id]);
    await freeze(here, second.id);
    const { json } = await ownSession(here, bearer(await signIn(user)));
    assert.equal(json.user_id, user.id);
    assert.equal(json.email, user.email);
    assert.equal(json.proof, 'password');
    assert.ok(Math.abs(Date.parse(json.now) - Date.now()) < 60_000);
    assert.deepEqual(json.customers.map(({ id, name, status, role }) => [id, name, status, role]), [
      [first.id, 'First', 'active', 'owner'],
      [second.id, 'ثانٍ', 'frozen', 'owner'],
      [joined.id, 'x'.repeat(200), 'active', 'member'],
    ]);
    assert.deepEqual(json.customers.map(({ deletion_paused, language }) => [deletion_paused, language]), [[false, null], [false, null], [null, null]]);
  });

  it('tells an owner that a legal hold pauses the deletion, and neither why nor since when', async () => {
    const { id, user } = await addCustomer(db);
    await db.query(`update reclaim.customer_customers set hold_reason = 'a lawsuit of 1987', hold_at = now() where id = $1`, [id]);
    const { json, body } = await ownSession(here, bearer(await signIn(user)));
    assert.equal(json.customers[0].deletion_paused, true);
    assert.doesNotMatch(body, /hold|a lawsuit of 1987/);
  });

  it('is told to users without a customer, and to no key, service or stranger', async (t) => {
    const customer = await addCustomer(db, { password: false });
    assert.equal((await ownSession(here, asUser(customer.user.id))).json.proof, 'confirmation_phrase');
    assert.equal((await ownSession(there, asUser(customer.user.id))).json.proof, 'code');
    await db.query('update auth.users set email = null where id = $1', [customer.user.id]);
    assert.equal((await ownSession(there, asUser(customer.user.id))).json.proof, 'confirmation_phrase', 'no mailbox, no code');
    assertError(await unregister(there, asUser(customer.user.id), { code: 'ABCD-EFGH' }), 400, 'PHRASE_REQUIRED');
    const alone = await addUser(db, { confirmed: '2025-10-01T00:00:00Z' });
    assert.deepEqual((await ownSession(here, asUser(alone.id))).json.customers, []);
    assertError(await ownSession(here, asUser(randomUUID())), 403, 'NO_USER');
    assertError(await ownSession(here, bearer(tokenOf({ role: 'service_role' }))), 403, 'NO_USER');
    assertError(await ownSession(here, asKey(await addKey(t, db, customer))), 403, 'NO_USER');
    assertError(await ownSession(here, {}), 401, 'NO_CREDENTIALS');
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    assertError(await ownSession(here, asUser(customer.user.id)), 401, 'ACCOUNT_DELETED');
  });

  it('belongs to users without a customer, too, who can end it', async () => {
    const user = await addUser(db, { confirmed: '2025-10-01T00:00:00Z' });
    await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, passwordHash]);
    const { json } = await login(here, user.email, canaryPassword);
    assertError(await gate(here, bearer(json.token)), 403, 'NO_CUSTOMER');
    assert.equal((await logout(here, bearer(json.token))).status, 204);
    await refusedAt(there, json.token);
  });

  it('of a frozen customer can be begun and ended', async () => {
    const customer = await addCustomer(db);
    assert.equal((await freeze(here, customer.id)).status, 200);
    const { json } = await login(here, customer.user.email, canaryPassword);
    assert.equal((await gate(there, bearer(json.token))).status, 403);
    assert.equal((await logout(there, bearer(json.token))).status, 204);
    await refusedAt(here, json.token);
  });

  it('cannot be claimed: not somebody else’s, none that never began, none in another issuer’s token', async () => {
    const { user } = await addCustomer(db);
    const { user: other } = await addCustomer(db);
    const { sid } = claimsOf(await signIn(other));
    const own = { iss: 'reclaim', aud: 'reclaim', sub: user.id };
    await refusedAt(here, tokenOf({ ...own, sid }, { secret: ownKey }));
    await refusedAt(here, tokenOf({ ...own, sid: randomUUID() }, { secret: ownKey }));
    assertError(await gate(here, bearer(tokenOf({ ...own, sid: 'none' }, { secret: ownKey }))), 401, 'INVALID_TOKEN');
    const foreign = bearer(tokenOf({ sub: user.id, sid }));
    assert.equal((await gate(here, foreign)).status, 200, 'their sid is their own');
    assertError(await logout(here, foreign), 400, 'NO_SESSION');
    assert.equal((await db.query('select 1 from reclaim.sessions where id = $1 and ended_at is null', [sid])).length, 1);
  });

  it('is what /auth/logout needs', async (t) => {
    const customer = await addCustomer(db);
    const operator = await run(t, ['token', '--role', 'authenticated', '--sub', customer.user.id], { database: db });
    assert.equal('sid' in claimsOf(operator.stdout), false);
    assertError(await logout(here, {}), 401, 'NO_CREDENTIALS');
    assertError(await logout(here, bearer('nonsense')), 401, 'INVALID_TOKEN');
    assertError(await logout(here, asUser(customer.user.id)), 400, 'NO_SESSION');
    assertError(await logout(here, asKey(await addKey(t, db, customer))), 400, 'NO_SESSION');
    assertError(await logout(here, bearer(operator.stdout.trim())), 400, 'NO_SESSION');
    assert.equal((await gate(here, bearer(operator.stdout.trim()))).status, 200);
  });
});

describe('a sign-in code', () => {
  it('signs in once', async () => {
    const { user } = await addCustomer(db);
    const code = await signInCode(user.email);
    const { status, json, body } = await loginWith(there, { email: ` ${user.email.toUpperCase()} `, code: code.toLowerCase().replace('-', ' ') });
    assert.equal(status, 200, body);
    assert.equal(claimsOf(json.token).sub, user.id);
    assert.equal((await sessionOf(json.token)).method, 'code');
    assert.equal((await gate(here, bearer(json.token))).status, 200);
    assertError(await loginWith(here, { email: user.email, code }), 401, 'INVALID_CREDENTIALS');
  });

  it('tried by many at once signs one in', async () => {
    const { user } = await addCustomer(db);
    const code = await signInCode(user.email);
    const statuses = await Promise.all(Array.from({ length: 4 }, async (_, n) => (await loginWith(n % 2 ? here : there, { email: user.email, code })).status));
    assert.deepEqual(statuses.sort(), [200, 401, 401, 401]);
    assert.equal((await db.query('select 1 from reclaim.sessions where user_id = $1', [user.id])).length, 1);
  });

  it('lets in users with a second factor, single sign-on or no password, whatever the hash', async () => {
    const second = await addCustomer(db);
    await db.query(
      `insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at) values ($1, $2, 'totp', 'verified', now(), now())`,
      [randomUUID(), second.user.id],
    );
    for (const { user } of [second, await addCustomer(db, { sso: true }), await addCustomer(db, { password: false })]) {
      const { status, json, body } = await loginWith(here, { email: user.email, code: await signInCode(user.email) });
      assert.equal(status, 200, body);
      assert.equal((await gate(there, bearer(json.token))).status, 200);
    }
  });

  it('of an address with several users is for the one who owns a customer, else for the one with a password', async () => {
    const { user } = await addCustomer(db, { sso: true });
    const plain = await addUser(db, { email: user.email, confirmed: '2025-10-01T00:00:00Z' });
    const first = await loginWith(here, { email: user.email, code: await signInCode(user.email) });
    assert.equal(claimsOf(first.json.token).sub, user.id);
    await db.query(`delete from reclaim.customer_customers where owner_user_id = $1`, [user.id]);
    const second = await loginWith(here, { email: user.email, code: await signInCode(user.email) });
    assert.equal(claimsOf(second.json.token).sub, plain.id);
  });

  it('goes to nobody who may not sign in, and the answer is the same', async () => {
    const confirmed = '2025-10-01T00:00:00Z';
    const banned = await addUser(db, { confirmed });
    await db.query(`update auth.users set banned_until = now() + interval '1 day' where id = $1`, [banned.id]);
    const refused = [
      { email: address('unknown') }, banned, await addUser(db), await addUser(db, { confirmed, deleted: confirmed }),
      await addUser(db, { confirmed, anonymous: true }), await addUser(db, { sso: true }),
    ];
    const known = await addUser(db, { confirmed });
    const shape = ({ status, body, headers }) => ({ status, body, names: Object.keys(headers).sort() });
    const answers = [];
    for (const { email } of refused) answers.push(shape(await held(() => askCode(here, email))));
    assert.ok(await signInCode(known.email)); // sent after the others would have been
    const good = shape(await held(() => askCode(here, known.email)));
    for (const answer of answers) assert.deepEqual(answer, good);
    for (const { email } of refused) {
      assert.deepEqual(provider.mailsTo(email), []);
      assert.equal((await db.query('select 1 from reclaim.sign_in_codes where email_hash = $1 and user_id is null', [hashOf(email)])).length, 1, 'a try costs the same');
    }
  });

  it('is dead for a network after three wrong tries, and after two is not', async () => {
    for (const [tries, status] of [[2, 200], [3, 401]]) {
      const { user } = await addCustomer(db);
      const code = await signInCode(user.email);
      for (let n = 1; n <= tries; n++) assertError(await loginWith(here, { email: user.email, code: wrong(code, n) }), 401, 'INVALID_CREDENTIALS');
      assert.equal((await loginWith(here, { email: user.email, code })).status, status);
    }
  });

  it('that is no code at all costs no try', async () => {
    const { user } = await addCustomer(db);
    const code = await signInCode(user.email);
    for (const nonsense of ['', 'x', '0'.repeat(8), `${code}A`, 'ABCD\u0000EFG'.slice(0, 4)]) assertError(await loginWith(here, { email: user.email, code: nonsense }), 401, 'INVALID_CREDENTIALS');
    assert.equal((await db.query('select tries from reclaim.sign_in_codes where email_hash = $1', [hashOf(user.email)]))[0].tries, 0);
  });

  it('is replaced by the next, and ends after five minutes', async () => {
    const { user } = await addCustomer(db);
    const first = await signInCode(user.email);
    const second = await signInCode(user.email);
    assertError(await loginWith(here, { email: user.email, code: first }), 401, 'INVALID_CREDENTIALS');
    const { rows: [{ left }] } = await db.pool.query(
      'select extract(epoch from expires_at - clock_timestamp()) as left from reclaim.sign_in_codes where email_hash = $1', [hashOf(user.email)]);
    assert.ok(left > 200 && left <= 300, left);
    await db.query('update reclaim.sign_in_codes set expires_at = now() where email_hash = $1', [hashOf(user.email)]);
    assertError(await loginWith(here, { email: user.email, code: second }), 401, 'INVALID_CREDENTIALS');
  });

  it('is worth nothing once the user is banned or has another address', async () => {
    for (const change of [`banned_until = now() + interval '1 day'`, `email = 'moved.' || email`]) {
      const { user } = await addCustomer(db);
      const code = await signInCode(user.email);
      await db.query(`update auth.users set ${change} where id = $1`, [user.id]);
      assertError(await loginWith(here, { email: user.email, code }), 401, 'INVALID_CREDENTIALS');
    }
  });

  it('proves no clean-up and no deletion, and a clean-up’s code signs nobody in', async () => {
    const orphan = await addUser(db, { confirmed: '2025-10-01T00:00:00Z' });
    const cleanupCode = await mailedCode(here, provider, orphan.email);
    const code = await signInCode(orphan.email);
    assertError(await loginWith(here, { email: orphan.email, code: cleanupCode }), 401, 'INVALID_CREDENTIALS');
    assertRefused(await validate(here, orphan.email, code), 'cleanup-v1', '002');
    // The same user, salt and table row: only the key of the purpose differs.
    await db.query(
      `update reclaim.sign_in_codes s set code_hash = v.code_hash, code_salt = v.code_salt from reclaim.verification_codes v
       where s.email_hash = v.email_hash and s.email_hash = $1`, [hashOf(orphan.email)]);
    assertError(await loginWith(here, { email: orphan.email, code: cleanupCode }), 401, 'INVALID_CREDENTIALS');

    const { user } = await addCustomer(db);
    const theirs = await signInCode(user.email);
    assert.equal((await unregister(here, asUser(user.id), { code: theirs })).status, 400);
    assert.equal((await loginWith(here, { email: user.email, code: theirs })).status, 200);
  });

  it('proves a deletion once for whoever has no password, and where proofs are strict nothing else does', async (t) => {
    for (const kind of [{ sso: true }, { password: false }]) {
      const customer = await addCustomer(db, kind);
      const me = asUser(customer.user.id);
      const code = await signInCode(customer.user.email);
      assertError(await unregister(there, me, { confirmation_phrase: 'DELETE' }), 400, 'CODE_REQUIRED');
      assertError(await unregister(there, me, { password: canaryPassword }), 400, 'CODE_REQUIRED');
      assertError(await unregister(here, me, { password: canaryPassword }), 400, 'PHRASE_REQUIRED');
      assertError(await unregister(there, me, { code: wrong(code) }), 400, 'WRONG_CODE');
      assertError(await unregister(there, me, { code: 'no code' }), 400, 'WRONG_CODE');
      assertError(await unregister(there, me, { code, password: 'x' }), 400, 'PROOF_AMBIGUOUS');
      assert.equal((await unregister(kind.sso ? here : there, me, { code: ` ${code.toLowerCase()} ` })).json.status, 'frozen');
      assertError(await unregister(there, me, { code }), 400, 'WRONG_CODE');
      assertError(await loginWith(here, { email: customer.user.email, code }), 401, 'INVALID_CREDENTIALS');
      const outcomes = (await db.query(`select outcome from reclaim.customer_log where customer_id = $1 and action = 'freeze' order by id`, [customer.id])).map(({ outcome }) => outcome);
      assert.deepEqual(outcomes, ['CODE_REQUIRED', 'CODE_REQUIRED', 'PHRASE_REQUIRED', 'WRONG_CODE', 'WRONG_CODE', 'done', 'WRONG_CODE']);
    }
    const customer = await addCustomer(db, { password: false });
    const key = asKey(await addKey(t, db, customer));
    assertError(await unregister(there, key, { code: await signInCode(customer.user.email) }), 400, 'PHRASE_REQUIRED');
    assert.equal((await unregister(there, key, { confirmation_phrase: 'DELETE' })).json.status, 'frozen');
  });

  it('of somebody else proves no deletion, and stays theirs', async () => {
    const [mine, theirs] = [await addCustomer(db, { password: false }), await addCustomer(db, { password: false })];
    const code = await signInCode(theirs.user.email);
    await signInCode(mine.user.email);
    assertError(await unregister(there, asUser(mine.user.id), { code }), 400, 'WRONG_CODE');
    assert.equal((await unregister(there, asUser(theirs.user.id), { code })).json.status, 'frozen');
  });

  it('says in its mail what it is for, how long it works, and that it can be ignored', async () => {
    const { user } = await addCustomer(db);
    const code = await signInCode(user.email);
    const { mail } = await provider.mailTo(user.email);
    assert.equal(mail.subject, 'Your sign-in code');
    assert.match(mail.text, /valid for 5 minutes and works once/);
    assert.match(mail.text, /not you who asked, ignore this mail/);
    assert.ok(mail.html.includes(code));
  });

  it('is stored and logged nowhere', async () => {
    const { user } = await addCustomer(db);
    const code = await signInCode(user.email);
    await loginWith(here, { email: user.email, code });
    const plain = code.replace('-', '');
    for (const table of ['sign_in_codes', 'sessions', 'work_items', 'customer_log']) {
      const rows = JSON.stringify(await db.query(`select * from reclaim.${table}`));
      assert.ok(!rows.includes(code) && !rows.includes(plain) && !rows.includes(user.email), table);
    }
    for (const { logPath } of [here, there]) {
      const log = fs.readFileSync(logPath, 'utf8');
      assert.ok(!log.includes(code) && !log.includes(plain));
    }
  });

  it('is asked for twice an hour where that is the limit, by known and unknown alike, and others are not kept out', async () => {
    const { user } = await addCustomer(db);
    for (const email of [user.email, address('unknown')]) {
      for (let n = 0; n < 2; n++) assert.equal((await askCode(there, email)).status, 202);
      const refused = assertError(await held(() => askCode(there, email)), 429, 'TOO_MANY_TRIES');
      assert.ok(Number(refused.headers['retry-after']) > 0);
    }
    const code = (await provider.mailTo(user.email, { nth: 2 })).code;
    assert.equal((await requestCode(there, user.email)).status, 409, 'the clean-up counts apart');
    assert.equal((await loginWith(there, { email: user.email, code })).status, 200, 'the code that was mailed works');
  });

  it('bodies that are neither a password nor a code are refused', async () => {
    const email = address('someone');
    for (const body of [
      { email }, { email, password: 'x', code: 'ABCD-EFGH' }, { email, code: null }, { email, code: 7 }, { email, password: null, code: 'ABCD-EFGH' },
      { code: 'ABCD-EFGH' }, { email: 7, code: 'ABCD-EFGH' },
    ])
      assertError(await loginWith(here, body), 400, 'INVALID_BODY');
    assertError(await loginWith(here, { email: 'no address', code: 'ABCD-EFGH' }), 400, 'INVALID_EMAIL');
    for (const body of [{}, { email: 7 }, { email: null }, []]) assertError(await post('/auth/code')(here, {}, body), 400, 'INVALID_BODY');
    assertError(await held(() => askCode(here, 'no address')), 400, 'INVALID_EMAIL');
  });
});

describe('the instance that goes on after another was killed', () => {
  it('mails the same code, and prunes what expired over a day ago', async () => {
    const { user } = await addCustomer(db);
    const [kept, old] = [randomUUID(), randomUUID()];
    await db.query(
      `insert into reclaim.sessions (id, user_id, method, expires_at) values ($1, $3, 'code', now() - interval '23 hours'), ($2, $3, 'code', now() - interval '25 hours')`,
      [kept, old, user.id],
    );
    await db.query(`insert into reclaim.sign_in_codes (email_hash, code_hash, code_salt, expires_at) values ('old', '', '', now() - interval '2 hours')`);
    await db.query(`insert into reclaim.sign_in_networks values ('past', now() - interval '30 days'), ('known', now() - interval '29 days 23 hours')`);
    const before = await db.query(`select 1 from reclaim.gate_ended where id = $1`, [old]);
    const tries = provider.attempts.length;
    provider.answer({ silent: true });
    assert.equal((await askCode(here, user.email)).status, 202);
    await until('the first try', () => provider.attempts.length > tries);
    const first = provider.attempts.at(-1);
    await here.kill9();
    provider.answer();
    await db.query('update reclaim.work_items set leased_until = clock_timestamp() where leased_until is not null');
    const copy = await provider.mailTo(user.email);
    assert.equal(copy.code, first.code);
    assert.equal((await loginWith(there, { email: user.email, code: copy.code })).status, 200);

    const left = () => db.query('select id from reclaim.sessions where id = any ($1)', [[kept, old]]);
    await until('the old session gone', async () => (await left()).length === 1, 60_000);
    assert.deepEqual(await left(), [{ id: kept }]);
    assert.deepEqual(await db.query(`select 1 from reclaim.sign_in_codes where email_hash = 'old'`), []);
    assert.deepEqual(await db.query(`select pair_hash from reclaim.sign_in_networks where pair_hash in ('past', 'known')`), [{ pair_hash: 'known' }]);
    assert.deepEqual(await db.query(`select 1 from reclaim.gate_ended where id = $1`, [old]), before, 'no gate needs to hear of it');
  });
});
