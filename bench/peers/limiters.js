// Limiters to compare with, both on PostgreSQL: each checks tier by tier and stops at the first that refuses.

import { createRequire } from 'node:module';

const require = createRequire(new URL('../../tests/package.json', import.meta.url));
const pg = require('pg');
const { RateLimiterPostgres } = require('rate-limiter-flexible');

/** Keys of the same length as Reclaim's digests. */
const keys = {
  global: () => 'global',
  ip: (person) => `ip:${String(person).padStart(64, '0')}`,
  email: (person) => `email:${String(person).padStart(64, '0')}`,
};

/** One function call for each tier, which counts, then inserts: bench/peers/three_calls.sql. */
function calls(pool, limits) {
  const asks = async (tier, [limit, seconds], person) => {
    const { rows } = await pool.query({
      name: 'check',
      text: 'SELECT allowed, current_count, retry_after FROM check_rate_limit($1, $2, $3)',
      values: [keys[tier](person), limit, seconds],
    });
    return rows[0].allowed;
  };
  return async (person) => {
    for (const [tier, limit] of Object.entries(limits)) if (!(await asks(tier, limit, person))) return false;
    return true;
  };
}

/** The npm package; with `remembers` a process caches refusals in memory. */
function flexible(pool, limits, remembers) {
  const limiters = [];
  for (const [tier, [points, duration]] of Object.entries(limits)) {
    const options = { storeClient: pool, points, duration, schemaName: 'flexible', tableName: 'limits', tableCreated: true, keyPrefix: '' };
    if (remembers) options.inMemoryBlockOnConsumed = points;
    const limiter = new RateLimiterPostgres(options);
    limiters.push((person) => limiter.consume(keys[tier](person)));
  }
  return async (person) => {
    try {
      for (const consume of limiters) await consume(person);
      return true;
    } catch (refused) {
      if (refused instanceof Error) throw refused;
      return false;
    }
  };
}

const made = { calls, flexible };

/**
 * Returns { admits(person), end() }. `limits` is { tier: [requests, seconds] }; the pool's connections are open when
 * it returns.
 */
export async function openLimiter({ name, connection, connections, limits, remembers = false }) {
  const pool = new pg.Pool({ ...connection, max: connections, idleTimeoutMillis: 0, options: '-c search_path=three_calls' });
  const clients = await Promise.all(Array.from({ length: connections }, () => pool.connect()));
  clients.forEach((client) => client.release());
  return { admits: made[name](pool, limits, remembers), end: () => pool.end() };
}
