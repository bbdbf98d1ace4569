// Every place where a team may have written something personal, a complete erasure, and what pg_dump shows afterwards.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { adjust, charge, newReference, subscribe } from '../service/lib/billing.js';
import { begin, hangUp, progress } from '../service/lib/calls.js';
import { asAdmin, passwordHash } from '../service/lib/customers.js';
import { erased, hold, ledger, remove, unhold } from '../service/lib/erasure.js';
import { request } from '../service/lib/http.js';
import { Stage, until } from '../service/lib/stage.js';
import { assertNoResidue, dumped } from './lib/residues.js';
import { addSubject, databaseWorld } from './lib/world.js';

/** Tables that later releases of Supabase Auth have, with their keys. */
const newerTables = `
  create table auth.webauthn_credentials (id uuid primary key default gen_random_uuid(), user_id uuid not null references auth.users on delete cascade,
    friendly_name text not null default '');
  create table auth.oauth_authorizations (id uuid primary key default gen_random_uuid(), user_id uuid references auth.users on delete cascade, redirect_uri text not null);
  create table auth.oauth_consents (id uuid primary key default gen_random_uuid(), user_id uuid not null references auth.users on delete cascade, scopes text not null);
  create table auth.oauth_consent_notes (consent_id uuid references auth.oauth_consents on delete no action, note text not null);
  create table auth.devices (id uuid primary key default gen_random_uuid(), user_id uuid references auth.users on delete set null, name text not null)`;

async function fillSignIns(db, user, mark) {
  const session = randomUUID(), factor = randomUUID(), consent = randomUUID(), provider = randomUUID();
  await db.query(`insert into auth.sso_providers (id) values ($1)`, [provider]);
  await db.query(`insert into auth.identities (provider_id, user_id, identity_data, provider) values ($1, $2, $3, 'email')`, [user.id, user.id, { email: user.email, full_name: `Identity ${mark}` }]);
  await db.query(`insert into auth.sessions (id, user_id, user_agent) values ($1, $2, $3)`, [session, user.id, `Agent ${mark}`]);
  await db.query(`insert into auth.refresh_tokens (token, user_id, session_id) values ($1, $2, $3)`, [`token-${mark}-${user.id}`, user.id, session]);
  await db.query(`insert into auth.mfa_factors (id, user_id, friendly_name, factor_type, status, created_at, updated_at) values ($1, $2, $3, 'totp', 'unverified', now(), now())`, [factor, user.id, `Phone ${mark}`]);
  await db.query(`insert into auth.one_time_tokens (id, user_id, token_type, token_hash, relates_to) values ($1, $2, 'recovery_token', $3, $4)`, [randomUUID(), user.id, `hash ${mark}`, user.email]);
  await db.query(`insert into auth.flow_state (id, user_id, auth_code, code_challenge_method, code_challenge, provider_type, provider_access_token, authentication_method)
    values ($1, $2, 'x', 's256', 'x', 'google', $3, 'oauth')`, [randomUUID(), user.id, `access-${mark}`]);
  await db.query(`insert into auth.saml_relay_states (id, sso_provider_id, request_id, for_email) values (gen_random_uuid(), $1, 'x', $2)`, [provider, user.email.toUpperCase()]);
  await db.query(`insert into auth.webauthn_credentials (user_id, friendly_name) values ($1, $2)`, [user.id, `Key ring ${mark}`]);
  await db.query(`insert into auth.oauth_authorizations (user_id, redirect_uri) values ($1, $2)`, [user.id, `https://${mark}.example.com/`]);
  await db.query(`insert into auth.oauth_consents (id, user_id, scopes) values ($1, $2, $3)`, [consent, user.id, `mail:${mark}`]);
  await db.query(`insert into auth.oauth_consent_notes values ($1, $2)`, [consent, `Note ${mark}`]);
  await db.query(`insert into auth.devices (user_id, name) values ($1, $2)`, [user.id, `Laptop ${mark}`]);
}

async function addMember(world, customer, n) {
  const user = { id: randomUUID(), email: `member.${n}.${customer.mark}@customers.example.com` };
  await world.db.query(`insert into auth.users (id, email, encrypted_password, email_confirmed_at) values ($1, $2, $3, now())`, [user.id, user.email, passwordHash]);
  const added = await request(world.server, {
    method: 'POST', path: `/v1/customers/${customer.id}/members`, headers: { ...asAdmin(), 'Content-Type': 'application/json' }, body: JSON.stringify({ user_id: user.id }),
  });
  assert.ok(added.status < 300, added.body);
  return user;
}

/** A customer of whom every place knows something. `company`: the name of its company. */
async function addKnown(world) {
  const { db, server } = world;
  const customer = await addSubject(world);
  const { mark } = customer;
  customer.member = await addMember(world, customer, 1);
  for (const user of [customer.user, customer.member]) await fillSignIns(db, user, mark);
  const [company] = await db.query(`insert into public.companies (owner_admin_uuid, name, vat_number, motto, extra) values ($1, $2, $3, $4, $5) returning id`,
    [customer.user.id, `Company ${mark}`, `VAT ${mark}`, `Motto ${mark}`, { boss: `Boss ${mark}` }]);
  for (const user of [customer.user, customer.member]) await db.query(`insert into public.company_admins (admin_uuid, company_id, title) values ($1, $2, $3)`, [user.id, company.id, `Title ${mark}`]);
  for (const reason of [`${mark} was rude`, undefined]) {
    const call = await begin(server, customer, { sip_call_id: `${randomUUID()}@${mark}.example.com`, from_tag: `tag-${mark}`, cseq: 1, source: customer.phone_number });
    assert.equal(call.status, 201, call.body);
    await progress(server, call.json.id, { status: 'progressing', to_tag: `to-${mark}` });
    if (reason) assert.equal((await hangUp(server, call.json.id, { reason })).status, 200);
  }
  for (let n = 0; n < 3; n++) {
    const charged = await charge(server, { billing_account_id: customer.account.id, amount_micros: 10, reference: newReference(`call to ${mark}`) });
    assert.equal(charged.status, 201, charged.body);
  }
  const subscribed = await subscribe(server, { billing_account_id: customer.account.id, amount_micros: 10, period_seconds: 86400, reference: `plan of ${mark}` });
  assert.equal(subscribed.status, 201, subscribed.body);
  const adjusted = await adjust(server, customer.account.id, { amount_micros: 10, reference: newReference(`refund to ${mark}`), reason: `${mark} asked` });
  assert.equal(adjusted.status, 201, adjusted.body);
  await hold(server, customer.id, `about ${mark}`);
  await unhold(server, customer.id);
  return Object.assign(customer, { company: company.id });
}

const keptOf = async (world, customer) =>
  (await ledger(world.server, customer.id)).json.participants.filter(({ status }) => status === 'kept').map(({ name, kind }) => [name, kind]);

describe('after a complete erasure', () => {
  const stage = new Stage();
  let world;
  before(async () => {
    world = await databaseWorld(stage, {
      auth: 'supabase',
      async prepare(db) {
        await db.query(newerTables);
        await db.query(`alter table public.companies add vat_number text not null default gen_random_uuid() unique, add motto varchar(80) check (motto <> ''), add extra jsonb`);
        await db.query(`alter table public.company_admins add title text not null default ''`);
      },
    });
  });
  after(() => stage.end());

  async function erase(customer) {
    const answer = await remove(world.server, customer.id);
    assert.equal(answer.status, 200, answer.body);
    await erased(world.server, customer);
    await until('its calls over, its work done', async () => {
      const [{ open }] = await world.db.query(`select (select count(*) from reclaim.call_calls where customer_id = $1 and status <> 'hangup')
        + (select count(*) from reclaim.work_items where payload::text like '%' || $1::text || '%') as open`, [customer.id]);
      return Number(open) === 0;
    });
  }

  it('nothing personal is left anywhere, and nothing is listed as kept', async () => {
    const customer = await addKnown(world);
    const lines = await dumped(world.db);
    const places = new Set(lines.filter(({ line }) => line.toLowerCase().includes(customer.mark)).map(({ table }) => table));
    for (const table of ['auth.devices', 'auth.flow_state', 'auth.saml_relay_states', 'auth.oauth_consent_notes', 'public.companies', 'public.company_admins', 'reclaim.billing_adjustments', 'reclaim.billing_charges', 'reclaim.billing_subscriptions', 'reclaim.call_calls'])
      assert.ok(places.has(table), `the search finds what is in ${table}`);
    await erase(customer);
    await assertNoResidue(world, customer, { more: [customer.member.email] });
    assert.deepEqual(await keptOf(world, customer), []);
    const { body } = await request(world.server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() });
    const { participants } = JSON.parse(Buffer.from(body.split('.')[1], 'base64url'));
    for (const name of ['reclaim.adjustments', 'reclaim.calls', 'reclaim.charges']) assert.equal(participants.find((one) => one.name === name).how, 'emptied', name);
    const [company] = await world.db.query('select owner_admin_uuid, name from public.companies where id = $1', [customer.company]);
    assert.deepEqual(company, { owner_admin_uuid: customer.user.id, name: '' });
  });

  it('a company that others still belong to is kept as it is, which the ledger says; once they are gone it is cleared', async () => {
    const { db } = world;
    const customer = await addKnown(world);
    const other = await addSubject(world);
    await db.query(`insert into public.company_admins (admin_uuid, company_id) values ($1, $2)`, [other.user.id, customer.company]);
    await erase(customer);
    assert.deepEqual(await keptOf(world, customer), [['public.companies', 'table']]);
    await assertNoResidue(world, customer, { more: [customer.member.email] });
    assert.equal((await db.query('select name from public.companies where id = $1', [customer.company]))[0].name, `Company ${customer.mark}`);
    await erase(other);
    const { code, stdout, stderr } = await world.run(['cascade', 'rescan', customer.id]);
    assert.equal(code, 0, stdout + stderr);
    await until('looked at again', async () => (await keptOf(world, customer)).length === 0);
    await erased(world.server, customer);
    await assertNoResidue(world, customer);
    await assertNoResidue(world, other);
  });

  it('a column that the table does not let go is kept alone, which the ledger says', async () => {
    const { db } = world;
    await db.query(`alter table public.companies add slogan text not null default 'x' check (length(slogan) > 0)`);
    const customer = await addKnown(world);
    await db.query('update public.companies set slogan = $2 where id = $1', [customer.company, `Slogan ${customer.mark}`]);
    await erase(customer);
    assert.deepEqual(await keptOf(world, customer), [['public.companies.slogan', 'column']]);
    await assertNoResidue(world, customer);
    assert.deepEqual(await db.query('select name, motto from public.companies where id = $1', [customer.company]), [{ name: '', motto: null }]);
    await db.query('alter table public.companies drop slogan');
  });

  it('a login that another customer needs is kept, and so is what it owns', async () => {
    const customer = await addKnown(world);
    const second = await addSubject(world);
    await world.db.query('update reclaim.customer_customers set owner_user_id = $2 where id = $1', [second.id, customer.user.id]);
    await erase(customer);
    assert.deepEqual(await keptOf(world, customer), [['auth.users', 'table']]);
    assert.equal((await world.db.query('select from auth.users where id = $1', [customer.user.id])).length, 1);
    await erase(second);
    await world.run(['cascade', 'rescan', customer.id]);
    await until('looked at again', async () => (await keptOf(world, customer)).length === 0);
    await erased(world.server, customer);
    await assertNoResidue(world, customer);
  });
});
