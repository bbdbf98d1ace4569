// World 3: Supabase Auth's full schema, the roles with few privileges as docs/security.md writes them, row security on for
// every table; and the same with policies that leave Reclaim out, where it must say so and delete nobody.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { assertDeleted, assertRefused, isThere, mailedCode, requestCode, validate } from '../service/lib/cleanup.js';
import { certificate, claimsOf, erased, ledger, remove } from '../service/lib/erasure.js';
import { probe } from '../service/lib/http.js';
import { addCompany, addUser } from '../service/lib/people.js';
import { serve } from '../service/lib/reclaim.js';
import { addSupabaseRoles } from '../service/lib/roles.js';
import { Stage, until } from '../service/lib/stage.js';
import { assertNoResidue } from './lib/residues.js';
import { coreStory } from './lib/story.js';
import { addSubject, databaseWorld } from './lib/world.js';

/** The claims of the certificate of a complete erasure. */
async function certified(world, customer) {
  await erased(world.server, customer);
  const { status, body } = await certificate(world.server, customer.id);
  assert.equal(status, 200, body);
  return claimsOf(body);
}

const checked = ['auth.users', 'public.companies', 'public.company_admins'];

describe('on Supabase Auth’s schema, with few privileges and row security everywhere', () => {
  const stage = new Stage();
  let world, reach;
  before(async () => {
    world = await databaseWorld(stage, {
      auth: 'supabase',
      async prepare(db) {
        reach = await addSupabaseRoles(stage, db);
        return reach;
      },
    });
  });
  after(() => stage.end());

  it('the doctor has nothing to say against it', async () => {
    const { code, stdout, stderr } = await world.run(['doctor']);
    assert.doesNotMatch(stdout, /FAIL|row-level security hides/);
    assert.equal(code, 0, stdout + stderr);
  });

  coreStory(() => world, { first: 'owner', second: 'cli' });

  it('what Reclaim may not reach of a customer whose login has to stay is listed as kept, and the rest is gone', async () => {
    const { db } = world;
    await db.query(`create table auth.webauthn_credentials (id uuid primary key default gen_random_uuid(), user_id uuid not null references auth.users on delete cascade, name text);
      alter table auth.webauthn_credentials enable row level security`);
    const customer = await addSubject(world);
    await db.query(`insert into public.companies (owner_admin_uuid, name) values ($1, $2)`, [customer.user.id, `Company ${customer.mark}`]);
    await db.query(`insert into auth.webauthn_credentials (user_id, name) values ($1, $2)`, [customer.user.id, `Ring ${customer.mark}`]);
    assert.equal((await remove(world.server, customer.id)).status, 200);
    const { participants } = await erased(world.server, customer);
    const kept = participants.filter(({ status }) => status === 'kept');
    assert.deepEqual(kept.map(({ name }) => name), ['auth.webauthn_credentials', 'public.companies']);
    for (const { reason } of kept) assert.match(reason, /: (GRANT|CREATE POLICY) /);
    await assertNoResidue(world, customer);
    // With the rights that the reasons name, looking again clears both; each time another certificate says what is left.
    const first = await certified(world, customer);
    assert.deepEqual(first.kept.map(({ name }) => name), ['auth.webauthn_credentials', 'public.companies']);
    await db.query(`grant select, delete on auth.webauthn_credentials to reclaim;
      create policy reclaim_changes on auth.webauthn_credentials for all to reclaim using (true)`);
    assert.equal((await world.run(['cascade', 'rescan', customer.id])).code, 0);
    const next = await until('certified again', async () => {
      const claims = await certified(world, customer);
      return claims.replaces === first.jti && claims;
    });
    assert.deepEqual(next.kept.map(({ name }) => name), ['public.companies']);
    const looked = async () => (await db.query('select rescan_at > reclaim.now() as later from reclaim.erasures where customer_id = $1', [customer.id]))[0].later;
    assert.equal((await world.run(['cascade', 'rescan', customer.id])).code, 0);
    await until('looked at again', looked);
    assert.equal((await certified(world, customer)).jti, next.jti);
    await db.query(`grant select, update on public.companies, public.company_admins to reclaim;
      create policy reclaim_changes on public.companies for all to reclaim using (true);
      create policy reclaim_changes on public.company_admins for all to reclaim using (true)`);
    assert.equal((await world.run(['cascade', 'rescan', customer.id])).code, 0);
    await until('cleared', async () => (await erased(world.server, customer)).participants.every(({ status }) => status === 'done'));
    await assertNoResidue(world, customer);
    await db.query('drop table auth.webauthn_credentials; drop policy reclaim_changes on public.companies; drop policy reclaim_changes on public.company_admins; revoke update on public.companies, public.company_admins from reclaim');
  });

  describe('then with policies for other roles only', () => {
    const orphan = {}, owner = {};
    let code;

    before(async () => {
      const { db, server, provider } = world;
      Object.assign(orphan, await addUser(db));
      Object.assign(owner, await addUser(db, { confirmed: '2025-10-02T00:00:00Z' }));
      await addCompany(db, owner);
      code = await mailedCode(server, provider, orphan.email);
      await db.query('create role product');
    });

    /** While `act` runs, the tables show their rows to another role alone, as `policies` replaced by `instead` says. */
    async function whileHidden(tables, act, instead = 'for all to product') {
      const { db } = world;
      const kept = await db.query(
        `select format('%I.%I', schemaname, tablename) as name, policyname as policy, cmd, roles::text[] as roles, qual from pg_policies
         where format('%s.%s', schemaname, tablename) = any ($1) and 'reclaim' = any (roles::text[])`,
        [tables],
      );
      for (const { name, policy } of kept) await db.query(`drop policy ${policy} on ${name}`);
      for (const name of tables) await db.query(`create policy instead on ${name} ${instead} using (true)`);
      try {
        await act();
      } finally {
        for (const name of tables) await db.query(`drop policy instead on ${name}`);
        for (const { name, policy, cmd, roles, qual } of kept) await db.query(`create policy ${policy} on ${name} for ${cmd} to ${roles} using (${qual})`);
      }
    }

    async function doctorNames(tables) {
      const { code: exit, stdout } = await world.run(['doctor']);
      assert.equal(exit, 1, stdout);
      for (const table of tables) assert.match(stdout.replaceAll('"', ''), new RegExp(`FAIL.*row-level security hides rows of ${table.replace('.', '\\.')}`));
    }

    async function nobodyIsCleanedUp() {
      const { server, contract, db } = world;
      for (const user of [orphan, owner]) assertRefused(await requestCode(server, user.email), contract, '006');
      assertRefused(await validate(server, orphan.email, code), contract, '006');
      for (const user of [orphan, owner]) assert.equal(await isThere(db, user), true);
    }

    it('users that are hidden are not called unregistered, and not cleaned up', async () => {
      await whileHidden(['auth.users'], async () => {
        for (const user of [orphan, owner]) assert.equal((await probe(world.server, user.email)).status, 503);
        await nobodyIsCleanedUp();
        await doctorNames(['auth.users']);
      });
    });

    for (const table of ['public.companies', 'public.company_admins'])
      it(`while ${table} is hidden nobody is called an orphan or cleaned up`, async () => {
        await whileHidden([table], async () => {
          const { json } = await probe(world.server, orphan.email);
          assert.deepEqual([json.data.hasCompanyData, json.data.isOrphaned], [null, null]);
          await nobodyIsCleanedUp();
          await doctorNames([table]);
        });
      });

    it('a server that starts then says which tables', async (t) => {
      await whileHidden(checked, async () => {
        const started = await serve(t, { env: { ...reach, ...world.provider.env }, wait: 'nothing' });
        await started.line('ready', ({ event }) => event === 'ready');
        const said = started.lines.filter(({ level, why }) => level === 'warn' && why).map(({ why }) => why.replaceAll('"', '')).join('\n');
        for (const table of checked) assert.match(said, new RegExp(`row-level security hides rows of ${table.replace('.', '\\.')} `));
        await doctorNames(checked);
      });
    });

    it('a policy that only shows users is not enough: their code is answered as a fault, not as unknown', async () => {
      await whileHidden(['auth.users'], async () => {
        assert.equal((await probe(world.server, orphan.email)).json.data.isOrphaned, true);
        assertRefused(await validate(world.server, orphan.email, code), world.contract, '006');
        await doctorNames(['auth.users']);
      }, 'for select to reclaim');
      assert.equal(await isThere(world.db, orphan), true);
    });

    it('and with the documented policies back the code that was mailed before works', async () => {
      assertDeleted(await validate(world.server, orphan.email, code), world.contract, orphan);
    });
  });
});
