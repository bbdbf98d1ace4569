// Test users. Every address, client IP and credential carries a marker that tests/canary.sh looks for: none may ever
// reach a log line or Reclaim's own tables.

import { randomBytes, randomUUID } from 'node:crypto';

export const domain = 'canary-reclaim.example.com';
export const clientAddress = '127.66.77.88'; // source address of all test clients; no server listens there
export const forwardedAddress = '198.51.100.23';
export const forwardedAddress6 = '2001:db8:ca11::23';
export const canaryToken = 'canary-token-b5f1';
export const canaryPassword = 'canary-password-94c2';
export const canaryJwtSecret = 'canary-jwt-secret-of-more-than-32-characters';
export const canaryProxyKey = 'canary-proxy-key-of-more-than-32-characters';
export const canaryKey = 'canary-secret-key-of-more-than-32-characters';

export function address(name = 'someone') {
  return `${name}.${randomBytes(4).toString('hex')}@${domain}`;
}

const defaults = {
  confirmed: null,
  lastSignIn: null,
  sso: false,
  anonymous: false,
  deleted: null,
  created: '2025-10-01T00:00:00Z',
};

/** Adds a user, by default with an unconfirmed address, and returns { id, email }. */
export async function addUser(db, given = {}) {
  const user = { ...defaults, id: randomUUID(), email: address('user'), ...given };
  await db.query(
    `insert into auth.users (id, email, email_confirmed_at, last_sign_in_at, is_sso_user, is_anonymous, deleted_at, created_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    [user.id, user.email, user.confirmed, user.lastSignIn, user.sso, user.anonymous, user.deleted, user.created],
  );
  return user;
}

export async function addCompany(db, owner) {
  const [company] = await db.query('insert into public.companies (owner_admin_uuid) values ($1) returning id', [owner.id]);
  return company.id;
}

export async function addCoAdmin(db, user, company) {
  await db.query('insert into public.company_admins (admin_uuid, company_id) values ($1, $2)', [user.id, company]);
}
