// An application's page, of another origin than the server: an empty document, and scripts that it loads.

import { readFileSync } from 'node:fs';
import http from 'node:http';
import { fileURLToPath } from 'node:url';

import { originOf } from './browser.js';

const file = (path) => fileURLToPath(new URL(`../../../${path}`, import.meta.url));

/** Versions of supabase-js: scripts that define a global `supabase`. */
export const supabaseVersions = {
  2.78: 'tests/node_modules/@supabase/supabase-js',
  newest: 'tests/node_modules/supabase-js-newest',
};
export const packageOf = (version) => JSON.parse(readFileSync(file(`${supabaseVersions[version]}/package.json`), 'utf8'));
export const sourceOf = (version, path) => readFileSync(file(`${supabaseVersions[version]}/${path}`), 'utf8');

const pages = {
  '/': ['text/html', () => '<!doctype html><title>An application</title>'],
  '/client.js': ['text/javascript', () => readFileSync(file('clients/js/index.js'))],
};
for (const version of Object.keys(supabaseVersions)) pages[`/supabase-${version}.js`] = ['text/javascript', () => sourceOf(version, 'dist/umd/supabase.js')];

/** Ends with the stage; its address. */
export async function openElsewhere(stage) {
  const listener = http.createServer((request, response) => {
    const [type, content] = pages[request.url] ?? [];
    if (type) response.writeHead(200, { 'content-type': type }).end(content());
    else response.writeHead(404).end();
  });
  await new Promise((resolve) => listener.listen(0, '127.0.0.1', resolve));
  stage.after(() => {
    listener.closeAllConnections();
    return new Promise((resolve) => listener.close(resolve));
  });
  return `http://127.0.0.1:${listener.address().port}`;
}

/**
 * Opens the page with the scripts loaded. `page.call(run, given)` runs a function in it with `{ url, … }`, in which
 * `createReclaim`, and after `page.use(version)` `supabase`, are global.
 */
export async function newApplication(browser, address, server) {
  const page = await (await browser.newContext()).newPage();
  page.setDefaultTimeout(20_000);
  await page.goto(`${address}/`);
  await page.addScriptTag({ type: 'module', content: "import * as client from '/client.js'; Object.assign(globalThis, client);" });
  await page.waitForFunction(() => 'createReclaim' in globalThis);
  page.use = (version) => page.addScriptTag({ url: `/supabase-${version}.js` });
  page.call = (run, given) => page.evaluate(run, { url: originOf(server), ...given });
  return page;
}
