// Supabase Auth as it calls the hook before-user-created: signed with one or several secrets, and what it makes of the answer.

import { createHmac, randomUUID } from 'node:crypto';

import { request } from './http.js';

export const hookPath = '/hooks/before-user-created';
const keyOf = (secret) => Buffer.from(secret.replace(/^v1,/, '').replace(/^whsec_/, ''), 'base64');
export const secretOf = (bytes) => `v1,whsec_${bytes.toString('base64')}`;

export function signatureOf(secret, id, timestamp, body) {
  return `v1,${createHmac('sha256', keyOf(secret)).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
}

/** What it sends for a new user. */
export const eventOf = (email, user = {}) => ({
  metadata: { uuid: randomUUID(), time: new Date().toISOString(), name: 'before-user-created', ip_address: '192.0.2.7' },
  user: { id: randomUUID(), aud: 'authenticated', role: '', email, phone: '', app_metadata: { provider: 'email', providers: ['email'] }, user_metadata: {}, identities: [], created_at: '0001-01-01T00:00:00Z', updated_at: '0001-01-01T00:00:00Z', is_anonymous: false, ...user },
});

/** One call; `secrets` as it has them configured: the signatures are joined as it joins them. */
export function callHook(server, event, { secrets, at = Math.floor(Date.now() / 1000), id = randomUUID(), headers = {}, method = 'POST' }) {
  const body = typeof event === 'string' ? event : JSON.stringify(event);
  return request(server, {
    method,
    path: hookPath,
    body: method === 'GET' ? undefined : body,
    headers: {
      'Content-Type': 'application/json',
      'webhook-id': id,
      'webhook-timestamp': String(at),
      'webhook-signature': secrets.map((secret) => signatureOf(secret, id, at, body)).join(', '),
      ...headers,
    },
  });
}

/** 'created', or the status and message that whoever signs up sees: only the body of a 200 reaches them. */
export function signUpOf({ status, headers, json }) {
  if (status !== 200 || !/^application\/json\b/.test(headers['content-type'])) return { status: 500 };
  return json.error?.message ? { status: json.error.http_code ?? 500, message: json.error.message } : 'created';
}
