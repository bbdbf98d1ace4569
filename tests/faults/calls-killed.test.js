// An instance killed with -9 while it hangs up calls: another instance completes that.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { begin, over, sip, talking } from '../service/lib/calls.js';
import { addCustomer, env, freeze, frozenEverywhere, recover, show } from '../service/lib/customers.js';
import { FakeSwitch } from '../service/lib/fake-switch.js';
import { Cluster } from '../service/lib/postgres.js';
import { serve } from '../service/lib/reclaim.js';
import { until } from '../service/lib/stage.js';

describe('kill -9', () => {
  it('of the instance that hangs up: another goes on until no call is left', async (t) => {
    const fake = await FakeSwitch.start(t);
    const db = await (await Cluster.create(t)).database(t);
    const one = await serve(t, { database: db, env: { ...env, ...fake.env } });
    const customer = await addCustomer(db);
    const calls = [await talking(one, customer, sip()), (await begin(one, customer, sip())).json];
    fake.has(calls);
    fake.answers = 'silence';
    await freeze(one, customer.id);
    await until('the switch was asked', () => fake.asked.length > 0);
    await one.kill9();
    fake.answers = 'well';
    const two = await serve(t, { database: db, env: { ...env, ...fake.env } });
    for (const { id } of calls) assert.equal((await over(two, id, 60_000)).hangup_reason, 'account_frozen');
    await frozenEverywhere(two, customer.id, ['calls']);
    assert.deepEqual(fake.dialogs.size, 0);
    await recover(two, customer.id);
    assert.equal((await show(two, customer.id)).json.status, 'active');
  });
});
