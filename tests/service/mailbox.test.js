// The local mailbox shows codes: it is there for a demonstration on this machine, and for nothing else.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { requestCode } from './lib/cleanup.js';
import { connectTo, postmasterOf } from './lib/embedded.js';
import { request } from './lib/http.js';
import { addUser } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, stageOf, until } from './lib/stage.js';

const pages = ['/mailbox', '/mailbox.json'];
const statusesOf = async (server) => {
  const found = [];
  const { host, port } = server.address();
  for (const path of pages) found.push((await fetch(`http://${host}:${port}${path}`)).status);
  return found;
};

describe('without --demo', () => {
  const stage = new Stage();
  let server, db;
  before(async () => {
    server = await serve(stage);
    db = await connectTo(stage, postmasterOf(server).data);
  });
  after(() => stage.end());

  it('a passer-by at an embedded server without --demo finds no mailbox', async () => {
    assert.deepEqual(await statusesOf(server), [404, 404]);
  });

  it('a code that cannot be mailed is not kept for others to read: 008, and the start has warned', async () => {
    const user = await addUser(db);
    const { status, json } = await requestCode(server, user.email);
    assert.equal(status, 503);
    assert.equal(json.error.code, 'ORPHAN_CLEANUP_008');
    assert.deepEqual(await db.query('select recipient from reclaim.mailbox'), []);
    const [warning] = server.events('no mail provider is set: codes cannot be sent');
    assert.equal(warning.level, 'warn');
    assert.match(warning.settings, /RECLAIM_SMTP_URL/);
  });
});

describe('with --demo', () => {
  it('whoever sits at the machine reads the mails', async (t) => {
    const server = await serve(t, { args: ['--demo'] });
    assert.deepEqual(await statusesOf(server), [200, 200]);
    await until('the greeting', () => /^ {2}Mailbox +http:\S+\/mailbox$/m.test(server.output));
  });

  it('nobody from elsewhere does: on a listener that others reach there is no mailbox, and the start says so', async (t) => {
    const server = await serve(t, { args: ['--demo'], env: { RECLAIM_LISTEN: '0.0.0.0:0' } });
    assert.deepEqual(await statusesOf(server), [404, 404]);
    await until('the greeting', () => /^ {2}Mailbox +not shown: .*RECLAIM_LISTEN.*$/m.test(server.output));
    assert.doesNotMatch(server.output, /\/mailbox/);
  });

  const ada = 'e0000000-0000-4000-8000-000000000101';

  it('a customer deleted at the command line beside the demo gets the last mail that the server would send', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    const server = await serve(t, { directory, args: ['--demo'] });
    const deleted = await run(t, ['delete', ada], { directory });
    assert.equal(deleted.code, 0, deleted.stderr);
    await until('the last mail', async () => {
      const { json } = await request(server, { path: '/mailbox.json' });
      return json.items.find(({ to, subject }) => to === 'ada@example.com' && /deleted/.test(subject));
    });
    await server.stop();
  });

  it('a data directory that is served without --demo later promises no mail that nobody would send', async (t) => {
    const directory = temporaryDirectory(stageOf(t));
    await (await serve(t, { directory, args: ['--demo'] })).stop();
    const server = await serve(t, { directory });
    assert.equal((await run(t, ['delete', ada], { directory })).code, 0);
    const db = await connectTo(t, postmasterOf(server).data);
    assert.deepEqual(await db.query(`select payload from reclaim.work_items where kind = 'mail'`), []);
    await server.stop();
  });

  it('a database of one’s own is refused before anything is done to it, in one line that says what to do', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t);
    const { code, stdout, stderr } = await run(t, ['serve', '--demo'], { database: db });
    assert.equal(code, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /^reclaim: --demo .*RECLAIM_DATABASE_URL.*\n$/);
    assert.deepEqual(await db.query(`select nspname from pg_namespace where nspname in ('reclaim', 'demo')`), []);
  });
});
