// An HTTP client that validates every reply against the description of the API.

import http from 'node:http';

import { assertDescribed } from './openapi.js';
import { clientAddress } from './people.js';

export const probePath = '/functions/v1/check-email-status';

const without = (headers, names = []) => Object.fromEntries(Object.entries(headers).filter(([name]) => !names.includes(name)));

/**
 * Sends one request to the server's public or ops listener. The reply has status, headers, body, json, and sentAt and
 * answeredAt, monotonic milliseconds from before the first byte was sent to after the first was received. A proxy in
 * front of the server has `adds`, the names of headers that it adds.
 */
export function request(server, { method = 'GET', path, headers = {}, body, agent = false, listener = 'public' }) {
  const { host, port } = server.address(listener);
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const call = http.request(
      { host, port, method, path, agent, localAddress: host.includes(':') ? undefined : clientAddress, headers: { ...length, ...headers } },
      (incoming) => {
        const answeredAt = performance.now();
        const parts = [];
        incoming.on('data', (part) => parts.push(part));
        incoming.on('error', reject);
        incoming.on('end', () => {
          const answer = {
            status: incoming.statusCode,
            headers: incoming.headers,
            body: Buffer.concat(parts).toString('utf8'),
            sentAt,
            answeredAt,
          };
          try {
            assertDescribed({ method, path, listener }, { ...answer, headers: without(answer.headers, server.adds) });
            if (answer.headers['content-type']?.startsWith('application/json') && answer.body) answer.json = JSON.parse(answer.body);
            resolve(answer);
          } catch (fault) {
            reject(fault);
          }
        });
      },
    );
    call.on('error', reject);
    call.end(body);
  });
}

export const post = (server, body, options = {}) =>
  request(server, {
    method: 'POST',
    path: probePath,
    body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    ...options,
    headers: { 'Content-Type': 'application/json', ...options.headers },
  });

/** Probes an address; returns the whole reply. */
export const probe = (server, email, options) => post(server, { email }, options);

export const ops = (server, path, options = {}) => request(server, { path, listener: 'ops', ...options });
