// `/mailbox`: what arrives in a demonstration, read as in a mail client, and the mails' own look.

import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { asAdmin, jwtSecret } from '../service/lib/customers.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';
import { accessibilityOf, fetchPage, look, newReader, openBrowser, originOf, watched } from './lib/browser.js';

const stage = new Stage();
const screenshots = join(new URL('.', import.meta.url).pathname, '../../build/screenshots');
let server, browser;

before(async () => {
  server = await serve(stage, { args: ['--demo'], env: { RECLAIM_BRAND_NAME: 'Example & Söhne', RECLAIM_REMINDERS: '1d', RECLAIM_JWT_SECRET: jwtSecret } });
  browser = await openBrowser(stage);
});
after(() => stage.end());

const post = async (path, body, headers = {}, method = 'POST') => {
  const answer = await fetchPage(server, path, { method, headers: { 'content-type': 'application/json', ...headers }, body: body && JSON.stringify(body) });
  assert.ok(answer.ok, `${path}: ${answer.status}`);
  return answer.json();
};
const mails = async () => (await (await fetchPage(server, '/mailbox.json')).json()).items;
const mailTo = (address, subject) => until(`${subject} to ${address}`, async () => (await mails()).find((mail) => mail.to === address && mail.subject === subject));
const codeIn = (mail) => /^ {4}(\S+)\r?$/m.exec(mail.text)[1];
const ask = (email, language) => post('/functions/v1/cleanup-orphaned-user', { step: 'request-code', email }, { 'accept-language': language });

describe('the mailbox of a demonstration', () => {
  it('says what to do while no mail has arrived', async () => {
    const page = await newReader(browser, server);
    await page.goto('/mailbox');
    assert.equal(await page.locator('h1').textContent(), 'No mail has arrived');
    assert.equal(await page.getByRole('link', { name: 'Ask for a code' }).getAttribute('href'), '/recover');
    await look(page, 'mailbox-empty');
    await watched(page);
  });

  it('lists the mails, the newest first, and shows one with its links', async () => {
    await ask('uma@example.com', 'en');
    const first = await mailTo('uma@example.com', 'Your verification code');
    await ask('viktor@example.com', 'de');
    const second = await mailTo('viktor@example.com', 'Ihr Bestätigungscode');
    const page = await newReader(browser, server);
    await page.goto('/mailbox');
    assert.deepEqual(await page.locator('.mails strong').allTextContents(), [second.subject, first.subject]);
    await look(page, 'mailbox');
    await page.getByRole('link', { name: 'Your verification code' }).click();
    assert.equal(new URL(page.url()).pathname, `/mailbox/${first.id}`);
    assert.equal(await page.locator('h1').textContent(), 'Your verification code');
    const link = page.locator('.text a');
    assert.equal(await link.getAttribute('href'), `${originOf(server)}/recover#${codeIn(first)}`);
    await look(page, 'mailbox-mail');
    await watched(page);
  });

  it('is read with the keyboard alone, down to the link in a mail', async () => {
    const [newest] = await mails();
    const page = await newReader(browser, server, { language: 'de' });
    await page.goto('/mailbox');
    const tabTo = async (href) => {
      await until(`the focus on ${href}`, async () => {
        await page.keyboard.press('Tab');
        return (await page.locator(':focus').getAttribute('href')) === href;
      });
      await page.keyboard.press('Enter');
    };
    await tabTo(`/mailbox/${newest.id}`);
    await page.waitForURL(`**/mailbox/${newest.id}`);
    await tabTo(`/mailbox/${newest.id}/html`);
    await page.waitForURL('**/html');
    await tabTo(`${originOf(server)}/recover#${codeIn(newest)}`);
    await page.waitForURL(`${originOf(server)}/recover`); // the code is taken out of the address
    assert.ok(await page.getByText('Den Code aus Ihrer Mail haben wir').isVisible());
    assert.equal(await page.locator('[name=code]').inputValue(), codeIn(newest), 'and kept');
  });

  it('is read with scripts off', async () => {
    const [newest] = await mails();
    const page = await newReader(browser, server, { scripts: false });
    await page.goto('/mailbox');
    await page.locator('.mails a').first().click();
    assert.ok((await page.locator('.text').textContent()).includes(codeIn(newest)));
    await page.getByRole('link', { name: 'Show as HTML' }).click();
    await page.getByText(codeIn(newest), { exact: true }).waitFor();
    await page.getByRole('link', { name: 'Code eingeben' }).click();
    await page.waitForURL(`${originOf(server)}/recover#${codeIn(newest)}`);
  });

  it('shows the HTML part under a policy that lets it load and run nothing', async () => {
    const [newest] = await mails();
    const answer = await fetchPage(server, `/mailbox/${newest.id}/html`);
    assert.equal(answer.headers.get('content-security-policy'), "default-src 'none'; style-src 'unsafe-inline'; sandbox");
    assert.equal(await answer.text(), newest.html);
  });

  it('says that a mail is gone', async () => {
    const page = await newReader(browser, server);
    for (const path of ['/mailbox/999999/html', '/mailbox/nonsense', '/mailbox/999999']) {
      const response = await page.goto(path);
      assert.equal(response.status(), 404, path);
      assert.equal(await page.locator('h1').textContent(), 'This mail is not here any more');
    }
    await look(page, 'mailbox-gone');
    await page.getByRole('link', { name: 'All mails' }).click();
    assert.equal(new URL(page.url()).pathname, '/mailbox');
  });
});

describe('a mail', () => {
  const signIn = async (email) => ({ authorization: `Bearer ${(await post('/auth/login', { email, password: 'demo-password' })).token}` });
  const idOf = async (headers) => (await (await fetchPage(server, '/auth/session', { headers })).json()).customers[0].id;

  before(async () => {
    for (const [name, language] of [['ada', 'en'], ['ben', 'de']]) {
      const email = `${name}@example.com`;
      await post('/auth/code', { email }, { 'accept-language': language });
      const headers = { ...(await signIn(email)), 'accept-language': language };
      await post('/auth/unregister', { password: 'demo-password' }, headers);
      await mailTo(email, language === 'de' ? 'Ihr Konto wird gelöscht' : 'Your account will be deleted');
      await post('/auth/unregister', undefined, headers, 'DELETE');
      await mailTo(email, language === 'de' ? 'Ihr Konto ist wieder aktiv' : 'Your account is active again');
    }
  });

  /** Looks at each mail whose subject was not seen yet; returns the subjects. */
  const lookAtMails = async (those) => {
    mkdirSync(screenshots, { recursive: true });
    const page = await (await browser.newContext({ javaScriptEnabled: true })).newPage();
    const problems = [];
    const seen = new Set();
    for (const { id, html, subject, text } of those) {
      if (seen.has(subject)) continue;
      seen.add(subject);
      assert.ok(html.includes('Example &amp; Söhne'), subject);
      await page.setContent(html);
      const name = `mail-${/<html lang="(..)"/.exec(html)[1]}-${subject.replaceAll(/[^a-z]+/gi, '-').toLowerCase()}${html.includes('href') ? '' : '-without-link'}`;
      for (const colorScheme of ['light', 'dark']) {
        for (const width of [360, 700]) {
          await page.emulateMedia({ colorScheme });
          await page.setViewportSize({ width, height: 600 });
          await page.screenshot({ path: join(screenshots, `${name}-${colorScheme}-${width}.png`), fullPage: true });
          const wide = await page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);
          if (wide) problems.push(`${id} ${subject} ${colorScheme} ${width}: scrolls sideways`);
        }
        problems.push(...(await accessibilityOf(page)).map((problem) => `${subject} ${colorScheme}: ${problem}`));
      }
      const said = await page.locator('body').innerText();
      for (const line of text.split('\r\n').filter((one) => one && !one.includes('http'))) assert.ok(said.includes(line.trim()), `${subject}: ${line}`);
    }
    assert.deepEqual(problems, []);
    return seen;
  };

  it('is as readable as a page, light and dark, narrow and wide, in both languages', async () => {
    assert.equal((await lookAtMails(await mails())).size, 8);
  });

  it('links to the page it speaks of, with the code filled in, in a demonstration as it starts', async () => {
    const [code, notice] = [await mailTo('ada@example.com', 'Your sign-in code'), await mailTo('ada@example.com', 'Your account is active again')];
    assert.ok(code.html.includes(`href="${originOf(server)}/account#${codeIn(code)}"`), code.html);
    assert.ok(notice.html.includes(`href="${originOf(server)}/account"`), notice.html);
    const page = await newReader(browser, server);
    await page.goto(`/mailbox/${code.id}`);
    await page.locator('.text a').click();
    await page.waitForURL(`${originOf(server)}/account`);
    assert.equal(await page.locator('[name=code]').inputValue(), codeIn(code));
    await watched(page);
  });

  it('has no link where the server has no pages', async () => {
    const bare = await serve(stage, { args: ['--demo'], env: { RECLAIM_BRAND_NAME: 'Example & Söhne', RECLAIM_PAGES: 'off' } });
    const askBare = (path, options) => fetchPage(bare, path, options);
    await askBare('/auth/code', { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"email":"ada@example.com"}' });
    const those = await until('the mail', async () => {
      const { items } = await (await askBare('/mailbox.json')).json();
      return items.length > 0 && items;
    });
    assert.doesNotMatch(those[0].text, /http|filled in/);
    assert.doesNotMatch(those[0].html, /href|filled in/);
    await lookAtMails(those);
  });

  it('about an administrator’s freeze, a new date, the last days and the end says what can be done', async () => {
    const [admin, cleo, dario] = [asAdmin(), await signIn('cleo@example.com'), await signIn('dario@example.com')];
    const darios = await idOf(dario);
    const clock = (advance) => post('/v1/sandbox/clock', { advance }, admin);
    await post(`/v1/customers/${darios}/freeze`, {}, admin);
    const byAdmin = await mailTo('dario@example.com', 'Your account will be deleted');
    assert.match(byAdmin.text, /Your account was frozen[^]*An administrator froze it/);
    assert.doesNotMatch(byAdmin.html, /href/);
    await post('/auth/unregister', { password: 'demo-password' }, { ...cleo, 'accept-language': 'de' });
    const page = await newReader(browser, server);
    await page.goto('/recover?email=sam@example.com');
    await page.getByRole('button', { name: 'Continue' }).click();
    await page.getByRole('button', { name: 'Mail me a code' }).click();
    await page.getByText('It is good for').waitFor();
    await clock('29d');
    await page.reload();
    assert.match(await page.locator('main').innerText(), /Its time is over: send a new code/);
    assert.match(await page.locator('.sandbox').innerText(), /^The clock of this installation was moved\. Here it is/);
    await look(page, 'clock-moved');
    const reminder = await mailTo('cleo@example.com', 'Ihr Konto wird bald gelöscht');
    await post(`/v1/customers/${darios}/hold`, { reason: 'test' }, admin);
    await clock('1d');
    const last = await mailTo('cleo@example.com', 'Ihr Konto wurde gelöscht');
    assert.deepEqual((await mails()).filter(({ to }) => to === 'cleo@example.com').map(({ subject }) => subject), [last.subject], 'earlier mails went with the account');
    await post(`/v1/customers/${darios}/hold`, undefined, admin, 'DELETE');
    const moved = await mailTo('dario@example.com', 'Your account has a new deletion date');
    await lookAtMails([byAdmin, reminder, last, moved]);
    await watched(page);
  });
});
