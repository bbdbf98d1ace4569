// `/recover` when something is in the way: what it says, and how it looks.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { scene } from '../service/lib/cleanup.js';
import { FakeProvider } from '../service/lib/fake-provider.js';
import { addCompany, addUser } from '../service/lib/people.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { look, newReader, openBrowser, sendForm, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, refused, browser;
before(async () => {
  const made = await scene(stage, { only: ['cleanup-v1'] });
  db = made.db;
  server = made.servers['cleanup-v1'];
  const provider = await FakeProvider.start(stage, 'resend');
  provider.answer({ status: 422 });
  refused = await serve(stage, { database: db, env: { ...provider.env, RECLAIM_HOLD_MS: '3000' } }); // time to be refused
  browser = await openBrowser(stage);
});
after(() => stage.end());

const heading = (page) => page.locator('h1').textContent();
const problem = (page) => page.locator('.note.bad').innerText();
const send = async (page, name) => {
  await Promise.all([page.waitForNavigation(), page.getByRole('button', { name }).click()]);
};
/** A reader for whose address something was looked up. */
const readerOf = async ({ email }, at = server) => {
  const page = await newReader(browser, at);
  await page.goto('/recover');
  await page.getByLabel('E-mail address').fill(email);
  await send(page, 'Continue');
  return page;
};

describe('the page /recover', () => {
  it('cannot tell while the company tables do not answer, and offers a code all the same', async (t) => {
    const user = await addUser(db);
    const other = await db.session(t);
    await other.query('begin; lock table companies in access exclusive mode');
    const page = await readerOf(user);
    await other.query('rollback');
    assert.equal(await heading(page), 'We cannot tell right now');
    await look(page, 'recover-found-unknown');
    await watched(page);
  });

  it('says that the address is busy', async (t) => {
    const user = await addUser(db);
    const page = await readerOf(user);
    const other = await db.session(t);
    await other.query(`select reclaim.acquire_cleanup_lock('${user.email}')`);
    await send(page, 'Mail me a code');
    assert.match(await problem(page), /Somebody is working on this address/);
    await look(page, 'recover-problem-busy');
    await watched(page);
  });

  it('says that something went wrong, and that nothing was deleted', async () => {
    const page = await readerOf(await addUser(db));
    await db.query('alter table public.company_admins rename to away');
    await send(page, 'Mail me a code');
    await db.query('alter table public.away rename to company_admins');
    assert.match(await problem(page), /Nothing was deleted/);
    await look(page, 'recover-problem-fault');
    await watched(page);
  });

  it('says that the mail could not be sent', async () => {
    const page = await readerOf(await addUser(db), refused);
    await send(page, 'Mail me a code');
    assert.match(await problem(page), /The mail could not be sent/);
    await look(page, 'recover-problem-mail');
    await watched(page);
  });

  it('says that a code is on its way already, to a reader who asks again too soon', async () => {
    const page = await readerOf(await addUser(db));
    await send(page, 'Mail me a code');
    await sendForm(page, '/recover', { token: await page.locator('main input[name=token]').first().inputValue(), step: 'send' });
    await page.reload();
    assert.match(await problem(page), /A code is on its way already/);
    await look(page, 'recover-problem-too-soon');
    await watched(page);
  });

  it('says that a code does not count any more', async () => {
    const page = await readerOf(await addUser(db));
    await send(page, 'I have a code');
    await page.getByLabel('Code').fill('ABCD-EFGH');
    await send(page, 'Delete and start over');
    assert.match(await problem(page), /This code does not count any more/);
    await look(page, 'recover-problem-expired');
    await watched(page);
  });

  it('says that an account has data since it was looked up, or is gone, instead of what was found then', async () => {
    const [finished, gone] = [await addUser(db), await addUser(db)];
    const [one, other] = [await readerOf(finished), await readerOf(gone)];
    await addCompany(db, finished);
    await send(one, 'Mail me a code');
    assert.equal(await heading(one), 'This address belongs to an account');
    assert.match(await one.locator('main').innerText(), /belongs to an account with data/);
    await look(one, 'recover-found-kept');
    await db.query('delete from auth.users where id = $1', [gone.id]);
    await send(other, 'Mail me a code');
    assert.equal(await heading(other), 'This address is free');
    for (const page of [one, other]) {
      assert.equal(await page.getByRole('button', { name: 'Mail me a code' }).count(), 0);
      await watched(page);
    }
  });
});
