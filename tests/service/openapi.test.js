// The description of the API: served as it is, sound in itself, and strict enough to notice a stray field.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';

import { request } from './lib/http.js';
import { description, faultsOf, matches, resolve } from './lib/openapi.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

/** Calls `visit` with every object of the description and the pointer to it. */
function walk(value, pointer, visit) {
  if (value === null || typeof value !== 'object') return;
  visit(value, pointer);
  for (const [key, inner] of Object.entries(value)) walk(inner, `${pointer}/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`, visit);
}

/** The examples beside a schema: their names and values. */
const examplesOf = ({ example, examples = {} }) => [
  ...(example === undefined ? [] : [['example', example]]),
  ...Object.entries(examples).map(([name, one]) => [name, (one.$ref ? resolve(one.$ref).found : one).value]),
];

const operations = Object.entries(description.paths).flatMap(([route, item]) =>
  Object.entries(item)
    .filter(([, operation]) => operation.responses)
    .map(([method, operation]) => [`${method.toUpperCase()} ${route}`, operation, `#/paths/${route.replaceAll('/', '~1')}/${method}`]),
);

const stage = new Stage();
let server;
before(async () => {
  const cluster = await Cluster.create(stage);
  server = await serve(stage, { database: await cluster.database(stage) });
});
after(() => stage.end());

describe('openapi.json', () => {
  it('is served as it stands in the repository', async () => {
    const answer = await request(server, { path: '/openapi.json' });
    assert.equal(answer.status, 200);
    assert.equal(answer.body, fs.readFileSync(path.join(repository, 'openapi/openapi.json'), 'utf8'));
    const head = await request(server, { path: '/openapi.json', method: 'HEAD' });
    assert.equal(head.status, 200);
    assert.equal(head.body, '');
    const wrong = await request(server, { path: '/openapi.json', method: 'POST', body: '{}' });
    assert.equal(wrong.status, 405);
    assert.equal(wrong.headers.allow, 'GET, HEAD');
  });

  it('has no reference that leads nowhere, and no component that nothing leads to', () => {
    const used = new Set();
    walk(description, '#', (value) => {
      for (const scheme of value.security ?? []) for (const name of Object.keys(scheme)) used.add(`#/components/securitySchemes/${name}`);
      if (typeof value.$ref !== 'string') return;
      used.add(value.$ref);
      resolve(value.$ref);
    });
    for (const [kind, all] of Object.entries(description.components))
      for (const name of Object.keys(all)) {
        const pointer = `#/components/${kind}/${name}`;
        assert.ok(used.has(pointer), `${pointer} is used nowhere`);
      }
  });

  it('has examples that are as it says', () => {
    let examples = 0;
    walk(description, '#', (value, pointer) => {
      if (!value.schema) return;
      for (const [where, example] of examplesOf(value)) {
        examples++;
        assert.equal(matches(`${pointer}/schema`, example), null, `${pointer} ${where}`);
      }
    });
    assert.ok(examples >= 100);
  });

  /** Fails unless every media type of a body has an example. */
  const hasExamples = (pointer) => {
    for (const [type, content] of Object.entries(resolve(pointer).found.content ?? {}))
      assert.ok(examplesOf(content).length > 0, `${pointer} ${type} has no example`);
  };

  for (const [name, operation, pointer] of operations)
    it(`describes ${name} in words, with an id, a tag and an example of its body and of every answer`, () => {
      for (const field of ['summary', 'description', 'operationId']) assert.ok(operation[field], field);
      assert.ok(description.tags.some((tag) => tag.name === operation.tags[0]));
      if (operation.requestBody) hasExamples(`${pointer}/requestBody`);
      for (const status of Object.keys(operation.responses)) {
        assert.ok(resolve(`${pointer}/responses/${status}`).found.description, status);
        hasExamples(`${pointer}/responses/${status}`);
      }
    });

  it('is without errors and warnings for Spectral', async () => {
    const lint = [path.join(repository, 'tests/node_modules/.bin/spectral'), 'lint', '--fail-severity=hint', '--ruleset', path.join(repository, 'tests/service/fixtures/spectral.yaml'), path.join(repository, 'openapi/openapi.json')];
    const { stdout } = await promisify(execFile)(process.execPath, lint).catch((fault) => assert.fail(`${fault.stdout}${fault.stderr}`));
    assert.match(stdout, /^No results with a severity of 'hint' or higher found!/);
  });

  it('has no two operations of one id', () => {
    const ids = operations.map(([, operation]) => operation.operationId);
    assert.equal(new Set(ids).size, ids.length);
  });

  it('closes every object that an answer is made of', () => {
    for (const name of ['EmailStatusAnswer', 'EmailStatus', 'ErrorEnvelope', 'Error', 'Live', 'Ready', 'NotReady'])
      assert.equal(description.components.schemas[name].additionalProperties, false, name);
  });

  it('notices a stray field, a stray header, a missing header and an impossible state', () => {
    const at = '#/paths/~1functions~1v1~1check-email-status/post/responses/200';
    const id = 'a1b2c3d4-e5f6-4890-abcd-ef1234567890';
    const data = { status: 'not_registered', verifiedAt: null, lastSignInAt: null, hasCompanyData: false, isOrphaned: false, correlationId: id };
    const headers = { 'content-type': 'application/json', 'x-correlation-id': id, 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' };
    const faults = (change, changedHeaders = headers) => faultsOf(at, { status: 200, headers: changedHeaders, body: JSON.stringify({ data: { ...data, ...change } }) }).length;
    assert.equal(faults({}), 0);
    assert.equal(faults({ email: 'x' }), 1);
    assert.equal(faults({}, { ...headers, server: 'x' }), 1);
    assert.equal(faults({}, { ...headers, 'x-correlation-id': 'x' }), 1);
    assert.equal(faults({}, { 'content-type': 'application/json' }), 3);
    assert.equal(faults({ isOrphaned: true }), 1);
    assert.equal(faults({ status: 'registered_unverified' }), 1);
    assert.equal(faults({ status: 'registered_unverified', isOrphaned: true }), 0);
    assert.equal(faults({ status: 'registered_verified', isOrphaned: true, verifiedAt: '2025-10-20T14:30:00Z' }), 1);
    assert.equal(faults({ status: 'registered_verified', isOrphaned: true, verifiedAt: '2025-10-20T14:30:00.000Z' }), 0);
    assert.equal(faults({ status: 'registered_verified', isOrphaned: null, verifiedAt: '2025-10-20T14:30:00.000Z' }), 1);
  });
});

describe('/docs', () => {
  const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
  let answer, html;
  before(async () => {
    const { host, port } = server.address('public');
    answer = await fetch(`http://${host}:${port}/docs`);
    html = await answer.text();
  });

  const decoded = (text) => text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&#x27;', "'").replaceAll('&#123;', '{').replaceAll('&amp;', '&');
  /** The text of some HTML, as a reader without scripts sees it. */
  const textOf = (part) => decoded(part.replace(/<[^>]+>/g, ''));
  const squeezed = (text) => text.replace(/\s+/g, ' ').trim();

  it('is a page under the policy of all pages: no style, script or handler inside it', () => {
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(answer.headers.get('content-security-policy'), policy);
    assert.match(html, /<\/html>\s*$/);
    assert.doesNotMatch(html, /<style|<[^>]+\s(style|on[a-z]+)=/i);
    for (const [script] of html.matchAll(/<script[^>]*>[^<]*/g)) assert.match(script, /^<script type="module" src="\/assets\/[a-z]+-[0-9a-f]{10}\.js">$/);
    assert.match(html, /href="\/assets\/docs-[0-9a-f]{10}\.css"/);
  });

  it('has every operation: its anchor, path, words, and an example of its body and of every answer', () => {
    const articles = html.split('<article ').slice(1).map((part) => part.split('</article>')[0]);
    for (const [name, operation, pointer] of operations) {
      const article = articles.find((part) => part.includes(`id="${operation.operationId}"`));
      assert.ok(article, name);
      const text = squeezed(textOf(article));
      const [method, route] = name.split(' ');
      for (const part of [method, route, operation.summary, operation.description.replaceAll('`', '').replaceAll('**', '')])
        assert.ok(text.includes(squeezed(part)), `${name} lacks: ${part}`);
      for (const at of [...(operation.requestBody ? [`${pointer}/requestBody`] : []), ...Object.keys(operation.responses).map((status) => `${pointer}/responses/${status}`)])
        for (const content of Object.values(resolve(at).found.content ?? {})) {
          const [[, example]] = examplesOf(content);
          assert.ok(text.includes(squeezed(typeof example === 'string' ? example : JSON.stringify(example, null, 2))), `${name} lacks an example of ${at}`);
        }
      for (const status of Object.keys(operation.responses)) assert.match(article, new RegExp(`docs-status docs-[a-z]+">${status}<`), `${name} ${status}`);
      assert.match(article, /curl /);
      assert.match(article, /await fetch\(/);
    }
  });

  it('has no anchor twice and no link that leads nowhere', () => {
    const ids = [...html.matchAll(/\sid="([^"]+)"/g)].map(([, id]) => id);
    assert.equal(new Set(ids).size, ids.length);
    for (const [, to] of html.matchAll(/href="#([^"]+)"/g)) assert.ok(ids.includes(to), `#${to}`);
  });
});
