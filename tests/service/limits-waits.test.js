// How long somebody refused is asked to wait: never longer than the window, never shorter than it takes. Most of it on a
// clock of the database that stands until it is moved.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { behindProxy, conclusively, from, ipKey, limitsOf, newClient, standingClock, waitWords } from './lib/limits.js';
import { address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

describe('waits', () => {
  const stage = new Stage();
  let cluster, db, move;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
    move = await standingClock(db);
    await move('0.7 s'); // within a second: no bucket begins here
  });
  after(() => stage.end());

  const ask = (server, client) => probe(server, address('nobody'), from(client));
  const serveWith = (t, limit, env = {}) => serve(t, { database: db, env: behindProxy(limit, env) });

  for (const [requests, window] of [[1, 1], [1, 60], [3, 60], [101, 60], [250, 7], [2, 3600], [5, 86400]])
    it(`somebody refused is never asked to wait longer than the window of ${requests}/${window}, and obeying admits`, async (t) => {
      const [server, other] = [await serveWith(t, `${requests}/${window}`), await serveWith(t, `${requests}/${window}`)];
      const client = newClient();
      for (const answer of await Promise.all(Array.from({ length: requests }, () => ask(server, client)))) {
        assert.equal(answer.status, 200);
        assert.equal(limitsOf(answer).seconds, window, 'the oldest leaves a window from now');
      }
      const refused = await ask(server, client);
      assert.equal(refused.status, 429, refused.body);
      const { seconds } = limitsOf(refused); // as in Retry-After and t
      assert.ok(seconds >= 1 && seconds <= window, `${seconds} s`);
      assert.equal(refused.json.error.retryAfter, seconds);
      await move(`${window} s`);
      assert.equal((await ask(other, client)).status, 200);
    });

  for (const [window, words] of [[60, '60 seconds'], [3600, '60 minutes'], [900, '15 minutes'], [30, '30 seconds']])
    it(`the sentence for a full window of ${window} s says ${words}`, async (t) => {
      const [server, other] = [await serveWith(t, `1/${window}`), await serveWith(t, `1/${window}`)];
      const client = newClient();
      assert.equal((await ask(server, client)).status, 200);
      const refused = await ask(other, client); // it has not seen the client yet, and so the database says how long
      assert.equal(limitsOf(refused).seconds, window);
      assert.ok(refused.json.error.message.includes(words), refused.json.error.message);
      assert.match(refused.json.error.message, waitWords(window));
    });

  it('a clock of the database that is set back makes nobody wait longer than the window, and obeying admits', async (t) => {
    const servers = [await serveWith(t, '1/60'), await serveWith(t, '1/60'), await serveWith(t, '1/60')];
    const client = newClient();
    assert.equal((await ask(servers[0], client)).status, 200);
    await move('-10 minutes');
    const refused = await ask(servers[1], client);
    assert.deepEqual([refused.status, limitsOf(refused).seconds], [429, 60]);
    await move('60 s');
    assert.equal((await ask(servers[2], client)).status, 200);
  });

  it('a row written by another program without last_at counts from its bucket_time', async (t) => {
    const [server, other] = [await serveWith(t, '2/60'), await serveWith(t, '2/60')];
    const client = newClient();
    await db.query("insert into reclaim.rate_limits (key, bucket_time, count) select $1, now - '20 s'::interval, 2 from public.test_clock", [ipKey('probe', client)]);
    const shown = await run(t, ['limits', 'show', `ip:${client}`], { database: db, env: { RECLAIM_LIMIT_PROBE: '2/60' } });
    assert.match(shown.stdout, /^probe +2 of 2 in 60 s, 0 left, one more in 40 s$/m, shown.stderr);
    const refused = await ask(server, client);
    assert.deepEqual([refused.status, limitsOf(refused).seconds], [429, 40]);
    await move('40 s');
    assert.equal((await ask(other, client)).status, 200);
  });

  it('`reclaim limits show` names no wait longer than the window', async (t) => {
    const server = await serveWith(t, '2/3600');
    const client = newClient();
    for (let n = 0; n < 2; n++) assert.equal((await ask(server, client)).status, 200);
    const show = async () => (await run(t, ['limits', 'show', `ip:${client}`], { database: db, env: { RECLAIM_LIMIT_PROBE: '2/3600' } })).stdout;
    assert.match(await show(), /^probe +2 of 2 in 3600 s, 0 left, one more in 3600 s$/m);
    await move('-5 s');
    assert.match(await show(), /^probe +2 of 2 in 3600 s, 0 left, one more in 3600 s$/m);
    await move('5 s');
  });

  it('a reset time does not lie in the past when a held answer leaves', async (t) => {
    const server = await serveWith(t, '1/1', { RECLAIM_PROBE_HOLD_MS: '2500' });
    await conclusively(async () => {
      const client = newClient();
      const answers = await Promise.all(Array.from({ length: 4 }, () => ask(server, client)));
      if (answers.every(({ status }) => status !== 429)) return false; // the window went by
      for (const answer of answers)
        assert.ok(limitsOf(answer).reset * 1000 >= Date.parse(answer.headers.date), `${limitsOf(answer).reset} at ${answer.headers.date}`);
      return true;
    });
  });

  it('no window of any two seconds has more than its limit, whoever asks and however', async (t) => {
    const other = await cluster.database(t);
    assert.equal((await run(t, ['migrate'], { database: other })).code, 0);
    await other.query(`create table public.admissions (at timestamptz, n int);
      create function public.note() returns trigger language plpgsql as $$
        begin
          insert into public.admissions values (new.last_at, new.count - case tg_op when 'UPDATE' then old.count else 0 end);
          return null;
        end $$;
      create trigger note after insert or update on reclaim.rate_limits for each row execute function public.note()`);
    const [most, window] = [7, 2];
    const sessions = await Promise.all(Array.from({ length: 12 }, () => other.session(t)));
    let admitted = 0;
    await Promise.all(
      sessions.map(async (session, n) => {
        while (admitted < 5 * most) {
          const { rows } = await session.query(
            n % 2
              ? 'select allowed::int as n, retry_after as wait from reclaim.check_rate_limit($1, $2, $3)'
              : `select cardinality(array_positions(admitted, true)) as n, ceil(waits_us[1] / 1000000.0)::int as wait
                 from reclaim.admit(array[$1::text], array[$2::int], array[$3::int], array[1, 0, 0, 1, 0, 0])`,
            ['ip:shared', most, window],
          );
          admitted += rows[0].n;
          assert.ok(rows[0].wait <= window, `told to wait ${rows[0].wait} s`);
          await new Promise((resolve) => setTimeout(resolve, 20 + 3 * n));
        }
      }),
    );
    const [{ many }] = await other.query(
      `select max(within)::int as many from (
         select (select sum(b.n) from public.admissions b where b.at >= a.at and b.at < a.at + $1 * '1 s'::interval) as within
         from public.admissions a) counted`,
      [window],
    );
    assert.equal(many, most);
  });
});
