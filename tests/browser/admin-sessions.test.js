// What a console session allows: nothing once it has ended, and with a key of scope read no change.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, freeze } from '../service/lib/customers.js';
import { addUser } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { openConsole } from './lib/admin.js';
import { look, sendForm, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, keys, makeKey, operator;
before(async () => {
  ({ db, server, keys, makeKey, operator } = await openConsole(stage, ['admin', 'read']));
});
after(() => stage.end());

const stateOf = async ({ id }) => (await db.query('select status, hold_at is not null as held from reclaim.customer_customers where id = $1', [id]))[0];
const noticed = (page) => page.locator('.note').textContent();

describe('a session that has ended', () => {
  it('carries out none of the forms that were open, wherever it was ended', async () => {
    const customer = await addCustomer(db, { name: 'Kept Company', email: 'kept@customers.example.com' });
    const key = await makeKey('admin');
    const [here, there] = [await operator({}, key), await operator({}, key)];
    await there.goto(`/admin/customers/${customer.id}/freeze`);
    await here.getByRole('button', { name: 'Sign out everywhere' }).click();
    await there.getByRole('button', { name: 'Freeze' }).click();
    assert.equal(new URL(there.url()).pathname, '/admin/sign-in');
    assert.match(await noticed(there), /session has ended/);
    assert.equal((await stateOf(customer)).status, 'active');
    await watched(here);
    await watched(there);
  });

  it('carries out none after half an hour without use: freeze, hold, delete, several, reveal, limits, dead letters, clock, sign-out', async () => {
    const customer = await addCustomer(db, { name: 'Idle Company', email: 'idle@customers.example.com' });
    const orphan = await addUser(db);
    await freeze(server, customer.id);
    const [event] = await db.query(`update reclaim.event_outbox set published_at = now() where customer_id = $1 returning id, position`, [customer.id]);
    await db.query(`insert into reclaim.event_returns (event_id, position) values ($1, $2)`, [event.id, event.position]);
    const key = await makeKey('admin');
    const [idle, other] = [await operator({}, key), await operator({}, key)];
    await idle.goto('/admin/customers?q=idle');
    await idle.getByRole('checkbox', { name: /Idle Company/ }).check();
    await idle.getByRole('button', { name: 'Delete now' }).click();
    const token = await idle.locator('main input[name=token]').inputValue();
    await db.query(`update reclaim.console_sessions set seen_at = clock_timestamp() - interval '31 minutes' where id = (select id from reclaim.console_sessions order by created_at desc offset 1 limit 1)`);
    const cookies = await idle.context().cookies();
    const actions = ['freeze', 'recover', 'hold', 'unhold', 'delete', 'retry'].map((one) => [`/admin/customers/${customer.id}/${one}`, { reason: 'x' }]);
    const changes = 'select action from reclaim.customer_log order by id';
    const before = await db.query(changes);
    for (const [path, form] of [
      ...actions,
      ['/admin/confirm', {}],
      [`/admin/reveal/${customer.id}`, {}],
      ['/admin/orphans', { id: orphan.id }],
      ['/admin/limits', { key: '127.0.0.1' }],
      ['/admin/dead', { id: event.id }],
      ['/admin/clock', { advance: '1d' }],
      ['/admin/sign-out', { everywhere: '1' }],
    ]) {
      const answer = await sendForm(idle, path, { token, ...form });
      assert.deepEqual([answer.status(), answer.headers().location], [303, '/admin/sign-in'], path);
      await idle.context().addCookies(cookies); // a refusal deletes the session's
    }
    assert.deepEqual(await db.query(changes), before);
    assert.deepEqual(await stateOf(customer), { status: 'frozen', held: false });
    assert.equal((await db.query('select from reclaim.event_returns where event_id = $1', [event.id])).length, 1);
    await other.reload();
    assert.equal(await other.locator('h1').textContent(), 'Overview');
  });

  it('ends without scripts too, though the page refreshes itself', async () => {
    const page = await operator({ scripts: false });
    await page.goto('/admin/customers?status=frozen&every=30');
    const [{ id }] = await db.query('select id from reclaim.console_sessions order by created_at desc limit 1');
    const html = await page.content();
    const [, to] = html.match(/http-equiv="refresh" content="30;url=([^"]+)"/) ?? assert.fail(html.slice(0, 1500));
    const address = new URL(to.replaceAll('&amp;', '&'), page.url());
    assert.deepEqual([address.pathname, address.searchParams.get('status'), address.searchParams.get('every')], ['/admin/customers', 'frozen', null]);
    await db.query(`update reclaim.console_sessions set seen_at = clock_timestamp() - interval '20 minutes' where id = $1`, [id]);
    const seen = () => db.query('select seen_at from reclaim.console_sessions where id = $1', [id]);
    const before = await seen();
    await page.goto(address.href);
    assert.deepEqual(await seen(), before);
    await page.getByRole('link', { name: 'Audit and trace' }).click();
    assert.notDeepEqual(await seen(), before);
    await watched(page);
  });
});

describe('a session of a key with scope read', () => {
  it('is told so instead of being asked', async () => {
    const customer = await addCustomer(db, { name: 'Read Company', email: 'read@customers.example.com' });
    const page = await operator({}, keys.read);
    for (const action of ['freeze', 'recover', 'hold', 'unhold', 'delete']) {
      await page.goto(`/admin/customers/${customer.id}/${action}`);
      assert.equal(await page.locator('main form').count(), 0, action);
      assert.match(await page.locator('main').textContent(), /for looking only/);
    }
    await look(page, 'admin-read-only');
    await watched(page);
  });
});
