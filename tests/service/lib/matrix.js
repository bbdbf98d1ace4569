// Every state of an address, and the probe's expected reply.

import { addCoAdmin, addCompany, addUser, address } from './people.js';

const confirmed = '2025-10-20T14:30:00Z';
const confirmedOut = '2025-10-20T14:30:00.000Z';

const absent = { status: 'not_registered', verifiedAt: null, lastSignInAt: null, hasCompanyData: false, isOrphaned: false };
const unverified = { status: 'registered_unverified', verifiedAt: null, lastSignInAt: null };
const verified = { status: 'registered_verified', verifiedAt: confirmedOut, lastSignInAt: null };
const orphan = { hasCompanyData: false, isOrphaned: true };
const complete = { hasCompanyData: true, isOrphaned: false };

async function withCompany(db, user) {
  await addCompany(db, user);
  return user.email;
}

async function asCoAdmin(db, user) {
  const company = await addCompany(db, await addUser(db, { confirmed }));
  await addCoAdmin(db, user, company);
  return user.email;
}

/** Each row: a description, the set-up (returns the address to probe), and the expected reply. */
export const matrix = [
  ['an address nobody registered is not registered', async () => address('nobody'), absent],
  ['a user who never confirmed and owns nothing is an orphan (case 1.1)', async (db) => (await addUser(db)).email, { ...unverified, ...orphan }],
  ['a user who confirmed and owns nothing is an orphan (case 1.2)', async (db) => (await addUser(db, { confirmed })).email, { ...verified, ...orphan }],
  ['a user who confirmed and owns a company is complete', async (db) => withCompany(db, await addUser(db, { confirmed })), { ...verified, ...complete }],
  ['a user who owns a company without having confirmed is no orphan', async (db) => withCompany(db, await addUser(db)), { ...unverified, ...complete }],
  ['a co-administrator who owns no company is complete', async (db) => asCoAdmin(db, await addUser(db, { confirmed })), { ...verified, ...complete }],
  ['a co-administrator who never confirmed is no orphan', async (db) => asCoAdmin(db, await addUser(db)), { ...unverified, ...complete }],
  ['a soft-deleted user is absent', async (db) => (await addUser(db, { confirmed, deleted: '2025-10-25T00:00:00Z' })).email, absent],
  [
    'a soft-deleted owner is absent',
    async (db) => withCompany(db, await addUser(db, { confirmed, deleted: '2025-10-25T00:00:00Z' })),
    absent,
  ],
  ['a user of single sign-on alone is absent', async (db) => (await addUser(db, { confirmed, sso: true })).email, absent],
  [
    'an orphan stays one when its single sign-on twin owns a company',
    async (db) => {
      const user = await addUser(db, { confirmed });
      await addCompany(db, await addUser(db, { email: user.email, confirmed: '2024-01-01T00:00:00Z', sso: true }));
      return user.email;
    },
    { ...verified, ...orphan },
  ],
  [
    'an owner stays complete when its single sign-on twins own nothing',
    async (db) => {
      const user = await addUser(db, { confirmed });
      await addUser(db, { email: user.email, sso: true });
      await addUser(db, { email: user.email, sso: true });
      return withCompany(db, user);
    },
    { ...verified, ...complete },
  ],
  [
    'the last sign-in is told',
    async (db) => (await addUser(db, { confirmed, lastSignIn: '2025-10-27T08:45:00.25Z' })).email,
    { ...verified, lastSignInAt: '2025-10-27T08:45:00.250Z', ...orphan },
  ],
  [
    'times are told in UTC with milliseconds',
    async (db) => (await addUser(db, { confirmed: '2025-03-30T01:59:59.987+05:30', lastSignIn: '2024-02-29T23:30:00-01:00' })).email,
    { ...verified, verifiedAt: '2025-03-29T20:29:59.987Z', lastSignInAt: '2024-03-01T00:30:00.000Z', ...orphan },
  ],
  ['letters count as lower case', async (db) => (await addUser(db, { confirmed })).email.toUpperCase(), { ...verified, ...orphan }],
  ['white space around the address is cut off', async (db) => ` \t\r\n${(await addUser(db, { confirmed })).email}\n\t  `, { ...verified, ...orphan }],
];
