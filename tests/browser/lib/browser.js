// A browser for stories on pages: Debian's Chromium, driven by playwright-core.
//
// Every page that a story opens is watched: a console message, an error in a script or a request to another host fails the
// test that asks with `watched(page)`.

import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync } from 'node:fs';
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

// A request without a browser. No cookies are kept.
export const fetchPage = (server, path, options = {}) => fetch(originOf(server) + path, { redirect: 'manual', ...options });

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

export const watched = (page) => assert.deepEqual(page.found, []);

// axe-core's findings, short; `only`: of these rules. Scripts must be on.
export const accessibilityOf = async (page, only) => {
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(axe);
  const { violations } = await page.evaluate((rules) => globalThis.axe.run(document, { resultTypes: ['violations'], ...(rules && { runOnly: rules }) }), only);
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

// In the whole run German is looked at in light only, and axe asked once for each width and, about colours, each scheme;
// `./dev test browser` looks at all, and asks axe each time.
const few = process.env.RECLAIM_LOOKS === 'few';
const rulesFor = (language, scheme, width) => {
  if (!few || (language === 'en' && scheme === 'light')) return 'all';
  return language === 'en' && width === 1280 ? ['color-contrast'] : undefined;
};

const lookOnce = async (page, name, scheme, width, { fullPage, rules }) => {
  await page.emulateMedia({ ...Object.fromEntries(schemes)[scheme], reducedMotion: 'reduce' });
  await page.setViewportSize({ width, height: 900 });
  await page.screenshot({ path: picture(name), fullPage });
  keepForReadme(name);
  const told = [...(await overflowOf(page)), ...(rules ? await accessibilityOf(page, rules === 'all' ? undefined : rules) : [])];
  return told.map((problem) => `${name}: ${problem}`);
};

const asBefore = async (page) => {
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });
  await page.setViewportSize({ width: 1280, height: 900 });
};

// Looks at one state of a page in both languages, three colour schemes and two widths: a screenshot of each in
// build/screenshots, no overflow, and axe finds nothing. The state must survive a reload, as every state after
// POST, redirect, GET does. Scripts must be on. `fullPage: false`, for a very long
// page, takes a picture of the window only; `prepare` is called after each reload.
export const look = async (page, name, { fullPage = true, languages = ['de', 'en'], prepare } = {}) => {
  mkdirSync(screenshots, { recursive: true });
  const problems = [];
  const address = page.url();
  for (const language of languages) {
    const to = new URL(address);
    to.searchParams.set('lang', language);
    await page.emulateMedia(schemes[0][1]); // Chromium keeps the canvas of the scheme that a page was loaded with
    await page.goto(to.href);
    await prepare?.();
    for (const [scheme] of few && language === 'de' ? schemes.slice(0, 1) : schemes)
      for (const width of [360, 1280])
        problems.push(...(await lookOnce(page, `${name}-${language}-${scheme}-${width}`, scheme, width, { fullPage, rules: rulesFor(language, scheme, width) })));
  }
  await asBefore(page);
  await page.goto(address);
  await settled(page);
  assert.deepEqual(problems, []);
};

// The same for a state that is rare or shown only once: as it stands, narrow in light and wide in dark.
export const glance = async (page, name) => {
  mkdirSync(screenshots, { recursive: true });
  const problems = [];
  for (const [scheme, width] of [['light', 360], ['dark', 1280]]) problems.push(...(await lookOnce(page, `${name}-${scheme}-${width}`, scheme, width, { fullPage: true, rules: 'all' })));
  await asBefore(page);
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
