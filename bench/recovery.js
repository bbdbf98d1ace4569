import fs from 'node:fs';
import { fileURLToPath } from 'node:url';

import { cleanupPath } from '../tests/service/lib/cleanup.js';
import { connectionOf, connectTo, postmasterOf } from '../tests/service/lib/embedded.js';
import { domain } from '../tests/service/lib/people.js';
import { serve } from '../tests/service/lib/reclaim.js';
import { until } from '../tests/service/lib/stage.js';
import { startLoad } from './lib/load.js';
import { Metrics } from './lib/metrics.js';
import { pgbench } from './lib/pgbench.js';
import { quantile } from './lib/stats.js';

export const about = 'codes asked for, answered and mailed to the local mailbox, against pgbench running the same statements, one request a transaction';

const connections = 16; // to the database, for both
const callers = 64;
const digits = 6;
const script = 'request_code.pgbench';

/** Only the demo has a local mailbox; it runs on a private cluster. */
async function demonstrate(scope) {
  const server = await serve(scope, { args: ['--demo'], env: { RECLAIM_DATABASE_CONNECTIONS: String(connections) } });
  const { data } = postmasterOf(server);
  const { query } = await connectTo(scope, data);
  const connection = connectionOf(data);
  const database = { query, name: connection.database, cluster: { connection: () => connection }, session: () => connectTo(scope, data) };
  return { server, database };
}

/**
 * Orphans, and with a million people also owners. pgbench has separate people with numbers as addresses, since it
 * cannot pad numbers.
 */
async function fill(database, { orphans, owners = 0, peers = 0 }) {
  await database.query(
    `insert into auth.users (email, email_confirmed_at, created_at)
     select 'person' || lpad(n::text, ${digits}, '0') || '@${domain}', case when n % 2 = 0 then now() end, now() - interval '9 days'
     from generate_series(0, $1::int - 1) n`,
    [orphans + owners],
  );
  await database.query('insert into auth.users (email, created_at) select n::text, now() from generate_series(0, $1::int - 1) n', [peers]);
  await database.query(
    `insert into public.companies (owner_admin_uuid)
     select id from auth.users where email like 'person%' and email >= 'person' || lpad($1::int::text, ${digits}, '0')`,
    [orphans],
  );
  await database.query('vacuum analyze');
}

async function ask(server, people, times) {
  const ended = await startLoad(server, {
    path: cleanupPath,
    body: `{"step":"request-code","email":"person${'#'.repeat(digits)}@${domain}"}`,
    headers: { 'Content-Type': 'application/json' },
    numbers: people,
    callers,
    ...times,
  }).ended;
  // Of two concurrent requests for the same address the second is refused.
  const { 200: sent = 0, 409: busy = 0, ...others } = ended.statuses;
  if (ended.broken + ended.refused > 0 || Object.keys(others).length > 0 || busy > sent / 5) throw new Error(`not answered: ${JSON.stringify(ended)}`);
  // Measured from the first request to the last mail, so that no mail is delivered during the peer's turn.
  const began = performance.now();
  await until('every mail delivered', async () => (await Metrics.of(server)).value('reclaim_work_in_memory') === 0);
  return sent / (ended.seconds + (performance.now() - began) / 1000);
}

/** Mails for pgbench to insert: like Reclaim's, and as many in a transaction. */
async function prepareLetters(database, batch) {
  const letter = '(select to_jsonb(m) - \'id\' - \'created_at\' from reclaim.mailbox m limit 1)';
  await database.query('create schema peer; create table peer.letters (letters text); alter table peer.letters alter letters set storage external');
  await database.query(`insert into peer.letters select jsonb_agg(${letter})::text from generate_series(1, $1::int)`, [batch]);
}

/** Mails inserted together have the same transaction id. */
async function mailsAtATime(database) {
  const [{ mails, batches }] = await database.query('select count(*)::int mails, count(distinct xmin::text)::int batches from reclaim.mailbox');
  return Math.max(1, Math.round(mails / batches));
}

async function flows(b, people, times) {
  const { server, database } = await demonstrate(b.stage);
  await fill(database, { orphans: people, peers: people });
  await ask(server, people, times);
  const batch = await mailsAtATime(database);
  await prepareLetters(database, batch);
  b.note(`mails are put into the mailbox, and taken off the queue, ${batch} at a time by both`);

  const variables = {
    n: 0,
    people,
    batch,
    clients: connections, // their mails are spread, since Reclaim mails one batch at a time
    allowed_ms: 27000,
    left_ms: 30000,
    hash: 'ab'.repeat(32),
    salt: 'cd'.repeat(16),
    user: '7b1c9a54-30c5-4f0e-9a51-4a4f3ad0a0a1',
    life: 300,
    lease_us: 25_000_000,
    format: 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"',
    payload: `{"template":"cleanup-code","contract":"cleanup-v1","user_id":"7b1c9a54-30c5-4f0e-9a51-4a4f3ad0a0a1","salt":"${'cd'.repeat(16)}","correlation_id":"7b1c9a54-30c5-4f0e-9a51-4a4f3ad0a0a1"}`,
  };
  const peer = async () => {
    // Twice as long, since pgbench's time includes connecting.
    const rate = await pgbench(database, { script, clients: connections, seconds: Math.ceil((2 * times.runMs) / 1000), variables });
    await database.query('delete from reclaim.work_items where leased_by = 1');
    return rate;
  };
  const found = await b.compare(7, { ours: () => ask(server, people, times), peer });
  b.measure('request-code, of pgbench', { rounds: found.ratios, unit: 'times', atLeast: 0.95 });
  b.measure('request-code a second', { rounds: found.ours, beside: [{ name: 'pgbench', values: found.peer }] });
}

/** p95 in ms of the query that distinguishes owners from orphans, on one connection, during load. */
async function companyQuery(database, people, count) {
  const text = fs.readFileSync(fileURLToPath(new URL(`peers/${script}`, import.meta.url)), 'utf8');
  const query = text.split('\n').find((line) => line.includes('has_company')).replace(':person', '$1');
  const session = await database.session();
  const took = [];
  for (let i = 0; i < count; i++) {
    const email = `person${String(Math.floor(Math.random() * people)).padStart(digits, '0')}@${domain}`;
    const began = performance.now();
    await session.query({ name: 'company', text: query, values: [email] });
    took.push(performance.now() - began);
  }
  return quantile(took, 0.95);
}

async function crowd(b, people, times) {
  const orphans = Math.ceil(people * 0.4);
  const { server, database } = await demonstrate(b.stage);
  await fill(database, { orphans, owners: people - orphans });
  const name = 'reclaim_cleanup_orphan_check_seconds';
  const found = await b.rounds(3, async () => {
    const before = (await Metrics.of(server)).histogram(name);
    const [, company] = await Promise.all([ask(server, orphans, times), companyQuery(database, people, b.smoke ? 50 : 2000)]);
    const check = (await Metrics.of(server)).histogram(name).since(before);
    return { check: 1000 * check.quantile(0.95), company };
  });
  const size = people.toLocaleString('en');
  b.measure(`${size} users: orphan check, p95`, { rounds: found.map((one) => one.check), unit: 'ms', atMost: 200 });
  b.measure(`${size} users: company query, p95`, { rounds: found.map((one) => one.company), unit: 'ms', atMost: 50 });
}

export async function bench(b) {
  const times = b.smoke ? { runMs: 400 } : { runMs: 6000 };
  await flows(b, b.smoke ? 10_000 : 100_000, times);
  await crowd(b, b.smoke ? 10_000 : 1_000_000, times);
}
