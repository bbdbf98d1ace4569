// Limits over HTTP: who is let in, how often, and what everyone is told about it.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { post, probe, probePath, request } from './lib/http.js';
import { behindProxy, conclusively, countOf, from, ipKey, limitsOf, newClient, waitWords } from './lib/limits.js';
import { addUser, address, clientAddress } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { pause, Stage, stageOf, until } from './lib/stage.js';

const statusesOf = (answers) => answers.map(({ status }) => status);
const admitted = (answers) => statusesOf(answers).filter((status) => status === 200).length;
const refused = (answers) => statusesOf(answers).filter((status) => status === 429).length;

/** The headers, held against the clock of before and after the request. */
async function timed(ask) {
  const before = Math.floor(Date.now() / 1000);
  const answer = await ask();
  const limits = limitsOf(answer);
  const now = limits.reset - limits.seconds; // what the server took for the time, give or take the rounding of both
  assert.ok(before <= now && now <= Math.ceil(Date.now() / 1000), `${limits.reset} is not ${limits.seconds} s from now`);
  return { answer, limits };
}

describe('limits over HTTP', () => {
  const stage = new Stage();
  let cluster, db;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
  });
  after(() => stage.end());

  describe('with two instances and a limit of 5 an hour', () => {
    const servers = [];
    before(async () => {
      for (let n = 0; n < 2; n++) servers.push(await serve(stage, { database: db, env: behindProxy('5/3600') }));
    });

    it('of a hundred callers at once exactly five are let in, twenty times out of twenty', async () => {
      for (let round = 0; round < 20; round++) {
        const client = newClient();
        const answers = await Promise.all(Array.from({ length: 100 }, (_, n) => probe(servers[n % 2], address('nobody'), from(client))));
        assert.deepEqual([admitted(answers), refused(answers)], [5, 95], `round ${round}`);
        assert.equal(await countOf(db, ipKey('probe', client)), 5);
      }
    });

    it('what one instance counted the other knows', async () => {
      const client = newClient();
      for (const [n, server] of [...servers, ...servers].entries()) {
        assert.equal(limitsOf(await probe(server, address('nobody'), from(client))).remaining, 4 - n);
      }
    });

    it('a flood from one client leaves all others their own', async () => {
      const flood = newClient();
      const others = Array.from({ length: 10 }, newClient);
      const answers = await Promise.all([
        ...Array.from({ length: 150 }, (_, n) => probe(servers[n % 2], address('nobody'), from(flood))),
        ...others.flatMap((client) => servers.map((server) => probe(server, address('nobody'), from(client)))),
      ]);
      assert.equal(admitted(answers.slice(0, 150)), 5);
      assert.equal(admitted(answers.slice(150)), 20);
      for (const client of others) assert.equal(await countOf(db, ipKey('probe', client)), 2);
      assert.equal(await countOf(db, ipKey('probe', flood)), 5);
    });

    it('the stored keys are keyed digests, and nothing else is stored', async () => {
      const rows = await db.query('select distinct key from reclaim.rate_limits');
      assert.ok(rows.length > 20);
      for (const { key } of rows) assert.match(key, /^probe(-site)?:[0-9a-f]{64}$/);
    });
  });

  describe('headers', () => {
    let server;
    before(async () => {
      server = await serve(stage, { database: db, env: behindProxy('3/3600') });
    });

    it('count down, on good and malformed requests alike, and tell on a refusal when to come back', async () => {
      const user = await addUser(db);
      const client = from(newClient());
      const asked = [
        [() => probe(server, user.email, client), 200, 2],
        [() => post(server, '{"email":', client), 400, 1],
        [() => post(server, '{"email":"nonsense"}', client), 400, 0],
        [() => probe(server, user.email, client), 429, 0],
        [() => post(server, '{"email":', client), 429, 0],
        [() => probe(server, user.email, client), 429, 0],
      ];
      let last = Infinity;
      for (const [ask, status, remaining] of asked) {
        const { answer, limits } = await timed(ask);
        assert.equal(answer.status, status);
        assert.deepEqual([limits.tier, limits.limit, limits.remaining], ['probe', 3, remaining]);
        assert.equal(limits.policy, '"probe";q=3;w=3600, "probe-site";q=30;w=3600');
        assert.ok(limits.seconds >= 1 && limits.seconds <= 3600, `${limits.seconds} s of a window of 3600`);
        assert.ok(limits.seconds <= last, 'the wait only grows shorter');
        last = limits.seconds;
        if (status !== 429) continue;
        assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_003');
        assert.equal(answer.json.error.httpStatus, 429);
        assert.equal(answer.json.error.retryAfter, limits.seconds);
        assert.match(answer.json.error.message, waitWords(limits.seconds));
      }
    });

    it('a correlation id of the caller comes back with a refusal', async () => {
      const client = from(newClient());
      const id = '3f2b8f7e-5c1a-4b7e-9d2e-6a1f0c9b8d7a';
      for (let n = 0; n < 3; n++) await probe(server, address('nobody'), client);
      const answer = await post(server, { email: address('nobody'), correlationId: id }, client);
      assert.equal(answer.status, 429);
      assert.equal(answer.json.correlationId, id);
      assert.equal(answer.headers['x-correlation-id'], id);
    });

    it('preflights, wrong methods and bodies too large are not counted', async () => {
      const client = newClient();
      const { headers } = from(client);
      const free = [
        await request(server, { method: 'OPTIONS', path: probePath, headers: { ...headers, Origin: 'https://app.example.com', 'Access-Control-Request-Method': 'POST' } }),
        await request(server, { method: 'GET', path: probePath, headers }),
        await post(server, 'x'.repeat(17 * 1024), { headers }),
      ];
      assert.deepEqual(statusesOf(free), [204, 405, 413]);
      assert.equal(await countOf(db, ipKey('probe', client)), 0);
      assert.equal(limitsOf(await probe(server, address('nobody'), { headers })).remaining, 2);
    });

    it('a page may read them', async () => {
      const answer = await probe(server, address('nobody'), { headers: { ...from(newClient()).headers, Origin: 'https://app.example.com' } });
      const exposed = answer.headers['access-control-expose-headers'].split(', ');
      for (const name of ['retry-after', 'x-ratelimit-limit', 'x-ratelimit-remaining', 'x-ratelimit-reset', 'ratelimit-policy', 'ratelimit'])
        assert.ok(exposed.includes(name), name);
    });
  });

  describe('sentences', () => {
    const cases = [
      [undefined, '1/30', /^Too many requests\. Please wait \d+ seconds before trying again\.$/],
      [undefined, '1/7200', /^Too many requests\. Please wait 120 minutes before trying again\.$/],
      ['registration-recovery', '1/30', /^Rate limit exceeded\. Too many requests from this IP address\. Please try again later\.$/],
    ];
    for (const [contract, limit, sentence] of cases)
      it(`${contract ?? 'cleanup-v1'} at ${limit} has its document’s sentence`, async (t) => {
        const server = await serve(t, { database: db, env: behindProxy(limit, { RECLAIM_CONTRACT: contract }) });
        const client = from(newClient());
        await conclusively(async () => {
          await probe(server, address('nobody'), client);
          const { answer, limits } = await timed(() => probe(server, address('nobody'), client));
          if (answer.status !== 429 || limits.seconds < 2) return false; // the window went by
          assert.match(answer.json.error.message, sentence);
          if (!contract) assert.match(answer.json.error.message, waitWords(limits.seconds));
          return true;
        });
        await server.stop();
      });
  });

  it('whoever waits as long as told is let in', async (t) => {
    const servers = [await serve(t, { database: db, env: behindProxy('2/1') }), await serve(t, { database: db, env: behindProxy('2/1') })];
    let refusals = 0;
    const patient = async (n) => {
      await pause(n * 37); // all over the second
      const client = from(newClient());
      for (let step = 0; step < 6; step++) {
        const answer = await probe(servers[step % 2], address('nobody'), client);
        if (answer.status === 200) continue;
        refusals++;
        await pause(limitsOf(answer).seconds * 1000);
        const again = await probe(servers[(n + step) % 2], address('nobody'), client);
        assert.equal(again.status, 200, `told to wait ${limitsOf(answer).seconds} s, then refused: ${again.body}`);
      }
    };
    await Promise.all(Array.from({ length: 27 }, (_, n) => patient(n)));
    assert.ok(refusals > 0);
    t.diagnostic(`${refusals} refusals waited out`);
  });

  for (const level of ['read committed', 'repeatable read', 'serializable'])
    it(`what another instance granted a moment ago counts, in a database whose standard isolation is ${level} too`, async (t) => {
      const strict = await cluster.database(t);
      await strict.query(`alter database "${strict.name}" set default_transaction_isolation to '${level}'`);
      const server = await serve(t, { database: strict, env: behindProxy('5/3600') });
      const session = await strict.session(t);
      await conclusively(async () => {
        const client = newClient();
        await session.query('begin transaction isolation level read committed');
        await session.query('select pg_advisory_xact_lock(1919247216, reclaim.limit_stripe($1))', [ipKey('probe', client)]); // the other instance, deciding
        let answered = false;
        const asked = probe(server, address('nobody'), from(client)).finally(() => (answered = true));
        await until('the decision waiting', async () => {
          const [{ n }] = await strict.query("select count(*)::int as n from pg_locks where locktype = 'advisory' and not granted");
          return n > 0 || answered;
        });
        await session.query("insert into reclaim.rate_limits values ($1, date_trunc('second', clock_timestamp()) - '5 s'::interval, 5)", [ipKey('probe', client)]);
        await session.query('commit');
        const { status } = await asked;
        if (status === 503) return false; // it waited too long
        assert.equal(status, 429, 'a sixth of five');
        return true;
      });
    });

  it('off limits nothing, counts nothing and says nothing', async (t) => {
    const server = await serve(t, { database: db, env: behindProxy('off') });
    const client = newClient();
    const answers = await Promise.all(Array.from({ length: 100 }, () => probe(server, address('nobody'), from(client))));
    assert.equal(admitted(answers), 100);
    for (const answer of answers) assert.equal(limitsOf(answer), null);
    assert.equal((await post(server, 'x', from(client))).status, 400);
    assert.equal(await countOf(db, ipKey('probe', client)), 0);
  });

  it('the standard is 30 a minute for each peer', async (t) => {
    const server = await serve(t, { database: db, env: { RECLAIM_LIMIT_PROBE: undefined } });
    const { limits } = await timed(() => probe(server, address('nobody')));
    assert.deepEqual([limits.limit, limits.remaining, limits.policy], [30, 29, '"probe";q=30;w=60']);
    assert.equal(await countOf(db, ipKey('probe', clientAddress)), 1);
  });

  describe('SIGHUP', () => {
    async function serveWith(t, limit) {
      const file = path.join(temporaryDirectory(stageOf(t)), 'reclaim.ini');
      const write = (text) => fs.writeFileSync(file, `RECLAIM_LIMIT_PROBE=${text}\n`, { mode: 0o600 });
      write(limit);
      const server = await serve(t, { database: db, args: ['--config', file], env: behindProxy(undefined) });
      return {
        server,
        reload: async (fresh) => {
          const before = server.events('settings reloaded').length;
          write(fresh);
          server.signal('SIGHUP');
          await until('the settings read', () => server.events('settings reloaded').length > before);
        },
      };
    }

    it('brings in new limits at once, for what is refused from memory too; what was counted stays counted', async (t) => {
      const { server, reload } = await serveWith(t, '1/3600');
      const client = newClient();
      const ask = () => probe(server, address('nobody'), from(client));
      assert.deepEqual(statusesOf([await ask(), await ask(), await ask()]), [200, 429, 429]);

      await reload('3/3600');
      const raised = [await ask(), await ask(), await ask()];
      assert.deepEqual(statusesOf(raised), [200, 200, 429]);
      assert.deepEqual(raised.map((answer) => limitsOf(answer).remaining), [1, 0, 0]);

      await reload('off');
      assert.equal(limitsOf(await ask()), null);

      await reload('2/7200');
      const lowered = await ask();
      assert.equal(lowered.status, 429);
      assert.equal(limitsOf(lowered).limit, 2);
      assert.ok(limitsOf(lowered).seconds > 3600, 'the longer window counts');
      assert.equal(await countOf(db, ipKey('probe', client)), 3);
    });

    it('between two requests of one batch spoils neither', async (t) => {
      const { server, reload } = await serveWith(t, '3/3600');
      await db.query(`create table public.stalled (); create or replace function reclaim.limit_clock() returns timestamptz language plpgsql volatile as $$
        begin
          while exists (select from public.stalled) loop perform pg_sleep(0.01); end loop;
          return clock_timestamp();
        end $$`);
      await conclusively(async () => {
        await reload('3/3600');
        const client = from(newClient());
        await db.query('insert into public.stalled default values');
        const first = probe(server, address('nobody'), from(newClient()));
        await until('a batch that waits', async () => {
          const [{ n }] = await db.query("select count(*)::int as n from pg_stat_activity where wait_event = 'PgSleep'");
          return n > 0;
        });
        const before = probe(server, address('nobody'), client);
        await pause(100);
        await reload('5/3600');
        const behind = probe(server, address('nobody'), client);
        await pause(100);
        await db.query('delete from public.stalled');
        if ((await first).status === 503) return false; // it waited too long
        const both = [await before, await behind];
        for (const answer of both) assert.equal(answer.status, 200, answer.body);
        const counted = both.map((answer) => limitsOf(answer).limit - limitsOf(answer).remaining);
        if (limitsOf(both[0]).limit === 5 && counted[0] === 2) return false; // it came after the other
        assert.deepEqual(counted, [1, 2]);
        assert.equal(limitsOf(both[1]).limit, 5);
        return true;
      });
    });
  });
});
