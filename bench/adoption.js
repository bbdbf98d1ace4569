import { run } from '../tests/service/lib/reclaim.js';
import { startCluster } from './lib/world.js';

export const about = 'a million customers and their accounts adopted beside a program that writes and one that reads them';

/** As a program from before Reclaim had them: a sentinel for "not deleted", no status, every tenth deleted. */
async function fill(scope, cluster, count) {
  const database = await cluster.database(scope);
  await database.query(`
    create table public.customer_customers (number int, id uuid primary key default gen_random_uuid(), name varchar(255), email varchar(255), notes text,
      tm_create timestamp(6) default now(), tm_update timestamp(6), tm_delete timestamp(6) not null default '9999-01-01 00:00:00');
    create table public.billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid not null, balance numeric(12, 2) not null,
      tm_delete timestamp(6) not null default '9999-01-01 00:00:00')`);
  await database.query(
    `insert into public.customer_customers (number, name, email, tm_delete) select n, 'Customer ' || n, 'person' || n || '@example.com',
       case when n % 10 = 0 then '2025-05-06 07:08:09' else '9999-01-01 00:00:00' end::timestamp from generate_series(1, $1::int) n`,
    [count],
  );
  await database.query('create unique index on public.customer_customers (number)');
  await database.query('insert into public.billing_accounts (customer_id, balance) select id, number from public.customer_customers');
  await database.query('vacuum analyze');
  await database.query('checkpoint');
  return database;
}

/** Runs a statement again and again; how long the slowest took, in milliseconds. */
async function repeat(scope, database, sql, count, isOver) {
  const session = await database.session(scope);
  let slowest = 0;
  let runs = 0;
  while (!isOver()) {
    const began = performance.now();
    await session.query(sql, [1 + Math.floor(Math.random() * count)]);
    slowest = Math.max(slowest, performance.now() - began);
    runs++;
  }
  return { slowest, runs };
}

async function adopt(scope, cluster, count) {
  const database = await fill(scope, cluster, count);
  let over = false;
  const isOver = () => over;
  const writer = repeat(scope, database, `update public.customer_customers set notes = coalesce(notes, '') || 'x' where number = $1`, count, isOver);
  const reader = repeat(scope, database, 'select c.name, a.balance from public.customer_customers c join public.billing_accounts a on a.customer_id = c.id where c.number = $1 limit 1', 100, isOver);
  const began = performance.now();
  const { code, stderr } = await run(scope, ['migrate', '--balance', 'balance'], { database, deadlineMs: 3_600_000 });
  const seconds = (performance.now() - began) / 1000;
  over = true;
  const [wrote, read] = await Promise.all([writer, reader]);
  if (code !== 0) throw new Error(stderr);
  const [found] = await database.query(`select count(*) filter (where status = 'deleted')::int as deleted, count(*) filter (where tm_delete is null)::int as live,
      sum(length(notes))::int as writes, (select sum(balance_micros)::text from reclaim.billing_accounts) as micros from public.customer_customers`);
  const expected = { deleted: count / 10, live: count - count / 10, writes: wrote.runs, micros: String((count * (count + 1) / 2) * 1_000_000) };
  if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
  return { seconds, writer: wrote.slowest, reader: read.slowest, writes: wrote.runs };
}

export async function bench(b) {
  const count = Number(process.env.RECLAIM_BENCH_CUSTOMERS) || (b.smoke ? 2_000 : 1_000_000);
  const cluster = await startCluster(b.stage, { max_wal_size: '8GB' });
  const found = await adopt(b.stage, cluster, count);
  b.measure('slowest statement of the writer', { rounds: [found.writer], unit: 'ms', atMost: 1000 });
  b.measure('slowest statement of the reader', { rounds: [found.reader], unit: 'ms', atMost: 1000 });
  b.measure('adoption', { rounds: [found.seconds], unit: 's' });
  b.note(`${count} customers and accounts; ${found.writes} writes meanwhile, none lost`);
}
