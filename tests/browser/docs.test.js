// /docs: reading it without scripts, searching it and trying operations from it with the keyboard.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { bytesOfFirstVisit, fetchPage, look, newReader, openBrowser, picture, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser;
before(async () => {
  server = await serve(stage, { args: ['--demo'] });
  browser = await openBrowser(stage);
});
after(() => stage.end());

/** Presses Tab until the element has the focus. */
async function tabTo(page, element) {
  for (let presses = 0; presses < 40; presses++) {
    await page.keyboard.press('Tab');
    if (await element.evaluate((one) => one === document.activeElement)) return;
  }
  assert.fail(`Tab does not lead to ${element}`);
}
const press = async (page, element) => {
  await tabTo(page, element);
  await page.keyboard.press('Enter');
};
/** Opens the form of an operation from its anchor. */
async function open(page, id, name) {
  await page.goto(`/docs#${id}`);
  await press(page, page.locator(`#${id}`).getByRole('button', { name }));
}

const shownOperations = (page) => page.locator('.docs-operation:visible').count();

describe('the reference of the API', () => {
  it('can be read without scripts: every operation, its answers one click away, nothing that needs a script', async () => {
    const page = await newReader(browser, server, { scripts: false });
    await page.goto('/docs#unregister');
    assert.ok((await shownOperations(page)) > 40);
    const operation = page.locator('#unregister');
    assert.ok(await operation.getByText('"confirmation_phrase": "DELETE"').isVisible());
    const wrong = operation.getByText('WRONG_PASSWORD');
    assert.equal(await wrong.isVisible(), false);
    await operation.locator('summary', { hasText: '400' }).click();
    assert.ok(await wrong.isVisible());
    assert.equal(await page.locator('#main :is(button, input, form)').count(), 0);
    await watched(page);
  });

  it('is searched while typing: / begins, every word counts, Enter goes there, Escape shows all again', async () => {
    const page = await newReader(browser, server);
    await page.goto('/docs');
    const all = await shownOperations(page);
    await page.keyboard.press('/');
    await page.keyboard.type('legal hold post');
    await page.getByText(/^\d+ of \d+ operations$/).waitFor();
    assert.ok((await shownOperations(page)) < 12);
    assert.ok(await page.getByRole('heading', { level: 1 }).isVisible());
    assert.ok(await page.locator('#holdCustomer').isVisible());
    assert.equal(await page.locator('#login').isVisible(), false);
    assert.equal(await page.locator('.docs-nav a[href="#login"]').isVisible(), false);
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.getElementById(location.hash.slice(1))?.matches('.docs-operation'));
    await page.keyboard.press('/');
    await page.keyboard.type('nowhere at all');
    await page.getByRole('status').getByText('No operation has these words.').waitFor();
    assert.ok(await page.locator('.docs-none').isVisible());
    assert.equal(await shownOperations(page), 0);
    await page.keyboard.press('Escape');
    assert.equal(await shownOperations(page), all);
    assert.equal(await page.locator('#docs-search').inputValue(), '');
    // A link to an operation that the search has hidden shows it.
    await page.keyboard.type('valid-balance');
    await page.goto('/docs#login');
    await page.locator('#login').waitFor();
    assert.equal(await shownOperations(page), all);
    // Where an operation is read, the same keys work.
    await page.keyboard.press('/');
    await page.keyboard.type('sign in');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.activeElement.id !== 'docs-search');
    await page.keyboard.press('Escape');
    assert.equal(await shownOperations(page), all);
    await watched(page);
  });

  it('tries operations against this server with the keyboard: signs in, and uses the token for the next one', async () => {
    const page = await newReader(browser, server);
    const login = page.locator('#login');
    await open(page, 'login', 'Try it: Sign in');
    await press(page, login.getByRole('button', { name: 'Send POST' }));
    await login.getByText(/^200 OK$/).waitFor();
    assert.match(await login.locator('.docs-result').textContent(), / in \d+ ms/);
    assert.match(await login.locator('.docs-result').textContent(), /x-correlation-id: [0-9a-f-]{36}/);
    await press(page, login.getByRole('button', { name: 'Use this token for the other operations' }));

    const gate = page.locator('#gateGet');
    await open(page, 'gateGet', 'Try it');
    await press(page, gate.getByRole('button', { name: 'Send the request' }));
    await gate.getByText(/^200 OK$/).waitFor();
    assert.match(await gate.locator('.docs-result').textContent(), /x-customer-status: active/);

    // It is kept in this tab, and nowhere else.
    await page.reload();
    const show = page.locator('#showCustomer');
    await open(page, 'showCustomer', 'Try it');
    assert.match(await show.getByLabel('Token or key, kept in this tab only').inputValue(), /^ey/);
    assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie.includes('ey')]), [0, false]);
    const other = await page.context().newPage();
    await other.goto('/docs');
    assert.equal(await other.evaluate(() => sessionStorage.length), 0);
    await watched(page);
  });

  it('shows a refusal as the server gave it, and text of a request as text', async () => {
    const page = await newReader(browser, server);
    await page.goto('/docs#showCustomer');
    const show = page.locator('#showCustomer');
    await show.getByRole('button', { name: 'Try it' }).press('Enter');
    await show.getByLabel('id', { exact: true }).fill('<b>/../..?x=1#y');
    await show.getByRole('button', { name: 'Send GET' }).press('Enter');
    await show.getByText('401 Unauthorized').waitFor();
    assert.match(await show.locator('.docs-result').textContent(), /NO_CREDENTIALS/);
    await show.getByLabel('Token or key, kept in this tab only').fill('not a token');
    await show.getByRole('button', { name: 'Send GET' }).press('Enter');
    await show.getByText(/"error": "INVALID_TOKEN"/).waitFor();
    await show.getByLabel('Token or key, kept in this tab only').fill('t…ken');
    await show.getByRole('button', { name: 'Send GET' }).press('Enter');
    await show.getByText('Not sent').waitFor();
    await show.getByLabel('Token or key, kept in this tab only').fill('');
    await show.getByRole('button', { name: 'Send GET' }).press('Enter');
    await show.locator('.docs-result').getByText(/"error": "NO_CREDENTIALS"/).waitFor();
    page.found = page.found.filter((one) => !/status of 40[01]/.test(one)); // Chromium tells of every refusal
    await watched(page);
  });

  it('is in both languages, but for what comes from the description, which is marked as English', async () => {
    const page = await newReader(browser, server, { language: 'de-AT' });
    await page.goto('/docs#login');
    assert.equal(await page.locator('h1').textContent(), 'API-Referenz');
    await page.getByLabel('Suche').fill('zzz');
    await page.getByRole('status').getByText('Keine Operation hat diese Wörter').waitFor();
    await look(page, 'docs-none', { fullPage: false, prepare: () => page.locator('#docs-search').fill('zzz') });
    await page.goto('/docs?lang=de#login');
    const login = page.locator('#login');
    await login.getByRole('button', { name: /^Ausprobieren/ }).click();
    await login.getByRole('button', { name: 'POST senden' }).click();
    await login.getByText(/^200 OK$/).waitFor();
    const english = /\b(Answers|Parameters|Who may|Request|Search|Try it|Copy|Header fields|required)\b/;
    const own = await page.evaluate(() => {
      const walker = document.createTreeWalker(document.getElementById('main'), NodeFilter.SHOW_TEXT);
      const found = [];
      while (walker.nextNode()) if (walker.currentNode.parentElement.closest('[lang]').lang === 'de' && !walker.currentNode.parentElement.closest('code')) found.push(walker.currentNode.data.trim());
      return found.filter(Boolean);
    });
    assert.deepEqual(own.filter((text) => english.test(text)), []);
    assert.ok(own.includes('Antworten'));
    await watched(page);
  });

  it('is compressed, and not sent again to a reader who has it', async () => {
    const ask = (headers) => fetchPage(server, '/docs', { headers: { 'Accept-Language': 'en', ...headers } });
    const bytes = await bytesOfFirstVisit(browser, server, '/docs');
    assert.ok(bytes > 10_000 && bytes < 100_000, `${bytes} bytes`);
    const [plain, gzip, brotli] = await Promise.all(['identity', 'gzip', 'br'].map((encoding) => ask({ 'Accept-Encoding': encoding })));
    assert.deepEqual([plain, gzip, brotli].map(({ headers }) => headers.get('content-encoding')), [null, 'gzip', 'br']);
    const text = await plain.text();
    assert.ok(text.length > 100_000);
    assert.deepEqual([await gzip.text(), await brotli.text()], [text, text]);
    const tag = plain.headers.get('etag');
    const again = await ask({ 'If-None-Match': tag });
    assert.deepEqual([again.status, await again.text(), again.headers.get('cache-control')], [304, '', 'private, no-cache']);
    const german = await ask({ 'If-None-Match': tag, 'Accept-Language': 'de' });
    assert.equal(german.status, 200);
    assert.match(await german.text(), /<html lang="de">/);
  });

  it('fits every width, and looks as it should in every scheme with all parts opened', async () => {
    const page = await newReader(browser, server, { viewport: { width: 360, height: 900 } });
    await page.goto('/docs');
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    await page.screenshot({ path: picture('docs-top-360') });
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.screenshot({ path: picture('docs-top-1280') });
    // All operations are made alike: a few, with everything opened, stand for the others, which would take axe a minute.
    const prepare = async () => {
      await page.evaluate((kept) => {
        for (const part of document.querySelectorAll('.docs-operation, .docs-object')) if (!kept.includes(part.id)) part.remove();
        for (const part of document.querySelectorAll('.docs-reference details')) part.open = true;
        for (const button of document.querySelectorAll('.docs-open')) button.click();
      }, ['login', 'deleteCustomer', 'gateGet', 'getReady', 'object-Customer', 'cleanupOrphanedUser', 'unregister', 'advanceClock', 'listAudit', 'object-Stats']);
      await page.locator('#login').getByRole('button', { name: /^(Send POST|POST senden)$/ }).click();
      await page.locator('#login').getByText(/^200 OK$/).waitFor();
      await page.locator('#login .docs-try').scrollIntoViewIfNeeded();
    };
    await look(page, 'docs', { fullPage: false, prepare });
    await watched(page);
  });
});
