// A team's tables that the release before adopted: at once, by the former text of step 0011, with views of all columns, and with
// deletions that left what it did not know. This release takes the database over as it is.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, asAdmin, env, freeze, recover } from './lib/customers.js';
import { deleted, erased, found, frozenSince, ledger, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { repository } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const tables = `
  create table public.customer_customers (
    id uuid primary key, name varchar(255) not null, email varchar(255) not null unique, phone_number varchar(64) not null unique,
    status varchar(16), tm_create timestamp(6), tm_delete timestamptz not null default '9999-01-01 00:00:00+00',
    iban text, api_key text not null unique default gen_random_uuid(), parent uuid references public.customer_customers);
  create index live on public.customer_customers (email) where tm_delete = '9999-01-01 00:00:00+00';
  create view public.shown_customers as select id, name, iban, status, tm_delete from public.customer_customers;
  create table public.billing_accounts (
    id uuid primary key, customer_id uuid not null, name text, status varchar(16), vat_number text not null unique default gen_random_uuid(),
    payer text, tm_delete timestamptz)`;

/** Step 0011 as it was: [now, then]. The step names its former SHA-256, so that a mistake here stops the migration. */
const formerAdoption = [
  [/^-- formerly .*\n/, ''],
  [/In this schema they are\n(--.*\n){2}/, `They are adopted in
-- place: missing columns are added, old rows are converted, and a table in public gets a view in this schema, so that every
-- statement can name it the same way.
`],
  [`; '': step 0022 adopts it`, ''],
  [`  v_relation text := 'reclaim.' || p_name;
`, `  v_home text := CASE WHEN to_regclass('reclaim.' || p_name) IS NULL AND to_regclass('public.' || p_name) IS NOT NULL
                      THEN 'public' ELSE 'reclaim' END;
  v_relation text := v_home || '.' || p_name;
`],
  [/ {4}INSERT INTO reclaim.adopted_columns SELECT 'public.'.*\n/, ''],
  [/(?=  RETURN v_relation::regclass;)/, `  IF v_home = 'public' THEN
    EXECUTE format('CREATE VIEW reclaim.%I AS SELECT * FROM %s', p_name, v_relation);
  END IF;
`],
];

/** The steps up to 0020 as the release before ran them, before and after the given statements of the team's. */
async function formerRelease(db, sql) {
  const read = (...parts) => fs.readFileSync(path.join(repository, ...parts), 'utf8');
  await db.query(sql);
  await db.query(read('sql', 'ledger.sql'));
  for (const file of fs.readdirSync(path.join(repository, 'sql/tables')).sort()) {
    const [, version, name] = /^(\d{4})_(\w+)\.up\.sql$/.exec(file) ?? [];
    if (!version || Number(version) > 20) continue;
    let text = read('sql/tables', file);
    if (version === '0011') for (const [now, then] of formerAdoption) text = text.replace(now, then);
    await db.query(`begin; set local search_path = pg_catalog;\n${text};\ncommit`);
    await db.query('insert into reclaim.schema_migrations (version, name, checksum) values ($1, $2, $3)', [
      Number(version), name, createHash('sha256').update(text).digest('hex'),
    ]);
  }
  await db.fixture('former-functions');
}

const stage = new Stage();
const gone = { id: randomUUID() };
/** Erased long before there were certificates, also by participants that were removed since. */
const past = { id: randomUUID(), completed_at: '2025-03-04T05:06:07.000000Z' };
let db, server, stuck, live;
before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await formerRelease(db, tables);
  for (const name of ['stuck', 'live']) {
    const customer = await addCustomer(db, { name, phone_number: `+1${name}`, iban: `IBAN of ${name}`, api_key: `Key of ${name}` });
    await db.query(`insert into public.billing_accounts (id, customer_id, name, payer) values (gen_random_uuid(), $1, '', $2)`, [customer.id, `Payer ${name}`]);
    customer.strings = [customer.email, `IBAN of ${name}`, `Key of ${name}`, `Payer ${name}`];
    if (name === 'stuck') stuck = customer;
    else live = customer;
  }
  // What that release knew is cleared, and a second customer cannot be: its telephone number would be the same.
  await db.query(
    `insert into public.customer_customers (id, name, email, phone_number, status, tm_delete, iban, api_key, version)
     values ($1::uuid, 'deleted_user_' || $1::uuid, 'deleted_' || $1::uuid || '@removed.invalid', '', 'deleted', now(), 'IBAN of gone', 'Key of gone', 2)`,
    [gone.id],
  );
  await db.query(`insert into public.billing_accounts (id, customer_id, name, status, tm_delete, payer) values (gen_random_uuid(), $1, '', 'deleted', now(), 'Payer gone')`, [gone.id]);
  await db.query(`insert into reclaim.customer_told (customer_id, status, version) values ($1, 'deleted', 2)`, [gone.id]);
  await db.query(`insert into reclaim.erasures (customer_id, requested_at, completed_at) values ($1, now(), now())`, [gone.id]);
  await db.query(`create table public.letters (customer_id uuid, note text, tm_delete timestamptz); create index on public.letters (customer_id)`);
  await db.query(`insert into reclaim.cascade_participants (name, kind, table_name, customer_column, soft_delete_column, enabled) values
    ('archive', 'remote', null, null, null, false), ('letters', 'table', 'public.letters', 'customer_id', 'tm_delete', true)`);
  await db.query(`insert into reclaim.erasures (customer_id, requested_at, completed_at) values ($1, $2::timestamptz - interval '1 hour', $2)`, [past.id, past.completed_at]);
  await db.query(`insert into reclaim.cascade_receipts (customer_id, participant, status, rows, done_at)
    select $1, name, 'done', 3, $2::timestamptz from unnest(array['archive', 'crm-abroad', 'letters', 'public.customer_customers']) as name`, [past.id, past.completed_at]);
  await db.query(`update reclaim.customer_customers set status = 'frozen', tm_deletion_scheduled = now(), version = 2 where id = $1`, [stuck.id]);
  await db.query(`insert into reclaim.customer_told (customer_id, status, version) values ($1, 'frozen', 2)`, [stuck.id]);
});
after(() => stage.end());

describe('tables that the release before adopted', () => {
  it('are migrated, and then the team may change them', async () => {
    const migrated = await run(stage, ['migrate'], { database: db });
    assert.equal(migrated.code, 0, migrated.stderr);
    await db.query(`alter table public.customer_customers add column billing_email text, drop column parent cascade;
      alter table public.customer_customers rename column iban to bank_account;
      update public.customer_customers set billing_email = 'billing of ' || name`);
    server = await serve(stage, { database: db, env: { ...env, RECLAIM_EXPIRY_INTERVAL: '1s' } });
  });

  it('let a customer go that could not be deleted before', async () => {
    await frozenSince(db, stuck);
    await deleted(db, stuck);
    await erased(server, stuck);
    assert.deepEqual(await found(db, [...stuck.strings, 'billing of stuck']), []);
  });

  it('lose what that release left of customers that it deleted, and their ledgers say when', async () => {
    await until('cleared again', async () => (await found(db, ['IBAN of gone', 'Key of gone', 'Payer gone'])).length === 0);
    const { participants } = await erased(server, gone);
    assert.deepEqual(
      participants.map(({ name, status, rows, late_rows, late_at }) => [name, status, rows, late_rows, late_at !== null]),
      [['public.billing_accounts', 'done', 1, 1, true], ['public.customer_customers', 'done', 1, 1, true]],
    );
  });

  it('have certificates of what was erased before, which claim of removed participants neither what they were nor who reported', async () => {
    const { body } = await until('the certificate', async () => {
      const answer = await request(server, { path: `/v1/customers/${past.id}/certificate`, headers: asAdmin() });
      return answer.status === 200 && answer;
    });
    const claims = JSON.parse(Buffer.from(body.split('.')[1], 'base64url'));
    assert.equal(claims.completed_at, past.completed_at);
    assert.deepEqual(claims.participants.map(({ name, kind, rows, how, reported_by }) => [name, kind, rows, how, reported_by]), [
      ['archive', 'remote', 3, 'reported', 'service'],
      ['crm-abroad', 'unknown', 3, 'unknown', 'unknown'],
      ['letters', 'table', 3, 'marked', 'reclaim'],
      ['public.customer_customers', 'table', 3, 'emptied', 'reclaim'],
    ]);
    assert.deepEqual(claims.kept, [{ name: 'public.letters', kind: 'table', rows: 3,
      reason: 'its rows are marked as deleted and stay, with what they hold in columns that are not emptied' }]);
    const kindsOf = (list) => list.map(({ name, kind }) => [name, kind]).sort();
    assert.deepEqual(kindsOf((await ledger(server, past.id)).json.participants), kindsOf([...claims.participants, ...claims.kept]));
    const { stdout } = await run(stage, ['key-set'], { database: db });
    const files = fs.mkdtempSync(path.join(os.tmpdir(), 'reclaim-upgrade-'));
    stage.after(() => fs.rmSync(files, { recursive: true }));
    for (const [name, text] of [['certificate', body], ['keys', stdout]]) fs.writeFileSync(path.join(files, name), text);
    const said = await run(stage, ['verify', path.join(files, 'certificate'), '--key', path.join(files, 'keys')], {});
    assert.match(said.stdout, /crm-abroad: 3 rows, \S+, and it is not known who reported it\n/);
  });

  it('freeze, recover and delete the others', async () => {
    assert.equal((await freeze(server, live.id)).json.status, 'frozen');
    assert.equal((await recover(server, live.id)).json.status, 'active');
    assert.equal((await remove(server, live.id)).status, 200);
    await erased(server, live);
    assert.deepEqual(await found(db, [...live.strings, 'billing of live']), []);
  });

  it('are given back, with what can no longer be restored printed', async () => {
    await server.stop();
    const down = await run(stage, ['migrate', '--down', '99'], { database: db });
    assert.equal(down.code, 0, down.stderr);
    const [, ...differences] = down.stdout.trim().split('\n');
    assert.deepEqual(
      differences.map((line) => /^not as before the adoption: (\S+): the release that adopted it did not note what these columns were: (.*)$/.exec(line)?.slice(1)),
      [
        ['public.billing_accounts', `id uuid DEFAULT gen_random_uuid() NOT NULL, customer_id uuid NOT NULL, name text DEFAULT ''::text, `
          + `status character varying(16) DEFAULT 'active'::character varying NOT NULL, tm_delete timestamp with time zone`],
        ['public.customer_customers', `id uuid DEFAULT gen_random_uuid() NOT NULL, name character varying(255) DEFAULT ''::character varying NOT NULL, `
          + `email character varying(255) DEFAULT ''::character varying NOT NULL, phone_number character varying(64) DEFAULT ''::character varying NOT NULL, `
          + `status character varying(16) DEFAULT 'active'::character varying NOT NULL, tm_create timestamp with time zone DEFAULT clock_timestamp(), `
          + 'tm_delete timestamp with time zone'],
      ],
    );
    const columns = await db.query(`select string_agg(attname, ' ' order by attnum) as names from pg_attribute
      where attrelid = 'public.customer_customers'::regclass and attnum > 0 and not attisdropped`);
    assert.equal(columns[0].names, 'id name email phone_number status tm_create tm_delete bank_account api_key billing_email');
    assert.equal((await db.query('select from public.shown_customers')).length, 3);
  });
});
