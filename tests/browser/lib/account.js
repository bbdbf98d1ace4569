// The scene of stories on `/account`: customers, a mail provider, and readers with a client's address each.

import { addCustomer, canaryPassword, scene } from '../../service/lib/customers.js';
import { newReader, openBrowser, settled } from './browser.js';

const settings = {
  RECLAIM_BRAND_NAME: 'Example',
  RECLAIM_LIMIT_LOGIN: '6/900',
  RECLAIM_LIMIT_EMAIL: 'off',
  RECLAIM_LIMIT_IP: 'off',
  RECLAIM_FREEZE_LIMIT: '4',
  RECLAIM_HOLD_MS: '50',
  RECLAIM_HOLD_SIGMA_MS: '0',
  RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
};

export const accountScene = async (stage, more = {}) => {
  const { db, provider, server } = await scene(stage, { auth: 'supabase', settings: { ...settings, ...more } });
  await db.query(`create table public.recordings (id bigint generated always as identity primary key, customer_id uuid not null);
    create index on public.recordings (customer_id);
    create table public.contacts (like public.recordings including all)`);
  await db.query(`select reclaim.cascade_add('recordings', 'public.recordings', 'customer_id', null, null, null, false, 'customer', 'Call recordings'),
    reclaim.cascade_add('contact_list', 'public.contacts', 'customer_id', null, null, null, false),
    reclaim.cascade_add('archive', null, null, null, null, null, false, null, 'Archive abroad')`);
  const browser = await openBrowser(stage);
  // A reader with an address of their own, so that limits of others do not count.
  let readers = 0;
  const reader = async (options = {}) => {
    const client = `198.51.100.${++readers}`;
    return Object.assign(await newReader(browser, server, { extraHTTPHeaders: { 'X-Forwarded-For': client }, ...options }), { client });
  };
  const mailedCode = async (email, ask) => {
    const nth = provider.mailsTo(email).length + 1;
    await ask();
    return (await provider.mailTo(email, { nth })).code;
  };
  return { db, provider, server, browser, reader, mailedCode };
};

export const heading = async (page) => (await page.locator('h1').textContent()).trim();
export const fill = async (page, fields) => {
  for (const [name, value] of Object.entries(fields)) await page.locator(`#${name}`).fill(value);
};
/** A click on a button that sends a form; resolves when the next page is there. */
export const press = async (page, name) => {
  await Promise.all([page.waitForNavigation(), page.getByRole('button', { name, exact: true }).click()]);
  await settled(page);
};

export async function signIn(page, user, password = canaryPassword) {
  await page.goto('/account');
  await fill(page, { email: user.email, password });
  await Promise.all([page.waitForNavigation(), page.locator('#password').press('Enter')]);
  await settled(page);
}

/** Someone who is signed in, and has just closed their account. */
export async function closeAccount(page, db) {
  const customer = await addCustomer(db);
  await signIn(page, customer.user);
  await fill(page, { proof: canaryPassword });
  await press(page, 'Delete my account');
  return customer;
}
