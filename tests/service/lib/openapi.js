// Validates a reply against openapi/openapi.json: status, header fields and body must be described there.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import Ajv2020 from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

import { repository } from './place.js';

export const description = JSON.parse(fs.readFileSync(path.join(repository, 'openapi/openapi.json'), 'utf8'));

const id = 'https://example.com/openapi.json';
const ajv = new (Ajv2020.default ?? Ajv2020)({ allErrors: true, allowUnionTypes: true, strictTypes: false, strictRequired: false });
(addFormats.default ?? addFormats)(ajv);
ajv.addVocabulary(['openapi', 'info', 'servers', 'tags', 'paths', 'x-cors', 'x-answers-anywhere', 'components']);
ajv.addSchema({ ...description, $id: id }, undefined, undefined, false);

const framing = new Set(['date', 'connection', 'content-length', 'content-type', 'transfer-encoding', 'keep-alive']);

/** The target of a pointer such as '#/components/headers/Allow', and its final location. */
export function resolve(pointer) {
  const parts = pointer.slice(2).split('/').map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
  const found = parts.reduce((at, part) => at?.[part], description);
  assert.ok(found !== undefined, `${pointer} is not in the description`);
  return found.$ref && Object.keys(found).length === 1 ? resolve(found.$ref) : { found, pointer };
}

const escaped = (part) => part.replaceAll('~', '~0').replaceAll('/', '~1');

export function matches(pointer, value) {
  const check = ajv.getSchema(`${id}${pointer}`);
  return check(value) ? null : `${ajv.errorsText(check.errors, { dataVar: 'it', separator: '; ' })}, in ${JSON.stringify(value)}`;
}

/** Paths of the ops listener have a separate server entry. */
const isOn = (listener, path) => Boolean(description.paths[path].servers) === (listener === 'ops');

function pathOf(url, listener) {
  const [plain] = url.split('?');
  return Object.keys(description.paths).find(
    (known) =>
      isOn(listener, known) &&
      (new RegExp(`^${known.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')}$`).test(plain) ||
        (description.paths[known]['x-paths-beneath'] && plain.startsWith(`${known}/`))),
  );
}

const cors = description['x-cors'];
const isCors = (url, listener) => listener === 'public' && cors.paths.some((prefix) => url.startsWith(prefix));
const isPreflight = (method, url, listener, status) => method === 'OPTIONS' && status === 204 && isCors(url, listener);

/** The description of the reply with this status to this request. */
function responsePointer(method, url, listener, status) {
  if (isPreflight(method, url, listener, status)) return '#/x-cors/preflight';
  const known = pathOf(url, listener);
  if (!known) {
    assert.equal(status, 404, `${url} is not described, so its answer is 404`);
    return `#/components/responses/${listener === 'public' && url.startsWith('/functions/v1/') ? 'FunctionNotFound' : 'NotFound'}`;
  }
  const operations = description.paths[known];
  const verb = method === 'HEAD' && !operations.head ? 'get' : method.toLowerCase();
  if (operations[verb]) {
    assert.ok(operations[verb].responses[status], `${method} ${known} has no ${status} in the description`);
    return `#/paths/${escaped(known)}/${verb}/responses/${status}`;
  }
  const [other] = Object.keys(operations).filter((name) => operations[name].responses?.['405']);
  assert.equal(status, 405, `${method} is no method of ${known}`);
  return `#/paths/${escaped(known)}/${other}/responses/405`;
}

function headerValue(text, schema) {
  return schema.type === 'integer' && /^-?\d+$/.test(text) ? Number(text) : text;
}

/** Validates the reply against one described response; returns the errors. `shared` are headers that every response of a
 * family of paths may have. */
export function faultsOf(pointer, { status, headers, body, bodyless = false, shared = {} }) {
  const { found: response, pointer: at } = resolve(pointer);
  const faults = [];
  const described = new Map(Object.keys(response.headers ?? {}).map((name) => [name.toLowerCase(), `${at}/headers/${escaped(name)}`]));
  for (const [name, { $ref }] of Object.entries(shared)) described.set(name.toLowerCase(), $ref);
  for (const [name, text] of Object.entries(headers)) {
    if (framing.has(name)) continue;
    if (!described.has(name)) {
      faults.push(`header ${name} is not described`);
      continue;
    }
    const { found, pointer: headerAt } = resolve(described.get(name));
    const fault = matches(`${headerAt}/schema`, headerValue(text, found.schema));
    if (fault) faults.push(`header ${name}: ${fault}`);
  }
  for (const [name, headerAt] of described) if (resolve(headerAt).found.required && !(name in headers)) faults.push(`header ${name} is missing`);

  if (bodyless) return faults;
  if (!response.content) {
    if (body !== '') faults.push(`status ${status} has no body, but this came: ${body}`);
    return faults;
  }
  const [type, ...parameters] = (headers['content-type'] ?? '').split(';').map((part) => part.trim().toLowerCase());
  if (!response.content[type]) return [...faults, `content type «${headers['content-type']}» is not described`];
  for (const parameter of parameters)
    if (!['charset=utf-8', 'version=0.0.4'].includes(parameter)) faults.push(`content type parameter «${parameter}»`);
  let value = body;
  if (type.endsWith('json')) {
    try {
      value = JSON.parse(body);
    } catch (fault) {
      return [...faults, `the body is no JSON: ${fault.message}: ${body}`];
    }
  }
  const fault = matches(`${at}/content/${escaped(type)}/schema`, value);
  if (fault) faults.push(`body: ${fault}`);
  return faults;
}

/** Fails the test unless this reply to this request is described. */
export function assertDescribed({ method, path: url, listener = 'public' }, answer) {
  const shared = isCors(url, listener) && !isPreflight(method, url, listener, answer.status) ? cors.headers : {};
  const faults = faultsOf(responsePointer(method, url, listener, answer.status), { ...answer, bodyless: method === 'HEAD', shared });
  assert.deepEqual(faults, [], `${method} ${url} ${answer.status} is not as described: ${faults.join('; ')}`);
}
