// Billing over the API: accounts, charges and subscriptions, with an admin's token.

import { randomBytes } from 'node:crypto';

import { asAdmin } from './customers.js';
import { request } from './http.js';

const ask = (server, method, path, body, headers = asAdmin()) =>
  request(server, {
    method,
    path,
    headers: { ...(body === undefined ? {} : { 'Content-Type': 'application/json' }), ...headers },
    body: body === undefined || typeof body === 'string' ? body : JSON.stringify(body),
  });

export const charge = (server, body, headers) => ask(server, 'POST', '/v1/billing/charges', body, headers);
export const showAccount = (server, id, headers) => ask(server, 'GET', `/v1/billing/accounts/${id}`, undefined, headers);
export const deleteAccount = (server, id, headers) => ask(server, 'DELETE', `/v1/billing/accounts/${id}`, undefined, headers);
export const validBalance = (server, id, amount, headers) =>
  ask(server, 'GET', `/v1/billing/accounts/${id}/valid-balance${amount === undefined ? '' : `?amount_micros=${amount}`}`, undefined, headers);
export const subscribe = (server, body, headers) => ask(server, 'POST', '/v1/billing/subscriptions', body, headers);
export const showSubscription = (server, id, headers) => ask(server, 'GET', `/v1/billing/subscriptions/${id}`, undefined, headers);
export const unsubscribe = (server, id, headers) => ask(server, 'DELETE', `/v1/billing/subscriptions/${id}`, undefined, headers);

export const adjust = (server, id, body, headers) => ask(server, 'POST', `/v1/billing/accounts/${id}/adjustments`, body, headers);
export const listAdjustments = (server, id, query = '', headers) => ask(server, 'GET', `/v1/billing/accounts/${id}/adjustments${query}`, undefined, headers);
export const listAccounts = (server, query = '', headers) => ask(server, 'GET', `/v1/billing/accounts${query}`, undefined, headers);
export const listCharges = (server, query = '', headers) => ask(server, 'GET', `/v1/billing/charges${query}`, undefined, headers);
export const listSubscriptions = (server, query = '', headers) => ask(server, 'GET', `/v1/billing/subscriptions${query}`, undefined, headers);

export const newReference = (name = 'usage') => `${name}-${randomBytes(6).toString('hex')}`;

/** The database's clock, which billing uses. */
export const clockOf = async (db) => (await db.query('select reclaim.rfc3339(clock_timestamp()) as now'))[0].now;

export const balanceOf = async (db, account) =>
  Number((await db.query('select balance_micros from reclaim.billing_accounts where id = $1', [account.id]))[0].balance_micros);

export const chargesOf = (db, account) =>
  db.query(
    `select reference, amount_micros::float8 as amount, reclaim.rfc3339(occurred_at) as occurred_at, subscription_id
     from reclaim.billing_charges where billing_account_id = $1 order by created_at`,
    [account.id],
  );

/** Charges for time in which their account was frozen, of usage without a length: there must be none. */
export const chargesInsideFreezes = (db) =>
  db.query(
    `select c.* from reclaim.billing_charges c join reclaim.billing_freezes f using (billing_account_id)
     where (c.started_at is null or c.started_at = c.occurred_at)
       and c.occurred_at >= f.frozen_at and (f.thawed_at is null or c.occurred_at < f.thawed_at)`,
  );
