// A journal that can be read and not written, as on a full disk: the server starts, deletes, mails and publishes as always, and no
// erasure is complete until there is room again.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, env, freeze } from './lib/customers.js';
import { addServices, erased, eraseSomeone, ledger, metric, remove } from './lib/erasure.js';
import { FakeProvider } from './lib/fake-provider.js';
import { dateBack, filesOf, folderOf, readyz, textOf } from './lib/journal.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

const loseConnections = (db) => db.query(`select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'reclaim'`);

describe('a journal whose disk is full', () => {
  let db, home, provider, server, waiting, first, full;
  const start = () => serve(stage, { database: db, env: { ...env, ...provider.env }, directory: home });
  const isMailed = async (customer) => {
    assert.equal((await freeze(server, customer.id)).status, 200);
    await provider.mailTo(customer.email);
  };

  /** All of its lines are of the day before yesterday, so that the next goes to a new file: that is /dev/full. */
  before(async () => {
    db = await cluster.database(stage);
    home = temporaryDirectory(stage);
    provider = await FakeProvider.start(stage, 'resend');
    assert.equal((await run(stage, ['migrate'], { database: db })).code, 0);
    await addServices(stage, db, ['contact']);
    server = await start();
    await eraseSomeone(db, server);
    await server.withoutConnections();
    await server.stop();
    const lines = await dateBack(db, () => 2);
    for (const file of filesOf(home)) fs.rmSync(file);
    [first, full] = ['00000001.jsonl', '00000002.jsonl'].map((name) => path.join(folderOf(home), name));
    fs.writeFileSync(first, lines.map((line) => `${line}\n`).join(''));
    fs.symlinkSync('/dev/full', full);
    server = await start();
    waiting = await addCustomer(db);
    assert.equal((await remove(server, waiting.id)).status, 200);
    await server.line('the journal cannot be written', ({ event, why }) => /the journal cannot be written/.test(event) && /No space left/.test(why));
  });

  const assertFull = async () => {
    assert.equal((await ledger(server, waiting.id)).json.status, 'pending');
    assert.equal(await metric(server, 'reclaim_journal_failing'), 1);
    assert.equal(await readyz(server), 'ready');
    assert.ok(!fs.readFileSync(first, 'utf8').includes(waiting.id));
  };

  it('does not keep mails waiting when the connections to the database were lost', async () => {
    await isMailed(await addCustomer(db));
    await loseConnections(db);
    await server.line('the loss noticed', ({ event }) => /^customer changes cannot be read/.test(event));
    await isMailed(await addCustomer(db));
    await assertFull();
  });

  it('does not keep a server from starting', async () => {
    await server.kill9();
    server = await start();
    await server.line('the disk named', ({ event, why }) => event === 'the journal is not kept' && /No space left/.test(why));
    await isMailed(await addCustomer(db));
    await assertFull();
  });

  it('has every line once there is room', async () => {
    fs.rmSync(full);
    await erased(server, waiting);
    await until('written', () => textOf(home).includes(waiting.id));
    assert.equal(await metric(server, 'reclaim_journal_failing'), 0);
    assert.equal((await run(stage, ['journal', 'verify'], { database: db, directory: home })).code, 0);
  });

  it('nor does a row that no journal takes keep mails waiting', async () => {
    const [{ id }] = await db.query(`insert into reclaim.journal_lines (hash, line, kind) values (sha256('x'), 'x', 'head') returning id`);
    const losses = () => server.events('customer changes cannot be read: the gate asks the database instead').length;
    const before = losses();
    await loseConnections(db);
    await until('the loss noticed', () => losses() > before);
    await isMailed(await addCustomer(db));
    assert.equal(await metric(server, 'reclaim_journal_failing'), 1);
    await db.query('delete from reclaim.journal_lines where id = $1', [id]);
  });
});
