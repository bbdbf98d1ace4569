// Set-up of benchmarks: a PostgreSQL with people in it, and servers.

import { domain } from '../../tests/service/lib/people.js';
import { Cluster } from '../../tests/service/lib/postgres.js';
import { run, serve } from '../../tests/service/lib/reclaim.js';

/** Durable like a production cluster, unlike the tests' clusters. */
const settings = { fsync: 'on', full_page_writes: 'on', shared_buffers: '128MB' };

export const startCluster = (scope, more = {}) => Cluster.create(scope, { settings: { ...settings, ...more } });

const digits = 6;
/** For the load generator, which replaces # by a person's number. */
export const anyAddress = `person${'#'.repeat(digits)}@${domain}`;

/** A database with so many people in equal parts: unverified, verified orphans, owners of a company. */
export async function filledDatabase(scope, cluster, people = 10_000) {
  const database = await cluster.database(scope);
  await database.query(
    `insert into auth.users (email, email_confirmed_at, last_sign_in_at, created_at)
     select 'person' || lpad(n::text, ${digits}, '0') || '@${domain}',
            case when n % 3 > 0 then now() - interval '40 days' end,
            case when n % 3 = 2 then now() - interval '1 day' end,
            now() - interval '41 days'
     from generate_series(0, $1::int - 1) n`,
    [people],
  );
  await database.query('insert into public.companies (owner_admin_uuid) select id from auth.users where last_sign_in_at is not null');
  await database.query('vacuum analyze');
  return database;
}

/** Reclaim's own tables, before any server is started. */
export async function migrate(scope, database) {
  const { code, stderr } = await run(scope, ['migrate'], { database });
  if (code !== 0) throw new Error(`migrate: ${stderr}`);
}

export const secretKey = 'a key for benchmarks, of no worth at all';

export const startServer = (scope, database, env = {}, more = {}) =>
  serve(scope, { database, env: { RECLAIM_SECRET_KEY: secretKey, ...env }, ...more });
