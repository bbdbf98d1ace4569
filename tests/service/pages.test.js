// Pages answer with the limits, holds and audit of the endpoints behind them, and their forms cannot be sent by others.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { codeOf, hashOf, isThere, requestCode, scene, validate, wrong } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { metric } from './lib/limits.js';
import { Visitor } from './lib/pages.js';
import { addCompany, addUser, address } from './lib/people.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const holdMs = 500;
const stage = new Stage();
let cluster, db, provider, server, secure;
before(async () => {
  const env = { RECLAIM_HOLD_MS: String(holdMs), RECLAIM_PROBE_HOLD_MS: String(holdMs), RECLAIM_LIMIT_EMAIL: '3/3600' };
  const made = await scene(stage, { only: ['cleanup-v1'], env });
  ({ cluster, db, provider } = made);
  server = made.servers['cleanup-v1'];
  secure = await serve(stage, { database: db, env: { ...provider.env, RECLAIM_PUBLIC_URL: 'https://reclaim.example.com', RECLAIM_PROBE: 'off' } });
});
after(() => stage.end());

/** A visitor for whose address something was found. */
const foundFor = async (email, at = server) => {
  const visitor = new Visitor(at);
  await visitor.get('/recover');
  visitor.found = await visitor.send('/recover', { step: 'address', email });
  return visitor;
};
const problemOf = (visitor) => visitor.page.body.match(/<div class="note bad"[^>]*>\s*<p>(.*?)<\/p>/s)?.[1];
const codeMailed = async (email, nth = 1) => (await provider.mailTo(email, { nth })).code;

describe('the page /recover', { concurrency: 4 }, () => {
  it('is held as long as the endpoint behind it, whatever the answer', async () => {
    const [orphan, owner] = [await addUser(db), await addUser(db, { confirmed: '2025-10-20T14:30:00Z' })];
    await addCompany(db, owner);
    const held = (answer, what) => assert.ok(answer.tookMs >= holdMs, `${what}: left after ${answer.tookMs} ms`);
    const story = async (email) => {
      const visitor = await foundFor(email);
      held(visitor.found, `address of ${email}`);
      held(await visitor.post('/recover', { step: 'send' }), `a code for ${email}`);
      held(await visitor.post('/recover', { step: 'code', code: 'ABCD-EFGH' }), `the code of ${email}`);
    };
    await Promise.all([orphan.email, owner.email, address('nobody'), 'nobody'].map(story));
  });

  it('leaves the same trail as the endpoint', async () => {
    const [byApi, byPage] = [await addUser(db), await addUser(db)];
    await requestCode(server, byApi.email);
    const first = await codeMailed(byApi.email);
    await validate(server, byApi.email, wrong(first));
    assert.equal((await validate(server, byApi.email, first)).status, 200);

    const visitor = await foundFor(byPage.email);
    await visitor.send('/recover', { step: 'send' });
    const second = await codeMailed(byPage.email);
    await visitor.send('/recover', { step: 'code', code: wrong(second) });
    assert.match(problemOf(visitor), /^This is not the code that we sent/);
    await visitor.send('/recover', { step: 'code', code: second });
    assert.equal(visitor.heading, 'Your address is free again');
    assert.equal(await isThere(db, byPage), false);

    const trailOf = async ({ email }) => {
      await until('the mail’s event', async () => (await db.query("select 1 from reclaim.auth_cleanup_events where email_hash = $1 and kind = 'mail'", [hashOf(email)])).length === 1);
      return {
        log: await db.query('select step, status, error_code, orphan_classification from reclaim.auth_cleanup_log where email_hash = $1 order by id', [hashOf(email)]),
        events: await db.query('select kind, outcome, detail, count::int, network_hash is null as unknown from reclaim.auth_cleanup_events where email_hash = $1 order by kind, outcome, id', [hashOf(email)]),
      };
    };
    const trail = await trailOf(byApi);
    assert.deepEqual([trail.log.length, trail.events.length], [2, 4], JSON.stringify(trail));
    assert.deepEqual(await trailOf(byPage), trail);
    const reference = visitor.page.body.match(/<code>([0-9a-f-]{36})<\/code>/)[1];
    const [row] = await db.query('select outcome from reclaim.auth_cleanup_events where correlation_id = $1', [reference]);
    assert.equal(row.outcome, 'user-deleted', 'the reference on the page is that of the last step');
  });

  it('shares its limits with the endpoint', async () => {
    const { email } = await addUser(db);
    assert.equal((await requestCode(server, email)).status, 200);
    const visitor = await foundFor(email);
    await visitor.send('/recover', { step: 'send' });
    assert.equal(visitor.heading, 'Enter the code we sent you');
    assert.equal((await requestCode(server, email)).status, 200);
    const late = await foundFor(email);
    await late.send('/recover', { step: 'send' });
    assert.equal(problemOf(late), 'There were too many tries.');
    assert.match(late.page.body, /You can try again in <strong><reclaim-countdown[^>]*>about \d+ minutes</);
    assert.equal((await requestCode(server, email)).status, 429);
  });

  it('asks nothing of the endpoint when a second code is wanted within a minute', async () => {
    const { email } = await addUser(db);
    const visitor = await foundFor(email);
    await visitor.send('/recover', { step: 'send' });
    await codeMailed(email);
    await visitor.send('/recover', { step: 'send' });
    assert.match(problemOf(visitor), /^A code is on its way already/);
    assert.equal(provider.mailsTo(email).length, 1);
    assert.equal((await db.query('select 1 from reclaim.auth_cleanup_log where email_hash = $1', [hashOf(email)])).length, 1);
  });

  it('says that the mail failed when the last refusal comes while the success is held', async (t) => {
    const slowly = 8000; // the success is made ready after four fifths of it
    const refusing = await FakeProvider.start(t, 'resend');
    const slow = await serve(t, { database: db, env: { ...refusing.env, RECLAIM_HOLD_MS: String(slowly) } });
    refusing.answer({ status: 500, delayMs: 7000 });
    const user = await addUser(db);
    const visitor = await foundFor(user.email, slow);
    const answer = await visitor.send('/recover', { step: 'send' });
    assert.ok(answer.tookMs >= slowly);
    assert.match(problemOf(visitor), /^The mail could not be sent/);
    assert.equal(visitor.heading, 'We found a registration that never finished');
    await until('the code is dropped', async () => (await codeOf(db, user.email)) === undefined);
    await slow.stop();
  });

  it('says for every refusal what to do', async () => {
    const user = await addUser(db);
    const visitor = await foundFor(user.email);
    await visitor.send('/recover', { step: 'have-code' });
    await visitor.send('/recover', { step: 'code', code: 'ABCD-EFGH' });
    assert.match(problemOf(visitor), /^This code does not count any more.*Send a new code/);
    assert.match(visitor.page.body, /value="ABCD-EFGH"/);
    await visitor.send('/recover', { step: 'code', code: 'ABC' });
    assert.match(problemOf(visitor), /^This is not a complete code/);
    await addCompany(db, user);
    await visitor.send('/recover', { step: 'send' });
    assert.equal(visitor.heading, 'This address belongs to an account');
    assert.match(visitor.page.body, /belongs to an account with data/);
    await db.query('delete from public.companies where owner_admin_uuid = $1', [user.id]);
    await db.query('delete from auth.users where id = $1', [user.id]);
    await visitor.send('/recover', { step: 'send' });
    assert.equal(visitor.heading, 'This address is free');
    const alone = new Visitor(server);
    await alone.get('/recover');
    await alone.send('/recover', { step: 'code', code: 'ABCD-EFGH' });
    assert.match(problemOf(alone), /^Too much time has passed/);
  });

});

describe('the page /recover without the company tables', () => {
  it('says that it cannot tell, and offers a code all the same', async (t) => {
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    const visitor = await foundFor(user.email);
    await session.query('rollback');
    assert.equal(visitor.heading, 'We cannot tell right now');
    assert.match(visitor.page.body, /value="send"/);
  });
});

describe('the page /recover without the probe', () => {
  it('goes straight to the code, and keeps an address for which there is none', async () => {
    const user = await addUser(db);
    const visitor = await foundFor(user.email, secure);
    assert.equal(visitor.heading, 'Enter the code, if you received one');
    assert.doesNotMatch(visitor.page.body, /What we found/);
    await visitor.send('/recover', { step: 'code', code: await codeMailed(user.email) });
    assert.equal(visitor.heading, 'Your address is free again');
    const nobody = await foundFor(address('nobody'), secure);
    assert.equal(nobody.heading, 'Register again with your address');
    assert.match(problemOf(nobody), /^There is no registration with this address/);
    assert.match(nobody.page.body, /name="email"[^>]* value="nobody\./);
  });
});

describe('a form', () => {
  it('of another site, of another browser or of strange bytes changes nothing', async () => {
    const user = await addUser(db);
    const visitor = await foundFor(user.email);
    const stranger = await foundFor(user.email);
    const good = { token: visitor.token, step: 'send' };
    const without = (name) => {
      const copy = new Visitor(server);
      copy.token = visitor.token;
      copy.cookies = new Map([...visitor.cookies].filter(([cookie]) => cookie !== name));
      return copy;
    };
    const raw = new URLSearchParams(good).toString();
    const cases = {
      'no token': [visitor, { token: '' }],
      'the token of another browser': [visitor, { token: stranger.token }],
      'no token field': [visitor, {}, { raw: 'step=send' }],
      'no cookie': [without('reclaim_visitor'), {}],
      'another site': [visitor, {}, { headers: { 'sec-fetch-site': 'cross-site' } }],
      'a sister site': [visitor, {}, { headers: { 'sec-fetch-site': 'same-site' } }],
      'a foreign origin': [visitor, {}, { headers: { 'sec-fetch-site': undefined, origin: 'https://evil.example.com' } }],
      'an origin that is hidden': [visitor, {}, { headers: { 'sec-fetch-site': undefined, origin: 'null' } }],
      'another content type': [visitor, {}, { headers: { 'content-type': 'text/plain' } }],
      'JSON': [visitor, {}, { raw: JSON.stringify(good), headers: { 'content-type': 'application/json' } }],
      'a large body': [visitor, { more: 'x'.repeat(20_000) }],
      'no UTF-8': [visitor, {}, { raw: `${raw}&more=%ff%fe` }],
      'a NUL': [visitor, {}, { raw: `${raw}&more=%00` }],
      'a malformed escape': [visitor, {}, { raw: `${raw}&more=%zz` }],
      'many fields': [visitor, {}, { raw: `${raw}${'&more=1'.repeat(40)}` }],
    };
    for (const [what, [who, fields, options]] of Object.entries(cases)) {
      const before = new Map(who.cookies);
      const answer = await who.post('/recover', { step: 'send', ...fields }, options);
      assert.ok(answer.status >= 400 && answer.status < 500, `${what}: ${answer.status}`);
      assert.match(answer.headers.get('content-type'), /^text\/html/, what);
      assert.match(answer.body, /<h1>/, what);
      who.cookies.delete('reclaim_visitor');
      before.forEach((value, name) => who.cookies.set(name, value));
    }
    assert.equal(provider.attempts.filter(({ mail }) => mail.to === user.email).length, 0);
    assert.deepEqual(await db.query('select 1 from reclaim.auth_cleanup_log where email_hash = $1', [hashOf(user.email)]), []);
    await visitor.send('/recover', { step: 'send' });
    assert.equal(visitor.heading, 'Enter the code we sent you');
  });

  it('shows what was typed and never runs it', async () => {
    for (const [field, value] of [
      ['email', '<b>@example.com'],
      ['email', '"><script>alert(1)</script>@example.com'],
      ['email', "' onfocus=alert(1) x='@example.com"],
      ['email', '**bold** {brand} {{brand}}@example.com'],
    ]) {
      const visitor = new Visitor(server);
      await visitor.get(`/recover?${new URLSearchParams({ email: value })}`);
      assert.doesNotMatch(visitor.page.body, /<b>|<script>alert|value=""><|{brand}@|Reclaim@/);
      await visitor.send('/recover', { step: 'address', [field]: value });
      assert.match(problemOf(visitor), /^This is not a complete e-mail address/);
      assert.doesNotMatch(visitor.page.body, /<b>|<script>alert|value=""></);
    }
    const visitor = await foundFor((await addUser(db)).email);
    await visitor.send('/recover', { step: 'have-code', code: '"><b>{brand}' });
    assert.match(visitor.page.body, /value="&quot;&gt;&lt;b&gt;\{brand\}"/);
    await visitor.send('/recover', { step: 'code', code: '"><i>' });
    assert.match(visitor.page.body, /value="&quot;&gt;&lt;i&gt;"/);
  });

  it('sent with another method is refused in words that people read', async () => {
    const answer = await fetch(`${new Visitor(server).origin}/recover`, { method: 'PUT', body: 'x', headers: { accept: 'text/html' } });
    assert.equal(answer.status, 405);
    assert.match(answer.headers.get('allow'), /GET/);
    assert.match(await answer.text(), /<h1>/);
  });

  it('with an unknown language, step or field is harmless', async () => {
    const visitor = new Visitor(server);
    for (const path of ['/recover?lang=xx', '/recover?lang=', '/recover?lang=%ff', '/recover?email=%ff', '/recover?email=%00', `/recover?email=${'x'.repeat(3000)}`]) {
      const { status, body } = await visitor.get(path);
      assert.equal(status, 200, path);
      assert.match(body, /<html lang="en">/);
    }
    await visitor.send('/recover', { step: 'something', more: '1' });
    assert.match(problemOf(visitor), /^Too much time has passed/);
    await visitor.send('/recover', { step: 'address', email: 'x'.repeat(5000) });
    assert.match(problemOf(visitor), /^This is not a complete e-mail address/);
  });
});

describe('a cookie of the pages', () => {
  it('is out of reach of scripts and of other sites, and on HTTPS never sent in clear', async () => {
    for (const [at, prefix] of [[server, 'reclaim_'], [secure, '__Host-reclaim_']]) {
      const visitor = new Visitor(at);
      const lines = [];
      lines.push(...(await visitor.get('/recover?lang=de')).headers.getSetCookie());
      lines.push(...(await visitor.post('/recover', { step: 'address', email: address('nobody') })).headers.getSetCookie());
      assert.deepEqual([...visitor.cookies.keys()].sort(), ['lang', 'recover', 'visitor'].map((name) => prefix + name));
      for (const line of lines) {
        assert.match(line, /; Path=\/; Max-Age=\d+; SameSite=Lax; HttpOnly/);
        assert.equal(/; Secure/.test(line), at === secure);
        assert.doesNotMatch(line, /Domain|canary/i);
      }
    }
  });

  it('counts on pages only', async () => {
    const visitor = await foundFor((await addUser(db)).email);
    const cookie = [...visitor.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    for (const [path, options] of [
      ['/gate', {}],
      ['/v1/customers', {}],
      ['/auth/unregister', { method: 'POST', body: '{}' }],
      ['/functions/v1/check-email-status', { method: 'POST', body: '{}' }],
    ]) {
      const ask = (headers) => fetch(visitor.origin + path, { ...options, headers: { 'content-type': 'application/json', ...headers } });
      const [bare, with_] = [await ask({}), await ask({ cookie })];
      assert.equal(with_.status, bare.status, path);
      assert.ok(bare.status >= 400, path);
      assert.deepEqual(with_.headers.getSetCookie(), []);
      await Promise.all([bare.text(), with_.text()]);
    }
  });

  it('that was altered, cut or belongs to another purpose is ignored', async () => {
    const visitor = await foundFor((await addUser(db)).email);
    assert.equal(visitor.heading, 'We found a registration that never finished');
    const sealed = visitor.cookies.get('reclaim_recover');
    const flipped = (at) => sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);
    for (const value of [flipped(0), flipped(40), flipped(sealed.length - 2), sealed.slice(0, -4), sealed.slice(0, 8), `${sealed}AAAA`, '', 'x'.repeat(3900), '%%%']) {
      visitor.cookies.set('reclaim_recover', value);
      await visitor.get('/recover');
      assert.equal(visitor.page.status, 200);
      assert.equal(visitor.heading, 'Register again with your address');
    }
    visitor.cookies.set('reclaim_recover', sealed);
    for (const value of [sealed, 'x', '0'.repeat(31), `${'0'.repeat(32)}0`, 'g'.repeat(32)]) {
      const other = new Visitor(server);
      other.cookies = new Map([...visitor.cookies, ['reclaim_visitor', value]]);
      const { status, headers } = await other.get('/recover');
      assert.equal(status, 200);
      assert.match(headers.getSetCookie().join(), /reclaim_visitor=[0-9a-f]{32};/, 'a new one is given');
    }
  });

  it('of a plain connection is not read on HTTPS', async () => {
    const visitor = await foundFor((await addUser(db)).email);
    const elsewhere = new Visitor(secure);
    elsewhere.cookies.set('__Host-reclaim_visitor', visitor.cookies.get('reclaim_visitor'));
    elsewhere.cookies.set('reclaim_recover', visitor.cookies.get('reclaim_recover'));
    await elsewhere.get('/recover');
    assert.equal(elsewhere.heading, 'Register again with your address');
  });
});

describe('the start page outside the demonstration', () => {
  it('is the short one', async () => {
    const visitor = new Visitor(secure);
    await visitor.get('/');
    assert.equal(visitor.heading, 'What would you like to do?');
    assert.doesNotMatch(visitor.page.body, /example\.com|demo-password|\/mailbox/);
    assert.equal(await metric(secure, 'reclaim_http_answers_total', { route: '/', status: '200' }), 1);
  });
});
