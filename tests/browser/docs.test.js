// /docs: reading it without scripts, searching it and trying operations from it with the keyboard.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { look, newReader, openBrowser, picture, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser;
before(async () => {
  server = await serve(stage, { args: ['--demo'] });
  browser = await openBrowser(stage);
});
after(() => stage.end());

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
    watched(page);
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
    await page.getByText('No operation has these words.').waitFor();
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
    watched(page);
  });

  it('tries operations against this server with the keyboard: signs in, and uses the token for the next one', async () => {
    const page = await newReader(browser, server);
    await page.goto('/docs#login');
    const login = page.locator('#login');
    await login.getByRole('button', { name: 'Try it: Sign in' }).press('Enter');
    await login.getByRole('button', { name: 'Send POST' }).press('Enter');
    await login.getByText(/^200 OK$/).waitFor();
    assert.match(await login.locator('.docs-result').textContent(), / in \d+ ms/);
    assert.match(await login.locator('.docs-result').textContent(), /x-correlation-id: [0-9a-f-]{36}/);
    await login.getByRole('button', { name: 'Use this token for the other operations' }).press('Enter');

    const gate = page.locator('#gateGet');
    await gate.getByRole('button', { name: 'Try it' }).press('Enter');
    await gate.getByRole('button', { name: 'Send the request' }).press('Enter');
    await gate.getByText(/^200 OK$/).waitFor();
    assert.match(await gate.locator('.docs-result').textContent(), /x-customer-status: active/);

    // It is kept in this tab, and nowhere else.
    await page.reload();
    const show = page.locator('#showCustomer');
    await show.getByRole('button', { name: 'Try it' }).press('Enter');
    assert.match(await show.getByLabel('Token or key, kept in this tab only').inputValue(), /^ey/);
    assert.deepEqual(await page.evaluate(() => [localStorage.length, document.cookie.includes('ey')]), [0, false]);
    const other = await page.context().newPage();
    await other.goto('/docs');
    assert.equal(await other.evaluate(() => sessionStorage.length), 0);
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
      }, ['login', 'deleteCustomer', 'gateGet', 'getReady', 'object-Customer']);
      await page.locator('#login').getByRole('button', { name: 'Send POST' }).click();
      await page.locator('#login').getByText(/^200 OK$/).waitFor();
      await page.locator('#login .docs-try').scrollIntoViewIfNeeded();
    };
    await look(page, 'docs', { fullPage: false, languages: ['en'], prepare });
    watched(page);
  });
});
