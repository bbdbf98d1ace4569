// A freeze at a real switch: Kamailio as deploy/kamailio has it, sipp at both ends.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { listCalls, over, rowsOf, showCall } from './lib/calls.js';
import { addCustomer, addScopedKey, env, freeze, frozenEverywhere, recover, scene } from './lib/customers.js';
import { Kamailio } from './lib/kamailio.js';
import { freePort } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, board;
before(async () => {
  board = await Kamailio.plan(stage);
  ({ db, server } = await scene(stage, { settings: board.env }));
  await board.start(server.address(), { RECLAIM_KEY: await addScopedKey(stage, db, 'calls') });
});
after(() => stage.end());

let numbers = 0;
/** A customer with a number of its own. */
async function customerWithNumber() {
  const customer = { ...(await addCustomer(db)), number: `n${++numbers}` };
  await board.number(customer.number, { customer });
  return customer;
}

/** A telephone of nobody that does what the scenario says, and its number. */
async function callee(scenario) {
  const phone = await board.phone(scenario);
  phone.number = `n${++numbers}`;
  await board.number(phone.number, { phone });
  return phone;
}

const callOf = (customer, status) =>
  until(`a call that is ${status}`, async () => (await rowsOf(db, customer)).find((row) => row.status === status));

/** Two telephones that talk, the caller a customer's. */
async function conversation(customer, more) {
  const bob = await callee('callee-answers');
  const alice = await board.phone('caller-talks', { caller: customer.number, callee: bob.number, more });
  const call = await callOf(customer, 'progressing');
  return { alice, bob, call };
}

const sinceFreeze = (frozen, at) => at - Date.parse(frozen.json.tm_deletion_scheduled);

describe('the switch', () => {
  it('asks at set-up and tells how a call goes on: dialing, ringing, progressing, hang-up', async () => {
    const customer = await customerWithNumber();
    const bob = await callee('callee-answers');
    const alice = await board.phone('caller-hangs-up', { caller: customer.number, callee: bob.number });
    await Promise.all([alice.finished(), bob.finished()]);
    const row = await callOf(customer, 'hangup');
    assert.equal(row.hangup_reason, 'normal');
    assert.equal(row.direction, 'outgoing');
    assert.equal(row.source, customer.number);
    assert.equal(row.destination, bob.number);
    assert.ok(row.tm_progressing, 'it was told of the answer');
    assert.ok(row.to_tag);
    assert.equal((await rowsOf(db, customer)).length, 1);
  });

  it('doctor finds it, and finds out when it is not there', async (t) => {
    const found = await run(t, ['doctor'], { database: db, env: { ...env, ...board.env } });
    assert.match(found.stdout, /^ok {4}switch: kamailio 5/m);
    const lost = await run(t, ['doctor'], { database: db, env: { ...env, RECLAIM_SWITCH_RPC_URL: `http://127.0.0.1:${await freePort()}/RPC` } });
    assert.match(lost.stdout, /^FAIL {2}the switch of RECLAIM_SWITCH_RPC_URL hangs up no calls: it cannot be reached/m);
    assert.equal(lost.code, 1);
  });
});

describe('a freeze', () => {
  it('ends a call in progress: both ends get a BYE', async (t) => {
    const customer = await customerWithNumber();
    const { alice, bob, call } = await conversation(customer);
    const frozen = await freeze(server, customer.id);
    await Promise.all([alice.finished(30_000), bob.finished(30_000)]);
    const ended = await over(server, call.id);
    assert.equal(ended.hangup_reason, 'account_frozen');
    const layers = (await frozenEverywhere(server, customer.id, ['calls'])).freeze;
    const [one, other] = [alice.heard('BYE'), bob.heard('BYE')].map((at) => sinceFreeze(frozen, at));
    t.diagnostic(`BYE at the caller ${one} ms and at the callee ${other} ms after the freeze; layer ${layers.calls}`);
    assert.ok(one < 10_000 && other < 10_000);
    assert.equal((await board.dialogs()).length, 0);
  });

  it('at the command line too', async (t) => {
    const customer = await customerWithNumber();
    const { alice, bob, call } = await conversation(customer);
    const ran = await run(t, ['freeze', customer.id], { database: db });
    assert.equal(ran.code, 0, ran.stderr);
    await Promise.all([alice.finished(30_000), bob.finished(30_000)]);
    await over(server, call.id);
    const { tm_deletion_scheduled } = await frozenEverywhere(server, customer.id, ['calls']);
    t.diagnostic(`BYE ${alice.heard('BYE') - Date.parse(tm_deletion_scheduled)} ms after the freeze`);
  });

  it('cancels a call that rings', async (t) => {
    const customer = await customerWithNumber();
    const bob = await callee('callee-rings');
    const alice = await board.phone('caller-rings', { caller: customer.number, callee: bob.number });
    const call = await callOf(customer, 'ringing');
    const frozen = await freeze(server, customer.id);
    await Promise.all([alice.finished(30_000), bob.finished(30_000)]);
    assert.equal((await over(server, call.id)).hangup_reason, 'account_frozen');
    t.diagnostic(`CANCEL ${sinceFreeze(frozen, bob.heard('CANCEL'))} ms, 487 ${sinceFreeze(frozen, alice.heard('SIP/2.0 487'))} ms after the freeze`);
    await frozenEverywhere(server, customer.id, ['calls']);
  });

  it('refuses new calls in either direction with 403 and the reason; after recovery they work', async () => {
    const [customer, other] = [await customerWithNumber(), await customerWithNumber()];
    await freeze(server, customer.id);
    for (const [caller, called] of [[customer.number, 'nobody'], ['stranger', customer.number], [other.number, customer.number]]) {
      const alice = await board.phone('caller-refused', { caller, callee: called });
      await alice.finished(30_000);
      assert.ok(alice.heard('SIP/2.0 403 DELETION_SCHEDULED'), alice.talkedAbout);
    }
    assert.deepEqual((await listCalls(server, `?customer_id=${customer.id}`)).json.items, []);
    assert.equal((await callOf(other, 'hangup')).hangup_reason, 'failed', 'the caller was let through, and the callee was not');

    await recover(server, customer.id);
    const bob = await callee('callee-answers');
    const out = await board.phone('caller-hangs-up', { caller: customer.number, callee: bob.number });
    await Promise.all([out.finished(), bob.finished()]);
    const own = await board.phone('callee-answers');
    await board.number(customer.number, { phone: own });
    const back = await board.phone('caller-hangs-up', { caller: 'stranger', callee: customer.number });
    await Promise.all([back.finished(), own.finished()]);
    assert.deepEqual((await rowsOf(db, customer)).map(({ direction }) => direction), ['outgoing', 'incoming']);
  });

  it('is not noticed by others, not even in the same conference', async () => {
    const [customer, other] = [await customerWithNumber(), await customerWithNumber()];
    const conference = randomUUID();
    const mine = await conversation(customer, `X-Conference-Id: ${conference}`);
    const theirs = await conversation(other, `X-Conference-Id: ${conference}`);
    assert.equal(mine.call.confbridge_id, conference);
    await freeze(server, customer.id);
    await Promise.all([mine.alice.finished(30_000), mine.bob.finished(30_000)]);
    await frozenEverywhere(server, customer.id, ['calls']);
    assert.equal((await showCall(server, theirs.call.id)).json.status, 'progressing');
    assert.deepEqual((await board.dialogs()).map((dialog) => dialog['call-id']), [theirs.call.sip_call_id]);
    assert.equal(theirs.alice.heard('BYE'), undefined);
    assert.equal(theirs.alice.ended, undefined);
    await freeze(server, other.id);
    await Promise.all([theirs.alice.finished(30_000), theirs.bob.finished(30_000)]);
  });

  it('of one end of a call between two customers ends it for both', async () => {
    const [customer, other] = [await customerWithNumber(), await customerWithNumber()];
    const phone = await board.phone('callee-answers');
    await board.number(other.number, { phone });
    const alice = await board.phone('caller-talks', { caller: customer.number, callee: other.number });
    await callOf(customer, 'progressing');
    await callOf(other, 'progressing');
    await freeze(server, other.id);
    await Promise.all([alice.finished(30_000), phone.finished(30_000)]);
    assert.equal((await callOf(other, 'hangup')).hangup_reason, 'account_frozen');
    assert.equal((await callOf(customer, 'hangup')).hangup_reason, 'normal');
  });
});

describe('a second switch', () => {
  it('has its own calls: a freeze ends them there, and the others where they are', async (t) => {
    const west = await Kamailio.plan(t);
    const customer = await customerWithNumber();
    const here = await conversation(customer);
    const added = await run(t, ['switch', 'add', 'west', west.env.RECLAIM_SWITCH_RPC_URL], { database: db });
    assert.equal(added.code, 0, added.stderr);
    await west.start(server.address(), { RECLAIM_KEY: await addScopedKey(t, db, 'calls'), SWITCH_NAME: 'west' });
    const bob = await west.phone('callee-answers');
    await west.number(customer.number, { customer });
    await west.number('bob', { phone: bob });
    const alice = await west.phone('caller-talks', { caller: customer.number, callee: 'bob' });
    const there = await until('a call at the second switch', async () =>
      (await rowsOf(db, customer)).find((row) => row.switch === 'west' && row.status === 'progressing'));
    assert.equal((await showCall(server, here.call.id)).json.switch, 'default');
    const found = await run(t, ['doctor'], { database: db, env: { ...env, ...board.env } });
    assert.match(found.stdout, /^ok {4}switch west: kamailio 5/m);
    await freeze(server, customer.id);
    await Promise.all([here.alice, here.bob, alice, bob].map((phone) => phone.finished(30_000)));
    for (const { id } of [here.call, there]) assert.equal((await over(server, id)).hangup_reason, 'account_frozen');
    await frozenEverywhere(server, customer.id, ['calls']);
    for (const at of [board, west]) assert.equal((await at.dialogs()).length, 0);
    assert.equal((await run(t, ['switch', 'remove', 'west'], { database: db })).code, 0);
  });
});

describe('a switch that cannot ask', () => {
  it('refuses calls, unless its setting says otherwise', async (t) => {
    const customer = await addCustomer(db);
    for (const [through, scenario] of [[0, 'caller-unchecked'], [1, 'caller-hangs-up']]) {
      const alone = await Kamailio.plan(t);
      await alone.start({ host: '127.0.0.1', port: await freePort() }, { CALLS_WITHOUT_RECLAIM: through });
      const phone = through ? await alone.phone('callee-answers') : undefined;
      await alone.number('a', { customer });
      await alone.number('b', { phone });
      const alice = await alone.phone(scenario, { caller: 'a', callee: 'b' });
      await alice.finished(30_000);
      await alone.stop();
    }
    assert.equal((await rowsOf(db, customer)).length, 0);
  });
});
