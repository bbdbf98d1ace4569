// What an answer says cannot be told from when it comes: a short look at each kind, wide enough for a busy machine. The
// long one, tests/faults/timing.test.js, measures.
// runs alone

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { FakeProvider } from './lib/fake-provider.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';
import { differences, fillLane, manyConnections, measure, refused, slowly, summary, timingPeople } from './lib/timing.js';

const answers = 100;
const holdMs = 500;
const lanes = 60;

describe('the time of an answer, without jitter', () => {
  const stage = new Stage();
  let db, server, kinds;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    const provider = await FakeProvider.start(stage, 'resend');
    provider.answer(...slowly(1000));
    const env = { ...provider.env, ...manyConnections, RECLAIM_HOLD_MS: String(holdMs), RECLAIM_PROBE_HOLD_MS: String(holdMs) };
    server = await serve(stage, { database: db, env });
    kinds = await timingPeople(stage, db, { each: 2 * lanes, once: 2 * answers });
  });
  after(() => stage.end());

  async function assertAlike(t, some, count) {
    const found = await measure(t, server, some, { answers: count, lanes, holdMs });
    for (const line of summary(found)) t.diagnostic(line);
    for (const { a, b, difference } of differences(found, 0.5)) assert.ok(Math.abs(difference) < 20, `${a} and ${b}: ${difference} ms`);
  }

  for (const step of ['cleanup', 'probe']) it(`is the same for everyone: ${step}`, (t) => assertAlike(t, kinds[step], answers));

  it('is the same for everyone who finds the lane of anonymous callers full', async (t) => {
    await fillLane(t, db, server);
    await assertAlike(t, refused(kinds.cleanup), answers / 4);
  });
});
