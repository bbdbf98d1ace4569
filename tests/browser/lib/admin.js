// Operators at the console, each with a reader of their own.

import { scene } from '../../service/lib/customers.js';
import { run } from '../../service/lib/reclaim.js';
import { newReader, openBrowser } from './browser.js';

/** A database, a server, a browser, and a key of each scope that is given. */
export async function openConsole(stage, scopes) {
  const { db, server } = await scene(stage, { settings: { RECLAIM_LIMIT_IP: '5/60' } });
  const browser = await openBrowser(stage);
  const makeKey = async (scope) => (await run(stage, ['key', 'create', '--scope', scope], { database: db })).stdout.trim();
  const keys = {};
  for (const scope of scopes) keys[scope] = await makeKey(scope);
  const signIn = async (page, key = keys.admin) => {
    await page.goto('/admin');
    await page.getByLabel('Key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    return page;
  };
  const operator = async (options, key) => signIn(await newReader(browser, server, options), key);
  return { db, server, browser, keys, makeKey, signIn, operator };
}

export const rightToLeft = 'شركة المثال للتجارة';
