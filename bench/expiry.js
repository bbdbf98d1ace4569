import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { tableOf } from '../tests/service/lib/erasure.js';
import { run } from '../tests/service/lib/reclaim.js';
import { pause, until } from '../tests/service/lib/stage.js';
import { Metrics } from './lib/metrics.js';
import { residentBytes } from './lib/process.js';
import { start } from './lib/tool.js';
import { migrate, startCluster, startServer } from './lib/world.js';

export const about = 'a million customers past their grace: deleted and erased from two tables, against the same as plain statements by psql';

const script = fileURLToPath(new URL('peers/expiry.sql', import.meta.url));
const participants = ['contact', 'tag'];

/** Whose tables the customers are in. Columns that Reclaim does not know are cleared by the catalogue, by the peer as it is told here. */
const owns = {
  reclaim: { customers: 'reclaim.customer_customers', accounts: 'reclaim.billing_accounts', clear: '', clearAccount: '' },
  team: {
    customers: 'public.customer_customers',
    accounts: 'public.billing_accounts',
    make: `create table public.customer_customers (id uuid primary key default gen_random_uuid(), name text not null default '', email text,
        billing_email text default 'billing@example.com', notes jsonb not null default '{"a": 1}', api_key text not null unique default gen_random_uuid(),
        tm_delete timestamptz);
      create table public.billing_accounts (id uuid primary key default gen_random_uuid(), customer_id uuid not null, name text,
        iban text default 'DE00', tm_delete timestamptz)`,
    clear: `, billing_email = NULL, notes = '{}', api_key = 'deleted_' || c.id`,
    clearAccount: ', iban = NULL',
    left: {
      'columns of customers': [`select count(*) from public.customer_customers where billing_email is not null or notes <> '{}' or api_key not like 'deleted%'`, 0],
      'columns of accounts': ['select count(*) from public.billing_accounts where iban is not null', 0],
    },
  },
};

/** Frozen a month ago, each with a login, a key, a billing account, an event, and a row at both participants. */
async function fill(scope, cluster, count, own) {
  const database = await cluster.database(scope);
  if (own.make) await database.query(own.make);
  await migrate(scope, database);
  await database.query('delete from reclaim.cascade_participants'); // these two only
  for (const name of participants) {
    await database.query(`create table ${tableOf(name)} (id bigint generated always as identity primary key, customer_id uuid not null,
      note text not null default '', tm_delete timestamptz)`);
    await database.query(`create index on ${tableOf(name)} (customer_id)`);
  }
  await database.query(
    `insert into auth.users (email, encrypted_password) select 'many.' || n || '@example.com', 'x' from generate_series(1, $1::int) n`,
    [count],
  );
  // Without the triggers, which would write each row's consequences.
  await database.query(`begin;
    set local session_replication_role = replica;
    insert into reclaim.customer_customers (name, detail, email, phone_number, address, webhook_uri, owner_user_id, status,
        tm_deletion_scheduled, deletion_effective_at, frozen_by, frozen_api_at, frozen_calls_at, frozen_billing_at)
      select 'Someone', 'Details', email, '+15550100', 'Street 1', 'https://hook.example.com/', id, 'frozen', at, at + interval '30 days',
        'owner', at, at, at
      from (select *, clock_timestamp() - interval '31 days' - random() * interval '5 days' as at from auth.users) as people;
    insert into reclaim.access_keys (customer_id, key_hash) select id, id::text from reclaim.customer_customers;
    insert into reclaim.billing_accounts (customer_id, name, status, hold_reasons)
      select id, 'Account', 'frozen', '{account_frozen}' from reclaim.customer_customers;
    insert into reclaim.customer_told (customer_id, status, version) select id, status, version from reclaim.customer_customers;
    insert into reclaim.event_outbox (sequence, type, customer_id, payload, published_at)
      select 0, 'customer_frozen', c.id, reclaim.customer_object(c)::jsonb, now() from reclaim.customer_customers c;
    commit`);
  for (const [n, name] of participants.entries()) {
    await database.query(`insert into ${tableOf(name)} (customer_id, note) select id, 'something' from reclaim.customer_customers`);
    const soft = n % 2 ? ['--soft-delete', 'tm_delete', '--scrub', 'note'] : [];
    const { code, stderr } = await run(scope, ['cascade', 'add', name, '--table', tableOf(name), '--column', 'customer_id', ...soft], { database });
    if (code !== 0) throw new Error(stderr);
  }
  await database.query('vacuum analyze');
  await database.query('checkpoint');
  return database;
}

const numberOf = async (database, sql) => Number(Object.values((await database.query(sql))[0])[0]);

async function check(database, count, own) {
  const wanted = {
    'customers deleted': [`select count(*) from reclaim.customer_customers where status = 'deleted' and email like 'deleted\\_%'`, count],
    events: [`select count(*) from reclaim.event_outbox where type = 'customer_deleted'`, count],
    'erasures complete': ['select count(*) from reclaim.erasures where completed_at is not null', count],
    receipts: [`select count(*) from reclaim.cascade_receipts where status = 'done' and rows = 1`, count * participants.length],
    logins: ['select count(*) from auth.users', 0],
    ...own.left,
    'rows left': [`select count(*) from ${tableOf('contact')}`, 0],
  };
  for (const [what, [sql, expected]] of Object.entries(wanted)) {
    const found = await numberOf(database, sql);
    if (found !== expected) throw new Error(`${what}: ${found}, not ${expected}`);
  }
}

/** When each tenth of the customers was done, and the server's memory at that time. */
async function watch(server, count, progress) {
  const tenths = [];
  let seen = 0;
  while (tenths.length < 10) {
    seen = progress(await Metrics.of(server)); // counting in the database would slow the run down
    while (tenths.length < 10 && seen >= (count * (tenths.length + 1)) / 10)
      tenths.push({ at: performance.now(), bytes: residentBytes(server.pid) });
    await pause(Math.min(200, Math.max(10, count / 500))); // each question takes time from what is measured
  }
  return tenths;
}

async function ours(scope, cluster, count, own) {
  const database = await fill(scope, cluster, count, own);
  const began = performance.now();
  const server = await startServer(scope, database, { RECLAIM_EXPIRY_INTERVAL: '1h', RECLAIM_EXPIRY_BRAKE: 'off' });
  const ready = performance.now();
  const receipts = (metrics, participant) => metrics.value('reclaim_cascade_receipts_total', { participant, outcome: 'done' });
  const [expired, erased] = await Promise.all([
    watch(server, count, (metrics) => metrics.value('reclaim_customers_expired_total')),
    watch(server, count, (metrics) => Math.min(...participants.map((name) => receipts(metrics, name)))),
  ]);
  const seconds = (erased.at(-1).at - began) / 1000;
  await until('certificates', async () => (await numberOf(database, 'select count(*) from reclaim.erasures where completed_at is null')) === 0, 3_600_000);
  await server.stop();
  await check(database, count, own);
  const first = expired[0].at - ready;
  const last = expired[9].at - expired[8].at;
  return { rate: count / seconds, expiring: (count * 1000) / (expired[9].at - ready), steadiness: first / last, memory: [0, 4, 9].map((n) => erased[n].bytes / 2 ** 20) };
}

async function peer(scope, cluster, count, own) {
  const database = await fill(scope, cluster, count, own);
  const { host, port, user } = cluster.connection();
  const began = performance.now();
  const { customers, accounts, clear, clearAccount } = own;
  const told = Object.entries({ customers, accounts, clear, clear_account: clearAccount }).flatMap(([name, value]) => ['-v', `${name}=${value}`]);
  await start('psql', ['-Xq', '-h', host, '-p', port, '-U', user, '-d', database.name, ...told, '-f', script]).ended;
  const seconds = (performance.now() - began) / 1000;
  await check(database, count, own);
  return count / seconds;
}

async function compare(b, cluster, count, own) {
  const runs = [];
  const found = await b.compare(count >= 100_000 ? 1 : 3, {
    ours: async (scope) => {
      runs.push(await ours(scope, cluster, count, own));
      return runs.at(-1).rate;
    },
    peer: (scope) => peer(scope, cluster, count, own),
  });
  return { ...found, runs };
}

export async function bench(b) {
  const count = Number(process.env.RECLAIM_BENCH_CUSTOMERS) || (b.smoke ? 1_000 : 1_000_000);
  const ofTeam = Math.min(count, 90_000);
  const cluster = await startCluster(b.stage, { max_wal_size: '8GB' });
  const team = await compare(b, cluster, ofTeam, owns.team);
  const found = await compare(b, cluster, count, owns.reclaim);
  const column = (name) => found.runs.map((one) => one[name]);
  b.note(`${path.basename(script)} works on whole tables in two transactions, without triggers; ours on batches of 1000, each durable on its own`);
  b.measure(`${ofTeam.toLocaleString('en')} customers in a team's tables deleted and erased, of psql`, { rounds: team.ratios, unit: 'times', atLeast: 0.75 });
  b.measure("customers a second, in a team's tables", { rounds: team.ours, beside: [{ name: 'psql', values: team.peer }] });
  b.measure(`${count.toLocaleString('en')} customers deleted and erased, of psql`, { rounds: found.ratios, unit: 'times', atLeast: 0.75 });
  b.measure('customers a second', { rounds: found.ours, beside: [{ name: 'psql', values: found.peer }] });
  b.measure('customers a second, expiry alone', { rounds: column('expiring') });
  b.measure('rate of the last tenth, of the first', { rounds: column('steadiness'), unit: 'times', atLeast: 0.8 });
  for (const [n, part] of ['10 %', '50 %', '100 %'].entries()) b.measure(`memory at ${part}`, { rounds: found.runs.map((one) => one.memory[n]), unit: 'MiB', plot: false });
  b.measure('memory at 100 %, of that at 10 %', { rounds: found.runs.map((one) => one.memory[2] / one.memory[0]), unit: 'times', atMost: 1.25 });
}
