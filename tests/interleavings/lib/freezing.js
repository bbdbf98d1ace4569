// A customer, another program that sets up a call for it, and an admin that freezes it.

import assert from 'node:assert/strict';

import { begin, rowsOf } from '../../service/lib/calls.js';
import { addCustomer, freeze, frozenEverywhere } from '../../service/lib/customers.js';
import { until } from '../../service/lib/stage.js';
import { brief, requests, sql } from './sessions.js';

export const newCustomer = async ({ db }) => ({ customer: await addCustomer(db) });

/** Another program's transaction around the database's function for call set-up. */
export const calling = sql({
  call: ({ customer }) => `begin; select outcome from reclaim.call_begin('${customer.id}', 'outgoing', '+15550100', '+15550199',
    null, null, null, null, null, null)`,
  commit: 'commit',
});

export const freezing = requests({
  freeze: async (server, { customer }) => brief(await freeze(server, customer.id)),
  'hang-up': async (server, { customer }) => {
    await frozenEverywhere(server, customer.id, ['calls']); // the pass has found no call that is left
    return 'done';
  },
});

export const justFreezing = requests({ freeze: async (server, { customer }) => brief(await freeze(server, customer.id)) });
export const ringing = requests({ ring: async (server, { customer }) => brief(await begin(server, customer)) });

/** No call of a frozen customer is alive without an item of work that ends it, and in the end none is alive. */
export async function noCallLivesOn({ db }, { customer }) {
  const forgotten = await db.query(
    `select call.id from reclaim.call_calls call join reclaim.customer_customers c on c.id = call.customer_id
     where c.id = $1 and c.status = 'frozen' and call.status <> 'hangup' and not exists (
       select from reclaim.work_items w where w.kind = 'hangup' and w.payload ->> 'customer_id' = c.id::text)`,
    [customer.id],
  );
  assert.equal(forgotten.length, 0, 'a call of the frozen customer lives on, and no work is left that ends it');
  const calls = await until('no call alive', async () => {
    const rows = await rowsOf(db, customer);
    return rows.every(({ status }) => status === 'hangup') && rows;
  });
  for (const { hangup_reason: reason } of calls) assert.equal(reason, 'account_frozen');
}

/** A freeze that is about to write the customer's row, and a call that the instance of this name is asked for. */
export const freezeWhileRinging = (instance) => ({
  sessions: { admin: justFreezing, [instance]: ringing },
  stop: { step: 'go', in: 'freeze', session: 'admin', before: 'update on reclaim.customer_customers', row: ({ customer }) => customer.id },
  promise: noCallLivesOn,
  transcripts: `
    ring         201 dialing
    freeze       waits for stop
    go
    freeze       200 frozen

    freeze       waits for stop
    ring         waits for admin
    go
    freeze       200 frozen
    ring         403 DELETION_SCHEDULED

    freeze       waits for stop
    go
    freeze       200 frozen
    ring         403 DELETION_SCHEDULED
  `,
});
