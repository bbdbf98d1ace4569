// Supabase's Storage API, as far as lists and deletions of objects go: folders are made from the names of objects, the search takes
// letters of either case and _ and % as SQL's ILIKE does, and most errors are a 400 with the status in its body.

import { randomUUID } from 'node:crypto';

import { listenLocally } from './local-http.js';

const userOf = (path) => /^[0-9a-f-]{36}(?=\/)/.exec(path)?.[0];
const pattern = (prefix) =>
  new RegExp(`^${[...prefix].map((c) => (c === '%' ? '.*' : c === '_' ? '.' : c.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&'))).join('')}`, 'isu');

export class FakeStorage {
  static key = 'sb_secret_canary-storage-key-a81f';
  buckets = new Map(); // name: Map of object names to ids
  asked = []; // { method, path, body }
  keys = [FakeStorage.key];
  faults = []; // [status, body] for the next requests, or functions that answer instead
  modes = new Map(); // of users, by their ids: 'forgets', 'halves', 'same page', 'endless', 'no list'; others are served well
  claimed = new Map(); // by user: how many objects the answers to deletions named
  delayMs = 0;

  static async start(scope) {
    const fake = new FakeStorage();
    fake.server = await listenLocally(scope, (request, response) => fake.#take(request, response));
    return fake;
  }

  get env() {
    return { RECLAIM_STORAGE_URL: `http://127.0.0.1:${this.server.address().port}/storage/v1/`, RECLAIM_STORAGE_KEY: FakeStorage.key };
  }

  add(bucket, names) {
    if (!this.buckets.has(bucket)) this.buckets.set(bucket, new Map());
    for (const name of names) this.buckets.get(bucket).set(name, randomUUID());
  }

  names(bucket) {
    return [...this.buckets.get(bucket).keys()].sort();
  }

  requests(method) {
    return this.asked.filter((one) => one.method === method);
  }

  #take(request, response) {
    const parts = [];
    request.on('error', () => {});
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const text = Buffer.concat(parts).toString('utf8');
      const question = { method: request.method, path: request.url, body: text && JSON.parse(text), headers: request.headers };
      this.asked.push(question);
      const [status, body] = this.faults.shift() ?? this.#answer(question);
      const send = () => {
        response.writeHead(status, { 'Content-Type': 'application/json' });
        response.end(typeof body === 'string' ? body : JSON.stringify(body));
      };
      if (this.delayMs) setTimeout(send, this.delayMs);
      else send();
    });
  }

  #answer({ method, path, body, headers }) {
    if (!headers.apikey) return [401, { message: 'No API key found in request' }];
    if (!this.keys.includes(headers.apikey) || headers.authorization !== `Bearer ${headers.apikey}`)
      return [400, { statusCode: '403', error: 'Unauthorized', message: 'Invalid Compact JWS' }];
    const [, base, kind, ...rest] = /^(\/storage\/v1)\/(bucket|object\/list|object)\/([^/?]+)$/.exec(path) ?? [];
    if (!base) return [404, { message: `Route ${method}:${path} not found` }];
    const name = decodeURIComponent(rest[0]);
    const bucket = this.buckets.get(name);
    if (kind === 'bucket' && method === 'GET')
      return bucket ? [200, { id: name, name, public: false }] : [400, { statusCode: '404', error: 'Bucket not found', message: 'Bucket not found' }];
    if (kind === 'object/list' && method === 'POST') return [200, this.#list(bucket ?? new Map(), body)];
    if (kind === 'object' && method === 'DELETE') return [200, this.#delete(name, bucket ?? new Map(), body)];
    return [404, { message: `Route ${method}:${path} not found` }];
  }

  #list(bucket, { prefix, limit = 100, offset = 0 }) {
    const mode = this.modes.get(userOf(prefix));
    if (mode === 'no list') return { message: 'It works!' };
    const folder = prefix && !prefix.endsWith('/') ? `${prefix}/` : prefix;
    const depth = folder.split('/').length - 1;
    const like = pattern(folder);
    if (mode === 'endless') return Array.from({ length: limit }, (_, i) => ({ name: `${offset + i}.txt`, id: randomUUID() }));
    const entries = new Set();
    for (const name of bucket.keys()) if (like.test(name)) entries.add(name.split('/')[depth]);
    const from = mode === 'same page' ? 0 : offset;
    return [...entries]
      .filter((name) => name !== undefined)
      .sort()
      .slice(from, from + limit)
      .map((name) => ({ name, id: bucket.get(folder + name) ?? null, updated_at: null, created_at: null, metadata: bucket.has(folder + name) ? { size: 1, mimetype: 'image/png' } : null }));
  }

  #delete(bucketName, bucket, { prefixes }) {
    const user = userOf(prefixes[0]);
    const mode = this.modes.get(user);
    const there = prefixes.filter((name) => bucket.has(name));
    const taken = mode === 'halves' ? there.slice(0, Math.ceil(there.length / 2)) : mode === 'same page' || mode === 'endless' ? [] : there;
    const answer = taken.map((name) => ({ name, bucket_id: bucketName, id: bucket.get(name) }));
    if (mode !== 'forgets') for (const name of taken) bucket.delete(name);
    this.claimed.set(user, (this.claimed.get(user) ?? 0) + answer.length);
    return answer;
  }
}
