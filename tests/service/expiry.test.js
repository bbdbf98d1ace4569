// The third phase: thirty days after the freeze everything is gone. The leader looks for it every second here.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  addCustomer,
  addKey,
  asKey,
  assertError,
  asUser,
  auditOf,
  canaryPassword,
  eventsOf,
  freeze,
  login,
  recover,
  rowOf,
  scene,
  show,
} from './lib/customers.js';
import { addPerson, deleted, due, expire, frozenSince, hold, metric, statusOf, unhold } from './lib/erasure.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, provider, cluster;
before(async () => {
  ({ cluster, db, server, provider } = await scene(stage, { settings: { RECLAIM_EXPIRY_INTERVAL: '1s' } }));
});
after(() => stage.end());

const mailsTo = (address) => provider.mailsTo(address).map(({ mail }) => mail);

/** Waits for a pass that began after now: one more customer that is due has been deleted. */
async function aPass() {
  const probe = await addCustomer(db);
  await due(server, db, probe);
  await deleted(db, probe);
}

describe('a customer whose grace is over', () => {
  let person, row;
  before(async () => {
    person = await addPerson(stage, db);
    assert.equal((await login(server, person.user.email, canaryPassword)).status, 200);
    await due(server, db, person);
    await deleted(db, person);
    row = await rowOf(db, person);
  });

  it('is anonymised: the whole id in name and address, the rest empty', () => {
    assert.equal(row.name, `deleted_user_${person.id}`);
    assert.equal(row.email, `deleted_${person.id}@removed.invalid`);
    for (const column of ['detail', 'phone_number', 'address', 'webhook_method', 'webhook_uri']) assert.equal(row[column], '', column);
  });

  it('is deleted, status and time together', async () => {
    assert.equal(row.status, 'deleted');
    assert.ok(row.tm_delete);
    const seen = await show(server, person.id);
    assert.equal(seen.status, 200);
    assert.equal(seen.json.status, 'deleted');
    assert.ok(seen.json.tm_delete);
  });

  it('is told of by customer_deleted, in order, with nothing personal in this event or in those before it', async () => {
    const events = await eventsOf(db, person);
    assert.deepEqual(events.map(({ type }) => type), ['customer_frozen', 'customer_deleted']);
    assert.equal(events[1].sequence, row.version);
    for (const { payload } of events) {
      assert.equal(payload.name, `deleted_user_${person.id}`);
      assert.equal(payload.email, `deleted_${person.id}@removed.invalid`);
      assert.equal(payload.phone_number + payload.address + payload.detail + payload.webhook_uri, '');
    }
    assert.equal(events[1].payload.status, 'deleted');
  });

  it('has no login any more, and its address can register again', async () => {
    assertError(await login(server, person.user.email, canaryPassword), 401, 'INVALID_CREDENTIALS');
    assert.deepEqual(await db.query('select id from auth.users where id = $1', [person.user.id]), []);
    await db.query('insert into auth.users (id, email) values ($1, $2)', [randomUUID(), person.user.email]);
  });

  it('has no credentials any more', async () => {
    assert.equal((await show(server, person.id, asKey(person.key))).status, 401);
    assert.equal((await show(server, person.id, asUser(person.user.id))).status, 401);
    const [key] = await db.query('select revoked_at, name from reclaim.access_keys where customer_id = $1', [person.id]);
    assert.ok(key.revoked_at);
    assert.equal(key.name, '');
  });

  it('has its billing accounts deleted, status and time together', async () => {
    const [account] = await db.query('select status, tm_delete, name from reclaim.billing_accounts where id = $1', [person.account.id]);
    assert.equal(account.status, 'deleted');
    assert.ok(account.tm_delete);
    assert.equal(account.name, '');
  });

  it('is in the audit as expired by the system', async () => {
    const audit = await auditOf(db, person);
    assert.deepEqual(audit.map(({ action, actor, outcome }) => [action, actor, outcome]), [['key_create', 'operator', 'done'], ['freeze', 'admin', 'done'], ['expire', 'system', 'done']]);
  });

  it('gets a last mail, and then its address is forgotten', async () => {
    const mail = await until('the last mail', () => mailsTo(person.email).find(({ subject }) => /was deleted/.test(subject)));
    assert.match(mail.text, /last mail/);
    await until('no work item about it', async () => {
      const items = await db.query(`select payload from reclaim.work_items where payload->>'customer_id' = $1`, [person.id]);
      return items.length === 0;
    });
  });

  it('cannot be recovered, frozen or held', async () => {
    assert.equal((await recover(server, person.id)).status, 404);
    assert.equal((await freeze(server, person.id)).status, 404);
    assert.equal((await hold(server, person.id, 'too late')).status, 404);
  });
});

describe('a customer whose grace is not over', () => {
  it('stays, up to the boundary, whatever goes around it', async () => {
    const fresh = await addCustomer(db);
    await freeze(server, fresh.id);
    const nearly = await addCustomer(db);
    await freeze(server, nearly.id);
    await frozenSince(db, nearly, '29 days 23 hours');
    await aPass();
    assert.equal(await statusOf(db, fresh), 'frozen');
    assert.equal(await statusOf(db, nearly), 'frozen');
  });

  it('stays when it recovered and froze again, however old its first freeze was', async () => {
    const back = await addCustomer(db);
    await freeze(server, back.id);
    await frozenSince(db, back, '29 days 23 hours 59 minutes');
    assert.equal((await recover(server, back.id)).status, 200);
    assert.equal((await freeze(server, back.id)).status, 200);
    await aPass();
    assert.equal(await statusOf(db, back), 'frozen');
  });

  it('recovers as long as no pass has taken it, even past the boundary', async () => {
    const held = await addCustomer(db);
    await freeze(server, held.id);
    await hold(server, held.id, 'keeps the pass away');
    await frozenSince(db, held);
    await aPass();
    assert.equal((await recover(server, held.id)).json.status, 'active');
  });
});

describe('a legal hold', () => {
  it('keeps expiry away, with a reason that the audit shows; ended, the customer goes a week later', async () => {
    const customer = await addCustomer(db);
    const answer = await hold(server, customer.id, '  investigation 7  ');
    assert.equal(answer.status, 200);
    assert.equal(answer.json.legal_hold.reason, 'investigation 7');
    assert.ok(answer.json.legal_hold.since);
    await due(server, db, customer);
    await aPass();
    assert.equal(await statusOf(db, customer), 'frozen');
    const [line] = await db.query(`select detail, actor, correlation_id from reclaim.customer_log where customer_id = $1 and action = 'hold'`, [customer.id]);
    assert.deepEqual(line, { detail: 'investigation 7', actor: 'admin', correlation_id: answer.headers['x-correlation-id'] });

    const free = (await unhold(server, customer.id)).json;
    assert.equal(free.legal_hold, null);
    assert.ok(Date.parse(free.deletion_effective_at) > Date.now() + 6.9 * 86_400_000, free.deletion_effective_at);
    await db.query(`update reclaim.customer_customers set deletion_effective_at = now() where id = $1`, [customer.id]);
    await deleted(db, customer);
    const details = await db.query(`select detail from reclaim.customer_log where customer_id = $1 and detail <> ''`, [customer.id]);
    assert.deepEqual(details, [], 'its words go with the customer');
    assert.equal((await rowOf(db, customer)).hold_reason, null);
  });

  it('wants a reason', async () => {
    const customer = await addCustomer(db);
    for (const reason of [undefined, '', '   ', 7, null, 'x'.repeat(1001)])
      assertError(await hold(server, customer.id, reason), 400, 'INVALID_REASON');
    assert.equal((await hold(server, randomUUID(), 'nobody')).status, 404);
    assert.equal((await unhold(server, customer.id)).status, 200, 'ending none changes nothing');
  });

  it('is set and ended from the command line', async () => {
    const customer = await addCustomer(db);
    const set = await run(stage, ['hold', customer.id, '--reason', 'court order'], { database: db });
    assert.equal(set.code, 0, set.stderr);
    assert.equal(JSON.parse(set.stdout).legal_hold.reason, 'court order');
    const refused = await run(stage, ['delete', customer.id], { database: db });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /legal hold/);
    assert.equal(await statusOf(db, customer), 'active');
    const ended = await run(stage, ['unhold', customer.id], { database: db });
    assert.equal(JSON.parse(ended.stdout).legal_hold, null);
    for (const wrong of [['hold', customer.id], ['hold', 'x', '--reason', 'y'], ['unhold', customer.id, '--reason', 'y'], ['hold', customer.id, '--reason', ' ']])
      assert.equal((await run(stage, wrong, { database: db })).code, 2, wrong.join(' '));
  });
});

describe('reminders', () => {
  const subjects = (customer) => mailsTo(customer.email).map(({ subject }) => subject);
  const reminded = async (customer, times) =>
    until(`${times} reminders`, () => subjects(customer).filter((subject) => /soon be gone/.test(subject)).length === times);

  it('come once each, and anew after freezing again', async () => {
    const customer = await addCustomer(db);
    await freeze(server, customer.id);
    await frozenSince(db, customer, '23 days 1 hour');
    await reminded(customer, 1);
    await aPass();
    await frozenSince(db, customer, '29 days 1 hour'); // another schedule, so another set of reminders
    await reminded(customer, 2);
    await aPass();
    await aPass();
    assert.equal(subjects(customer).filter((subject) => /soon be gone/.test(subject)).length, 2);
    const mail = mailsTo(customer.email).findLast(({ subject }) => /soon be gone/.test(subject));
    assert.match(mail.text, /On \d+ \w+ \d{4}, \d\d:\d\d UTC your account/);
  });

  it('are not sent to who recovered, is held, or has weeks left', async () => {
    const early = await addCustomer(db);
    const held = await addCustomer(db);
    await freeze(server, early.id);
    await freeze(server, held.id);
    await hold(server, held.id, 'quiet');
    await frozenSince(db, early, '20 days');
    await frozenSince(db, held, '29 days 1 hour');
    await aPass();
    await aPass();
    for (const customer of [early, held]) assert.ok(!subjects(customer).some((subject) => /soon be gone/.test(subject)));
  });
});

describe('one that cannot be deleted', () => {
  it('is counted and told, and keeps nobody else', async () => {
    const stuck = await addCustomer(db);
    const others = [await addCustomer(db), await addCustomer(db)];
    await db.query(`create or replace function public.keep() returns trigger language plpgsql as $$ begin
      if old.id = '${stuck.id}' and new.status = 'deleted' then raise exception 'kept'; end if; return new; end $$`);
    await db.query('create trigger keep before update on reclaim.customer_customers for each row execute function public.keep()');
    try {
      for (const one of [stuck, ...others]) await due(server, db, one);
      for (const one of others) await deleted(db, one);
      assert.equal(await statusOf(db, stuck), 'frozen');
      await server.line('which one', (line) => line.event === 'customer cannot be deleted' && line.customer_id === stuck.id && line.sqlstate === 'P0001');
      assert.ok((await metric(server, 'reclaim_expiry_failures_total')) >= 1);
    } finally {
      await db.query('drop trigger keep on reclaim.customer_customers');
    }
    await deleted(db, stuck);
  });
});

describe('reclaim expire', () => {
  let quiet;
  before(async () => {
    quiet = await cluster.database(stage);
    assert.equal((await run(stage, ['migrate'], { database: quiet })).code, 0);
  });
  const add = async (ago) => {
    const customer = await addCustomer(quiet, { status: 'frozen' });
    await frozenSince(quiet, customer, ago);
    return customer;
  };

  it('lists with --dry-run and deletes nobody; then deletes those, and prints how many', async () => {
    const gone = [await add('31 days'), await add('40 days')];
    const stays = await add('29 days');
    const listed = await expire(stage, quiet, '--dry-run');
    assert.deepEqual(listed.at(-1), { processed: 0, due: 2 });
    assert.deepEqual(listed.slice(0, -1).map((line) => line.customer_id), [gone[1].id, gone[0].id]);
    assert.equal(await statusOf(quiet, gone[0]), 'frozen');
    assert.equal(await expire(stage, quiet), 2);
    for (const one of gone) assert.equal(await statusOf(quiet, one), 'deleted');
    assert.equal(await statusOf(quiet, stays), 'frozen');
    assert.equal(await expire(stage, quiet), 0, 'each is processed once');
  });

  it('keeps to the promised date, whatever RECLAIM_GRACE says by then', async () => {
    await quiet.query(`update reclaim.customer_customers set status = 'active' where status = 'frozen'`);
    const customer = await add('1 hour');
    await quiet.query(`update reclaim.customer_customers set deletion_effective_at = now() + interval '1 minute' where id = $1`, [customer.id]);
    const within = await run(stage, ['expire'], { database: quiet, env: { RECLAIM_GRACE: '1m' } });
    assert.deepEqual(JSON.parse(within.stdout), { processed: 0 });
    await quiet.query(`update reclaim.customer_customers set deletion_effective_at = now() where id = $1`, [customer.id]);
    const past = await run(stage, ['expire'], { database: quiet });
    assert.deepEqual(JSON.parse(past.stdout), { processed: 1 });
    assert.equal(await statusOf(quiet, customer), 'deleted');
  });

  it('fails with 1 and says so when there is no schema', async () => {
    const bare = await cluster.database(stage);
    assert.equal((await run(stage, ['expire'], { database: bare })).code, 1);
    assert.equal((await run(stage, ['expire', '--slowly'], { database: bare })).code, 2);
  });
});

describe('two keys of one customer', () => {
  it('are both revoked', async () => {
    const customer = await addCustomer(db);
    const keys = [await addKey(stage, db, customer), await addKey(stage, db, customer)];
    for (const key of keys) assert.equal((await show(server, customer.id, asKey(key))).status, 200);
    await due(server, db, customer);
    await deleted(db, customer);
    for (const key of keys) await until('a key refused', async () => (await show(server, customer.id, asKey(key))).status === 401);
  });
});
