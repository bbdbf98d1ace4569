// World 5: PgBouncer in transaction mode in front of the database. With a direct URL beside it everything works; without
// one Reclaim refuses to start, since leadership, notifications and migrations would be shared with other sessions.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { metric } from '../service/lib/limits.js';
import { Pooler } from '../service/lib/pgbouncer.js';
import { run, serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { coreStory } from './lib/story.js';
import { databaseWorld } from './lib/world.js';

describe('behind a transaction pooler', () => {
  const stage = new Stage();
  let world, pooled;
  before(async () => {
    world = await databaseWorld(stage, {
      instances: 2,
      async prepare(db, cluster) {
        const pooler = await Pooler.start(stage, cluster, { poolSize: 6 });
        pooled = { RECLAIM_DATABASE_URL: pooler.url(db) };
        return { ...pooled, RECLAIM_DATABASE_DIRECT_URL: db.url };
      },
    });
  });
  after(() => stage.end());

  describe('with a direct URL', () => {
    coreStory(() => world, { first: 'cli', second: 'sql' });

    it('and one instance leads', async () => {
      const leads = await Promise.all(world.servers.map((server) => metric(server, 'reclaim_leader')));
      assert.deepEqual(leads.sort(), [0, 1]);
    });
  });

  describe('without a direct URL', () => {
    const names = /RECLAIM_DATABASE_DIRECT_URL/;

    for (const migrate of ['on', 'off'])
      it(`a start is refused with the setting to use, RECLAIM_MIGRATE=${migrate}`, async (t) => {
        const server = await serve(t, { env: { ...pooled, RECLAIM_MIGRATE: migrate }, wait: 'nothing' });
        assert.deepEqual(await server.ended(), { code: 1, signal: null });
        assert.deepEqual(server.events('leading'), []);
        assert.match(server.events('cannot start').at(-1).why, names);
      });

    it('so is a migration', async (t) => {
      const { code, stderr } = await run(t, ['migrate'], { env: pooled });
      assert.equal(code, 1, stderr);
      assert.match(stderr, names);
    });

    it('and the doctor names it', async (t) => {
      const { code, stdout, stderr } = await run(t, ['doctor'], { env: pooled });
      assert.equal(code, 1, stdout + stderr);
      assert.match(stdout + stderr, names);
    });
  });
});
