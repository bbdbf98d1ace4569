// World 1: `reclaim serve --demo` on a private cluster, with the mailbox.

import { after, before, describe } from 'node:test';

import { Stage } from '../service/lib/stage.js';
import { coreStory } from './lib/story.js';
import { demoWorld } from './lib/world.js';

describe('in the demo on a private cluster', () => {
  const stage = new Stage();
  let world;
  before(async () => {
    world = await demoWorld(stage);
  });
  after(() => stage.end());
  coreStory(() => world, { first: 'owner', second: 'cli' });
});
