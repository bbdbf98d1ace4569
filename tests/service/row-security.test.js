// Row security keeps a role from rows without an error. Whatever mixture of policies does it, nothing is called erased that
// is still there, and doctor says so beforehand.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, assertError, canaryPassword, env, login, rowOf } from './lib/customers.js';
import { erased, ledger, preview, remove } from './lib/erasure.js';
import { probe } from './lib/http.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { addServingRole } from './lib/roles.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, url, server;
before(async () => {
  const cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  await run(stage, ['migrate'], { database: db });
  url = await addServingRole(db, 'narrow');
  await db.query('create role somebody; delete from reclaim.cascade_participants');
  server = await serve(stage, { env: { ...env, RECLAIM_DATABASE_URL: url, RECLAIM_MIGRATE: 'off' } });
});
after(async () => {
  await db.query('drop owned by narrow, somebody');
  await stage.end();
});

const hidings = {
  'there is no policy': [],
  'the policy that shows all is for another role': ['create policy p on notes to somebody using (true)'],
  'the policy is for reading only': ['create policy p on notes for select to narrow using (true)'],
  'the policies are for erasing only': [
    'create policy p on notes for delete to narrow using (true)',
    'create policy q on notes for update to narrow using (true)',
  ],
  'a restrictive policy stands beside it': [
    'create policy p on notes to narrow using (true)',
    `create policy q on notes as restrictive using (note <> 'secret')`,
  ],
};

for (const [kind, options] of Object.entries({ deletes: [], marks: ['--soft-delete', 'tm_delete'] }))
  describe(`an erasure that ${kind} rows`, () => {
    for (const [hiding, policies] of Object.entries(hidings))
      it(`is never complete while row security hides them: ${hiding}`, async () => {
        await db.query(`drop table if exists notes; delete from reclaim.cascade_participants;
          create table notes (customer_id uuid, note text default 'secret', tm_delete timestamptz);
          create index on notes (customer_id); grant all on notes to narrow`);
        const add = () => run(stage, ['cascade', 'add', 'notes', '--table', 'notes', '--column', 'customer_id', ...options], { database: url });
        assert.equal((await add()).code, 0);
        const customer = await addCustomer(db);
        await db.query('insert into notes (customer_id) values ($1), ($1)', [customer.id]);
        await db.query('alter table notes enable row level security');
        for (const policy of policies) await db.query(policy);

        assert.match((await add()).stderr, /row-level security hides rows of public\.notes/);
        const doctor = await run(stage, ['doctor'], { database: url });
        assert.match(doctor.stdout, /FAIL {2}participant notes: row-level security hides rows/);
        const shown = (await preview(server, customer.id)).json.participants[0];
        if (hiding.includes('for reading only')) assert.equal(shown.rows, 2);
        else assert.deepEqual([shown.rows, shown.error], [null, '42501']);

        assert.equal((await remove(server, customer.id)).status, 200);
        const failed = await until('the erasure refused', async () => {
          const { json } = await ledger(server, customer.id);
          assert.notEqual(json.status, 'complete', 'a false receipt');
          return json.participants[0].status === 'failed' && json;
        });
        assert.match(failed.participants[0].error, /row-level security hides rows/);
        assert.equal((await db.query('select from notes where customer_id = $1 and tm_delete is null', [customer.id])).length, 2);

        await db.query('alter table notes disable row level security');
        assert.equal((await remove(server, customer.id)).status, 200);
        assert.equal((await erased(server, customer)).participants[0].rows, 2);
      });
  });

describe('a sign-in', () => {
  it('is refused while row security may hide a second factor', async () => {
    const { user } = await addCustomer(db);
    await db.query(`create table auth.mfa_factors (user_id uuid, status text); grant select on auth.mfa_factors to narrow;
      insert into auth.mfa_factors values ('${user.id}', 'verified'); alter table auth.mfa_factors enable row level security;
      create policy theirs on auth.mfa_factors to somebody using (true)`);
    assertError(await login(server, user.email, canaryPassword), 503, 'UNAVAILABLE');
    await db.query('create policy ours on auth.mfa_factors for select to narrow using (true)');
    assertError(await login(server, user.email, canaryPassword), 403, 'MFA_REQUIRED');
    await db.query('drop table auth.mfa_factors');
    assert.equal((await login(server, user.email, canaryPassword)).status, 200);
  });
});

describe('members that row security hides', () => {
  it('are not taken for orphans, and keep their customer from being deleted without them', async () => {
    const [customer, user] = [await addCustomer(db, { owner: false }), await addUser(db)];
    await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [customer.id, user.id]);
    await db.query('alter table reclaim.customer_members enable row level security');
    assert.equal((await probe(server, user.email)).json.data.hasCompanyData, null);
    assertError(await remove(server, customer.id), 500, 'INTERNAL');
    assert.equal((await rowOf(db, customer)).status, 'active');
    await db.query('alter table reclaim.customer_members disable row level security');
    assert.equal((await probe(server, user.email)).json.data.hasCompanyData, true);
    assert.equal((await remove(server, customer.id)).status, 200);
    assert.deepEqual(await db.query('select from auth.users where id = $1', [user.id]), []);
  });
});

describe('reclaim doctor', () => {
  const doctor = () => run(stage, ['doctor'], { database: url });

  it('names every table of which rows are hidden, until a policy shows this role all of them', async () => {
    for (const table of ['auth.users', 'public.companies', 'reclaim.customer_customers', 'reclaim.customer_members', 'reclaim.billing_accounts']) {
      await db.query(`alter table ${table} enable row level security; create policy theirs on ${table} to somebody using (true)`);
      const { code, stdout } = await doctor();
      assert.equal(code, 1, stdout);
      assert.match(stdout.replaceAll('"', ''), new RegExp(`FAIL  row-level security hides rows of ${table.replace('.', '\\.')} from this role`));
      await db.query(`create policy ours on ${table} to narrow using (true)`);
      assert.doesNotMatch((await doctor()).stdout, /row-level security hides/);
    }
  });
});
