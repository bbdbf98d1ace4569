// The date of a deletion, as it was promised at the freeze: kept when the settings change, when a legal hold outlasts it, and
// when unusually many customers are due. And who may lift which freeze.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, assertError, asUser, canaryPassword, env, freeze, recover, recoverOwn, rowOf, scene, show, unregister } from './lib/customers.js';
import { ops } from './lib/events.js';
import { gate } from './lib/gate.js';
import { request } from './lib/http.js';
import { Cluster } from './lib/postgres.js';
import { valueOf } from './lib/prometheus.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const dayMs = 86_400_000;
const stage = new Stage();
let cluster, db, server, provider;
before(async () => {
  cluster = await Cluster.create(stage);
  ({ db, server, provider } = await scene(stage, { cluster, settings: { RECLAIM_GRACE: '20d' } }));
});
after(() => stage.end());

/** Sets the installation's clock ahead of the real one. */
const shift = (by, database = db) => database.query('update reclaim.installation set clock_shift = $1::interval', [by]);
const now = async () => (await db.query('select reclaim.now() as now'))[0].now.getTime();
const daysAfter = (later, earlier) => (Date.parse(later) - Date.parse(earlier)) / dayMs;
/** A time as mails write it: 18 March 2026, 12:00 UTC. */
function inMails(time) {
  const at = new Date(time);
  const day = at.toLocaleDateString('en-GB', { day: 'numeric', month: 'long', year: 'numeric', timeZone: 'UTC' });
  return `${day}, ${at.toISOString().slice(11, 16)} UTC`;
}
const mailsTo = ({ email }) => provider.attempts.map(({ mail }) => mail).filter(({ to }) => to === email);
const mailTo = (customer, subject) => until(`“${subject}”`, () => mailsTo(customer).find((mail) => mail.subject === subject));
const deleted = (customer) => until('the deletion', async () => (await rowOf(db, customer)).status === 'deleted');
/** The frozen customer's answer from the gate. */
const refusal = async (customer) => assertError(await gate(server, asUser(customer.user.id)), 403, 'DELETION_SCHEDULED').json;
const frozenByOwner = async (customer) => {
  const answer = await unregister(server, asUser(customer.user.id), { password: canaryPassword });
  assert.equal(answer.status, 200, answer.body);
  return answer.json;
};

describe('the date of a deletion', () => {
  let first, promised;

  it('is stored at the freeze, and is the same in every answer and mail', async () => {
    first = await addCustomer(db);
    const frozen = await frozenByOwner(first);
    promised = frozen.deletion_effective_at;
    assert.equal(daysAfter(promised, frozen.tm_deletion_scheduled), 20);
    assert.equal((await show(server, first.id)).json.deletion_effective_at, promised);
    assert.equal((await refusal(first)).deletion_effective_at, promised);
    const { text, html } = await mailTo(first, 'Your account will be deleted');
    for (const part of [text, html]) assert.ok(part.includes(inMails(promised)), part);
  });

  it('stays when the grace is shortened, which concerns freezes from then on', async () => {
    await server.stop();
    server = await serve(stage, { database: db, env: { ...env, ...provider.env, RECLAIM_GRACE: '10d', RECLAIM_EXPIRY_INTERVAL: '1s' } });
    const second = await addCustomer(db);
    const frozen = await frozenByOwner(second);
    assert.equal(daysAfter(frozen.deletion_effective_at, frozen.tm_deletion_scheduled), 10);
    assert.ok((await mailTo(second, 'Your account will be deleted')).text.includes(inMails(frozen.deletion_effective_at)));
    assert.equal((await show(server, first.id)).json.deletion_effective_at, promised);
    assert.equal((await refusal(first)).deletion_effective_at, promised);

    await shift('11 days');
    await deleted(second);
    assert.equal((await rowOf(db, first)).status, 'frozen', 'the pass that deleted the other one');
    await shift('14 days');
    assert.ok((await mailTo(first, 'Your account will soon be gone')).text.includes(inMails(promised)));
    await shift('21 days');
    await deleted(first);
  });

  it('is never in the past while a legal hold lasts, and moves when the hold ends after it', async () => {
    const held = await addCustomer(db);
    const next = await addCustomer(db);
    await frozenByOwner(held);
    const hold = (method, body) =>
      request(server, { method, path: `/v1/customers/${held.id}/hold`, headers: { ...asAdmin(), 'Content-Type': 'application/json' }, body });
    assert.equal((await hold('POST', '{"reason":"a case"}')).status, 200);
    await frozenByOwner(next);
    await shift('33 days'); // two days past the date of both
    await deleted(next);
    assert.equal((await rowOf(db, held)).status, 'frozen');
    const before = await now();
    for (const { deletion_effective_at: shown } of [(await show(server, held.id)).json, await refusal(held)])
      assert.ok(Date.parse(shown) > before, shown);

    const lifting = await now();
    assert.equal((await hold('DELETE')).status, 200);
    const { deletion_effective_at: moved } = (await show(server, held.id)).json;
    assert.ok(Date.parse(moved) >= lifting + 7 * dayMs, moved);
    await until('the gate’s date', async () => (await refusal(held)).deletion_effective_at === moved);
    assert.ok((await mailTo(held, 'Your account has a new deletion date')).text.includes(inMails(moved)));
    await shift('41 days');
    await deleted(held);
  });

  it('comes for unusually many only after someone has confirmed their number', async (t) => {
    const own = await cluster.database(t);
    const settings = { ...env, RECLAIM_EXPIRY_BRAKE: '2', RECLAIM_EXPIRY_INTERVAL: '1s' };
    const leading = await serve(t, { database: own, env: settings });
    const expire = (args = [], more = {}) => run(t, ['expire', ...args], { database: own, env: { ...settings, ...more } });
    const left = async () => (await own.query(`select count(*)::int as n from reclaim.customer_customers where status <> 'deleted'`))[0].n;
    const dueFrom = async (count, days) => {
      await own.query(
        `update reclaim.customer_customers set status = 'frozen' where id in
           (select id from reclaim.customer_customers where status = 'active' limit $1)`,
        [count],
      );
      await shift(`${days} days`, own);
    };
    await own.query(`insert into reclaim.customer_customers (name) select 'one of twenty' from generate_series(1, 20)`);
    await dueFrom(3, 31);
    await until('the brake', async () => valueOf(await ops(leading), 'reclaim_expiry_braked') === 3);
    assert.equal(await left(), 20);
    const refused = await expire();
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /reclaim expire --confirm 3\b/);
    assert.equal((await expire(['--confirm', '2'])).code, 1);
    assert.equal(await left(), 20);
    const confirmed = await expire(['--confirm', '3']);
    assert.equal(confirmed.stdout, '{"processed":3}\n', confirmed.stderr);
    await until('the brake released', async () => valueOf(await ops(leading), 'reclaim_expiry_braked') === 0);

    await dueFrom(2, 62);
    await until('two, which is not many', async () => (await left()) === 15);
    await dueFrom(3, 93);
    await until('the brake', async () => valueOf(await ops(leading), 'reclaim_expiry_braked') === 3);
    assert.equal((await expire([], { RECLAIM_EXPIRY_BRAKE: 'off' })).stdout, '{"processed":3}\n');
    assert.equal(await left(), 12);
  });
});

describe('who froze', () => {
  before(() => shift('0'));
  const withReason = (id, reason) =>
    request(server, { method: 'POST', path: `/v1/customers/${id}/freeze`, headers: { ...asAdmin(), 'Content-Type': 'application/json' }, body: JSON.stringify({ reason }) });

  it('an administrator: its owner cannot lift the freeze, nor see why', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const frozen = await withReason(customer.id, 'unpaid since May');
    assert.deepEqual([frozen.json.frozen_by, frozen.json.freeze_reason], ['admin', 'unpaid since May']);
    assertError(await recoverOwn(server, me), 403, 'FROZEN_BY_ADMIN');
    assert.equal((await rowOf(db, customer)).status, 'frozen');
    assert.equal((await refusal(customer)).recovery_endpoint, '');
    const own = await show(server, customer.id, me);
    assert.equal(own.json.frozen_by, 'admin');
    assert.ok(!own.body.includes('unpaid') && !('freeze_reason' in own.json) && !('legal_hold' in own.json), own.body);
    assert.ok(!JSON.stringify(mailsTo(customer)).includes('unpaid'));
    assert.equal((await show(server, customer.id)).json.freeze_reason, 'unpaid since May');
    const [{ payload }] = await db.query(`select payload from reclaim.event_outbox where customer_id = $1`, [customer.id]);
    assert.ok(!('freeze_reason' in payload), 'events are for everyone');
    assert.equal((await recover(server, customer.id)).json.status, 'active');
    const again = await show(server, customer.id);
    assert.equal(again.json.freeze_reason, null);
  });

  it('its owner: lifts it, unless an administrator has taken the freeze over', async () => {
    const customer = await addCustomer(db);
    const me = asUser(customer.user.id);
    const frozen = await frozenByOwner(customer);
    assert.equal(frozen.frozen_by, 'owner');
    assert.equal((await refusal(customer)).recovery_endpoint, 'DELETE /auth/unregister');
    assert.equal((await recoverOwn(server, me)).json.status, 'active');

    const second = await frozenByOwner(customer);
    const taken = await withReason(customer.id, 'fraud');
    assert.deepEqual([taken.json.frozen_by, taken.json.deletion_effective_at], ['admin', second.deletion_effective_at]);
    assertError(await recoverOwn(server, me), 403, 'FROZEN_BY_ADMIN');
    await until('the gate’s answer', async () => (await refusal(customer)).recovery_endpoint === '');
  });

  it('the command line counts as an administrator; a reason has a bound', async (t) => {
    const customer = await addCustomer(db);
    assertError(await withReason(customer.id, 'x'.repeat(1001)), 400, 'INVALID_REASON');
    assert.equal((await run(t, ['freeze', customer.id], { database: db })).code, 0);
    assertError(await recoverOwn(server, asUser(customer.user.id)), 403, 'FROZEN_BY_ADMIN');
    assert.equal((await freeze(server, customer.id)).json.frozen_by, 'admin');
  });
});
