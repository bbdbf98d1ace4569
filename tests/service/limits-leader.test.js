// Leadership and what the leader does for limits: one instance leads, another follows a dead one within seconds, and
// buckets that no limit needs any more go away.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { metric } from './lib/limits.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const leads = async (server) => (await metric(server, 'reclaim_leader')) === 1;
const handOverMs = 5000; // the promise itself; a busy machine may keep it late, but not every time
const handOvers = [];

async function handedOver(look) {
  const began = performance.now();
  await until('another leads', look);
  handOvers.push(performance.now() - began);
}

describe('the leader', () => {
  const stage = new Stage();
  let db, leader, other; // each test leaves them so
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
    await addBuckets(':first');
    [leader, other] = await Promise.all([serveOne(), serveOne()]);
  });
  after(() => stage.end());

  const limits = { RECLAIM_LIMIT_GLOBAL: '1000/60', RECLAIM_LIMIT_IP: '5/60', RECLAIM_LIMIT_EMAIL: '3/3600', RECLAIM_LIMIT_PROBE: '5/10' };
  const serveOne = () => serve(stage, { database: db, env: limits });

  const addBuckets = (mark) =>
    db.query(
      `insert into reclaim.rate_limits select tier || $1, clock_timestamp() - age * '1 s'::interval, 1
       from unnest(array['probe', 'ip', 'email', 'email-validate', 'other']) tier, unnest(array[5, 23, 117, 123, 7100, 7300]) age`,
      [mark],
    );

  /** Twice the window is 20 s, 120 s and two hours, for a tier that nobody declared too. On a slow machine a bucket may
   *  have grown too old since. */
  async function pruned(mark) {
    const look = `select split_part(key, ':', 1) as tier, count(*)::int as n from reclaim.rate_limits where key like '%' || $1 group by 1`;
    const kept = await until('pruned', async () => {
      const rows = await db.query(look, [mark]);
      const found = Object.fromEntries(rows.map(({ tier, n }) => [tier, n]));
      return found.other <= 5 && found;
    });
    for (const [tier, least, most] of [['probe', 0, 1], ['ip', 1, 3], ['email', 4, 5], ['email-validate', 4, 5], ['other', 4, 5]])
      assert.ok((kept[tier] ?? 0) >= least && (kept[tier] ?? 0) <= most, `${tier}: ${kept[tier]} kept`);
  }

  const locksHeld = async () => {
    const [{ n }] = await db.query("select count(*)::int as n from pg_locks where locktype = 'advisory' and granted and classid = 1919247212 and objid = 2");
    return n;
  };

  it('is one of two', async () => {
    await until('a leader', async () => (await leads(leader)) || (await leads(other)));
    if (await leads(other)) [leader, other] = [other, leader];
    assert.equal(await leads(leader), true);
    assert.equal(await leads(other), false);
    assert.equal(await locksHeld(), 1);
  });

  it('prunes when it begins to lead, each tier by its own window', async () => {
    await pruned(':first');
    const tiers = await db.query("select tier || ' ' || window_seconds as one from reclaim.rate_limit_tiers");
    for (const expected of ['global 60', 'ip 60', 'email 3600', 'email-validate 3600', 'probe 10'])
      assert.ok(tiers.some(({ one }) => one === expected), expected);
    await until('the duty counted', async () => (await metric(leader, 'reclaim_leader_duties_total', { duty: 'prune', outcome: 'done' })) > 0);
    assert.equal(await metric(other, 'reclaim_leader_duties_total'), 0, 'nobody else does');
  });

  it('killed with -9 is followed by one that prunes at once', async () => {
    await addBuckets(':second');
    await leader.kill9();
    await handedOver(() => leads(other));
    await pruned(':second');
    [leader, other] = [other, await serveOne()];
  });

  it('that is stopped hands over, and killed in the middle of its duty is followed too', async (t) => {
    await addBuckets(':third');
    const session = await db.session(t);
    await session.query('begin; select from reclaim.rate_limit_tiers for update'); // pruning must wait for it
    await leader.stop();
    await handedOver(() => leads(other));
    await until('its duty under way', async () => {
      const [{ n }] = await db.query("select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'");
      return n > 0;
    });
    [leader, other] = [other, await serveOne()];
    assert.equal(await leads(other), false);
    await leader.kill9();
    await handedOver(() => leads(other));
    await session.query('rollback');
    await pruned(':third');
    [leader, other] = [other, await serveOne()];
  });

  it('was followed within five seconds', () => assert.ok(Math.min(...handOvers) < handOverMs, `${handOvers} ms`));

  it('whose session is cut leads no more, until it or another has the lock', async () => {
    await db.query("select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and granted and classid = 1919247212 and objid = 2");
    await until('a leader again', async () => (await locksHeld()) === 1 && (await leads(leader)) !== (await leads(other)));
  });
});
