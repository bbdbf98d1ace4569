// `/` and what every page has in common.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { fetchPage, look, newReader, openBrowser, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser;
before(async () => {
  server = await serve(stage, { args: ['--demo'] });
  browser = await openBrowser(stage);
});
after(() => stage.end());

const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

describe('the start page', () => {
  it('tells a newcomer where to go, in both languages, every scheme and width', async () => {
    const page = await newReader(browser, server);
    await page.goto('/');
    assert.equal(await page.locator('h1').textContent(), 'A tour with the people of this demonstration');
    await look(page, 'home');
    watched(page);
  });

  it('starts a story with each person of the demonstration', async () => {
    const page = await newReader(browser, server);
    for (const [name, found] of [
      ['Viktor', 'We found a registration that never finished'],
      ['Uma', 'We found a registration that never finished'],
      ['Olga', 'This address belongs to an account'],
    ]) {
      await page.goto('/');
      await page.getByRole('link', { name }).click();
      assert.equal(await page.getByLabel('E-mail address').inputValue(), `${name.toLowerCase()}@example.com`);
      await page.getByRole('button', { name: 'Continue' }).click();
      assert.equal(await page.locator('h1').textContent(), found);
    }
    await page.goto('/');
    assert.equal(await page.getByRole('link', { name: 'Ada' }).getAttribute('href'), '/account?email=ada@example.com');
    watched(page);
  });

  it('speaks the language that the browser prefers, and the one chosen by a link from then on', async () => {
    const page = await newReader(browser, server, { language: 'de-AT' });
    await page.goto('/');
    assert.equal(await page.locator('h1').textContent(), 'Ein Rundgang mit den Leuten dieser Vorführung');
    await page.getByRole('link', { name: 'English' }).click();
    await page.goto('/');
    assert.equal(await page.locator('html').getAttribute('lang'), 'en');
    watched(page);
  });

  it('is reached from an address with nothing at it', async () => {
    const page = await newReader(browser, server);
    const response = await page.goto('/nothing');
    assert.equal(response.status(), 404);
    await look(page, 'not-found');
    await page.getByRole('link', { name: 'To the start page' }).click();
    assert.equal(new URL(page.url()).pathname, '/');
  });
});

describe('every page', () => {
  it('forbids what it does not need, and names no other host', async () => {
    const answer = await fetchPage(server, '/');
    assert.equal(answer.headers.get('content-security-policy'), policy);
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.doesNotMatch(await answer.text(), /https?:/);
  });

  it('has assets that a browser keeps for ever, and that are sent compressed', async () => {
    const [path] = (await (await fetchPage(server, '/')).text()).match(/\/assets\/base-[0-9a-f]{10}\.css/);
    const packed = await fetchPage(server, path, { headers: { 'accept-encoding': 'gzip, br' } });
    assert.equal(packed.headers.get('content-encoding'), 'br');
    assert.match(packed.headers.get('cache-control'), /immutable/);
    assert.match(await packed.text(), /--radius-card/);
    const again = await fetchPage(server, path, { headers: { 'if-none-match': packed.headers.get('etag') } });
    assert.equal(again.status, 304);
    assert.equal((await fetchPage(server, '/assets/base-0000000000.css')).status, 404);
  });
});
