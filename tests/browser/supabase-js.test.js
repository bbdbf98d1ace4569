// supabase-js, the release that the documents know and the newest, in a page of another origin: what it sends is allowed,
// and its functions client works against the server. A release that is put into tests/package.json, and sends a header
// which preflights do not allow, fails here.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { cleanupPath, scene } from '../service/lib/cleanup.js';
import { probePath, request } from '../service/lib/http.js';
import { addUser, canaryToken } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { openBrowser } from './lib/browser.js';
import { newApplication, openElsewhere, packageOf, sourceOf, supabaseVersions } from './lib/elsewhere.js';

const stage = new Stage();
let db, server, provider, browser, address;
before(async () => {
  const set = await scene(stage, { only: ['cleanup-v1'], auth: 'supabase' });
  ({ db, provider } = set);
  server = set.servers['cleanup-v1'];
  browser = await openBrowser(stage);
  address = await openElsewhere(stage);
});
after(() => stage.end());

const open = async (version) => {
  const page = await newApplication(browser, address, server);
  await page.use(version);
  return page;
};

/** Browsers send it without asking. */
const harmless = new Set(['accept']);
/** Names in its code that are in answers, or in requests to Supabase Storage and Realtime alone. */
const notForFunctions = new Set(['x-relay-error', 'x-total-count', 'x-upsert', 'x-metadata', 'x-iceberg-access-delegation', 'x-phoenix-authtoken']);

async function assertAllowed(names, where) {
  assert.ok(names.length > 0, where);
  for (const path of [probePath, cleanupPath, '/auth/unregister', '/auth/session', '/v1/customers/x', '/v1/customers/x/export']) {
    const headers = { Origin: address, 'Access-Control-Request-Method': 'POST', 'Access-Control-Request-Headers': names.join(',') };
    const answer = await request(server, { method: 'OPTIONS', path, headers });
    const allowed = new Set(answer.headers['access-control-allow-headers'].split(', '));
    assert.deepEqual(names.filter((name) => !allowed.has(name) && !harmless.has(name)), [], `${where}: not allowed at ${path}`);
  }
}

/** Runs in the page: the names of all headers that calls of functions and of Supabase Auth carry, with every option. */
async function recordHeaders({ url, key }) {
  const names = new Set();
  globalThis[Symbol.for('@supabase/supabase-js.traceContextExtractor')] = () => ({
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
    tracestate: 'vendor=1',
    baggage: 'a=b',
  });
  const record = async (input, init) => {
    for (const [name] of new Headers(init?.headers)) names.add(name);
    return new Response('{}', { status: 200, headers: { 'content-type': 'application/json' } });
  };
  const auth = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false };
  for (const tracePropagation of [undefined, true]) {
    const client = supabase.createClient(url, key, { auth, tracePropagation, global: { fetch: record } });
    for (const body of [{ a: 1 }, 'text', new FormData(), new Blob(['x'])])
      for (const region of [undefined, 'eu-central-1']) await client.functions.invoke('check-email-status', { body, region, timeout: 1000, signal: new AbortController().signal });
    await client.auth.signInWithPassword({ email: 'a@example.com', password: 'x' });
    await client.auth.signInWithOtp({ email: 'a@example.com' });
    await client.auth.getUser('x');
  }
  return [...names];
}

describe('headers of supabase-js', () => {
  for (const version of Object.keys(supabaseVersions)) {
    it(`${version}: what its calls carry is allowed`, async () => {
      const page = await open(version);
      const names = await page.call(recordHeaders, { key: canaryToken });
      for (const expected of ['authorization', 'apikey', 'x-client-info', 'content-type', 'x-region', 'x-supabase-api-version']) assert.ok(names.includes(expected), expected);
      if (version === 'newest') for (const expected of ['traceparent', 'tracestate', 'baggage']) assert.ok(names.includes(expected), expected);
      await assertAllowed(names, `supabase-js ${packageOf(version).version}`);
      await page.context().close();
    });

    it(`${version}: every header of its own that its code names is allowed`, async () => {
      const script = sourceOf(version, 'dist/umd/supabase.js');
      const named = [...script.matchAll(/["'`]((?:x|sb)-[a-z-]+)["'`]/gi)].map(([, name]) => name.toLowerCase());
      const names = [...new Set(named)].filter((name) => !notForFunctions.has(name));
      await assertAllowed(names, `the code of supabase-js ${packageOf(version).version}`);
    });
  }

  it('newest: what it tells functions to allow is allowed', async () => {
    const exported = sourceOf('newest', 'dist/cors.mjs');
    const { corsHeaders } = await import(`data:text/javascript,${encodeURIComponent(exported)}`);
    await assertAllowed(corsHeaders['Access-Control-Allow-Headers'].split(', '), 'corsHeaders');
  });

  it('the pinned releases are 2.78 and a later one', () => {
    assert.match(packageOf('2.78').version, /^2\.78\./);
    const [major, minor] = packageOf('newest').version.split('.').map(Number);
    assert.ok(major > 2 || minor >= 119);
  });
});

for (const version of Object.keys(supabaseVersions))
  describe(`supabase-js ${version} in a page of another origin`, () => {
    it('probes, asks for a code and deletes the orphan; errors have the answer in their context', async () => {
      const user = await addUser(db);
      const page = await open(version);
      await page.call(
        ({ url, key }) => {
          const client = supabase.createClient(url, key, { auth: { persistSession: false, autoRefreshToken: false } });
          globalThis.invoke = async (name, body) => {
            const { data, error } = await client.functions.invoke(name, { body, region: 'eu-central-1', headers: { 'x-correlation-id': '7d9e2b40-5c1f-4a83-9b6e-2f8a1c3d4e5f' } });
            if (!error) return { data };
            const { status, headers } = error.context;
            return { name: error.name, status, id: headers.get('x-correlation-id'), body: await error.context.json() };
          };
        },
        { key: canaryToken },
      );
      const invoke = (name, body) => page.call((given) => invoke(given.name, given.body), { name, body });
      assert.equal((await invoke('check-email-status', { email: user.email })).data.data.isOrphaned, true);
      assert.equal((await invoke('cleanup-orphaned-user', { step: 'request-code', email: user.email })).data.data.step, 'code-sent');
      const refusal = await invoke('cleanup-orphaned-user', { step: 'validate-and-cleanup', email: user.email, verificationCode: 'IOIO-IOIO' });
      assert.deepEqual([refusal.name, refusal.status, refusal.body.error.code], ['FunctionsHttpError', 401, 'ORPHAN_CLEANUP_002']);
      assert.equal(refusal.id, '7d9e2b40-5c1f-4a83-9b6e-2f8a1c3d4e5f');
      const { code } = await provider.mailTo(user.email);
      const { data } = await invoke('cleanup-orphaned-user', { step: 'validate-and-cleanup', email: user.email, verificationCode: code });
      assert.equal(data.data.deletedUserId, user.id);
      await page.context().close();
    });
  });
