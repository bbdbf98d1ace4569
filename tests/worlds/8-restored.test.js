// World 8: a database restored from a backup that was taken before the deletion. Nobody who was erased is served, nobody is mailed;
// after the replay every participant is erased again.
// takes long

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addBillingAccount, addMarkedCustomer, asAdmin, asKey, asUser, assertError, canaryPassword, env, freeze, login, recover, show } from '../service/lib/customers.js';
import { archivedCluster, archiveOf, copyOf, dumpOf } from '../service/lib/backups.js';
import { addServices, erased, fillServices, hold, ledger, receipt, remove, statusOf, tableOf, unhold } from '../service/lib/erasure.js';
import { FakeProvider } from '../service/lib/fake-provider.js';
import { addKeys } from '../service/lib/gate.js';
import { request } from '../service/lib/http.js';
import { linesIn, says } from '../service/lib/journal.js';
import { temporaryDirectory } from '../service/lib/place.js';
import { Cluster } from '../service/lib/postgres.js';
import { run, serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';

const services = ['contact', 'flow'];
const settings = { ...env, RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_PUBLIC_URL: 'https://accounts.example.com' };

const gate = (server, headers) => request(server, { path: '/gate', headers });
const post = (server, path, body, headers = asAdmin()) =>
  request(server, { method: 'POST', path, headers: { 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) });
const certificate = (server, id, headers = asAdmin()) => request(server, { path: `/v1/customers/${id}/certificate`, headers });
const claimsOf = (jws) => JSON.parse(Buffer.from(jws.split('.')[1], 'base64url'));
const rowsOf = async (db, customer) =>
  Object.fromEntries(
    await Promise.all(services.map(async (name) => [name, Number((await db.query(`select count(*) from ${tableOf(name)} where customer_id = $1 and tm_delete is null`, [customer.id]))[0].count)])),
  );

/** Two instances, each with a journal of its own. */
async function prepare(stage, { archived = false } = {}) {
  const cluster = archived ? await archivedCluster(stage) : await Cluster.create(stage);
  const db = await cluster.database(stage);
  const provider = await FakeProvider.start(stage, 'resend');
  const homes = [temporaryDirectory(stage), temporaryDirectory(stage)];
  const scene = {
    stage, cluster, db, provider, homes,
    start: (n, wait = 'ready') => serve(stage, { database: db, env: { ...settings, ...provider.env }, directory: homes[n], wait }),
    run: (args, n = 0) => run(stage, args, { database: db, env: provider.env, directory: homes[n] }),
    lines: (n = 0) => linesIn(homes[n]),
  };
  return scene;
}

async function addPerson(db, given) {
  const customer = await addMarkedCustomer(db, given);
  customer.account = await addBillingAccount(db, customer);
  [customer.key] = await addKeys(db, [customer]);
  await fillServices(db, customer, 3, services);
  return customer;
}

/** The tests of what a restore must not do, and of what the replay does. `backupOf`: how the database is backed up. */
function restored(name, { archived, backupOf }) {
  describe(`restored ${name}`, () => {
    const stage = new Stage();
    const formerJournal = (n) => path.join(scene.homes[n], 'journal-before');
    let scene, db, servers, gone, stays, held, late, mails, certificates, link, eventBefore;

    before(async () => {
      scene = await prepare(stage, { archived });
      ({ db } = scene);
      servers = [await scene.start(0), await scene.start(1)];
      await addServices(stage, db, services);
      await scene.run(['cascade', 'add', 'archive', '--remote']);
      [gone, stays, held] = [await addPerson(db), await addPerson(db), await addPerson(db)];
      await hold(servers[0], held.id, 'a dispute');
      const backup = backupOf(stage, db);
      await backup.take();

      await unhold(servers[0], held.id);
      late = await addPerson(db);
      for (const customer of [gone, held, late]) {
        assert.equal((await remove(servers[0], customer.id)).status, 200);
        assert.equal((await receipt(servers[0], customer.id, 'archive', { status: 'done', rows: 1 })).status, 200);
        await erased(servers[0], customer);
      }
      for (const act of [freeze, recover, freeze, recover]) assert.equal((await act(servers[0], stays.id)).status, 200);
      [eventBefore] = await db.query('select epoch, sequence from reclaim.event_outbox where customer_id = $1 order by position desc limit 1', [stays.id]);
      const mail = await until('the last mail', () => scene.provider.mailsTo(gone.email).map((sent) => sent.mail).find(({ subject }) => /was deleted/.test(subject)));
      link = mail.text.match(/\/v1\/customers\/\S+\?secret=[0-9a-f]{32}/)?.[0];
      certificates = Object.fromEntries(await Promise.all([gone, held, late].map(async ({ id }) => [id, (await certificate(servers[0], id)).body])));
      await until('mails sent', async () => Number((await db.query(`select count(*) from reclaim.work_items where kind = 'mail'`))[0].count) === 0);

      for (const server of servers) await server.stop();
      for (const n of [0, 1]) fs.cpSync(path.join(scene.homes[n], 'data/journal'), formerJournal(n), { recursive: true });
      await backup.restore();
      mails = scene.provider.attempts.length;
      servers = [await scene.start(0, 'listening'), await scene.start(1, 'listening')];
      for (const server of servers) await says(server, 'restored');
    });
    after(() => stage.end());

    it('serves nobody who was erased, at any instance', async () => {
      assert.equal(await statusOf(db, gone), 'active', 'the backup brought the customer back');
      for (const server of servers)
        for (const customer of [gone, held]) {
          assert.equal((await gate(server, asKey(customer.key))).status, 401);
          assert.equal((await gate(server, asUser(customer.user.id))).status, 401);
          assert.equal((await show(server, customer.id, asUser(customer.user.id))).status, 401);
          assert.equal((await login(server, customer.user.email, canaryPassword)).status, 401);
          assert.equal((await post(server, '/v1/calls', { customer_id: customer.id, direction: 'outgoing', source: '+1', destination: '+2' })).status, 403);
        }
      for (const [{ active }] of [await db.query('select reclaim.customer_is_active($1) as active', [gone.id])]) assert.equal(active, false);
    });

    it('serves the others', async () => {
      for (const server of servers) {
        assert.equal((await gate(server, asKey(stays.key))).status, 200);
        assert.equal((await gate(server, asUser(stays.user.id))).status, 200);
      }
    });

    it('mails, charges and deletes nothing for anybody', async () => {
      const [server] = servers;
      assertError(await post(server, '/v1/billing/charges', { billing_account_id: stays.account.id, amount_micros: 5, reference: 'one' }), 503, 'RESTORED');
      assertError(await remove(server, stays.id), 503, 'RESTORED');
      assertError(await post(server, '/auth/unregister', { confirmation_phrase: 'DELETE' }, asKey(stays.key)), 503, 'RESTORED');
      assert.equal((await post(server, '/functions/v1/cleanup-orphaned-user', { email: 'someone@example.com' })).status, 503);
      for (const args of [['expire'], ['delete', stays.id], ['orphans', 'purge', '--older-than', '1d']]) {
        const done = await scene.run(args);
        assert.equal(done.code, 1, args.join(' '));
        assert.match(done.stderr, /replay-erasures first/);
      }
      assert.equal((await freeze(server, stays.id)).status, 200); // its mail waits
      assert.equal((await recover(server, stays.id)).status, 200);
      assert.equal(scene.provider.attempts.length, mails);
      const doctor = await scene.run(['doctor']);
      assert.match(doctor.stdout, /restored from a backup, .* reclaim replay-erasures/);
    });

    it('erases them again in every participant after the replay', async () => {
      const done = await scene.run(['replay-erasures']);
      assert.equal(done.code, 0, done.stdout + done.stderr);
      assert.match(done.stdout, /Erased again: 2 customers that the backup had brought back; 1 that it did not have\./);
      assert.match(done.stdout, /epoch 2/);
      for (const server of servers) await says(server, 'ready');
      for (const customer of [gone, held, late]) {
        await until('asked again', async () => (await ledger(servers[0], customer.id)).json.participants?.some(({ name }) => name === 'archive'));
        assert.equal((await receipt(servers[0], customer.id, 'archive', { status: 'done', rows: 0 })).status, 200);
        await erased(servers[0], customer);
        assert.deepEqual(await rowsOf(db, customer), { contact: 0, flow: 0 });
        assert.equal(Number((await db.query('select count(*) from auth.users where id = $1', [customer.user.id]))[0].count), 0);
      }
      assert.equal((await gate(servers[1], asUser(gone.user.id))).status, 401);
      assert.equal((await gate(servers[1], asKey(stays.key))).status, 401, 'keys have ended');
      assert.equal((await gate(servers[1], asUser(stays.user.id))).status, 200);
      const again = await scene.run(['replay-erasures']);
      assert.equal(again.code, 0, again.stderr);
      assert.match(again.stdout, /nothing to replay/);
    });

    it('mailed nobody who was erased', () => {
      const to = [gone, held, late].flatMap(({ email, user }) => [email, user.email]);
      const sent = scene.provider.attempts.slice(mails).map(({ mail }) => String(mail.to));
      for (const address of to) assert.ok(!sent.some((one) => one.includes(address)), address);
    });

    it('has certificates that verify, also those from before, and the link of the last mail works', async () => {
      const keys = path.join(scene.homes[0], 'keys.json');
      fs.writeFileSync(keys, (await request(servers[0], { path: '/.well-known/reclaim-erasure-key' })).body);
      for (const { id } of [gone, held, late])
        for (const jws of [certificates[id], (await certificate(servers[0], id)).body]) {
          fs.writeFileSync(path.join(scene.homes[0], 'certificate'), jws);
          const done = await scene.run(['verify', path.join(scene.homes[0], 'certificate'), '--key', keys]);
          assert.equal(done.code, 0, done.stderr);
        }
      const answer = await request(servers[0], { path: link });
      assert.equal(answer.status, 200, answer.body);
      assert.equal(claimsOf(answer.body).address.hash, claimsOf(certificates[gone.id]).address.hash);
      assert.equal(claimsOf(answer.body).requested_at, claimsOf(certificates[gone.id]).requested_at);
    });

    it('has a sealed log that fits every journal, also one that was copied before the restore', async () => {
      for (const n of [0, 1])
        for (const journal of [path.join(scene.homes[n], 'data/journal'), formerJournal(n)]) {
          const audit = await scene.run(['audit', 'verify', '--journal', journal], n);
          assert.equal(audit.code, 0, audit.stdout + audit.stderr);
        }
    });

    it('has events that consumers accept', async () => {
      assert.equal((await freeze(servers[0], stays.id)).status, 200);
      const [event] = await db.query('select epoch, sequence from reclaim.event_outbox where customer_id = $1 order by position desc limit 1', [stays.id]);
      assert.ok(event.epoch > eventBefore.epoch, JSON.stringify({ event, eventBefore }));
      const deletions = await db.query(`select epoch from reclaim.event_outbox where type = 'customer_deleted' and customer_id = any($1)`, [[gone.id, held.id, late.id]]);
      assert.deepEqual(deletions.map(({ epoch }) => epoch), [2, 2, 2]);
    });

    it('has journals that hold, with the same lines', async () => {
      for (const n of [0, 1]) {
        await until('the line of the replay', () => scene.lines(n).some((line) => line.includes('"kind":"restore"')));
        const done = await scene.run(['journal', 'verify'], n);
        assert.equal(done.code, 0, done.stderr);
        assert.match(done.stdout, /1 restore\./);
      }
      // Looked at now, not in a minute: a lost connection could mean another database.
      await db.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'reclaim'`);
      await until('the same lines', async () => {
        const inDatabase = (await db.query('select line from reclaim.journal_lines')).map(({ line }) => line).sort();
        return [0, 1].every((n) => JSON.stringify([...scene.lines(n)].sort()) === JSON.stringify(inDatabase));
      });
    });
  });
}

restored('from a dump', { backupOf: dumpOf });
restored('from a copy of the cluster', { backupOf: copyOf });
restored('by pgBackRest to a point in time', { archived: true, backupOf: (stage, db) => archiveOf(db) });
