// Deletion under fault: repeated races of expiry against recovery, and servers killed with -9 during a pass over many
// customers with fourteen participants. ROUNDS rounds, times 25 for the races; SEED determines the times.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { env, scene } from '../service/lib/customers.js';
import { addServices } from '../service/lib/erasure.js';
import { killPasses, raceRecovery } from '../service/lib/expiry-races.js';
import { seeded } from '../service/lib/random.js';
import { run } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';

const rounds = Number(process.env.ROUNDS ?? 20);
const races = rounds * 25;
const customers = Number(process.env.CUSTOMERS ?? (rounds === 1 ? 1000 : 100_000));
const random = seeded(Number(process.env.SEED ?? 20251027));
const aSecond = { RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_EXPIRY_BRAKE: 'off' };

const stage = new Stage();
let cluster, world;
before(async () => {
  const { cluster: made, db, server } = await scene(stage, { settings: aSecond });
  cluster = made;
  world = { db, server };
});
after(() => stage.end());

it(`recovered at the boundary or deleted, wholly either way: ${races} rounds`, async (t) => {
  const seen = { recovered: 0, deleted: 0 };
  for (let round = 0; round < races; round += 25)
    for (const { outcome } of await Promise.all(Array.from({ length: 25 }, () => raceRecovery(world, random)))) seen[outcome]++;
  t.diagnostic(JSON.stringify(seen));
  assert.equal(seen.recovered + seen.deleted, races);
});

it(`a server killed ${rounds} times in passes over ${customers} customers: all are complete, each thing done once`, async (t) => {
  const many = await cluster.database(stage);
  assert.equal((await run(stage, ['migrate'], { database: many })).code, 0);
  await addServices(stage, many);
  const killed = await killPasses(stage, { db: many, env: { ...env, ...aSecond }, count: customers, kills: rounds, random, deadlineMs: 3600_000 });
  t.diagnostic(`${killed} of ${rounds} while it worked`);
});
