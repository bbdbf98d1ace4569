// One address, one clean-up at a time: Reclaim's own, or whoever holds the lock.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomInt } from 'node:crypto';
import { after, before, describe, it } from 'node:test';
import pg from 'pg';

import { assertDeleted, assertLogged, assertRefused, assertSent, codeOf, contracts, mailedCode, requestCode, scene, validate, wrong } from './lib/cleanup.js';
import { addUser, address, domain } from './lib/people.js';
import { Pooler } from './lib/pgbouncer.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';
import { keepEnded } from './lib/watchdog.js';

const stage = new Stage();
let cluster, db, provider, servers, server;
before(async () => {
  ({ cluster, db, provider, servers } = await scene(stage));
  server = servers['cleanup-v1'];
});
after(() => stage.end());

/** White space off both ends and ASCII in lower case: what program and database must agree on. */
const normalised = (email) => email.replace(/^[ \t-\r]+|[ \t-\r]+$/g, '').replace(/[A-Z]/g, (letter) => letter.toLowerCase());
const lockId = (text) => createHash('sha256').update(text).digest().readBigInt64BE(0);

const acquire = async (session, email) => (await session.query('select reclaim.acquire_cleanup_lock($1) as mine', [email])).rows[0].mine;
const release = async (session, email) => (await session.query('select reclaim.release_cleanup_lock($1) as was', [email])).rows[0].was;

/** The advisory locks on an address, put together from the two halves of their key. */
const held = (email) =>
  db.query(
    `select pid from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
     and database = (select oid from pg_database where datname = current_database())
     and ((classid::bigint << 32) | objid::bigint) = $1::bigint`,
    [String(lockId(normalised(email)))],
  );

/** All on addresses: those with one number. */
const heldAtAll = async () =>
  (
    await db.query(
      `select count(*)::int as n from pg_locks where locktype = 'advisory'
       and database = (select oid from pg_database where datname = current_database())
       and objsubid = 1`,
    )
  )[0].n;

const waiting = () => db.query(`select pid from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`);

/** A deletion that waits in its transaction, until `finish`. */
async function deletionUnderWay(t, at = server) {
  const user = await addUser(db);
  const code = await mailedCode(server, provider, user.email);
  const holder = await db.session(t);
  await holder.query('begin');
  await holder.query('select 1 from auth.users where id = $1 for update', [user.id]);
  const answering = validate(at, user.email, code);
  await until('the deletion waiting for the row', async () => (await waiting()).length === 1);
  return { user, code, answering, finish: () => holder.query('rollback') };
}

describe('the lock of an address', () => {
  for (const contract of Object.keys(contracts))
    it(`keeps Reclaim away at once while another session holds it (${contract})`, async (t) => {
      const user = await addUser(db);
      const code = await mailedCode(servers[contract], provider, user.email);
      const operator = await db.session(t);
      assert.equal(await acquire(operator, ` ${user.email.toUpperCase()}\t`), true);
      const asked = assertRefused(await requestCode(servers[contract], user.email), contract, '009');
      await assertLogged(db, asked, user.email, 'request-code', '009');
      const typed = assertRefused(await validate(servers[contract], user.email, code), contract, '009');
      await assertLogged(db, typed, user.email, 'validate-and-cleanup', '009');
      assertRefused(await validate(servers[contract], user.email, wrong(code)), contract, '009');
      assert.equal((await codeOf(db, user.email)).tries, 0, 'a try is not used up by waiting one’s turn');
      assert.equal(await release(operator, user.email), true);
      assertDeleted(await validate(servers[contract], user.email, code), contract, user);
    });

  it('is held by Reclaim while it works, and by nobody afterwards', async (t) => {
    const operator = await db.session(t);
    const { user, code, answering, finish } = await deletionUnderWay(t);
    assert.equal(await acquire(operator, user.email), false);
    assert.equal((await held(user.email)).length, 1);
    for (const instance of Object.values(servers)) assert.equal((await requestCode(instance, user.email)).json.error.code, 'ORPHAN_CLEANUP_009');
    assertRefused(await validate(server, user.email, code), 'cleanup-v1', '009');
    await finish();
    assertDeleted(await answering, 'cleanup-v1', user);
    assert.equal(await acquire(operator, user.email), true);
    await release(operator, user.email);
  });

  it('is another’s for every other address', async (t) => {
    const operator = await db.session(t);
    const [one, other] = [await addUser(db), await addUser(db)];
    await acquire(operator, one.email);
    assertSent(await requestCode(server, other.email), 'cleanup-v1');
  });

  it('leaves nothing behind, whatever became of many requests', async () => {
    const users = await Promise.all(Array.from({ length: 20 }, () => addUser(db)));
    await Promise.all(
      Array.from({ length: 200 }, (_, n) => {
        const { email } = users[n % users.length];
        return [() => requestCode(server, email), () => validate(server, email, 'ABCD-EFGH'), () => requestCode(server, address('nobody'))][n % 3]();
      }),
    );
    assert.equal(await heldAtAll(), 0);
  });

  it('leaves nothing behind a transaction pooler either', async (t) => {
    const pooler = await Pooler.start(t, cluster, { poolSize: 3 });
    const pooled = await serve(t, { env: { ...provider.env, RECLAIM_DATABASE_URL: pooler.url(db), RECLAIM_DATABASE_DIRECT_URL: db.url } });
    const operator = await db.session(t);
    const users = await Promise.all(Array.from({ length: 30 }, () => addUser(db)));
    const codes = await Promise.all(users.map(({ email }) => mailedCode(pooled, provider, email)));
    await acquire(operator, users[0].email);
    const answers = await Promise.all(users.map(({ email }, n) => validate(pooled, email, codes[n])));
    assertRefused(answers[0], 'cleanup-v1', '009');
    for (const [n, user] of users.entries()) if (n > 0) assertDeleted(answers[n], 'cleanup-v1', user);
    assert.equal(await heldAtAll(), 1);
    await release(operator, users[0].email);
    assert.equal(await heldAtAll(), 0);
    assertDeleted(await validate(pooled, users[0].email, codes[0]), 'cleanup-v1', users[0]);
    await pooled.stop();
  });
});

describe('a holder that dies', () => {
  it('frees the address: a program killed with -9', async (t) => {
    const user = await addUser(db);
    const program = `import pg from 'pg';
      const client = new pg.Client(JSON.parse(process.argv[1]));
      await client.connect();
      await client.query('select reclaim.acquire_cleanup_lock($1)', [process.argv[2]]);
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program, JSON.stringify(cluster.connection(db.name)), user.email], {
      cwd: new URL('..', import.meta.url),
      stdio: 'ignore',
    });
    t.after(keepEnded(child.pid));
    await until('the lock held', async () => (await held(user.email)).length === 1);
    assertRefused(await requestCode(server, user.email), 'cleanup-v1', '009');
    child.kill('SIGKILL');
    await until('the address free', async () => (await requestCode(server, user.email)).status === 200);
  });

  it('frees the address: an instance killed with -9 in the middle of its transaction', async (t) => {
    const doomed = await serve(t, { database: db, env: provider.env });
    const { user, code, answering, finish } = await deletionUnderWay(t, doomed);
    const lost = answering.catch(() => 'cut');
    await doomed.kill9();
    assert.equal(await lost, 'cut');
    // The row is still locked by another: nothing but the death of its client can end that transaction.
    await until('the lock free', async () => (await held(user.email)).length === 0);
    await finish();
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
  });
});

describe('program and database agree on what an address is', () => {
  const pick = (list) => list[randomInt(list.length)];
  const some = (list, most) => Array.from({ length: randomInt(most + 1) }, () => pick(list)).join('');
  const spaces = [' ', '\t', '\n', '\r', '\f', '\v'];
  const plain = [..."abcxyzABCXYZ019!#$%&'*+/=?^_`{|}~-"];
  const strange = ['\u00a0', '\u2003', '\u0130', '\u212a', '\u00c4', '\u00df', '\u03a3', '\ud83d\ude00', '\u200b', '\u0085', 'e\u0301', '\u001c', '\u0001'];

  it('hashes of anything at all', async () => {
    const texts = Array.from({ length: 2000 }, () => some(spaces, 3) + some([...plain, ...strange, ' ', '\t', '@', '.'], 20) + some([...spaces, ...strange], 2));
    const rows = await db.query(
      `select reclaim.normalise_email(t) as email, reclaim.email_to_lock_id(t)::text as id, reclaim.generate_lock_id('Cleanup', t)::text as other
       from unnest($1::text[]) with ordinality as q(t, n) order by n`,
      [texts],
    );
    for (const [n, { email, id, other }] of rows.entries()) {
      assert.equal(email, normalised(texts[n]), JSON.stringify(texts[n]));
      assert.equal(id, String(lockId(normalised(texts[n]))));
      assert.equal(other, String(lockId(`Cleanup:${normalised(texts[n])}`)));
    }
  });

  it('addresses as written, through the endpoint: what one locks the other finds locked', async (t) => {
    const operator = await db.session(t);
    const written = Array.from({ length: 150 }, () => {
      const mixed = [...`${some(plain, 12)}x@${some([...'abcXYZ019'], 8)}q.${domain}`].map((c) => (randomInt(2) ? c.toUpperCase() : c)).join('');
      return some(spaces, 4) + mixed + some(spaces, 4);
    });
    await operator.query('select reclaim.acquire_cleanup_lock(t) from unnest($1::text[]) as q(t)', [written]);
    for (let n = 0; n < written.length; n += 30)
      await Promise.all(
        written.slice(n, n + 30).map(async (email) => {
          // Written otherwise here than there, and still the same.
          const answer = await requestCode(server, some(spaces, 3) + normalised(email).toUpperCase() + some(spaces, 3));
          assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_009', JSON.stringify(email));
          assert.equal((await requestCode(server, email)).json.error.code, 'ORPHAN_CLEANUP_009', JSON.stringify(email));
        }),
      );
    assertRefused(await requestCode(server, address('nobody')), 'cleanup-v1', '004');
  });

  it('what is no address to the one is never looked up by the other', async () => {
    for (const one of strange) assertRefused(await requestCode(server, `${one}${address('x')}`), 'cleanup-v1', '007');
  });
});

describe('the query for operators', () => {
  it('finds the lock that the two halves of its key hide', async (t) => {
    const user = await addUser(db);
    const operator = await db.session(t);
    await acquire(operator, user.email);
    const [{ pid }] = (await operator.query('select pg_backend_pid() as pid')).rows;
    assert.deepEqual(await held(user.email), [{ pid }]);
    await operator.end();
    await until('released with its session', async () => (await held(user.email)).length === 0);
  });

  it('a session that releases what it does not hold is warned', async (t) => {
    const client = new pg.Client(cluster.connection(db.name));
    const notices = [];
    client.on('notice', ({ severity, message }) => notices.push([severity, message]));
    await client.connect();
    t.after(() => client.end());
    const email = address('nobody');
    const id = lockId(email);
    assert.equal(await acquire(client, email), true);
    assert.equal(await acquire(client, email), true, 'a session that has it gets it again');
    assert.equal(await release(client, email), true);
    assert.equal((await held(email)).length, 1, 'and must release it as often');
    assert.equal(await release(client, email), true);
    assert.equal((await held(email)).length, 0);
    assert.equal(await release(client, email), false);
    assert.deepEqual(notices.at(-2), ['WARNING', `you don't own a lock of type ExclusiveLock`]);
    assert.deepEqual(notices.at(-1), ['WARNING', `Failed to release cleanup lock (not held by this session): ${id}`]);
    const other = await db.session(t);
    await acquire(other, email);
    assert.equal(await acquire(client, email), false);
    // The words of the document on locks, for programs that look for them.
    assert.deepEqual(notices.filter(([severity]) => severity === 'NOTICE'), [
      ['NOTICE', `Acquired cleanup lock for email hash: ${id}`],
      ['NOTICE', `Acquired cleanup lock for email hash: ${id}`],
      ['NOTICE', `Released cleanup lock for email hash: ${id}`],
      ['NOTICE', `Released cleanup lock for email hash: ${id}`],
      ['NOTICE', `Failed to acquire cleanup lock (already held): ${id}`],
    ]);
    await client.query('select reclaim.cleanup_old_rate_limit_buckets()');
    assert.match(notices.at(-1)[1], /^Cleaned up \d+ old rate limit buckets$/);
    for (const [, message] of notices) assert.ok(!message.includes('canary'));
  });
});
