// The restore of a private cluster, in the steps of docs/operations.md: no server runs on the restored database before the journal is in
// its place.
// takes long

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, describe, it } from 'node:test';

import { addCustomer, addKey, asKey, env } from './lib/customers.js';
import { connectTo, keepServerLog, postmasterOf } from './lib/embedded.js';
import { addServices, erased, remove } from './lib/erasure.js';
import { gate } from './lib/gate.js';
import { folderOf, says } from './lib/journal.js';
import { temporaryDirectory } from './lib/place.js';
import { asPostgres, binaries } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
after(() => stage.end());

function tool(program, args, options = {}) {
  const done = spawnSync(path.join(binaries, program), args, { cwd: '/', stdio: ['ignore', 'pipe', 'pipe'], encoding: 'utf8', env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' }, ...options });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.stderr}${done.stdout}`);
}

describe('a private cluster that is restored from a dump', () => {
  it('serves nobody who was erased since: the first server has the journal', async () => {
    const [directory, elsewhere] = [temporaryDirectory(stage), temporaryDirectory(stage)];
    const start = (more = {}) => serve(stage, { directory, env, ...more });
    let server = await start();
    let { data } = postmasterOf(server);
    let db = await connectTo(stage, data);
    await addServices(stage, db, ['contact']);
    const customer = await addCustomer(db);
    const key = await addKey(stage, db, customer);
    const dump = path.join(elsewhere, 'reclaim.dump');
    tool('pg_dump', ['-Fc', '-d', db.url, '-f', dump]);
    assert.equal((await remove(server, customer.id)).status, 200);
    await erased(server, customer);
    await db.end();
    await server.stop();
    const journal = path.join(elsewhere, 'journal');
    fs.cpSync(folderOf(directory), journal, { recursive: true });

    fs.rmSync(path.dirname(folderOf(directory)), { recursive: true }); // another machine
    fs.rmSync(path.dirname(data), { recursive: true, force: true });
    server = await start();
    ({ data } = postmasterOf(server));
    await server.stop();
    fs.rmSync(folderOf(directory), { recursive: true });
    fs.cpSync(journal, folderOf(directory), { recursive: true });
    const home = path.dirname(data);
    const at = ['-h', home, '-U', 'reclaim'];
    tool('pg_ctl', ['-w', '-D', data, '-l', path.join(home, 'server.log'), '-o', `-k ${home} -c listen_addresses= -c unix_socket_permissions=0700`, 'start'], asPostgres);
    tool('dropdb', [...at, 'reclaim']);
    tool('createdb', [...at, 'reclaim']);
    tool('pg_restore', ['--exit-on-error', ...at, '-d', 'reclaim', dump]);
    tool('pg_ctl', ['-w', '-D', data, '-m', 'fast', 'stop'], asPostgres);

    server = await start({ wait: 'listening' });
    await says(server, 'restored');
    assert.notEqual((await gate(server, asKey(key))).status, 200);
    const done = await run(stage, ['replay-erasures'], { directory });
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /Erased again: 1 customer /);
    await says(server, 'ready');
    await erased(server, customer);
    await server.stop();
    keepServerLog(data);
  });
});
