// Helpers for the tests of events.

import { request } from './http.js';
import { parseMetrics } from './prometheus.js';

/** A server's metrics, parsed. */
export async function ops(server) {
  const answer = await request(server, { path: '/metrics', listener: 'ops' });
  return parseMetrics(answer.body);
}
