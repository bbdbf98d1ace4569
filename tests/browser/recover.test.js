// `/recover`: a person frees an address that is taken by a registration which never finished.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';
import { bytesOfFirstVisit, fetchPage, focused, look, newReader, openBrowser, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser;
before(async () => {
  server = await serve(stage, {
    args: ['--demo'],
    env: { RECLAIM_LIMIT_EMAIL: '2/3600', RECLAIM_SIGNUP_URL: 'https://app.example.com/sign-up?from=recover' },
  });
  browser = await openBrowser(stage);
});
after(() => stage.end());

const codeFor = (where, email, nth = 1) =>
  until(`mail ${nth} to ${email}`, async () => {
    const { items } = await (await fetchPage(where, '/mailbox.json')).json();
    const mails = items.filter(({ to, text }) => to === email && /^ {4}\S+\r?$/m.test(text));
    return mails.length >= nth && mails[0].text.match(/^ {4}(\S+)\r?$/m)[1];
  });

const heading = (page) => page.locator('h1').textContent();
const give = async (page, email) => {
  await page.goto('/recover?email=');
  await page.getByLabel('E-mail address').fill(email);
  await page.getByRole('button', { name: 'Continue' }).click();
};
const currentStep = (page) => page.locator('[aria-current="step"]').textContent();

describe('what was found', () => {
  const states = [
    ['nobody@example.com', 'not-registered', 'This address is free', /Nobody has registered with no•••@example\.com/],
    ['uma@example.com', 'unverified', 'We found a registration that never finished', /did not confirm the address/],
    ['viktor@example.com', 'verified', 'We found a registration that never finished', /before a company was set up/],
    ['wendy@example.com', 'unconfirmed', 'This address belongs to an account', /never confirmed/],
    ['olga@example.com', 'complete', 'This address belongs to an account', /Sign in with it as usual/],
  ];
  for (const [email, name, title, words] of states)
    it(`is said in plain words: ${name}`, async () => {
      const page = await newReader(browser, server);
      await give(page, email);
      assert.equal(await heading(page), title);
      assert.match(await page.locator('main').innerText(), words);
      assert.equal(await currentStep(page), 'What we found');
      const sends = name === 'unverified' || name === 'verified';
      assert.equal(await page.getByRole('button', { name: 'Mail me a code' }).count(), sends ? 1 : 0);
      await look(page, `recover-found-${name}`);
      await watched(page);
    });

  it('leads to the registration when the address is free, and to the account page when it is not', async () => {
    const page = await newReader(browser, server);
    await give(page, 'nobody@example.com');
    assert.equal(await page.getByRole('link', { name: 'Register now' }).getAttribute('href'), 'https://app.example.com/sign-up?from=recover');
    await give(page, 'olga@example.com');
    assert.equal(await page.getByRole('link', { name: 'To the account page' }).getAttribute('href'), '/account');
  });

  it('asks again for an address that is none, and keeps what was typed', async () => {
    const page = await newReader(browser, server);
    await give(page, 'nobody@nowhere');
    assert.equal(await heading(page), 'Register again with your address');
    const field = page.getByLabel('E-mail address');
    assert.equal(await field.inputValue(), 'nobody@nowhere');
    assert.equal(await field.getAttribute('aria-invalid'), 'true');
    assert.equal(await focused(page), await field.getAttribute('id'));
    await look(page, 'recover-address-wrong');
    await watched(page);
  });
});

describe('the whole story', () => {
  it('with the keyboard only: an address, a code, and the address is free', async () => {
    const page = await newReader(browser, server);
    const press = async (...keys) => {
      for (const key of keys) await page.keyboard.press(key);
    };
    const tabTo = async (name) => {
      for (let n = 0; n < 30; n++) {
        await page.keyboard.press('Tab');
        if (await page.evaluate((wanted) => document.activeElement.textContent.trim().startsWith(wanted) || document.activeElement.name === wanted, name)) return;
      }
      assert.fail(`Tab never reaches ${name}`);
    };
    await page.goto('/recover');
    await look(page, 'recover-address');
    await tabTo('email');
    await page.keyboard.type('viktor@example.com');
    await press('Enter');
    await page.waitForSelector('text=What we found >> visible=true');
    await tabTo('Mail me a code');
    await press('Enter');
    await page.waitForURL('**/recover');
    await page.getByRole('heading', { name: 'Enter the code we sent you' }).waitFor();
    assert.equal(await currentStep(page), 'Code');
    assert.match(await page.locator('main').innerText(), /vi•••@example\.com\. It is good for [45]:\d\d\./);
    const resend = page.getByRole('button', { name: 'Send a new code' });
    assert.equal(await resend.isDisabled(), true);
    assert.match(await resend.innerText(), /in\s+(0:\d\d|1:00)/);
    await look(page, 'recover-code');

    await tabTo('code');
    await page.keyboard.type('abcdefgh');
    assert.equal(await page.getByLabel('Code').inputValue(), 'ABCD-EFGH');
    await press('Enter');
    await page.getByText('This is not the code that we sent').waitFor();
    assert.equal(await page.getByLabel('Code').inputValue(), 'ABCD-EFGH');
    assert.equal(await focused(page), 'code');
    await look(page, 'recover-code-wrong');

    const code = await codeFor(server, 'viktor@example.com');
    await page.getByLabel('Code').focus();
    await press('Control+A');
    await page.keyboard.type(code.replace('-', '').toLowerCase());
    await press('Enter');
    await page.getByRole('heading', { name: 'Your address is free again' }).waitFor();
    assert.equal(await currentStep(page), 'Done');
    assert.equal(await page.getByRole('link', { name: 'Register now' }).getAttribute('href'), 'https://app.example.com/sign-up?from=recover');
    await look(page, 'recover-done');
    await give(page, 'viktor@example.com');
    assert.equal(await heading(page), 'This address is free');
    await watched(page);
  });

  it('with scripts off, a paste with a space, and a new code that has to wait', async () => {
    const page = await newReader(browser, server, { scripts: false });
    await give(page, 'sam@example.com');
    await page.getByRole('button', { name: 'Mail me a code' }).click();
    assert.match(await page.locator('main').innerText(), /It is good until \d+ \w+ \d{4}, \d\d:\d\d UTC\./);
    const first = await codeFor(server, 'sam@example.com');
    await page.getByRole('button', { name: 'Send a new code' }).click();
    assert.match(await page.locator('.note.bad').innerText(), /A code is on its way already/);
    await page.getByLabel('Code').fill(first.replace('-', ' ').toLowerCase());
    await page.getByRole('button', { name: 'Delete and start over' }).click();
    assert.equal(await heading(page), 'Your address is free again');
    await watched(page);
  });
});

describe('the code field', () => {
  it('takes a paste with a space, writes the hyphen itself, and sends nothing by itself', async () => {
    const page = await newReader(browser, server);
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'I have a code' }).click();
    const field = page.getByLabel('Code');
    assert.equal(await field.getAttribute('autocomplete'), 'one-time-code');
    await field.focus();
    await page.keyboard.insertText('abcd efgh');
    assert.equal(await field.inputValue(), 'ABCD-EFGH');
    await page.keyboard.press('Backspace');
    await page.keyboard.press('Home');
    await page.keyboard.insertText('x');
    assert.equal(await field.inputValue(), 'XABC-DEFG');
    assert.equal(await field.evaluate((input) => input.selectionStart), 1);
    assert.equal(await heading(page), 'Enter the code from your mail');
    await watched(page);
  });

  it("is filled by the mail's link, in the browser that asked", async () => {
    const page = await newReader(browser, server);
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'I have a code' }).click();
    await page.goto('/recover#WXYZ-2345');
    assert.equal(await page.getByLabel('Code').inputValue(), 'WXYZ-2345');
    assert.equal(page.url().includes('#'), false);
    await watched(page);
  });

  it('says when the code is over', async () => {
    const page = await newReader(browser, server);
    await page.clock.install();
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'Mail me a code' }).click();
    assert.match(await page.locator('main').innerText(), /It is good for [45]:\d\d\./);
    assert.equal(await focused(page), 'code');
    await page.clock.fastForward('05:01');
    assert.match(await page.locator('main').innerText(), /Its time is over: send a new code/);
    assert.doesNotMatch(await page.locator('main').innerText(), /0:00/);
    assert.equal(await page.getByRole('button', { name: 'Send a new code' }).isEnabled(), true);
    await look(page, 'recover-code-over', { prepare: () => page.clock.fastForward('05:01') });
    await watched(page);
  });

  it("keeps the code of the mail's link for whoever opens it elsewhere, and is asked for the address first", async () => {
    const page = await newReader(browser, server);
    await page.goto('/recover#wxyz-2345');
    assert.equal(page.url().includes('#'), false);
    assert.match(await page.locator('main').innerText(), /We have the code from your mail/);
    await page.getByLabel('E-mail address').fill('uma@example.com');
    await page.getByRole('button', { name: 'Continue' }).click();
    assert.equal(await page.getByLabel('Code').inputValue(), 'WXYZ-2345');
    await look(page, 'recover-code-elsewhere');
    await watched(page);
  });
});

describe('a problem', () => {
  it('looks right: a code that is not complete, a flow that has ended', async () => {
    const page = await newReader(browser, server);
    const enter = async (code) => {
      await page.getByLabel('Code').fill(code);
      await page.getByRole('button', { name: 'Delete and start over' }).click();
    };
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'I have a code' }).click();
    await enter('ABC');
    await page.getByText('This is not a complete code').waitFor();
    await look(page, 'recover-problem-incomplete');
    await page.context().clearCookies({ name: 'reclaim_recover' });
    await enter('ABCD-EFGH');
    await page.getByText('Too much time has passed').waitFor();
    assert.equal(await heading(page), 'Register again with your address');
    await look(page, 'recover-problem-ended');
    await watched(page);
  });
});

describe('a limit', () => {
  it('says how long to wait, counts down, and lets the button work again', async () => {
    const page = await newReader(browser, server);
    const ask = async () => {
      await give(page, 'uma@example.com');
      await page.getByRole('button', { name: 'Mail me a code' }).click();
    };
    await page.clock.install();
    for (let n = 0; n < 3; n++) await ask();
    assert.match(await page.locator('.note.bad').innerText(), /There were too many tries\.\s+You can try again in about \d+ min/);
    const button = page.getByRole('button', { name: 'Mail me a code' });
    assert.equal(await button.isDisabled(), true);
    await page.clock.fastForward('59:00');
    assert.equal(await button.isDisabled(), true);
    await page.clock.fastForward('02:00');
    assert.equal(await button.isDisabled(), false);
    assert.match(await page.locator('.note.bad').innerText(), /You can try again now/);
    await watched(page);
  });

  it('on new codes does not keep a code from being entered', async () => {
    const page = await newReader(browser, server);
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'I have a code' }).click();
    await page.getByRole('button', { name: 'Send a new code' }).click();
    assert.match(await page.locator('.note.bad').innerText(), /There were too many tries/);
    assert.equal(await page.getByRole('button', { name: 'Send a new code' }).isDisabled(), true);
    await page.getByLabel('Code').fill('ABCD-EFGH');
    await page.getByRole('button', { name: 'Delete and start over' }).click({ timeout: 5000 });
    await page.getByText('This is not the code that we sent').waitFor();
    await watched(page);
  });

  it('looks right in every scheme', async () => {
    const page = await newReader(browser, server);
    await give(page, 'uma@example.com');
    await page.getByRole('button', { name: 'Mail me a code' }).click();
    assert.match(await page.locator('.note.bad').innerText(), /You can try again in/);
    await look(page, 'recover-limited');
    await watched(page);
  });
});

describe('a server that tells nobody who is registered, with codes of six digits', () => {
  let other;
  before(async () => {
    other = await serve(stage, { args: ['--demo'], env: { RECLAIM_CONTRACT: 'registration-recovery', RECLAIM_ENUMERATION: 'uniform' } });
  });

  it('says the same to everybody, and goes straight to the code', async () => {
    const shown = [];
    for (const email of ['nora@example.com', 'noor@example.com', 'viktor@example.com']) {
      const page = await newReader(browser, other, { scripts: false });
      await give(page, email);
      assert.equal(await heading(page), 'Enter the code, if you received one');
      const said = await page.locator('main').innerText();
      assert.match(said, /It is good until [^\n]*UTC\.\n/, 'without scripts there is no countdown');
      shown.push(said.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, 'ID').replace(/\w\w•••/, '•••').replace(/until .*UTC/, 'until then'));
    }
    assert.deepEqual(new Set(shown).size, 1, shown.join('\n---\n'));
  });

  it('takes six digits with a space, and ends without a link where no registration page is known', async () => {
    const page = await newReader(browser, other);
    await give(page, 'uma@example.com');
    assert.deepEqual(await page.locator('.steps li').allTextContents(), ['Address', 'Code', 'Done']);
    const field = page.getByLabel('Code');
    assert.equal(await field.getAttribute('inputmode'), 'numeric');
    await look(page, 'recover-code-uniform');
    await field.fill('12 34');
    await page.getByRole('button', { name: 'Delete and start over' }).click();
    await page.getByText('It has six digits').waitFor();
    const code = await codeFor(other, 'uma@example.com');
    await field.fill(`${code.slice(0, 3)} ${code.slice(3)}`);
    await page.getByRole('button', { name: 'Delete and start over' }).click();
    assert.equal(await heading(page), 'Your address is free again');
    assert.equal(await page.getByRole('link', { name: 'Register now' }).count(), 0);
    await look(page, 'recover-done-elsewhere');
    await watched(page);
  });
});

describe('the first visit', () => {
  it('takes less than 30 KB', async () => {
    const bytes = await bytesOfFirstVisit(browser, server, '/recover');
    assert.ok(bytes < 30_000, `${bytes} bytes`);
  });
});
