// takes long
// How the operators' console looks, with much going on and on a first visit.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, freeze } from '../service/lib/customers.js';
import { addUser } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { openConsole, rightToLeft } from './lib/admin.js';
import { look, newReader, originOf, sendForm, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, browser, signIn, operator;
before(async () => {
  ({ db, server, browser, signIn, operator } = await openConsole(stage, ['admin']));
});
after(() => stage.end());

describe('the console', () => {
  it('has words for everything that is empty, and says what it does not understand', async () => {
    const page = await operator();
    await db.query('delete from reclaim.customer_log');
    await db.query('update reclaim.cascade_participants set enabled = false');
    for (const [path, name, words] of [
      ['/admin', 'admin-overview-empty', /Nothing needs attention/],
      ['/admin?span=day', 'admin-overview-day', /last day/],
      ['/admin/customers', 'admin-customers-none', /There are no customers yet/],
      ['/admin/audit', 'admin-audit-empty', /Nothing has been recorded yet/],
      ['/admin/audit?kind=mail', 'admin-audit-mail', /None was recorded/],
      ['/admin/audit?q=neither', 'admin-audit-invalid', /neither an address nor an id/],
      ['/admin/limits?key=nonsense', 'admin-limits-invalid', /neither an e-mail address/],
      ['/admin/dead', 'admin-dead-empty', /Everything was delivered/],
      ['/admin/orphans', 'admin-orphans-empty', /No registration is unfinished/],
    ]) {
      await page.goto(path);
      assert.match(await page.locator('main').textContent(), words, path);
      await look(page, name);
    }
    await db.query('update reclaim.cascade_participants set enabled = true');
    const [{ kept }] = await db.query('select coalesce(json_agg(p), $1) as kept from reclaim.cascade_participants p', ['[]']);
    await db.query('delete from reclaim.cascade_participants');
    await page.goto('/admin/services');
    assert.match(await page.locator('main').textContent(), /No service takes part/);
    await look(page, 'admin-services-none');
    await db.query('insert into reclaim.cascade_participants select * from json_populate_recordset(null::reclaim.cascade_participants, $1)', [JSON.stringify(kept)]);
    await watched(page);
  });

  it('looks right with much going on: sign-in, overview, audit, limits, dead letters, services, orphans, settings', async () => {
    const due = await addCustomer(db, { name: 'Example Atelier', email: 'atelier@customers.example.com' });
    await freeze(server, due.id);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '3 days' where id = $1`, [due.id]);
    const held = await addCustomer(db, { name: rightToLeft, email: 'held@customers.example.com' });
    await db.query(`update reclaim.customer_customers set hold_at = now() - interval '13 days', hold_reason = 'a lawsuit' where id = $1`, [held.id]);
    await db.query(`insert into reclaim.cascade_participants (name, kind, label) values ('archive', 'remote', 'Your archive')`);
    await db.query(`insert into reclaim.erasures (customer_id, requested_at) values (gen_random_uuid(), now() - interval '70 minutes')`);
    await db.query(`insert into reclaim.cascade_receipts (customer_id, participant, status, error) select customer_id, 'archive', 'failed', 'the archive is read-only until Monday' from reclaim.erasures where completed_at is null`);
    await db.query(`insert into reclaim.customer_log (action, actor, outcome, created_at) select (array['freeze', 'recover', 'delete'])[1 + n % 3], 'admin', 'done', now() - n * interval '47 seconds' from generate_series(1, 70) n`);
    await db.query(`insert into reclaim.work_items (kind, payload, state, tries, last_error) values ('mail', '{"template":"customer-reminder"}', 'dead', 8, 'every provider refused it')`);
    await addUser(db, { email: 'orphan@customers.example.com' });
    await db.query(`create table public.voicemail (id bigint primary key, customer_id uuid); create index on public.voicemail (customer_id)`);
    await db.query(`select reclaim.cascade_add('voicemail', 'public.voicemail', 'customer_id', null, null, null, false, 'customer', 'Voicemail')`);
    await db.query('drop table public.voicemail'); // a service that is faulty
    const page = await newReader(browser, server);
    const refused = async (language = 'en') => {
      await page.goto('/admin/sign-in');
      await sendForm(page, '/admin/sign-in', { token: await page.locator('input[name=token]').first().inputValue(), key: 'rk_nothing' });
      await page.goto(`/admin/sign-in?lang=${language}`);
      assert.equal(await page.locator('.note.bad').count(), 1);
    };
    await page.goto('/admin/sign-in');
    await look(page, 'admin-sign-in');
    await refused();
    await look(page, 'admin-sign-in-refused', { again: refused });
    await signIn(page);
    for (const [path, name] of [
      ['/admin', 'admin-overview'],
      ['/admin/audit', 'admin-audit'],
      ['/admin/limits?key=2001:db8::1', 'admin-limits'],
      ['/admin/dead', 'admin-dead'],
      ['/admin/services', 'admin-services'],
      ['/admin/audit?kind=refusals', 'admin-audit-refusals'],
      ['/admin/orphans', 'admin-orphans'],
    ]) {
      await page.goto(path);
      await look(page, name);
    }
    await page.goto('/admin/settings');
    await look(page, 'admin-settings');
    assert.doesNotMatch(await page.locator('main').textContent(), /canary/);
    await page.goto('/admin');
    const attention = await page.locator('section', { hasText: 'Needs attention' }).last().textContent();
    for (const word of ['Example Atelier', 'deleted in 2\u00a0d', '0 of 1 receipts', 'legal hold since']) assert.ok(attention.includes(word), `${word}: ${attention}`);
    assert.doesNotMatch(attention, /atelier@/);
    await watched(page);
  });

  it('is under 60 KB on a first visit', async () => {
    const page = await operator();
    const session = await page.context().newCDPSession(page);
    let bytes = 0;
    await session.send('Network.enable');
    await session.send('Network.setCacheDisabled', { cacheDisabled: true });
    session.on('Network.loadingFinished', (event) => (bytes += event.encodedDataLength));
    await page.goto('/admin', { waitUntil: 'networkidle' });
    assert.ok(bytes > 5000 && bytes < 60_000, `${bytes} bytes from ${originOf(server)}`);
  });
});
