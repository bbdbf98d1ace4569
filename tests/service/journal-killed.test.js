// kill -9 at every step between the deletion and the certificate, in a fixed order: never a certificate without its line in a journal,
// never «complete» without both, never a false «restored».
// takes long

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, env, asAdmin } from './lib/customers.js';
import { addServices, erased, fillServices, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { folderOf, readyz, saidIn } from './lib/journal.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';
import { stopBefore } from './lib/stops.js';

const stage = new Stage();
let cluster, db;
before(async () => {
  cluster = await Cluster.create(stage);
  db = await cluster.database(stage);
  assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
  await addServices(stage, db, ['contact', 'flow']);
});
after(() => stage.end());

const erasuresIn = (home) => new Set(saidIn(home).filter(({ kind }) => kind === 'erasure').map(({ customer }) => customer));
const headsIn = (home) => new Set(saidIn(home).filter(({ kind }) => kind === 'head').map(({ size }) => size));

/** What must be true at any moment, whatever was killed. */
async function assertInvariants(home) {
  const lines = erasuresIn(home);
  const heads = headsIn(home);
  const certified = await db.query('select distinct customer_id from reclaim.erasure_certificates');
  for (const { customer_id } of certified) assert.ok(lines.has(customer_id), `a certificate without a line: ${customer_id}`);
  const complete = await db.query(`select e.customer_id, c.jws from reclaim.erasures e left join reclaim.erasure_certificates c using (certificate_id)
    where e.completed_at is not null`);
  for (const { customer_id, jws } of complete) {
    assert.ok(jws, `complete without a certificate: ${customer_id}`);
    assert.ok(lines.has(customer_id), `complete without a line: ${customer_id}`);
    const { log } = JSON.parse(Buffer.from(jws.split('.')[1], 'base64url'));
    assert.ok(heads.has(log.size), `complete, and the head of size ${log.size} is not in the journal`);
  }
}

/** Keeps the server from the journal's files: what it has committed is not written. */
async function stopAtFiles(home) {
  const holder = spawn('flock', [path.join(folderOf(home), 'lock'), 'sh', '-c', 'echo held; exec sleep 600'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
  await new Promise((resolve) => holder.stdout.once('data', resolve));
  return () => process.kill(-holder.pid, 'SIGKILL');
}

async function begin() {
  const home = temporaryDirectory(stage);
  const start = () => serve(stage, { database: db, env, directory: home });
  return { home, start, server: await start() };
}

async function removed(server) {
  const customer = await addCustomer(db);
  await fillServices(db, customer, 2, ['contact', 'flow']);
  assert.equal((await remove(server, customer.id)).status, 200);
  return customer;
}

/** After the crash: the next start sees no restore, and the erasure becomes complete, with what it takes. */
async function assertEnds({ home, start }, customer) {
  await assertInvariants(home);
  const server = await start();
  assert.equal(await readyz(server), 'ready');
  await erased(server, customer);
  await assertInvariants(home);
  assert.equal((await request(server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() })).status, 200);
  assert.equal((await db.query('select restored_at from reclaim.installation'))[0].restored_at, null);
  await server.stop();
}

const steps = {
  'before the line is written': `insert on reclaim.journal_lines for each row when (new.kind = 'erasure')`,
  'before the erasure notes its line': `update on reclaim.erasures for each row when (old.journal_hash is null and new.journal_hash is not null)`,
  'before the line is noted to be on the disk': `update on reclaim.erasures for each row when (new.journaled and not old.journaled)`,
  'before the last receipt settles it': `update on reclaim.erasures for each row when (old.settled_at is null and new.settled_at is not null)`,
  'before the certificate is stored': `insert on reclaim.erasure_certificates for each row`,
  'before its head is stored': `insert on reclaim.sealed_heads for each row`,
  'before the erasure is complete': `update on reclaim.erasures for each row when (old.completed_at is null and new.completed_at is not null)`,
};

describe('killed', () => {
  for (const [name, what] of Object.entries(steps))
    for (const commits of [true, false])
      it(`${name}, and the transaction ${commits ? 'goes on' : 'is rolled back'}`, async () => {
        const scene = await begin();
        const stop = await stopBefore(stage, db, what);
        const customer = await removed(scene.server);
        await stop.reached();
        await assertInvariants(scene.home);
        await scene.server.kill9();
        if (!commits) await stop.terminate();
        await stop.lift();
        await assertEnds(scene, customer);
      });

  it('after the line is committed and before it is in the journal', async () => {
    const scene = await begin();
    const stop = await stopBefore(stage, db, steps['before the line is written']);
    const customer = await removed(scene.server);
    await stop.reached();
    const letGo = await stopAtFiles(scene.home);
    await stop.lift();
    await until('the line committed', async () => (await db.query('select from reclaim.erasures where customer_id = $1 and journal_hash is not null', [customer.id])).length);
    await assertInvariants(scene.home);
    assert.ok(!erasuresIn(scene.home).has(customer.id));
    await scene.server.kill9();
    letGo();
    await assertEnds(scene, customer);
  });

  it('after the certificate is committed and before its head is in the journal', async () => {
    const scene = await begin();
    const stop = await stopBefore(stage, db, steps['before the certificate is stored']);
    const customer = await removed(scene.server);
    await stop.reached();
    const letGo = await stopAtFiles(scene.home);
    await stop.lift();
    await until('the certificate committed', async () => (await db.query('select from reclaim.erasure_certificates where customer_id = $1', [customer.id])).length);
    await assertInvariants(scene.home);
    assert.equal((await request(scene.server, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() })).status, 404);
    await scene.server.kill9();
    letGo();
    await assertEnds(scene, customer);
  });

  it('so often, the sealed log is as it was sealed', async () => {
    const verified = await run(stage, ['audit', 'verify'], { database: db });
    assert.equal(verified.code, 0, verified.stdout + verified.stderr);
  });
});
