// `/account`: what deletion means, for everyone; then signing in, deleting an account and taking it back.
//
// takes long

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { wrong } from '../service/lib/cleanup.js';
import { addBillingAccount, addCustomer, canaryPassword, env, rowOf } from '../service/lib/customers.js';
import { request } from '../service/lib/http.js';
import { address } from '../service/lib/people.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { accountScene, fill, heading, press, signIn } from './lib/account.js';
import { bytesOfFirstVisit, fetchPage, focused, look, newReader, sendForm, settled, watched } from './lib/browser.js';

const stage = new Stage();
let db, provider, server, browser, reader, mailedCode;
before(async () => {
  ({ db, provider, server, browser, reader, mailedCode } = await accountScene(stage));
});
after(() => stage.end());

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
const enter = async (page) => {
  await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
  await settled(page);
};

describe('the page for everyone', () => {
  it('says without a sign-in which app, what is deleted and kept, how long, and how', async () => {
    const page = await reader({ scripts: false });
    await page.goto('/account');
    assert.equal(await heading(page), 'Delete your Example account');
    const text = await page.locator('main').innerText();
    for (const said of ['Call recordings', 'Archive abroad', 'Data in one further place', '30 days', 'Backups', '35 days', 'Profile, sign-in, sessions', 'Calls and their numbers', 'Charges (amount, date)', 'as long as bookkeeping law asks', 'no personal data, 365 days'])
      assert.ok(text.includes(said), said);
    for (const name of ['contact_list', 'public.recordings', 'reclaim.charges']) assert.ok(!text.includes(name), name);
    assert.deepEqual(await page.locator('.how-to li').count(), 4);
  });

  it('looks right on a first visit, and takes an address from a link', async () => {
    const page = await reader();
    await page.goto('/account?email=somebody%40example.com#sign-in');
    assert.equal(await page.locator('#email').inputValue(), 'somebody@example.com');
    assert.equal(await page.locator('#code-email').inputValue(), 'somebody@example.com');
    assert.ok(await page.locator('#sign-in').evaluate((card) => card.getBoundingClientRect().top < innerHeight), 'the sign-in is in view');
    await page.goto('/account');
    await look(page, 'account-public');
    await watched(page);
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
    await page.locator('#stopped:not([pending])').waitFor({ state: 'attached' }); // by itself
    assert.ok(!(await page.locator('main').innerText()).includes('stopping now'));
    assert.equal(await page.getByRole('link', { name: 'Look again' }).count(), 0);
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
    await look(page, 'account-signed-out', {
      again: async (language) => {
        await signIn(page, customer.user);
        await sendForm(page, '/account/sign-out', { token: await page.locator('.top input[name=token]').inputValue() });
        await page.goto(`/account?lang=${language}`);
      },
    });
    await page.reload();
    assert.equal(await page.locator('[role=status]').count(), 0, 'a notice is said once');
    await page.goBack();
    await page.reload();
    assert.equal(await heading(page), 'Delete your Example account', 'nothing is left behind');
    await watched(page);
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
    await look(page, 'account-second-factor');
    const code = await mailedCode(user.email, () => press(page, 'Mail me a code'));
    assert.equal(await focused(page), 'code');
    assert.match(await page.locator('main').innerText(), new RegExp(`${user.email.replaceAll('.', '\\.')}.*It is good for [45]:\\d\\d\\.`));
    const resend = page.getByRole('button', { name: 'Send a new code' });
    assert.equal(await resend.isDisabled(), true);
    assert.match(await resend.innerText(), /in\s+(0:\d\d|1:00)/);
    await look(page, 'account-code');
    await page.locator('#code').pressSequentially('abcdefgh');
    assert.equal(await page.locator('#code').inputValue(), 'ABCD-EFGH', 'capitals and the hyphen come by themselves');
    await press(page, 'Sign in');
    assert.equal(await page.locator('#code').getAttribute('aria-invalid'), 'true');
    assert.equal(await page.locator('#code').inputValue(), 'ABCD-EFGH', 'what was typed stays');
    assert.equal(await focused(page), 'code');
    assert.match(await page.locator('main').innerText(), /It is good for [45]:\d\d\./);
    await look(page, 'account-code-wrong');
    await fill(page, { code: code.toLowerCase().replace('-', ' ') });
    await press(page, 'Sign in');
    assert.equal(await heading(page), 'Delete your account');
    await watched(page);
  });

  it('counts down when too many passwords were tried, and then the button works again', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    await page.clock.install();
    for (let n = 0; n < 7; n++) await signIn(page, user, 'canary-password-wrong');
    const button = page.getByRole('button', { name: 'Sign in', exact: true });
    const countdown = page.locator('reclaim-countdown');
    assert.ok(await button.isDisabled());
    assert.match(await countdown.innerText(), /^about 1[0-5] minutes$/);
    await look(page, 'account-limited');
    await page.clock.fastForward('06:00');
    assert.match(await countdown.innerText(), /^[4-9]:\d\d$/);
    await page.clock.fastForward('10:00');
    assert.ok(await button.isEnabled());
    assert.match(await page.locator('#said').innerText(), /You can try again now/);
    await watched(page);
  });
});

describe('a mailed code', () => {
  const askFor = (email, client) =>
    request(server, { method: 'POST', path: '/auth/code', headers: { 'Content-Type': 'application/json', 'X-Forwarded-For': client }, body: JSON.stringify({ email }) });

  it('can still be entered when no other is mailed for now', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    const { client } = page;
    const code = await mailedCode(user.email, () => askFor(user.email, client));
    await page.goto('/account');
    await fill(page, { 'code-email': user.email });
    await press(page, 'I have a code');
    assert.equal(await heading(page), 'Enter the code from the mail');
    assert.equal(await focused(page), 'code');
    assert.equal(await page.locator('#said').count(), 0);
    await look(page, 'account-code-elsewhere');
    while ((await askFor(address('nobody'), client)).status !== 429);
    await page.getByRole('button', { name: 'Send a new code' }).click();
    assert.match(await page.locator('#said').innerText(), /^Too many tries.*\s+You can try again in about 1\d min/);
    assert.ok(await page.getByRole('button', { name: 'Send a new code' }).isDisabled(), 'this button waits');
    assert.ok(await page.getByRole('button', { name: 'Sign in', exact: true }).isEnabled(), 'the other does not');
    await look(page, 'account-code-limited');
    await fill(page, { code });
    await press(page, 'Sign in');
    assert.equal(await heading(page), 'Delete your account');
    await watched(page);
  });

  it('is filled in by the link of its mail, here and in another browser, and leaves the address bar', async () => {
    const { user } = await addCustomer(db);
    const [here, elsewhere] = [await reader(), await reader()];
    await here.goto('/account');
    const code = await mailedCode(user.email, async () => {
      await fill(here, { 'code-email': user.email });
      await press(here, 'Mail me a code');
    });
    await here.goto(`/account#${code}`);
    assert.equal(await here.locator('#code').inputValue(), code);
    assert.equal(here.url().includes('#'), false);

    await elsewhere.goto(`/account#${code.toLowerCase()}`);
    assert.equal(elsewhere.url().includes('#'), false);
    assert.equal(await focused(elsewhere), 'code-email', 'the address is what is missing');
    assert.ok(await elsewhere.getByText('We have the code from your mail').isVisible());
    await look(elsewhere, 'account-code-kept', {
      again: async (language) => {
        await elsewhere.goto('about:blank');
        await elsewhere.goto(`/account?lang=${language}#${code}`);
      },
    });
    await fill(elsewhere, { 'code-email': user.email });
    await press(elsewhere, 'I have a code');
    assert.equal(await elsewhere.locator('#code').inputValue(), code);
    await press(elsewhere, 'Sign in');
    assert.equal(await heading(elsewhere), 'Delete your account');
    await elsewhere.goto('/account#ABCD-EFGH');
    await elsewhere.waitForFunction(() => !location.hash, null, { timeout: 5000 });
    for (const page of [here, elsewhere]) await watched(page);
  });

  it('is over in time, and another is mailed once a minute, with and without scripts', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    await page.clock.install();
    await page.goto('/account');
    await mailedCode(user.email, async () => {
      await fill(page, { 'code-email': user.email });
      await press(page, 'Mail me a code');
    });
    await page.clock.fastForward('01:01');
    assert.ok(await page.getByRole('button', { name: 'Send a new code' }).isEnabled());
    await page.clock.fastForward('05:00');
    assert.match(await page.locator('main').innerText(), /Its time is over: send a new code/);
    await look(page, 'account-code-over', { prepare: () => page.clock.fastForward('05:01') });
    const plain = await reader({ scripts: false });
    await plain.goto('/account');
    await mailedCode(user.email, async () => {
      await plain.locator('#code-email').fill(user.email);
      await press(plain, 'Mail me a code');
    });
    assert.match(await plain.locator('main').innerText(), /It is good until \d+ \w+ \d{4}, \d\d:\d\d UTC\./);
    await plain.getByRole('button', { name: 'Send a new code' }).click();
    assert.match(await plain.locator('#said').innerText(), /A code is on its way already/);
    assert.equal(provider.mailsTo(user.email).length, 2);
    await watched(page);
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

  it('is told how to write the word that confirms', async () => {
    const customer = await addCustomer(db, { password: false });
    const page = await reader();
    await page.goto('/account');
    const code = await mailedCode(customer.user.email, async () => {
      await fill(page, { 'code-email': customer.user.email });
      await press(page, 'Mail me a code');
    });
    await fill(page, { code });
    await press(page, 'Sign in');
    await fill(page, { proof: 'delete' });
    await press(page, 'Delete my account');
    assert.match(await page.locator('#said').innerText(), /capital letters/);
    await look(page, 'account-proof-phrase');
    await watched(page);
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
    assert.equal(await focused(page), 'code');
    assert.match(await page.locator('#confirm').innerText(), /It is good for [45]:\d\d\./);
    await fill(page, { code: wrong(second) });
    await press(page, 'Delete my account');
    assert.equal(await focused(page), 'code');
    assert.equal(await page.locator('#code').inputValue(), wrong(second));
    await look(page, 'account-proof-code');
    await page.goto(`/account#${second}`);
    assert.equal(await page.locator('#code').inputValue(), second);
    await press(page, 'Delete my account');
    assert.match(await heading(page), /^Your account is closed/);
    assert.equal((await rowOf(db, customer)).status, 'frozen');
    await watched(page);
  });
});
