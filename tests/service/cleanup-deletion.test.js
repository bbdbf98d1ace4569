// Deleting is all or nothing: never on doubt, never whoever completed meanwhile, never twice.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout } from 'node:timers/promises';

import {
  assertDeleted,
  assertRefused,
  assertSent,
  codeOf,
  contracts,
  isThere,
  logOf,
  mailedCode,
  requestCode,
  scene,
  validate,
} from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { addCompany, addUser } from './lib/people.js';
import { completeMeanwhile, typeTwice } from './lib/races.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage, until } from './lib/stage.js';

const confirmed = '2025-10-20T14:30:00Z';
const rounds = 20;
const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

describe('nothing is deleted on doubt', () => {
  /** Each way to doubt: what makes it, and what heals it. */
  const doubts = {
    'an ownership table is missing': ['alter table companies rename to elsewhere', 'alter table elsewhere rename to companies'],
    'an ownership column is missing': ['alter table company_admins rename admin_uuid to other', 'alter table company_admins rename other to admin_uuid'],
    'an ownership table cannot be read': [
      `create view broken as select * from companies where 1 / (length(name) - length(name)) = 1;
       alter table companies rename to kept; alter view broken rename to companies`,
      'alter view companies rename to broken; alter table kept rename to companies; drop view broken',
    ],
    'the log cannot be written': [
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
       create trigger refuse before insert or update on reclaim.auth_cleanup_log for each row execute function refuse()`,
      'drop trigger refuse on reclaim.auth_cleanup_log; drop function refuse()',
    ],
    'the log of events cannot be written': [
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
       create trigger refuse before insert on reclaim.auth_cleanup_events for each row execute function refuse()`,
      'drop trigger refuse on reclaim.auth_cleanup_events; drop function refuse()',
    ],
    'the log swallows what is written': [
      `create function swallow() returns trigger language plpgsql as $$ begin return null; end $$;
       create trigger swallow before update on reclaim.auth_cleanup_log for each row execute function swallow()`,
      'drop trigger swallow on reclaim.auth_cleanup_log; drop function swallow()',
    ],
    'the log lost the row to complete': [
      'create table saved as select * from reclaim.auth_cleanup_log; delete from reclaim.auth_cleanup_log',
      'insert into reclaim.auth_cleanup_log overriding system value select * from saved; drop table saved',
    ],
    'a trigger keeps the user': [
      `create function keep() returns trigger language plpgsql as $$ begin return null; end $$;
       create trigger keep before delete on auth.users for each row execute function keep()`,
      'drop trigger keep on auth.users; drop function keep()',
    ],
  };

  for (const contract of Object.keys(contracts))
    it(`006, and all stays as it was, when … (${contract})`, async (t) => {
      const { db, provider, servers } = await scene(t, { cluster, only: [contract] });
      const server = servers[contract];
      for (const [doubt, [make, heal]] of Object.entries(doubts)) {
        const user = await addUser(db, { confirmed });
        const code = await mailedCode(server, provider, user.email);
        await db.query(make);
        if (doubt.includes('cannot be read')) await db.query('insert into kept (owner_admin_uuid) values ($1)', [user.id]);
        const answer = assertRefused(await validate(server, user.email, code), contract, '006');
        assert.equal(await isThere(db, user), true, doubt);
        assert.ok(await codeOf(db, user.email), `${doubt}: the code is still good`);
        if (!doubt.startsWith('the log')) {
          const [row] = await logOf(db, answer.json.correlationId);
          assert.deepEqual([row?.status, row?.error_code], ['failed', 'ORPHAN_CLEANUP_006'], doubt);
        }
        await db.query(heal);
        if (doubt.includes('cannot be read')) await db.query('delete from companies');
        assertDeleted(await validate(server, user.email, code), contract, user);
      }
    });

  it('step 1 asks nobody on doubt either', async (t) => {
    const { db, provider, servers } = await scene(t, { cluster, only: ['cleanup-v1'] });
    const server = servers['cleanup-v1'];
    for (const doubt of ['an ownership table is missing', 'the log cannot be written']) {
      const user = await addUser(db);
      await db.query(doubts[doubt][0]);
      assertRefused(await requestCode(server, user.email), 'cleanup-v1', '006');
      await db.query(doubts[doubt][1]);
      assert.equal(await codeOf(db, user.email), undefined);
      assertSent(await requestCode(server, user.email), 'cleanup-v1');
      await provider.mailTo(user.email);
      assert.equal(provider.attempts.filter(({ mail }) => mail.to === user.email).length, 1);
    }
  });

  it('not when row security hides the ownership tables', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    const url = await addServingRole(db, 'dim');
    const provider = await FakeProvider.start(t, 'resend');
    const server = await serve(t, { env: { ...provider.env, RECLAIM_DATABASE_URL: url, RECLAIM_MIGRATE: 'off' } });
    const user = await addUser(db, { confirmed });
    const code = await mailedCode(server, provider, user.email);
    await addCompany(db, user);
    await db.query('alter table companies enable row level security');
    assertRefused(await validate(server, user.email, code), 'cleanup-v1', '006');
    const other = await addUser(db);
    assertRefused(await requestCode(server, other.email), 'cleanup-v1', '006');
    assert.equal(await isThere(db, user), true);
    assert.deepEqual(await db.query('select 1 from companies where owner_admin_uuid = $1', [user.id]).then((rows) => rows.length), 1);
    await server.stop();
    await db.query('drop owned by dim; drop role dim');
  });

  it('not when the database goes away in the middle', async (t) => {
    const alone = await Cluster.create(t);
    const { db, provider, servers } = await scene(t, { cluster: alone, only: ['cleanup-v1'] });
    const server = servers['cleanup-v1'];
    for (const blow of [
      () => db.query(`select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'`),
      () => alone.kill9(),
    ]) {
      const user = await addUser(db);
      const code = await mailedCode(server, provider, user.email);
      await db.query(`create function linger() returns trigger language plpgsql as $$ begin perform pg_sleep(600); return old; end $$;
        create trigger linger before delete on auth.users for each row execute function linger()`);
      const answering = validate(server, user.email, code);
      await until('the deletion under way', async () => (await db.query(`select 1 from pg_stat_activity where wait_event = 'PgSleep'`)).length > 0);
      await blow();
      assertRefused(await answering, 'cleanup-v1', '006');
      if (!alone.running) await alone.start();
      await until('the database back', () => db.query('drop trigger linger on auth.users; drop function linger()').then(() => true));
      assert.equal(await isThere(db, user), true);
      await until('the code works', async () => (await validate(server, user.email, code)).status === 200);
      assert.equal(await isThere(db, user), false);
    }
  });
});

describe('an account to which another table refers', () => {
  const sentences = {
    'cleanup-v1': 'Your account has other data and cannot be deleted here. Please log in or contact support.',
    'registration-recovery': 'User has other data and cannot be deleted here. Please log in or contact support.',
  };

  /** Each way to refer: the tables, a row that refers, or one that does not stop the deletion. */
  const stopping = {
    'without an action': ['create table posts (author uuid references auth.users)', 'insert into posts values ($1)'],
    'at the end of the transaction': [
      'create table posts (author uuid references auth.users deferrable initially deferred)',
      'insert into posts values ($1)',
    ],
    'by a column that cannot be set to null': [
      'create table posts (author uuid not null references auth.users on delete set null)',
      'insert into posts values ($1)',
    ],
    'through a table whose rows go with it': [
      `create table profiles (id uuid primary key references auth.users on delete cascade);
       create table posts (profile uuid references profiles on delete restrict)`,
      'with p as (insert into profiles values ($1) returning id) insert into posts select id from p',
    ],
  };
  const letting = {
    'and its rows go with it': ['create table posts (author uuid references auth.users on delete cascade)', 'insert into posts values ($1)'],
    'for another user': ['create table posts (author uuid references auth.users)', 'insert into posts select id from auth.users where id <> $1 limit 1'],
  };
  const clear = 'drop table if exists posts, profiles';

  for (const contract of Object.keys(contracts))
    it(`is refused before a code is mailed, or after it (${contract})`, async (t) => {
      const { db, provider, servers } = await scene(t, { cluster, only: [contract] });
      const server = servers[contract];
      const assertBlocked = (answer, how) => {
        assert.deepEqual([answer.json.error?.code, answer.json.error?.message], ['ORPHAN_CLEANUP_005', sentences[contract]], how);
        assert.equal(answer.status, contracts[contract].errors['005'][0]);
      };
      for (const [how, [make, refer]] of Object.entries(stopping)) {
        const [early, late] = [await addUser(db), await addUser(db)];
        const code = await mailedCode(server, provider, late.email);
        await db.query(make);
        for (const { id } of [early, late]) await db.query(refer, [id]);
        await setTimeout(60); // an instance looks for new keys when 50 ms have passed since it last did
        const refused = await requestCode(server, early.email);
        assertBlocked(refused, how);
        assert.deepEqual(provider.mailsTo(early.email), [], how);
        const [row] = await logOf(db, refused.json.correlationId);
        assert.deepEqual([row.status, row.error_code], ['failed', 'ORPHAN_CLEANUP_005']);

        const typed = await validate(server, late.email, code);
        assertBlocked(typed, how);
        assert.equal((await logOf(db, typed.json.correlationId)).length, 1);
        assert.equal(await isThere(db, late), true);
        if (contract === 'cleanup-v1') {
          const { stdout } = await run(t, ['doctor'], { database: db });
          assert.match(stdout, /^warn {2}public.posts \(.*\) refers to .*ALTER TABLE public.posts DROP CONSTRAINT .* ON DELETE CASCADE/m, how);
          const listed = await run(t, ['orphans', '--format', 'csv'], { database: db });
          assert.match(listed.stdout, new RegExp(`^${late.id},.*,public.posts\\r?$`, 'm'), how);
        }
        await db.query(clear);
        assertDeleted(await validate(server, late.email, code), contract, late);
        assertSent(await requestCode(server, early.email), contract);
      }
      for (const [how, [make, refer]] of Object.entries(letting)) {
        const user = await addUser(db);
        await db.query(make);
        await db.query(refer, [user.id]);
        const code = await mailedCode(server, provider, user.email);
        assert.equal((await validate(server, user.email, code)).status, 200, how);
        await db.query(clear);
      }
    });

  it('is refused at the latest when the code is typed, where this role cannot look; doctor has the statement', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    const url = await addServingRole(db, 'blind');
    const provider = await FakeProvider.start(t, 'resend');
    const server = await serve(t, { env: { ...provider.env, RECLAIM_DATABASE_URL: url, RECLAIM_MIGRATE: 'off' } });
    await db.query(`create schema apart; create table apart.posts (author uuid references auth.users);
      insert into apart.posts select gen_random_uuid() from generate_series(1, 0)`);
    const lacks = [
      ['GRANT USAGE ON SCHEMA apart TO blind', ''],
      ['GRANT SELECT (author) ON apart.posts TO blind', 'alter table apart.posts enable row level security'],
      ['CREATE POLICY blind_reads ON apart.posts FOR SELECT TO blind USING (true)',
        'insert into auth.users (id) select gen_random_uuid() from generate_series(1, 40000); insert into apart.posts select id from auth.users where email is null'],
      ['CREATE INDEX CONCURRENTLY ON apart.posts (author)', ''],
    ];
    for (const [mend, next] of lacks) {
      const user = await addUser(db);
      await db.query('insert into apart.posts values ($1)', [user.id]);
      const code = await mailedCode(server, provider, user.email);
      const typed = await validate(server, user.email, code);
      assert.deepEqual([typed.json.error?.code, typed.json.error?.message], ['ORPHAN_CLEANUP_005', sentences['cleanup-v1']], mend);
      assert.equal(await isThere(db, user), true);
      const { code: ended, stdout } = await run(t, ['doctor'], { database: url });
      assert.ok(stdout.includes(`unless: ${mend}\n`), `${mend}\n${stdout}`);
      assert.equal(ended, 0, stdout);
      await db.query(mend);
      if (next) for (const sql of next.split('; ')) await db.query(sql);
    }
    const user = await addUser(db);
    await db.query('insert into apart.posts values ($1)', [user.id]);
    assertRefusedAs(await requestCode(server, user.email));
    assert.deepEqual(provider.mailsTo(user.email), []);

    // Named as ownership it is no longer anybody's surprise.
    const env = { RECLAIM_OWNERSHIP: 'companies.owner_admin_uuid,company_admins.admin_uuid,apart.posts.author' };
    assert.doesNotMatch((await run(t, ['doctor'], { database: url, env })).stdout, /refers to/);
    await server.stop();
    await db.query('drop owned by blind; drop role blind');

    function assertRefusedAs(answer) {
      assert.equal(answer.json.error?.message, sentences['cleanup-v1'], answer.body);
    }
  });
});

describe('races', () => {
  const suite = new Stage();
  let world;
  before(async () => {
    const { db, provider, servers } = await scene(suite, { cluster, only: ['cleanup-v1'] });
    servers.second = await serve(suite, { database: db, env: provider.env });
    world = { db, provider, servers, session: await db.session(suite) };
  });
  after(() => suite.end());

  it(`two who type the right code delete once, ${rounds} rounds`, async () => {
    for (let round = 0; round < rounds; round++) await typeTwice(world, 'cleanup-v1', 2 + (round % 3));
  });

  for (const [name, ownership] of [
    ['companies', 'insert into companies (owner_admin_uuid) values ($1)'],
    ['company_admins', 'insert into company_admins (admin_uuid, company_id) select $1, id from companies where owner_admin_uuid is not null limit 1'],
  ])
    it(`whoever completes in ${name} is never deleted, ${rounds} rounds`, async () => {
      await addCompany(world.db, await addUser(world.db));
      for (let round = 0; round < rounds; round++) {
        const { completed, outcome } = await completeMeanwhile(world, { ownership, waitMs: 12 });
        assert.equal(completed, outcome === '005', 'either the registration completes, or the orphan is deleted');
      }
    });

  it(`nor without a foreign key, ${rounds} rounds`, async (t) => {
    const own = await cluster.database(t);
    await own.query('alter table companies drop constraint companies_owner_admin_uuid_fkey');
    const provider = await FakeProvider.start(t, 'resend');
    const servers = { one: await serve(t, { database: own, env: provider.env }) };
    const session = await own.session(t);
    for (let round = 0; round < rounds; round++) {
      const { user, completed, outcome } = await completeMeanwhile({ db: own, provider, servers, session }, { ownership: 'insert into companies (owner_admin_uuid) values ($1)', waitMs: 12 });
      assert.equal(completed, true);
      // Without the key nothing keeps a registration from completing for a user who was deleted before it began.
      if (outcome === 'deleted') assert.equal(await isThere(own, user), false);
    }
    await servers.one.stop();
  });

  /** The registration has its row and has not committed when the right code is typed. */
  async function assertWaitedFor(t, { key, isolation }) {
    const own = await cluster.database(t);
    await own.query(`alter database "${own.name}" set default_transaction_isolation = '${isolation}'`);
    if (!key) await own.query('alter table companies drop constraint companies_owner_admin_uuid_fkey');
    const provider = await FakeProvider.start(t, 'resend');
    const server = await serve(t, { database: own, env: provider.env });
    const user = await addUser(own, { confirmed });
    const code = await mailedCode(server, provider, user.email);
    const session = await own.session(t);
    await session.query('begin isolation level read committed');
    await session.query('insert into companies (owner_admin_uuid) values ($1)', [user.id]);
    const answering = validate(server, user.email, code);
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until('the deletion waiting', async () => (await own.query(waiting)).length > 0);
    await session.query('commit');
    const first = await answering; // a registration that took too long to commit: 009
    if (!first.json.error.code.endsWith('009')) assertRefused(first, 'cleanup-v1', '005');
    assertRefused(await validate(server, user.email, code), 'cleanup-v1', '005');
    assert.equal(await isThere(own, user), true);
    await server.stop();
  }

  for (const key of [true, false])
    for (const isolation of ['read committed', 'repeatable read', 'serializable']) {
      const name = `a registration under way is waited for ${key ? 'with' : 'without'} a foreign key, transactions being ${isolation} by default`;
      it(name, (t) => assertWaitedFor(t, { key, isolation }));
    }
});
