// Which switches there are is a fact of the database: instances that lack the address of one leave its calls to others, and
// each call is ended at its own switch.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { begin, over, showCall, sip, talking } from './lib/calls.js';
import { addCustomer, assertError, env, freeze, frozenEverywhere, show } from './lib/customers.js';
import { FakeSwitch } from './lib/fake-switch.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const items = (db, kind) => db.query('select payload, tries from reclaim.work_items where kind = $1', [kind]);

const urlOf = (fake) => fake.env.RECLAIM_SWITCH_RPC_URL;

describe('an instance without the address of the switch', () => {
  let fake, db, bare, having, settings;
  const reclaim = (...args) => run(stage, args, { database: db, env });
  before(async () => {
    fake = await FakeSwitch.start(stage);
    db = await cluster.database(stage);
    settings = { ...env, RECLAIM_SWITCH_RPC_URL: urlOf(fake).replace('://', '://reclaim:canary-switch-password@') };
    having = await serve(stage, { database: db, env: settings });
    bare = await serve(stage, { database: db, env });
  });

  /** A frozen customer with an answered and a ringing call, whose end the bare instance has left to others. */
  async function leftByBare() {
    const customer = await addCustomer(db);
    const calls = [await talking(bare, customer, sip()), (await begin(bare, customer, sip())).json];
    assert.deepEqual(calls.map((call) => call.switch), ['default', 'default']);
    fake.has(calls);
    await freeze(bare, customer.id);
    await until('the bare instance is done with it', async () => (await items(db, 'hangup')).length === 0);
    return { customer, calls };
  }

  async function assertGoingOn({ customer, calls }) {
    assert.equal((await showCall(bare, calls[0].id)).json.status, 'terminating');
    assert.equal((await showCall(bare, calls[1].id)).json.status, 'canceling');
    assert.equal((await show(bare, customer.id)).json.freeze.calls, null);
    for (const call of calls) assert.ok(fake.dialogs.has(call.sip_call_id));
    assert.deepEqual(await items(db, 'hangup_by_setting'), [{ payload: { customer_id: customer.id }, tries: 0 }], 'no try is used up by waiting');
  }

  async function assertOver({ customer, calls }) {
    for (const { id } of calls) assert.equal((await over(bare, id)).hangup_reason, 'account_frozen');
    await frozenEverywhere(bare, customer.id, ['calls']);
  }

  it('leaves the hang-up to one that has it', async () => {
    await assertOver(await leftByBare());
    assert.equal(fake.dialogs.size, 0);
  });

  it('also while there is none: no call counts as ended that goes on', async () => {
    await having.stop();
    const left = await leftByBare();
    await assertGoingOn(left);
    const found = await reclaim('doctor');
    assert.match(found.stdout, /^warn {2}the switch default is reached by instances with RECLAIM_SWITCH_RPC_URL only/m);
    const listed = await reclaim('switch', 'list', '--format', 'json');
    const [{ created_at: since, ...row }] = JSON.parse(listed.stdout);
    assert.deepEqual(row, { name: 'default', address: urlOf(fake), source: 'setting', live_calls: 2 });
    assert.ok(since);
    assert.doesNotMatch(JSON.stringify(await db.query('select * from reclaim.switches')) + listed.stdout, /canary-switch-password/);
    having = await serve(stage, { database: db, env: settings });
    await assertOver(left);
    assert.equal(fake.dialogs.size, 0);
    await having.stop();
  });

  it('ends them itself once the address is recorded for all', async () => {
    const left = await leftByBare();
    await assertGoingOn(left);
    assert.equal((await reclaim('switch', 'add', 'default', urlOf(fake))).code, 0);
    await assertOver(left);
    assert.equal(fake.dialogs.size, 0);
    await db.query('update reclaim.switches set url = null');
  });

  it('ends them in the table once the switch is taken out', async () => {
    const left = await leftByBare();
    await assertGoingOn(left);
    assert.equal((await reclaim('switch', 'remove', 'default')).code, 1);
    const removed = await reclaim('switch', 'remove', 'default', '--force');
    assert.equal(removed.code, 0);
    assert.match(removed.stderr, /records it again/);
    await assertOver(left);
    assert.equal(fake.dialogs.size, 2, 'the switch was not asked');
  });
});

describe('switches recorded in the database', () => {
  let db, server, east, west;
  const reclaim = (...args) => run(stage, args, { database: db, env });
  const done = async (...args) => {
    const { code, stdout, stderr } = await reclaim(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  before(async () => {
    [east, west] = [await FakeSwitch.start(stage), await FakeSwitch.start(stage)];
    db = await cluster.database(stage);
    server = await serve(stage, { database: db, env });
  });

  it('none: calls with a dialog end in the table only, and doctor says so', async () => {
    const customer = await addCustomer(db);
    const call = await talking(server, customer, sip());
    assert.equal(call.switch, null);
    assert.match(await done('doctor'), /^warn {2}calls have SIP dialogs, and no switch is recorded/m);
    await freeze(server, customer.id);
    await over(server, call.id);
    await frozenEverywhere(server, customer.id, ['calls']);
    assertError(await begin(server, await addCustomer(db), sip({ switch: 'east' })), 400, 'SWITCH_NOT_FOUND');
  });

  it('one: every call with a dialog is at it, whichever instance ends it', async () => {
    const customer = await addCustomer(db);
    const before = await talking(server, customer, sip());
    assert.equal(await done('switch', 'add', 'east', urlOf(east)), 'switch east recorded\n');
    assert.match((await reclaim('doctor')).stdout, /^FAIL {2}the switch east hangs up no calls: what answers there is not Kamailio/m);
    const calls = [before, await talking(server, customer, sip()), await talking(server, customer, sip({ switch: 'east' })), await talking(server, customer)];
    assert.deepEqual(calls.map((call) => call.switch), [null, 'east', 'east', null]);
    east.has(calls.slice(0, 3));
    await freeze(server, customer.id);
    for (const { id } of calls) await over(server, id);
    await frozenEverywhere(server, customer.id, ['calls']);
    assert.equal(east.dialogs.size, 0);
  });

  it('several: a call names its own, and is ended there and nowhere else', async () => {
    const added = await reclaim('switch', 'add', 'west', urlOf(west));
    assert.match(added.stderr, /must name theirs/);
    const customer = await addCustomer(db);
    assertError(await begin(server, customer, sip()), 400, 'SWITCH_REQUIRED');
    assertError(await begin(server, customer, sip({ switch: 'north' })), 400, 'SWITCH_NOT_FOUND');
    assertError(await begin(server, customer, { switch: '' }), 400, 'SWITCH_NOT_FOUND');
    assertError(await begin(server, customer, { switch: 7 }), 400, 'INVALID_INPUT');
    assert.equal((await begin(server, customer)).json.switch, null, 'without a dialog it is at none');
    const both = sip();
    const [there, here] = [await talking(server, customer, { ...both, switch: 'west' }), await talking(server, customer, { ...both, switch: 'east' })];
    assert.notEqual(there.id, here.id, 'a call that passes both has a dialog at each');
    assert.equal((await begin(server, customer, { ...both, switch: 'west' })).json.id, there.id);
    west.has([there]);
    east.has([here]);
    east.answers = 'close';
    await freeze(server, customer.id);
    await over(server, there.id);
    assert.equal(west.dialogs.size, 0);
    assert.equal((await showCall(server, here.id)).json.status, 'terminating');
    assert.equal((await show(server, customer.id)).json.freeze.calls, null, 'not before every switch has said so');
    east.answers = 'well';
    await over(server, here.id);
    await frozenEverywhere(server, customer.id, ['calls']);
    assert.equal(east.dialogs.size, 0);
  });

  it('a customer whose row is gone: its calls end at the switch, as those of a deleted one', async () => {
    const customer = await addCustomer(db);
    const call = await talking(server, customer, sip({ switch: 'west' }));
    west.has([call]);
    await db.query('delete from reclaim.customer_customers where id = $1', [customer.id]);
    await db.query(`insert into reclaim.work_items (kind, payload) values ('hangup', jsonb_build_object('customer_ids', jsonb_build_array($1::text)))`, [customer.id]);
    assert.equal((await over(server, call.id)).hangup_reason, 'account_deleted');
    assert.equal(west.dialogs.size, 0);
    assertError(await begin(server, customer, sip({ switch: 'west' })), 404, 'CUSTOMER_NOT_FOUND');
  });

  it('one is not removed while it has calls, unless it must be', async () => {
    const customer = await addCustomer(db);
    const call = await talking(server, customer, sip({ switch: 'west' }));
    const busy = await reclaim('switch', 'remove', 'west');
    assert.equal(busy.code, 1);
    assert.match(busy.stderr, /^reclaim switch: 1 live call is at west/);
    assert.equal(await done('switch', 'remove', 'west', '--force'), 'switch west removed\n');
    await freeze(server, customer.id);
    await over(server, call.id);
    const missing = await reclaim('switch', 'remove', 'west');
    assert.equal(missing.code, 1);
    assert.match(missing.stderr, /there is no switch west/);
    assert.equal(await done('switch', 'add', 'east', urlOf(west)), 'switch east has a new address\n');
  });

  for (const args of [
    ['add', 'West', 'https://sip.example.com/RPC'],
    ['add', 'west', 'http://192.0.2.1/RPC'],
    ['add', 'west', 'ftp://127.0.0.1/'],
    ['add', 'west', 'https://user:password@sip.example.com/RPC'],
    ['add', 'west', 'https://sip.example.com/RPC?key=1'],
    ['add', 'west'],
    ['remove'],
    ['list', 'west'],
    ['list', '--force'],
    ['rename', 'west'],
  ])
    it(`«reclaim switch ${args.join(' ')}» is refused`, async () => {
      const { code, stderr } = await reclaim('switch', ...args);
      assert.equal(code, 2, stderr);
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
    });
});
