// Limits are no weapon: what strangers and other programs do with them must not keep the owner of an address out, nor delay
// anybody else.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, cleanup, codeOf, contracts, mailedCode, requestCode, scene, validate, wrong } from './lib/cleanup.js';
import { addCustomer, assertError, canaryPassword, customerAddress, env as customerEnv, login } from './lib/customers.js';
import { post, probe, probePath, request } from './lib/http.js';
import { countOf, emailKey, from, ipKey, limitsOf, metric, newClient, pairKey, siteKey } from './lib/limits.js';
import { addUser, address } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
const v1 = 'cleanup-v1';
const limits = {
  RECLAIM_LIMIT_GLOBAL: '1000/3600', RECLAIM_LIMIT_IP: '5/3600', RECLAIM_LIMIT_EMAIL: '3/3600', RECLAIM_LIMIT_PROBE: '5/3600', RECLAIM_LIMIT_LOGIN: '2/900',
};
let cluster, db, provider, server;
before(async () => {
  ({ cluster, db, provider } = await scene(stage, { only: [] }));
  server = await serve(stage, { database: db, env: { ...provider.env, ...customerEnv, ...limits, RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' } });
});
after(() => stage.end());

const newIPv4 = (() => {
  let n = 0;
  return () => `198.18.${++n >> 8}.${n & 255}`;
})();

describe('another program’s transaction that called check_rate_limit and stays open', () => {
  /** A session whose statements fail instead of waiting for long. */
  async function impatient(t) {
    const session = await db.session(t);
    await session.query("set statement_timeout = '20s'");
    return session;
  }
  const check = (session, key, limit = 100, seconds = 3600) => session.query('select * from reclaim.check_rate_limit($1, $2, $3)', [key, limit, seconds]);

  it('delays nobody when the key is its own: probes and clean-ups are answered, other keys decided, rows pruned', async (t) => {
    const [open, other] = [await impatient(t), await impatient(t)];
    await db.query(`insert into reclaim.rate_limits (key, bucket_time) select 'product:1', clock_timestamp() - n * interval '1 day' from generate_series(30, 33) n`);
    await open.query('begin');
    await check(open, 'product:1'); // also records the window of a new tier, and deletes old rows of its key
    const user = await addUser(db);
    assert.equal((await probe(server, user.email, from(newClient()))).status, 200);
    assertSent(await requestCode(server, user.email, {}, from(newClient())), v1);
    const { code } = await provider.mailTo(user.email);
    assertDeleted(await validate(server, user.email, code, {}, from(newClient())), v1, user);
    for (let n = 2; n < 40; n++) {
      const [{ here, there }] = await db.query('select reclaim.limit_stripe($1) as here, reclaim.limit_stripe($2) as there', [`product:${n}`, 'product:1']);
      if (here !== there) assert.equal((await check(other, `product:${n}`)).rows[0].allowed, true);
    }
    await other.query('select reclaim.cleanup_old_rate_limit_buckets()');
    await open.query('rollback');
  });

  it('costs requests with the very key their answer, and no other request', async (t) => {
    const open = await impatient(t);
    const held = newClient();
    const [{ stripe }] = await db.query('select reclaim.limit_stripe($1) as stripe', [ipKey('probe', held)]);
    const others = [];
    while (others.length < 5) {
      const client = newClient();
      const [{ here }] = await db.query('select array[reclaim.limit_stripe($1), reclaim.limit_stripe($2)] as here', [ipKey('probe', client), siteKey('probe', client)]);
      if (!here.includes(stripe)) others.push(client);
    }
    await open.query('begin');
    await check(open, ipKey('probe', held), 5, 3600);
    for (let round = 0; round < 2; round++) {
      const [faults, fine] = await Promise.all([
        Promise.all(Array.from({ length: 40 }, () => probe(server, address('nobody'), from(held)))),
        Promise.all(others.flatMap((client) => [0, 1].map(() => probe(server, address('nobody'), from(client))))),
      ]);
      for (const answer of faults) {
        assert.equal(answer.status, 503, answer.body);
        assert.equal(limitsOf(answer), null, 'counts that are not known are not told');
      }
      assert.deepEqual([...new Set(fine.map(({ status }) => status))], [200]);
    }
    await open.query('commit');
    const answer = await until('the key decided again', async () => {
      const asked = await probe(server, address('nobody'), from(held));
      return asked.status === 200 && asked;
    });
    assert.equal(limitsOf(answer).remaining, 3, 'what the other program counted counts, the faults do not');
  });

  it('that has locked rows of a key makes no request fail', async (t) => {
    const open = await impatient(t);
    await requestCode(server, address('nobody'), {}, from(newClient()));
    await open.query("begin; select from reclaim.rate_limits where key = 'global' for update");
    for (let n = 0; n < 3; n++) assertRefused(await requestCode(server, address('nobody'), {}, from(newClient())), v1, '004');
    await open.query('rollback');
  });

  it('cannot widen the window that Reclaim has recorded for a tier of its own', async (t) => {
    await until('recorded', async () => (await db.query("select 1 from reclaim.rate_limit_tiers where tier = 'ip'")).length > 0);
    await check(await impatient(t), ipKey('ip', newClient()), 5, 86400);
    assert.deepEqual(await db.query("select window_seconds from reclaim.rate_limit_tiers where tier = 'ip'"), [{ window_seconds: 3600 }]);
  });
});

describe('strangers who try codes', () => {
  it('do not keep the owner out: a right code passes the address’s limit, and tells nothing of their tries', async () => {
    const user = await addUser(db);
    const code = await mailedCode(server, provider, user.email);
    for (let n = 1; n <= 3; n++) assertRefused(await validate(server, user.email, wrong(code, n), {}, from(newClient())), v1, '002');
    const refused = assertRefused(await validate(server, user.email, wrong(code, 4), {}, from(newClient())), v1, '003');
    const told = limitsOf(refused);
    assert.deepEqual([told.tier, told.limit, told.remaining], ['email-validate', 3, 0]);
    assert.equal(refused.json.error.retryAfter, told.seconds);
    const answer = assertDeleted(await validate(server, user.email, code, {}, from(newClient())), v1, user);
    assert.deepEqual([limitsOf(answer).tier, limitsOf(answer).remaining], ['ip', 4]);
    assert.ok(!limitsOf(answer).policy.includes('email'), limitsOf(answer).policy);
    assert.equal(await countOf(db, emailKey('email-validate', user.email)), 3);
  });

  it('get 429 at the address’s limit for an address that has no code, too', async () => {
    const email = address('nobody');
    for (let n = 0; n < 3; n++) assertRefused(await validate(server, email, 'ABCD-EFGH', {}, from(newClient())), v1, '001');
    assertRefused(await validate(server, email, 'ABCD-EFGH', {}, from(newClient())), v1, '003');
  });

  for (const [contract, most] of [[v1, 100], ['registration-recovery', 10]])
    it(`${contract}: have three tries for each network, and ${most} together`, async (t) => {
      const other = await serve(t, {
        database: db, env: { ...provider.env, RECLAIM_CONTRACT: contract, RECLAIM_LIMIT_IP: 'off', RECLAIM_LIMIT_EMAIL: 'off', RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' },
      });
      const { gone } = contracts[contract];
      const user = await addUser(db);
      const code = await mailedCode(other, provider, user.email);
      const near = '2001:db8:77:1::';
      for (let n = 1; n <= 3; n++) assertRefused(await validate(other, user.email, wrong(code, n), {}, from(`${near}${n}`)), contract, '002');
      assertRefused(await validate(other, user.email, code, {}, from(`${near}ffff`)), contract, gone);
      assert.equal((await codeOf(db, user.email)).tries, 3, 'a refused network takes none');
      assertRefused(await validate(other, user.email, wrong(code), {}, from('2001:db8:77:2::1')), contract, '002');

      const kept = await codeOf(db, user.email);
      assert.deepEqual(Object.values(kept.network_tries).sort(), [1, 3]);
      for (const network of Object.keys(kept.network_tries)) assert.match(network, /^[0-9a-f]{64}$/);
      await db.query('update reclaim.verification_codes set tries = $2 where email_hash = $1', [kept.email_hash, most - 1]);
      const crowd = await Promise.all(Array.from({ length: 8 }, () => validate(other, user.email, wrong(code), {}, from(newClient()))));
      assert.ok(crowd.filter(({ status }) => status !== 409).length >= 1);
      await until('the last try used', async () => {
        const { tries } = await codeOf(db, user.email);
        if (tries < most) await validate(other, user.email, wrong(code), {}, from(newClient()));
        return tries >= most;
      });
      assert.equal((await codeOf(db, user.email)).tries, most);
      assertRefused(await validate(other, user.email, code, {}, from(newClient())), contract, gone);

      const fresh = await mailedCode(other, provider, user.email);
      assert.deepEqual((await codeOf(db, user.email)).network_tries, {}, 'a new code begins anew');
      assertDeleted(await validate(other, user.email, fresh, {}, from(`${near}1`)), contract, user);
    });

  it('with one network used up, an account that cannot be deleted gives the right code its try back', async () => {
    const user = await addUser(db);
    const client = newClient();
    const code = await mailedCode(server, provider, user.email);
    const [{ id }] = await db.query('insert into public.companies (owner_admin_uuid) values ($1) returning id', [user.id]);
    for (let n = 0; n < 4; n++) assertRefused(await validate(server, user.email, code, {}, from(client)), v1, '005');
    assert.deepEqual(Object.values((await codeOf(db, user.email)).network_tries), [0]);
    await db.query('delete from public.companies where id = $1', [id]);
    assertDeleted(await validate(server, user.email, code, {}, from(client)), v1, user);
  });
});

describe('what everyone shares', () => {
  it('malformed bodies charge their client and nobody else', async () => {
    const shared = async () => [await countOf(db, 'global'), await countOf(db, 'global-validate')];
    const before = await shared();
    const client = newIPv4();
    for (let n = 0; n < 5; n++) assert.equal((await cleanup(server, n % 2 ? '{' : { step: 'x' }, from(client))).status, 400);
    assert.equal((await cleanup(server, '{', from(client))).status, 429);
    assert.deepEqual(await shared(), before);
    assert.equal(await countOf(db, ipKey('ip', client)), 5);
  });

  it('a step leaves the other step’s share alone', async (t) => {
    const other = await cluster.database(t);
    const tight = await serve(t, { database: other, env: { ...provider.env, RECLAIM_LIMIT_GLOBAL: '3/3600', RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' } });
    const user = await addUser(other);
    const code = await mailedCode(tight, provider, user.email);
    for (let n = 0; n < 2; n++) assertRefused(await requestCode(tight, address('nobody'), {}, from(newClient())), v1, '004');
    const refused = assertRefused(await requestCode(tight, address('nobody'), {}, from(newClient())), v1, '003');
    assert.equal(limitsOf(refused).tier, 'global');
    const answer = assertDeleted(await validate(tight, user.email, code, {}, from(newClient())), v1, user);
    assert.deepEqual([limitsOf(answer).tier, limitsOf(answer).remaining], ['global-validate', 2]);
  });

  it('an IPv6 client that moves about its /48 has ten times the limit there, for probes and clean-ups', async (t) => {
    const client = (n) => `2001:db8:48:${n.toString(16)}::1`;
    for (const [tier, ask] of [['probe', (c) => probe(server, address('nobody'), from(c))], ['ip', (c) => cleanup(server, '{', from(c))]]) {
      const answers = [];
      for (let n = 1; n <= 12; n++) for (let m = 0; m < 5; m++) answers.push(await ask(client(n)));
      assert.deepEqual(answers.map(({ status }) => status === 429), answers.map((_, n) => n >= 50), tier);
      const told = limitsOf(answers.at(-1));
      assert.deepEqual([told.tier, told.limit, told.remaining], [`${tier}-site`, 50, 0]);
      assert.equal(await countOf(db, siteKey(tier, client(99))), 50);
    }
    assert.equal((await probe(server, address('nobody'), from('2001:db8:49:1::1'))).status, 200);

    const shown = await run(t, ['limits', 'show', `ip:${client(11)}`], { database: db, env: limits });
    assert.match(shown.stdout, /^probe +0 of 5 in 3600 s, 5 left$/m, shown.stderr);
    assert.match(shown.stdout, /^probe-site +50 of 50 in 3600 s, 0 left, one more in \d+ s$/m);
    const reset = await run(t, ['limits', 'reset', `ip:${client(11)}`], { database: db, env: limits });
    assert.equal(reset.code, 0, reset.stderr);
    await until('let in again', async () => (await probe(server, address('nobody'), from(client(11)))).status === 200);
  });
});

describe('passwords', () => {
  const tryPassword = (email, client, password = 'canary-password-wrong') => login(server, email, password, from(client));

  it('are counted by address and network: a stranger who uses his up does not keep the owner out', async () => {
    const { user } = await addCustomer(db);
    const [stranger, owner] = [newIPv4(), newIPv4()];
    for (let n = 0; n < 2; n++) assertError(await tryPassword(user.email, stranger), 401, 'INVALID_CREDENTIALS');
    assertError(await tryPassword(user.email, stranger), 429, 'TOO_MANY_TRIES');
    const answer = await tryPassword(user.email, owner, canaryPassword);
    assert.equal(answer.status, 200, answer.body);
    assert.equal(limitsOf(answer).remaining, 1, 'nothing is told of the stranger’s tries');
    assert.equal(await countOf(db, pairKey('login', user.email, stranger)), 2);
    assert.equal(await countOf(db, emailKey('login-address', user.email)), 3);
  });

  it('are refused at the address’s bound, right ones too, except from where somebody signed in before', async (t) => {
    const { user } = await addCustomer(db);
    const known = newIPv4();
    assert.equal((await tryPassword(user.email, known, canaryPassword)).status, 200);
    for (let n = 0; n < 19; n++) assertError(await tryPassword(user.email, newIPv4()), 401, 'INVALID_CREDENTIALS');
    for (const password of [undefined, canaryPassword]) {
      const refused = assertError(await tryPassword(user.email, newIPv4(), password), 429, 'TOO_MANY_TRIES');
      const wait = Number(refused.headers['retry-after']);
      assert.ok(wait >= 1 && wait <= 900, `${wait} s`);
      assert.ok(!('x-ratelimit-limit' in refused.headers) && !('ratelimit' in refused.headers), 'nothing else is told of others’ tries');
    }
    const answer = await tryPassword(user.email, known, canaryPassword);
    assert.equal(answer.status, 200, answer.body);

    const rows = await db.query('select * from reclaim.sign_in_networks where pair_hash = $1', [pairKey('x', user.email, known).slice(2)]);
    assert.equal(rows.length, 1, 'one keyed hash of address and network');
    await db.query("update reclaim.sign_in_networks set signed_in_at = now() - interval '30 days'");
    await run(t, ['limits', 'reset', `email:${user.email}`, `ip:${known}`], { database: db, env: limits });
    for (let n = 0; n < 20; n++) await tryPassword(user.email, newIPv4());
    await run(t, ['limits', 'reset', `ip:${known}`], { database: db, env: limits });
    await until('the client’s own tries forgotten', async () => (await countOf(db, ipKey('login-ip', known))) === 0);
    assertError(await tryPassword(user.email, known, canaryPassword), 429, 'TOO_MANY_TRIES');
  });

  it('a code signs in at the address’s bound, and has tries of its own for each network', async () => {
    const { user } = await addCustomer(db);
    await db.query("insert into reclaim.rate_limits values ($1, clock_timestamp(), 20)", [emailKey('login-address', user.email)]);
    assertError(await tryPassword(user.email, newIPv4(), canaryPassword), 429, 'TOO_MANY_TRIES');
    const ask = (path, body, client) => request(server, { method: 'POST', path, headers: { 'Content-Type': 'application/json', ...from(client).headers }, body: JSON.stringify(body) });
    assert.equal((await ask('/auth/code', { email: user.email }, newIPv4())).status, 202);
    const { code } = await provider.mailTo(user.email);
    const strangers = [newIPv4(), newIPv4(), newIPv4()];
    for (const client of strangers) for (let n = 1; n <= 2; n++) assert.equal((await ask('/auth/login', { email: user.email, code: wrong(code, n) }, client)).status, 401);
    assert.equal((await ask('/auth/login', { email: user.email, code }, newIPv4())).status, 200);
  });

  it('a request for a sign-in code tells nothing of others’ requests for the address', async () => {
    const { user } = await addCustomer(db);
    const ask = (client) => request(server, { method: 'POST', path: '/auth/code', headers: { 'Content-Type': 'application/json', ...from(client).headers }, body: JSON.stringify({ email: user.email }) });
    let answer;
    for (let n = 0; (answer = await ask(newIPv4())).status === 202; n++) {
      assert.equal(limitsOf(answer).remaining, limitsOf(answer).limit - 1);
      assert.ok(n < 100, 'the address has a limit, too');
    }
    assertError(answer, 429, 'TOO_MANY_TRIES');
    assert.ok(Number(answer.headers['retry-after']) >= 1);
    assert.equal(limitsOf(answer), null);
  });
});

it('without a database nothing is told of counts', async (t) => {
  const own = await cluster.database(t);
  const lonely = await serve(t, { database: own, env: { ...provider.env, ...limits } });
  await own.query('alter table reclaim.rate_limits rename to away');
  for (const answer of [await probe(lonely, address('nobody')), await requestCode(lonely, address('nobody')), await post(lonely, '{', { path: probePath })]) {
    assert.ok(answer.status >= 500, answer.body);
    assert.equal(limitsOf(answer), null);
  }
  await own.query('alter table reclaim.away rename to rate_limits');
  assert.ok((await metric(lonely, 'reclaim_limit_decisions_total', { verdict: 'fault' })) > 0);
});
