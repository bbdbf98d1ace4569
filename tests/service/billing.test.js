// Billing: what is charged, what is refused, and what a freeze does to it.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  adjust,
  balanceOf,
  charge,
  chargesInsideFreezes,
  chargesOf,
  clockOf,
  deleteAccount,
  listAccounts,
  listAdjustments,
  listCharges,
  listSubscriptions,
  newReference,
  showAccount,
  showSubscription,
  subscribe,
  unsubscribe,
  validBalance,
} from './lib/billing.js';
import { instantOf, microsOf } from './lib/billing-model.js';
import { addBillingAccount, addCustomer, addKey, asKey, assertError, asUser, auditOf, bearer, freeze, recover, scene } from './lib/customers.js';
import { remove } from './lib/erasure.js';
import { ops } from './lib/http.js';
import { parseMetrics, valueOf } from './lib/prometheus.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(() => stage.end());

async function addAccount(given) {
  const customer = await addCustomer(db);
  const account = await addBillingAccount(db, customer, given);
  return { customer, account };
}
const chargeOf = (account, amount_micros, more = {}) => ({ billing_account_id: account.id, amount_micros, reference: newReference(), ...more });

describe('POST /v1/billing/charges', () => {
  it('takes the amount off the balance and answers with the charge', async () => {
    const { account } = await addAccount({ balance: 1000 });
    const body = chargeOf(account, 300);
    const answer = await charge(server, body);
    assert.equal(answer.status, 201, answer.body);
    const { id, created_at, occurred_at, ...rest } = answer.json;
    assert.ok(id && created_at);
    assert.equal(occurred_at, created_at, 'without a time it occurred now');
    assert.deepEqual(rest, { ...body, charged_micros: 300, started_at: null, subscription_id: null, balance_after_micros: 700 });
    assert.equal(await balanceOf(db, account), 700);
  });

  it('answers a repeated request with the same charge and takes nothing', async () => {
    const { account } = await addAccount({ balance: 1000 });
    const body = chargeOf(account, 300, { occurred_at: '2026-01-01T10:00:00.5+01:00' });
    const first = await charge(server, body);
    assert.equal(first.status, 201, first.body);
    assert.equal(first.json.occurred_at, '2026-01-01T09:00:00.500000Z');
    const again = await charge(server, body);
    assert.equal(again.status, 200, again.body);
    assert.deepEqual(again.json, first.json);
    assert.equal((await charge(server, { ...body, occurred_at: '2026-01-01T09:00:00.5Z' })).status, 200, 'the same instant');
    assert.equal(await balanceOf(db, account), 700);
  });

  it('charges twenty requests with one reference once', async () => {
    const { account } = await addAccount({ balance: 1000 });
    const body = chargeOf(account, 300);
    const answers = await Promise.all(Array.from({ length: 20 }, () => charge(server, body)));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(19).fill(200), 201]);
    assert.equal(await balanceOf(db, account), 700);
  });

  it('answers 409 to a reference with another amount, account or time', async () => {
    const { account } = await addAccount({ balance: 1000 });
    const other = await addAccount({ balance: 1000 });
    const body = chargeOf(account, 300);
    assert.equal((await charge(server, body)).status, 201);
    assertError(await charge(server, { ...body, amount_micros: 301 }), 409, 'REFERENCE_USED');
    assertError(await charge(server, { ...body, billing_account_id: other.account.id }), 409, 'REFERENCE_USED');
    assertError(await charge(server, { ...body, occurred_at: '2026-01-01T09:00:00Z' }), 409, 'REFERENCE_USED');
    assert.equal(await balanceOf(db, account), 700);
    assert.equal(await balanceOf(db, other.account), 1000);
  });

  it('gives one reference to one of two accounts that ask at once', async () => {
    const accounts = (await Promise.all([addAccount({ balance: 1000 }), addAccount({ balance: 1000 })])).map(({ account }) => account);
    for (let round = 0; round < 10; round++) {
      const reference = newReference();
      const answers = await Promise.all(accounts.map((account) => charge(server, chargeOf(account, 1, { reference }))));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409]);
    }
    assert.equal((await balanceOf(db, accounts[0])) + (await balanceOf(db, accounts[1])), 1990);
  });

  it('answers 402 when the balance does not cover it, and never overdraws, however many ask at once', async () => {
    const { account } = await addAccount({ balance: 1000 });
    assertError(await charge(server, chargeOf(account, 1001)), 402, 'BALANCE_TOO_LITTLE');
    assertError(await charge(server, chargeOf(account, 9007199254740992)), 402, 'BALANCE_TOO_LITTLE');
    const answers = await Promise.all(Array.from({ length: 25 }, () => charge(server, chargeOf(account, 100))));
    assert.deepEqual(answers.map(({ status }) => status).sort(), [...Array(10).fill(201), ...Array(15).fill(402)]);
    assert.equal(await balanceOf(db, account), 0);
  });

  it('may be tried again with the same reference once there is money', async () => {
    const { account } = await addAccount({ balance: 10 });
    const body = chargeOf(account, 11);
    assertError(await charge(server, body), 402, 'BALANCE_TOO_LITTLE');
    await db.query('update reclaim.billing_accounts set balance_micros = balance_micros + 1 where id = $1', [account.id]);
    assert.equal((await charge(server, body)).status, 201);
    assert.equal(await balanceOf(db, account), 0);
  });

  it('answers 404 for an account that is not there', async () => {
    assertError(await charge(server, chargeOf({ id: randomUUID() }, 1)), 404, 'ACCOUNT_NOT_FOUND');
  });

  const wrong = [
    ['INVALID_BODY', 'no JSON', 'nonsense'],
    ['INVALID_BODY', 'a list', []],
    ['INVALID_BODY', 'a number beyond 64 bits', (id) => `{"billing_account_id":"${id}","reference":"r","amount_micros":9223372036854775808}`],
    ['INVALID_BODY', 'a key twice', (id) => `{"billing_account_id":"${id}","reference":"r","amount_micros":1,"amount_micros":2}`],
    ['INVALID_ID', 'no account', { billing_account_id: undefined }],
    ['INVALID_ID', 'an account that is no UUID', { billing_account_id: "' or true --" }],
    ['INVALID_ID', 'an account of another type', { billing_account_id: 7 }],
    ['INVALID_AMOUNT', 'no amount', { amount_micros: undefined }],
    ['INVALID_AMOUNT', 'nothing', { amount_micros: 0 }],
    ['INVALID_AMOUNT', 'a negative amount', { amount_micros: -300 }],
    ['INVALID_AMOUNT', 'a fraction', { amount_micros: 1.5 }],
    ['INVALID_AMOUNT', 'a text', { amount_micros: '300' }],
    ['INVALID_AMOUNT', 'beyond 2^53', (id) => `{"billing_account_id":"${id}","reference":"r","amount_micros":9007199254740993}`],
    ['INVALID_AMOUNT', 'the most negative number', (id) => `{"billing_account_id":"${id}","reference":"r","amount_micros":-9223372036854775808}`],
    ['INVALID_REFERENCE', 'no reference', { reference: undefined }],
    ['INVALID_REFERENCE', 'an empty reference', { reference: '' }],
    ['INVALID_REFERENCE', 'a reference of another type', { reference: ['r'] }],
    ['INVALID_REFERENCE', 'a long reference', { reference: 'r'.repeat(256) }],
    ['INVALID_REFERENCE', 'control characters', { reference: 'a\u0001b' }],
    ['INVALID_REFERENCE', 'a reference of subscriptions', { reference: 'sub:mine' }],
    ['INVALID_TIME', 'words for a time', { occurred_at: 'yesterday' }],
    ['INVALID_TIME', 'infinity', { occurred_at: 'infinity' }],
    ['INVALID_TIME', 'a day that is not there', { occurred_at: '2026-02-30T00:00:00Z' }],
    ['INVALID_TIME', 'a time without a zone', { occurred_at: '2026-02-20T00:00:00' }],
    ['INVALID_TIME', 'a time of another type', { occurred_at: 1771545600 }],
    ['INVALID_TIME', 'a time that has not come', { occurred_at: '2999-01-01T00:00:00Z' }],
    ['INVALID_TIME', 'usage that begins after its end', { started_at: '2026-01-01T00:00:01Z', occurred_at: '2026-01-01T00:00:00Z' }],
    ['INVALID_TIME', 'usage that has not begun', { started_at: '2999-01-01T00:00:00Z' }],
    ['INVALID_TIME', 'usage that ends in the future', { started_at: '2026-01-01T00:00:00Z', occurred_at: '9999-12-31T23:59:59Z' }],
    ['INVALID_TIME', 'words for a beginning', { started_at: 'before' }],
    ['INVALID_TIME', 'a beginning of another type', { started_at: 0 }],
  ];
  for (const [error, what, given] of wrong)
    it(`answers 400 ${error} to ${what}`, async () => {
      const { account } = await addAccount({ balance: 1000 });
      const body = typeof given === 'function' ? given(account.id) : typeof given === 'string' || Array.isArray(given) ? given : { ...chargeOf(account, 300), ...given };
      assertError(await charge(server, body), 400, error);
      assert.equal(await balanceOf(db, account), 1000);
    });

  it('answers 413 to a reference of a megabyte', async () => {
    const { account } = await addAccount({ balance: 1000 });
    assert.equal((await charge(server, chargeOf(account, 1, { reference: 'r'.repeat(1024 * 1024) }))).status, 413);
    assert.equal(await balanceOf(db, account), 1000);
  });

  it('takes any text for a reference as it is', async () => {
    const { account } = await addAccount({ balance: 1000 });
    for (const reference of [`'; drop table reclaim.billing_charges; --${newReference()}`, `☎ ${newReference('Gespräch')} 📞`, `%s%n$1 ${newReference()}`]) {
      const answer = await charge(server, chargeOf(account, 1, { reference }));
      assert.equal(answer.status, 201, answer.body);
      assert.equal(answer.json.reference, reference);
    }
  });

  it('is counted, by what became of it', async () => {
    const counted = async (outcome) => valueOf(parseMetrics((await ops(server, '/metrics')).body), 'reclaim_billing_charges_total', { outcome });
    const before = { charged: await counted('charged'), too_little: await counted('too_little') };
    const { account } = await addAccount({ balance: 1 });
    await charge(server, chargeOf(account, 1));
    await charge(server, chargeOf(account, 1));
    assert.equal(await counted('charged'), before.charged + 1);
    assert.equal(await counted('too_little'), before.too_little + 1);
  });
});

describe('a freeze', () => {
  it('stops charges of later usage, lets earlier usage pass, and is over with recovery', async () => {
    const { customer, account } = await addAccount({ balance: 1000 });
    const earlier = await clockOf(db);
    const late = chargeOf(account, 1, { occurred_at: earlier });
    const made = chargeOf(account, 1);
    assert.equal((await charge(server, made)).status, 201);
    const frozen = await freeze(server, customer.id);
    assert.equal(frozen.status, 200, frozen.body);

    assertError(await charge(server, chargeOf(account, 1)), 403, 'ACCOUNT_FROZEN');
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: await clockOf(db) })), 403, 'ACCOUNT_FROZEN');
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: frozen.json.tm_deletion_scheduled })), 403, 'ACCOUNT_FROZEN');
    assert.equal((await charge(server, late)).status, 201, 'what occurred before it is still owed');
    assert.equal((await charge(server, made)).status, 200, 'what was charged stays charged');
    assert.equal((await showAccount(server, account.id)).json.frozen_at, frozen.json.tm_deletion_scheduled, 'one instant for all');
    const inside = await clockOf(db);

    assert.equal((await recover(server, customer.id)).status, 200);
    assert.equal((await charge(server, chargeOf(account, 1))).status, 201);
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: inside })), 403, 'USAGE_WHILE_FROZEN');
    assert.equal((await charge(server, chargeOf(account, 1, { occurred_at: earlier }))).status, 201);
    assert.equal(await balanceOf(db, account), 996);
    assert.deepEqual(await chargesInsideFreezes(db), []);
  });

  it('is in billing with its commit, and how long that took is measured', async () => {
    const measured = async () => valueOf(parseMetrics((await ops(server, '/metrics')).body), 'reclaim_freeze_billing_seconds_count');
    const before = await measured();
    const { customer } = await addAccount();
    const { json } = await freeze(server, customer.id);
    assert.equal(json.freeze.billing, json.tm_deletion_scheduled);
    await freeze(server, customer.id);
    await recover(server, customer.id);
    assert.equal(await measured(), before + 1);
  });

  it('charges usage that it interrupted up to its beginning, also a call that it ended', async () => {
    const { customer, account } = await addAccount({ balance: 10_000 });
    const { json } = await freeze(server, customer.id);
    const micros = microsOf(json.tm_deletion_scheduled);
    const at = (ms) => instantOf(micros + BigInt(ms) * 1000n);
    await until('half a second of freeze', async () => microsOf(await clockOf(db)) > micros + 500_000n);
    const ended = await charge(server, chargeOf(account, 600, { started_at: at(-60_000), occurred_at: at(0) }));
    assert.deepEqual([ended.status, ended.json.amount_micros, ended.json.charged_micros], [201, 600, 600], 'a call that the freeze ended');
    const body = chargeOf(account, 1000, { started_at: at(-1000), occurred_at: at(500) });
    const part = await charge(server, body);
    assert.deepEqual([part.status, part.json.amount_micros, part.json.charged_micros, part.json.balance_after_micros], [201, 1000, 666, 8734]);
    assert.equal(part.json.started_at, body.started_at);
    const again = await charge(server, body);
    assert.equal(again.status, 200);
    assert.deepEqual(again.json, part.json);
    for (const other of [{ amount_micros: 666 }, { started_at: undefined }, { started_at: at(-999) }, { occurred_at: at(499) }])
      assertError(await charge(server, { ...body, ...other }), 409, 'REFERENCE_USED');
    assertError(await charge(server, chargeOf(account, 600, { started_at: at(0), occurred_at: at(500) })), 403, 'ACCOUNT_FROZEN');
    assertError(await charge(server, chargeOf(account, 600, { started_at: at(100), occurred_at: at(100) })), 403, 'ACCOUNT_FROZEN');
    assert.equal((await charge(server, chargeOf(account, 1, { started_at: at(-100), occurred_at: at(-100) }))).json.charged_micros, 1, 'usage without a length');
    assert.equal((await charge(server, chargeOf(account, 1000, { started_at: '1970-01-01T00:00:00Z', occurred_at: at(1) }))).json.charged_micros, 999, 'rounded down');
    await recover(server, customer.id);
    assertError(await charge(server, chargeOf(account, 600, { started_at: at(0), occurred_at: at(500) })), 403, 'USAGE_WHILE_FROZEN');
    assert.equal((await charge(server, { ...chargeOf(account, 1000, { started_at: at(-1000), occurred_at: at(500) }) })).json.charged_micros, 666, 'as much as before');
    assert.equal(await balanceOf(db, account), 10_000 - 600 - 666 - 1 - 999 - 666);
  });

  it('remembers each of several freezes', async () => {
    const { customer, account } = await addAccount({ balance: 1000 });
    const outside = [];
    const inside = [];
    for (let n = 0; n < 3; n++) {
      outside.push(await clockOf(db));
      assert.equal((await freeze(server, customer.id)).status, 200);
      inside.push(await clockOf(db));
      if (n < 2) assert.equal((await recover(server, customer.id)).status, 200);
    }
    for (const occurred_at of outside) assert.equal((await charge(server, chargeOf(account, 1, { occurred_at }))).status, 201);
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: inside[0] })), 403, 'USAGE_WHILE_FROZEN');
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: inside[1] })), 403, 'USAGE_WHILE_FROZEN');
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: inside[2] })), 403, 'ACCOUNT_FROZEN');
    assert.equal(await balanceOf(db, account), 997);
  });

  it('concerns all accounts of the customer and nobody else’s', async () => {
    const { customer, account } = await addAccount();
    const second = await addBillingAccount(db, customer);
    const other = await addAccount();
    await freeze(server, customer.id);
    const third = await addBillingAccount(db, customer);
    for (const one of [account, second, third]) {
      assertError(await charge(server, chargeOf(one, 1)), 403, 'ACCOUNT_FROZEN');
      assert.deepEqual((await showAccount(server, one.id)).json.hold_reasons, ['account_frozen']);
    }
    assert.equal((await charge(server, chargeOf(other.account, 1))).status, 201);
    await recover(server, customer.id);
    for (const one of [account, second, third]) assert.equal((await charge(server, chargeOf(one, 1))).status, 201);
  });

  it('leaves a hold of another kind where it is', async () => {
    const { customer, account } = await addAccount();
    const earlier = await clockOf(db);
    await db.query(`update reclaim.billing_accounts set status = 'frozen', hold_reasons = '{fraud}' where id = $1`, [account.id]);
    const refused = async () => {
      assertError(await charge(server, chargeOf(account, 1)), 403, 'ACCOUNT_FROZEN');
      assertError(await charge(server, chargeOf(account, 1, { occurred_at: earlier })), 403, 'ACCOUNT_FROZEN');
    };
    await refused();
    await freeze(server, customer.id);
    await refused();
    assert.deepEqual((await showAccount(server, account.id)).json.hold_reasons, ['fraud', 'account_frozen']);
    await recover(server, customer.id);
    await refused();
    const { json } = await showAccount(server, account.id);
    assert.deepEqual([json.status, json.hold_reasons, json.frozen_at], ['frozen', ['fraud'], null]);
  });

  it('leaves a hold that nobody gave a reason for where it is', async () => {
    const { customer, account } = await addAccount();
    await db.query(`update reclaim.billing_accounts set status = 'frozen' where id = $1`, [account.id]);
    await freeze(server, customer.id);
    await recover(server, customer.id);
    assert.equal((await showAccount(server, account.id)).json.status, 'frozen');
  });

  it('and the charges that race it agree: none is of usage inside it', async () => {
    const { customer, account } = await addAccount({ balance: 1_000_000 });
    for (let round = 0; round < 5; round++) {
      let over = false;
      const counts = {};
      const chargers = Array.from({ length: 8 }, async () => {
        while (!over) {
          const { status } = await charge(server, chargeOf(account, 1));
          counts[status] = (counts[status] ?? 0) + 1;
        }
      });
      await until('charges made', () => counts[201] >= 10);
      const frozen = await freeze(server, customer.id);
      assert.equal(frozen.status, 200, 'charges do not keep the freeze out');
      await until('charges refused', () => counts[403] >= 10);
      over = true;
      await Promise.all(chargers);
      assert.deepEqual(Object.keys(counts).sort(), ['201', '403']);
      await recover(server, customer.id);
    }
    assert.deepEqual(await chargesInsideFreezes(db), []);
    assert.equal(await balanceOf(db, account), 1_000_000 - (await chargesOf(db, account)).length);
  });
});

describe('accounts', () => {
  it('are shown with all they have', async () => {
    const { customer, account } = await addAccount({ balance: 77, name: 'Main' });
    const { status, json } = await showAccount(server, account.id);
    assert.equal(status, 200);
    const { tm_create, ...rest } = json;
    assert.ok(tm_create);
    assert.deepEqual(rest, {
      id: account.id,
      customer_id: customer.id,
      name: 'Main',
      status: 'active',
      hold_reasons: [],
      balance_micros: 77,
      frozen_at: null,
      tm_update: null,
      tm_delete: null,
    });
    assertError(await showAccount(server, randomUUID()), 404, 'ACCOUNT_NOT_FOUND');
    assertError(await showAccount(server, 'mine'), 400, 'INVALID_ID');
  });

  it('deleted have status and time together, are charged no more, and no recovery brings them back', async () => {
    const { customer, account } = await addAccount();
    const earlier = await clockOf(db);
    const { json: subscription } = await subscribe(server, { billing_account_id: account.id, amount_micros: 1, period: '30d', first_charge_at: '2999-01-01T00:00:00Z' });
    const gone = await deleteAccount(server, account.id);
    assert.equal(gone.status, 200, gone.body);
    assert.equal(gone.json.status, 'deleted');
    assert.ok(gone.json.tm_delete);
    assert.deepEqual((await deleteAccount(server, account.id)).json, gone.json, 'repeated, it is as it was');
    assertError(await charge(server, chargeOf(account, 1)), 403, 'ACCOUNT_DELETED');
    assertError(await charge(server, chargeOf(account, 1, { occurred_at: earlier })), 403, 'ACCOUNT_DELETED');
    assert.equal((await showSubscription(server, subscription.id)).json.status, 'ended');
    await freeze(server, customer.id);
    await recover(server, customer.id);
    assert.deepEqual((await showAccount(server, account.id)).json, gone.json);
    assert.ok((await auditOf(db, customer)).some(({ action, actor }) => action === 'delete_billing_account' && actor === 'admin'));
    assertError(await deleteAccount(server, randomUUID()), 404, 'ACCOUNT_NOT_FOUND');
    assertError(await deleteAccount(server, '7'), 400, 'INVALID_ID');
  });

  it('deleted while frozen stay so', async () => {
    const { customer, account } = await addAccount();
    await freeze(server, customer.id);
    assert.equal((await deleteAccount(server, account.id)).json.status, 'deleted');
    await recover(server, customer.id);
    assert.equal((await showAccount(server, account.id)).json.status, 'deleted');
    assertError(await charge(server, chargeOf(account, 1)), 403, 'ACCOUNT_DELETED');
  });

  it('of a customer who is deleted are deleted with it, and charged no more, not even for earlier usage', async () => {
    for (const first of ['active', 'frozen']) {
      const { customer, account } = await addAccount();
      const earlier = await clockOf(db);
      const { json: subscription } = await subscribe(server, { billing_account_id: account.id, amount_micros: 1, period: '30d', first_charge_at: '2999-01-01T00:00:00Z' });
      if (first === 'frozen') await freeze(server, customer.id);
      assert.equal((await remove(server, customer.id)).status, 200);
      const { json } = await showAccount(server, account.id);
      assert.equal(json.status, 'deleted');
      assert.ok(json.tm_delete);
      assertError(await charge(server, chargeOf(account, 1)), 403, 'ACCOUNT_DELETED');
      assertError(await charge(server, chargeOf(account, 1, { occurred_at: earlier })), 403, 'ACCOUNT_DELETED');
      assert.deepEqual((await validBalance(server, account.id, 1)).json, { valid: false, reason: 'ACCOUNT_DELETED' });
      assert.equal((await showSubscription(server, subscription.id)).json.status, 'ended');
    }
  });

  it('say whether a balance is valid, by status and tm_delete as well as by the amount', async () => {
    const { customer, account } = await addAccount({ balance: 100 });
    const valid = async (amount) => (await validBalance(server, account.id, amount)).json;
    assert.deepEqual(await valid(100), { valid: true, reason: null });
    assert.deepEqual(await valid(0), { valid: true, reason: null });
    assert.deepEqual(await valid(101), { valid: false, reason: 'BALANCE_TOO_LITTLE' });
    await freeze(server, customer.id);
    assert.deepEqual(await valid(1), { valid: false, reason: 'ACCOUNT_FROZEN' });
    await recover(server, customer.id);
    assert.deepEqual(await valid(1), { valid: true, reason: null });
    await db.query(`update reclaim.billing_accounts set hold_reasons = '{fraud}' where id = $1`, [account.id]);
    assert.deepEqual(await valid(1), { valid: false, reason: 'ACCOUNT_FROZEN' });
    await db.query(`update reclaim.billing_accounts set tm_delete = now() where id = $1`, [account.id]);
    assert.deepEqual(await valid(1), { valid: false, reason: 'ACCOUNT_DELETED' });
    for (const amount of [undefined, '', '-1', '1.5', 'x', '9007199254740993', '9223372036854775808'])
      assertError(await validBalance(server, account.id, amount), 400, 'INVALID_AMOUNT');
    assertError(await validBalance(server, randomUUID(), 1), 404, 'ACCOUNT_NOT_FOUND');
  });

  it('are the business of admins alone', async () => {
    const { customer, account } = await addAccount();
    const key = await addKey(stage, db, customer);
    for (const [headers, status] of [
      [{}, 401],
      [bearer('nonsense'), 401],
      [asUser(customer.user.id), 403],
      [asKey(key), 403],
    ])
      for (const answer of [
        await charge(server, chargeOf(account, 1), headers),
        await showAccount(server, account.id, headers),
        await deleteAccount(server, account.id, headers),
        await validBalance(server, account.id, 1, headers),
        await subscribe(server, { billing_account_id: account.id, amount_micros: 1, period: '1d' }, headers),
        await showSubscription(server, randomUUID(), headers),
        await unsubscribe(server, randomUUID(), headers),
        await adjust(server, account.id, { amount_micros: 1, reference: newReference(), reason: 'mine' }, headers),
        await listAdjustments(server, account.id, '', headers),
        await listAccounts(server, '', headers),
        await listCharges(server, '', headers),
        await listSubscriptions(server, '', headers),
      ])
        assert.equal(answer.status, status, answer.body);
    assert.equal(await balanceOf(db, account), 1_000_000);
    assert.equal((await showAccount(server, account.id)).json.status, 'active');
  });
});

describe('without a database', () => {
  it('a charge is answered 503 and can be repeated safely', async (t) => {
    const { cluster, db: own, server: alone } = await scene(t);
    const account = await addBillingAccount(own, await addCustomer(own), { balance: 1000 });
    const body = chargeOf(account, 1);
    assert.equal((await charge(alone, body)).status, 201);
    await cluster.stop('immediate');
    const away = await charge(alone, body);
    assert.equal(away.status, 503, away.body);
    await cluster.start();
    const again = await until('an answer again', async () => {
      const answer = await charge(alone, body);
      return answer.status !== 503 && answer;
    });
    assert.equal(again.status, 200);
    assert.equal(await balanceOf(own, account), 999);
  });
});
