// The operators' console: signing in, customers, what is done to them, and tools.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, freeze } from '../service/lib/customers.js';
import { addUser } from '../service/lib/people.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';
import { openConsole, rightToLeft } from './lib/admin.js';
import { fetchPage, look, newReader, sendForm, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, browser, keys, makeKey, signIn, operator;
const longName = `Example Association for the Preservation of Exceptionally Long Company Names in Every Column of Every Table ${'and Beyond '.repeat(8)}`;
const script = '<script>alert(1)</script> & "Sons"';

before(async () => {
  ({ db, server, browser, keys, makeKey, signIn, operator } = await openConsole(stage, ['admin', 'read', 'calls']));
});
after(() => stage.end());

const heading = (page) => page.locator('h1').textContent();
const noticed = (page) => page.locator('.note').textContent();
const audited = async (action) => (await db.query('select customer_id, detail from reclaim.customer_log where action = $1 order by id desc', [action]))[0];

/** Presses Tab until the element has the focus. */
async function tabTo(page, element) {
  for (let presses = 0; presses < 80; presses++) {
    if (await element.evaluate((one) => one === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not lead to ${element}`);
}
const press = async (page, element) => {
  await tabTo(page, element);
  await page.keyboard.press('Enter');
  await page.waitForLoadState();
};

describe('signing in', () => {
  it('takes a key, says what is wrong with others, and shows nothing without one', async () => {
    const page = await newReader(browser, server);
    for (const path of ['/admin', '/admin/customers', '/admin/settings', '/admin/customers/00000000-0000-4000-8000-000000000000']) {
      const answer = await fetchPage(server, path);
      assert.deepEqual([answer.status, answer.headers.get('location')], [303, '/admin/sign-in'], path);
      assert.equal(await answer.text(), '');
    }
    await signIn(page, 'rk_nothing');
    assert.match(await noticed(page), /not valid/);
    await signIn(page, keys.calls);
    assert.match(await noticed(page), /scope admin or read/);
    await signIn(page);
    assert.equal(await heading(page), 'Overview');
    await watched(page);
  });

  it('ends when it is signed out everywhere, and when its key is revoked', async () => {
    const key = await makeKey('read');
    const [first, second] = [await operator({}, key), await operator({}, key)];
    await first.getByRole('button', { name: 'Sign out everywhere' }).click();
    assert.match(await noticed(first), /signed out/);
    await second.reload();
    assert.match(await noticed(second), /session has ended/);
    await signIn(second, key);
    assert.equal(await heading(second), 'Overview');
    await db.query(`update reclaim.access_keys set revoked_at = now() where id = (select key_id from reclaim.console_sessions order by created_at desc limit 1)`);
    await until('the console is closed', async () => {
      await second.goto('/admin');
      return new URL(second.url()).pathname === '/admin/sign-in';
    });
  });

  it('in the demonstration needs a button only, which is not there elsewhere', async () => {
    const demo = await serve(stage, { args: ['--demo'] });
    const page = await newReader(browser, demo, { scripts: false });
    await page.goto('/admin');
    await page.getByRole('button', { name: /demonstration/ }).click();
    assert.equal(await heading(page), 'Overview');
    await page.getByRole('link', { name: /^Customers/ }).click();
    assert.match(await page.locator('tbody tr').first().textContent(), /Example/);
    const elsewhere = await newReader(browser, server);
    await elsewhere.goto('/admin/sign-in');
    assert.equal(await elsewhere.getByRole('button', { name: /demonstration/ }).count(), 0);
    const token = await elsewhere.locator('input[name=token]').first().inputValue();
    const answer = await sendForm(elsewhere, '/admin/demo', { token });
    assert.equal(answer.headers().location, '/admin/sign-in');
  });
});

describe('a form of the console', () => {
  it('is refused without its token, and from another site; nothing changes', async () => {
    const page = await operator();
    const customer = await addCustomer(db);
    const path = `/admin/customers/${customer.id}/freeze`;
    await page.goto(path);
    const token = await page.locator('main input[name=token]').inputValue();
    const send = (form, headers) => sendForm(page, path, form, headers);
    assert.equal((await send({ reason: 'x' })).status(), 403);
    assert.equal((await send({ token: '0'.repeat(64) })).status(), 403);
    assert.equal((await send({ token }, { 'Sec-Fetch-Site': 'cross-site' })).status(), 403);
    assert.equal((await send({ token }, { Origin: 'https://evil.example.com' })).status(), 403);
    assert.equal((await db.query('select status from reclaim.customer_customers where id = $1', [customer.id]))[0].status, 'active');
    assert.equal((await send({ token })).status(), 303);
    assert.equal((await db.query('select status from reclaim.customer_customers where id = $1', [customer.id]))[0].status, 'frozen');
  });

  it('changes nothing with a key of scope read, which sees no buttons', async () => {
    const customer = await addCustomer(db);
    const page = await operator({}, keys.read);
    await page.goto(`/admin/customers/${customer.id}`);
    assert.equal(await page.getByRole('link', { name: 'Freeze' }).count(), 0);
    assert.match(await page.locator('.who').textContent(), /not change anything/);
    const token = await page.locator('input[name=token]').first().inputValue();
    await sendForm(page, `/admin/customers/${customer.id}/freeze`, { token });
    await page.reload();
    assert.match(await noticed(page), /looking only/);
    assert.equal((await db.query('select status from reclaim.customer_customers where id = $1', [customer.id]))[0].status, 'active');
  });
});

describe('an operator', () => {
  it('with the keyboard only finds a customer, freezes, recovers, holds and deletes it, each after a question', async () => {
    const name = 'Keyboard Company';
    const customer = await addCustomer(db, { name, email: 'keyboard@customers.example.com' });
    const page = await newReader(browser, server);
    await page.goto('/admin');
    await tabTo(page, page.getByLabel('Key'));
    await page.keyboard.type(keys.admin);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/admin');
    await press(page, page.getByRole('link', { name: /^Customers/ }));
    await tabTo(page, page.getByRole('searchbox'));
    await page.keyboard.type('keyb');
    await page.keyboard.press('Enter');
    await page.waitForURL('**q=keyb**');
    assert.match(await page.locator('tbody').textContent(), /ke•••@customers\.example\.com/);
    await press(page, page.getByRole('link', { name: `Open ${name}` }));
    const state = () => page.locator('.rows .pill').first().textContent();
    const act = async (action, { reason, button = action } = {}) => {
      await press(page, page.getByRole('link', { name: action, exact: true }));
      if (reason) {
        await tabTo(page, page.getByRole('textbox', { name: /Reason/ }));
        await page.keyboard.type(reason);
      }
      await press(page, page.getByRole('button', { name: button, exact: true }));
      await page.waitForURL(`**/admin/customers/${customer.id}`);
    };
    await act('Freeze', { reason: 'unpaid' });
    assert.equal(await state(), 'frozen');
    assert.match(await noticed(page), /^The customer is frozen\./);
    assert.match(await page.locator('.rows').textContent(), /unpaid/);
    await until('all layers have it', async () => {
      await page.goto(`/admin/customers/${customer.id}`);
      return (await page.locator('.layers .ms').allTextContents()).filter((text) => / ms/.test(text)).length === 3;
    });
    await look(page, 'admin-customer-frozen');
    await act('Recover');
    assert.equal(await state(), 'active');
    await act('Hold', { reason: 'a lawsuit' });
    assert.match(await page.locator('.rows').textContent(), /held.*a lawsuit/s);
    assert.equal(await page.getByRole('link', { name: 'Delete now' }).count(), 0);
    await act('End the hold');
    assert.match(await page.locator('.rows').textContent(), /ke•••@/);
    await press(page, page.getByRole('button', { name: /Show the address/ }));
    await page.locator('.rows', { hasText: 'keyboard@customers.example.com' }).waitFor();
    assert.equal((await audited('reveal')).customer_id, customer.id);
    await act('Delete now');
    assert.equal(await state(), 'deleted');
    await until('the erasure is shown as complete', async () => {
      await page.goto(`/admin/customers/${customer.id}`);
      return !/pending/.test(await page.locator('.list').textContent());
    });
    assert.match(await page.locator('.timeline').textContent(), /delete.*customer frozen.*freeze/s);
    await look(page, 'admin-customer-deleted');
    await press(page, page.getByRole('button', { name: 'Sign out', exact: true }));
    assert.match(await noticed(page), /signed out/);
    await watched(page);
  });

  it('with scripts off changes several customers at once, after being told how many', async () => {
    const three = await Promise.all(['One', 'Two', 'Three'].map((n) => addCustomer(db, { name: `Several ${n}`, email: `several.${n.toLowerCase()}@customers.example.com` })));
    const page = await operator({ scripts: false });
    await page.goto('/admin/customers?q=several');
    await page.getByRole('button', { name: 'Freeze' }).click();
    assert.match(await noticed(page), /Choose customers first/);
    await page.goto('/admin/customers?q=several');
    for (const n of ['One', 'Three']) await page.getByRole('checkbox', { name: new RegExp(`Several ${n}$`) }).check();
    await page.getByRole('button', { name: 'Freeze' }).click();
    assert.equal(await heading(page), 'Freeze 2 customers?');
    const states = () => db.query('select status from reclaim.customer_customers where id = any ($1) order by array_position($1, id)', [three.map(({ id }) => id)]);
    assert.deepEqual((await states()).map(({ status }) => status), ['active', 'active', 'active']);
    await page.getByRole('button', { name: 'Freeze' }).click();
    assert.match(await noticed(page), /Frozen: 2/);
    assert.deepEqual((await states()).map(({ status }) => status), ['frozen', 'active', 'frozen']);
    await page.goto('/admin/customers?q=several');
    for (const box of await page.getByRole('checkbox').all()) await box.check();
    await page.getByRole('button', { name: 'Recover' }).click();
    await page.getByRole('button', { name: 'Recover' }).click();
    assert.match(await noticed(page), /Not possible for 1/);
    assert.deepEqual((await states()).map(({ status }) => status), ['active', 'active', 'active']);
    const withScripts = await operator();
    await withScripts.goto('/admin/customers?q=several');
    for (const box of await withScripts.getByRole('checkbox').all()) await box.check();
    await withScripts.getByRole('button', { name: 'Delete now' }).click();
    await look(withScripts, 'admin-confirm-several');
    await watched(withScripts);
  });

  it('finds one of 10,000 customers, whatever its name, and pages through them', async () => {
    await db.query(`insert into reclaim.customer_customers (name, email) select 'Example ' || lpad(n::text, 5, '0'), 'c' || n || '@customers.example.com' from generate_series(1, 10000) n`);
    const odd = await Promise.all([longName, script, rightToLeft].map((name, n) => addCustomer(db, { name, email: `odd${n}@customers.example.com` })));
    await freeze(server, odd[0].id);
    const page = await operator();
    await page.goto('/admin/customers');
    assert.match(await page.locator('nav').textContent(), /10,0\d\d/);
    assert.equal(await page.locator('tbody tr').count(), 25);
    const first = await page.locator('tbody').textContent();
    await page.getByRole('link', { name: 'Next page' }).click();
    assert.notEqual(await page.locator('tbody').textContent(), first);
    await page.getByRole('link', { name: 'First page' }).click();
    assert.equal(await page.locator('tbody').textContent(), first);
    await page.goto('/admin/customers?q=odd');
    const shown = await page.locator('tbody').textContent();
    for (const name of [script, rightToLeft, longName.trim()]) assert.ok(shown.includes(name), name);
    await look(page, 'admin-customers');
    await page.setViewportSize({ width: 360, height: 900 });
    assert.deepEqual(await page.locator('.scroll').evaluateAll((all) => all.map((one) => one.scrollWidth - one.clientWidth)), [0]);
    await page.setViewportSize({ width: 1280, height: 900 });
    await page.goto('/admin/customers?q=nobody-is-called-so');
    assert.match(await page.locator('main').textContent(), /No customer has a name/);
    await page.goto(`/admin/customers/${odd[1].id}`);
    assert.equal(await heading(page), script);
    await watched(page);
  });

  it('traces a request, resets a limit and sends a dead letter again', async () => {
    const { email, id } = await addUser(db, { email: 'orphan@customers.example.com' });
    const cleanup = () =>
      fetchPage(server, '/functions/v1/cleanup-orphaned-user', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ action: 'request-code', step: 'request-code', email }) });
    assert.equal((await cleanup()).status, 200);
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    await db.query(`with o as (update reclaim.event_outbox set published_at = now() where customer_id = $1 returning id, position) insert into reclaim.event_returns (event_id, position) select id, position from o`, [customer.id]);
    const page = await operator({ scripts: false });

    await page.getByRole('link', { name: 'Audit and trace' }).click();
    await page.getByRole('searchbox').fill(email);
    await page.getByRole('button', { name: 'Search' }).click();
    assert.match(await page.locator('tbody').textContent(), /code asked for.*code sent/s);
    await page.locator('tbody a.id').first().click();
    assert.match(await page.locator('tbody').textContent(), /code asked for/);
    await page.getByRole('searchbox').fill(customer.id);
    await page.getByRole('button', { name: 'Search' }).click();
    assert.match(await page.locator('tbody').textContent(), /freeze/);
    await page.getByRole('searchbox').fill('neither');
    await page.getByRole('button', { name: 'Search' }).click();
    assert.match(await noticed(page), /neither an address nor an id/);

    await page.getByRole('link', { name: 'Limits', exact: true }).click();
    await page.getByRole('searchbox').fill('127.0.0.1');
    await page.getByRole('button', { name: 'Search' }).click();
    assert.match(await page.locator('tbody').textContent(), /Clean-ups, client1 \/ 54/);
    await page.getByRole('button', { name: 'Reset' }).click();
    assert.match(await noticed(page), /forgotten/);
    assert.match((await audited('limits-reset')).detail, /^ip:/);
    assert.equal(await page.getByRole('searchbox').inputValue(), '127.0.0.1');
    assert.match(await page.locator('tbody').textContent(), /Clean-ups, client0 \/ 55/);
    await page.goto('/admin/limits?key=nonsense');
    assert.match(await noticed(page), /neither an e-mail address/);

    await page.getByRole('link', { name: /Dead letters/ }).click();
    assert.match(await page.locator('tbody').textContent(), /customer frozen/);
    await page.getByRole('button', { name: /Send again/ }).click();
    assert.match(await noticed(page), /on its way/);
    assert.match(await page.locator('main').textContent(), /Everything was delivered/);

    await page.getByRole('link', { name: 'Orphans' }).click();
    const row = page.locator('tbody tr', { hasText: id });
    assert.match(await row.textContent(), /or•••@customers/);
    await row.getByRole('button', { name: /show/ }).click();
    assert.match(await row.textContent(), /orphan@customers\.example\.com/);
    assert.equal((await audited('reveal')).detail, `user ${id}`);
    await watched(page);
  });

  it('sees the figures change by themselves, and keeps what was unfolded', async () => {
    const page = await operator();
    await page.getByRole('link', { name: '2 s' }).click();
    await page.locator('details').first().evaluate((one) => (one.open = true));
    const figure = page.locator('.figures strong').first();
    const before = Number(await figure.textContent());
    await freeze(server, (await addCustomer(db)).id);
    await until('the figure has changed', async () => Number(await figure.textContent()) === before + 1);
    assert.ok(await page.locator('details').first().evaluate((one) => one.open));
    assert.match(await page.locator('.refresh').textContent(), /Updated at/);
    await page.getByRole('link', { name: 'pause' }).click();
    assert.equal(await page.locator('[data-refresh]').getAttribute('data-refresh'), '0');
    await watched(page);
  });
});
