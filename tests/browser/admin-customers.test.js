// The console's customers: filters, several at once, taking it back, names of any length and direction, both languages.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, freeze } from '../service/lib/customers.js';
import { erased, receipt, remove } from '../service/lib/erasure.js';
import { Stage, until } from '../service/lib/stage.js';
import { openConsole, rightToLeft } from './lib/admin.js';
import { look, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, operator;
before(async () => {
  ({ db, server, operator } = await openConsole(stage, ['admin']));
});
after(() => stage.end());

const noticed = (page) => page.locator('.note').textContent();
const statesOf = async (customers) =>
  (await db.query('select status from reclaim.customer_customers where id = any ($1) order by array_position($1, id)', [customers.map(({ id }) => id)])).map(({ status }) => status);

describe('the list of customers', () => {
  it('finds by name or address among those of a state, under hold or due, and keeps the filter', async () => {
    const [frozen, held, due] = await Promise.all(['One', 'Two', 'Three'].map((n) => addCustomer(db, { name: `Filtered ${n}`, email: `filtered.${n.toLowerCase()}@customers.example.com` })));
    await freeze(server, frozen.id);
    await freeze(server, due.id);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '2 days' where id = $1`, [due.id]);
    await db.query(`update reclaim.customer_customers set hold_at = now(), hold_reason = 'a lawsuit' where id = $1`, [held.id]);
    const page = await operator();
    const found = async (query) => {
      await page.goto(`/admin/customers?${query}`);
      return (await page.locator('tbody bdi').allTextContents()).sort();
    };
    assert.deepEqual(await found('status=frozen&q=Filtered'), ['Filtered One', 'Filtered Three']);
    assert.deepEqual(await found('status=active&q=filtered.two%40'), ['Filtered Two']);
    assert.deepEqual(await found('status=due&q=Filtered'), ['Filtered Three']);
    assert.deepEqual(await found('held=1&q=Filtered'), ['Filtered Two']);
    await page.getByRole('searchbox').fill('Filtered T');
    await page.getByRole('button', { name: 'Search' }).click();
    assert.deepEqual(await page.locator('tbody bdi').allTextContents(), ['Filtered Two']);
    await page.goto('/admin/customers?status=erasing');
    assert.match(await page.locator('main').textContent(), /No erasure is open/);
    await look(page, 'admin-customers-empty');
    await watched(page);
  });

  it('changes several, named, with a reason, all chosen at once; the list stays as it was, and it can be taken back', async () => {
    const several = await Promise.all(['One', 'Two', 'Three'].map((n) => addCustomer(db, { name: `Bulk ${n}`, email: `bulk.${n.toLowerCase()}@customers.example.com` })));
    await freeze(server, several[2].id);
    const page = await operator();
    await page.goto('/admin/customers?q=bulk');
    await page.getByRole('checkbox', { name: 'Choose all on this page' }).check();
    await page.getByRole('button', { name: 'Freeze' }).click();
    const question = await page.locator('main').textContent();
    for (const text of ['Freeze 3 customers?', 'Bulk One', 'Bulk Two', 'bu•••@customers.example.com', 'these customers']) assert.ok(question.includes(text), text);
    assert.doesNotMatch(question, /[0-9a-f]{8}-[0-9a-f]{4}/);
    await page.getByRole('textbox', { name: /Reason/ }).fill('unpaid');
    await page.getByRole('button', { name: 'Freeze' }).click();
    assert.match(page.url(), /\/admin\/customers\?q=bulk$/);
    assert.deepEqual(await statesOf(several), ['frozen', 'frozen', 'frozen']);
    assert.equal((await db.query('select freeze_reason from reclaim.customer_customers where id = $1', [several[0].id]))[0].freeze_reason, 'unpaid');
    await page.getByRole('button', { name: 'Take it back' }).click();
    assert.deepEqual(await statesOf(several), ['active', 'active', 'frozen'], 'the third was frozen before');
    assert.match(await noticed(page), /Recovered: 2/);
    assert.match(page.url(), /\/admin\/customers\?q=bulk$/);

    await db.query(`update reclaim.customer_customers set hold_at = now(), hold_reason = 'a lawsuit' where id = $1`, [several[0].id]);
    await page.getByRole('checkbox', { name: /Bulk One/ }).check();
    await page.getByRole('button', { name: 'Delete now' }).click();
    await page.getByRole('button', { name: 'Delete now' }).click();
    assert.equal(await page.locator('.note.bad').count(), 1);
    assert.match(await noticed(page), /not possible for any/);
    await watched(page);
  });
});

describe('one customer', () => {
  it('is frozen and held with a notice that takes it back', async () => {
    const customer = await addCustomer(db, { name: 'Undone Company', email: 'undone@customers.example.com' });
    const page = await operator();
    const act = async (action, reason) => {
      await page.goto(`/admin/customers/${customer.id}/${action}`);
      if (reason) await page.getByRole('textbox', { name: /Reason/ }).fill(reason);
      await page.locator('main form button').last().click();
    };
    await page.goto(`/admin/customers/${customer.id}`);
    assert.match(await page.locator('section', { hasText: 'Freeze by layer' }).textContent(), /Not frozen\./);
    await look(page, 'admin-customer-active');
    await act('freeze');
    assert.deepEqual(await statesOf([customer]), ['frozen']);
    assert.doesNotMatch(await page.locator('.layers').textContent(), /RabbitMQ/);
    assert.doesNotMatch(await page.locator('.timeline').textContent(), /waiting/);
    await page.getByRole('button', { name: 'Take it back' }).click();
    assert.deepEqual(await statesOf([customer]), ['active']);
    assert.equal(await page.getByRole('button', { name: 'Take it back' }).count(), 0);
    const layers = await page.locator('section', { hasText: 'Freeze by layer' }).innerText();
    assert.match(layers, /Not frozen\.\s+Last freeze: who had it when[^]*Billing\s+\d+ ms/, 'the last freeze stays to be seen');
    await page.reload();
    await look(page, 'admin-customer-recovered');
    await act('hold', 'a lawsuit');
    await page.getByRole('button', { name: 'Take it back' }).click();
    assert.match(await noticed(page), /hold has ended/);
    await act('freeze');
    await act('hold', 'a lawsuit');
    assert.match(await page.locator('.rows').textContent(), /Deleted on\s*not while the hold lasts/);
    await page.reload();
    await look(page, 'admin-customer-held');
    await watched(page);
  });

  it('whose erasure failed is tried again; it shows no address of its own', async () => {
    await db.query(`insert into reclaim.cascade_participants (name, kind, label) values ('attic', 'remote', 'Your attic')`);
    const customer = await addCustomer(db, { name: 'Failing Company', email: 'failing@customers.example.com' });
    const page = await operator();
    await page.goto(`/admin/customers/${customer.id}/delete`);
    await page.getByRole('button', { name: 'Delete now' }).click();
    assert.doesNotMatch(await page.locator('.rows').textContent(), /@/);
    assert.match(await page.locator('.list').textContent(), /Calls/);
    assert.doesNotMatch(await page.locator('main').textContent(), /reclaim\.calls/);
    await db.query(`update reclaim.cascade_receipts set status = 'failed', error = 'read-only until Monday', next_try_at = 'infinity' where customer_id = $1 and participant = 'attic'`, [customer.id]);
    await page.goto(`/admin/customers/${customer.id}`);
    await page.getByRole('button', { name: 'Try again' }).click();
    assert.match(await noticed(page), /tried again/);
    assert.ok((await db.query(`select next_try_at <= clock_timestamp() as due from reclaim.cascade_receipts where customer_id = $1 and participant = 'attic'`, [customer.id]))[0].due);
    await page.goto('/admin');
    await page.getByRole('link', { name: /Erasures open/ }).click();
    assert.ok((await page.locator('tbody').textContent()).includes(customer.id));
    await watched(page);
  });

  it('that is deleted has a certificate to view, print and download, and names the former one', async () => {
    const participants = await db.query('select name from reclaim.cascade_participants where enabled and kind = $1', ['remote']);
    const customer = await addCustomer(db, { name: 'Certified Company', email: 'certified@customers.example.com' });
    assert.equal((await remove(server, customer.id)).status, 200);
    const page = await operator();
    const open = () => page.goto(`/admin/customers/${customer.id}`);
    if (participants.length) {
      await open();
      assert.match(await page.locator('main').innerText(), /Certificate\s+Not issued yet\./);
      await look(page, 'admin-customer-erasing');
      await page.goto(`/admin/customers/${customer.id}/certificate`);
      assert.match(await page.locator('main').innerText(), /services have confirmed/);
      await page.goto('/admin'); // that page goes on by itself once everything is confirmed
    }
    for (const { name } of participants) await receipt(server, customer.id, name, { rows: 1 });
    await erased(server, customer);
    await open();
    await look(page, 'admin-customer-certified');
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByRole('link', { name: 'Download' }).click()]);
    assert.equal(download.suggestedFilename(), `erasure-${customer.id}.jose`);
    await page.getByRole('link', { name: 'View or print' }).click();
    assert.match(await page.locator('h1').innerText(), /^This account was erased on /);
    await look(page, 'admin-certificate');
    await page.getByRole('link', { name: 'Back to the customer' }).click();
    const id = await page.locator('section', { hasText: 'Certificate' }).locator('code').first().innerText();
    await db.query(`update reclaim.erasures set settled_at = clock_timestamp(), certificate_id = null where customer_id = $1`, [customer.id]);
    await until('another certificate', async () => {
      await open();
      return (await page.locator('main').innerText()).includes(`replaces ${id}`);
    });
    await look(page, 'admin-customer-certified-again');
    assert.equal((await page.goto(`/admin/customers/${(await addCustomer(db)).id}/certificate`)).status(), 404);
    page.found.length = 0; // Chromium reports the 404 on its console
    await page.context().clearCookies();
    await page.goto(`/admin/customers/${customer.id}/certificate`);
    assert.match(page.url(), /\/admin\/sign-in$/);
    await watched(page);
  });

  it('fits whatever it is called, in any direction', async () => {
    const page = await operator();
    for (const [name, shown] of [[`Example${'verylongname'.repeat(20)}`, 'long'], [`${rightToLeft} `.repeat(6), 'right-to-left']]) {
      const customer = await addCustomer(db, { name, email: `odd.${shown}@customers.example.com` });
      await page.goto(`/admin/customers/${customer.id}`);
      await look(page, `admin-customer-${shown}`);
      await page.goto(`/admin/customers/${customer.id}/freeze`);
      await look(page, `admin-confirm-${shown}`);
      await page.getByRole('button', { name: 'Freeze' }).click();
    }
    await page.goto('/admin');
    await look(page, 'admin-overview-long');
    await watched(page);
  });
});

describe('the console in German', () => {
  it('has no English words of the program, and times with seconds', async () => {
    const customer = await addCustomer(db, { name: 'Beispiel GmbH', email: 'beispiel@customers.example.com' });
    await freeze(server, customer.id);
    const page = await operator();
    await page.goto(`/admin/customers/${customer.id}?lang=de`);
    const timeline = await page.locator('.timeline').textContent();
    assert.match(timeline, /Sperre.*erledigt|erledigt.*Sperre/s);
    assert.doesNotMatch(timeline, /freeze|done|customer_|waiting|kept/);
    assert.match(await page.locator('.timeline time').first().textContent(), /\d\d:\d\d:\d\d/);
    await page.goto('/admin/audit');
    assert.doesNotMatch(await page.locator('tbody').textContent(), /freeze|done|console-/);
    assert.match(await page.locator('tbody time').first().textContent(), /\d\d:\d\d:\d\d/);
    await page.goto('/admin/settings');
    assert.deepEqual((await page.locator('th.group').allTextContents()).filter((one) => /[Ff]iles|Registration|deletion/.test(one)), []);
    await watched(page);
  });
});
