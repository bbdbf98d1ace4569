// A browser for stories on pages: Debian's Chromium, driven by playwright-core.
//
// Every page that a story opens is watched: a console message, an error in a script or a request to another host fails the
// test that asks with `await watched(page)`.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

import { chromium } from 'playwright-core';

import { until } from '../../service/lib/stage.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const screenshots = join(import.meta.dirname ?? new URL('.', import.meta.url).pathname, '../../../build/screenshots');

export const picture = (name) => join(screenshots, `${name}.png`);

// `./dev screenshots` copies these to docs/images, for the README.
const pictures = { 'recover-code-en-light-360': 'recover', 'account-frozen-en-light-360': 'account', 'admin-overview-en-light-1280': 'admin' };
const keepForReadme = (name) => {
  if (process.env.PICTURES && pictures[name]) copyFileSync(picture(name), join(screenshots, '../../docs/images', `${pictures[name]}.png`));
};

export const originOf = (server) => {
  const { host, port } = server.address('public');
  return `http://${host}:${port}`;
};

// A request without a browser; no cookies are kept. The body is read: a connection with an unread one stays open.
export const fetchPage = async (server, path, options = {}) => {
  const answer = await fetch(originOf(server) + path, { redirect: 'manual', ...options });
  const body = await answer.arrayBuffer();
  return new Response(body.byteLength ? body : null, { status: answer.status, headers: answer.headers });
};

// A form as the reader of a page would send it, without following where the answer leads.
export const sendForm = (page, path, form, headers = {}) => page.context().request.post(path, { form, headers: { connection: 'close', ...headers }, maxRedirects: 0 });

// Ends with the stage.
export const openBrowser = async (stage) => {
  const browser = await chromium.launch({
    executablePath: '/usr/bin/chromium-headless-shell',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking', '--force-color-profile=srgb'],
  });
  stage.after(() => browser.close());
  return browser;
};

// A reader of their own: no cookies yet. `scripts: false` switches JavaScript off.
export const newReader = async (browser, server, { scripts = true, language = 'en-GB', ...more } = {}) => {
  const context = await browser.newContext({
    baseURL: originOf(server),
    javaScriptEnabled: scripts,
    locale: language,
    timezoneId: 'Europe/Vienna',
    viewport: { width: 1280, height: 900 },
    ...more,
  });
  server.keepsConnections(() => context.close());
  const page = await context.newPage();
  const found = [];
  page.on('console', (message) => found.push(`console ${message.type()}: ${message.text()}`));
  page.on('pageerror', (error) => found.push(`script: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(originOf(server)) && !request.url().startsWith('data:')) found.push(`request to ${request.url()}`);
  });
  page.found = found;
  page.setDefaultTimeout(20_000);
  return page;
};

// Once the page has put the focus where it says. A key that is pressed before moves it elsewhere.
export const settled = (page) =>
  until('the focus where the page puts it', () => page.evaluate(() => !document.querySelector('[autofocus]') || document.activeElement?.matches('[autofocus]')));

// The id of the element with the focus.
export const focused = async (page) => {
  await settled(page);
  return page.evaluate(() => document.activeElement.id);
};

// The end of a story: nothing was found, and the reader leaves. Pages left open go on counting down and asking for news.
export const watched = async (page) => {
  assert.deepEqual(page.found, []);
  await page.context().close();
};

// axe-core's findings, short, of all rules or of those named. Scripts must be on.
export const accessibilityOf = async (page, rules = 'all') => {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate((only) => globalThis.axe.run(document, { resultTypes: ['violations'], ...(only && { runOnly: only }) }), rules === 'all' ? undefined : rules);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target.join(' ')} ${node.any.map(({ message }) => message).join('; ')}`).join(' | ')}`);
};

// Nothing may be wider than the window, and no text may be cut off by its own box.
const overflowOf = (page) =>
  page.evaluate(() => {
    const found = [];
    if (document.documentElement.scrollWidth > document.documentElement.clientWidth) found.push('the page scrolls sideways');
    for (const element of document.querySelectorAll('main *')) {
      const style = getComputedStyle(element);
      if (style.overflowX === 'hidden' && element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 1 && style.textOverflow !== 'ellipsis')
        found.push(`cut off: ${element.tagName}.${element.className}`);
    }
    return found;
  });

const schemes = [
  ['light', { colorScheme: 'light', forcedColors: 'none' }],
  ['dark', { colorScheme: 'dark', forcedColors: 'none' }],
  ['forced', { colorScheme: 'dark', forcedColors: 'active' }],
];
const widths = [360, 1280];

// The window as a PNG, written fast rather than small.
export const photograph = async (page, name) => {
  mkdirSync(screenshots, { recursive: true });
  const session = (page.session ??= await page.context().newCDPSession(page));
  const { data } = await session.send('Page.captureScreenshot', { format: 'png', optimizeForSpeed: true });
  writeFileSync(picture(name), Buffer.from(data, 'base64'));
  keepForReadme(name);
};

// A window of this width that shows the whole page: what lies beyond a window may not be painted yet when a picture is taken.
const openWindow = async (page, width, fullPage) => {
  await page.setViewportSize({ width, height: 900 });
  const height = fullPage ? await page.evaluate(() => document.documentElement.scrollHeight) : 900;
  if (height > 900) await page.setViewportSize({ width, height });
};

// Which rules axe is asked about. All of them in light, narrow in one language and wide in the other: only its rules about colours can
// give another answer in another scheme, and those are asked the other way round. It takes most of the time of a look.
export const colours = ['color-contrast', 'link-in-text-block'];
const axeRules = {
  de: { 360: { light: 'all', forced: colours }, 1280: { dark: colours } },
  en: { 360: { dark: colours }, 1280: { light: 'all', forced: colours } },
};

// The state as it stands, in three colour schemes and two widths: pictures, no overflow, and axe finds nothing.
const lookAround = async (page, name, language, { fullPage }) => {
  const problems = [];
  for (const width of widths) {
    await openWindow(page, width, fullPage);
    for (const [scheme, media] of schemes) {
      const which = `${name}-${language}-${scheme}-${width}`;
      const rules = axeRules[language][width][scheme];
      await page.emulateMedia({ ...media, reducedMotion: 'reduce' });
      await photograph(page, which);
      const found = [...(await overflowOf(page)), ...(rules ? await accessibilityOf(page, rules) : [])];
      problems.push(...found.map((problem) => `${which}: ${problem}`));
    }
  }
  await page.emulateMedia(schemes[0][1]);
  await page.setViewportSize({ width: 1280, height: 900 });
  return problems;
};

// What tells one state from another, but for times that pass.
const stateOf = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll('main h1, main .note, main [aria-invalid=true]')]
      .filter((one) => one.checkVisibility())
      .map((one) => (one.innerText || one.name).replace(/\d+/g, 'N'))
      .join('\n'),
  );

// Looks at one state of a page in both languages, three colour schemes and two widths. The state must survive a reload, as every
// state after POST, redirect, GET does; `again` brings one back that does not. Scripts must be on. `fullPage: false`, for a very
// long page, takes a picture of the window only; `prepare` is called after each reload.
export const look = async (page, name, { fullPage = true, again, prepare } = {}) => {
  const problems = [];
  const address = page.url();
  const [first, before] = [await page.locator('html').getAttribute('lang'), await stateOf(page)];
  const open = async (language) => {
    const to = new URL(address);
    if (language) to.searchParams.set('lang', language);
    if (again) await again(language ?? first);
    else await page.goto(to.href);
    await prepare?.();
  };
  for (const language of ['de', 'en']) {
    await open(language);
    if (language === first && (await stateOf(page)) !== before) problems.push(`${name}: it shows another state after a reload: ${await stateOf(page)}`);
    problems.push(...(await lookAround(page, name, language, { fullPage })));
  }
  if (!again) await page.goto(address);
  await settled(page);
  assert.deepEqual(problems, []);
};

// Bytes over the wire of a first visit, headers included.
export const bytesOfFirstVisit = async (browser, server, path) => {
  const page = await newReader(browser, server);
  const session = await page.context().newCDPSession(page);
  let bytes = 0;
  await session.send('Network.enable');
  session.on('Network.loadingFinished', (event) => (bytes += event.encodedDataLength));
  await page.goto(path, { waitUntil: 'networkidle' });
  await page.context().close();
  return bytes;
};
