// The schema: made from nothing by any number of instances at once, looked at, taken back.
// takes long

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { matrix } from './lib/matrix.js';
import { addUser, canaryKey } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

describe('the schema', () => {
  const stage = new Stage();
  let cluster;
  before(async () => {
    cluster = await Cluster.create(stage);
  });
  after(() => stage.end());

  const shape = (db) =>
    db.query(
      `select n.nspname, c.relname, c.relkind::text as kind, a.attname, format_type(a.atttypid, a.atttypmod) as type
       from pg_class c join pg_namespace n on n.oid = c.relnamespace left join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
       where n.nspname in ('reclaim', 'auth', 'public') order by 1, 2, a.attnum`,
    );
  const versions = async (db) => (await db.query('select version from reclaim.schema_migrations order by version')).map((row) => Number(row.version));

  it('is made by ten servers that start at once on one empty database', async (t) => {
    const db = await cluster.database(t);
    const user = await addUser(db);
    const servers = await Promise.all(Array.from({ length: 10 }, () => serve(t, { database: db, env: { RECLAIM_DATABASE_CONNECTIONS: '4' } })));
    for (const server of servers) assert.equal((await probe(server, user.email)).json.data.isOrphaned, true);
    const applied = await versions(db);
    assert.deepEqual(applied, applied.map((_, n) => n + 1), 'each step once, in order');
    const migrated = servers.flatMap((server) => server.events('schema migrated'));
    assert.equal(migrated.length, 1, 'one of them did it');
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('is made by ten commands at once, standalone tables included', async (t) => {
    const db = await cluster.database(t, { auth: 'none' });
    const results = await Promise.all(Array.from({ length: 10 }, () => run(t, ['migrate', '--standalone'], { database: db })));
    for (const result of results) assert.equal(result.code, 0, result.stderr);
    assert.ok((await versions(db)).length > 0);
    await db.query('select id, email from auth.users');
  });

  it('leaves the search path of a product’s role alone; doctor finds one that was changed, and --repair takes it back', async (t) => {
    const db = await cluster.database(t, { auth: 'none' });
    await db.query(`create role product login; grant create on database "${db.name}" to product; grant all on schema public to product`);
    const as = db.url.replace('postgres@', 'product@');
    const asProduct = (...args) => run(t, args, { database: as });
    const path = async () => (await db.query('select setconfig from pg_db_role_setting where setrole = (select oid from pg_roles where rolname = $1)', ['product']))[0]?.setconfig;
    await db.query('set role product; create table public.theirs (); reset role');
    assert.equal((await asProduct('migrate', '--standalone')).code, 0);
    assert.equal(await path(), undefined);
    assert.doesNotMatch((await asProduct('doctor')).stdout, /search path/);

    for (const [others, undo] of [['"$user", public', 'RESET search_path'], ['extensions, public', `SET search_path = 'extensions', 'public'`]]) {
      await db.query(`alter role product in database "${db.name}" set search_path = reclaim, ${others}`);
      assert.equal((await asProduct('migrate')).code, 0);
      const found = await asProduct('doctor');
      assert.ok(found.stdout.includes(`warn  schema reclaim is on the search path of role product, which is not Reclaim's own: reclaim doctor --repair, or ALTER ROLE product IN DATABASE ${db.name} ${undo}`), found.stdout);
      assert.ok((await path())[0].includes('reclaim'), 'without --repair nothing is changed');
      assert.match((await asProduct('doctor', '--repair')).stdout, /ok {4}search path taken back/);
      assert.doesNotMatch((await asProduct('doctor')).stdout, /search path/);
      assert.deepEqual(await path(), undo.startsWith('RESET') ? undefined : ['search_path=extensions, public']);
    }
    await db.query('drop owned by product; drop role product');
  });

  it('on standalone tables serves every row of the state matrix', async (t) => {
    const db = await cluster.database(t, { auth: 'none' });
    assert.equal((await run(t, ['migrate', '--standalone'], { database: db })).code, 0);
    const server = await serve(t, { database: db });
    for (const [promise, arrange, expected] of matrix) {
      const { correlationId, ...data } = (await probe(server, await arrange(db))).json.data;
      assert.ok(correlationId);
      assert.deepEqual(data, expected, promise);
    }
    await server.stop();
  });

  it('has standalone tables as Supabase Auth and the interface have them', async (t) => {
    const db = await cluster.database(t, { auth: 'none' });
    assert.equal((await run(t, ['migrate', '--standalone'], { database: db })).code, 0);
    const columns = await db.query(`select attname from pg_attribute where attrelid = 'auth.users'::regclass and attnum > 0`);
    const wanted = 'id,email,encrypted_password,email_confirmed_at,last_sign_in_at,is_sso_user,is_anonymous,deleted_at,banned_until,raw_app_meta_data,created_at';
    const names = columns.map((column) => column.attname);
    for (const name of wanted.split(',')) assert.ok(names.includes(name), name);
    const [user] = await db.query(`insert into auth.users (email) values ('one@canary-reclaim.example.com') returning id`);
    await assert.rejects(db.query(`insert into auth.users (email) values ('one@canary-reclaim.example.com')`), /unique/);
    await db.query(`insert into auth.users (email, is_sso_user) values ('one@canary-reclaim.example.com', true)`);
    const [company] = await db.query('insert into companies (owner_admin_uuid) values ($1) returning id', [user.id]);
    await db.query('insert into company_admins (admin_uuid, company_id) values ($1, $2)', [user.id, company.id]);
    await assert.rejects(db.query('delete from auth.users where id = $1', [user.id]), /foreign key/, 'an owner cannot be deleted');
    const [admin] = await db.query(`insert into auth.users (email) values ('two@canary-reclaim.example.com') returning id`);
    await db.query('insert into company_admins (admin_uuid, company_id) values ($1, $2)', [admin.id, company.id]);
    await db.query('delete from auth.users where id = $1', [admin.id]);
    const [{ n }] = await db.query('select count(*)::int as n from company_admins where admin_uuid = $1', [admin.id]);
    assert.equal(n, 0, 'a co-administrator goes with the user');
  });

  it('standalone leaves tables that exist as they are, and may be repeated', async (t) => {
    const db = await cluster.database(t, { auth: 'supabase' });
    const user = await addUser(db);
    for (let round = 0; round < 2; round++) {
      const result = await run(t, ['migrate', '--standalone'], { database: db });
      assert.equal(result.code, 0, result.stderr);
    }
    assert.deepEqual((await db.query('select id from auth.users')).map((row) => row.id), [user.id]);
  });

  it('goes up, down step by step to nothing, and up again to the same', async (t) => {
    const db = await cluster.database(t);
    const empty = await shape(db);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
    const newest = await versions(db);
    const full = await shape(db);
    for (let left = newest.length; left > 0; left--) {
      const down = await run(t, ['migrate', '--down', '1'], { database: db });
      assert.equal(down.code, 0, down.stderr);
    }
    const reclaims = (await shape(db)).filter((row) => row.nspname === 'reclaim' && !row.relname.startsWith('schema_migrations'));
    assert.deepEqual(reclaims, [], 'nothing of it is left');
    assert.deepEqual((await shape(db)).filter((row) => row.nspname !== 'reclaim'), empty);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
    assert.deepEqual(await shape(db), full);
    assert.deepEqual(await versions(db), newest);
  });

  it('is told by --status, before and after', async (t) => {
    const db = await cluster.database(t);
    const earlier = await run(t, ['migrate', '--status'], { database: db });
    assert.equal(earlier.code, 0, earlier.stderr);
    assert.match(earlier.stdout, /0001 .*not applied/);
    assert.match(earlier.stdout, /^functions, set \d+: not applied/m);
    await run(t, ['migrate'], { database: db });
    const later = await run(t, ['migrate', '--status'], { database: db });
    assert.match(later.stdout, /0001 .*20\d\d-/);
    assert.match(later.stdout, /^functions, set \d+: 20\d\d-/m);
    assert.doesNotMatch(later.stdout, /not applied/);
  });

  it('repeated, changes nothing', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    const full = await shape(db);
    const again = await run(t, ['migrate'], { database: db });
    assert.equal(again.code, 0);
    assert.match(again.stdout, /nothing to do/);
    assert.deepEqual(await shape(db), full);
  });

  it('whose migration was changed after it was applied stops the start', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    const [column] = await db.query(
      `select attname from pg_attribute where attrelid = 'reclaim.schema_migrations'::regclass and attnum > 0 and attname ~ 'sha|sum|digest'`,
    );
    const [{ type }] = await db.query(`select format_type(atttypid, -1) as type from pg_attribute where attrelid = 'reclaim.schema_migrations'::regclass and attname = $1`, [column.attname]);
    const wrong = type === 'bytea' ? `'\\x00'::bytea || substr(${column.attname}, 2)` : `reverse(${column.attname})`;
    await db.query(`update reclaim.schema_migrations set ${column.attname} = ${wrong} where version = 1`);
    const server = await serve(t, { database: db, wait: 'nothing' });
    assert.equal((await server.ended()).code, 1);
    assert.match(server.tail(), /0001|version 1|changed/);
    assert.match((await run(t, ['migrate', '--status'], { database: db })).stdout, /CHANGED/);
  });

  it('newer than the program stops the start', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(
      `insert into reclaim.schema_migrations
       select (jsonb_populate_record(m, jsonb_build_object('version', (select max(version) + 1 from reclaim.schema_migrations)))).*
       from reclaim.schema_migrations m where version = 1`,
    );
    const server = await serve(t, { database: db, wait: 'nothing' });
    assert.equal((await server.ended()).code, 1);
    assert.match(server.tail(), /newer/);
  });

  const changed = `create or replace function reclaim.rfc3339(p_time timestamptz) returns text language sql as $$ select 'changed' $$`;
  const isChanged = async (db) => (await db.query(`select reclaim.rfc3339(now()) as text`))[0].text === 'changed';

  it('with functions newer than the program keeps them, and is served', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(`${changed}; update reclaim.schema_functions set number = number + 1, checksum = 'newer'`);
    const server = await serve(t, { database: db });
    assert.equal(server.events('the functions in the database are newer than this program\'s, and stay').length, 1);
    await server.stop();
    assert.equal(await isChanged(db), true);
    assert.match((await run(t, ['migrate', '--status'], { database: db })).stdout, /^functions, set \d+: 20\d\d.*, this program has set \d+$/m);
    const down = await run(t, ['migrate', '--down', '1'], { database: db });
    assert.equal(down.code, 1);
    assert.match(down.stderr, /newer program/);
  });

  it('with functions older than the program gets new ones at the next start', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(`${changed}; alter table reclaim.schema_functions drop constraint schema_functions_number_check;
      update reclaim.schema_functions set number = number - 1, checksum = 'older'`);
    const server = await serve(t, { database: db });
    assert.equal(server.events('functions replaced').length, 1);
    await server.stop();
    assert.equal(await isChanged(db), false);
  });

  it('left without functions and triggers by a crash gets them at the next start', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(`drop trigger customer_settle on reclaim.customer_customers; drop function reclaim.remind; delete from reclaim.schema_functions`);
    const server = await serve(t, { database: db });
    const [{ status }] = await db.query(`insert into reclaim.customer_customers (status) values ('') returning status`);
    assert.equal(status, 'active');
    await server.stop();
  });

  it('with other functions of the same number stops the start', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(`update reclaim.schema_functions set checksum = 'other'`);
    const server = await serve(t, { database: db, wait: 'nothing' });
    assert.equal((await server.ended()).code, 1);
    assert.match(server.tail(), /another set with the same number.*sql-set --write/);
    assert.match((await run(t, ['migrate', '--status'], { database: db })).stdout, /^functions, set \d+: .*CHANGED/m);
  });

  it('gets new functions from its owner only', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    await db.query(`create role few_rights login; grant usage on schema reclaim to few_rights;
      grant select, insert, update, delete on all tables in schema reclaim to few_rights`);
    const as = db.url.replace('postgres@', 'few_rights@');
    assert.equal((await run(t, ['migrate'], { database: as })).code, 0, 'nothing to do needs no right');
    await db.query('delete from reclaim.schema_functions');
    const refused = await run(t, ['migrate'], { database: as });
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /sql\/functions\/.*\.sql: .*(owner|permission)/);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
  });

  it('is left alone with RECLAIM_MIGRATE=off', async (t) => {
    const db = await cluster.database(t);
    const server = await serve(t, { database: db, env: { RECLAIM_MIGRATE: 'off' }, wait: 'nothing' });
    assert.equal((await server.ended()).code, 1, 'there is nothing to serve from');
    assert.deepEqual(await db.query(`select 1 from pg_namespace where nspname = 'reclaim'`), []);
    await run(t, ['migrate'], { database: db });
    const served = await serve(t, { database: db, env: { RECLAIM_MIGRATE: 'off' } });
    await served.stop();
  });

  it('keeps everything in it from PUBLIC', async (t) => {
    const db = await cluster.database(t);
    await run(t, ['migrate'], { database: db });
    const open = await db.query(
      `select p.proname from pg_proc p where p.pronamespace = 'reclaim'::regnamespace and has_function_privilege('public', p.oid, 'execute')`,
    );
    assert.deepEqual(open, []);
    const [{ usage }] = await db.query(`select has_schema_privilege('public', 'reclaim', 'usage') as usage`);
    assert.equal(usage, false);
  });

  it('remembers the key it was set up with, and refuses another', async (t) => {
    const db = await cluster.database(t);
    const first = await serve(t, { database: db });
    const other = await serve(t, { database: db, env: { RECLAIM_SECRET_KEY: `${canaryKey}-but-another` }, wait: 'nothing' });
    assert.equal((await other.ended()).code, 1);
    assert.match(other.tail(), /RECLAIM_SECRET_KEY/);
    const same = await serve(t, { database: db });
    await same.stop();
    await first.stop();
    const rows = await db.query('select installation::text as row from reclaim.installation');
    assert.ok(!JSON.stringify(rows).includes(canaryKey));
  });
});
