// Users that are customers without a row (RECLAIM_CUSTOMERS=users): the freeze that makes the row, while calls are set up, and
// while the user is cleaned up.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { isThere, requestCode, validate } from '../service/lib/cleanup.js';
import { customerAddress, rowOf } from '../service/lib/customers.js';
import { addUser } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { calling, freezeWhileRinging, freezing, justFreezing, noCallLivesOn } from './lib/freezing.js';
import { race, world } from './lib/race.js';
import { requests, sql } from './lib/sessions.js';

const stage = new Stage();
let place;
before(async () => {
  place = await world(stage, ['admin', 'other'], { env: { RECLAIM_CUSTOMERS: 'users' } });
});
after(() => stage.end());

const confirmed = '2025-10-02T00:00:00Z';
const newUser = async ({ db }) => ({ customer: await addUser(db, { email: customerAddress('user'), confirmed }) });

race('a freeze, and a call that another program sets up in a transaction of its own', () => place, {
  setUp: newUser,
  sessions: { caller: calling, admin: freezing },
  promise: noCallLivesOn,
  chosen: 'the orders in which one begins before the other has ended',
  transcripts: `
    call         created
    freeze       waits for caller
    commit       commit
    freeze       200 frozen
    hang-up      done

    freeze       200 frozen
    call         frozen
    commit       commit
    hang-up      done
  `,
});

race('a freeze that has made the row, and a call that another instance is asked for', () => place, { setUp: newUser, ...freezeWhileRinging('other') });

race('a frozen row that a program inserts, which takes no turn, and a call', () => place, {
  setUp: newUser,
  sessions: {
    caller: calling,
    program: sql({ insert: ({ customer }) => `begin; insert into reclaim.customer_customers (id, status) values ('${customer.id}', 'frozen')`, end: 'commit' }),
  },
  promise: noCallLivesOn,
  chosen: 'the orders in which one begins before the other has ended',
  transcripts: `
    call         created
    insert       waits for caller
    commit       commit
    insert       insert 1
    end          commit

    insert       insert 1
    call         waits for program
    end          commit
    call         frozen
    commit       commit
  `,
});

/** A user without a company, and the code that was mailed to it. */
async function withCode({ db, provider, servers }) {
  const customer = await addUser(db, { email: customerAddress('user') });
  await requestCode(servers.other, customer.email);
  const { code } = await provider.mailTo(customer.email, { nth: 1 });
  return { customer, code };
}

const outcomeOf = ({ json }) => (json.success ? json.data.step : json.error.code);

/** Sends the code until the answer is not 009, which a request gives that has waited half a second for a lock. */
async function type(server, { customer, code }) {
  for (;;) {
    const outcome = outcomeOf(await validate(server, customer.email, code));
    if (outcome !== 'ORPHAN_CLEANUP_009') return outcome;
  }
}

/** Either the user is gone and never was a customer, or it is frozen and there. */
async function oneOfBoth({ db }, { customer }) {
  const row = await rowOf(db, customer);
  assert.equal(await isThere(db, customer), row !== undefined, row ? 'a frozen customer was cleaned up' : 'an orphan is still there');
}

race('a code is typed while an administrator freezes its user', () => place, {
  setUp: withCode,
  sessions: {
    other: requests({ type }),
    admin: justFreezing,
  },
  stop: { step: 'go', in: 'type', session: 'other', before: 'delete on auth.users', row: ({ customer }) => customer.id },
  promise: oneOfBoth,
  transcripts: `
    freeze       200 frozen
    type         ORPHAN_CLEANUP_005
    go

    type         waits for stop
    freeze       waits for other
    go
    type         user-deleted
    freeze       404 CUSTOMER_NOT_FOUND

    type         waits for stop
    go
    type         user-deleted
    freeze       404 CUSTOMER_NOT_FOUND
  `,
});

race('a code is typed while a freeze has the user', () => place, {
  setUp: withCode,
  sessions: {
    other: requests({ type }),
    admin: justFreezing,
  },
  stop: { step: 'go', in: 'freeze', session: 'admin', before: 'update on reclaim.customer_customers', row: ({ customer }) => customer.id },
  promise: oneOfBoth,
  chosen: 'the order in which the code comes while the freeze is not committed',
  transcripts: `
    freeze       waits for stop
    type         waits for admin
    go
    freeze       200 frozen
    type         ORPHAN_CLEANUP_005
  `,
});
