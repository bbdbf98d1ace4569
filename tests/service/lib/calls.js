// Calls over the API, as a switch reports them.

import { randomUUID } from 'node:crypto';

import { asAdmin } from './customers.js';
import { request } from './http.js';
import { until } from './stage.js';

const send = (server, method, path, body, headers = asAdmin(), more = {}) =>
  request(server, {
    method,
    path,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
    ...more,
  });

export const ask = (server, body, headers, more) => send(server, 'POST', '/v1/calls', body, headers, more);
/** Requests a call of this customer. */
export const begin = (server, customer, more = {}, headers, options) =>
  ask(server, { customer_id: customer.id, direction: 'outgoing', source: '+15550100', destination: '+15550199', ...more }, headers, options);
export const progress = (server, id, body, headers) =>
  send(server, 'POST', `/v1/calls/${id}/progress`, typeof body === 'string' ? { status: body } : body, headers);
export const hangUp = (server, id, body, headers) => send(server, 'POST', `/v1/calls/${id}/hangup`, body, headers);
export const showCall = (server, id, headers) => send(server, 'GET', `/v1/calls/${id}`, undefined, headers);
export const listCalls = (server, query = '', headers = undefined) => send(server, 'GET', `/v1/calls${query}`, undefined, headers);

export const sip = (more = {}) => ({ sip_call_id: `${randomUUID()}@example.com`, from_tag: 'from', cseq: 1, ...more });

/** A call that was answered. */
export async function talking(server, customer, more = {}) {
  const { json } = await begin(server, customer, more);
  return (await progress(server, json.id, { status: 'progressing', to_tag: 'to' })).json;
}

export const rowsOf = (db, customer) =>
  db.query('select * from reclaim.call_calls where customer_id = $1 order by tm_create, id', [customer.id]);

/** The call, once it is over. */
export const over = (server, id, deadlineMs) =>
  until(
    `call ${id} over`,
    async () => {
      const { json } = await showCall(server, id);
      return json.status === 'hangup' && json;
    },
    deadlineMs,
  );
