// The console of a demonstration: the clock of the sandbox, and pages that keep themselves up to date.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';
import { look, newReader, openBrowser, sendForm, watched } from './lib/browser.js';

const stage = new Stage();
let server, browser;
before(async () => {
  server = await serve(stage, { args: ['--demo'] });
  browser = await openBrowser(stage);
});
after(() => stage.end());

const operator = async (options) => {
  const page = await newReader(browser, server, options);
  await page.goto('/admin');
  await page.getByRole('button', { name: /demonstration/ }).click();
  return page;
};

describe('the sign-in of a demonstration', () => {
  it('needs a button only', async () => {
    const page = await newReader(browser, server);
    await page.goto('/admin/sign-in');
    assert.equal(await page.getByRole('button', { name: /demonstration/ }).count(), 1);
    await look(page, 'admin-sign-in-demo');
    await watched(page);
  });
});

const noticed = (page) => page.locator('.note').textContent();
const texts = (page, of) => page.locator(of).allTextContents();

describe('a page of the console', () => {
  it('says that the server cannot be reached, keeps what was chosen, and goes on when it is back; the address stays', async () => {
    const page = await operator();
    await page.goto('/admin/customers?status=active&q=Example');
    const address = page.url();
    await page.getByRole('link', { name: '2 s' }).click();
    assert.equal(new URL(page.url()).searchParams.get('q'), 'Example');
    const before = await page.locator('tbody tr').count();
    await page.locator('tbody input[type=checkbox]').first().check();
    await page.context().setOffline(true);
    await page.getByText('The server cannot be reached').waitFor();
    await page.context().setOffline(false);
    await page.getByText('The server cannot be reached').waitFor({ state: 'hidden' });
    assert.ok(await page.locator('tbody input[type=checkbox]').first().isChecked());
    assert.equal(await page.locator('tbody tr').count(), before);
    await page.goto(address);
    for (const path of ['/admin?span=day', '/admin/audit', '/admin/orphans', '/admin/services', '/admin/limits', '/admin/dead', '/admin/customers']) {
      await page.goto(path);
      await page.getByRole('link', { name: 'pause' }).click();
      assert.equal(await page.locator('[data-refresh]').getAttribute('data-refresh'), '0', path);
      assert.equal(new URL(page.url()).searchParams.get('span'), path.includes('span') ? 'day' : null, path);
      await page.goto('/admin?every=2');
    }
    page.found = page.found.filter((one) => !/ERR_INTERNET_DISCONNECTED/.test(one));
    await watched(page);
  });

  it('has targets of 44 pixels and more on a telephone', async () => {
    const page = await operator({ viewport: { width: 360, height: 800 }, hasTouch: true, isMobile: true });
    const small = [];
    for (const path of ['/admin', '/admin/customers', '/admin/audit', '/admin/orphans', '/admin/limits', '/admin/services', '/admin/dead', '/admin/settings']) {
      await page.goto(path);
      small.push(
        ...(await page.evaluate(
          (path) =>
            [...document.querySelectorAll('a[href], button, summary, input:not([type=hidden])')]
              .filter((one) => one.getClientRects().length && !one.closest('.skip, .visually-hidden') && !one.matches('.skip'))
              .map((one) => [one, (one.matches('[type=checkbox]') ? one.closest('td, label') : one).getBoundingClientRect().height])
              .filter(([, height]) => height < 44)
              .map(([one, height]) => `${path} ${one.textContent.trim()} ${height}`),
          path,
        )),
      );
    }
    assert.deepEqual(small, []);
    await watched(page);
  });
});

describe('the clock of the sandbox', () => {
  it('is moved and set back from the overview, says so on every page, and every move is in the audit', async () => {
    const page = await operator({ scripts: false });
    assert.equal(await page.locator('.sandbox').count(), 0);
    await page.getByRole('button', { name: 'Seven days ahead' }).click();
    assert.match(await noticed(page), /clock was moved/);
    for (const path of ['/admin', '/admin/customers', '/', '/recover']) {
      await page.goto(path);
      assert.match(await page.locator('.sandbox').textContent(), /clock/, path);
    }
    await page.goto('/admin/settings');
    assert.match(await page.locator('tr', { hasText: 'RECLAIM_SANDBOX' }).textContent(), /on/);
    await page.goto('/admin/audit');
    assert.match((await texts(page, 'tbody tr'))[0], /clock moved ahead.*7d.*admin/s);
    await page.goto('/admin');
    await page.getByRole('button', { name: 'Back to the real time' }).click();
    assert.match(await noticed(page), /real time again/);
    assert.equal(await page.locator('.sandbox').count(), 0);
    await watched(page);
  });

  it('that is moved too far says so; thirty days later a customer is deleted, and its timeline is in one order', async () => {
    const page = await operator();
    await page.getByRole('button', { name: 'Seven days ahead' }).click();
    await page.reload();
    await look(page, 'admin-clock');
    const tooFar = async (language = 'en') => {
      const token = await page.locator('main input[name=token]').first().inputValue();
      await sendForm(page, '/admin/clock', { token, advance: '3650d' });
      await page.goto(`/admin?lang=${language}`);
    };
    await tooFar();
    await look(page, 'admin-clock-too-far', { again: tooFar });
    assert.match(await noticed(page), /cannot be moved that far/);
    assert.equal(await page.locator('.note.bad').count(), 1);
    await page.goto('/admin/customers?status=active');
    const name = (await texts(page, 'tbody bdi'))[0];
    await page.getByRole('link', { name: `Open ${name}` }).click();
    const address = page.url();
    await page.getByRole('link', { name: 'Freeze', exact: true }).click();
    await page.getByRole('button', { name: 'Freeze' }).click();
    await page.goto('/admin');
    await page.getByRole('button', { name: 'Thirty days ahead' }).click();
    await until('it is deleted, and nothing is left to erase', async () => {
      await page.goto(address);
      return (await page.locator('.rows .pill').first().textContent()) === 'deleted' && !/pending/.test(await page.locator('.list').textContent());
    });
    const kinds = await texts(page, '.timeline li');
    const at = (what) => kinds.findIndex((one) => what.test(one));
    assert.ok(at(/receipt/) >= 0 && at(/receipt/) < at(/auditfreeze|audit freeze/), kinds.join('\n'));
    const times = await page.locator('.timeline time').evaluateAll((all) => all.map((one) => Date.parse(one.dateTime)));
    assert.ok(times.every((one) => Math.abs(one - Date.now()) < 86_400_000), 'in real time');
    assert.match(await page.locator('main').textContent(), /These times are real/);
    await page.goto('/admin');
    await page.getByRole('button', { name: 'Back to the real time' }).click();
    assert.match(await noticed(page), /The clock stays as it is/);
    await watched(page);
  });
});
