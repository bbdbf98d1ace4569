// `/account` in its rarer states: several accounts, none, closed by an administrator, under a legal hold, changed meanwhile.
//
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, asUser, canaryPassword, freeze, passwordHash, recoverOwn, rowOf, unregister } from '../service/lib/customers.js';
import { request } from '../service/lib/http.js';
import { addUser } from '../service/lib/people.js';
import { Stage, until } from '../service/lib/stage.js';
import { accountScene, closeAccount, fill, heading, press, signIn } from './lib/account.js';
import { look, watched } from './lib/browser.js';

const stage = new Stage();
let db, server, reader;
before(async () => {
  ({ db, server, reader } = await accountScene(stage));
});
after(() => stage.end());

describe('rare states', () => {
  it('long and right-to-left names fit, where there are several accounts to choose from', async () => {
    const first = await addCustomer(db, { name: `شركة البستان ${'الطويلة جدا '.repeat(12)}` });
    const second = await addCustomer(db, { owner: false, name: `Donaudampfschifffahrts${'gesellschaft'.repeat(14)}` });
    const joined = await addCustomer(db, { name: '' });
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [second.id, first.user.id]);
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [joined.id, first.user.id]);
    const page = await reader();
    await signIn(page, first.user);
    assert.equal(await heading(page), 'Which account is it about?');
    await look(page, 'account-choose');

    await page.locator('.choices button').nth(1).click();
    assert.equal(await heading(page), 'Delete your account');
    await look(page, 'account-active');
    const tab = await page.context().newPage();
    await tab.goto('/account');
    await press(tab, 'Choose another account');
    await tab.locator('.choices button').nth(0).click();
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    assert.equal((await rowOf(db, second)).status, 'frozen', 'what the page showed is deleted, whatever another tab chose');
    assert.equal((await rowOf(db, first)).status, 'active');

    await press(page, 'Choose another account');
    await page.locator('.choices button').nth(2).click();
    assert.equal(await heading(page), 'Only the owner can delete this account');
    await look(page, 'account-member');
    await watched(page);
  });

  it('a user without an account is told so', async () => {
    const user = await addUser(db, { confirmed: '2025-10-01T00:00:00Z' });
    await db.query('update auth.users set encrypted_password = $2 where id = $1', [user.id, passwordHash]);
    const page = await reader();
    await signIn(page, user);
    assert.equal(await heading(page), 'There is no account to delete');
    await look(page, 'account-none');
    await watched(page);
  });

  it('an account that an administrator closed cannot be taken back here', async () => {
    const customer = await addCustomer(db);
    assert.equal((await freeze(server, customer.id)).status, 200);
    const page = await reader();
    await signIn(page, customer.user);
    assert.equal(await page.getByRole('button', { name: 'Take it back' }).count(), 0);
    assert.ok((await page.locator('main').innerText()).includes('Only an administrator can open it again'));
    await look(page, 'account-by-admin');
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() - interval '1 minute' where id = $1`, [customer.id]);
    await page.reload();
    const due = await page.locator('main').innerText();
    assert.equal(await heading(page), 'Your account is closed and is about to be deleted');
    assert.ok(due.includes('only an administrator can open it again') && !due.includes('You can still try'), due);
    await look(page, 'account-due-by-admin');
    await watched(page);
  });

  it('a legal hold pauses the deletion: no date is promised, and its reason is not told', async () => {
    const customer = await addCustomer(db);
    const hold = (reason) => db.query('update reclaim.customer_customers set hold_reason = $2::text, hold_at = case when $2::text is not null then now() end where id = $1', [customer.id, reason]);
    await hold('a lawsuit of 1987');
    const page = await reader();
    await signIn(page, customer.user);
    assert.match(await page.locator('main').innerText(), /Deletion is paused for this account/);
    await look(page, 'account-active-paused');
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    for (const when of ['30 days', '-1 minute']) {
      await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + $2::interval where id = $1`, [customer.id, when]);
      await page.reload();
      assert.equal(await heading(page), 'Your account is closed, and its deletion is paused');
      const text = await page.locator('main').innerText();
      assert.match(text, /write to the people who run Example/);
      assert.doesNotMatch(text, /hold|a lawsuit of 1987|will be deleted on|about to be/i);
      assert.equal(await page.locator('.clock').count(), 0);
    }
    await look(page, 'account-paused');
    await hold(null);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() - interval '1 minute' where id = $1`, [customer.id]);
    await page.reload();
    assert.equal(await heading(page), 'Your account is closed and is about to be deleted');
    await look(page, 'account-due');
    await hold('a lawsuit of 1987');
    await press(page, 'Take it back');
    assert.equal((await rowOf(db, customer)).status, 'active');
    await watched(page);
  });

  it('one day and one hour are left in the singular', async () => {
    const page = await reader();
    const customer = await closeAccount(page, db);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '25 hours 30 seconds' where id = $1`, [customer.id]);
    await page.reload();
    assert.match(await page.locator('.clock').innerText(), /1\s+day\s+1\s+hour\s+0\s+minutes/);
    await watched(page);
  });

  it('what the page has no sentence of its own for is said in that of all pages, with the reference', async () => {
    const customer = await addCustomer(db);
    const page = await reader();
    await signIn(page, customer.user);
    await page.locator('#confirm [name=customer]').evaluate((input) => (input.value = crypto.randomUUID()));
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    assert.match(await page.locator('#said').innerText(), /^Your sign-in belongs to no account\.\s+Reference [0-9a-f-]{36}/);
    await look(page, 'account-other-error');
  });

  it('an account that was closed too often stays open', async () => {
    const customer = await addCustomer(db);
    for (let n = 0; n < 4; n++) {
      assert.equal((await unregister(server, asUser(customer.user.id), { password: canaryPassword })).status, 200);
      assert.equal((await recoverOwn(server, asUser(customer.user.id))).status, 200);
    }
    const page = await reader();
    await signIn(page, customer.user);
    await fill(page, { proof: canaryPassword });
    await press(page, 'Delete my account');
    assert.match(await page.locator('#said').innerText(), /closed and taken back too often[^]*You can try again in about 30 days/);
    assert.ok(await page.getByRole('button', { name: 'Delete my account' }).isDisabled());
    await look(page, 'account-too-often');
  });

  it('speaks the language of the customer to a browser that asks for none that is here', async () => {
    const customer = await addCustomer(db);
    const german = { ...asUser(customer.user.id), 'Accept-Language': 'de' };
    assert.equal((await unregister(server, german, { password: canaryPassword })).status, 200);
    for (const [language, said] of [['fr', 'Ihr Konto ist geschlossen'], ['en', 'Your account is closed']]) {
      const page = await reader({ language });
      await signIn(page, customer.user);
      assert.ok((await heading(page)).startsWith(said), `${language}: ${await heading(page)}`);
    }
  });

  it('what happens in one browser shows in the other: closed, taken back, signed out, deleted', async () => {
    const customer = await addCustomer(db);
    const [one, other] = [await reader(), await reader()];
    await signIn(one, customer.user);
    await signIn(other, customer.user);
    await fill(one, { proof: canaryPassword });
    await press(one, 'Delete my account');
    await other.reload();
    assert.match(await heading(other), /^Your account is closed/);
    assert.equal((await recoverOwn(server, asUser(customer.user.id))).status, 200);
    await press(other, 'Take it back');
    assert.equal(await heading(other), 'Your account is open again', 'it was taken back already');

    await press(one, 'Sign out everywhere');
    await other.reload();
    assert.ok((await other.locator('[role=status]').innerText()).includes('You were signed out'));
    await look(other, 'account-session-ended', {
      again: async (language) => {
        await signIn(other, customer.user);
        await db.query('update reclaim.sessions set ended_at = clock_timestamp() where user_id = $1 and ended_at is null', [customer.user.id]);
        await until('the end is known', async () => {
          await other.goto(`/account?lang=${language}`);
          return (await other.locator('[role=status]').count()) === 1;
        });
      },
    });
    await fill(other, { email: customer.user.email, password: canaryPassword });
    await press(other, 'Sign in');
    await db.query('update auth.users set encrypted_password = encrypted_password || $2 where id = $1', [customer.user.id, ' ']);
    await fill(other, { proof: canaryPassword });
    await press(other, 'Delete my account');
    assert.ok((await other.locator('[role=status]').innerText()).includes('change of the password'));
    assert.equal((await rowOf(db, customer)).status, 'active');

    const gone = await addCustomer(db);
    await signIn(one, gone.user);
    assert.equal((await request(server, { method: 'DELETE', path: `/v1/customers/${gone.id}`, headers: asAdmin() })).status, 200);
    await one.reload();
    assert.ok((await one.locator('[role=status]').innerText()).includes('This account has been deleted'));
    await look(one, 'account-deleted-meanwhile', {
      again: async (language) => {
        const another = await addCustomer(db);
        await signIn(one, another.user);
        assert.equal((await request(server, { method: 'DELETE', path: `/v1/customers/${another.id}`, headers: asAdmin() })).status, 200);
        await one.goto(`/account?lang=${language}`);
      },
    });
    await one.reload();
    assert.equal(await heading(one), 'Delete your Example account');
    for (const page of [one, other]) await watched(page);
  });

  it('a session is kept in a sealed cookie for 15 minutes from the last visit, out of reach of scripts', async () => {
    const { user } = await addCustomer(db);
    const page = await reader();
    await signIn(page, user);
    const find = async () => (await page.context().cookies()).find(({ name }) => name.endsWith('reclaim_session'));
    const cookie = await find();
    assert.ok(cookie.httpOnly && cookie.sameSite === 'Lax');
    const left = cookie.expires - Date.now() / 1000;
    assert.ok(left > 800 && left <= 901, `${left} s`);
    const bytes = Buffer.from(cookie.value, 'base64url');
    assert.ok(!cookie.value.includes('.') && !bytes.includes('eyJhbGci'), 'the token does not stand in it');
    await until('a renewed cookie', async () => {
      await page.reload();
      return (await find()).expires > cookie.expires;
    });
    await page.context().addCookies([{ ...cookie, value: cookie.value.slice(0, -2) + (cookie.value.endsWith('AA') ? 'BB' : 'AA') }]);
    await page.reload();
    assert.equal(await heading(page), 'Delete your Example account', 'a forged cookie is none');
  });
});
