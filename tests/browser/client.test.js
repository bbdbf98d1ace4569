// @reclaim/client in a page of another origin, alone and with supabase-js.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, addKey, canaryPassword, scene, tokenOf } from '../service/lib/customers.js';
import { addUser, canaryToken } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { openBrowser } from './lib/browser.js';
import { newApplication, openElsewhere, supabaseVersions } from './lib/elsewhere.js';

const stage = new Stage();
let db, server, provider, browser, address;
before(async () => {
  ({ db, server, provider } = await scene(stage, { settings: { RECLAIM_LIMIT_EMAIL: '2/3600' } }));
  browser = await openBrowser(stage);
  address = await openElsewhere(stage);
});
after(() => stage.end());

const open = async (given, version) => {
  const page = await newApplication(browser, address, server);
  if (version) await page.use(version);
  await page.call(makeClient, { version, key: canaryToken, ...given });
  return page;
};

/** Runs in the page: makes `reclaim`, and `told`, which gives a refusal's fields. */
function makeClient({ url, token, apiKey, customer, session, version, key }) {
  if (session) localStorage.setItem('session', JSON.stringify(session));
  const auth = { storageKey: 'session', autoRefreshToken: false, detectSessionInUrl: false };
  const given = version ? { supabase: supabase.createClient(url, key, { auth }) } : { url, token, apiKey, customer };
  globalThis.reclaim = createReclaim(given);
  globalThis.told = (call) =>
    call.then(
      (answer) => ({ answer }),
      (error) => ({ typed: error instanceof ReclaimError, name: error.name, code: error.code, status: error.status, retryAfter: error.retryAfter, correlationId: error.correlationId }),
    );
}

const sessionOf = (user) => ({
  access_token: tokenOf({ sub: user.id }),
  refresh_token: 'x',
  token_type: 'bearer',
  expires_in: 3600,
  expires_at: Math.floor(Date.now() / 1000) + 3600,
  user,
});
const ways = { url: undefined, ...Object.fromEntries(Object.keys(supabaseVersions).map((version) => [`supabase-js ${version}`, version])) };

for (const [way, version] of Object.entries(ways))
  describe(`the client in a page of another origin, with ${way}`, () => {
    it('frees an address, and reads codes, waits and correlation ids of refusals', async () => {
      const user = await addUser(db);
      const page = await open(version ? { session: sessionOf(user) } : {}, version);
      assert.equal((await page.call(({ email }) => reclaim.probe(email), { email: user.email })).isOrphaned, true);
      assert.equal((await page.call(({ email }) => reclaim.requestCode(email), { email: user.email })).step, 'code-sent');
      const wrongCode = await page.call(({ email }) => told(reclaim.validateAndCleanup(email, 'IOIO-IOIO')), { email: user.email });
      assert.deepEqual([wrongCode.typed, wrongCode.code, wrongCode.status], [true, 'ORPHAN_CLEANUP_002', 401]);
      assert.match(wrongCode.correlationId, /^[0-9a-f-]{36}$/);
      await page.call(({ email }) => reclaim.requestCode(email), { email: user.email });
      const limited = await page.call(({ email }) => told(reclaim.requestCode(email)), { email: user.email });
      assert.deepEqual([limited.code, limited.status], ['ORPHAN_CLEANUP_003', 429]);
      assert.ok(limited.retryAfter > 10 && limited.retryAfter <= 3600);
      const { code } = await provider.mailTo(user.email, { nth: 2 });
      const deleted = await page.call(({ email, typed }) => reclaim.validateAndCleanup(email, typed), { email: user.email, typed: code });
      assert.equal(deleted.deletedUserId, user.id);
      assert.equal(await page.evaluate(() => localStorage.getItem('session')), null, 'signed out');
      await page.context().close();
    });

    it('shows, freezes and recovers an account with its token', async () => {
      const customer = await addCustomer(db);
      const page = await open(version ? { session: sessionOf(customer.user) } : { token: tokenOf({ sub: customer.user.id }) }, version);
      assert.equal((await page.call(() => reclaim.account())).id, customer.id);
      const refusal = await page.call(() => told(reclaim.unregister({ password: 'canary-password-wrong' })));
      assert.deepEqual([refusal.code, refusal.status], ['WRONG_PASSWORD', 400]);
      assert.match(refusal.correlationId, /^[0-9a-f-]{36}$/);
      assert.equal((await page.call(({ password }) => reclaim.unregister({ password }), { password: canaryPassword })).status, 'frozen');
      assert.equal((await page.call(() => reclaim.account())).frozen_by, 'owner');
      assert.equal((await page.call(() => reclaim.recover())).status, 'active');
      await page.context().close();
    });
  });

describe('the client in a page of another origin', () => {
  it('sends API keys and the customer that is meant', async () => {
    const customer = await addCustomer(db);
    const page = await open({ apiKey: await addKey(stage, db, customer), customer: customer.id });
    assert.equal((await page.call(() => reclaim.account())).id, customer.id);
    await page.context().close();
  });

  it('tells what is not there from what cannot be reached', async () => {
    const page = await open({ token: canaryToken, customer: 'x' });
    const absent = await page.call(({ url }) => told(createReclaim({ url: `${url}/v1`, token: 'x', customer: 'x' }).account()));
    assert.deepEqual([absent.code, absent.status], ['NOT_FOUND', 404]);
    const unreachable = await page.call(() => told(createReclaim({ url: 'http://127.0.0.1:9', retries: 0 }).probe('a@example.com')));
    assert.deepEqual([unreachable.typed, unreachable.code, unreachable.status], [true, 'NETWORK', 0]);
    await page.context().close();
  });

  it('is cancelled by a signal', async () => {
    const page = await open({});
    const left = await page.call(async () => {
      const leaving = new AbortController();
      const call = told(reclaim.probe('a@example.com', { signal: leaving.signal }));
      leaving.abort();
      return call;
    });
    assert.deepEqual([left.typed, left.name], [false, 'AbortError']);
    await page.context().close();
  });
});
