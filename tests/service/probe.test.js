// POST /functions/v1/check-email-status: what it says about an address.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { post, probe } from './lib/http.js';
import { matrix } from './lib/matrix.js';
import { addCompany, addUser, address, domain } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

/** An address of exactly so many bytes. */
function addressOfLength(bytes) {
  const local = 'l'.repeat(64);
  const rest = bytes - local.length - 1 - domain.length - 1; // for labels in front of the domain
  const labels = [];
  for (let left = rest; left > 0; left -= 64) labels.push('d'.repeat(Math.min(63, left)));
  const whole = `${local}@${labels.join('.')}.${domain}`;
  assert.equal(Buffer.byteLength(whole), bytes);
  return whole;
}

describe('check-email-status', () => {
  const stage = new Stage();
  let cluster, db, server;
  before(async () => {
    cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    server = await serve(stage, { database: db });
  });
  after(() => stage.end());

  const ask = async (email, of = server) => {
    const answer = await probe(of, email);
    assert.equal(answer.status, 200, answer.body);
    const { correlationId, ...data } = answer.json.data;
    assert.equal(correlationId, answer.headers['x-correlation-id']);
    return data;
  };

  for (const [promise, arrange, expected] of matrix)
    it(promise, async () => {
      assert.deepEqual(await ask(await arrange(db)), expected);
    });

  it('an orphan becomes complete with its company row, and an orphan again without it', async () => {
    const user = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    assert.equal((await ask(user.email)).isOrphaned, true);
    await addCompany(db, user);
    assert.equal((await ask(user.email)).isOrphaned, false);
    await db.query('delete from companies where owner_admin_uuid = $1', [user.id]);
    assert.equal((await ask(user.email)).isOrphaned, true);
  });

  it('an address of 255 bytes is looked up, white space around it not counted', async () => {
    const longest = addressOfLength(255);
    assert.equal((await ask(longest)).status, 'not_registered');
    await addUser(db, { email: longest });
    assert.equal((await ask(`   ${longest.toUpperCase()}   `)).status, 'registered_unverified');
  });

  it('an address of 256 bytes is refused', async () => {
    const answer = await probe(server, addressOfLength(256));
    assert.equal(answer.status, 400);
    assert.equal(answer.json.error.code, 'ORPHAN_CLEANUP_007');
  });

  it('a per cent sign, an underscore or a quote in an address matches only itself', async () => {
    await addUser(db, { email: `axb.wild@${domain}` });
    for (const wild of [`a_b.wild@${domain}`, `a%b.wild@${domain}`, `a'b.wild@${domain}`]) assert.equal((await ask(wild)).status, 'not_registered', wild);
  });

  it('unknown fields are ignored, and so are credentials', async () => {
    const user = await addUser(db);
    const answer = await post(
      server,
      { step: 'request-code', email: user.email, verificationCode: 123456, nested: { deep: [1, 2, { x: null }] } },
      { headers: { Authorization: 'Bearer no.such.token', apikey: 'nonsense' } },
    );
    assert.equal(answer.status, 200);
    assert.equal(answer.json.data.isOrphaned, true);
  });

  it('the content type makes no difference', async () => {
    const user = await addUser(db);
    for (const type of ['text/plain', 'application/json; charset=utf-8', 'application/x-www-form-urlencoded']) {
      const answer = await post(server, { email: user.email }, { headers: { 'Content-Type': type } });
      assert.equal(answer.json.data?.status, 'registered_unverified', type);
    }
  });

  it('a locked ownership table leaves the status and gives null for the rest', async (t) => {
    const user = await addUser(db, { confirmed: '2025-10-20T14:30:00Z', lastSignIn: '2025-10-21T14:30:00Z' });
    const session = await db.session(t);
    await session.query('begin; lock table companies in access exclusive mode');
    const degraded = {
      status: 'registered_verified',
      verifiedAt: '2025-10-20T14:30:00.000Z',
      lastSignInAt: '2025-10-21T14:30:00.000Z',
      hasCompanyData: null,
      isOrphaned: null,
    };
    assert.deepEqual(await ask(user.email), degraded);
    assert.equal((await ask(address('nobody'))).status, 'not_registered');
    await session.query('commit');
    assert.deepEqual(await ask(user.email), { ...degraded, hasCompanyData: false, isOrphaned: true });
  });

  it('fifty probes against a locked ownership table all get their status', async (t) => {
    const hasty = await serve(t, { database: db, env: { RECLAIM_PROBE_TIMEOUT_MS: '100' } });
    const user = await addUser(db);
    const session = await db.session(t);
    await session.query('begin; lock table company_admins in access exclusive mode');
    const answers = await Promise.all(Array.from({ length: 50 }, () => ask(user.email, hasty)));
    for (const answer of answers) {
      assert.equal(answer.status, 'registered_unverified');
      assert.equal(answer.isOrphaned, null);
    }
    await session.query('rollback');
  });

  it('a missing ownership table gives null, and the truth once it is back', async () => {
    const user = await addUser(db);
    await db.query('alter table company_admins rename to company_admins_gone');
    try {
      const answer = await ask(user.email);
      assert.equal(answer.status, 'registered_unverified');
      assert.equal(answer.hasCompanyData, null);
      assert.equal(answer.isOrphaned, null);
    } finally {
      await db.query('alter table company_admins_gone rename to company_admins');
    }
    assert.equal((await ask(user.email)).isOrphaned, true);
  });

  it('an ownership table that may not be read gives null', async (t) => {
    const user = await addUser(db);
    await db.query("create role blind login; grant usage on schema auth to blind; grant select on auth.users to blind; grant select on companies to blind");
    await db.query('grant usage on schema reclaim to blind; grant select on all tables in schema reclaim to blind; grant execute on all functions in schema reclaim to blind');
    const url = db.url.replace('postgres@', 'blind@');
    const blind = await serve(t, { env: { RECLAIM_DATABASE_URL: url, RECLAIM_DATABASE_DIRECT_URL: db.url } });
    const answer = await probe(blind, user.email);
    assert.equal(answer.status, 200);
    assert.equal(answer.json.data.status, 'registered_unverified');
    assert.equal(answer.json.data.isOrphaned, null);
    await blind.stop();
    await db.query('drop owned by blind; drop role blind');
  });

  it('other ownership columns can be named', async (t) => {
    const other = await cluster.database(t);
    await other.query(`create schema crm; create table crm."Tenants" (id int, "ownerId" uuid references auth.users)`);
    const elsewhere = await serve(t, { database: other, env: { RECLAIM_OWNERSHIP: 'crm.Tenants.ownerId' } });
    const owner = await addUser(other);
    const admin = await addUser(other);
    await addCompany(other, admin); // counts no longer
    await other.query('insert into crm."Tenants" values (1, $1)', [owner.id]);
    assert.equal((await probe(elsewhere, owner.email)).json.data.isOrphaned, false);
    assert.equal((await probe(elsewhere, admin.email)).json.data.isOrphaned, true);
  });

  it('times are in UTC whatever the time zone and date style of the database', async (t) => {
    const other = await cluster.database(t);
    await other.query(`alter database "${other.name}" set timezone = 'Asia/Kolkata'`);
    await other.query(`alter database "${other.name}" set datestyle = 'SQL, DMY'`);
    const elsewhere = await serve(t, { database: other });
    const user = await addUser(other, { confirmed: '2025-01-02T03:04:05.678Z' });
    assert.equal((await probe(elsewhere, user.email)).json.data.verifiedAt, '2025-01-02T03:04:05.678Z');
  });

  it('under registration-recovery a malformed body is 001 in that document’s words', async (t) => {
    const other = await serve(t, { database: db, env: { RECLAIM_CONTRACT: 'registration-recovery' } });
    const answer = await post(other, '{}');
    assert.equal(answer.status, 400);
    assert.deepEqual(answer.json.error, {
      code: 'ORPHAN_CLEANUP_001',
      message: 'Invalid request body. Please check your input and try again.',
      httpStatus: 400,
      details: [{ field: 'email', message: 'email is missing.' }],
    });
    assert.equal((await probe(other, address('nobody'))).json.data.status, 'not_registered');
  });
});
