// What an operator can reconstruct of a clean-up: each step, the mail and the refusals, in facts that do not change.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, cleanup, codeOf, contracts, hashOf, isThere, logOf, mailedCode, requestCode, scene, validate, wrong } from './lib/cleanup.js';
import { FakeProvider } from './lib/fake-provider.js';
import { from, ipKey, metric, newClient } from './lib/limits.js';
import { addUser, address } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster, db, provider, server;
before(async () => {
  const made = await scene(stage, { only: ['cleanup-v1'] });
  ({ cluster, db, provider } = made);
  server = made.servers['cleanup-v1'];
});
after(() => stage.end());

const eventsOf = (database, email) =>
  database.query('select * from reclaim.auth_cleanup_events where email_hash = $1 order by created_at, id', [hashOf(email)]);
const told = (rows) => rows.map(({ kind, outcome, detail }) => [kind, outcome, detail]);
const itemsLeft = async (database) => (await database.query('select count(*)::int as n from reclaim.work_items'))[0].n;
const endLeases = (database) => database.query('update reclaim.work_items set leased_until = clock_timestamp() where leased_until is not null');

describe('the trail of a clean-up', () => {
  const trace = async (t, subject, format) => {
    const { code, stdout, stderr } = await run(t, ['trace', subject, ...(format ? ['--format', format] : [])], { database: db, directory: server.home });
    assert.equal(code, 0, stderr);
    return format === 'json' ? JSON.parse(stdout) : stdout;
  };

  it('tells the whole story of an address, mail included, and finds step 2 by its own id', async (t) => {
    const user = await addUser(db);
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    assertSent(await requestCode(server, user.email, { correlationId: first }), 'cleanup-v1');
    const { code } = await provider.mailTo(user.email);
    await until('the mail’s event', async () => (await eventsOf(db, user.email)).length === 2);
    assertRefused(await validate(server, user.email, wrong(code), { correlationId: second }), 'cleanup-v1', '002');
    assertDeleted(await validate(server, user.email, code, { correlationId: third }), 'cleanup-v1', user);

    const rows = await eventsOf(db, user.email);
    assert.deepEqual(told(rows), [
      ['request-code', 'code-sent', null],
      ['mail', 'sent', 'resend'],
      ['validate-and-cleanup', 'ORPHAN_CLEANUP_002', null],
      ['validate-and-cleanup', 'user-deleted', 'case_1_1'],
    ]);
    assert.deepEqual(rows.map((row) => row.correlation_id), [first, first, second, third]);
    assert.equal(new Set(rows.map((row) => row.log_id)).size, 1, 'all of them are about one code');
    const network = (await logOf(db, first))[0].ip_hash;
    assert.deepEqual(rows.map((row) => row.network_hash), [network, null, network, network]);

    for (const subject of [third, second, first, user.email]) {
      const told = await trace(t, subject, 'json');
      assert.deepEqual(told.map(({ what, outcome }) => `${what} ${outcome}`), [
        'request-code code-sent',
        'mail sent',
        'validate-and-cleanup ORPHAN_CLEANUP_002',
        'validate-and-cleanup user-deleted',
      ]);
      assert.deepEqual([...new Set(told.map(({ log_status }) => log_status))], ['completed']);
    }
    const table = await trace(t, third);
    assert.match(table, /^at\s+what\s+outcome\s+count\s+correlation_id\s+sqlstate\s+constraint\s+detail\n/);
    assert.match(table, new RegExp(`^\\S+Z\\s+mail\\s+sent\\s+1\\s+${first}\\s+resend$`, 'm'));
    assert.match(table, /4 events\n$/);
    assert.ok(!table.includes(user.email));
  });

  it('is never changed, not even by the owner of the table', async () => {
    await assert.rejects(db.query(`update reclaim.auth_cleanup_events set outcome = 'x'`), /never changed/);
  });

  it('a row of the log that is completed or failed stays as it is when its mail fails afterwards', async () => {
    const user = await addUser(db);
    const { json } = await requestCode(server, user.email);
    const { code } = await provider.mailTo(user.email);
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
    const [earlier] = await logOf(db, json.correlationId);
    await db.query(
      `insert into reclaim.work_items (kind, payload, tries) values ('mail', jsonb_build_object('template', 'cleanup-code',
         'contract', 'none', 'user_id', $1::text, 'salt', repeat('0', 32), 'correlation_id', $2::text, 'email_hash', $3::text), 99)`,
      [user.id, json.correlationId, hashOf(user.email)],
    );
    await until('the item’s end', async () => (await itemsLeft(db)) === 0);
    const [row] = await logOf(db, json.correlationId);
    assert.deepEqual([row.status, row.updated_at], ['completed', earlier.updated_at]);
    assert.equal((await eventsOf(db, user.email)).at(-1).outcome, 'failed');
  });

  it('nonsense in a mail’s payload keeps no outcome from being recorded', async () => {
    const payloads = ['{}', '1', '[]', '{"template":"cleanup-code"}', '{"template":"cleanup-code","correlation_id":"x","salt":"x","email_hash":5}', '{"template":["cleanup-code"]}'];
    for (const payload of payloads) await db.query(`insert into reclaim.work_items (kind, payload, tries) values ('mail', $1, 99)`, [payload]);
    await until('the items’ end', async () => (await db.query(`select 1 from reclaim.work_items where state = 'open'`)).length === 0);
    await db.query(`delete from reclaim.work_items where state = 'dead'`);
    const user = await addUser(db);
    await mailedCode(server, provider, user.email);
    await until('the mail’s event', async () => (await eventsOf(db, user.email)).length === 2);
  });

  it('an event of a mail that cannot be written leaves no item behind', async (t) => {
    await db.query(
      `create function refuse() returns trigger language plpgsql as $$ begin raise exception 'not now'; end $$;
       create trigger refuse before insert on reclaim.auth_cleanup_events for each row when (new.kind = 'mail') execute function refuse()`,
    );
    t.after(() => db.query('drop trigger refuse on reclaim.auth_cleanup_events; drop function refuse()'));
    const user = await addUser(db);
    const code = await mailedCode(server, provider, user.email);
    await until('the item’s end', async () => (await itemsLeft(db)) === 0);
    assert.equal((await server.line('not recorded', ({ event }) => event === 'results of work items not recorded')).sqlstate, 'P0001');
    assertDeleted(await validate(server, user.email, code), 'cleanup-v1', user);
  });

  it('a fault has its SQLSTATE and constraint in the log line and in the trail, with the request’s id and nothing personal', async (t) => {
    const user = await addUser(db);
    const code = await mailedCode(server, provider, user.email);
    await db.query(
      `create function object() returns trigger language plpgsql as $$ begin
         raise exception 'user % stays', old.email using errcode = '23514', constraint = 'papers_of_users', detail = old.email; end $$;
       create trigger object before delete on auth.users for each row execute function object()`,
    );
    t.after(() => db.query('drop trigger if exists object on auth.users; drop function if exists object()'));
    const { json } = assertRefused(await validate(server, user.email, code), 'cleanup-v1', '006');
    const line = await server.line('cleanup failed', ({ event, correlation_id }) => event === 'cleanup failed' && correlation_id === json.correlationId);
    assert.deepEqual([line.sqlstate, line.constraint, line.step], ['23514', 'papers_of_users', 'validate-and-cleanup']);
    const event = (await eventsOf(db, user.email)).at(-1);
    assert.deepEqual([event.outcome, event.sqlstate, event.constraint_name, event.correlation_id], ['ORPHAN_CLEANUP_006', '23514', 'papers_of_users', json.correlationId]);
    assert.match(event.detail, /^[A-Z].*\.$/);
    assert.ok(!JSON.stringify([event, line]).includes('canary'));
  });

  it('the orphan check of both steps is measured, and malformed requests are counted among the outcomes', async () => {
    const checks = (step) => metric(server, 'reclaim_cleanup_orphan_check_seconds_count', { step });
    const malformed = () => metric(server, 'reclaim_cleanup_outcomes_total', { outcome: '007' });
    const earlier = [await checks('request-code'), await checks('validate-and-cleanup'), await malformed()];
    const user = await addUser(db);
    assertDeleted(await validate(server, user.email, await mailedCode(server, provider, user.email)), 'cleanup-v1', user);
    await cleanup(server, '{');
    assert.deepEqual([await checks('request-code'), await checks('validate-and-cleanup'), await malformed()], earlier.map((n) => n + 1));
  });
});

describe('refusals', () => {
  it('are counted, one row a key and minute, however many they are', async (t) => {
    const own = await cluster.database(t);
    const limits = { RECLAIM_LIMIT_GLOBAL: 'off', RECLAIM_LIMIT_IP: '5/3600', RECLAIM_LIMIT_EMAIL: '1/3600', RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8' };
    const limited = await serve(t, { database: own, env: { ...provider.env, ...limits } });
    const [flooding, careless] = [newClient(), newClient()];
    const email = address('nobody');
    const requests = 300;
    for (let n = 0; n < 5; n++) await requestCode(limited, address('nobody'), {}, from(flooding));
    for (let n = 0; n < requests; n += 50)
      for (const answer of await Promise.all(Array.from({ length: 50 }, () => requestCode(limited, address('nobody'), {}, from(flooding))))) assertRefused(answer, 'cleanup-v1', '003');
    for (let n = 0; n < 3; n++) assertRefused(await cleanup(limited, '{', from(careless)), 'cleanup-v1', '007');
    await requestCode(limited, email, {}, from(newClient()));
    for (let n = 0; n < 2; n++) assertRefused(await requestCode(limited, email, {}, from(newClient())), 'cleanup-v1', '003');
    const networks = 600; // more than are told apart within a minute
    for (let n = 0; n < networks; n += 50)
      await Promise.all(Array.from({ length: 50 }, (_, i) => cleanup(limited, '{', from(`2001:db8:${(n + i + 1).toString(16)}::1`))));
    await limited.stop();

    const rows = await own.query(`select * from reclaim.auth_cleanup_events where kind = 'refusals'`);
    const of = (column, hash) => rows.filter((row) => row[column] === hash);
    const sum = (some) => some.reduce((all, row) => all + Number(row.count), 0);
    const minutes = 3; // more than the test takes, and far fewer than requests
    for (const [column, hash, outcome, count] of [
      ['network_hash', ipKey('ip', flooding).split(':')[1], 'ORPHAN_CLEANUP_003', requests],
      ['network_hash', ipKey('ip', careless).split(':')[1], 'ORPHAN_CLEANUP_007', 3],
      ['email_hash', hashOf(email), 'ORPHAN_CLEANUP_003', 2],
    ]) {
      const some = of(column, hash);
      assert.ok(some.length >= 1 && some.length <= minutes, `${some.length} rows`);
      assert.equal(sum(some), count);
      assert.ok(some.every((row) => row.outcome === outcome && row.correlation_id && row.counted_from <= row.created_at));
    }
    const malformed = rows.filter((row) => row.outcome === 'ORPHAN_CLEANUP_007');
    assert.equal(sum(malformed), 3 + networks);
    const windows = new Set(rows.map((row) => row.created_at.getTime())).size;
    assert.ok(windows <= minutes && rows.length <= 513 * windows, `${rows.length} rows in ${windows} windows`);
    if (windows === 1) assert.ok(malformed.some((row) => row.detail === 'others' && !row.network_hash), 'the others are counted together');
    const [{ n }] = await own.query(`select count(*)::int as n from reclaim.auth_cleanup_log where error_code = 'ORPHAN_CLEANUP_003'`);
    assert.ok(n >= 2 && n <= 2 * minutes, `the log has the first of each key and minute, not ${n}`);
  });
});

describe('a mail', () => {
  it('that nobody took ends: the request is failed, its code dropped, and no item is left', async (t) => {
    const own = await cluster.database(t);
    const resend = await FakeProvider.start(t, 'resend');
    const slow = await serve(t, { database: own, env: resend.env });
    const user = await addUser(own);
    resend.answer({ delayMs: 1500, status: 422 });
    const { json } = assertSent(await requestCode(slow, user.email), 'cleanup-v1');
    await until('the failure', async () => (await logOf(own, json.correlationId))[0].status === 'failed');
    assert.equal((await logOf(own, json.correlationId))[0].error_code, 'ORPHAN_CLEANUP_008');
    assert.equal(await codeOf(own, user.email), undefined);
    assert.deepEqual(told(await eventsOf(own, user.email)), [
      ['request-code', 'code-sent', null],
      ['mail', 'failed', 'no provider took the mail'],
    ]);
    assert.equal(await itemsLeft(own), 0);
    assert.equal(slow.events('mail failed for good')[0].correlation_id, json.correlationId);
    resend.answer();
    assertDeleted(await validate(slow, user.email, await mailedCode(slow, resend, user.email)), 'cleanup-v1', user);

    // Cut off too often by crashes: the same end.
    const third = await addUser(own);
    resend.answer({ silent: true });
    const cut = assertSent(await requestCode(slow, third.email), 'cleanup-v1');
    await slow.kill9();
    await own.query('update reclaim.work_items set tries = 99');
    await endLeases(own);
    const next = await serve(t, { database: own, env: resend.env });
    await until('the failure', async () => (await logOf(own, cut.json.correlationId))[0].status === 'failed');
    assert.deepEqual(told(await eventsOf(own, third.email)).at(-1), ['mail', 'failed', 'the last run was cut off']);
    assert.equal(await codeOf(own, third.email), undefined);
    assert.equal(next.events('mail failed for good')[0].correlation_id, cut.json.correlationId);
    assert.equal(await itemsLeft(own), 0);
    await next.stop();
  });

  it('taken over by an instance of the other contract has the code, life and words of its own', async (t) => {
    const own = await cluster.database(t);
    const resend = await FakeProvider.start(t, 'resend');
    const [mine, others] = ['registration-recovery', 'cleanup-v1'];
    const serveAs = (contract) => serve(t, { database: own, env: { RECLAIM_CONTRACT: contract, ...resend.env } });
    resend.answer({ silent: true });
    const first = await serveAs(mine);
    const [user, unknown] = [await addUser(own), await addUser(own)];
    const asked = assertSent(await requestCode(first, user.email), mine);
    const lost = assertSent(await requestCode(first, unknown.email), mine);
    await until('the tries', () => resend.attempts.length === 2);
    await first.kill9();
    await own.query(`update reclaim.work_items set payload = payload || '{"contract":"later"}' where payload->>'user_id' = $1`, [unknown.id]);
    await endLeases(own);
    resend.answer();
    const second = await serveAs(others);
    const { code, mail } = await resend.mailTo(user.email);
    assert.match(code, contracts[mine].code);
    assert.match(mail.text, /valid for (9|10) minutes/);
    assert.equal(code, resend.attempts.find((attempt) => attempt.mail.to === user.email).code);
    await until('the failure', async () => (await logOf(own, lost.json.correlationId))[0].status === 'failed');
    const line = second.events('mail of a contract that this version does not know')[0];
    assert.deepEqual([line.contract, line.request], ['later', lost.json.correlationId]);
    assert.deepEqual(told(await eventsOf(own, unknown.email)).at(-1), ['mail', 'failed', 'no mail can be composed from the payload']);
    await until('nothing left', async () => (await itemsLeft(own)) === 0);
    assert.deepEqual(told(await eventsOf(own, user.email)), [['request-code', 'code-sent', null], ['mail', 'taken-over', null], ['mail', 'sent', 'resend']]);
    assert.deepEqual(new Set((await eventsOf(own, user.email)).map((row) => row.correlation_id)), new Set([asked.json.correlationId]));
    await second.stop();
    const third = await serveAs(mine);
    assertDeleted(await validate(third, user.email, code), mine, user);
    assert.equal(await isThere(own, unknown), true);
    await third.stop();
  });
});
