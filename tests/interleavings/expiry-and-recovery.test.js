// A customer recovers while the expiry pass deletes it: it ends wholly recovered or wholly deleted.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { addBillingAccount, addCustomer, recover, rowOf } from '../service/lib/customers.js';
import { due } from '../service/lib/erasure.js';
import { assertWhole } from '../service/lib/expiry-races.js';
import { Stage } from '../service/lib/stage.js';
import { race, world } from './lib/race.js';
import { brief, command, requests, sql } from './lib/sessions.js';

const stage = new Stage();
let place;
before(async () => {
  place = await world(stage, ['admin']);
});
after(() => stage.end());

async function dueCustomer({ db, servers }) {
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer);
  await due(servers.admin, db, customer);
  return { customer, account };
}

const expiring = command({ expire: ['expire'] });
const recovering = requests({ recover: async (server, { customer }) => brief(await recover(server, customer.id)) });
const wholeEitherWay = ({ db }, { customer, account }) => assertWhole(db, customer, account);
const change = ({ customer }, from, to) =>
  `update reclaim.customer_customers set status = '${to}' where id = '${customer.id}' and status = '${from}'`;
const stopAtCustomer = (step, session) => ({
  step: 'go',
  in: step,
  session,
  before: 'update on reclaim.customer_customers',
  row: ({ customer }) => customer.id,
});

race('a pass that has locked the customer, and its recovery', () => place, {
  setUp: dueCustomer,
  sessions: { expiry: expiring, admin: recovering },
  stop: stopAtCustomer('expire', 'expiry'),
  promise: wholeEitherWay,
  transcripts: `
    recover      200 active
    expire       {"processed":0}
    go

    expire       waits for stop
    recover      waits for expiry
    go
    expire       {"processed":1}
    recover      404 NOT_FROZEN

    expire       waits for stop
    go
    expire       {"processed":1}
    recover      404 NOT_FROZEN
  `,
});

race('a recovery that has locked the customer, and a pass', () => place, {
  setUp: dueCustomer,
  sessions: { admin: recovering, expiry: expiring },
  stop: stopAtCustomer('recover', 'admin'),
  promise: wholeEitherWay,
  transcripts: `
    expire       {"processed":1}
    recover      404 NOT_FROZEN
    go

    recover      waits for stop
    expire       waits for admin
    go
    recover      200 active
    expire       {"processed":0}

    recover      waits for stop
    go
    recover      200 active
    expire       {"processed":0}
  `,
});

race('a pass, and another program that recovers the customer and freezes it again', () => place, {
  setUp: dueCustomer,
  sessions: {
    expiry: expiring,
    program: sql({
      thaw: (given) => `begin; ${change(given, 'frozen', 'active')}`,
      refreeze: (given) => change(given, 'active', 'frozen'),
      commit: 'commit',
    }),
  },
  // A second freeze is a second grace: only a pass that comes before all of this deletes.
  async promise({ db }, { customer }) {
    const row = await rowOf(db, customer);
    if (row.status === 'deleted') return assert.equal(row.email, `deleted_${customer.id}@removed.invalid`);
    assert.equal(row.status, 'frozen');
    assert.equal(row.email, customer.email, 'a customer that is not deleted was anonymised');
    assert.ok(row.tm_deletion_scheduled > new Date(Date.now() - 86_400_000), `the first schedule counts: ${row.tm_deletion_scheduled}`);
  },
  transcripts: `
    thaw         update 1
    refreeze     update 1
    commit       commit
    expire       {"processed":0}

    thaw         update 1
    refreeze     update 1
    expire       waits for program
    commit       commit
    expire       {"processed":0}

    thaw         update 1
    expire       waits for program
    refreeze     update 1
    commit       commit
    expire       {"processed":0}

    expire       {"processed":1}
    thaw         update 0
    refreeze     update 0
    commit       commit
  `,
});
