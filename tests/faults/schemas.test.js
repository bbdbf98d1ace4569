// Fifty random schemas of a team's tables, chosen by SEED, two with ROUNDS of 1: adopted, changed, run through a customer's life, and given back.

import { after, before, describe, it } from 'node:test';

import { Cluster } from '../service/lib/postgres.js';
import { Stage } from '../service/lib/stage.js';
import { schemaStory } from '../worlds/lib/schema-story.js';

const seed = Number(process.env.SEED ?? 20251127);
const count = process.env.ROUNDS === '1' ? 2 : 50;
const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

describe('tables of a team’s own shape', { concurrency: 3 }, () => {
  for (let i = 0; i < count; i++) it(`schema ${seed + i} is adopted, changed, lived through and given back`, (t) => schemaStory(t, cluster, seed + i));
});
