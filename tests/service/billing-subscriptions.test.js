// Subscriptions: every period that has begun is charged once, whatever happens to whoever charges it.
// takes long

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { balanceOf, chargesInsideFreezes, chargesOf, clockOf, newReference, showSubscription, subscribe, unsubscribe } from './lib/billing.js';
import { addBillingAccount, addCustomer, assertError, env, freeze, recover, scene } from './lib/customers.js';
import { ops } from './lib/http.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(() => stage.end());

const hourMs = 3_600_000;

async function addAccount(given) {
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer, given);
  return { customer, account };
}
const wish = (account, more = {}) => ({ billing_account_id: account.id, amount_micros: 10, period: '1h', reference: newReference('plan'), ...more });
async function made(body) {
  const answer = await subscribe(server, body);
  assert.equal(answer.status, 201, answer.body);
  return answer.json;
}
const ago = (ms) => new Date(Date.now() - ms).toISOString();
const microsOf = (instant) => BigInt(Date.parse(instant)) * 1000n + BigInt(instant.slice(-4, -1));
const occurred = async (account) => (await chargesOf(db, account)).map(({ occurred_at }) => occurred_at).sort();
const charged = (account, count) => until(`${count} charges`, async () => (await occurred(account)).length === count);

describe('a subscription', () => {
  it('is charged when it is made, and next a period later', async () => {
    const { account } = await addAccount({ balance: 100 });
    const subscription = await made(wish(account));
    assert.equal(subscription.status, 'active');
    assert.equal(subscription.period_seconds, 3600);
    await charged(account, 1);
    const [charge] = await chargesOf(db, account);
    assert.deepEqual(charge, {
      reference: `sub:${subscription.id}:${subscription.next_charge_at}`,
      amount: 10,
      occurred_at: subscription.next_charge_at,
      subscription_id: subscription.id,
    });
    const { json } = await showSubscription(server, subscription.id);
    assert.equal(Date.parse(json.next_charge_at) - Date.parse(subscription.next_charge_at), hourMs);
    assert.equal(await balanceOf(db, account), 90);
  });

  it('that has not begun is not charged', async () => {
    const { account } = await addAccount();
    await made(wish(account, { first_charge_at: '2999-01-01T00:00:00Z' }));
    const other = await addAccount();
    await made(wish(other.account));
    await charged(other.account, 1);
    assert.deepEqual(await occurred(account), []);
  });

  it('makes up for missed periods, one charge each', async () => {
    const { account } = await addAccount({ balance: 1000 });
    const first_charge_at = ago(4.5 * hourMs);
    const subscription = await made(wish(account, { first_charge_at }));
    await charged(account, 5);
    assert.deepEqual(
      (await occurred(account)).map((instant) => Date.parse(instant)),
      [0, 1, 2, 3, 4].map((n) => Date.parse(first_charge_at) + n * hourMs),
    );
    assert.equal(Date.parse((await showSubscription(server, subscription.id)).json.next_charge_at), Date.parse(first_charge_at) + 5 * hourMs);
    assert.equal(await balanceOf(db, account), 950);
  });

  it('is made once a reference, and another one is refused', async () => {
    const { account } = await addAccount();
    const body = wish(account, { first_charge_at: '2999-01-01T00:00:00Z' });
    const answers = await Promise.all(Array.from({ length: 8 }, () => subscribe(server, body)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(7).fill(200), 201]);
    assert.equal(new Set(answers.map(({ json }) => json.id)).size, 1);
    for (const more of [{ amount_micros: 11 }, { period: '2h' }, { first_charge_at: '2998-01-01T00:00:00Z' }, { first_charge_at: null }])
      assertError(await subscribe(server, { ...body, ...more }), 409, 'REFERENCE_USED');
    assertError(await subscribe(server, { ...body, billing_account_id: (await addAccount()).account.id }), 409, 'REFERENCE_USED');
    assert.equal((await subscribe(server, { ...body, period: undefined, period_seconds: 3600 })).status, 200);
  });

  it('goes on, the next charge moved by exactly the time frozen', async () => {
    const { customer, account } = await addAccount();
    const subscription = await made(wish(account));
    await charged(account, 1);
    const before = (await showSubscription(server, subscription.id)).json;
    await freeze(server, customer.id);
    const paused = (await showSubscription(server, subscription.id)).json;
    assert.equal(paused.status, 'paused');
    assertError(await subscribe(server, wish(account)), 403, 'ACCOUNT_FROZEN');
    await recover(server, customer.id);
    const after = (await showSubscription(server, subscription.id)).json;
    assert.equal(after.status, 'active');
    const [{ us }] = await db.query(
      'select (extract(epoch from thawed_at - frozen_at) * 1000000)::bigint as us from reclaim.billing_freezes where billing_account_id = $1',
      [account.id],
    );
    assert.ok(BigInt(us) > 0n);
    assert.equal(microsOf(after.next_charge_at) - microsOf(before.next_charge_at), BigInt(us));
  });

  it('is charged nothing while frozen but what was due before', async () => {
    const { customer, account } = await addAccount({ balance: 0 });
    const first_charge_at = ago(1.5 * hourMs);
    const subscription = await made(wish(account, { first_charge_at }));
    await until('a refusal', async () => (await showSubscription(server, subscription.id)).json.trouble === 'too_little');
    await freeze(server, customer.id);
    await db.query('update reclaim.billing_accounts set balance_micros = 1000 where id = $1', [account.id]);
    await charged(account, 2);
    // Another one that is due meanwhile shows that the leader has passed.
    await db.query(`update reclaim.billing_subscriptions set next_charge_at = clock_timestamp() where id = $1`, [subscription.id]);
    const other = await addAccount();
    await made(wish(other.account));
    await charged(other.account, 1);
    assert.equal((await occurred(account)).length, 2);
    assert.equal((await showSubscription(server, subscription.id)).json.status, 'paused');
    await recover(server, customer.id);
    assert.deepEqual(await chargesInsideFreezes(db), []);
  });

  it('that cannot be paid stays due, keeps nobody waiting, and is paid as soon as there is money', async () => {
    const poor = await addAccount({ balance: 9 });
    const rich = await addAccount({ balance: 100 });
    const subscription = await made(wish(poor.account));
    await until('a refusal', async () => (await showSubscription(server, subscription.id)).json.trouble === 'too_little');
    const unpaid = async () => valueOf(parseMetrics((await ops(server, '/metrics')).body), 'reclaim_subscriptions_unpaid');
    await until('it is counted', async () => (await unpaid()) >= 1);
    await made(wish(rich.account));
    await charged(rich.account, 1);
    assert.deepEqual(await occurred(poor.account), []);
    await db.query('update reclaim.billing_accounts set balance_micros = 10 where id = $1', [poor.account.id]);
    await charged(poor.account, 1);
    const { json } = await showSubscription(server, subscription.id);
    assert.deepEqual([json.trouble, await balanceOf(db, poor.account)], [null, 0]);
  });

  it('of an account that somebody has locked waits alone', async () => {
    const locked = await addAccount();
    const free = await addAccount();
    const session = await db.session(stage);
    await session.query('begin');
    await session.query('select from reclaim.billing_accounts where id = $1 for update', [locked.account.id]);
    await db.query(
      `insert into reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at)
       values ($1, 1, 3600, clock_timestamp())`,
      [locked.account.id],
    );
    await made(wish(free.account));
    await charged(free.account, 1);
    assert.deepEqual(await occurred(locked.account), []);
    await session.query('rollback');
    await charged(locked.account, 1);
  });

  it('of an account that fails is put off alone', async () => {
    const broken = await addAccount();
    const sound = await addAccount();
    await db.query(`create function public.refuse() returns trigger language plpgsql as $$ begin raise 'no'; end $$`);
    await db.query(
      `create trigger refuse before update of balance_micros on reclaim.billing_accounts for each row when (old.id = '${broken.account.id}')
       execute function public.refuse()`,
    );
    const first = await made(wish(broken.account));
    await made(wish(sound.account));
    await charged(sound.account, 1);
    await until('the failure is kept', async () => (await showSubscription(server, first.id)).json.trouble === 'P0001');
    await db.query('drop trigger refuse on reclaim.billing_accounts');
    await db.query(`update reclaim.billing_accounts set balance_micros = balance_micros + 1 where id = $1`, [broken.account.id]);
    await charged(broken.account, 1);
  });

  it('ends when told, and stays ended', async () => {
    const { account } = await addAccount();
    const subscription = await made(wish(account, { first_charge_at: '2999-01-01T00:00:00Z' }));
    const ended = await unsubscribe(server, subscription.id);
    assert.equal(ended.status, 200, ended.body);
    assert.equal(ended.json.status, 'ended');
    assert.ok(ended.json.tm_end);
    assert.deepEqual((await unsubscribe(server, subscription.id)).json, ended.json);
    for (const ask of [showSubscription, unsubscribe]) {
      assertError(await ask(server, randomUUID()), 404, 'SUBSCRIPTION_NOT_FOUND');
      assertError(await ask(server, 'mine'), 400, 'INVALID_ID');
    }
  });

  const wrong = [
    ['INVALID_BODY', 'nonsense'],
    ['INVALID_ID', { billing_account_id: 'x' }],
    ['INVALID_AMOUNT', { amount_micros: 0 }],
    ['INVALID_AMOUNT', { amount_micros: '10' }],
    ['INVALID_PERIOD', { period: undefined }],
    ['INVALID_PERIOD', { period: '0' }],
    ['INVALID_PERIOD', { period: '1500ms' }],
    ['INVALID_PERIOD', { period: 'monthly' }],
    ['INVALID_PERIOD', { period: 30 }],
    ['INVALID_PERIOD', { period_seconds: 3600 }],
    ['INVALID_PERIOD', { period: undefined, period_seconds: -1 }],
    ['INVALID_PERIOD', { period: undefined, period_seconds: 1e12 }],
    ['INVALID_TIME', { first_charge_at: 'soon' }],
    ['INVALID_TIME', { first_charge_at: '1970-01-01T00:00:00Z' }],
    ['INVALID_REFERENCE', { reference: 'sub:x' }],
    ['INVALID_REFERENCE', { reference: 1 }],
  ];
  it('that makes no sense is refused', async () => {
    const { customer, account } = await addAccount();
    for (const [error, given] of wrong)
      assertError(await subscribe(server, typeof given === 'string' ? given : { ...wish(account), ...given }), 400, error);
    assertError(await subscribe(server, wish({ id: randomUUID() })), 404, 'ACCOUNT_NOT_FOUND');
    await db.query(`update reclaim.billing_accounts set status = 'deleted' where id = $1`, [account.id]);
    assertError(await subscribe(server, wish(account)), 403, 'ACCOUNT_DELETED');
    assert.ok(customer);
    assert.deepEqual(await db.query('select from reclaim.billing_subscriptions where billing_account_id = $1', [account.id]), []);
  });
});

describe('many subscriptions', () => {
  it('are charged each period once, though leaders are killed', async (t) => {
    const own = await scene(t);
    const servers = [own.server, await serve(t, { database: own.db, env })];
    const account = await addBillingAccount(own.db, await addCustomer(own.db), { balance: 1_000_000 });
    const begun = await clockOf(own.db);
    for (let n = 0; n < 20; n++) {
      const answer = await subscribe(servers[0], { billing_account_id: account.id, amount_micros: 1, period: '1s', first_charge_at: begun });
      assert.equal(answer.status, 201, answer.body);
    }
    const total = async () => Number((await own.db.query('select count(*) as n from reclaim.billing_charges'))[0].n);
    for (let round = 0; round < 2; round++) {
      const seen = await total();
      await until('charges', async () => (await total()) >= seen + 40);
      const leader = await until('a leader', async () => {
        for (const one of servers) if (valueOf(parseMetrics((await ops(one, '/metrics')).body), 'reclaim_leader') === 1) return one;
      });
      await leader.kill9();
      servers[servers.indexOf(leader)] = await serve(t, { database: own.db, env });
      const then = await total();
      await until('charges again', async () => (await total()) >= then + 40);
    }
    for (const one of servers) await one.stop();
    const odd = await own.db.query(
      `select s.id, count(c.id) as charges, extract(epoch from s.next_charge_at - s.first_charge_at) as seconds
       from reclaim.billing_subscriptions s left join reclaim.billing_charges c on c.subscription_id = s.id
       group by s.id having count(c.id) <> extract(epoch from s.next_charge_at - s.first_charge_at)
         or count(distinct c.occurred_at) <> count(c.id) or max(c.occurred_at) <> s.next_charge_at - interval '1 second'`,
    );
    assert.deepEqual(odd, [], 'as many charges as periods, one a period, the last one a period ago');
    assert.equal(await balanceOf(own.db, account), 1_000_000 - (await total()));
  });
});
