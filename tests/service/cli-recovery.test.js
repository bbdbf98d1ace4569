// What an operator asks on the command line about clean-ups: the trail of a request or an address, and the locks.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { request } from './lib/http.js';
import { addCompany, addUser, address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

describe('trace and locks', () => {
  const stage = new Stage();
  let db, server, owner;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db });
    owner = await addUser(db);
    await addCompany(db, owner);
  });
  after(() => stage.end());

  const ask = (email) =>
    request(server, {
      method: 'POST',
      path: '/functions/v1/cleanup-orphaned-user',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ step: 'request-code', email }),
    });
  const command = (t, ...args) => run(t, args, { database: db, directory: server.home });

  it('an address is found by its hash, a request by its id, with what became of it', async (t) => {
    const first = await ask(owner.email);
    const second = await ask(owner.email);
    assert.equal(first.status, 409);
    const byAddress = await command(t, 'trace', `  ${owner.email.toUpperCase()} `);
    assert.equal(byAddress.code, 0, byAddress.stderr);
    assert.match(byAddress.stdout, /2 events\n$/);
    for (const answer of [first, second]) assert.ok(byAddress.stdout.includes(answer.json.correlationId));
    const byId = await command(t, 'trace', second.json.correlationId);
    assert.match(byId.stdout, /request-code\s+ORPHAN_CLEANUP_005\s+1\s+\S+\s*\n1 event\n$/);
  });

  it('nobody leaves no trail, and nonsense is refused', async (t) => {
    const nobody = await command(t, 'trace', address('nobody-asked'));
    assert.equal(nobody.code, 0);
    assert.equal(nobody.stdout, '0 events\n');
    const nonsense = await command(t, 'trace', 'nonsense');
    assert.equal(nonsense.code, 1);
    assert.match(nonsense.stderr, /neither a correlation id nor an e-mail address/);
  });

  it('a lock that a program holds is listed with its process, and keeps Reclaim away', async (t) => {
    const orphan = await addUser(db);
    const program = await db.session(t);
    await program.query('SELECT reclaim.acquire_cleanup_lock($1)', [orphan.email]);
    const { rows } = await program.query('SELECT pg_backend_pid() AS pid, reclaim.email_to_lock_id($1) AS id', [orphan.email]);
    const held = await command(t, 'locks');
    assert.equal(held.code, 0, held.stderr);
    assert.match(held.stdout, new RegExp(`^${rows[0].id}\\s+${rows[0].pid}\\s`, 'm'));
    assert.match(held.stdout, /1 cleanup lock held\n$/);
    const { stdout } = await command(t, 'doctor');
    const [, query] = /^ok +clean-up locks: 1 held; .* or: (SELECT .*)$/m.exec(stdout);
    const [found] = await db.query(query);
    assert.deepEqual([found.lock_id, found.pid], [rows[0].id, rows[0].pid], 'the query that doctor prints finds it');
    const refused = await ask(orphan.email);
    assert.equal(refused.status, 409);
    assert.equal(refused.json.error.code, 'ORPHAN_CLEANUP_009');
    await program.query('SELECT reclaim.release_cleanup_lock($1)', [orphan.email]);
    assert.equal((await command(t, 'locks')).stdout, '0 cleanup locks held\n');
  });
});
