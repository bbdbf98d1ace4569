// A switch that cannot be reached, says nothing, or makes no sense: calls are refused all the same, and the hang-up goes on
// until it succeeds.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { begin, over, progress, showCall, sip, talking } from './lib/calls.js';
import { addCustomer, assertError, env, freeze, frozenEverywhere, recover, scene, show } from './lib/customers.js';
import { FakeSwitch } from './lib/fake-switch.js';
import { ops } from './lib/http.js';
import { freePort } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, fake;
before(async () => {
  fake = await FakeSwitch.start(stage);
  ({ db, server } = await scene(stage, { settings: fake.env }));
});
after(() => stage.end());

/** A customer with a call that rings and one that was answered, both at the switch. */
async function caller() {
  const customer = await addCustomer(db);
  const ringing = (await begin(server, customer, sip())).json;
  await progress(server, ringing.id, 'ringing');
  const calls = [ringing, await talking(server, customer, sip())];
  fake.has(calls);
  return { customer, calls };
}

const askedAbout = (call) => fake.asked.filter(({ params }) => params[0] === call.sip_call_id);
const failures = async () => {
  const { body } = await ops(server, '/metrics');
  return [...body.matchAll(/^reclaim_switch_requests_total\{wish="[a-z_]+",answer="failed"\} (\d+)$/gm)].reduce((sum, [, n]) => sum + Number(n), 0);
};

async function assertHeldOff(answers) {
  fake.answers = answers;
  const before = await failures();
  const { customer, calls } = await caller();
  await freeze(server, customer.id);
  await until(`asked in vain: ${answers}`, async () => (await failures()) > before + 1);
  assert.equal((await showCall(server, calls[0].id)).json.status, 'canceling');
  assert.equal((await showCall(server, calls[1].id)).json.status, 'terminating');
  assert.equal((await show(server, customer.id)).json.freeze.calls, null, 'nobody says that the calls are down');
  assertError(await begin(server, customer, sip()), 403, 'DELETION_SCHEDULED');
  fake.answers = 'well';
  for (const { id } of calls) assert.equal((await over(server, id)).hangup_reason, 'account_frozen');
  await frozenEverywhere(server, customer.id, ['calls']);
  assert.equal(fake.dialogs.size, 0);
}

describe('a switch', () => {
  it('is told to cancel what rings and to hang up what was answered, and is looked at until both are gone', async () => {
    const { customer, calls } = await caller();
    await freeze(server, customer.id);
    for (const { id } of calls) await over(server, id);
    const [ringing, talked] = calls.map((call) => askedAbout(call).map(({ method, params }) => [method, ...params]));
    assert.deepEqual(ringing[0], ['tm.cancel', calls[0].sip_call_id, '1']);
    assert.deepEqual(talked[0], ['dlg.terminate_dlg', calls[1].sip_call_id, 'from', 'to']);
    for (const asked of [ringing, talked]) assert.equal(asked.at(-1)[0], 'dlg.dlg_list');
  });

  it('that knows a call to have come further than Reclaim is told so', async () => {
    const customer = await addCustomer(db);
    const { json: answered } = await begin(server, customer, sip());
    const { json: untold } = await begin(server, customer, { ...sip(), cseq: undefined });
    fake.dialogs.set(answered.sip_call_id, { state: 4, tag: 'other' });
    fake.dialogs.set(untold.sip_call_id, { state: 2, tag: '' });
    await freeze(server, customer.id);
    for (const { id } of [answered, untold]) await over(server, id);
    assert.equal(fake.dialogs.size, 0);
    assert.ok(askedAbout(answered).some(({ method, params }) => method === 'dlg.terminate_dlg' && params[2] === 'other'));
    assert.ok(askedAbout(untold).some(({ method, params }) => method === 'tm.cancel' && params[1] === '1'));
  });

  it('that closes the door is asked again until it opens', async () => assertHeldOff('close'));
  it('that says nothing is asked again', async () => assertHeldOff('silence'));
  for (const words of FakeSwitch.nonsense) it(`that answers nonsense (${words}) is asked again`, () => assertHeldOff(words));

  it('that recovers meanwhile: what was going down goes down, what is new stays', async () => {
    fake.answers = 'close';
    const { customer, calls } = await caller();
    await freeze(server, customer.id);
    await until('asked in vain', () => askedAbout(calls[0]).length + askedAbout(calls[1]).length > 0);
    await recover(server, customer.id);
    const fresh = await talking(server, customer, sip());
    fake.has([fresh]);
    fake.answers = 'well';
    for (const { id } of calls) await over(server, id);
    await until('no hang-up left', async () => (await db.query(`select 1 from reclaim.work_items where kind = 'hangup'`)).length === 0);
    assert.equal((await showCall(server, fresh.id)).json.status, 'progressing');
    assert.deepEqual([...fake.dialogs.keys()], [fresh.sip_call_id]);
    fake.dialogs.clear();
  });

  it('that is no switch at all is found out by doctor', async (t) => {
    fake.answers = 'html';
    const found = await run(t, ['doctor'], { database: db, env: { ...env, ...fake.env } });
    assert.match(found.stdout, /^FAIL .*RECLAIM_SWITCH_RPC_URL.*not Kamailio/m);
    fake.answers = 'well';
  });

  it('may be on this machine or behind TLS only', async (t) => {
    for (const url of ['http://192.0.2.1/RPC', 'ftp://127.0.0.1/', 'nonsense', `tcp:127.0.0.1:${await freePort()}`]) {
      const refused = await run(t, ['serve'], { database: db, env: { ...env, RECLAIM_SWITCH_RPC_URL: url } });
      assert.equal(refused.code, 1);
      assert.match(refused.stderr, /RECLAIM_SWITCH_RPC_URL/);
    }
  });
});
