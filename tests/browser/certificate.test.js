// The page that the link of the last mail leads to: progress, the certificate for people and for paper, links that lead nowhere.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin } from '../service/lib/customers.js';
import { erased, receipt, remove } from '../service/lib/erasure.js';
import { request } from '../service/lib/http.js';
import { Stage, until } from '../service/lib/stage.js';
import { accountScene, heading } from './lib/account.js';
import { fetchPage, look, photograph, watched } from './lib/browser.js';

const stage = new Stage();
let db, provider, server, reader;
before(async () => {
  ({ db, provider, server, reader } = await accountScene(stage, { RECLAIM_PUBLIC_URL: 'http://localhost' }));
});
after(() => stage.end());

const lastMail = (customer) => until('the last mail', () => provider.mailsTo(customer.email).map((sent) => sent.mail).find(({ subject }) => /was deleted/.test(subject)));
const linkIn = (mail) => mail.text.match(/\/v1\/customers\/\S+\?secret=[0-9a-f]{32}/)[0];
const text = (page) => page.locator('main').innerText();

/** A deleted customer with rows, whose archive has not confirmed yet, and the link of its last mail. */
async function deleted(others = []) {
  const customer = await addCustomer(db);
  await db.query('insert into public.recordings (customer_id) select $1 from generate_series(1, 1204)', [customer.id]);
  for (const table of ['contacts', ...others]) await db.query(`insert into public.${table} (customer_id) values ($1)`, [customer.id]);
  assert.equal((await remove(server, customer.id)).status, 200);
  await until('all but the archive', async () => {
    const { json } = await request(server, { path: `/v1/customers/${customer.id}/erasure`, headers: asAdmin() });
    return json.participants.every(({ name, status }) => name === 'archive' || status === 'done' || status === 'kept');
  });
  return { customer, link: linkIn(await lastMail(customer)) };
}

async function certified() {
  const { customer, link } = await deleted();
  assert.equal((await receipt(server, customer.id, 'archive', { rows: 7 })).status, 200);
  await erased(server, customer);
  return { customer, link };
}

/** The page as it comes out of a printer. */
async function printed(page, name) {
  await page.setViewportSize({ width: 794, height: 1123 }); // A4 at 96 dpi
  await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await page.setViewportSize({ width: 794, height });
  await photograph(page, name);
  const seen = await page.evaluate(() => ({
    text: document.body.innerText,
    ink: getComputedStyle(document.querySelector('h1')).color,
    buttons: [...document.querySelectorAll('.actions, .bottom, .skip')].filter((one) => one.checkVisibility()).length,
  }));
  await page.emulateMedia({ media: null, colorScheme: 'light' });
  await page.setViewportSize({ width: 1280, height: 900 });
  return seen;
}

describe('the link of the last mail', () => {
  it('shows how far the erasure is, then the certificate, which is downloaded with its keys by keyboard', async () => {
    const { customer, link } = await deleted();
    const page = await reader();
    await page.goto(link);
    assert.match(page.url(), /\/account\/certificate\?customer=/);
    assert.equal(await heading(page), 'The account is deleted, and its data is being erased');
    const services = await page.locator('.states li').count();
    assert.match(await text(page), new RegExp(`${services - 1} of ${services} services have confirmed\\.`));
    assert.match(await page.locator('.states li', { hasText: 'Archive abroad' }).innerText(), /not yet/);
    assert.match(await page.locator('.states li', { hasText: 'Call recordings' }).innerText(), /confirmed/);
    await look(page, 'certificate-progress');

    await receipt(server, customer.id, 'archive', { status: 'failed', error: 'disk 7 of host attic is full' });
    await page.reload();
    assert.match(await page.locator('.states li', { hasText: 'Archive abroad' }).innerText(), /tries again/);
    assert.doesNotMatch(await text(page), /attic/);

    await receipt(server, customer.id, 'archive', { rows: 7 });
    await erased(server, customer);
    await until('the page shows the certificate by itself', async () => /^This account was erased on /.test(await heading(page).catch(() => '')));
    const said = await text(page);
    assert.match(said, /This certificate holds\./);
    assert.match(said, /Call recordings\s+1,?204 rows deleted\s[^]*by Reclaim itself/);
    assert.match(said, /Archive abroad\s+7 rows\s[^]*reported by an administrator for the service/);
    assert.match(said, /Backups, until \d+ \w+ 20\d\d/);
    assert.match(said, /What Reclaim itself noted, until \d+ \w+ 20\d\d/);
    assert.match(said, /position \d+ of \d+/);
    assert.ok(said.includes(`reclaim verify erasure-${customer.id}.jose --key keys.json`));
    for (const personal of [customer.email, customer.name]) assert.ok(!said.includes(personal), personal);

    const file = async (name) => {
      await page.locator('body').focus();
      for (let n = 0; n < 20 && (await page.evaluate(() => document.activeElement?.textContent)) !== name; n++) await page.keyboard.press('Tab');
      const [download] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('Enter')]);
      return { name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8') };
    };
    const certificate = await file('Download the certificate');
    assert.equal(certificate.name, `erasure-${customer.id}.jose`);
    assert.equal(certificate.text, (await request(server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() })).body);
    const keys = await file(await page.locator('a[download]').textContent());
    assert.equal(keys.name, 'keys.json');
    assert.ok(JSON.parse(keys.text).keys.length > 0);
    await watched(page);
  });

  it('shows a certificate that prints on A4, and says what became of rows and what is kept, in both languages', async () => {
    for (const [name, ...scrub] of [['letters'], ['people', 'name']]) {
      await db.query(`create table public.${name} (id bigint generated always as identity primary key, customer_id uuid not null, name text default 'Someone', tm_delete timestamptz);
        create index on public.${name} (customer_id)`);
      await db.query(`select reclaim.cascade_add($1, $1, 'customer_id', 'tm_delete', $2, null, false)`, [name, scrub]);
    }
    const { customer, link } = await deleted(['letters', 'people']);
    await db.query(`insert into reclaim.cascade_receipts (customer_id, participant, status, rows, done_at) values ($1, 'crm', 'done', 5, reclaim.now())`, [customer.id]);
    await db.query(`select reclaim.receipts_note('crm', array[$1::uuid], 'unknown')`, [customer.id]); // as before an upgrade
    await db.query(`select reclaim.erasure_keep(array[$1::uuid], 'public.invoices.amount', 'column', 'invoices are kept for ten years by law', 12)`, [customer.id]);
    const early = await reader();
    await early.goto(link);
    assert.match(await text(early), /ten years by law/);
    await watched(early); // it would load itself again once the erasure is complete
    await receipt(server, customer.id, 'archive', { rows: 0 });
    await erased(server, customer);
    const page = await reader();
    await page.goto(link);
    const said = await text(page);
    assert.match(said, /contact_list\s+1 row deleted\s/);
    assert.match(said, /people\s+1 row emptied of what is personal\s/);
    assert.match(said, /letters\s+1 row only marked as deleted\s/);
    assert.match(said, /crm\s+5 rows\s[^\n]*, it is not known who reported it/);
    assert.match(said, /public\.letters\s+1 row\s+its rows are marked as deleted and stay, with what they hold in name\b/);
    assert.match(said, /public\.invoices\.amount\s+12 rows\s+invoices are kept for ten years by law/);
    await look(page, 'certificate');
    const paper = await printed(page, 'certificate-print');
    assert.equal(paper.buttons, 0);
    assert.equal(paper.ink, 'rgb(17, 20, 28)', 'dark on white whatever the scheme');
    assert.ok(!paper.text.includes(link.slice(-32)), 'the secret is not printed');
    const pdf = (await page.pdf({ preferCSSPageSize: true })).toString('latin1');
    assert.match(pdf, /MediaBox\s*\[0 0 59[45](\.\d+)? 84[12](\.\d+)?\]/);
    const sheets = (pdf.match(/\/Type\s*\/Page\b/g) ?? []).length;
    assert.ok(sheets >= 1 && sheets <= 2, `two sheets at most, not ${sheets}`);
    await page.goto(`${page.url()}&lang=de`);
    assert.match(await heading(page), /^Dieses Konto ist gelöscht\. Alles war erledigt am /);
    assert.doesNotMatch((await text(page)).replace(/its rows are marked .*/, ''), /rows|erased|reported|Backups|Certificate/);
    await printed(page, 'certificate-print-de');
    await watched(page);
    for (const name of ['letters', 'people']) await db.query('delete from reclaim.cascade_participants where name = $1', [name]);
  });

  it('works without scripts', async () => {
    const { customer, link } = await deleted();
    const page = await reader({ scripts: false });
    await page.goto(link);
    await receipt(server, customer.id, 'archive', { rows: 7 });
    await erased(server, customer);
    await page.getByRole('link', { name: 'Look again' }).click();
    assert.match(await heading(page), /^This account was erased on /);
    assert.equal(await page.getByRole('button', { name: 'Print' }).count(), 0);
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download the certificate' }).click()]);
    assert.equal(download.suggestedFilename(), `erasure-${customer.id}.jose`);
    await watched(page);
  });

  it('is told nowhere else: no referrer, no cache', async () => {
    const { link } = await certified();
    const headers = { accept: 'text/html' };
    const first = await fetchPage(server, link, { headers });
    const second = await fetchPage(server, first.headers.get('location'), { headers });
    const file = await fetchPage(server, first.headers.get('location').replace('certificate?', 'certificate.jose?'), { headers });
    assert.deepEqual([first, second, file].map(({ status }) => status), [303, 200, 200]);
    for (const answer of [first, second, file]) {
      assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
      assert.equal(answer.headers.get('cache-control'), 'no-store');
    }
    assert.equal(file.headers.get('content-type'), 'application/jose');
    const page = await reader();
    const seen = [];
    page.on('request', (one) => seen.push(one.headers().referer));
    await page.goto(link);
    await page.getByRole('link', { name: 'Example' }).click();
    assert.deepEqual(seen.filter(Boolean).filter((referer) => referer.includes('secret')), []);
    await watched(page);
  });

  it('that is cut off or of no erasure says so', async () => {
    const { link } = await certified();
    const page = await reader();
    for (const wrong of [link.slice(0, -1), link.replace(/.$/, (last) => (last === '0' ? '1' : '0')), '/account/certificate', '/account/certificate.jose?customer=1&secret=2']) {
      assert.equal((await page.goto(wrong)).status(), 404, wrong);
      assert.equal(await heading(page), 'This link leads to no certificate');
    }
    page.found.length = 0; // Chromium reports each 404 on its console
    await page.goto(link.replace(/.$/, (last) => (last === '0' ? '1' : '0')));
    await look(page, 'certificate-unknown');
    page.found.length = 0;
    await page.getByRole('link', { name: 'What happens when an account is deleted' }).click();
    assert.match(await text(page), /Deleted already\?\s+Open the link in the last mail/);
    await watched(page);
  });

  it('does not hide that a certificate does not hold', async () => {
    const { customer, link } = await certified();
    await db.query(`alter table reclaim.erasure_certificates disable trigger user`);
    await db.query(`update reclaim.erasure_certificates set jws = left(jws, -8) || 'AAAAAAAA' where customer_id = $1`, [customer.id]);
    await db.query(`alter table reclaim.erasure_certificates enable trigger user`);
    const page = await reader();
    assert.equal((await page.goto(link)).status(), 500);
    assert.equal(await heading(page), 'This certificate does not hold');
    assert.match(await text(page), /its signature does not hold/);
    await look(page, 'certificate-broken');
    page.found.length = 0;
    await watched(page);
  });
});
