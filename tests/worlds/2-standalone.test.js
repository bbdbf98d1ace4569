// World 2: a database of its own, whose auth schema and ownership tables `reclaim migrate --standalone` made.

import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';

import { run } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { coreStory } from './lib/story.js';
import { databaseWorld } from './lib/world.js';

describe('in a standalone database', () => {
  const stage = new Stage();
  let world;
  before(async () => {
    world = await databaseWorld(stage, {
      auth: 'none',
      async prepare(database) {
        const { code, stderr } = await run(stage, ['migrate', '--standalone'], { database });
        assert.equal(code, 0, stderr);
      },
    });
  });
  after(() => stage.end());
  coreStory(() => world, { first: 'admin', second: 'sql' });
});
