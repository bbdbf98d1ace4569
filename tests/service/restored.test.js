// What a server leaves alone while its database is a restored one, and the replay of erasures: with an export or a folder elsewhere, with
// a customer that cannot be deleted, and killed at any step.
// takes long

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { dumpOf } from './lib/backups.js';
import { chargesOf, subscribe } from './lib/billing.js';
import { change } from './lib/changes.js';
import { assertRefused, assertSent, contracts, requestCode, validate } from './lib/cleanup.js';
import { addBillingAccount, addCustomer, addKey, asAdmin, asKey, assertError, bearer, canaryPassword, env, freeze, login } from './lib/customers.js';
import { addServices, deleted, erased, fillServices, frozenSince, ledger, metric, remove, statusOf, tableOf } from './lib/erasure.js';
import { FakeProvider } from './lib/fake-provider.js';
import { gate } from './lib/gate.js';
import { request } from './lib/http.js';
import { folderOf, readyz, says, textOf } from './lib/journal.js';
import { addUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { Broker, Subscriber } from './lib/rabbitmq.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';
import { stopBefore } from './lib/stops.js';

const stage = new Stage();
let cluster, broker;
before(async () => {
  broker = Broker.start(stage); // takes some seconds, in which the first tests run
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

/** A database and a mail provider; servers and commands have the journal of the first of `homes`, unless another is named. */
async function prepare({ adopt } = {}) {
  const db = await cluster.database(stage);
  if (adopt) await db.query(adopt);
  const provider = await FakeProvider.start(stage, 'resend');
  const home = temporaryDirectory(stage);
  const common = { ...env, ...provider.env, RECLAIM_EXPIRY_INTERVAL: '1s' };
  return {
    db, provider, home,
    elsewhere: () => temporaryDirectory(stage),
    start: ({ wait = 'ready', directory = home, settings, ...more } = {}) => serve(stage, { database: db, env: { ...common, ...settings }, directory, wait, ...more }),
    run: (args, directory = home, more = {}) => run(stage, args, { database: db, env: provider.env, directory, ...more }),
  };
}

async function stop(server) {
  await server.withoutConnections();
  await server.stop();
}

describe('a machine without a journal', () => {
  let scene, db, backup, server, key, session, early, gone, cooldowns, exported, folder;
  const own = {};
  /** Until when, to the minute. */
  const coolingDown = () => db.query(`select address_hash, date_trunc('minute', ends_at + interval '30 seconds')::text as until from reclaim.address_cooldowns`);
  const signIn = (body) => request(server, { method: 'POST', path: '/auth/login', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) });

  before(async () => {
    scene = await prepare();
    ({ db } = scene);
    const { provider } = scene;
    server = await scene.start({ settings: { RECLAIM_COOLDOWN: '90d' } });
    await addServices(stage, db, ['contact']);
    early = await addCustomer(db);
    assert.equal((await remove(server, early.id)).status, 200);
    await erased(server, early);
    gone = await addCustomer(db);
    own.stays = await addCustomer(db);
    own.coded = (await addCustomer(db, { sso: true })).user;
    own.orphan = await addUser(db);
    key = await addKey(stage, db, own.stays);
    session = (await login(server, own.stays.user.email, canaryPassword)).json.token;
    assert.equal((await request(server, { method: 'POST', path: '/auth/code', body: JSON.stringify({ email: own.coded.email }) })).status, 202);
    assertSent(await requestCode(server, own.orphan.email), 'cleanup-v1');
    for (const user of [own.coded, own.orphan]) user.code = (await provider.mailTo(user.email)).code;
    await until('no mail waiting', async () => (await db.query('select from reclaim.work_items')).length === 0);
    await stop(server);
    await db.query('delete from reclaim.address_cooldowns'); // of the one that is gone at the backup
    await db.query(`insert into reclaim.console_sessions (scope) values ('admin')`);
    await fillServices(db, early, 1, ['contact']);
    backup = dumpOf(stage, db);
    await backup.take();
    server = await scene.start({ settings: { RECLAIM_COOLDOWN: '90d' } });
    assert.equal((await gate(server, bearer(session))).status, 200);
    assert.equal((await gate(server, asKey(key))).status, 200);
    assert.equal((await remove(server, gone.id)).status, 200);
    await erased(server, gone);
    cooldowns = (await coolingDown()).filter(({ address_hash }) => textOf(scene.home).includes(address_hash));
    assert.equal(cooldowns.length, 1, 'the journal has that of the last mail');
    await stop(server);
    exported = path.join(scene.home, 'exported.jsonl');
    assert.equal((await scene.run(['journal', 'export', exported])).code, 0);
    folder = path.join(scene.elsewhere(), 'copy');
    fs.cpSync(folderOf(scene.home), folder, { recursive: true });
  });

  it('imports an export, which says what the database lacked, and every server then says that it was restored', async () => {
    await backup.restore();
    const home = scene.elsewhere();
    server = await scene.start({ directory: home });
    const done = await scene.run(['journal', 'import', exported], home);
    assert.equal(done.code, 0, done.stderr);
    const [{ lost }] = await db.query('select count(*) as lost from reclaim.journal_lines where lost');
    assert.ok(Number(lost) > 1);
    assert.match(done.stdout, new RegExp(`^${lost} lines that the database lacked: it was restored from a backup`));
    await says(server, 'restored');
    assert.equal((await gate(server, bearer(session))).status, 200, 'all others are served');
    assertError(await remove(server, own.stays.id), 503, 'RESTORED');
    const again = await scene.run(['journal', 'import', exported], home);
    assert.equal(again.code, 0, again.stderr);
    assert.match(again.stdout, /has every line/);
    assert.equal(await readyz(server), 'restored');
    await stop(server);
  });

  it('replays from an export: codes, sessions and API keys have ended, and the customer is erased', async () => {
    await backup.restore();
    const home = scene.elsewhere();
    const done = await scene.run(['replay-erasures', '--journal', exported], home);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 1 customer that the backup had brought back; 0 that it did not have\./);
    assert.match(done.stdout, /Ended: 2 codes, 2 sessions, 1 API key\. Dropped: 0 waiting mails\./);
    assert.deepEqual(await coolingDown(), cooldowns, 'the address cools down as before');
    server = await scene.start({ directory: home });
    await erased(server, gone);
    await until('what came late before the backup erased', async () => (await db.query(`select from ${tableOf('contact')} where customer_id = $1 and tm_delete is null`, [early.id])).length === 0);
    assert.equal((await gate(server, bearer(session))).status, 401);
    assert.equal((await gate(server, asKey(key))).status, 401);
    assertError(await signIn({ email: own.coded.email, code: own.coded.code }), 401, 'INVALID_CREDENTIALS');
    assertRefused(await validate(server, own.orphan.email, own.orphan.code), 'cleanup-v1', contracts['cleanup-v1'].gone);
    assert.equal((await db.query('select from auth.users where id = $1', [own.orphan.id])).length, 1);
    const verified = await scene.run(['journal', 'verify'], home);
    assert.equal(verified.code, 0, verified.stderr);
    assert.match(verified.stdout, /1 restore\./);
    await stop(server);
  });

  it('replays from a folder, and with --keep-keys API keys work on, while all else has ended', async () => {
    await backup.restore();
    const home = scene.elsewhere();
    const before = fs.readdirSync(folder).map((name) => fs.readFileSync(path.join(folder, name), 'utf8'));
    const done = await scene.run(['replay-erasures', '--journal', folder, '--keep-keys'], home);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Ended: 2 codes, 2 sessions, 0 API keys\./);
    assert.deepEqual(await db.query('select from reclaim.console_sessions where ended_at is null'), []);
    assert.deepEqual(fs.readdirSync(folder).map((name) => fs.readFileSync(path.join(folder, name), 'utf8')), before, 'the copy is only read');
    server = await scene.start({ directory: home });
    await erased(server, gone);
    assert.equal((await gate(server, asKey(key))).status, 200);
    assert.equal((await gate(server, bearer(session))).status, 401);
    await stop(server);
  });
});

describe('a replay', () => {
  let scene, db, backup, server, customers, near;
  const protect = ({ id }) => db.query('insert into public.protected values ($1)', [id]);
  const again = () => scene.run(['replay-erasures']);
  const statuses = () => Promise.all(customers.map((customer) => statusOf(db, customer)));
  const dateOf = async ({ id }) =>
    (await db.query(`select deletion_effective_at::text as date, extract(epoch from deletion_effective_at - clock_timestamp())::int / 86400.0 as days from reclaim.customer_customers where id = $1`, [id])).map(({ date, days }) => ({ date, days: Number(days) }))[0];
  const count = async (what, values) => Number((await db.query(`select count(*) as count from ${what}`, values))[0].count);

  async function restore() {
    if (server) await stop(server);
    await backup.restore();
    server = await scene.start({ wait: 'listening' });
    await says(server, 'restored');
  }

  /** Whatever it went through: each customer was erased again once, and one line ends it. */
  async function assertTotals() {
    assert.deepEqual(await statuses(), customers.map(() => 'deleted'));
    await says(server, 'ready');
    for (const customer of customers) {
      await erased(server, customer);
      assert.equal(await count(`reclaim.event_outbox where type = 'customer_deleted' and customer_id = $1`, [customer.id]), 1);
      assert.equal(await count(`reclaim.customer_log where action = 'replay' and customer_id = $1`, [customer.id]), 1);
      assert.equal((await ledger(server, customer.id)).json.participants.find(({ name }) => name === 'contact').rows, 2);
    }
    assert.equal(await count('reclaim.journal_lines where lost'), 0);
    assert.equal(await count(`reclaim.journal_lines where kind = 'restore' and not imported`), 1);
    assert.equal(await count('reclaim.erased_before'), 0);
    assert.deepEqual(scene.provider.delivered.filter(({ mail }) => /was deleted/.test(mail.subject)).length, customers.length, 'nobody is mailed a second time');
    for (const check of [['journal', 'verify'], ['audit', 'verify']]) {
      const done = await scene.run(check);
      assert.equal(done.code, 0, done.stdout + done.stderr);
    }
  }

  before(async () => {
    scene = await prepare({
      adopt: `create table public.customer_customers (id uuid primary key, name text, email text, phone_number text, status text);
        create table public.protected (id uuid);
        create function public.protect() returns trigger language plpgsql as $$ begin
          if exists (select from public.protected p where p.id = old.id) then raise exception 'this one stays'; end if; return new; end $$;
        create trigger protect before update on public.customer_customers for each row execute function public.protect();
        create table public.slow (id uuid);
        create function public.slow() returns trigger language plpgsql as $$ begin
          if exists (select from public.slow s where s.id = old.id) then perform pg_sleep(31); end if; return new; end $$;
        create trigger slow before update on public.customer_customers for each row when (new.status = 'deleted') execute function public.slow()`,
    });
    ({ db } = scene);
    server = await scene.start();
    await addServices(stage, db, ['contact']);
    customers = [];
    for (let n = 0; n < 4; n++) {
      customers.push(await addCustomer(db));
      await fillServices(db, customers[n], 2, ['contact']);
    }
    near = await addCustomer(db);
    assert.equal((await freeze(server, near.id)).status, 200);
    await frozenSince(db, near, '25 days');
    await until('no mail waiting', async () => (await count('reclaim.work_items')) === 0);
    backup = dumpOf(stage, db);
    await backup.take();
    for (const customer of customers) {
      assert.equal((await remove(server, customer.id)).status, 200);
      await erased(server, customer);
    }
    await until('mails sent', async () => (await count('reclaim.work_items')) === 0);
  });

  it('names a customer that cannot be deleted, erases the others, and finishes once that is mended', async () => {
    await restore();
    await protect(customers[1]);
    const done = await again();
    assert.equal(done.code, 1);
    assert.match(done.stderr, new RegExp(`1 erasure could not be replayed, the first of customer ${customers[1].id} \\(SQLSTATE P0001\\)`));
    assert.match(done.stdout, /Erased again: 3 customers /);
    assert.deepEqual(await statuses(), ['deleted', 'active', 'deleted', 'deleted']);
    assert.equal(await readyz(server), 'restored');
    assertError(await remove(server, customers[1].id), 503, 'RESTORED');
    assert.equal((await again()).code, 1);
    await db.query('delete from public.protected');
    const mended = await again();
    assert.equal(mended.code, 0, mended.stderr);
    assert.match(mended.stdout, /Erased again: 1 customer /);
    await assertTotals();
  });

  it('goes on when a customer takes longer than a statement of a server may', async () => {
    await restore();
    await db.query('insert into public.slow values ($1)', [customers[2].id]);
    const done = await scene.run(['replay-erasures'], scene.home, { deadlineMs: 100_000 });
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 4 customers /);
    await assertTotals();
  });

  for (const commits of [false, true])
    it(`killed between two customers is repeated, and ${commits ? 'what it was at is committed meanwhile' : 'what it was at is rolled back'}`, async () => {
      await restore();
      await protect(customers[1]); // so that they go one after the other
      const stopped = await stopBefore(stage, db, `insert on reclaim.erasures for each row when (new.customer_id = '${customers[2].id}')`);
      const killed = await scene.start({ command: ['replay-erasures'], wait: 'nothing' });
      await stopped.reached();
      await killed.kill9();
      if (!commits) await stopped.terminate();
      await stopped.lift();
      const expected = ['deleted', 'active', commits ? 'deleted' : 'active', 'active'];
      assert.deepEqual(await statuses(), expected);
      assert.equal(await readyz(server), 'restored');
      await db.query('delete from public.protected');
      const done = await again();
      assert.equal(done.code, 0, done.stderr);
      assert.match(done.stdout, new RegExp(`Erased again: ${expected.filter((status) => status === 'active').length} customers `));
      await assertTotals();
    });

  for (const commits of [false, true])
    it(`killed when all are erased and its end ${commits ? 'is' : 'is not'} committed is repeated`, async () => {
      await restore();
      const stopped = await stopBefore(stage, db, `insert on reclaim.journal_lines for each row when (new.kind = 'restore')`);
      const killed = await scene.start({ command: ['replay-erasures'], wait: 'nothing' });
      await stopped.reached();
      await killed.kill9();
      assert.equal(await readyz(server), 'restored');
      const moved = await dateOf(near);
      assert.ok(moved.days >= 7, 'nobody who may have recovered is deleted soon');
      if (!commits) await stopped.terminate();
      await stopped.lift();
      const done = await again();
      assert.equal(done.code, 0, done.stderr);
      assert.equal((await dateOf(near)).date, moved.date, 'a date is moved once');
      await assertTotals();
    });
});

describe('while the database is restored', () => {
  let scene, db, provider, server, backup, all, mails, published, gone, due, reminded, waiting, told, account;
  /** Since the restore. */
  const subjectsTo = ({ email }) => provider.delivered.slice(mails).filter(({ mail }) => mail.to === email).map(({ mail }) => mail.subject);
  /** As often as that the leader has looked for what is due; expiry, reminders and mails are looked for as often at least. */
  const passes = (count) => until(`${count} passes`, async () => (await metric(server, 'reclaim_leader_duties_total', { duty: 'subscriptions', outcome: 'done' })) >= count);

  /** Brings the backup back, with work that has become due since. */
  async function restore() {
    await backup.restore();
    await frozenSince(db, due);
    await frozenSince(db, reminded, '29 days 1 hour');
    await db.query(`update reclaim.billing_subscriptions set next_charge_at = clock_timestamp() - interval '1 hour', attempt_at = clock_timestamp() - interval '1 hour'`);
    await db.query(`update reclaim.work_items set due_at = clock_timestamp() - interval '1 hour', leased_until = null, leased_by = null`);
    provider.answer();
    mails = provider.delivered.length;
    published = all?.events.length ?? 0;
  }

  async function start() {
    server = await scene.start({ wait: 'listening', settings: { RECLAIM_AMQP_URL: (await broker).url() } });
    await says(server, 'restored');
  }

  async function assertNothingDone() {
    assert.equal(await statusOf(db, due), 'frozen');
    assert.deepEqual(await chargesOf(db, account), []);
    assert.deepEqual(provider.delivered.slice(mails).map(({ mail }) => mail.subject), []);
    assert.deepEqual(await db.query('select type from reclaim.event_outbox where published_at is not null'), []);
    assert.deepEqual(all.events.slice(published), []);
    assert.equal(await statusOf(db, gone), 'active', 'the backup brought it back');
  }

  before(async () => {
    scene = await prepare();
    ({ db, provider } = scene);
    server = await scene.start();
    await addServices(stage, db, ['contact']);
    const payer = await addCustomer(db);
    [gone, due, reminded, waiting, told] = [await addCustomer(db), await addCustomer(db), await addCustomer(db), await addCustomer(db), await addCustomer(db)];
    account = await addBillingAccount(db, payer);
    const subscribed = await subscribe(server, { billing_account_id: account.id, amount_micros: 10, period: '1d', reference: 'plan', first_charge_at: '2999-01-01T00:00:00Z' });
    assert.equal(subscribed.status, 201, subscribed.body);
    for (const customer of [due, reminded, waiting]) assert.equal((await freeze(server, customer.id)).status, 200);
    for (const { email } of [due, reminded, waiting]) await provider.mailTo(email);
    provider.answer({ status: 500 });
    await frozenSince(db, waiting, '29 days 1 hour');
    await until('a reminder in vain', () => provider.attempts.some(({ mail, delivered }) => mail.to === waiting.email && !delivered));
    await server.kill9(); // stopped, it would wait for the mail
    await change(db, told.id);
    const templates = await db.query(`select payload ->> 'template' as name from reclaim.work_items where kind = 'mail' order by id`);
    assert.deepEqual(templates.map(({ name }) => name), ['customer-reminder', 'customer-frozen']);
    backup = dumpOf(stage, db);
    await backup.take();

    server = await scene.start();
    assert.equal((await remove(server, gone.id)).status, 200);
    await erased(server, gone);
    await server.kill9();
    await restore();
    all = await Subscriber.start(stage, await broker);
    await start();
  });

  it('nobody is deleted, charged, reminded or mailed, and no event is published', async () => {
    await passes(3);
    await assertNothingDone();
  });

  it('/metrics says so', async () => {
    assert.equal(await metric(server, 'reclaim_restored'), 1);
  });

  it('the replay drops mails that were waiting at the backup, and lets all other work go on', async () => {
    const done = await scene.run(['replay-erasures']);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 1 customer that/);
    assert.match(done.stdout, /Dropped: 2 waiting mails\./);
    assert.match(done.stdout, /Moved: 3 deletion dates of frozen customers/);
    assert.match(done.stdout, /Lost: freezes, recoveries and legal holds since the backup\. Make them again\./);
    await says(server, 'ready');
    assert.equal(await metric(server, 'reclaim_restored'), 0);
    await erased(server, gone);
    await until('charged', async () => (await chargesOf(db, account)).length === 1);
    await until('all events published', async () => (await db.query('select from reclaim.event_outbox where published_at is null')).length === 0);
    for (const customer of [due, reminded, waiting, told]) await until('its event', () => all.of(customer.id).some(({ type }) => type === 'customer_frozen'));
    await until('no work left', async () => (await db.query('select from reclaim.work_items')).length === 0);
    for (const customer of [told, gone]) assert.deepEqual(subjectsTo(customer), []);
  });

  it('it moves deletions that are near: nobody who may have recovered since the backup is deleted without a mail and a week', async () => {
    for (const customer of [due, reminded, waiting]) {
      assert.equal(await statusOf(db, customer), 'frozen');
      assert.deepEqual(subjectsTo(customer), ['Your account has a new deletion date']);
      const [{ ahead }] = await db.query(`select deletion_effective_at > clock_timestamp() + interval '7 days' as ahead from reclaim.customer_customers where id = $1`, [customer.id]);
      assert.ok(ahead);
    }
    await db.query(`update reclaim.customer_customers set deletion_effective_at = clock_timestamp() - interval '1 minute' where id = $1`, [due.id]);
    await deleted(db, due);
    await erased(server, due);
    await until('the last mail', () => subjectsTo(due).some((subject) => /was deleted/.test(subject)));
  });

  it('nor does a server that is started again meanwhile, whatever is due', async () => {
    await stop(server);
    await restore();
    await start();
    for (let n = 0; n < 3; n++) {
      await stop(server);
      await start();
      await passes(1);
      await assertNothingDone();
    }
  });
});
