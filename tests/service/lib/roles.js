// Roles that are no superusers, as a team gives them to Reclaim.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

import { repository } from './place.js';
import { run } from './reclaim.js';

const blocksOf = (text) => [...text.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) => sql);

/**
 * The statements of docs/security.md, section «A role with few privileges»: before the first migration, after it, as the
 * users' owner; those for Supabase's tables, for users that are customers; the policies.
 */
export function documentedStatements() {
  const page = fs.readFileSync(path.join(repository, 'docs/security.md'), 'utf8');
  const [section] = page.slice(page.indexOf('## A role with few privileges')).split('\n## ');
  const [roles, ...parts] = section.split('\n### ');
  const blocksUnder = (title) => blocksOf(parts.find((part) => part.startsWith(title)));
  const [before, after, owner] = blocksOf(roles);
  return {
    before,
    after,
    owner,
    supabase: blocksUnder('More of it on Supabase'),
    users: blocksUnder('Where users are customers'),
    policies: blocksUnder('Row security'),
  };
}

/** Makes the documented roles, unless they exist in the cluster, migrates as the one and grants to the other; the URL to connect as either. */
export async function addDocumentedRoles(scope, db, { exist = false } = {}) {
  const { before, after, owner } = documentedStatements();
  const as = (role) => db.url.replace('postgres@', `${role}@`);
  await db.query(before.replaceAll('app', `"${db.name}"`).replace(exist ? /^CREATE ROLE.*$/gm : '', ''));
  const migrated = await run(scope, ['migrate'], { database: as('reclaim_owner') });
  assert.equal(migrated.code, 0, migrated.stderr);
  await db.query(`set role reclaim_owner; ${after}; reset role`);
  await db.query(owner);
  return as;
}

/** The page says «one on the other tables of auth named above»: those on which `reclaim` has privileges. */
const otherPolicies = `do $$
  declare named regclass;
  begin
    for named in select c.oid from pg_class c where c.relnamespace = 'auth'::regnamespace and c.relkind = 'r' and has_any_column_privilege('reclaim', c.oid, 'select')
      and not exists (select from pg_policy p where p.polrelid = c.oid and 'reclaim'::regrole = any (p.polroles)) loop
      execute format('create policy reclaim_all on %s for all to reclaim using (true)', named);
    end loop;
  end $$`;

/** The same on Supabase Auth's schema: every table of auth and public has row security, and the documented policies. `more`: further statements of the page. */
export async function addSupabaseRoles(scope, db, more = []) {
  const as = await addDocumentedRoles(scope, db);
  const { supabase, policies } = documentedStatements();
  await db.query('alter table public.companies enable row level security; alter table public.company_admins enable row level security');
  for (const sql of [...supabase, ...more, ...policies, otherPolicies]) await db.query(sql);
  const open = await db.query(`select oid::regclass::text as name from pg_class
    where relnamespace in ('auth'::regnamespace, 'public'::regnamespace) and relkind = 'r' and not relrowsecurity`);
  assert.deepEqual(open, []);
  return { RECLAIM_DATABASE_URL: as('reclaim'), RECLAIM_MIGRATE: 'off' };
}

/** A role that may do all that serving takes and is subject to row security, on a migrated database; the URL to connect as it. */
export async function addServingRole(db, name) {
  await db.query(
    `create role ${name} login; grant usage on schema auth, reclaim to ${name}; grant all on all tables in schema reclaim to ${name};
     grant execute on all functions in schema reclaim to ${name}; grant usage on all sequences in schema reclaim to ${name};
     grant select, update, delete on auth.users, companies, company_admins to ${name}`,
  );
  return db.url.replace('postgres@', `${name}@`);
}
