// An account is charged while it freezes or is deleted: usage after that is not charged, and the balance adds up.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { balanceOf, charge, chargesInsideFreezes, chargesOf, deleteAccount, newReference } from '../service/lib/billing.js';
import { addBillingAccount, addCustomer, freeze } from '../service/lib/customers.js';
import { Stage } from '../service/lib/stage.js';
import { race, world } from './lib/race.js';
import { brief, requests, sql } from './lib/sessions.js';

const stage = new Stage();
let place;
before(async () => {
  place = await world(stage, ['admin', 'usage']);
});
after(() => stage.end());

const balance = 1_000_000;

async function withAccount({ db }) {
  const customer = await addCustomer(db);
  return { customer, account: await addBillingAccount(db, customer, { balance }), reference: newReference() };
}

/** Another program's transaction around the database's function for charges. */
const charging = (occurredAt) =>
  sql({
    charge: ({ account, reference }) =>
      `begin; select outcome from reclaim.billing_charge('${account.id}', 1000, '${reference}', ${occurredAt})`,
    commit: 'commit',
  });

const freezing = requests({ freeze: async (server, { customer }) => brief(await freeze(server, customer.id)) });

async function addsUp({ db }, { account }) {
  const inside = (await chargesInsideFreezes(db)).filter((one) => one.billing_account_id === account.id);
  assert.equal(inside.length, 0, 'usage inside a freeze was charged');
  const charges = await chargesOf(db, account);
  assert.equal(await balanceOf(db, account), balance - charges.reduce((sum, { amount }) => sum + amount, 0), 'the balance does not add up');
}

race('a freeze, and a charge for usage of that moment in a transaction of its own', () => place, {
  setUp: withAccount,
  sessions: { biller: charging('null'), admin: freezing },
  promise: addsUp,
  transcripts: `
    charge       charged
    commit       commit
    freeze       200 frozen

    charge       charged
    freeze       waits for biller
    commit       commit
    freeze       200 frozen

    freeze       200 frozen
    charge       frozen
    commit       commit
  `,
});

race('a freeze, and a charge for usage of an hour ago', () => place, {
  setUp: withAccount,
  sessions: { biller: charging(`clock_timestamp() - interval '1 hour'`), admin: freezing },
  promise: addsUp,
  transcripts: `
    charge       charged
    commit       commit
    freeze       200 frozen

    charge       charged
    freeze       waits for biller
    commit       commit
    freeze       200 frozen

    freeze       200 frozen
    charge       charged
    commit       commit
  `,
});

race('a freeze that has the account, and a charge that another instance is asked for', () => place, {
  setUp: withAccount,
  sessions: {
    admin: freezing,
    usage: requests({
      charge: async (server, { account, reference }) =>
        brief(await charge(server, { billing_account_id: account.id, amount_micros: 1000, reference })),
    }),
  },
  stop: { step: 'go', in: 'freeze', session: 'admin', before: 'update on reclaim.billing_accounts', row: ({ account }) => account.id },
  promise: addsUp,
  transcripts: `
    charge       201
    freeze       waits for stop
    go
    freeze       200 frozen

    freeze       waits for stop
    charge       waits for admin
    go
    freeze       200 frozen
    charge       403 ACCOUNT_FROZEN

    freeze       waits for stop
    go
    freeze       200 frozen
    charge       403 ACCOUNT_FROZEN
  `,
});

race('the deletion of an account, and a charge in a transaction of its own', () => place, {
  setUp: withAccount,
  sessions: {
    biller: charging('null'),
    admin: requests({ delete: async (server, { account }) => brief(await deleteAccount(server, account.id)) }),
  },
  promise: addsUp,
  transcripts: `
    charge       charged
    commit       commit
    delete       200 deleted

    charge       charged
    delete       waits for biller
    commit       commit
    delete       200 deleted

    delete       200 deleted
    charge       deleted
    commit       commit
  `,
});
