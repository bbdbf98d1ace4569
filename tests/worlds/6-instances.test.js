// World 6: three instances on one database, of which one is paused for a while, and one is restarted.

import { after, before, describe } from 'node:test';

import { pause, Stage } from '../service/lib/stage.js';
import { coreStory } from './lib/story.js';
import { databaseWorld } from './lib/world.js';

const pauseMs = 600; // longer than a lease of the frozen customers, shorter than what takes leadership away

describe('with three instances, of which one is paused and one restarts', () => {
  const stage = new Stage();
  let world;
  const paused = new Set();

  /** The last instance sleeps while the others work, and has missed it when it wakes up. */
  async function whilePaused(act) {
    const sleeper = world.servers.at(-1);
    sleeper.signal('SIGSTOP');
    paused.add(sleeper);
    try {
      await act();
      await pause(pauseMs);
    } finally {
      sleeper.signal('SIGCONT');
      paused.delete(sleeper);
    }
  }

  /** The first instance, which was asked until then, ends; another takes its place, and its journal. */
  async function whileRestarting(act) {
    const old = world.servers.shift();
    const working = act();
    const [fresh] = await Promise.all([world.startOne({ directory: old.directory }), old.stop()]);
    world.servers.push(fresh);
    await working;
  }

  const meanwhile = {
    freeze: whilePaused,
    recover: whilePaused,
    expiry: whileRestarting,
  };

  before(async () => {
    world = await databaseWorld(stage, {
      instances: 3,
      mayCount: (server) => !paused.has(server),
      during: (step, act) => (meanwhile[step] ?? ((alone) => alone()))(act),
    });
  });
  after(() => stage.end());
  coreStory(() => world, { first: 'admin', second: 'sql' });
});
