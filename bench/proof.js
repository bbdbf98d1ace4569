import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { addBillingAccount, addCustomer, asAdmin, env } from '../tests/service/lib/customers.js';
import { erased, receipt, remove, tableOf } from '../tests/service/lib/erasure.js';
import { request } from '../tests/service/lib/http.js';
import { temporaryDirectory } from '../tests/service/lib/place.js';
import { run } from '../tests/service/lib/reclaim.js';
import { pause, until } from '../tests/service/lib/stage.js';
import { Metrics } from './lib/metrics.js';
import { processorSeconds, residentBytes } from './lib/process.js';
import { median, quantile } from './lib/stats.js';
import { start } from './lib/tool.js';
import { migrate, secretKey, startCluster, startServer } from './lib/world.js';

export const about = 'proof of erasure: certificates, sealing and replay, against procedures that store the same rows; from the last receipt until the erasure is complete';

const peers = fileURLToPath(new URL('peers', import.meta.url));
const participants = ['contact', 'tag'];
const batch = 1000;

const numberOf = async (database, sql) => Number(Object.values((await database.query(sql))[0])[0]);
const seconds = (since) => (performance.now() - since) / 1000;

/** Makes the procedure of bench/peers/`script`, then measures it. */
async function procedure(database, script) {
  const { host, port, user } = database.cluster.connection();
  await start('psql', ['-Xq', '-h', host, '-p', port, '-U', user, '-d', database.name, '-f', path.join(peers, script)]).ended;
  const began = performance.now();
  await database.query('call wanted.store()');
  return seconds(began);
}

/** Active customers with a login, and a row at each participant. */
async function withCustomers(scope, cluster, count) {
  const database = await cluster.database(scope);
  await migrate(scope, database);
  await database.query('delete from reclaim.cascade_participants');
  await database.query(`insert into auth.users (email, encrypted_password) select 'many.' || n || '@example.com', 'x' from generate_series(1, $1::int) n`, [count]);
  await database.query(`begin; set local session_replication_role = replica;
    insert into reclaim.customer_customers (name, email, owner_user_id) select 'Someone', email, id from auth.users;
    insert into reclaim.customer_told (customer_id, status, version) select id, status, version from reclaim.customer_customers; commit`);
  for (const name of participants) {
    await database.query(`create table ${tableOf(name)} (id bigint generated always as identity primary key, customer_id uuid not null)`);
    await database.query(`insert into ${tableOf(name)} (customer_id) select id from reclaim.customer_customers`);
    await database.query(`create index on ${tableOf(name)} (customer_id)`);
    const added = await run(scope, ['cascade', 'add', name, '--table', tableOf(name), '--column', 'customer_id'], { database });
    if (added.code !== 0) throw new Error(added.stderr);
  }
  await database.query('vacuum analyze');
  return database;
}

/** Deletes them all as expiry does, with no server; returns how long it took. */
async function deleteAll(database) {
  const began = performance.now();
  for (let more = true; more; )
    more =
      (await numberOf(
        database,
        `with due as materialized (select id from reclaim.customer_customers where status <> 'deleted' order by id limit ${batch} for update),
          every as (select array_agg(id) as ids, array_agg(concat_ws(':', '', encode(sha256(id::text::bytea), 'hex'), encode(sha256(('l' || id)::bytea), 'hex'),
            encode(sha256(('k' || id)::bytea), 'hex'))) as sealed from due)
         select coalesce((select reclaim.delete_customers(ids, sealed, 'expire', 'system', null, null) from every where ids is not null), 0) as deleted`,
      )) > 0;
  return seconds(began);
}

/** The eraser's own pages, by psql: then only the proof is missing. */
async function eraseAll(database) {
  for (const name of participants)
    while ((await database.query(`select outcome from reclaim.cascade_page($1, ${batch})`, [name]))[0].outcome === 'page');
}

const complete = (database, count) =>
  until('erasures complete', async () => (await numberOf(database, 'select count(*) from reclaim.erasures where certificate_id is not null')) === count, 3_600_000);

/** Certificates a second, with their lines of the journal and the heads over them; the peer stores the rows that ours wrote. */
async function certify(b, cluster, count) {
  const rates = await b.rounds(3, async (number, scope) => {
    const database = await withCustomers(scope, cluster, count);
    await deleteAll(database);
    await eraseAll(database);
    await database.query('vacuum analyze');
    const server = await startServer(scope, database);
    const began = performance.now();
    const issued = async () => (await Metrics.of(server)).value('reclaim_certificates_total');
    while ((await issued()) < count) await pause(20);
    const ours = count / seconds(began);
    const spent = processorSeconds(server.pid);
    await complete(database, count);
    await server.stop();
    const peer = count / (await procedure(database, 'certify.sql'));
    b.say(`proof: round ${number}: ${ours.toFixed(0)} certificates a second, the peer ${peer.toFixed(0)}`);
    return { ours, peer, spent: (1e6 * spent) / count };
  });
  b.measure('certificates, of a procedure that stores the same rows', { rounds: rates.map(({ ours, peer }) => ours / peer), unit: 'times', atLeast: 0.5 });
  b.measure('certificates a second', { rounds: rates.map(({ ours }) => ours), beside: [{ name: 'procedure', values: rates.map(({ peer }) => peer) }] });
  b.measure('processor time of a certificate, in Reclaim', { rounds: rates.map(({ spent }) => spent), unit: 'µs' });
}

/** Charges one after another, in ms each, until `enough`. */
async function charges(server, account, enough) {
  const took = [];
  while (!(await enough(took))) {
    const began = performance.now();
    const { status, body } = await request(server, {
      method: 'POST',
      path: '/v1/billing/charges',
      headers: { 'Content-Type': 'application/json', ...asAdmin() },
      body: JSON.stringify({ billing_account_id: account.id, amount_micros: 1, reference: `${performance.now()}` }),
    });
    if (status !== 201) throw new Error(`charge: ${status} ${body}`);
    took.push(performance.now() - began);
  }
  return took;
}

/** Facts sealed a second, beside requests that write; the peer hashes the same rows and stores the leaves. */
async function seal(b, cluster, count) {
  const rounds = await b.rounds(count >= 1_000_000 ? 1 : 3, async (number, scope) => {
    const database = await cluster.database(scope);
    await migrate(scope, database);
    const customer = await addCustomer(database);
    const account = await addBillingAccount(database, customer, { balance: 1_000_000_000 });
    await database.query(`insert into reclaim.customer_log (customer_id, action, actor, outcome)
      select gen_random_uuid(), 'freeze', 'owner', 'done' from generate_series(1, $1::int)`, [count]);
    await database.query('vacuum analyze');
    await database.query('checkpoint');
    const server = await startServer(scope, database, env);
    const began = performance.now();
    const memory = [];
    const sealed = async () => (await Metrics.of(server)).value('reclaim_sealed_facts_total');
    let ended;
    async function watch() {
      for (const tenth of [1, 5, 10]) {
        while ((await sealed()) < (count * tenth) / 10) await pause(20);
        memory.push(residentBytes(server.pid) / 2 ** 20);
      }
      ended = seconds(began);
    }
    const watched = watch();
    const beside = await charges(server, account, () => ended !== undefined);
    await watched;
    const spent = processorSeconds(server.pid);
    const alone = await charges(server, account, (took) => took.length >= Math.max(20, Math.min(beside.length, 500)));
    await server.stop();
    const peer = count / (await procedure(database, 'seal.sql'));
    b.say(`proof: round ${number}: ${(count / ended).toFixed(0)} facts a second, the peer ${peer.toFixed(0)}`);
    return { ours: count / ended, peer, memory, spent: (1e6 * spent) / count, slower: median(beside) / median(alone) };
  });
  const column = (name) => rounds.map((one) => one[name]);
  b.measure(`${count.toLocaleString('en')} facts sealed, of a procedure that hashes and stores them`, { rounds: rounds.map(({ ours, peer }) => ours / peer), unit: 'times', atLeast: 0.5 });
  b.measure('facts sealed a second', { rounds: column('ours'), beside: [{ name: 'procedure', values: column('peer') }] });
  b.measure('processor time of a fact, in Reclaim', { rounds: column('spent'), unit: 'µs' });
  b.measure('a charge while a backlog is sealed, of one while nothing is', { rounds: column('slower'), unit: 'times', atMost: 2 });
  b.measure('memory at 100 % of the facts, of that at 10 %', { rounds: rounds.map(({ memory }) => memory[2] / memory[0]), unit: 'times', atMost: 1.25 });
}

/** Erasures replayed a second after a restore, against the deletions as they were first. */
async function replay(b, cluster, count) {
  const rounds = await b.rounds(1, async (number, scope) => {
    const database = await withCustomers(scope, cluster, count);
    const directory = temporaryDirectory(scope);
    const copy = `${database.name}_backup`;
    await cluster.admin(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database.name}'`);
    await cluster.admin(`create database "${copy}" template "${database.name}"`);
    scope.after(() => cluster.running && cluster.admin(`drop database if exists "${copy}"`));
    const deleted = count / (await deleteAll(database));
    const settings = { database, directory, env: { RECLAIM_SECRET_KEY: secretKey } };
    const server = await startServer(scope, database, {}, { directory });
    await complete(database, count);
    await server.stop();
    await cluster.admin(`drop database "${database.name}" with (force)`);
    await cluster.admin(`alter database "${copy}" rename to "${database.name}"`);
    const began = performance.now();
    const done = await run(scope, ['replay-erasures'], { ...settings, deadlineMs: 3_600_000 });
    if (done.code !== 0 || !done.stdout.includes(`Erased again: ${count} `)) throw new Error(done.stdout + done.stderr);
    const replayed = count / seconds(began);
    const again = await startServer(scope, database, {}, { directory });
    await complete(database, count);
    const left = await numberOf(database, `select count(*) from reclaim.customer_customers where status <> 'deleted'`);
    if (left) throw new Error(`${left} customers are back`);
    await again.stop();
    b.say(`proof: round ${number}: ${replayed.toFixed(0)} erasures replayed a second, ${deleted.toFixed(0)} deleted`);
    return { replayed, deleted };
  });
  b.measure(`${count.toLocaleString('en')} erasures replayed, of their deletion`, { rounds: rounds.map(({ replayed, deleted }) => replayed / deleted), unit: 'times', atLeast: 0.5 });
  b.measure('erasures replayed a second', { rounds: rounds.map(({ replayed }) => replayed), beside: [{ name: 'deleted at first', values: rounds.map(({ deleted }) => deleted) }] });
}

/** From the answer to the last receipt until the erasure is complete, in ms. */
async function lastReceipt(b, cluster, count) {
  const database = await cluster.database(b.stage);
  const server = await startServer(b.stage, database, env);
  await database.query('delete from reclaim.cascade_participants');
  await run(b.stage, ['cascade', 'add', 'archive', '--remote'], { database });
  const took = [];
  for (let n = 0; n < count; n++) {
    const customer = await addCustomer(database);
    const answers = [await remove(server, customer.id), await receipt(server, customer.id, 'archive', { status: 'done', rows: 1 })];
    const began = performance.now();
    for (const { status, body } of answers) if (status !== 200) throw new Error(`${status} ${body}`);
    await erased(server, customer);
    took.push(performance.now() - began);
  }
  await server.stop();
  b.measure('from the last receipt until the erasure is complete, p99', { rounds: [quantile(took, 0.99)], unit: 'ms', atMost: 2000 });
  b.measure('the same, median', { rounds: [median(took)], unit: 'ms', plot: false });
}

export async function bench(b) {
  const most = Number(process.env.RECLAIM_BENCH_FACTS) || (b.smoke ? 1_000 : 1_000_000);
  const cluster = await startCluster(b.stage, { max_wal_size: '8GB' });
  await lastReceipt(b, cluster, b.smoke ? 2 : 100);
  await certify(b, cluster, Math.min(most, b.smoke ? 200 : 20_000));
  await seal(b, cluster, most);
  await replay(b, cluster, Math.min(most, b.smoke ? 200 : 100_000));
}
