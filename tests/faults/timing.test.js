// The time of a reply does not reveal its content. Measured without jitter, which would hide a difference: at least
// TIMING_ANSWERS replies of each kind, all kinds in turn, while mail providers take from zero to three seconds. Medians
// and 95th percentiles must not differ by 2 ms, with their 95 % intervals. These are wide on a busy machine: then more
// replies are measured, up to TIMING_MOST.
// runs alone

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { FakeProvider } from '../service/lib/fake-provider.js';
import { Cluster } from '../service/lib/postgres.js';
import { serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { crowd, differences, manyConnections, measure, slowly, someCleanup, someProbe, summary, timingPeople } from '../service/lib/timing.js';

const answers = Number(process.env.TIMING_ANSWERS ?? 2000);
const most = Number(process.env.TIMING_MOST ?? 5 * answers);
const allowedMs = Number(process.env.TIMING_ALLOWED_MS ?? 2);
const others = 2000;
const lanes = 120;
const crowdHoldMs = 10_000;
const skip = process.env.ROUNDS === '1' && !process.env.TIMING_ANSWERS && 'too long for a short run; tests/service/timing.test.js is one';

const says = ({ a, b, difference, low, high }, what) =>
  `${what} of ${a} and ${b}: ${difference.toFixed(2)} ms, 95 % between ${low.toFixed(2)} and ${high.toFixed(2)}`;
const widest = (all) => all.reduce((one, two) => (Math.max(-two.low, two.high) > Math.max(-one.low, one.high) ? two : one));

async function assertAlike(t, server, kinds, holdMs) {
  const found = {};
  for (let count = 0; count < most; count += answers) {
    const more = await measure(t, server, kinds, { answers, lanes, holdMs });
    for (const [name, all] of Object.entries(more)) (found[name] ??= []).push(...all);
    const far = [['medians', 0.5], ['95th percentiles', 0.95]].map(([what, q]) => [what, widest(differences(found, q))]);
    for (const line of summary(found)) t.diagnostic(line);
    for (const [what, one] of far) t.diagnostic(`furthest apart, ${says(one, what)}`);
    if (far.every(([, { low, high }]) => low > -allowedMs && high < allowedMs)) return;
  }
  assert.fail(`told apart, or too much noise to say, after ${Object.values(found)[0].length} answers of each kind`);
}

/** One step is measured; the other, with a longer hold, is the background load. */
function timed(step, holdMs, hold, crowdHold, crowdBytes) {
  describe(`the time of an answer of the ${step}`, { skip }, () => {
    const stage = new Stage();
    let server, kinds;
    before(async () => {
      const cluster = await Cluster.create(stage);
      const db = await cluster.database(stage);
      const provider = await FakeProvider.start(stage, 'resend');
      provider.answer(...slowly(4 * most));
      server = await serve(stage, { database: db, env: { ...provider.env, ...manyConnections, [hold]: String(holdMs), [crowdHold]: String(crowdHoldMs) } });
      kinds = (await timingPeople(stage, db, { each: 2 * lanes, once: 2 * (most + answers) }))[step];
    });
    after(() => stage.end());

    it('is the same for everyone', (t) => assertAlike(t, server, kinds, holdMs));

    it(`is the same for everyone while ${others} others are held`, async (t) => {
      const waiting = await crowd(t, server, { size: others, holdMs: crowdHoldMs, bytes: crowdBytes });
      await assertAlike(t, server, kinds, holdMs);
      assert.equal(waiting(), others);
    });
  });
}

timed('cleanup', 500, 'RECLAIM_HOLD_MS', 'RECLAIM_PROBE_HOLD_MS', someProbe);
timed('probe', 200, 'RECLAIM_PROBE_HOLD_MS', 'RECLAIM_HOLD_MS', someCleanup);
