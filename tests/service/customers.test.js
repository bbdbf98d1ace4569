// Customers: freezing, recovering, who may see and do what, and what each change leaves behind.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import {
  addBillingAccount,
  addCustomer,
  addKey,
  asAdmin,
  asKey,
  assertError,
  asUser,
  auditOf,
  bearer,
  canaryPassword,
  customerAddress,
  eventsOf,
  freeze,
  frozenEverywhere,
  list,
  login,
  recover,
  recoverOwn,
  rowOf,
  scene,
  show,
  tokenOf,
  unregister,
} from './lib/customers.js';
import { request } from './lib/http.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, provider;
before(async () => {
  ({ db, server, provider } = await scene(stage));
});
after(() => stage.end());

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const billingOf = async (account) =>
  (await db.query('select status, hold_reasons, tm_delete from reclaim.billing_accounts where id = $1', [account.id]))[0];
const itemsOf = (kind) => db.query('select payload from reclaim.work_items where kind = $1', [kind]);

describe('POST /auth/unregister', () => {
  it('freezes with the password: status, schedule, version, event, audit and billing change together', async () => {
    const customer = await addCustomer(db);
    const account = await addBillingAccount(db, customer);
    const before = await rowOf(db, customer);
    const answer = await unregister(server, asUser(customer.user.id), { password: canaryPassword });
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.json.id, customer.id);
    assert.equal(answer.json.status, 'frozen');
    assert.match(answer.json.tm_deletion_scheduled, instant);
    assert.equal(answer.json.tm_delete, null);
    assert.equal(answer.json.email, customer.email);
    assert.equal(answer.json.billing_account_id, account.id);
    assert.equal(answer.json.freeze.billing, answer.json.tm_deletion_scheduled);

    const row = await rowOf(db, customer);
    assert.equal(Number(row.version), Number(before.version) + 1);
    const events = await eventsOf(db, customer);
    assert.deepEqual(events.map(({ type, sequence }) => [type, sequence]), [['customer_frozen', row.version]]);
    assert.equal(events[0].payload.status, 'frozen');
    assert.equal(events[0].payload.tm_deletion_scheduled, answer.json.tm_deletion_scheduled);
    const audit = await auditOf(db, customer);
    assert.deepEqual(
      audit.map(({ action, actor, actor_id, outcome }) => [action, actor, actor_id, outcome]),
      [['freeze', 'owner', customer.user.id, 'done']],
    );
    assert.equal(audit[0].correlation_id, answer.headers['x-correlation-id']);
    assert.deepEqual(await billingOf(account), { status: 'frozen', hold_reasons: ['account_frozen'], tm_delete: null });
  });

  it('repeated, it answers the same and changes nothing', async () => {
    const customer = await addCustomer(db);
    const first = await unregister(server, asUser(customer.user.id), { password: canaryPassword });
    await frozenEverywhere(server, customer.id, ['api', 'calls']);
    const { json } = await show(server, customer.id, asUser(customer.user.id));
    const second = await unregister(server, asUser(customer.user.id), { password: canaryPassword });
    assert.equal(second.status, 200);
    assert.deepEqual(second.json, json);
    assert.equal(second.json.tm_deletion_scheduled, first.json.tm_deletion_scheduled);
    assert.equal((await eventsOf(db, customer)).length, 1);
    assert.deepEqual((await auditOf(db, customer)).map(({ outcome }) => outcome), ['done', 'unchanged']);
  });

  it('single sign-on and users without a password confirm with the phrase', async () => {
    for (const kind of [{ sso: true }, { password: false }]) {
      const customer = await addCustomer(db, kind);
      const me = asUser(customer.user.id);
      assertError(await unregister(server, me, { password: canaryPassword }), 400, 'PHRASE_REQUIRED');
      assertError(await unregister(server, me, { confirmation_phrase: 'delete' }), 400, 'WRONG_PHRASE');
      assert.equal((await rowOf(db, customer)).status, 'active');
      assert.equal((await unregister(server, me, { confirmation_phrase: 'DELETE' })).json.status, 'frozen');
    }
  });

  it('an API key confirms with the phrase, even where its owner has a password', async () => {
    const customer = await addCustomer(db);
    const key = asKey(await addKey(stage, db, customer));
    assertError(await unregister(server, key, { password: canaryPassword }), 400, 'PHRASE_REQUIRED');
    const answer = await unregister(server, key, { confirmation_phrase: 'DELETE' });
    assert.equal(answer.json.status, 'frozen');
    const { actor, actor_id } = (await auditOf(db, customer)).find(({ action }) => action === 'freeze');
    assert.equal(actor, 'key');
    assert.deepEqual(await db.query('select customer_id from reclaim.access_keys where id = $1', [actor_id]), [
      { customer_id: customer.id },
    ]);
  });

  it('a password account cannot confirm with the phrase, nor with a wrong password', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    assertError(await unregister(server, me, { confirmation_phrase: 'DELETE' }), 400, 'PASSWORD_REQUIRED');
    assertError(await unregister(server, me, { password: 'canary-password-wrong' }), 400, 'WRONG_PASSWORD');
    assertError(await unregister(server, me, { password: '' }), 400, 'WRONG_PASSWORD');
    assert.equal((await rowOf(db, customer)).status, 'active');
    assert.deepEqual(
      (await auditOf(db, customer)).map(({ action, actor, outcome }) => [action, actor, outcome]),
      [['freeze', 'owner', 'PASSWORD_REQUIRED'], ['freeze', 'owner', 'WRONG_PASSWORD'], ['freeze', 'owner', 'WRONG_PASSWORD']],
      'each proof that was not good enough is in the audit',
    );
  });

  it('bodies that are no proof are refused by name, and nothing changes', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const bodies = [
      [{}, 'PROOF_MISSING'],
      [{ other: 1 }, 'PROOF_MISSING'],
      [{ password: canaryPassword, confirmation_phrase: 'DELETE' }, 'PROOF_AMBIGUOUS'],
      [{ password: 5 }, 'INVALID_BODY'],
      [{ password: null }, 'INVALID_BODY'],
      [{ confirmation_phrase: ['DELETE'] }, 'INVALID_BODY'],
      ['', 'INVALID_BODY'],
      ['[]', 'INVALID_BODY'],
      ['{"password":"a","password":"b"}', 'INVALID_BODY'],
      ['{"password":', 'INVALID_BODY'],
    ];
    for (const [body, error] of bodies) assertError(await unregister(server, me, body), 400, error);
    const row = await rowOf(db, customer);
    assert.equal(row.status, 'active');
    assert.equal(row.version, '1');
  });

  it('wrong passwords are limited by user', async (t) => {
    const limited = await scene(t, { settings: { RECLAIM_LIMIT_LOGIN: '3/900' } });
    const customer = await addCustomer(limited.db);
    const me = asUser(customer.user.id);
    for (let i = 0; i < 3; i++)
      assertError(await unregister(limited.server, me, { password: 'canary-password-wrong' }), 400, 'WRONG_PASSWORD');
    const refused = assertError(await unregister(limited.server, me, { password: canaryPassword }), 429, 'TOO_MANY_TRIES');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    assert.equal((await rowOf(limited.db, customer)).status, 'active');
  });

  it('a token whose user has no customer is told so', async () => {
    assertError(await unregister(server, asUser(randomUUID()), { confirmation_phrase: 'DELETE' }), 403, 'NO_CUSTOMER');
  });
});

describe('DELETE /auth/unregister', () => {
  it('recovers: active, no schedule, an event, and billing as it was', async () => {
    const customer = await addCustomer(db);
    const account = await addBillingAccount(db, customer);
    const held = await addBillingAccount(db, customer, { status: 'frozen', hold_reasons: ['unpaid'] });
    const gone = await addBillingAccount(db, customer, { status: 'deleted' });
    const me = asUser(customer.user.id);
    await unregister(server, me, { password: canaryPassword });
    assert.deepEqual((await billingOf(held)).hold_reasons, ['unpaid', 'account_frozen']);
    const answer = await recoverOwn(server, me);
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.json.status, 'active');
    assert.equal(answer.json.tm_deletion_scheduled, null);
    assert.equal('freeze' in answer.json, false);
    assert.deepEqual((await eventsOf(db, customer)).map(({ type }) => type), ['customer_frozen', 'customer_recovered']);
    assert.deepEqual(await billingOf(account), { status: 'active', hold_reasons: [], tm_delete: null });
    assert.deepEqual(await billingOf(held), { status: 'frozen', hold_reasons: ['unpaid'], tm_delete: null });
    assert.equal((await billingOf(gone)).status, 'deleted');
    assert.equal((await show(server, customer.id, me)).status, 200, 'its credentials work again');
  });

  it('is 404 when there is nothing to recover', async () => {
    const customer = await addCustomer(db);
    assertError(await recoverOwn(server, asUser(customer.user.id)), 404, 'NOT_FROZEN');
    assert.deepEqual((await auditOf(db, customer)).map(({ action, outcome }) => [action, outcome]), [['recover', 'refused']]);
  });

  it('works with an API key of the frozen customer', async () => {
    const customer = await addCustomer(db);
    const key = asKey(await addKey(stage, db, customer));
    await unregister(server, key, { confirmation_phrase: 'DELETE' });
    assert.equal((await recoverOwn(server, key)).json.status, 'active');
  });

  it('is refused for a freeze by an administrator, whose reason only administrators see', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const frozen = (await freeze(server, customer.id, asAdmin(), { reason: 'abuse' })).json;
    assert.equal(frozen.frozen_by, 'admin');
    assert.equal(frozen.freeze_reason, 'abuse');
    const seen = (await show(server, customer.id, me)).json;
    assert.equal(seen.frozen_by, 'admin');
    assert.ok(!('freeze_reason' in seen) && !('legal_hold' in seen));
    assertError(await recoverOwn(server, me), 403, 'FROZEN_BY_ADMIN');
    assert.equal((await recover(server, customer.id)).json.status, 'active');
  });

  it('is refused from when an administrator has taken the freeze over; its date stays', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const own = (await unregister(server, me, { password: canaryPassword })).json;
    assert.equal(own.frozen_by, 'owner');
    const taken = (await freeze(server, customer.id)).json;
    assert.equal(taken.frozen_by, 'admin');
    assert.equal(taken.deletion_effective_at, own.deletion_effective_at);
    assertError(await recoverOwn(server, me), 403, 'FROZEN_BY_ADMIN');
  });
});

describe('while frozen', () => {
  it('its credentials see itself and log in; everything else is 403 with the date and the way back', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const key = asKey(await addKey(stage, db, customer));
    const frozen = (await unregister(server, me, { password: canaryPassword })).json;
    for (const who of [me, key]) {
      assert.equal((await show(server, customer.id, who)).json.status, 'frozen');
      for (const answer of [await list(server, '', who), await freeze(server, customer.id, who), await show(server, randomUUID(), who)]) {
        assert.equal(answer.status, 403, answer.body);
        assert.deepEqual(Object.keys(answer.json), [
          'error',
          'message',
          'deletion_scheduled_at',
          'deletion_effective_at',
          'recovery_endpoint',
        ]);
        assert.equal(answer.json.error, 'DELETION_SCHEDULED');
        assert.equal(answer.json.message, 'Account deletion scheduled');
        assert.equal(answer.json.recovery_endpoint, 'DELETE /auth/unregister');
        assert.equal(answer.json.deletion_scheduled_at, frozen.tm_deletion_scheduled);
        const [at, due] = [answer.json.deletion_scheduled_at, answer.json.deletion_effective_at].map((text) => Date.parse(text));
        assert.equal(due - at, 30 * 86_400_000);
      }
    }
    const { status, json } = await login(server, customer.user.email, canaryPassword);
    assert.equal(status, 200);
    assert.equal((await recoverOwn(server, bearer(json.token))).json.status, 'active');
  });
});

describe('POST /auth/login', () => {
  it('hands out a token that is good for its user', async () => {
    const customer = await addCustomer(db);
    const answer = await login(server, ` ${customer.user.email.toUpperCase()} `, canaryPassword);
    assert.equal(answer.status, 200, answer.body);
    assert.equal(answer.json.expires_in, 3600);
    assert.equal((await show(server, customer.id, bearer(answer.json.token))).json.id, customer.id);
  });

  it('tells a wrong password, an unknown address, single sign-on and a ban apart from nothing', async () => {
    const wrong = await addCustomer(db);
    const sso = await addCustomer(db, { sso: true });
    const banned = await addCustomer(db);
    await db.query(`update auth.users set banned_until = now() + interval '1 day' where id = $1`, [banned.user.id]);
    const answers = [
      await login(server, wrong.user.email, 'canary-password-wrong'),
      await login(server, customerAddress(), canaryPassword),
      await login(server, sso.user.email, canaryPassword),
      await login(server, banned.user.email, canaryPassword),
    ];
    for (const answer of answers) {
      assertError(answer, 401, 'INVALID_CREDENTIALS');
      assert.deepEqual(answer.json, answers[0].json);
    }
  });

  it('is limited per address and per client, and says for how long', async (t) => {
    const limited = await scene(t, { settings: { RECLAIM_LIMIT_LOGIN: '2/900' } });
    const email = customerAddress();
    for (let i = 0; i < 2; i++) assert.equal((await login(limited.server, email, 'canary-password-wrong')).status, 401);
    const refused = assertError(await login(limited.server, email, canaryPassword), 429, 'TOO_MANY_TRIES');
    assert.ok(Number(refused.headers['retry-after']) > 0);
    assertError(await login(limited.server, customerAddress(), canaryPassword), 429, 'TOO_MANY_TRIES');
  });

  it('refuses bodies that are none', async () => {
    for (const body of ['', '{}', '{"email":"a@example.com"}', '{"email":1,"password":"x"}', '[]'])
      assertError(await login(server, '', '', { body }), 400, 'INVALID_BODY');
    assertError(await login(server, 'nobody', 'x'), 400, 'INVALID_EMAIL');
  });
});

describe('admins', () => {
  it('freeze and recover any customer without a body', async () => {
    const customer = await addCustomer(db, { owner: false });
    const frozen = await freeze(server, customer.id);
    assert.equal(frozen.status, 200);
    assert.equal(frozen.json.status, 'frozen');
    assert.equal((await freeze(server, customer.id)).json.tm_deletion_scheduled, frozen.json.tm_deletion_scheduled);
    assert.equal((await recover(server, customer.id)).json.status, 'active');
    assertError(await recover(server, customer.id), 404, 'NOT_FROZEN');
    assert.deepEqual((await auditOf(db, customer)).map(({ actor, action, outcome }) => [actor, action, outcome]), [
      ['admin', 'freeze', 'done'],
      ['admin', 'freeze', 'unchanged'],
      ['admin', 'recover', 'done'],
      ['admin', 'recover', 'refused'],
    ]);
  });

  it('may be admins by app_metadata too', async () => {
    const customer = await addCustomer(db);
    const admin = bearer(tokenOf({ sub: randomUUID(), app_metadata: { role: 'admin' } }));
    assert.equal((await show(server, customer.id, admin)).status, 200);
    assertError(await show(server, customer.id, bearer(tokenOf({ sub: customer.user.id, user_metadata: { role: 'admin' }, role: 'admin' }))) &&
      (await freeze(server, customer.id, bearer(tokenOf({ sub: customer.user.id, role: 'admin' })))), 403, 'FORBIDDEN');
  });

  it('see deleted customers, which cannot be frozen or recovered and whose credentials are nobody’s', async () => {
    const customer = await addCustomer(db);
    const key = asKey(await addKey(stage, db, customer));
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    assert.equal((await show(server, customer.id)).json.status, 'deleted');
    assertError(await freeze(server, customer.id), 404, 'CUSTOMER_DELETED');
    assertError(await recover(server, customer.id), 404, 'NOT_FROZEN');
    for (const who of [asUser(customer.user.id), key])
      await until('a deleted customer is nobody', async () => (await show(server, customer.id, who)).status === 401);
  });

  it('list by status, page by page', async (t) => {
    const own = await scene(t);
    const all = [];
    for (let i = 0; i < 5; i++) all.push(await addCustomer(own.db, { owner: false }));
    await freeze(own.server, all[1].id);
    await freeze(own.server, all[3].id);
    const ids = all.map(({ id }) => id).sort();
    const first = await list(own.server, '?limit=2');
    assert.deepEqual(first.json.items.map(({ id }) => id), ids.slice(0, 2));
    assert.equal(first.json.next, ids[1]);
    const rest = await list(own.server, `?limit=200&after=${first.json.next}`);
    assert.deepEqual(rest.json.items.map(({ id }) => id), ids.slice(2));
    assert.equal(rest.json.next, null);
    const frozen = await list(own.server, '?status=frozen');
    assert.deepEqual(frozen.json.items.map(({ id }) => id), [all[1].id, all[3].id].sort());
    assert.deepEqual((await list(own.server, '?status=deleted')).json, { items: [], next: null });
    assertError(await list(own.server, '?status=gone'), 400, 'INVALID_STATUS');
    assertError(await list(own.server, '?limit=0'), 400, 'INVALID_LIMIT');
    assertError(await list(own.server, '?after=x'), 400, 'INVALID_ID');
  });

  it('are told about ids that are none, and customers that are not there', async () => {
    for (const id of ['x', '123', `${randomUUID()}0`, '%00', randomUUID().replaceAll('-', '')])
      for (const act of [show, freeze, recover]) assertError(await act(server, id), 400, 'INVALID_ID');
    for (const act of [show, freeze, recover]) assertError(await act(server, randomUUID()), 404, 'CUSTOMER_NOT_FOUND');
    const customer = await addCustomer(db);
    assert.equal((await show(server, customer.id.toUpperCase())).json.id, customer.id);
  });
});

describe('credentials', () => {
  it('that are none, forged, old or someone else’s change nothing and say why', async () => {
    const customer = await addCustomer(db);
    const sub = customer.user.id;
    const none = { alg: 'none', typ: 'JWT' };
    const tokens = [
      tokenOf({ sub, role: 'service_role' }, { header: none }),
      tokenOf({ sub, role: 'service_role' }, { header: none }).replace(/[^.]*$/, ''),
      tokenOf({ sub, role: 'service_role' }, { secret: 'another-secret-of-more-than-32-characters' }),
      tokenOf({ sub, role: 'service_role' }, { lifeS: -3600 }),
      tokenOf({ sub, role: 'service_role', nbf: Math.floor(Date.now() / 1000) + 3600 }),
      tokenOf({ sub, role: 'service_role', filler: 'x'.repeat(9000) }),
      tokenOf({ sub, role: 'service_role' }).slice(0, -2),
      'canary-token-b5f1',
      '',
    ];
    for (const token of tokens) {
      const answer = await freeze(server, customer.id, bearer(token));
      assert.equal(answer.status, 401, `${token.slice(0, 60)}: ${answer.body}`);
      assert.match(answer.json.error, /^[A-Z_]+$/);
    }
    assertError(await freeze(server, customer.id, asKey('rk_' + 'a'.repeat(43))), 401, 'INVALID_API_KEY');
    assertError(await freeze(server, customer.id, {}), 401, 'NO_CREDENTIALS');
    const row = await rowOf(db, customer);
    assert.deepEqual([row.status, row.version], ['active', '1']);
  });

  it('of a customer do not reach another', async () => {
    const [mine, other] = [await addCustomer(db), await addCustomer(db)];
    const me = asUser(mine.user.id);
    assertError(await show(server, other.id, me), 403, 'FORBIDDEN');
    assertError(await freeze(server, other.id, me), 403, 'FORBIDDEN');
    assertError(await list(server, '', me), 403, 'FORBIDDEN');
    assert.equal((await rowOf(db, other)).status, 'active');
  });

  it('that were revoked stop working', async () => {
    const customer = await addCustomer(db);
    const key = await addKey(stage, db, customer);
    assert.equal((await show(server, customer.id, asKey(key))).status, 200);
    const listed = JSON.parse((await run(stage, ['key', 'list', '--customer', customer.id, '--format', 'json'], { database: db })).stdout);
    assert.ok(Date.now() - Date.parse(listed[0].last_used_at) < 3_600_000, 'when it was last used is known');
    const revoked = await run(stage, ['key', 'revoke', '--customer', customer.id], { database: db });
    assert.equal(revoked.code, 0, revoked.stderr);
    await until('the key is nobody’s', async () => (await show(server, customer.id, asKey(key))).status === 401);
  });
});

describe('mails', () => {
  it('tell of a freeze with its date and the way back, and of the recovery', async () => {
    const customer = await addCustomer(db);
    const { json } = await freeze(server, customer.id);
    const { mail } = await provider.mailTo(customer.email, { nth: 1 });
    const due = new Date(Date.parse(json.tm_deletion_scheduled) + 30 * 86_400_000);
    const month = due.toLocaleString('en', { month: 'long', timeZone: 'UTC' });
    for (const part of [mail.text, mail.html]) {
      assert.ok(part.includes(`${due.getUTCDate()} ${month} ${due.getUTCFullYear()}`), part);
      assert.match(part, /recover/);
      assert.ok(part.includes(customer.id));
    }
    await recover(server, customer.id);
    const { mail: again } = await provider.mailTo(customer.email, { nth: 2 });
    assert.match(again.subject, /active again/);
    await until('no mail is left to send', async () => (await itemsOf('mail')).length === 0);
  });

  it('speak the owner’s language, and not that of an administrator', async () => {
    const german = { 'Accept-Language': 'de' };
    const customer = await addCustomer(db);
    const answer = await unregister(server, { ...asUser(customer.user.id), ...german }, { password: canaryPassword });
    assert.equal(answer.status, 200, answer.body);
    const { mail } = await provider.mailTo(customer.email, { nth: 1 });
    assert.equal(mail.subject, 'Ihr Konto wird gelöscht');
    const due = new Intl.DateTimeFormat('de', { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(answer.json.deletion_effective_at));
    for (const part of [mail.text, mail.html]) assert.ok(part.includes(due), part);
    await recoverOwn(server, { ...asUser(customer.user.id), ...german });
    assert.equal((await provider.mailTo(customer.email, { nth: 2 })).mail.subject, 'Ihr Konto ist wieder aktiv');
    await freeze(server, customer.id, { ...asAdmin(), 'Accept-Language': 'en' });
    assert.equal((await provider.mailTo(customer.email, { nth: 3 })).mail.subject, 'Ihr Konto wird gelöscht');
    await request(server, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
    assert.equal((await provider.mailTo(customer.email, { nth: 4 })).mail.subject, 'Ihr Konto wurde gelöscht');
    const [told] = await db.query('select language from reclaim.customer_told where customer_id = $1', [customer.id]);
    assert.equal(told.language, null, 'what is personal does not stay');
    const silent = await addCustomer(db);
    await freeze(server, silent.id, { ...asAdmin(), ...german });
    assert.equal((await provider.mailTo(silent.email, { nth: 1 })).mail.subject, 'Your account will be deleted');
  });

  it('speak the language that the team’s table has for the customer, whoever asks', async () => {
    await db.query('alter table reclaim.customer_customers add column language text');
    const customer = await addCustomer(db);
    await db.query(`update reclaim.customer_customers set language = 'de-CH' where id = $1`, [customer.id]);
    await freeze(server, customer.id, { ...asAdmin(), 'Accept-Language': 'en' });
    assert.equal((await provider.mailTo(customer.email, { nth: 1 })).mail.subject, 'Ihr Konto wird gelöscht');
    await request(server, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
    assert.equal((await provider.mailTo(customer.email, { nth: 2 })).mail.subject, 'Ihr Konto wurde gelöscht');
    await db.query('alter table reclaim.customer_customers drop column language');
  });

  it('are not owed to a customer without an address', async () => {
    const customer = await addCustomer(db, { email: '' });
    await freeze(server, customer.id);
    await until('no mail is owed', async () => !(await itemsOf('mail')).some(({ payload }) => payload.customer_id === customer.id));
    assert.equal(provider.mailsTo('').length, 0);
  });
});

describe('the command line', () => {
  it('shows, freezes and recovers as the API does', async () => {
    const customer = await addCustomer(db);
    const reclaim = (...args) => run(stage, args, { database: db });
    const frozen = await reclaim('freeze', customer.id);
    assert.equal(frozen.code, 0, frozen.stderr);
    assert.equal(JSON.parse(frozen.stdout).status, 'frozen');
    assertError(await list(server, '', asUser(customer.user.id)), 403, 'DELETION_SCHEDULED');
    assert.equal((await provider.mailTo(customer.email)).mail.subject, 'Your account will be deleted');
    const shown = JSON.parse((await reclaim('show', customer.id)).stdout);
    assert.equal(shown.status, 'frozen');
    assert.equal(JSON.parse((await reclaim('recover', customer.id)).stdout).status, 'active');
    const refused = await reclaim('recover', customer.id);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /not frozen/);
    assert.equal((await reclaim('show', randomUUID())).code, 1);
    assert.equal((await reclaim('freeze', 'x')).code, 2);
    assert.deepEqual((await auditOf(db, customer)).map(({ actor, action }) => [actor, action]).slice(0, 2), [
      ['operator', 'freeze'],
      ['operator', 'recover'],
    ]);
  });
});

describe('status and tm_delete', () => {
  it('go together whoever writes them, and sentinels mean what they meant', async () => {
    const customer = await addCustomer(db);
    await db.query('update reclaim.customer_customers set tm_delete = now() where id = $1', [customer.id]);
    assert.equal((await rowOf(db, customer)).status, 'deleted');
    const other = await addCustomer(db, { tm_delete: '9999-01-01T00:00:00Z' });
    const row = await rowOf(db, other);
    assert.deepEqual([row.status, row.tm_delete], ['active', null]);
  });

  it('an owner has another customer after one was deleted', async () => {
    const customer = await addCustomer(db);
    const id = randomUUID();
    // In one transaction: otherwise the user may be removed with its only customer before it has another.
    const session = await db.session(stage);
    await session.query('begin');
    await session.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    await session.query('insert into reclaim.customer_customers (id, owner_user_id) values ($1, $2)', [id, customer.user.id]);
    await session.query('commit');
    assert.equal((await show(server, id, asUser(customer.user.id))).status, 200);
  });
});
