// Accounts that a team has already, in public, as an older program wrote them: adopted where they are, and charged.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { charge, clockOf, newReference, showAccount, showSubscription, subscribe } from './lib/billing.js';
import { assertError, env, freeze, recover } from './lib/customers.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const sentinel = '9999-01-01 00:00:00';
const ids = Object.fromEntries(
  ['active', 'frozen', 'gone', 'held', 'customer', 'frozenCustomer'].map((name, n) => [name, `00000000-0000-4000-8000-00000000000${n + 1}`]),
);
const yesterday = new Date(Math.floor(Date.now() / 1000) * 1000 - 86_400_000).toISOString().slice(0, 19); // inside the grace
const stage = new Stage();
let db, server;
before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await db.query(`
    create table public.customer_customers (id uuid primary key, name varchar(255), status varchar(16), tm_deletion_scheduled timestamp(6),
      tm_create timestamp(6), tm_update timestamp(6), tm_delete timestamp(6));
    create table public.billing_accounts (id uuid primary key, customer_id uuid, name varchar(255), status varchar(16) not null default 'active',
      balance float8, tm_create timestamp(6), tm_update timestamp(6), tm_delete timestamp(6) not null default '${sentinel}');
    insert into public.customer_customers (id, status, tm_delete) values ('${ids.customer}', '', '${sentinel}');
    insert into public.customer_customers (id, status, tm_deletion_scheduled, tm_delete) values ('${ids.frozenCustomer}', 'frozen', '${yesterday}', '${sentinel}');
    insert into public.billing_accounts (id, customer_id, status, tm_delete) values
      ('${ids.active}', '${ids.customer}', 'active', '${sentinel}'), ('${ids.gone}', '${ids.customer}', 'active', '2025-01-01'),
      ('${ids.held}', '${ids.customer}', 'frozen', '${sentinel}'), ('${ids.frozen}', '${ids.frozenCustomer}', 'active', '${sentinel}');
    create role team; grant usage on schema public to team;
    grant select, insert, update on public.customer_customers, public.billing_accounts to team`);
  server = await serve(stage, { database: db, env });
  await db.query('update public.billing_accounts set balance_micros = 1000');
});
after(() => stage.end());

const chargeOf = (id, more = {}) => ({ billing_account_id: id, amount_micros: 1, reference: newReference(), ...more });
const accountOf = async (id) => (await db.query('select status, hold_reasons, tm_delete from public.billing_accounts where id = $1', [id]))[0];
async function asTeam(sql) {
  const session = await db.session(stage);
  await session.query('set role team');
  return session.query(sql);
}

describe('adopted accounts', () => {
  it('are what their rows meant', async () => {
    assert.deepEqual(await accountOf(ids.active), { status: 'active', hold_reasons: [], tm_delete: null });
    assert.equal((await accountOf(ids.gone)).status, 'deleted');
    assert.deepEqual(await accountOf(ids.held), { status: 'frozen', hold_reasons: ['held'], tm_delete: null });
    assert.deepEqual(await accountOf(ids.frozen), { status: 'frozen', hold_reasons: ['account_frozen'], tm_delete: null });
  });

  it('are charged, where they are', async () => {
    assert.equal((await charge(server, chargeOf(ids.active))).status, 201);
    assert.equal((await db.query('select balance_micros from public.billing_accounts where id = $1', [ids.active]))[0].balance_micros, '999');
    assertError(await charge(server, chargeOf(ids.gone)), 403, 'ACCOUNT_DELETED');
    assertError(await charge(server, chargeOf(ids.held)), 403, 'ACCOUNT_FROZEN');
  });

  it('of a customer that was frozen before are frozen since then', async () => {
    assert.equal((await showAccount(server, ids.frozen)).json.frozen_at, `${yesterday}.000000Z`);
    assertError(await charge(server, chargeOf(ids.frozen)), 403, 'ACCOUNT_FROZEN');
    assertError(await charge(server, chargeOf(ids.frozen, { occurred_at: `${yesterday}Z` })), 403, 'ACCOUNT_FROZEN');
    assert.equal((await charge(server, chargeOf(ids.frozen, { occurred_at: '2025-12-31T23:59:59Z' }))).status, 201);
  });

  it('freeze and recover with their customer', async () => {
    const { json: subscription } = await subscribe(server, { billing_account_id: ids.active, amount_micros: 1, period: '1h' });
    await freeze(server, ids.customer);
    const inside = await clockOf(db);
    assertError(await charge(server, chargeOf(ids.active)), 403, 'ACCOUNT_FROZEN');
    assert.equal((await showSubscription(server, subscription.id)).json.status, 'paused');
    await recover(server, ids.customer);
    assert.equal((await charge(server, chargeOf(ids.active))).status, 201);
    assertError(await charge(server, chargeOf(ids.active, { occurred_at: inside })), 403, 'USAGE_WHILE_FROZEN');
    assert.equal((await accountOf(ids.held)).status, 'frozen', 'what was held before is held');
    assert.equal((await showSubscription(server, subscription.id)).json.status, 'active');
  });

  it('may be written by the team’s own programs, which have no rights in Reclaim’s schema', async () => {
    await asTeam(`update public.billing_accounts set status = 'frozen' where id = '${ids.active}'`);
    assert.deepEqual((await accountOf(ids.active)).hold_reasons, ['held']);
    await asTeam(`update public.billing_accounts set status = 'active', balance_micros = 5000 where id = '${ids.active}'`);
    assert.deepEqual(await accountOf(ids.active), { status: 'active', hold_reasons: [], tm_delete: null });
    await asTeam(`update public.customer_customers set status = 'frozen' where id = '${ids.customer}'`);
    await asTeam(`update public.customer_customers set status = 'active' where id = '${ids.customer}'`);
    await asTeam(`insert into public.billing_accounts (id, customer_id) values ('00000000-0000-4000-8000-000000000099', '${ids.frozenCustomer}')`);
    assert.equal((await accountOf('00000000-0000-4000-8000-000000000099')).status, 'frozen', 'an old default of tm_delete means nothing');
    await asTeam(`update public.billing_accounts set tm_delete = now() where id = '${ids.active}'`);
    assert.equal((await accountOf(ids.active)).status, 'deleted');
    await until('its subscriptions ended', async () =>
      (await db.query(`select from reclaim.billing_subscriptions where billing_account_id = $1 and status <> 'ended'`, [ids.active])).length === 0,
    );
  });

  it('are left to the team again by going down', async () => {
    await server.stop();
    const versions = await db.query('select version from reclaim.schema_migrations');
    const down = await run(stage, ['migrate', '--down', String(versions.length)], { database: db });
    assert.equal(down.code, 0, down.stderr);
    const triggers = await db.query(`select tgname from pg_trigger where tgrelid in ('public.billing_accounts'::regclass, 'public.customer_customers'::regclass) and not tgisinternal`);
    assert.deepEqual(triggers, []);
    assert.equal((await db.query('select from public.billing_accounts')).length, 5);
  });
});
