// Expiry against recovery at the boundary, and passes whose server is killed.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { env, scene } from './lib/customers.js';
import { addServices } from './lib/erasure.js';
import { killPasses, raceRecovery } from './lib/expiry-races.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
let db, server, cluster;
before(async () => {
  ({ cluster, db, server } = await scene(stage, { settings: { RECLAIM_EXPIRY_INTERVAL: '1s' } }));
});
after(() => stage.end());

it('recovered at the boundary or deleted, wholly either way: 50 rounds', async () => {
  const seen = { recovered: 0, deleted: 0 };
  for (let round = 0; round < 50; round += 25) {
    const ends = await Promise.all(Array.from({ length: 25 }, () => raceRecovery({ db, server })));
    for (const { outcome } of ends) seen[outcome]++;
  }
  assert.equal(seen.recovered + seen.deleted, 50);
});

it('a server killed in the middle of a pass, 3 times: all 2,000 are complete, each thing done once', async () => {
  const many = await cluster.database(stage);
  assert.equal((await run(stage, ['migrate'], { database: many })).code, 0);
  await addServices(stage, many);
  assert.ok((await killPasses(stage, { db: many, env: { ...env, RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_EXPIRY_BRAKE: 'off' }, count: 2000, kills: 3 })) > 0, 'none was killed while it worked');
});
