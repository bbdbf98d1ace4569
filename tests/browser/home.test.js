// `/` and what every page has in common.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer } from '../service/lib/customers.js';
import { Cluster } from '../service/lib/postgres.js';
import { serve } from '../service/lib/reclaim.js';
import { Visitor } from '../service/lib/pages.js';
import { Stage } from '../service/lib/stage.js';
import { signIn } from './lib/account.js';
import { accessibilityOf, colours, fetchPage, look, newReader, openBrowser, photograph, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser, cluster, db;
before(async () => {
  server = await serve(stage, { args: ['--demo'] });
  cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
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
    await watched(page);
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
    for (const [name, email] of [['Ada leaves', 'ada@example.com'], ['Thirty days', 'zoe@example.com']]) {
      await page.goto('/');
      await page.getByRole('link', { name }).click();
      assert.equal(await page.locator('#email').inputValue(), email);
      assert.ok(await page.locator('#sign-in').evaluate((card) => card.getBoundingClientRect().top < innerHeight), 'the sign-in is in view');
      await page.locator('#password').fill('demo-password');
      await page.locator('#password').press('Enter');
      await page.getByRole('heading', { name: 'Delete your account' }).waitFor();
      await page.getByRole('button', { name: 'Sign out', exact: true }).click();
    }
    await watched(page);
  });

  it('begins a story with the keyboard only, and with scripts off', async () => {
    for (const scripts of [true, false]) {
      const page = await newReader(browser, server, { scripts });
      await page.goto('/');
      let tabs = 0;
      do await page.keyboard.press('Tab');
      while (++tabs < 20 && (await page.locator(':focus').getAttribute('href')) !== '/recover?email=viktor@example.com');
      await Promise.all([page.waitForNavigation(), page.keyboard.press('Enter')]);
      assert.equal(await page.getByLabel('E-mail address').inputValue(), 'viktor@example.com');
      await watched(page);
    }
  });

  it('offers no tour, no people and no mailbox outside a demonstration', async () => {
    const plain = await serve(stage, { database: db });
    const page = await newReader(browser, plain);
    await page.goto('/');
    assert.equal(await page.locator('h1').textContent(), 'What would you like to do?');
    assert.doesNotMatch(await page.locator('body').innerText(), /demo|Viktor|Mailbox/);
    await look(page, 'home-without-demo');
    await watched(page);
  });

  it('speaks the language that the browser prefers, and the one chosen by a link from then on', async () => {
    const page = await newReader(browser, server, { language: 'de-AT' });
    await page.goto('/');
    assert.equal(await page.locator('h1').textContent(), 'Ein Rundgang mit den Leuten dieser Vorführung');
    await page.getByRole('link', { name: 'English' }).click();
    await page.goto('/');
    assert.equal(await page.locator('html').getAttribute('lang'), 'en');
    await watched(page);
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

describe('what goes wrong', () => {
  it('says so: a form that is stale, one that is too large, an address that takes a form only', async () => {
    const page = await newReader(browser, server);
    const stale = async (language = 'en') => {
      await page.goto(`/account?lang=${language}`);
      await page.locator('#sign-in [name=token]').first().evaluate((input) => (input.value = 'x'));
      await page.locator('#email').fill('ada@example.com');
      await page.locator('#password').fill('demo-password');
      await Promise.all([page.waitForNavigation(), page.locator('#password').press('Enter')]);
    };
    await stale();
    await page.getByRole('heading', { name: 'Please send the form again' }).waitFor();
    await look(page, 'stale-form', { again: stale });
    await page.getByRole('link', { name: 'Deutsch' }).click();
    await page.getByRole('heading', { name: 'Ihr Konto bei Reclaim löschen' }).waitFor();
    assert.equal((await page.goto('/account/sign-in?lang=en')).status(), 405);
    assert.equal(await page.locator('h1').textContent(), 'This address only takes a form');
    await look(page, 'wrong-method');
    const tooLarge = async (language = 'en') => {
      await page.goto(`/recover?lang=${language}`);
      await page.locator('#email').evaluate((input) => {
        input.type = 'text';
        input.value = 'x'.repeat(200_000);
      });
      await Promise.all([page.waitForNavigation(), page.locator('main button').click()]);
    };
    await tooLarge();
    await page.getByRole('heading', { name: 'That is too much at once' }).waitFor();
    await look(page, 'too-large', { again: tooLarge });
  });

  it('says so when the database cannot be reached, and where to go', async () => {
    const lost = await cluster.database(stage);
    const cut = await serve(stage, { database: lost });
    const { user } = await addCustomer(lost);
    const page = await newReader(browser, cut);
    await signIn(page, user);
    await cluster.admin(`alter database ${lost.name} allow_connections false`);
    await cluster.admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${lost.name}'`);
    assert.equal((await page.goto('/account')).status(), 503);
    assert.equal(await page.locator('h1').textContent(), 'This did not work');
    await look(page, 'failure');
    assert.deepEqual(page.found.filter((one) => !one.includes('503')), []);
    await cluster.admin(`alter database ${lost.name} allow_connections true`);
  });

  it('never leads to another host, and keeps what the address asks for', async () => {
    const visitor = new Visitor(server);
    for (const path of ['//evil.example.com', '//evil.example.com/x', '/\\evil.example.com']) {
      const { body } = await visitor.get(path);
      assert.doesNotMatch(body, /href="[/\\]{2}/, path);
    }
    const linkOf = async (path) => (await visitor.get(path)).body.match(/<a href="([^"]*lang=de[^"]*)"/)[1].replaceAll('&amp;', '&');
    assert.equal(await linkOf('/recover?email=viktor%40example.com&lang=en'), '/recover?email=viktor%40example.com&lang=de');
    assert.equal(await linkOf('/recover?a=%22%3E+x'), '/recover?a=%22%3E%20x&lang=de');
    assert.equal(await linkOf('/'), '/?lang=de');
    await visitor.get('/recover');
    const stale = await visitor.post('/account/sign-in', {}, { raw: 'token=x' });
    assert.match(stale.body, /href="\/account\?lang=de"/);
  });
});

describe('the brand', () => {
  it('can be read in any colour, in both schemes', async () => {
    const problems = [];
    for (const color of ['#ffcc00', '#00ff00', '#ff0000', '#000000', '#ffffff']) {
      const painted = await serve(stage, { database: db, env: { RECLAIM_BRAND_COLOR: color } });
      const page = await newReader(browser, painted);
      for (const path of ['/', '/account', '/recover'])
        for (const colorScheme of ['light', 'dark']) {
          await page.emulateMedia({ colorScheme });
          await page.goto(path);
          problems.push(...(await accessibilityOf(page, colours)).map((problem) => `${color} ${path} ${colorScheme}: ${problem}`));
        }
      await photograph(page, `brand-${color.slice(1)}-dark`);
      const icon = await page.locator('link[rel=icon]').getAttribute('href');
      if (color === '#ffcc00') assert.match(await (await fetchPage(painted, icon)).text(), /fill="#ffcc00"/);
      await page.context().close();
      await painted.stop();
    }
    assert.deepEqual(problems, []);
  });

  it('has the operator’s logo, sentences and templates', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reclaim-texts-'));
    const logo = join(folder, 'logo.svg');
    mkdirSync(join(folder, 'templates'));
    writeFileSync(logo, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 26 26"><circle cx="13" cy="13" r="12" fill="#0a7"/></svg>');
    writeFileSync(join(folder, 'en.ini'), '[recover]\naddress_heading = Free your address\n');
    writeFileSync(join(folder, 'templates', 'not-found.html'), '{{>parts/head}}{{>parts/top}}<h1>Nothing here but us</h1>{{>parts/foot}}');
    const own = await serve(stage, { database: db, env: { RECLAIM_BRAND_LOGO: logo, RECLAIM_BRAND_NAME: 'Example & Sons', RECLAIM_TEXTS: folder } });
    const page = await newReader(browser, own);
    await page.goto('/recover');
    assert.equal(await page.locator('h1').textContent(), 'Free your address');
    assert.equal((await page.locator('.brand').innerText()).trim(), 'Example & Sons');
    assert.ok(await page.locator('.brand img').evaluate((img) => img.complete && img.naturalWidth > 0), 'the logo is shown');
    await look(page, 'brand-logo');
    await page.goto('/nothing');
    assert.equal(await page.locator('h1').textContent(), 'Nothing here but us');
    assert.deepEqual(page.found.filter((one) => !one.includes('404')), []);
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
