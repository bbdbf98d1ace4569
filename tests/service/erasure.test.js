// Deleting by an admin, and that afterwards nothing personal is left anywhere.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, asKey, assertError, asUser, auditOf, canaryPassword, env, eventsOf, freeze, login, rowOf, scene, show } from './lib/customers.js';
import { addPerson, addServices, deleted, due, erased, fillServices, found, hold, ledger, preview, receipt, remove, services, statusOf, tableOf, unhold } from './lib/erasure.js';
import { addCompany } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { request } from './lib/http.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, provider, cluster;
before(async () => {
  ({ cluster, db, server, provider } = await scene(stage, { settings: { RECLAIM_EXPIRY_INTERVAL: '1s' } }));
  await addServices(stage, db);
});
after(() => stage.end());

const mailDone = (at, customer) =>
  until('the last mail gone', async () => {
    const sent = provider.mailsTo(customer.email).some(({ mail }) => /was deleted/.test(mail.subject));
    return sent && (await at.query(`select from reclaim.work_items where payload->>'customer_id' = $1`, [customer.id])).length === 0;
  });

describe('after the end', () => {
  it('no table, in any column, and no log line has anything of the person; the address can register again', async () => {
    const person = await addPerson(stage, db);
    await fillServices(db, person);
    await hold(server, person.id, `about Name ${person.mark}`);
    await unhold(server, person.id);
    assert.equal((await login(server, person.user.email, canaryPassword)).status, 200);
    assert.ok((await found(db, [person.mark])).length >= 5 + services.length, 'the search finds what is there');
    await due(server, db, person);
    await deleted(db, person);
    await erased(server, person);
    await mailDone(db, person);
    assert.deepEqual(await found(db, person.strings), []);
    const log = fs.readFileSync(server.logPath, 'utf8');
    for (const text of person.strings) assert.ok(!log.includes(text), `the log tells «${text}»`);
    await db.query('insert into auth.users (id, email) values ($1, $2)', [randomUUID(), person.user.email]);
    const again = await addCustomer(db, { owner: false, email: person.email });
    await db.query('update reclaim.customer_customers set owner_user_id = (select id from auth.users where email = $2) where id = $1', [again.id, person.user.email]);
  });

  it('so too when another table will not let the login go: it is unusable and unrecognisable', async () => {
    const person = await addPerson(stage, db);
    await addCompany(db, person.user);
    await due(server, db, person);
    await deleted(db, person);
    await mailDone(db, person);
    assert.deepEqual(await found(db, person.strings), []);
    const [user] = await db.query('select email, encrypted_password, deleted_at from auth.users where id = $1', [person.user.id]);
    assert.equal(user.email, `deleted_${person.user.id}@removed.invalid`);
    assert.equal(user.encrypted_password, '');
    assert.ok(user.deleted_at);
    assert.equal((await show(server, person.id, asUser(person.user.id))).status, 401);
    await db.query('insert into auth.users (id, email) values ($1, $2)', [randomUUID(), person.user.email]);
  });
});

describe("Reclaim's own tables", () => {
  it('keep no numbers of calls', async () => {
    const own = await cluster.database(stage);
    const instance = await serve(stage, { database: own, env });
    const person = await addPerson(stage, own);
    for (const direction of ['incoming', 'outgoing'])
      await own.query(`insert into reclaim.call_calls (customer_id, direction, source, destination, status, tm_hangup)
        values ($1, $2, $3, $4, 'hangup', now())`, [person.id, direction, person.phone_number, `+49 ${person.mark}`]);
    assert.equal((await remove(instance, person.id)).status, 200);
    const { participants } = await erased(instance, person);
    assert.deepEqual(participants.map(({ name, rows }) => [name, rows]), [['reclaim.calls', 2]]);
    assert.deepEqual(await found(own, person.strings), []);
  });
});

describe("a team's own tables, taken over in public", () => {
  it('keep nothing personal either, in columns that Reclaim does not know, but for what was decided', async () => {
    const theirs = await cluster.database(stage);
    await theirs.query(`create table public.customer_customers (id uuid primary key, name varchar(255), email varchar(255), webhook_secret text not null default '',
      first_name varchar(50), plan text, tm_delete timestamp(6));
      create table public.billing_accounts (id uuid primary key, customer_id uuid, name varchar(255), tm_delete timestamp(6))`);
    const instance = await serve(stage, { database: theirs, env: { ...env, ...provider.env, RECLAIM_EXPIRY_INTERVAL: '1s' } });
    const person = await addPerson(stage, theirs);
    assert.equal((await run(stage, ['columns', 'keep', 'public.customer_customers', 'plan'], { database: theirs })).code, 0);
    await theirs.query(`update public.customer_customers set webhook_secret = $2::text, first_name = $2::text, plan = 'gold' where id = $1`, [person.id, `x ${person.mark}`]);
    await due(instance, theirs, person);
    await deleted(theirs, person);
    await mailDone(theirs, person);
    assert.deepEqual(await found(theirs, person.strings), []);
    const [row] = await theirs.query('select status, tm_delete is not null as gone, plan from public.customer_customers where id = $1', [person.id]);
    assert.deepEqual(row, { status: 'deleted', gone: true, plan: 'gold' });
    const [bill] = await theirs.query('select status, tm_delete is not null as gone from public.billing_accounts where customer_id = $1', [person.id]);
    assert.deepEqual(bill, { status: 'deleted', gone: true });
    assert.deepEqual((await request(instance, { path: '/v1/erasure/participants' })).json.kept, ['plan'], 'anyone can read what stays');
  });
});

describe('after the end in a Supabase database', () => {
  let theirs, instance;
  before(async () => {
    theirs = await cluster.database(stage, { auth: 'supabase' });
    instance = await serve(stage, { database: theirs, env: { ...env, ...provider.env, RECLAIM_EXPIRY_INTERVAL: '1s' } });
  });

  for (const kept of [false, true])
    it(`nothing personal is left${kept ? ' in a login that has to stay' : ''}`, async () => {
      const person = await addPerson(stage, theirs);
      const { id, email } = person.user;
      await theirs.query(
        `update auth.users set raw_user_meta_data = $2, phone = $3, email_change = $4, recovery_token = $5 where id = $1`,
        [id, { name: `Name ${person.mark}` }, person.phone_number.slice(1), `new-${email}`, `token-${person.mark}`],
      );
      await theirs.query(`insert into auth.identities (provider_id, user_id, identity_data, provider) values ($1::text, $1::text::uuid, $2, 'email')`, [id, { sub: id, email }]);
      await theirs.query(`insert into auth.sessions (id, user_id, user_agent) values ($1, $2, $3)`, [randomUUID(), id, `browser of ${person.mark}`]);
      if (kept) await addCompany(theirs, person.user);
      assert.ok((await found(theirs, [person.mark])).length >= 5);
      await due(instance, theirs, person);
      await deleted(theirs, person);
      await mailDone(theirs, person);
      assert.deepEqual(await found(theirs, person.strings), []);
      assert.equal((await theirs.query('select from auth.users where id = $1', [id])).length, kept ? 1 : 0);
      await theirs.query('insert into auth.users (id, email) values ($1, $2)', [randomUUID(), email]);
    });
});

describe('DELETE /v1/customers/{id}', () => {
  for (const state of ['active', 'frozen'])
    it(`ends ${state} customers at once, as expiry does`, async () => {
      const person = await addPerson(stage, db);
      await fillServices(db, person);
      if (state === 'frozen') await freeze(server, person.id);
      const answer = await remove(server, person.id);
      assert.equal(answer.status, 200, answer.body);
      assert.equal(answer.json.status, 'deleted');
      assert.equal(answer.json.name, `deleted_user_${person.id}`);
      assert.ok(answer.json.tm_delete);
      assert.equal((await show(server, person.id, asKey(person.key))).status, 401, 'from the answer on');
      assert.equal((await show(server, person.id, asUser(person.user.id))).status, 401);
      const audit = (await auditOf(db, person)).at(-1);
      assert.deepEqual([audit.action, audit.actor, audit.outcome, audit.correlation_id], ['delete', 'admin', 'done', answer.headers['x-correlation-id']]);
      assert.equal((await eventsOf(db, person)).at(-1).type, 'customer_deleted');
      const { participants } = await erased(server, person);
      assert.deepEqual(participants.map(({ name, rows, status, tries, error }) => [name, rows, status, tries, error]), [...services].sort().map((name) => [name, 2, 'done', 1, null]));
      await mailDone(db, person);
      assert.deepEqual(await found(db, person.strings), []);
    });

  it('is not for customers, nor for nobody', async () => {
    const customer = await addCustomer(db);
    assert.equal((await remove(server, customer.id, { headers: asUser(customer.user.id) })).status, 403);
    assert.equal((await remove(server, customer.id, { headers: {} })).status, 401);
    assertError(await remove(server, randomUUID()), 404, 'CUSTOMER_NOT_FOUND');
    assertError(await remove(server, 'x'), 400, 'INVALID_ID');
    assert.equal(await statusOf(db, customer), 'active');
  });

  it('is refused while a legal hold lasts', async () => {
    const customer = await addCustomer(db);
    await hold(server, customer.id, 'evidence');
    assertError(await remove(server, customer.id), 409, 'LEGAL_HOLD');
    assert.equal(await statusOf(db, customer), 'active');
    await unhold(server, customer.id);
    assert.equal((await remove(server, customer.id)).status, 200);
  });

  it('repeated, changes nothing and tells of it once', async () => {
    const customer = await addCustomer(db);
    const first = await remove(server, customer.id);
    await erased(server, customer);
    const before = await ledger(server, customer.id);
    const second = await remove(server, customer.id);
    assert.deepEqual(second.json, first.json);
    assert.equal((await eventsOf(db, customer)).length, 1);
    assert.deepEqual((await ledger(server, customer.id)).json, before.json);
    assert.deepEqual((await auditOf(db, customer)).map(({ action, outcome }) => [action, outcome]), [['delete', 'done'], ['delete', 'unchanged']]);
  });

  it('anonymises one that was deleted before Reclaim came, and leaves who owns another by now', async () => {
    const old = await addCustomer(db, { name: 'Old Name', status: 'deleted' });
    const now = await addCustomer(db, { owner: false });
    await db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [now.id, old.user.id]);
    assert.equal((await remove(server, old.id)).status, 200);
    assert.equal((await rowOf(db, old)).name, `deleted_user_${old.id}`);
    await erased(server, old);
    assert.equal((await db.query('select from auth.users where id = $1', [old.user.id])).length, 1);
    assert.equal(await statusOf(db, now), 'active');
  });

  it('is what reclaim delete does', async () => {
    const person = await addPerson(stage, db);
    await fillServices(db, person);
    const done = await run(stage, ['delete', person.id], { database: db, env: provider.env });
    assert.equal(done.code, 0, done.stderr);
    assert.equal(JSON.parse(done.stdout).name, `deleted_user_${person.id}`);
    await erased(server, person);
    await mailDone(db, person);
    assert.deepEqual(await found(db, person.strings), []);
    assert.equal((await auditOf(db, person)).at(-1).actor, 'operator');
    const nobody = await run(stage, ['delete', randomUUID()], { database: db });
    assert.equal(nobody.code, 1);
    assert.equal((await run(stage, ['delete'], { database: db })).code, 2);
  });
});

describe('personal data that is cleared twice, since a crash repeated it', () => {
  it('leaves the link and the number of the one last mail as they are', async () => {
    const added = await run(stage, ['cascade', 'add', 'slow', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    const person = await addPerson(stage, db);
    const hashes = async () => (await db.query('select address_hash, link_hash, keyed_address from reclaim.erasures where customer_id = $1', [person.id]))[0];
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [person.id]);
    await mailDone(db, person);
    const first = await hashes();
    assert.ok(first.address_hash && first.link_hash);
    const sent = provider.attempts.length;
    await db.query(`insert into reclaim.work_items (kind, payload) values ('anonymise', jsonb_build_object('customer_id', $1::text))`, [person.id]);
    await db.query('notify reclaim_work');
    await until('cleared again', async () => (await db.query(`select from reclaim.work_items where payload->>'customer_id' = $1`, [person.id])).length === 0);
    assert.deepEqual(await hashes(), first);
    assert.deepEqual(provider.attempts.slice(sent).map(({ mail }) => mail.to), []);
    assert.equal((await receipt(server, person.id, 'slow', { status: 'done', rows: 1 })).status, 200);
    await erased(server, person);
    assert.deepEqual(await hashes(), first);
    assert.equal((await run(stage, ['cascade', 'remove', 'slow'], { database: db })).code, 0);
  });
});

describe('GET /v1/customers/{id}/erasure', () => {
  it('previews what would go, to its owner and to admins, frozen or not; nothing happens by it', async () => {
    const person = await addPerson(stage, db);
    await fillServices(db, person, 3);
    await freeze(server, person.id);
    for (const headers of [undefined, asUser(person.user.id), asKey(person.key)]) {
      const { status, json } = await preview(server, person.id, headers ? { headers } : {});
      assert.equal(status, 200);
      assert.deepEqual(json.participants, [...services].sort().map((name) => ({ name, label: '', kind: 'table', rows: 3, more: false, error: null })));
    }
    assert.equal((await ledger(server, person.id)).json.status, 'not_started');
    assert.equal(Number((await db.query(`select count(*) from ${tableOf('tag')} where customer_id = $1`, [person.id]))[0].count), 3);
    const stranger = await addCustomer(db);
    assert.equal((await ledger(server, person.id, { headers: asUser(stranger.user.id) })).status, 403);
    assert.equal((await ledger(server, person.id, { headers: {} })).status, 401);
    assert.equal((await ledger(server, randomUUID())).status, 404);
  });

  it('refuses a preview that is neither on nor off', async () => {
    const answer = await request(server, { path: `/v1/customers/${randomUUID()}/erasure?preview=maybe`, headers: asAdmin() });
    assertError(answer, 400, 'INVALID_PREVIEW');
  });
});

describe('GET /v1/erasure/participants', () => {
  it('tells anyone in words what goes and stays, and names no table', async () => {
    const ask = () => request(server, { path: '/v1/erasure/participants' });
    const before = await ask();
    assert.equal(before.status, 200);
    assert.equal(before.json.unnamed, services.length);
    assert.equal(before.json.grace_seconds, 30 * 86400);
    assert.equal(before.json.backup_retention_seconds, 35 * 86400);
    for (const service of services) assert.ok(!before.body.includes(tableOf(service)), before.body);
    await db.query(`update reclaim.cascade_participants set label = 'Phone numbers' where name = any($1)`, [['number', 'route']]);
    await db.query(`update reclaim.cascade_participants set enabled = false where name = 'flow'`);
    const { json } = await ask();
    await db.query(`update reclaim.cascade_participants set label = '', enabled = true where name = any($1)`, [['number', 'route', 'flow']]);
    assert.deepEqual(json.items.filter(({ name }) => !name), [{ name: null, label: 'Phone numbers', outcome: 'deleted' }]);
    assert.equal(json.unnamed, services.length - 3);
  });
});

describe('a service elsewhere', () => {
  before(async () => {
    const added = await run(stage, ['cascade', 'add', 'archive', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
  });
  after(() => db.query(`update reclaim.cascade_participants set enabled = false where name = 'archive'`));
  const mine = (json) => json.participants.find(({ name }) => name === 'archive');

  it('keeps the erasure open until it has reported; repeats change nothing', async () => {
    const customer = await addCustomer(db);
    await remove(server, customer.id);
    await until('the tables done', async () => (await ledger(server, customer.id)).json.participants.every(({ kind, status }) => kind === 'remote' || status === 'done'));
    const open = (await ledger(server, customer.id)).json;
    assert.equal(open.status, 'pending');
    assert.deepEqual(mine(open), {
      name: 'archive', label: '', kind: 'remote', status: 'pending', rows: 0, tries: 0, first_tried_at: null, done_at: null, late_rows: 0, late_at: null, error: null, reason: null,
    });

    const failed = (await receipt(server, customer.id, 'archive', { status: 'failed', error: 'disk full' })).json;
    assert.deepEqual([mine(failed).status, mine(failed).error, failed.status], ['failed', 'disk full', 'pending']);
    const done = (await receipt(server, customer.id, 'archive', { rows: 12 })).json;
    assert.deepEqual([mine(done).status, mine(done).rows, mine(done).error], ['done', 12, null]);
    const complete = await erased(server, customer);
    const again = (await receipt(server, customer.id, 'archive', { rows: 99, status: 'failed' })).json;
    assert.deepEqual(again, complete);
  });

  it('is listened to only where its receipt is expected', async () => {
    const customer = await addCustomer(db);
    assertError(await receipt(server, customer.id, 'archive', {}), 404, 'RECEIPT_NOT_EXPECTED');
    await remove(server, customer.id);
    assertError(await receipt(server, customer.id, 'nobody', {}), 404, 'RECEIPT_NOT_EXPECTED');
    assertError(await receipt(server, customer.id, 'tag', {}), 404, 'RECEIPT_NOT_EXPECTED');
    assertError(await receipt(server, randomUUID(), 'archive', {}), 404, 'RECEIPT_NOT_EXPECTED');
    for (const body of ['no json', { rows: -1 }, { rows: 'many' }, { status: 'perhaps' }, { error: 7 }, { error: 'x'.repeat(201) }])
      assertError(await receipt(server, customer.id, 'archive', body), 400, 'INVALID_RECEIPT');
    assert.equal((await receipt(server, customer.id, 'archive', {}, { headers: asUser(randomUUID()) })).status, 403);
    assert.equal((await receipt(server, customer.id, 'archive', undefined)).status, 200, 'no body means done');
  });

  it('is told again when redriven', async () => {
    const customer = await addCustomer(db);
    await remove(server, customer.id);
    await db.query('update reclaim.event_outbox set published_at = now() where customer_id = $1', [customer.id]);
    assert.equal((await remove(server, customer.id)).status, 200);
    const [event] = await db.query(`select published_at from reclaim.event_outbox where customer_id = $1 and type = 'customer_deleted'`, [customer.id]);
    assert.equal(event.published_at, null);
  });
});
