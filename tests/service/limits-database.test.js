// The counts themselves, under many database clients and over moved time: what Reclaim and other programs share.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { countOf, standingClock } from './lib/limits.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

/** Requests and seconds; long windows, so that nothing leaves them while a slow machine counts. */
const standard = { global: [1000, 3600], ip: [5, 3600], email: [3, 3600] };

describe('counts in the database', () => {
  const stage = new Stage();
  const sessions = [];
  let cluster, db;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
    sessions.push(...(await Promise.all(Array.from({ length: 100 }, () => db.session(stage)))));
  });
  after(() => stage.end());

  const check = async (session, key, limit, seconds = 3600) =>
    (await session.query('select * from reclaim.check_rate_limit($1, $2, $3)', [key, limit, seconds])).rows[0];

  /** Several requests of the three tiers, as an instance asks for them: each with its client and its address. */
  async function admit(session, requests, limits = standard) {
    const keys = [...new Set(requests.flat())];
    const numbers = new Map(keys.map((key, n) => [key, n + 1]));
    const [most, seconds] = [0, 1].map((which) => keys.map((key) => limits[key.split(':')[0]][which]));
    const places = requests.flatMap((request) => request.map((key) => numbers.get(key)));
    const { rows } = await session.query('select * from reclaim.admit($1, $2, $3, $4)', [keys, most, seconds, places]);
    return rows[0].admitted;
  }

  it('a hundred clients at once lose no increment: every count from 1 on is told exactly once', async () => {
    const told = (
      await Promise.all(
        sessions.map(async (session) => {
          const counts = [];
          for (let n = 0; n < 5; n++) counts.push(await check(session, 'shared', 1_000_000));
          return counts;
        }),
      )
    ).flat();
    assert.ok(told.every(({ allowed, retry_after: wait }) => allowed && wait === 0));
    assert.deepEqual(told.map(({ current_count: count }) => count).sort((a, b) => a - b), Array.from({ length: 500 }, (_, n) => n + 1));
    assert.equal(await countOf(db, 'shared'), 500);
  });

  it('a hundred clients at once against a limit of five are let in five times', async () => {
    for (let round = 0; round < 5; round++) {
      const told = await Promise.all(sessions.map((session) => check(session, `ip:round${round}`, 5)));
      assert.equal(told.filter(({ allowed }) => allowed).length, 5);
      for (const { allowed, current_count: count, retry_after: wait } of told) {
        assert.ok(allowed ? wait === 0 : count === 5 && wait >= 1 && wait <= 3600, `${allowed} ${count} ${wait}`);
      }
    }
  });

  it('everyone together is let in exactly 1000 times, whoever asks and however', async () => {
    const let_in = await Promise.all(
      sessions.map(async (session, n) => {
        let admitted = 0;
        for (let round = 0; round < 4; round++) {
          if (n % 2) admitted += (await check(session, 'global', 1000)).allowed;
          else {
            const several = Array.from({ length: 6 }, (_, m) => ['global', `ip:${n}-${round}-${m}`, `email:${n}-${round}-${m}`]);
            admitted += (await admit(session, several)).filter(Boolean).length;
          }
        }
        return admitted;
      }),
    );
    assert.equal(let_in.reduce((sum, n) => sum + n), 1000);
    assert.equal(await countOf(db, 'global'), 1000);
    const [{ clients }] = await db.query("select sum(count)::int as clients from reclaim.rate_limits where key ~ '^ip:\\d+-'");
    const [{ addresses }] = await db.query("select sum(count)::int as addresses from reclaim.rate_limits where key ~ '^email:\\d+-'");
    assert.equal(clients, addresses, 'each request was charged wholly');
    assert.ok(clients <= 1000);
    await db.query("delete from reclaim.rate_limits where key = 'global'");
  });

  it('a flood from one client, or for one address, charges nobody else once it is refused', async () => {
    const answers = await Promise.all(
      sessions.map(async (session, n) => {
        const asked = [];
        for (let round = 0; round < 4; round++) {
          if (n < 30) asked.push(...(await admit(session, Array.from({ length: 20 }, (_, m) => ['global', 'ip:flood', `email:f${n}-${round}-${m}`]))));
          else if (n < 60) asked.push(...(await admit(session, Array.from({ length: 20 }, (_, m) => ['global', `ip:f${n}-${round}-${m}`, 'email:flood']))));
          else asked.push(...(await admit(session, [['global', `ip:honest${n}`, `email:honest${n}-${round}`]])));
        }
        return asked.filter(Boolean).length;
      }),
    );
    const sum = (some) => some.reduce((total, n) => total + n);
    assert.equal(sum(answers.slice(0, 30)), 5);
    assert.equal(sum(answers.slice(30, 60)), 3);
    assert.ok(answers.slice(60).every((n) => n === 4), 'the honest are let in, all of them');
    assert.equal(await countOf(db, 'global'), 5 + 3 + 40 * 4);
    const [{ n }] = await db.query("select count(*)::int as n from reclaim.rate_limits where key ~ '^(ip|email):f\\d'");
    assert.equal(n, 5 + 3, 'a refused request charges no tier');
  });

  it('a transaction that cannot see what others were granted is not granted anything', async () => {
    const [old, fresh] = sessions;
    await check(fresh, 'isolated:before', 1);
    for (const level of ['repeatable read', 'serializable']) {
      const key = `isolated:${level}`;
      await old.query(`begin isolation level ${level}`);
      await old.query('select count(*) from reclaim.rate_limits'); // from here on it sees the past
      assert.equal((await check(fresh, key, 1)).allowed, true);
      await fresh.query("update reclaim.rate_limits set bucket_time = bucket_time - '5 s'::interval where key = $1", [key]);
      const told = await check(old, key, 1).catch((fault) => fault);
      await old.query(told instanceof Error ? 'rollback' : 'commit').catch(() => old.query('rollback'));
      assert.ok(told instanceof Error || told.allowed === false, `${level}: let in`);
      assert.equal(await countOf(db, key), 1, level);
    }
  });

  it('a rolled-back transaction has counted nothing', async () => {
    await sessions[0].query('begin');
    assert.equal((await check(sessions[0], 'undone', 1)).allowed, true);
    await sessions[0].query('rollback');
    assert.equal(await countOf(db, 'undone'), 0);
    assert.equal((await check(sessions[1], 'undone', 1)).allowed, true);
  });

  it('10,000 requests a minute for ten minutes leave a table that stays bounded', async (t) => {
    const other = await cluster.database(t);
    assert.equal((await run(t, ['migrate'], { database: other })).code, 0);
    await standingClock(other);
    await other.query("insert into reclaim.rate_limit_tiers values ('global', 60), ('ip', 60), ('email', 3600)");
    // A second: one batch of 167, from 3001 clients in turn, for 20011 addresses in turn. Returns how many were let in.
    await other.query(`create function second(p_second int) returns int language plpgsql as $$
      declare
        v_keys text[] := array['global'] || (
          select array_agg('ip:' || (p_second * 167 + n) % 3001 order by n) || array_agg('email:' || (p_second * 167 + n) % 20011 order by n)
          from generate_series(1, 167) n);
        v_places int[] := (select array_agg(place order by n, place) from generate_series(1, 167) n, unnest(array[1, 1 + n, 168 + n]) place);
      begin
        update public.test_clock set now = now + '1 s'::interval;
        return (select count(*) from unnest((reclaim.admit(v_keys, array[5000] || array_fill(5, array[167]) || array_fill(3, array[167]),
          array[60] || array_fill(60, array[167]) || array_fill(3600, array[167]), v_places)).admitted) let_in where let_in);
      end $$`);
    let admitted = 0;
    for (let minute = 0; minute < 10; minute++) {
      const [{ n }] = await other.query('select sum(second(s))::int as n from generate_series($1::int, $2) s', [minute * 60, minute * 60 + 59]);
      admitted += n;
      assert.ok(n > 0 && n <= 5000, `${n} of 10,000 in a minute`);
    }
    const size = async () =>
      (
        await other.query(`select count(*) filter (where key = 'global')::int as global, count(*) filter (where key like 'ip:%')::int as clients,
          count(*) filter (where key like 'email:%')::int as addresses from reclaim.rate_limits`)
      )[0];
    const before = await size();
    assert.deepEqual([before.clients, before.addresses], [admitted, admitted], 'refusals store nothing');
    assert.ok(before.global <= 600);
    await other.query('select reclaim.cleanup_old_rate_limit_buckets()'); // as the leader does every ten minutes
    const kept = await size();
    assert.ok(kept.global <= 121, `${kept.global}: a bucket a second of two windows`);
    assert.ok(kept.clients <= 2 * 5000, `${kept.clients}: what two windows let in`);
    assert.ok(kept.addresses <= 3 * 20011, `${kept.addresses}: what an address is allowed`);
    await other.query("update public.test_clock set now = now + '3 h'::interval");
    await other.query('select reclaim.cleanup_old_rate_limit_buckets()');
    assert.deepEqual(await size(), { global: 0, clients: 0, addresses: 0 });
    t.diagnostic(`${admitted} of 100,200 let in; ${JSON.stringify(before)}, then ${JSON.stringify(kept)}`);
  });
});
