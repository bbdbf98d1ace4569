// The runner itself: it reports a lock that is missing, an answer that differs, and an order without a transcript.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { Stage } from '../service/lib/stage.js';
import { calling, freezing, newCustomer, noCallLivesOn } from './lib/freezing.js';
import { assertComplete, merges, ordersOf, readTranscripts } from './lib/orders.js';
import { faultsOf, play } from './lib/play.js';
import { world } from './lib/race.js';

const stage = new Stage();
let place;
before(async () => {
  place = await world(stage, ['admin']);
});
after(() => stage.end());

const callAndFreeze = { setUp: newCustomer, sessions: { caller: calling, admin: freezing }, promise: noCallLivesOn };
const order = ['call', 'freeze', 'hang-up', 'commit'];
const waiting = ['call         created', 'freeze       waits for caller', 'hang-up      not before freeze completes'];
const expected = [...waiting, 'commit       commit', 'freeze       200 frozen', 'hang-up      done'];

describe('a race that keeps its promise', () => {
  it('has no faults', async () => {
    assert.equal(faultsOf(await play(place, callAndFreeze, order), expected), '');
  });

  it('has faults when the transcript says otherwise, with what was expected and how it went', async () => {
    const faults = faultsOf(await play(place, callAndFreeze, order), [...expected.slice(0, -1), 'hang-up      never']);
    assert.match(faults, /^expected:\n[^]*hang-up +never\n +but it went:\n[^]*hang-up +done$/);
  });
});

describe('a function of the database without its locks', () => {
  const definition = `select pg_get_functiondef('reclaim.call_begin'::regproc) as text`;
  const locks = [/PERFORM pg_catalog\.pg_advisory_xact_lock_shared\(1919247213, reclaim\.customer_turn\(p_customer\)\);/, / FOR SHARE(?=;)/g];

  it('lets the freeze pass the call, and the broken promise is reported', async (t) => {
    const { db } = place;
    const [{ text }] = await db.query(definition);
    t.after(() => db.query(text));
    const broken = locks.reduce((all, lock) => {
      assert.match(all, lock);
      return all.replace(lock, '');
    }, text);
    await db.query(broken);
    const result = await play(place, callAndFreeze, order);
    assert.deepEqual(result.lines, ['call         created', 'freeze       200 frozen', 'hang-up      done', 'commit       commit']);
    const faults = faultsOf(result, expected);
    assert.match(faults, /^expected:\n[^]*but it went:/);
    assert.match(faults, /the promise is broken: a call of the frozen customer lives on/);
  });
});

describe('orders', () => {
  const steps = (...names) => ({ steps: Object.fromEntries(names.map((name) => [name, ''])) });
  const sessions = { one: steps('a', 'b'), other: steps('x') };

  it('are all in which a session’s own steps follow one another', () => {
    assert.deepEqual(merges([['a', 'b'], ['x']]).map(String), ['a,b,x', 'a,x,b', 'x,a,b']);
    assert.equal(merges([['a', 'b'], ['x', 'y'], ['m']]).length, 30);
  });

  it('need steps of different names', () => {
    assert.throws(() => ordersOf({ sessions: { one: steps('a', 'b'), other: steps('a') } }), /two steps have the same name: a,b,a/);
  });

  it('lift a stop after the step that it stops', () => {
    const orders = ordersOf({ sessions: { one: steps('a'), other: steps('x') }, stop: { step: 'go', in: 'a' } });
    assert.deepEqual(orders.map(String).sort(), ['a,go,x', 'a,x,go', 'x,a,go']);
  });

  it('without a transcript, or that cannot be, are reported', () => {
    const described = (text) => assertComplete({ sessions }, readTranscripts(text));
    described('a 1\nb 2\nx 3\n\na 1\nx waits for one\nb 2\nx 3\n\nx 1\na 2\nb 3');
    assert.throws(() => described('a 1\nb 2\nx 3\n\nx 1\na 2\nb 3'), /orders without a transcript:\n +a, x, b(\n|$)/);
    assert.throws(() => described(''), /orders without a transcript:\n +a, b, x\n +a, x, b\n +x, a, b(\n|$)/);
    assert.throws(() => described('b 1\na 2\nx 3'), /orders that the sessions do not allow:\n +b, a, x/);
    assert.throws(() => described('a 1\nb 2\nx 3\n\na 1\nb 2\nx 3'), /described twice:\n +a, b, x/);
  });
});
