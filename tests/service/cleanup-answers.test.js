// How cleanup-orphaned-user lets requests in, when its answers leave, and what they may tell.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import {
  assertDeleted,
  assertLogged,
  assertRefused,
  assertSent,
  cleanup,
  cleanupPath,
  codeOf,
  contracts,
  logOf,
  mailedCode,
  requestCode,
  scene,
  validate,
  wrong,
} from './lib/cleanup.js';
import { request } from './lib/http.js';
import { countOf, emailKey, from, ipKey, limitsOf, newClient, waitWords } from './lib/limits.js';
import { addCompany, addUser, address } from './lib/people.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const confirmed = '2025-10-20T14:30:00Z';
const stage = new Stage();
let cluster, db, provider;
before(async () => {
  ({ cluster, db, provider } = await scene(stage, { only: [] }));
});
after(() => stage.end());

const took = (answer) => answer.answeredAt - answer.sentAt;

for (const [contract, promised] of Object.entries(contracts))
  describe(`limits, ${contract}`, () => {
    const suite = new Stage();
    let own, server;
    const both = contract === 'cleanup-v1'; // steps count for the address
    const typed = both ? 'ABCD-EFGH' : '123456';
    before(async () => {
      own = await cluster.database(suite);
      const limits = { RECLAIM_LIMIT_GLOBAL: '1000/3600', RECLAIM_LIMIT_IP: '5/3600', RECLAIM_LIMIT_EMAIL: '3/3600' };
      server = await serve(suite, { database: own, env: { RECLAIM_CONTRACT: contract, ...provider.env, ...limits, RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' } });
    });
    after(() => suite.end());

    const counts = async (client, email) => ({
      global: await countOf(own, 'global'),
      ip: await countOf(own, ipKey('ip', client)),
      ask: await countOf(own, emailKey('email', email)),
      type: await countOf(own, emailKey('email-validate', email)),
    });

    it('three requests for one address an hour, from wherever they come', async () => {
      const { email } = await addUser(own);
      for (let n = 0; n < 3; n++) {
        const answer = assertSent(await requestCode(server, email, {}, from(newClient())), contract);
        const limits = limitsOf(answer);
        assert.deepEqual([limits.tier, limits.limit, limits.remaining], ['email', 3, 2 - n], 'the tier with the least remaining');
      }
      const answer = assertRefused(await requestCode(server, email, {}, from(newClient())), contract, '003');
      const limits = limitsOf(answer);
      assert.deepEqual([limits.tier, limits.limit, limits.remaining], ['email', 3, 0]);
      assert.equal(answer.json.error.retryAfter, limits.seconds);
      if (contract === 'cleanup-v1') assert.match(answer.json.error.message, waitWords(limits.seconds)); // the other has no wait in its sentence
      await assertLogged(own, answer, email, 'request-code', '003');
      assert.deepEqual((await counts('192.0.2.1', email)).ask, 3);
    });

    it(both ? 'typing a code has a bucket of its own' : 'typing a code does not count for the address', async () => {
      const user = await addUser(own);
      const code = await mailedCode(server, provider, user.email);
      for (let n = 0; n < 2; n++) await requestCode(server, user.email, {}, from(newClient()));
      assertRefused(await requestCode(server, user.email, {}, from(newClient())), contract, '003');
      const newest = (await provider.mailTo(user.email, { nth: 3 })).code;
      assert.notEqual(newest, code);
      assertRefused(await validate(server, user.email, wrong(newest), {}, from(newClient())), contract, '002');
      assertDeleted(await validate(server, user.email, newest, {}, from(newClient())), contract, user);
      const { ask, type } = await counts('192.0.2.1', user.email);
      assert.deepEqual([ask, type], [3, both ? 2 : 0]);
    });

    it(`a fourth wrong code is ${both ? 'refused' : 'let in'}`, async () => {
      const email = address('nobody');
      for (let n = 0; n < 3; n++) assertRefused(await validate(server, email, typed, {}, from(newClient())), contract, promised.gone);
      const answer = await validate(server, email, typed, {}, from(newClient()));
      assertRefused(answer, contract, both ? '003' : promised.gone);
      if (both) assert.equal(limitsOf(answer).tier, 'email-validate');
      await assertLogged(own, answer, email, 'validate-and-cleanup', both ? '003' : promised.gone);
    });

    it('malformed requests count for the client, and not for all or for an address', async () => {
      const client = newClient();
      const email = address('nobody');
      const earlier = await counts(client, email);
      const bodies = ['{', { step: 'x', email }, { step: 'request-code', email, correlationId: 'x' }, { step: 'validate-and-cleanup', email, verificationCode: 'x' }];
      for (const [n, body] of bodies.entries()) {
        const answer = assertRefused(await cleanup(server, body, from(client)), contract, promised.malformed);
        assert.deepEqual([limitsOf(answer).tier, limitsOf(answer).remaining], ['ip', 4 - n]);
      }
      assert.deepEqual(await counts(client, email), { ...earlier, ip: bodies.length });
    });

    it('a flood from one client that is refused charges nobody, and leaves others alone', async () => {
      const client = newClient();
      const email = address('nobody');
      for (let n = 0; n < 5; n++) await cleanup(server, '{', from(client));
      const earlier = await counts(client, email);
      const refusals = await Promise.all(Array.from({ length: 60 }, (_, n) => (n % 2 ? requestCode(server, email, {}, from(client)) : cleanup(server, '{', from(client)))));
      for (const answer of refusals) {
        assertRefused(answer, contract, '003');
        assert.equal(limitsOf(answer).tier, 'ip');
      }
      assert.deepEqual(await counts(client, email), earlier);
      assertRefused(await requestCode(server, email, {}, from(newClient())), contract, '004');
    });

    it('what is no POST, and what is too large, is neither counted nor limited', async () => {
      const client = newClient();
      const earlier = await counts(client, '');
      const { headers } = from(client);
      const preflight = { ...headers, Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' };
      const free = [
        await request(server, { method: 'OPTIONS', path: cleanupPath, headers: preflight }),
        await request(server, { method: 'GET', path: cleanupPath, headers }),
        await cleanup(server, 'x'.repeat(17 * 1024), { headers }),
      ];
      assert.deepEqual(free.map(({ status }) => status), [204, 405, 413]);
      assert.equal(free[1].headers.allow, 'POST, OPTIONS');
      assert.deepEqual(await counts(client, ''), earlier);
    });
  });

describe('holding', () => {
  it('no answer to a POST leaves before its time, whatever it says', async (t) => {
    const holdMs = 1200;
    const own = await cluster.database(t);
    const env = { ...provider.env, RECLAIM_HOLD_MS: String(holdMs), RECLAIM_LIMIT_IP: '20/3600', RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' };
    const server = await serve(t, { database: own, env });
    const quick = await serve(t, { database: own, env: { ...env, RECLAIM_HOLD_MS: '0' } });
    const [orphan, right, guessed, expired, locked, owner] = await Promise.all(Array.from({ length: 6 }, () => addUser(own, { confirmed })));
    await addCompany(own, owner);
    const operator = await own.session(t);
    await operator.query('select reclaim.acquire_cleanup_lock($1)', [locked.email]);
    const [code, other, past] = await Promise.all([right, guessed, expired].map(({ email }) => mailedCode(quick, provider, email)));
    await own.query(`update reclaim.verification_codes set expires_at = now() where user_id = $1`, [expired.id]);
    const flood = from(newClient());
    for (let n = 0; n < 20; n++) await cleanup(quick, '{', flood);
    const asked = {
      ok: [() => requestCode(server, orphan.email, {}, from(newClient())), 200],
      deleted: [() => validate(server, right.email, code, {}, from(newClient())), 200],
      wrong: [() => validate(server, guessed.email, wrong(other), {}, from(newClient())), 401],
      expired: [() => validate(server, expired.email, past, {}, from(newClient())), 404],
      unknown: [() => requestCode(server, address('nobody'), {}, from(newClient())), 404],
      active: [() => requestCode(server, owner.email, {}, from(newClient())), 409],
      locked: [() => requestCode(server, locked.email, {}, from(newClient())), 409],
      malformed: [() => cleanup(server, '{', from(newClient())), 400],
      empty: [() => cleanup(server, '', from(newClient())), 400],
      limited: [() => requestCode(server, orphan.email, {}, flood), 429],
      'malformed and limited': [() => cleanup(server, '{', flood), 429],
    };
    await Promise.all(
      Object.entries(asked).map(async ([name, [ask, status]]) => {
        const answer = await ask();
        assert.equal(answer.status, status, `${name}: ${answer.body}`);
        assert.ok(took(answer) >= holdMs, `${name} left after ${took(answer)} ms`);
      }),
    );
    await server.stop();
    await quick.stop();
  });

  it('preflights, wrong methods and bodies too large are not held', async (t) => {
    const holdMs = 60_000; // so long that an answer before it was not held, on any machine
    const server = await serve(t, { database: db, env: { ...provider.env, RECLAIM_HOLD_MS: String(holdMs) } });
    const answers = await Promise.all([
      request(server, { method: 'OPTIONS', path: cleanupPath, headers: { Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' } }),
      ...['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH'].map((method) => request(server, { method, path: cleanupPath })),
      cleanup(server, 'x'.repeat(100_000)),
    ]);
    assert.deepEqual(answers.map(({ status }) => status), [204, 405, 405, 405, 405, 405, 413]);
    for (const answer of answers) assert.ok(took(answer) < holdMs, `held for ${took(answer)} ms`);
    await server.stop();
  });
});

for (const [contract, promised] of Object.entries(contracts))
  describe(`RECLAIM_ENUMERATION=uniform, ${contract}`, () => {
    const suite = new Stage();
    let server;
    before(async () => {
      const env = { RECLAIM_CONTRACT: contract, RECLAIM_ENUMERATION: 'uniform', RECLAIM_LIMIT_IP: '100000/3600', RECLAIM_LIMIT_EMAIL: '1000/3600' };
      server = await serve(suite, { database: db, env: { ...provider.env, ...env } });
    });
    after(() => suite.end());

    /** Everything an answer tells, with what differs from request to request anyway cut out. */
    const shapeOf = ({ status, headers, json }) => {
      const { date, 'x-correlation-id': id, 'x-ratelimit-remaining': remaining, 'x-ratelimit-reset': reset, ratelimit, 'content-length': length, ...rest } = headers;
      assert.ok(date && id && remaining && reset && ratelimit && length);
      const blank = (value) =>
        typeof value === 'string' ? value.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'uuid').replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, 'time') : value;
      return { status, names: Object.keys(headers), rest, length, json: JSON.parse(JSON.stringify(json), (_, value) => blank(value)) };
    };

    it('step 1 tells the same of orphans, active users, unknown and locked addresses', async (t) => {
      const [orphan, owner, locked] = await Promise.all(Array.from({ length: 3 }, () => addUser(db, { confirmed })));
      await addCompany(db, owner);
      const operator = await db.session(t);
      await operator.query('select reclaim.acquire_cleanup_lock($1)', [locked.email]);
      const answers = await Promise.all([orphan.email, owner.email, address('nobody'), locked.email].map((email) => requestCode(server, email)));
      const [first, ...others] = answers.map((answer) => shapeOf(assertSent(answer, contract)));
      for (const other of others) assert.deepEqual(other, first);
      for (const answer of answers) {
        const left = Date.parse(answer.json.data.expiresAt) - Date.now();
        assert.ok(left > 0 && left <= promised.lifeMs, `${left} ms left`);
      }
      await provider.mailTo(orphan.email);
      assert.ok(await codeOf(db, orphan.email));
      for (const { email } of [owner, locked]) assert.equal(await codeOf(db, email), undefined);
      const logged = await Promise.all(answers.map(async ({ json }) => (await logOf(db, json.correlationId))[0].error_code?.slice(-3)));
      assert.deepEqual(logged, [undefined, '005', '004', '009'], 'the log tells the truth');
    });

    it('step 1 says when a code expires by the clock of the request alone', async () => {
      // A database whose clock differs, or that is slow, must not show in the answer for those who exist.
      const orphan = await addUser(db);
      for (const email of [orphan.email, address('nobody')]) {
        const before = Date.now();
        const answer = assertSent(await requestCode(server, email), contract);
        const expires = Date.parse(answer.json.data.expiresAt) - promised.lifeMs;
        assert.ok(expires >= before - 1 && expires <= Date.now(), answer.json.data.expiresAt);
      }
    });

    it('step 2 answers 002 to everything but a right code', async (t) => {
      const [right, guessed, expired, gone, late, locked] = await Promise.all(Array.from({ length: 6 }, () => addUser(db, { confirmed })));
      const codes = new Map();
      for (const user of [right, guessed, expired, gone, late, locked]) codes.set(user, await mailedCode(server, provider, user.email));
      await db.query('update reclaim.verification_codes set expires_at = now() where user_id = $1', [expired.id]);
      await db.query('delete from auth.users where id = $1', [gone.id]);
      await addCompany(db, late);
      const operator = await db.session(t);
      await operator.query('select reclaim.acquire_cleanup_lock($1)', [locked.email]);
      const tried = [
        [guessed.email, wrong(codes.get(guessed))],
        ...[expired, gone, late, locked].map((user) => [user.email, codes.get(user)]),
        [address('nobody'), codes.get(right)],
      ];
      const [first, ...others] = await Promise.all(tried.map(async ([email, code]) => shapeOf(assertRefused(await validate(server, email, code), contract, '002'))));
      for (const other of others) assert.deepEqual(other, first);
      assertDeleted(await validate(server, right.email, codes.get(right)), contract, right);
    });

    it('malformed requests and refusals are still told', async () => {
      assertRefused(await cleanup(server, '{'), contract, promised.malformed);
    });

    it('a mail that cannot be sent is not told either', async (t) => {
      const mute = await serve(t, { database: db, env: { RECLAIM_CONTRACT: contract, RECLAIM_ENUMERATION: 'uniform' } });
      const user = await addUser(db);
      const answers = [await requestCode(mute, user.email), await requestCode(mute, address('nobody'))];
      for (const answer of answers) assertSent(answer, contract);
      assert.equal((await logOf(db, answers[0].json.correlationId))[0].error_code, 'ORPHAN_CLEANUP_008');
      await mute.stop();
    });
  });
