// The clean-up under fault: repeated races, and servers killed with -9 between commit and delivery. ROUNDS rounds,
// times ten for the races; SEED determines the times.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertSent, codeOf, hashOf, isThere, logOf, mailedCode, requestCode, scene, validate } from '../service/lib/cleanup.js';
import { FakeProvider } from '../service/lib/fake-provider.js';
import { addCompany, addUser } from '../service/lib/people.js';
import { completeMeanwhile, typeTwice } from '../service/lib/races.js';
import { seeded } from '../service/lib/random.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, Stage, until } from '../service/lib/stage.js';

const rounds = Number(process.env.ROUNDS ?? 20);
const races = rounds * 10;
const random = seeded(Number(process.env.SEED ?? 20251027));

const stage = new Stage();
let cluster, world;
before(async () => {
  const { cluster: made, db, provider, servers } = await scene(stage, { only: ['cleanup-v1'] });
  servers.second = await serve(stage, { database: db, env: provider.env });
  cluster = made;
  world = { db, provider, servers, session: await db.session(stage) };
});
after(() => stage.end());

const tally = (t, outcomes) => {
  const counts = {};
  for (const outcome of outcomes) counts[outcome] = (counts[outcome] ?? 0) + 1;
  t.diagnostic(JSON.stringify(counts));
};

describe(`races, ${races} rounds`, () => {
  it('the right code typed several times at once, at two instances, deletes once', async () => {
    for (let round = 0; round < races; round++) await typeTwice(world, 'cleanup-v1', 2 + Math.floor(random() * 3));
  });

  const ownerships = {
    companies: 'insert into companies (owner_admin_uuid) values ($1)',
    company_admins: 'insert into company_admins (admin_uuid, company_id) select $1, id from companies limit 1',
  };

  for (const [table, ownership] of Object.entries(ownerships))
    it(`a registration that completes in ${table} meanwhile is never deleted`, async (t) => {
      await addCompany(world.db, await addUser(world.db));
      const outcomes = [];
      for (let round = 0; round < races; round++) {
        const { completed, outcome } = await completeMeanwhile(world, { ownership, waitMs: 10, random });
        assert.equal(completed, outcome === '005');
        outcomes.push(outcome);
      }
      tally(t, outcomes);
    });

  it('nor without a foreign key: whoever has a company before the user is deleted stays', async (t) => {
    const own = await cluster.database(t);
    await own.query('alter table companies drop constraint companies_owner_admin_uuid_fkey');
    // Records at each deletion whether a committed company existed.
    await own.query(
      `create table wronged (id uuid);
       create function note() returns trigger language plpgsql as $$ begin
         insert into wronged select old.id where exists (select 1 from companies where owner_admin_uuid = old.id); return old; end $$;
       create trigger note before delete on auth.users for each row execute function note()`,
    );
    const provider = await FakeProvider.start(t, 'resend');
    const servers = { one: await serve(t, { database: own, env: provider.env }) };
    const session = await own.session(t);
    const outcomes = [];
    for (let round = 0; round < races; round++) {
      const { outcome } = await completeMeanwhile({ db: own, provider, servers, session }, { ownership: ownerships.companies, waitMs: 10, random });
      outcomes.push(outcome);
    }
    assert.deepEqual(await own.query('select id from wronged'), []);
    tally(t, outcomes);
    await servers.one.withoutConnections();
    await servers.one.stop();
  });
});

describe(`kills, ${rounds} rounds`, () => {
  it('kill -9 at any moment of step 1: what was promised arrives, and every copy’s code works', async (t) => {
    const { db, provider } = world;
    const outcomes = [];
    for (let round = 0; round < rounds; round++) {
      const doomed = await serve(t, { database: db, env: provider.env });
      provider.answer({ delayMs: Math.floor(random() * 60) });
      const user = await addUser(db);
      const asking = requestCode(doomed, user.email).catch(() => null);
      await pause(random() * 60);
      await doomed.kill9();
      const answer = await asking;
      provider.answer();
      await db.query('update reclaim.work_items set leased_until = clock_timestamp() where leased_until is not null');
      const stored = await codeOf(db, user.email);
      if (answer) assert.ok(stored, 'a success that was told has its code');
      if (stored) {
        const { code } = await provider.mailTo(user.email);
        await until('nothing left to do', async () => (await db.query('select 1 from reclaim.work_items')).length === 0);
        const copies = provider.attempts.filter(({ mail }) => mail.to === user.email).map((attempt) => attempt.code);
        assert.deepEqual([...new Set(copies)], [code], 'all copies are alike');
        assertDeleted(await validate(world.servers.second, user.email, code), 'cleanup-v1', user);
      }
      outcomes.push(answer ? 'told' : stored ? 'promised' : 'nothing');
    }
    tally(t, outcomes);
  });

  it('kill -9 at any moment of step 2: the user, the code and the log always tell the same', async (t) => {
    const { db, provider } = world;
    const outcomes = [];
    for (let round = 0; round < rounds; round++) {
      const others = await sessions(db);
      const doomed = await serve(t, { database: db, env: provider.env });
      const user = await addUser(db);
      const code = await mailedCode(doomed, provider, user.email);
      const own = (await sessions(db)).filter((pid) => !others.includes(pid));
      const typing = validate(doomed, user.email, code).catch(() => null);
      await pause(random() * 25);
      await doomed.kill9();
      const answer = await typing;
      // Between its two transactions step 2 holds no lock.
      await until('its sessions over', async () => !(await sessions(db)).some((pid) => own.includes(pid)));
      const there = await isThere(db, user);
      const [{ status }] = await db.query('select status from reclaim.auth_cleanup_log where email_hash = $1', [hashOf(user.email)]);
      assert.deepEqual([Boolean(await codeOf(db, user.email)), status], there ? [true, 'pending'] : [false, 'completed']);
      if (answer) assert.equal(there, false, 'a deletion that was told has happened');
      outcomes.push(answer ? 'told' : there ? 'undone' : 'done');
      if (there) assertDeleted(await validate(world.servers.second, user.email, code), 'cleanup-v1', user);
    }
    tally(t, outcomes);
  });

  it('a mail promised by an instance that was killed is taken over within its lease, untouched by anyone', async (t) => {
    const { db, provider } = world;
    const silent = await FakeProvider.start(t, 'resend');
    silent.answer({ silent: true });
    const doomed = await serve(t, { database: db, env: silent.env });
    const user = await addUser(db);
    const answer = assertSent(await requestCode(doomed, user.email), 'cleanup-v1');
    await until('the first try', () => silent.attempts.length === 1);
    await doomed.kill9();
    const killedAt = performance.now();
    const copy = await provider.mailTo(user.email, { deadlineMs: 120_000 });
    t.diagnostic(`taken over after ${Math.round((performance.now() - killedAt) / 1000)} s`);
    assert.equal(copy.code, silent.attempts[0].code);
    assert.deepEqual((await logOf(db, answer.json.correlationId)).map(({ status }) => status), ['pending']);
    assertDeleted(await validate(world.servers.second, user.email, copy.code), 'cleanup-v1', user);
  });
});

/** The server processes with a session in this database. */
const sessions = async (db) => (await db.query('select pid from pg_stat_activity where datname = current_database()')).map(({ pid }) => pid);
