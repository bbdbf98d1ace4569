// The two steps of cleanup-orphaned-user over the API: requests, mails, and the expectations of both contracts.

import assert from 'node:assert/strict';

import { FakeProvider } from './fake-provider.js';
import { post } from './http.js';
import { emailKey } from './limits.js';
import { Cluster } from './postgres.js';
import { serve } from './reclaim.js';

export const cleanupPath = '/functions/v1/cleanup-orphaned-user';
export const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Each error: its status and message; null where the document gives no message. */
export const contracts = {
  'cleanup-v1': {
    malformed: '007',
    gone: '001', // expired, used up or never requested
    lifeMs: 5 * 60_000,
    minutes: 5,
    code: /^[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}$/,
    neverRight: 'IOIO-IOIO', // well-formed, but never generated as a code
    codeSent: 'Verification code sent to email',
    userDeleted: 'User deleted successfully',
    errors: {
      '001': [404, 'Verification code expired. Please request a new code.'],
      '002': [401, 'Invalid verification code. Please check your email and try again.'],
      '003': [429, null],
      '004': [404, null],
      '005': [409, 'Your account is active. Please log in instead.'],
      '006': [500, null],
      '007': [400, null],
      '008': [503, null],
      '009': [409, 'Operation already in progress for this email'],
    },
  },
  'registration-recovery': {
    malformed: '001',
    gone: '002',
    lifeMs: 10 * 60_000,
    minutes: 10,
    code: /^[0-9]{6}$/,
    codeSent:
      'A verification code has been sent to your email address. Please check your inbox and enter the code to complete account cleanup.',
    userDeleted: 'Your account has been successfully deleted. You can now register again with the same email address.',
    errors: {
      '001': [400, 'Invalid request body. Please check your input and try again.'],
      '002': [400, 'Invalid verification code. Please check the code and try again.'],
      '003': [429, 'Rate limit exceeded. Too many requests from this IP address. Please try again later.'],
      '004': [404, 'User not found. The account may have been deleted already.'],
      '005': [400, 'User has associated data and cannot be deleted.'],
      '006': [500, 'An unexpected error occurred. Please try again later.'],
      '007': [400, 'Invalid request body. Please check your input and try again.'],
      '008': [500, 'Failed to send verification email. Please try again later.'],
      '009': [409, 'Operation already in progress for this email. Please wait and try again.'],
    },
  },
};

export const cleanup = (server, body, options) => post(server, body, { path: cleanupPath, ...options });
export const requestCode = (server, email, more, options) => cleanup(server, { step: 'request-code', email, ...more }, options);
export const validate = (server, email, verificationCode, more, options) =>
  cleanup(server, { step: 'validate-and-cleanup', email, verificationCode, ...more }, options);

export function assertRefused(answer, contract, number) {
  const [status, sentence] = contracts[contract].errors[number];
  assert.equal(answer.json?.error?.code, `ORPHAN_CLEANUP_${number}`, answer.body);
  assert.equal(answer.status, status, answer.body);
  assert.equal(answer.json.error.httpStatus, status);
  assert.equal(answer.json.success, false);
  assert.equal(answer.json.message, answer.json.error.message);
  assert.equal('details' in answer.json.error, number === contracts[contract].malformed);
  assert.match(answer.json.correlationId, uuid);
  assert.equal(answer.headers['x-correlation-id'], answer.json.correlationId);
  if (sentence) assert.equal(answer.json.error.message, sentence);
  else assert.match(answer.json.error.message, /^[A-Z].{20,}\.$/);
  assert.equal('retryAfter' in answer.json.error, number === '003');
  return answer;
}

function assertOk(answer, step, message) {
  assert.equal(answer.status, 200, answer.body);
  assert.equal(answer.json.success, true);
  assert.match(answer.json.correlationId, uuid);
  assert.equal(answer.headers['x-correlation-id'], answer.json.correlationId);
  assert.equal(answer.json.data.correlationId, answer.json.correlationId);
  assert.equal(answer.json.data.step, step);
  assert.equal(answer.json.data.message, message);
  assert.equal(answer.json.message, message);
  return answer;
}

export const assertSent = (answer, contract) => assertOk(answer, 'code-sent', contracts[contract].codeSent);

export function assertDeleted(answer, contract, user) {
  assertOk(answer, 'user-deleted', contracts[contract].userDeleted);
  assert.equal(answer.json.data.deletedUserId, user.id);
  assert.equal(answer.json.data.orphanClassification, user.confirmed ? 'case_1_2' : 'case_1_1');
  return answer;
}

/** The hash of an address in Reclaim's tables. */
export const hashOf = (email) => emailKey('email', email).split(':')[1];

export const logOf = (db, correlationId) =>
  db.query(
    `select step, status, error_code, email_hash, ip_hash, orphan_classification, created_at, updated_at
     from reclaim.auth_cleanup_log where correlation_id = $1 order by id`,
    [correlationId],
  );

/** The only row of a request: failed, with its error code. */
export async function assertLogged(db, answer, email, step, number) {
  const rows = await logOf(db, answer.json.correlationId);
  assert.equal(rows.length, 1, JSON.stringify(rows));
  assert.equal(rows[0].step, step);
  assert.equal(rows[0].status, 'failed');
  assert.equal(rows[0].error_code, `ORPHAN_CLEANUP_${number}`);
  assert.equal(rows[0].email_hash, hashOf(email));
  assert.match(rows[0].ip_hash, /^[0-9a-f]{64}$/);
}

export async function codeOf(db, email) {
  const [row] = await db.query('select * from reclaim.verification_codes where email_hash = $1', [hashOf(email)]);
  return row;
}

export async function isThere(db, user) {
  return (await db.query('select 1 from auth.users where id = $1', [user.id])).length === 1;
}

export const moveCode = (db, email, by) =>
  db.query('update reclaim.verification_codes set expires_at = expires_at + $2::interval where email_hash = $1', [hashOf(email), by]);

/** Requests a code and reads it from the mail. */
export async function mailedCode(server, provider, email) {
  const nth = provider.mailsTo(email).length + 1;
  const answer = await requestCode(server, email);
  assert.equal(answer.status, 200, answer.body);
  return (await provider.mailTo(email, { nth })).code;
}

/** Another code of the same shape. */
export function wrong(code, n = 1) {
  const alphabet = code.includes('-') ? 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789' : '0123456789';
  return code.slice(0, -1) + alphabet[(alphabet.indexOf(code.at(-1)) + n) % alphabet.length];
}

/** A database, a provider, and a server of each contract; in a new cluster unless one is given. */
export async function scene(stage, { cluster, env = {}, auth, only = Object.keys(contracts) } = {}) {
  cluster ??= await Cluster.create(stage);
  const db = await cluster.database(stage, { auth });
  const provider = await FakeProvider.start(stage, 'resend');
  const servers = {};
  for (const contract of only)
    servers[contract] = await serve(stage, { database: db, env: { RECLAIM_CONTRACT: contract, ...provider.env, ...env } });
  return { cluster, db, provider, servers };
}
