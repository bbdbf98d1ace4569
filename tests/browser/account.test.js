// `/account`: what deletion means, for everyone; then signing in, deleting an account and taking it back.
//
// takes long

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { wrong } from '../service/lib/cleanup.js';
import { addBillingAccount, addCustomer, asAdmin, asUser, canaryPassword, env, freeze, passwordHash, recoverOwn, rowOf, scene } from '../service/lib/customers.js';
import { request } from '../service/lib/http.js';
import { addUser } from '../service/lib/people.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';
import { accessibilityOf, bytesOfFirstVisit, fetchPage, look, newReader, openBrowser, watched } from './lib/browser.js';

const stage = new Stage();
let db, provider, server, browser;
before(async () => {
  const settings = {
    RECLAIM_BRAND_NAME: 'Example',
    RECLAIM_LIMIT_LOGIN: '6/900',
    RECLAIM_LIMIT_EMAIL: 'off',
    RECLAIM_LIMIT_IP: 'off',
    RECLAIM_HOLD_MS: '50',
    RECLAIM_HOLD_SIGMA_MS: '0',
    RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
  };
  ({ db, provider, server } = await scene(stage, { auth: 'supabase', settings }));
  await db.query(`create table public.recordings (id bigint generated always as identity primary key, customer_id uuid not null);
    create index on public.recordings (customer_id);
    create table public.contacts (like public.recordings including all)`);
  await db.query(`select reclaim.cascade_add('recordings', 'public.recordings', 'customer_id', null, null, null, false, 'customer', 'Call recordings'),
    reclaim.cascade_add('contact_list', 'public.contacts', 'customer_id', null, null, null, false),
    reclaim.cascade_add('archive', null, null, null, null, null, false, null, 'Archive abroad')`);
  browser = await openBrowser(stage);
});
after(() => stage.end());

/** A reader with an address of their own, so that limits of others do not count. */
let readers = 0;
const reader = (options = {}) =>
  newReader(browser, server, { extraHTTPHeaders: { 'X-Forwarded-For': `198.51.100.${++readers}` }, ...options });

const heading = async (page) => (await page.locator('h1').textContent()).trim();
const fill = async (page, fields) => {
  for (const [name, value] of Object.entries(fields)) await page.locator(`#${name}`).fill(value);
};
const press = (page, name) => page.getByRole('button', { name, exact: true }).click();

async function signIn(page, user, password = canaryPassword) {
  await page.goto('/account');
  await fill(page, { email: user.email, password });
  await press(page, 'Sign in');
}

async function mailedCode(email, ask) {
  const nth = provider.mailsTo(email).length + 1;
  await ask();
  return (await provider.mailTo(email, { nth })).code;
}

/** Presses Tab until the element has the focus. */
async function tabTo(page, selector) {
  for (let n = 0; n < 40; n++) {
    if (await page.evaluate((wanted) => document.activeElement?.matches(wanted) ?? false, selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${selector}`);
}
const type = async (page, selector, text) => {
  await tabTo(page, selector);
  await page.keyboard.press('Control+A');
  await page.keyboard.type(text);
};
/** Enter on what has the focus; resolves when the next page is there. */
const enter = (page) => Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
const focused = (page) => page.evaluate(() => document.activeElement.id);

describe('the page for everyone', () => {
  it('says without a sign-in which app, what is deleted and kept, how long, and how', async () => {
    const page = await reader({ scripts: false });
    await page.goto('/account');
    assert.equal(await heading(page), 'Delete your Example account');
    const text = await page.locator('main').innerText();
    for (const said of ['Call recordings', 'Archive abroad', 'Data in one further place', '30 days', 'Backups', '35 days', 'Profile, sign-in, sessions', 'Calls and their numbers', 'Charges (amount, date)'])
      assert.ok(text.includes(said), said);
    for (const name of ['contact_list', 'public.recordings', 'reclaim.charges']) assert.ok(!text.includes(name), name);
    assert.deepEqual(await page.locator('.how-to li').count(), 4);
  });

  it('is under 30 KB over the wire', async () => {
    const bytes = await bytesOfFirstVisit(browser, server, '/account');
    assert.ok(bytes < 30_000, `${bytes} bytes`);
  });

  it('has forms that no other site can send', async () => {
    for (const path of ['sign-in', 'code', 'start-over', 'choose', 'delete', 'delete-code', 'take-back', 'sign-out', 'sign-out-everywhere']) {
      const answer = await fetchPage(server, `/account/${path}`, {
        method: 'POST',
        headers: { 'Content-Type': 'application/x-www-form-urlencoded', 'Sec-Fetch-Site': 'cross-site' },
        body: 'email=a%40example.com',
      });
      assert.equal(answer.status, 403, path);
    }
  });
});

describe('an account with a password', () => {
  it('is deleted and taken back with the keyboard alone', async () => {
    const customer = await addCustomer(db, { name: 'Example Orchard' });
    await addBillingAccount(db, customer);
    await db.query('insert into public.recordings (customer_id) select $1 from generate_series(1, 1204)', [customer.id]);
    const page = await reader();
    await page.goto('/account');
    await type(page, '#email', customer.user.email);
    await type(page, '#password', 'canary-password-wrong');
    await enter(page);
    assert.equal(await focused(page), 'password', 'the focus is where the mistake is');
    assert.equal(await page.locator('#email').inputValue(), customer.user.email, 'what was typed stays');
    await look(page, 'account-wrong-password');

    await type(page, '#password', canaryPassword);
    await enter(page);
    assert.equal(await heading(page), 'Delete your account');
    assert.ok((await page.locator('main').innerText()).includes('1,204'));
    await type(page, '#proof', 'canary-password-wrong');
    await enter(page);
    assert.equal(await focused(page), 'proof');
    assert.equal((await rowOf(db, customer)).status, 'active');
    await look(page, 'account-wrong-proof');

    await type(page, '#proof', canaryPassword);
    await enter(page);
    assert.match(await heading(page), /^Your account is closed and will be deleted on \d+ \w+ \d{4}$/);
    assert.equal((await rowOf(db, customer)).status, 'frozen');
    await until('every layer on the page', async () => {
      await page.reload();
      return !(await page.locator('main').innerText()).includes('stopping now');
    });
    const text = await page.locator('main').innerText();
    assert.match(text, /Sign-in and API keys\s+(after [\d,]+ ms|at once)/);
    assert.match(text, /29\s+days\s+23\s+hours\s+5\d\s+minutes|30\s+days\s+0\s+hours/);
    await look(page, 'account-frozen');

    await tabTo(page, 'button.first');
    await enter(page);
    assert.equal(await heading(page), 'Your account is open again');
    assert.equal((await rowOf(db, customer)).status, 'active');
    await look(page, 'account-recovered');

    await tabTo(page, '.top button');
    await enter(page);
    assert.ok((await page.locator('[role=status]').innerText()).includes('You are signed out.'));
    await look(page, 'account-signed-out');
    await page.goBack();
    await page.reload();
    assert.equal(await heading(page), 'Delete your Example account', 'nothing is left behind');
    watched(page);
  });

  it('sends the reader to the mailed code when it has a second factor', async () => {
    const { user } = await addCustomer(db);
    await db.query(
      `insert into auth.mfa_factors (id, user_id, factor_type, status, created_at, updated_at) values ($1, $2, 'totp', 'verified', now(), now())`,
      [randomUUID(), user.id],
    );
    const page = await reader();
    await signIn(page, user);
    assert.equal(await focused(page), 'code-email');
    assert.ok((await page.locator('#said').innerText()).includes('second factor'));
    assert.deepEqual(await accessibilityOf(page), []);
    const code = await mailedCode(user.email, () => press(page, 'Mail me a code'));
    assert.equal(await focused(page), 'code');
    assert.ok((await page.locator('#said').innerText()).includes(user.email));
    await look(page, 'account-code');
    await fill(page, { code: 'ABCD-EFGH' });
    await press(page, 'Sign in');
    assert.equal(await page.locator('#code').getAttribute('aria-invalid'), 'true');
    await fill(page, { code: code.toLowerCase().replace('-', ' ') });
    await press(page, 'Sign in');
    assert.equal(await heading(page), 'Delete your account');
    watched(page);
  });

  it('counts down when too many passwords were tried, and then the button works again', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    for (let n = 0; n < 7; n++) await signIn(page, user, 'canary-password-wrong');
    const button = page.locator('#send');
    assert.ok(await button.isDisabled());
    assert.match(await page.locator('reclaim-countdown').innerText(), /^1[0-5]:\d\d$/);
    await look(page, 'account-limited');
    await page.evaluate(() => {
      const countdown = document.querySelector('reclaim-countdown');
      countdown.until = Date.now();
      countdown.tick();
    });
    assert.ok(await button.isEnabled());
    watched(page);
  });
});

describe('an account without a password', () => {
  it('is deleted and taken back with scripts off, by code and phrase', async () => {
    const customer = await addCustomer(db, { password: false });
    const page = await reader({ scripts: false });
    await page.goto('/account');
    const code = await mailedCode(customer.user.email, async () => {
      await page.locator('#code-email').fill(customer.user.email);
      await press(page, 'Mail me a code');
    });
    await page.locator('#code').fill(code);
    await press(page, 'Sign in');
    assert.equal(await heading(page), 'Delete your account');
    await page.locator('#proof').fill('delete');
    await press(page, 'Delete my account');
    assert.ok((await page.locator('#said').innerText()).includes('capital letters'));
    await page.locator('#proof').fill('DELETE');
    await press(page, 'Delete my account');
    assert.match(await heading(page), /will be deleted on \d+ \w+ \d{4}$/);
    assert.match(await page.locator('.clock').innerText(), /(29\s+days|30\s+days)/);
    await press(page, 'Take it back');
    assert.equal(await heading(page), 'Your account is open again');
    assert.equal((await rowOf(db, customer)).status, 'active');
    await press(page, 'Back to the account');
    assert.equal(await heading(page), 'Delete your account');
    await press(page, 'Sign out everywhere');
    assert.ok((await page.locator('[role=status]').innerText()).includes('everywhere else'));
  });

  it('is deleted with a second code where proofs are strict', async () => {
    const strict = await serve(stage, { database: db, env: { ...env, ...provider.env, RECLAIM_PROOF: 'strict', RECLAIM_HOLD_MS: '50', RECLAIM_HOLD_SIGMA_MS: '0', RECLAIM_LIMIT_EMAIL: 'off' } });
    const customer = await addCustomer(db, { sso: true });
    const page = await newReader(browser, strict);
    await page.goto('/account');
    const first = await mailedCode(customer.user.email, async () => {
      await fill(page, { 'code-email': customer.user.email });
      await press(page, 'Mail me a code');
    });
    await fill(page, { code: first });
    await press(page, 'Sign in');
    assert.equal(await page.locator('#proof').count(), 0);
    const second = await mailedCode(customer.user.email, () => press(page, 'Mail me a code'));
    await fill(page, { proof: wrong(second) });
    await press(page, 'Delete my account');
    assert.equal(await focused(page), 'proof');
    await look(page, 'account-proof-code');
    await fill(page, { proof: second });
    await press(page, 'Delete my account');
    assert.match(await heading(page), /^Your account is closed/);
    assert.equal((await rowOf(db, customer)).status, 'frozen');
    watched(page);
  });
});

describe('other states', () => {
  it('long and right-to-left names fit, where there are several accounts to choose from', async () => {
    const first = await addCustomer(db, { name: `شركة البستان ${'الطويلة جدا '.repeat(12)}` });
    const second = await addCustomer(db, { owner: false, name: `Donaudampfschifffahrts${'gesellschaft'.repeat(14)}` });
    const joined = await addCustomer(db, { name: '' });
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [second.id, first.user.id]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [joined.id, first.user.id]);
    const page = await reader();
    await signIn(page, first.user);
    assert.equal(await heading(page), 'Which account is it about?');
    await look(page, 'account-choose');

    await page.locator('.choices button').nth(1).click();
    assert.equal(await heading(page), 'Delete your account');
    await look(page, 'account-active');
    const tab = await page.context().newPage();
    await tab.goto('/account');
    await press(tab, 'Choose another account');
    await tab.locator('.choices button').nth(0).click();
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    assert.equal((await rowOf(db, second)).status, 'frozen', 'what the page showed is deleted, whatever another tab chose');
    assert.equal((await rowOf(db, first)).status, 'active');

    await press(page, 'Choose another account');
    await page.locator('.choices button').nth(2).click();
    assert.equal(await heading(page), 'Only the owner can delete this account');
    await look(page, 'account-member');
    watched(page);
  });

  it('a user without an account is told so', async () => {
    const user = await addUser(db, { confirmed: '2025-10-01T00:00:00Z' });
    await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, passwordHash]);
    const page = await reader();
    await signIn(page, user);
    assert.equal(await heading(page), 'There is no account to delete');
    assert.deepEqual(await accessibilityOf(page), []);
    watched(page);
  });

  it('an account that an administrator closed cannot be taken back here', async () => {
    const customer = await addCustomer(db);
    assert.equal((await freeze(server, customer.id)).status, 200);
    const page = await reader();
    await signIn(page, customer.user);
    assert.equal(await page.getByRole('button', { name: 'Take it back' }).count(), 0);
    assert.ok((await page.locator('main').innerText()).includes('Only an administrator can open it again'));
    await look(page, 'account-by-admin');
    watched(page);
  });

  it('a legal hold is not told, and a deletion that is due counts no further', async () => {
    const customer = await addCustomer(db);
    const page = await reader();
    await signIn(page, customer.user);
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    await db.query(`update reclaim.customer_customers set hold_reason = 'test', hold_at = now() where id = $1`, [customer.id]);
    await page.reload();
    assert.match(await heading(page), /will be deleted on/);
    assert.doesNotMatch(await page.locator('main').innerText(), /hold/i);
    await db.query('update reclaim.customer_customers set hold_reason = null, hold_at = null where id = $1', [customer.id]);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() - interval '1 minute' where id = $1`, [customer.id]);
    await page.reload();
    assert.equal(await heading(page), 'Your account is closed and is about to be deleted');
    assert.deepEqual(await accessibilityOf(page), []);
    watched(page);
  });

  it('what happens in one browser shows in the other: closed, taken back, signed out, deleted', async () => {
    const customer = await addCustomer(db);
    const [one, other] = [await reader(), await reader()];
    await signIn(one, customer.user);
    await signIn(other, customer.user);
    await fill(one, { proof: canaryPassword });
    await press(one, 'Delete my account');
    await other.reload();
    assert.match(await heading(other), /^Your account is closed/);
    assert.equal((await recoverOwn(server, asUser(customer.user.id))).status, 200);
    await press(other, 'Take it back');
    assert.equal(await heading(other), 'Your account is open again', 'it was taken back already');

    await press(one, 'Sign out everywhere');
    await other.reload();
    assert.ok((await other.locator('[role=status]').innerText()).includes('You were signed out'));
    await fill(other, { email: customer.user.email, password: canaryPassword });
    await press(other, 'Sign in');
    await db.query('update auth.users set encrypted_password = encrypted_password || $2 where id = $1', [customer.user.id, ' ']);
    await fill(other, { proof: canaryPassword });
    await press(other, 'Delete my account');
    assert.ok((await other.locator('[role=status]').innerText()).includes('change of the password'));
    assert.equal((await rowOf(db, customer)).status, 'active');

    const gone = await addCustomer(db);
    await signIn(one, gone.user);
    assert.equal((await request(server, { method: 'DELETE', path: `/v1/customers/${gone.id}`, headers: asAdmin() })).status, 200);
    await one.reload();
    assert.ok((await one.locator('[role=status]').innerText()).includes('This account has been deleted'));
    await one.reload();
    assert.equal(await heading(one), 'Delete your Example account');
    for (const page of [one, other]) watched(page);
  });

  it('a session is kept in a sealed cookie for 15 minutes from the last visit, out of reach of scripts', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    await signIn(page, user);
    const find = async () => (await page.context().cookies()).find(({ name }) => name.endsWith('reclaim_session'));
    const cookie = await find();
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Lax');
    const left = cookie.expires - Date.now() / 1000;
    assert.ok(left > 800 && left <= 901, `${left} s`);
    const bytes = Buffer.from(cookie.value, 'base64url');
    assert.ok(!cookie.value.includes('.') && !bytes.includes('eyJhbGci'), 'the token does not stand in it');
    await until('a renewed cookie', async () => {
      await page.reload();
      return (await find()).expires > cookie.expires;
    });
    await page.context().addCookies([{ ...cookie, value: cookie.value.slice(0, -2) + (cookie.value.endsWith('AA') ? 'BB' : 'AA') }]);
    await page.reload();
    assert.equal(await heading(page), 'Delete your Example account', 'a forged cookie is none');
  });
});
