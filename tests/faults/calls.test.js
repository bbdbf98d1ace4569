// Calls under fault: set-up races freeze, at the API and at a real switch; many concurrent calls. ROUNDS rounds.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { begin, progress, rowsOf, talking } from '../service/lib/calls.js';
import { addCustomer, addScopedKey, env, freeze, frozenEverywhere, scene } from '../service/lib/customers.js';
import { Kamailio } from '../service/lib/kamailio.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, Stage, until } from '../service/lib/stage.js';

const rounds = process.env.ROUNDS ? 20 * Number(process.env.ROUNDS) : 200;
const many = 1000;

const stage = new Stage();
let db, server, second, board;
before(async () => {
  board = await Kamailio.plan(stage);
  ({ db, server } = await scene(stage, { settings: board.env }));
  second = await serve(stage, { database: db, env });
  await board.start(server.address(), { RECLAIM_KEY: await addScopedKey(stage, db, 'calls') });
});
after(() => stage.end());

const live = (customer) => db.query(`select id, status from reclaim.call_calls where customer_id = $1 and status <> 'hangup'`, [customer.id]);

const dialogsOf = async (number) => (await board.dialogs()).filter((dialog) => dialog.from_uri === `sip:${number}@example.com`);

/** Many set-ups of every kind at two instances, during a freeze of the customer. */
async function raceAtTheApi(n) {
  const [customer, other] = [await addCustomer(db, { owner: false }), await addCustomer(db, { owner: false })];
  const group = randomUUID();
  const first = await talking(second, customer, { groupcall_id: group });
  let frozenAt = Infinity;
  const setUp = async (i) => {
    await pause(Math.random() * 30);
    const began = performance.now();
    const [who, more] = [
      [customer, {}],
      [customer, { direction: 'incoming' }],
      [other, { master_call_id: first.id }],
      [other, { groupcall_id: group }],
    ][i % 4];
    const answer = await begin(i % 3 ? server : second, who, more);
    assert.ok([201, 403].includes(answer.status), answer.body);
    assert.ok(began < frozenAt || answer.status === 403, 'a call was set up after the freeze had been answered');
    if (answer.status === 201 && i % 5 === 0) await progress(server, answer.json.id, 'progressing');
    return answer;
  };
  const freezing = async () => {
    await pause(Math.random() * 20);
    const answer = await freeze(n % 2 ? server : second, customer.id);
    frozenAt = performance.now();
    assert.equal(answer.status, 200);
  };
  const [answers] = await Promise.all([Promise.all(Array.from({ length: 12 }, (_, i) => setUp(i))), freezing()]);
  await frozenEverywhere(server, customer.id, ['calls']);
  assert.deepEqual(await live(customer), []);
  const chained = await db.query(`select id from reclaim.call_calls where customer_id = $1 and status <> 'hangup'`, [other.id]);
  assert.deepEqual(chained, [], 'what was chained to it, or of its group call, is over too');
  return answers.filter(({ status }) => status === 201).length;
}

/** Telephones that call during a freeze of the customer. */
async function raceAtTheSwitch(n) {
  const customer = await addCustomer(db, { owner: false });
  const [number, bob] = [`racer${n}`, `bob${n}`];
  const phone = await board.phone('callee-answers', { calls: 20, trace: false });
  await board.number(number, { customer });
  await board.number(bob, { phone });
  const caller = await board.phone('caller-races', { caller: number, callee: bob, calls: 20, rate: 200, trace: false });
  await until('a first call', async () => (await rowsOf(db, customer)).length > 0);
  await pause(Math.random() * 60);
  await freeze(server, customer.id);
  await until('all have called', () => caller.ended !== undefined);
  await frozenEverywhere(server, customer.id, ['calls']);
  assert.deepEqual(await dialogsOf(number), []);
  assert.deepEqual(await live(customer), []);
  return (await rowsOf(db, customer)).length;
}

describe('set-up and freeze', () => {
  it(`never pass each other, in ${rounds} rounds`, async (t) => {
    let admitted = 0;
    for (let n = 0; n < rounds; n += 4) admitted += (await Promise.all([0, 1, 2, 3].map((i) => raceAtTheApi(n + i)))).reduce((a, b) => a + b);
    t.diagnostic(`${admitted} of ${rounds * 12} set-ups came before the freeze`);
    assert.ok(admitted > 0 && admitted < rounds * 12, 'nothing raced');
  });

  it('never pass each other at the switch', async (t) => {
    let admitted = 0;
    const count = Math.ceil(rounds / 10);
    for (let n = 0; n < count; n++) admitted += await raceAtTheSwitch(n);
    t.diagnostic(`${admitted} of ${count * 20} calls came before the freeze`);
  });
});

describe('a flood', () => {
  it('of calls does not keep their customer’s freeze waiting', async (t) => {
    const customer = await addCustomer(db, { owner: false });
    const sessions = [await db.session(t), await db.session(t)];
    const setUp = async (session) => {
      await session.query('begin');
      const { rows } = await session.query(
        `select outcome from reclaim.call_begin($1, 'outgoing', 'a', 'b', null, null, null, null, null, null)`,
        [customer.id],
      );
      return rows[0].outcome;
    };
    // The sessions overlap, so that one of them has the customer's row locked at any time until the freeze gets it.
    const outcomes = [await setUp(sessions[0])];
    let freezing = true;
    const frozen = freeze(server, customer.id).finally(() => (freezing = false));
    for (let turn = 1; freezing; turn++) {
      const next = setUp(sessions[turn % 2]);
      await Promise.race([next, pause(300)]);
      await sessions[(turn + 1) % 2].query('commit');
      outcomes.push(await next);
    }
    assert.equal((await frozen).status, 200);
    t.diagnostic(`frozen after ${outcomes.length - 1} set-ups more`);
    for (const session of sessions) await session.query('commit');
    assert.equal(outcomes.at(-1), 'frozen');
    await frozenEverywhere(server, customer.id, ['calls']);
    assert.deepEqual(await live(customer), []);
  });
});

describe('many calls', () => {
  it(`${many} live calls of one customer all go down`, async (t) => {
    const customer = await addCustomer(db);
    const phone = await board.phone('callee-answers', { calls: many, trace: false });
    await board.number('many', { customer });
    await board.number('bobs', { phone });
    const began = performance.now();
    const caller = await board.phone('caller-talks', { caller: 'many', callee: 'bobs', calls: many, rate: 100, trace: false });
    const count = async (status) => (await db.query('select count(*)::int from reclaim.call_calls where customer_id = $1 and status = $2', [customer.id, status]))[0].count;
    // On a slow machine a call may have timed out; it is ignored.
    await until('all of them talking', async () => (await count('progressing')) + (await count('hangup')) === many, 180_000);
    const talking = await count('progressing');
    t.diagnostic(`${talking} calls set up in ${Math.round(performance.now() - began)} ms`);
    assert.ok(talking > many * 0.9, `only ${talking} calls were set up`);
    await freeze(server, customer.id);
    await until('every caller heard a BYE', () => caller.ended !== undefined, 180_000);
    const { tm_deletion_scheduled: from, freeze: layers } = await frozenEverywhere(server, customer.id, ['calls']);
    t.diagnostic(`all down ${Date.parse(layers.calls) - Date.parse(from)} ms after the freeze`);
    assert.equal(await count('hangup'), many);
    assert.deepEqual(await dialogsOf('many'), []);
  });
});
