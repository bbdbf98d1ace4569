// Limits over the API: clients behind a proxy, limit headers of replies, and the keys of Reclaim's counters.

import assert from 'node:assert/strict';
import { createHmac, hkdfSync } from 'node:crypto';
import net from 'node:net';

import { ops } from './http.js';
import { canaryKey } from './people.js';
import { parseMetrics, valueOf } from './prometheus.js';

/** Trusts the test client's address as a proxy, so that X-Forwarded-For gives the client's address. */
export const behindProxy = (limit, more = {}) => ({ RECLAIM_LIMIT_PROBE: limit, RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8', ...more });

let clients = 0;
/** An unused address, in an unused /48. */
export const newClient = () => `2001:db8:${(0x1000 + ++clients).toString(16)}:1::1`;

export const from = (client) => ({ headers: { 'X-Forwarded-For': client } });

/** A reply's limit headers as numbers; null without any. Fails if some are missing, or a wait exceeds its window. */
export function limitsOf({ status, headers }) {
  const names = ['x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'ratelimit-policy', 'ratelimit'];
  const there = names.filter((name) => name in headers);
  assert.ok(there.length === 0 || there.length === names.length, `only ${there}`);
  assert.equal('retry-after' in headers, status === 429, `Retry-After on ${status}`);
  if (there.length === 0) return null;
  const [, tier, r, t] = /^"([a-z-]+)";r=(\d+);t=(\d+)$/.exec(headers.ratelimit) ?? assert.fail(headers.ratelimit);
  const found = {
    tier,
    limit: Number(headers['x-ratelimit-limit']),
    remaining: Number(headers['x-ratelimit-remaining']),
    reset: Number(headers['x-ratelimit-reset']),
    seconds: Number(t),
    policy: headers['ratelimit-policy'],
  };
  assert.equal(Number(r), found.remaining, 'RateLimit and X-RateLimit-Remaining agree');
  const window = Number(new RegExp(`"${tier}";q=\\d+;w=(\\d+)`).exec(found.policy)?.[1]);
  assert.ok(found.seconds >= 1 && found.seconds <= window, `${found.seconds} s of a window of ${window}`);
  if (status === 429) assert.equal(Number(headers['retry-after']), found.seconds, 'RateLimit and Retry-After agree');
  return found;
}

/** "45 seconds", "60 seconds", "20 minutes". */
export function waitWords(seconds) {
  if (seconds <= 60) return seconds === 1 ? /\b1 seconds?\b/ : new RegExp(`\\b${seconds} seconds\\b`);
  return new RegExp(`\\b${Math.ceil(seconds / 60)} minutes\\b`);
}

const identifierKey = Buffer.from(hkdfSync('sha256', canaryKey, Buffer.alloc(0), 'identifiers', 32));
const keyed = (bytes) => createHmac('sha256', identifierKey).update(bytes).digest('hex');

function bytesOf(ip) {
  if (net.isIPv4(ip)) return Buffer.from([...Array(10).fill(0), 255, 255, ...ip.split('.').map(Number)]);
  const [head, tail = ''] = ip.split('::').map((part) => part.split(':').filter(Boolean));
  const middle = Array(8 - head.length - tail.length).fill('0');
  return Buffer.from([...head, ...middle, ...tail].map((part) => part.padStart(4, '0')).join(''), 'hex');
}

/** IPv6 counts by /64, and in the tiers of sites by /48. */
const networkOf = (ip) => (net.isIPv4(ip) ? bytesOf(ip) : bytesOf(ip).fill(0, 8));

/** The key in reclaim.rate_limits under which a tier counts a client, or an e-mail address. */
export const ipKey = (tier, ip) => `${tier}:${keyed(networkOf(ip))}`;
export const siteKey = (tier, ip) => `${tier}-site:${keyed(bytesOf(ip).fill(0, 6))}`;
export const emailKey = (tier, email) => `${tier}:${keyed(email)}`;

/** Of an address and a client's network together. */
export const pairKey = (tier, email, ip) => `${tier}:${keyed(Buffer.concat([Buffer.from(`${email}\0`), networkOf(ip)]))}`;

export async function countOf(db, key) {
  const [{ n }] = await db.query('select coalesce(sum(count), 0)::int as n from reclaim.rate_limits where key = $1', [key]);
  return n;
}

export async function metric(server, name, labels) {
  return valueOf(parseMetrics((await ops(server, '/metrics')).body), name, labels);
}

export const fromMemory = (server) => metric(server, 'reclaim_limit_decisions_total', { source: 'memory' });

/** Repeats an attempt until it returns something, which may fail on a slow machine. Exceptions are not retried. */
export async function conclusively(attempt) {
  for (let tries = 0; tries < 20; tries++) {
    const seen = await attempt();
    if (seen) return seen;
  }
  return assert.fail('twenty attempts came to nothing');
}

/** Stops the clock of the database's limits; returns a function that advances it. */
export async function standingClock(db) {
  await db.query(`create table if not exists public.test_clock (now timestamptz); truncate public.test_clock;
    insert into public.test_clock values ('2030-01-01Z');
    create or replace function reclaim.limit_clock() returns timestamptz language sql volatile
      as 'select now from public.test_clock'`);
  return (interval) => db.query('update public.test_clock set now = now + $1::interval', [interval]);
}
