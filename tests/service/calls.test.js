// Calls over HTTP: who may call, how a call goes on, and what a freeze ends; without a switch.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { begin, ask, hangUp, listCalls, over, progress, rowsOf, showCall, sip, talking } from './lib/calls.js';
import { addCustomer, asKey, addKey, assertError, asUser, bearer, env, freeze, frozenEverywhere, recover, rowOf, scene, show } from './lib/customers.js';
import { ops } from './lib/http.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster, db, server;
before(async () => {
  ({ cluster, db, server } = await scene(stage));
});
after(() => stage.end());

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const dropped = async (customer) => {
  await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
  return customer;
};

describe('POST /v1/calls', () => {
  it('an active customer may call, in either direction, and the call is dialing', async () => {
    const customer = await addCustomer(db);
    for (const direction of ['outgoing', 'incoming']) {
      const told = { direction, ...sip(), confbridge_id: randomUUID(), groupcall_id: randomUUID() };
      const { status, json } = await begin(server, customer, told);
      assert.equal(status, 201);
      assert.equal(json.status, 'dialing');
      assert.equal(json.hangup_reason, '');
      assert.equal(json.customer_id, customer.id);
      for (const [name, value] of Object.entries(told)) assert.equal(json[name], value, name);
      assert.match(json.tm_create, instant);
      assert.equal(json.tm_hangup, null);
      assert.deepEqual((await showCall(server, json.id)).json, json);
    }
  });

  it('a switch that asks again gets the same call, and the other end has its own', async () => {
    const [one, other] = [await addCustomer(db), await addCustomer(db)];
    const dialog = sip();
    const first = await begin(server, one, dialog);
    assert.equal(first.status, 201);
    const again = await Promise.all(Array.from({ length: 5 }, () => begin(server, one, dialog)));
    for (const answer of again) {
      assert.equal(answer.status, 200);
      assert.equal(answer.json.id, first.json.id);
    }
    assert.equal((await begin(server, one, { ...dialog, cseq: 2 })).status, 201);
    assert.equal((await begin(server, other, { ...dialog, direction: 'incoming' })).status, 201);
    assert.equal((await rowsOf(db, one)).length, 2);
  });

  it('a frozen customer is refused with the date of its deletion, a deleted and an unknown one in their own words', async () => {
    const customer = await addCustomer(db);
    const frozen = await freeze(server, customer.id);
    const refused = await begin(server, customer, { direction: 'incoming' });
    assert.equal(refused.status, 403);
    assert.equal(refused.json.error, 'DELETION_SCHEDULED');
    assert.equal(refused.json.deletion_scheduled_at, frozen.json.tm_deletion_scheduled);
    assert.equal((await rowsOf(db, customer)).length, 0);
    assertError(await begin(server, await dropped(await addCustomer(db))), 403, 'CUSTOMER_DELETED');
    assertError(await begin(server, { id: randomUUID() }), 404, 'CUSTOMER_NOT_FOUND');
    await recover(server, customer.id);
    assert.equal((await begin(server, customer)).status, 201);
  });

  it('many at once are each told their own: calls, repeats, refusals and unknown customers', async () => {
    const [active, frozen] = [await addCustomer(db), await addCustomer(db)];
    await freeze(server, frozen.id);
    const dialog = sip();
    const kinds = [
      [active, () => ({}), [201]],
      [active, () => dialog, [200, 201]],
      [frozen, () => ({}), [403]],
      [{ id: randomUUID() }, () => ({}), [404]],
    ];
    const asked = Array.from({ length: 120 }, (_, n) => kinds[n % kinds.length]);
    const answers = await Promise.all(asked.map(([customer, more], n) => begin(server, customer, { source: `from ${n} "'\\ü`, ...more() })));
    for (const [n, answer] of answers.entries()) {
      const [customer, , statuses] = asked[n];
      assert.ok(statuses.includes(answer.status), answer.body);
      if (answer.status < 300) assert.equal(answer.json.customer_id, customer.id);
      if (n % kinds.length === 0) assert.equal(answer.json.source, `from ${n} "'\\ü`);
    }
    assert.equal(answers.filter(({ status }, n) => n % kinds.length === 1 && status === 201).length, 1, 'a repeated set-up begins one call');
    assert.equal((await rowsOf(db, active)).length, 31);
    assert.equal((await rowsOf(db, frozen)).length, 0);
  });

  it('a customer whose row somebody holds keeps nobody else waiting', async (t) => {
    const [held, free] = [await addCustomer(db), await addCustomer(db)];
    const session = await db.session(t);
    await session.query('begin');
    await session.query('select from reclaim.customer_customers where id = $1 for update', [held.id]);
    let told = false;
    const waiting = Promise.all(Array.from({ length: 3 }, () => begin(server, held))).finally(() => (told = true));
    const others = await Promise.all(Array.from({ length: 20 }, () => begin(server, free)));
    assert.deepEqual([...new Set(others.map(({ status }) => status))], [201]);
    assert.equal(told, false, 'who is held still waits');
    await session.query('commit');
    assert.deepEqual((await waiting).map(({ status }) => status), [201, 201, 201]);
    assert.equal((await rowsOf(db, held)).length, 3);
    assert.equal((await rowsOf(db, free)).length, 20);
  });

  it('what cannot be meant is refused, and nothing is written', async () => {
    const customer = await addCustomer(db);
    const sound = { customer_id: customer.id, direction: 'outgoing', source: 'a', destination: 'b' };
    const without = (name) => Object.fromEntries(Object.entries(sound).filter(([key]) => key !== name));
    const wrong = [
      '', '[]', '{', '"x"', '{}', 'null', '{"customer_id":1,"customer_id":2}',
      ...Object.keys(sound).map(without),
      ...['customer_id', 'master_call_id', 'confbridge_id', 'groupcall_id'].flatMap((name) => [
        { ...sound, [name]: 'x' }, { ...sound, [name]: 7 }, { ...sound, [name]: '' }, { ...sound, [name]: {} },
      ]),
      ...['source', 'destination', 'sip_call_id', 'from_tag'].flatMap((name) => [
        { ...sound, [name]: 7 }, { ...sound, [name]: ['a'] }, { ...sound, [name]: 'x'.repeat(256) }, { ...sound, [name]: 'a\u0000b' },
      ]),
      ...['both', 'OUTGOING', '', 1, null].map((direction) => ({ ...sound, direction })),
      ...[-1, 1.5, '1', 4294967296, 1e300, true, []].map((cseq) => ({ ...sound, cseq })),
      { ...sound, from_tag: 'x'.repeat(129) },
    ];
    for (const body of wrong) assertError(await ask(server, body), 400, 'INVALID_INPUT');
    assertError(await ask(server, { ...sound, master_call_id: randomUUID() }), 400, 'MASTER_CALL_NOT_FOUND');
    assert.equal((await rowsOf(db, customer)).length, 0);
    assert.equal((await ask(server, { ...sound, source: 'x'.repeat(20_000) })).status, 413);
    const odd = await ask(server, { ...sound, source: 'é".,\\%s\n', destination: '', sip_call_id: null, cseq: 4294967295, more: 1 });
    assert.equal(odd.status, 201);
    assert.equal(odd.json.source, 'é".,\\%s\n');
  });

  it('is for admins only', async () => {
    const customer = await addCustomer(db);
    const { json } = await begin(server, customer);
    const key = asKey(await addKey(stage, db, customer));
    for (const [headers, status] of [[{}, 401], [bearer('x.y.z'), 401], [asUser(customer.user.id), 403], [key, 403]]) {
      assert.equal((await begin(server, customer, {}, headers)).status, status);
      assert.equal((await progress(server, json.id, 'ringing', headers)).status, status);
      assert.equal((await hangUp(server, json.id, {}, headers)).status, status);
      assert.equal((await showCall(server, json.id, headers)).status, status);
      assert.equal((await listCalls(server, '', headers)).status, status);
    }
    assert.equal((await showCall(server, json.id)).json.status, 'dialing');
  });
});

describe('progress and hang-up', () => {
  it('a call goes forward only; told again it stays, told to go back it is 409', async () => {
    const { json } = await begin(server, await addCustomer(db));
    const ringing = await progress(server, json.id, { status: 'ringing', to_tag: 'tag' });
    assert.equal(ringing.json.status, 'ringing');
    assert.equal(ringing.json.to_tag, 'tag');
    assert.deepEqual((await progress(server, json.id, 'ringing')).json, ringing.json);
    assertError(await progress(server, json.id, 'dialing'), 409, 'CALL_GOES_FORWARD_ONLY');
    const answered = await progress(server, json.id, 'progressing');
    assert.match(answered.json.tm_progressing, instant);
    assert.equal(answered.json.to_tag, 'tag');
    for (const back of ['dialing', 'ringing', 'canceling']) assertError(await progress(server, json.id, back), 409, 'CALL_GOES_FORWARD_ONLY');
    assert.equal((await progress(server, json.id, 'terminating')).status, 200);
    const ended = await hangUp(server, json.id, { reason: 'busy' });
    assert.equal(ended.json.status, 'hangup');
    assert.equal(ended.json.hangup_reason, 'busy');
    assert.match(ended.json.tm_hangup, instant);
    assert.deepEqual((await hangUp(server, json.id, { reason: 'other' })).json, ended.json);
    assertError(await progress(server, json.id, 'progressing'), 409, 'CALL_GOES_FORWARD_ONLY');
  });

  it('a hang-up needs no body', async () => {
    const customer = await addCustomer(db);
    for (const body of [undefined, '{}', '{"reason":null}', '{"reason":""}']) {
      const { json } = await begin(server, customer);
      assert.equal((await hangUp(server, json.id, body)).json.hangup_reason, 'normal');
    }
  });

  it('what cannot be meant is refused', async () => {
    const { json } = await begin(server, await addCustomer(db));
    for (const body of ['', '[]', '{}', '{"status":7}', '{"status":"over"}', '{"status":null}', '{"status":"ringing","to_tag":7}'])
      assertError(await progress(server, json.id, JSON.parse(body || '""')), 400, 'INVALID_INPUT');
    assertError(await progress(server, json.id, { status: 'ringing', to_tag: 'x'.repeat(129) }), 400, 'INVALID_INPUT');
    for (const body of ['[]', '{"reason":7}', 'x', JSON.stringify({ reason: 'x'.repeat(65) })])
      assertError(await hangUp(server, json.id, body), 400, 'INVALID_INPUT');
    for (const answer of [await progress(server, randomUUID(), 'ringing'), await hangUp(server, randomUUID()), await showCall(server, randomUUID())])
      assertError(answer, 404, 'CALL_NOT_FOUND');
    for (const answer of [await progress(server, 'x', 'ringing'), await hangUp(server, '1'), await showCall(server, `${json.id}0`)])
      assertError(answer, 400, 'INVALID_ID');
    assert.equal((await showCall(server, json.id)).json.status, 'dialing');
  });
});

describe('GET /v1/calls', () => {
  it('lists a customer’s calls page by page, each once', async () => {
    const customer = await addCustomer(db);
    const made = await Promise.all(Array.from({ length: 7 }, async () => (await begin(server, customer)).json.id));
    const seen = [];
    for (let next = null; ; ) {
      const { json } = await listCalls(server, `?customer_id=${customer.id}&limit=3${next ? `&after=${next}` : ''}`);
      seen.push(...json.items.map(({ id }) => id));
      next = json.next;
      if (!next) break;
    }
    assert.deepEqual(seen, made.sort());
    assert.deepEqual((await listCalls(server, `?customer_id=${randomUUID()}`)).json, { items: [], next: null });
    assert.equal((await listCalls(server, '?limit=1')).json.items.length, 1);
    for (const query of ['?customer_id=x', '?customer_id=', '?after=x', '?limit=0', '?limit=201', '?limit=x'])
      assert.equal((await listCalls(server, query)).status, 400, query);
  });
});

describe('a freeze', () => {
  it('ends every live call of the customer, what is chained to them and its group calls; others never notice', async () => {
    const [customer, other] = [await addCustomer(db), await addCustomer(db)];
    const room = randomUUID();
    const group = randomUUID();
    const own = {
      dialing: (await begin(server, customer)).json,
      ringing: (await begin(server, customer, { direction: 'incoming', ...sip() })).json,
      talking: await talking(server, customer, sip()),
      leg: await talking(server, customer, { confbridge_id: room }),
      grouped: (await begin(server, customer, { groupcall_id: group })).json,
    };
    await progress(server, own.ringing.id, 'ringing');
    own.chained = (await begin(server, other, { master_call_id: own.talking.id })).json;
    own.further = await talking(server, other, { master_call_id: own.chained.id });
    own.groupedToo = (await begin(server, other, { groupcall_id: group })).json;
    const ended = (await begin(server, customer)).json;
    await hangUp(server, ended.id, { reason: 'busy' });
    const others = [await talking(server, other, { confbridge_id: room }), (await begin(server, other, sip())).json];

    await freeze(server, customer.id);
    for (const { id } of Object.values(own)) assert.equal((await over(server, id)).hangup_reason, 'account_frozen');
    assert.equal((await showCall(server, ended.id)).json.hangup_reason, 'busy');
    const { freeze: layers, tm_deletion_scheduled: since } = await frozenEverywhere(server, customer.id, ['api', 'calls']);
    assert.match(layers.calls, instant);
    assert.ok(layers.calls >= since);
    for (const { id, status } of others) assert.equal((await showCall(server, id)).json.status, status);
    assert.equal((await rowOf(db, customer)).version, '2', 'that a layer has it is no change of the customer');

    assertError(await begin(server, other, { master_call_id: own.talking.id }), 403, 'DELETION_SCHEDULED');
    assertError(await begin(server, other, { groupcall_id: group }), 403, 'DELETION_SCHEDULED');
  });

  it('by the owner, and at the command line, does the same; and a customer without calls is done at once', async () => {
    const customer = await addCustomer(db);
    const { id } = await talking(server, customer);
    const ran = await run(stage, ['freeze', customer.id], { database: db });
    assert.equal(ran.code, 0, ran.stderr);
    assert.equal((await over(server, id)).hangup_reason, 'account_frozen');
    await frozenEverywhere(server, customer.id, ['calls']);
    const quiet = await addCustomer(db);
    await freeze(server, quiet.id);
    await frozenEverywhere(server, quiet.id, ['calls']);
  });

  it('taken back lets calls through again, and frozen again ends the new ones', async () => {
    const customer = await addCustomer(db);
    for (let round = 0; round < 3; round++) {
      const { id } = await talking(server, customer);
      await freeze(server, customer.id);
      await over(server, id);
      await frozenEverywhere(server, customer.id, ['calls']);
      await recover(server, customer.id);
      assert.equal((await show(server, customer.id)).json.freeze, undefined);
    }
  });

  it('a deleted customer’s calls end because it was deleted, soft-deleted or not', async () => {
    const customer = await addCustomer(db);
    const { id } = await talking(server, customer, { source: '+15550123' });
    await dropped(customer);
    await db.query('update reclaim.call_calls set tm_delete = now() where customer_id = $1', [customer.id]);
    await db.query(`insert into reclaim.work_items (kind, payload) values ('hangup', jsonb_build_object('customer_id', $1::text))`, [customer.id]);
    const ended = await over(server, id);
    assert.equal(ended.hangup_reason, 'account_deleted');
    assert.equal(ended.source, '');
    assert.deepEqual((await listCalls(server, `?customer_id=${customer.id}`)).json.items, []);
  });

  it('is measured: how many calls it ended, and how long that took', async () => {
    const { body } = await ops(server, '/metrics');
    assert.match(body, /^reclaim_calls_ended_total\{reason="account_frozen"\} [1-9]/m);
    assert.match(body, /^reclaim_calls_down_seconds_count\{reason="account_frozen"\} [1-9]/m);
    assert.match(body, /^reclaim_calls_down_seconds_bucket\{reason="account_frozen",le="10"\} [1-9]/m);
    assert.match(body, /^reclaim_calls_asked_total\{outcome="frozen"\} [1-9]/m);
    await until('every hang-up done', async () => (await db.query(`select 1 from reclaim.work_items where kind = 'hangup'`)).length === 0);
  });
});

describe('customers whose table a team had already', () => {
  it('are let through, frozen and hung up on all the same', async (t) => {
    const theirs = await cluster.database(t);
    const id = randomUUID();
    await theirs.query('create table public.customer_customers (id uuid primary key, name text)');
    await theirs.query('insert into public.customer_customers values ($1, $2)', [id, 'Someone']);
    const instance = await serve(t, { database: theirs, env });
    const call = await talking(instance, { id });
    await freeze(instance, id);
    assert.equal((await over(instance, call.id)).hangup_reason, 'account_frozen');
    await frozenEverywhere(instance, id, ['calls']);
    assertError(await begin(instance, { id }), 403, 'DELETION_SCHEDULED');
  });
});
