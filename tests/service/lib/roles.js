// Roles that are no superusers, as a team gives them to Reclaim.

/** A role that may do all that serving takes and is subject to row security, on a migrated database; the URL to connect as it. */
export async function addServingRole(db, name) {
  await db.query(
    `create role ${name} login; grant usage on schema auth, reclaim to ${name}; grant all on all tables in schema reclaim to ${name};
     grant execute on all functions in schema reclaim to ${name}; grant usage on all sequences in schema reclaim to ${name};
     grant select, update, delete on auth.users, companies, company_admins to ${name}`,
  );
  return db.url.replace('postgres@', `${name}@`);
}
