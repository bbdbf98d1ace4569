// The certificate of an erasure: issued when the last receipt is in, verified offline by the program and by another library.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { compactVerify, createLocalJWKSet } from 'jose';

import { dumpText } from './lib/backups.js';
import { addCustomer, asAdmin, asKey, asUser, assertError, env, scene } from './lib/customers.js';
import { addServices, claimsOf, deleted, due, erased, fillServices, receipt, remove } from './lib/erasure.js';
import { request } from './lib/http.js';
import { textOf } from './lib/journal.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let cluster, db, server, provider;
before(async () => {
  ({ cluster, db, server, provider } = await scene(stage, { settings: { RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_PUBLIC_URL: 'https://accounts.example.com' } }));
  await addServices(stage, db, ['contact', 'flow']);
});
after(() => stage.end());

const get = (path, headers = {}) => request(server, { path, headers });
const certificate = (id, headers = asAdmin()) => get(`/v1/customers/${id}/certificate`, headers);
const isLast = ({ subject }) => /was deleted/.test(subject);
const lastMail = ({ email }) => until('the last mail', () => provider.mailsTo(email).map((sent) => sent.mail).find(isLast));
const saltIn = (mail) => mail.text.match(/\b[0-9a-f]{32}\b(?=, which stands)/)[0];
const linkIn = (mail) => mail.text.match(/https:\/\/accounts\.example\.com(\/v1\/customers\/\S+\?secret=[0-9a-f]{32})/)[1];

/** A deleted customer with its certificate and the number from its last mail. */
async function certified() {
  const customer = await addCustomer(db);
  await fillServices(db, customer, 3, ['contact', 'flow']);
  await due(server, db, customer);
  await deleted(db, customer);
  const ledger = await erased(server, customer);
  const answer = await certificate(customer.id);
  assert.equal(answer.status, 200, answer.body);
  const mail = await lastMail(customer);
  return { customer, ledger, jws: answer.body, answer, mail };
}

async function keySet() {
  const answer = await get('/.well-known/reclaim-erasure-key');
  assert.equal(answer.status, 200);
  return answer;
}

const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'reclaim-certificate-'));
stage.after(() => fs.rmSync(directory, { recursive: true }));
const file = (name, text) => {
  const at = path.join(directory, name);
  fs.writeFileSync(at, text);
  return at;
};

const verify = async (jws, keys, ...more) =>
  run(stage, ['verify', file('certificate.jose', jws), '--key', file('keys.json', keys), ...more], {});

describe('a certificate', () => {
  it('says what was erased, when and by whom, and nothing personal', async () => {
    const { customer, ledger, jws, answer } = await certified();
    assert.equal(answer.headers['content-type'], 'application/jose');
    const claims = claimsOf(jws);
    assert.equal(claims.sub, customer.id);
    assert.equal(claims.requested_at, ledger.requested_at);
    assert.equal(claims.completed_at, ledger.completed_at);
    assert.deepEqual(
      claims.participants.map(({ name, kind, status, rows, how, reported_by }) => ({ name, kind, status, rows, how, reported_by })),
      [['contact', 'deleted'], ['flow', 'emptied']].map(([name, how]) => ({ name, kind: 'table', status: 'done', rows: 3, how, reported_by: 'reclaim' })),
    );
    assert.deepEqual(claims.kept, []);
    const days = ({ until }) => until && (Date.parse(until) - Date.parse(claims.completed_at)) / 86400000;
    assert.deepEqual(claims.not_covered.map((one) => [one.what, days(one)]), [['backups', 35], ['events', undefined], ['records', 365]]);
    const text = JSON.stringify(claims).toLowerCase();
    for (const personal of [customer.email, customer.name]) assert.ok(!text.includes(personal.toLowerCase()), personal);
  });

  it('lists what was left in place, with the reason, and not among what was erased', async (t) => {
    const adopted = await cluster.database(t);
    await adopted.query(`create table public.customer_customers (id uuid primary key, name text not null, email text, status text,
      level integer not null check (level between 1 and 3), motto text, hobby text)`);
    const own = await serve(t, { database: adopted, env: { ...env, ...provider.env } });
    await addServices(t, adopted, ['contact', 'flow']);
    for (const args of [['cascade', 'disable', 'flow'], ['columns', 'keep', 'customer_customers', 'motto']])
      assert.equal((await run(t, args, { database: adopted })).code, 0, args.join(' '));
    const customer = { id: randomUUID(), name: 'Someone', email: 'someone@customers.example.com' };
    await adopted.query(`insert into public.customer_customers (id, name, email, level, motto, hobby) values ($1, $2, $3, 2, 'Carpe diem', 'chess')`, Object.values(customer));
    await fillServices(adopted, customer, 3, ['contact', 'flow']);
    assert.equal((await remove(own, customer.id)).status, 200);
    await erased(own, customer);
    const claims = claimsOf((await request(own, { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() })).body);
    const { reason } = claims.kept.find(({ name }) => name === 'public.customer_customers.level');
    assert.match(reason, /check constraint/);
    assert.deepEqual(claims.kept, [
      { name: 'flow', kind: 'table', reason: 'the participant is disabled' },
      { name: 'public.customer_customers.level', kind: 'column', reason, rows: 1 },
      { name: 'public.customer_customers.motto', kind: 'column', reason: 'by decision', rows: 1 },
    ]);
    assert.deepEqual(claims.participants.map(({ name, status, rows }) => [name, status, rows]), [['contact', 'done', 3]]);
    assert.deepEqual(await adopted.query('select level, motto, hobby from public.customer_customers'), [{ level: 2, motto: 'Carpe diem', hobby: null }]);
    assert.equal((await adopted.query('select from public.service_flow where tm_delete is null')).length, 3);
  });

  it('says of rows that are only marked that they are, and which of their columns stay, until these are emptied as well', async (t) => {
    const marked = await cluster.database(t);
    const own = await serve(t, { database: marked, env: { ...env, ...provider.env } });
    await marked.query('delete from reclaim.cascade_participants');
    const columns = `customer_id uuid not null, name text, address text, "Shoe size" int, other uuid default gen_random_uuid(), note text not null default '', tm_delete timestamptz`;
    const cascade = async (...args) => {
      const done = await run(t, ['cascade', ...args], { database: marked });
      assert.equal(done.code, 0, args.join(' ') + done.stderr);
    };
    const add = (name, ...more) => cascade('add', name, '--table', name, '--column', 'customer_id', '--soft-delete', 'tm_delete', ...more);
    for (const [name, ...scrub] of [['letters'], ['people', '--scrub', 'name,note'], ['stamps', '--scrub', '*'], ['times', '--scrub', 'name,address,Shoe size,note']]) {
      await marked.query(`create table public.${name} (id bigint generated always as identity primary key, ${columns}); create index on public.${name} (customer_id)`);
      await add(name, ...scrub);
    }
    const customer = await addCustomer(marked), empty = await addCustomer(marked);
    for (const name of ['letters', 'people', 'stamps', 'times']) {
      await marked.query(`insert into public.${name} (customer_id, name, address, "Shoe size") values ($1, 'Someone', 'Some Street', 42), ($1, null, null, null)`, [customer.id]);
      await marked.query(`insert into public.${name} (customer_id, name, tm_delete) values ($1, 'Someone', now())`, [customer.id]); // the team's own mark
    }
    for (const { id } of [customer, empty]) assert.equal((await remove(own, id)).status, 200);
    const { participants } = await erased(own, customer);
    const ask = (id) => request(own, { path: `/v1/customers/${id}/certificate`, headers: asAdmin() });
    const { body } = await ask(customer.id);
    const claims = claimsOf(body);
    assert.deepEqual(claims.participants.map(({ name, rows, how }) => [name, rows, how]), [['letters', 2, 'marked'], ['people', 3, 'emptied'], ['stamps', 3, 'emptied'], ['times', 3, 'emptied']]);
    const stay = (names) => `its rows are marked as deleted and stay, with what they hold in ${names}`;
    const kept = [
      { name: 'public.letters', kind: 'table', reason: stay('name, address, "Shoe size"'), rows: 2 },
      { name: 'public.people', kind: 'table', reason: stay('address, "Shoe size"'), rows: 1 },
    ];
    assert.deepEqual(claims.kept, kept);
    assert.deepEqual(participants.filter(({ status }) => status === 'kept').map(({ name, kind, reason, rows }) => ({ name, kind, reason, rows })), kept);
    const said = (await verify(body, (await request(own, { path: '/.well-known/reclaim-erasure-key' })).body)).stdout;
    assert.match(said, /letters: 2 rows only marked as deleted, .*by Reclaim itself/);
    assert.match(said, /people: 3 rows emptied of what is personal/);
    assert.match(said, /Not erased:\n {2}public\.letters: its rows are marked as deleted and stay, with what they hold in name, address/);
    await erased(own, empty);
    assert.deepEqual(claimsOf((await ask(empty.id)).body).kept, [], 'nothing of a customer without rows');

    // One empties the rest from now on, the other deletes its rows.
    await add('people', '--scrub', 'name,note,address,Shoe size');
    await cascade('add', 'letters', '--table', 'letters', '--column', 'customer_id');
    await cascade('rescan', customer.id);
    const again = await until('another certificate', async () => {
      const answer = await ask(customer.id);
      return answer.status === 200 && answer.body !== body && claimsOf(answer.body);
    });
    assert.deepEqual(again.kept, []);
    assert.deepEqual(again.participants.map(({ name, rows, how }) => [name, rows, how]), [['letters', 5, 'deleted'], ['people', 4, 'emptied'], ['stamps', 3, 'emptied'], ['times', 3, 'emptied']]);
    assert.equal((await marked.query('select from public.letters')).length, 0);
  });

  it('is about an address whose salt stands in the last mail alone, as does the secret of the link', async () => {
    const customer = await addCustomer(db);
    provider.answer({ status: 500 });
    assert.equal((await remove(server, customer.id)).status, 200);
    const waiting = await until('a try', () => provider.attempts.map(({ mail }) => mail).find((mail) => mail.to === customer.email && isLast(mail)));
    const secrets = [saltIn(waiting), linkIn(waiting).slice(-32)];
    const forms = secrets.flatMap((text) => {
      const bytes = Buffer.from(text, 'hex');
      return [text, text.toUpperCase(), Buffer.from(text).toString('hex'), ...['base64', 'base64url'].map((form) => bytes.toString(form).replace(/=+$/, ''))];
    });
    const hashOf = (bytes) => createHash('sha256').update(bytes).digest('hex');
    /** Nowhere in the database or in the journal, in which their hashes are found. */
    async function assertNowhere() {
      for (const [place, text] of [['the dump', await dumpText(db)], ['the journal', textOf(server.directory)]]) {
        for (const form of forms) assert.ok(!text.includes(form), `${form} in ${place}`);
        assert.ok(text.includes(hashOf(secrets[1])), `the search finds the hash of the secret in ${place}`);
        assert.ok(text.includes(hashOf(Buffer.concat([Buffer.from(secrets[0], 'hex'), Buffer.from(customer.email)]))), `and that of the address in ${place}`);
      }
    }
    await erased(server, customer);
    assert.equal((await db.query(`select from reclaim.work_items where kind = 'mail' and payload::text like '%' || $1 || '%'`, [customer.id])).length, 1, 'the mail waits');
    await assertNowhere();
    provider.answer();
    assert.deepEqual(await lastMail(customer), waiting);
    await until('no work about it', async () => (await db.query(`select from reclaim.work_items where kind = 'mail'`)).length === 0);
    const opened = await get(linkIn(waiting)), ledger = await get(linkIn(waiting).replace('/certificate?', '/erasure?'));
    assert.deepEqual([opened.status, ledger.status], [200, 200]);
    const { headers } = await get(linkIn(waiting), { Accept: 'text/html' });
    const { host, port } = server.address('public');
    assert.equal((await fetch(`http://${host}:${port}${headers.location}`)).status, 200, 'the page');
    await assertNowhere();
    for (const route of ['/v1/customers/{id}/certificate', '/v1/customers/{id}/erasure', '/account/certificate'])
      await server.line(`${route} in the log`, (line) => line.route === route);
    const logged = JSON.stringify(server.lines);
    for (const form of forms) assert.ok(!logged.includes(form), `${form} in the log`);
  });

  it('is verified by jose with the published key set', async () => {
    const { jws } = await certified();
    const { payload, protectedHeader } = await compactVerify(jws, createLocalJWKSet(JSON.parse((await keySet()).body)));
    assert.equal(protectedHeader.typ, 'reclaim-erasure+jwt');
    assert.equal(protectedHeader.alg, 'EdDSA');
    assert.equal(JSON.parse(Buffer.from(payload)).iss, 'reclaim');
  });

  it('is verified offline by reclaim verify, without settings, and in words', async () => {
    const { customer, jws, mail } = await certified();
    const keys = (await keySet()).body;
    const done = await verify(jws, keys);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /^The certificate holds\./);
    assert.match(done.stdout, new RegExp(customer.id));
    assert.match(done.stdout, /contact: 3 rows deleted, .*by Reclaim itself/);
    assert.match(done.stdout, /flow: 3 rows emptied of what is personal, .*by Reclaim itself/);
    assert.match(done.stdout, /Not covered:\n {2}backups until 2/);
    assert.match(done.stdout, /\n {2}records until 2\S+: Reclaim itself keeps ids and keyed hashes of the address/);
    assert.match(done.stdout, /Not proved:/);
    const salt = saltIn(mail);
    const hash = createHash('sha256').update(Buffer.from(salt, 'hex')).update(customer.email.toLowerCase()).digest('hex');
    assert.equal(claimsOf(jws).address.hash, hash);
    const own = await verify(jws, keys, '--address', customer.email, '--salt', salt);
    assert.equal(own.code, 0, own.stderr);
    assert.match(own.stdout, /is about /);
    const alone = await verify(jws, JSON.stringify(JSON.parse(keys).keys[0]));
    assert.equal(alone.code, 0, alone.stderr);
    const other = await verify(jws, keys, '--address', 'other@example.com', '--salt', salt);
    assert.equal(other.code, 1);
    assert.match(other.stderr, /not about this address/);
  });

  it('does not hold when anything in it, or the key, is another', async () => {
    const { jws } = await certified();
    const keys = (await keySet()).body;
    const [header, payload, signature] = jws.split('.');
    const claims = claimsOf(jws);
    claims.participants[0].rows++;
    const forged = [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.');
    const other = JSON.stringify({ keys: [{ kty: 'OKP', crv: 'Ed25519', x: Buffer.alloc(32, 9).toString('base64url') }] });
    const cases = [
      [forged, keys, /its signature does not hold/],
      [jws, other, /a key that is not in the key set/],
      [jws.slice(0, -10), keys, /its signature does not hold/],
      [`${header}.${payload}`, keys, /three parts/],
      ['', keys, /does not hold/],
      ['x'.repeat(2 << 20), keys, /larger than/],
      [Buffer.from([0, 255, 46, 1, 46, 2]), keys, /does not hold/],
      [jws, '{}', /has no Ed25519 key/],
      [jws, 'no json', /not JSON/],
    ];
    for (const [text, set, why] of cases) {
      const done = await verify(text, set);
      assert.equal(done.code, 1, `${why}: ${done.stdout}`);
      assert.match(done.stderr, why);
    }
  });

  it('is not there before the last receipt, and then for the secret link of the last mail too', async () => {
    const added = await run(stage, ['cascade', 'add', 'archive', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    const customer = await addCustomer(db);
    assertError(await certificate(customer.id), 404, 'NOT_COMPLETE');
    assertError(await certificate(randomUUID()), 404, 'CUSTOMER_NOT_FOUND');
    assert.equal((await remove(server, customer.id)).status, 200);
    assertError(await certificate(customer.id), 404, 'NOT_COMPLETE');
    const mail = await lastMail(customer);
    const link = linkIn(mail);
    assertError(await get(link), 404, 'NOT_COMPLETE');
    assertError(await get(link.replace(/.$/, (last) => (last === '0' ? '1' : '0'))), 404, 'CERTIFICATE_NOT_FOUND');
    assert.equal((await receipt(server, customer.id, 'archive', { rows: 7 })).status, 200);
    await erased(server, customer);
    const answer = await get(link);
    assert.equal(answer.status, 200, answer.body);
    const of = claimsOf(answer.body).participants.find(({ name }) => name === 'archive');
    assert.equal(of.rows, 7);
    assert.equal(of.reported_by, 'administrator');
    assert.equal((await certificate(customer.id, {})).status, 401);
    const stranger = await addCustomer(db);
    assert.equal((await certificate(customer.id, asUser(stranger.owner_user_id))).status, 403);
    await run(stage, ['cascade', 'remove', 'archive'], { database: db });
  });

  it('says what a participant that was removed before it erased was, and of one that was removed later who reported', async () => {
    for (const name of ['archive', 'attic']) assert.equal((await run(stage, ['cascade', 'add', name, '--remote'], { database: db })).code, 0);
    const customer = await addCustomer(db);
    assert.equal((await remove(server, customer.id)).status, 200);
    assert.equal((await receipt(server, customer.id, 'attic', { rows: 7 })).status, 200);
    for (const name of ['attic', 'archive']) assert.equal((await run(stage, ['cascade', 'remove', name], { database: db })).code, 0);
    await erased(server, customer);
    const claims = claimsOf((await certificate(customer.id)).body);
    const { kind, how, rows, reported_by } = claims.participants.find(({ name }) => name === 'attic');
    assert.deepEqual([kind, how, rows, reported_by], ['remote', 'reported', 7, 'administrator']);
    assert.deepEqual(claims.kept, [{ name: 'archive', kind: 'remote', reason: 'the participant was removed before it erased' }]);
  });

  it('says of a service that it reported for itself when it did so with its own key', async () => {
    assert.equal((await run(stage, ['cascade', 'add', 'archive', '--remote'], { database: db })).code, 0);
    const made = await run(stage, ['key', 'create', '--scope', 'receipts:archive'], { database: db });
    assert.equal(made.code, 0, made.stderr);
    const customer = await addCustomer(db);
    assert.equal((await remove(server, customer.id)).status, 200);
    assert.equal((await receipt(server, customer.id, 'archive', { rows: 7 }, { headers: asKey(made.stdout.trim()) })).status, 200);
    await erased(server, customer);
    const { body } = await certificate(customer.id);
    const { kind, how, rows, reported_by } = claimsOf(body).participants.find(({ name }) => name === 'archive');
    assert.deepEqual([kind, how, rows, reported_by], ['remote', 'reported', 7, 'service']);
    assert.match((await verify(body, (await keySet()).body)).stdout, /archive: 7 rows, \S+, as this service reported\n/);
    assert.equal((await run(stage, ['cascade', 'remove', 'archive'], { database: db })).code, 0);
  });

  it('is for programs by the link of the last mail, and a page for browsers, which passes the secret on to no other', async () => {
    const { customer, jws, mail } = await certified();
    const link = linkIn(mail);
    const secret = link.slice(-32);
    for (const accept of [undefined, '*/*', 'application/jose', 'application/jose, text/html;q=0.9', 'text/html;q=0.5, */*']) {
      const answer = await get(link, accept ? { Accept: accept } : {});
      assert.equal(answer.status, 200, accept);
      assert.equal(answer.headers['content-type'], 'application/jose');
      assert.equal(answer.body, jws);
    }
    const browser = { Accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' };
    const sent = await get(link, browser);
    assert.equal(sent.status, 303);
    assert.equal(sent.headers.location, `/account/certificate?customer=${customer.id}&secret=${secret}`);
    assert.equal(sent.headers['referrer-policy'], 'no-referrer');
    assert.equal(sent.headers['cache-control'], 'no-store');
    const odd = await get(`/v1/customers/${customer.id}/certificate?secret=${encodeURIComponent('a\r\nSet-Cookie: b=c&customer=x')}`, browser);
    assert.equal(odd.headers.location, `/account/certificate?customer=${customer.id}&secret=`);
    assert.equal((await get('/v1/customers/7/certificate?secret=x', browser)).headers.location, '/account/certificate?customer=&secret=');
    assert.equal((await certificate(customer.id, { ...asAdmin(), ...browser })).status, 200, 'with credentials it is the certificate whatever is accepted');
    assert.equal((await certificate(customer.id, browser)).status, 401);
  });

  it('has its progress by the same link: the ledger, without what went wrong at a service', async () => {
    const added = await run(stage, ['cascade', 'add', 'archive', '--remote'], { database: db });
    assert.equal(added.code, 0, added.stderr);
    const customer = await addCustomer(db);
    assert.equal((await remove(server, customer.id)).status, 200);
    assert.equal((await receipt(server, customer.id, 'archive', { status: 'failed', error: 'disk 7 of host attic is full' })).status, 200);
    const mail = await lastMail(customer);
    const secret = mail.text.match(/\?secret=([0-9a-f]{32})/)[1];
    await until('the tables done', async () =>
      (await get(`/v1/customers/${customer.id}/erasure`, asAdmin())).json.participants.every(({ name, status }) => name === 'archive' || status === 'done'));
    const asked = await get(`/v1/customers/${customer.id}/erasure?secret=${secret}`);
    assert.equal(asked.status, 200, asked.body);
    const { json } = await get(`/v1/customers/${customer.id}/erasure`, asAdmin());
    assert.match(json.participants.find(({ name }) => name === 'archive').error, /attic/);
    assert.deepEqual(asked.json, { ...json, participants: json.participants.map((one) => ({ ...one, error: null })) });
    for (const wrong of [secret.replace(/.$/, (last) => (last === '0' ? '1' : '0')), '', 'x'.repeat(4000)])
      assertError(await get(`/v1/customers/${customer.id}/erasure?secret=${wrong}`), 404, 'CERTIFICATE_NOT_FOUND');
    assertError(await get(`/v1/customers/${(await addCustomer(db)).id}/erasure?secret=${secret}`), 404, 'CERTIFICATE_NOT_FOUND');
    assertError(await get(`/v1/customers/7/erasure?secret=${secret}`), 400, 'INVALID_ID');
    assert.equal((await get(`/v1/customers/${customer.id}/erasure`)).status, 401);
    await receipt(server, customer.id, 'archive', { rows: 1 });
    await run(stage, ['cascade', 'remove', 'archive'], { database: db });
  });

  it('comes with keys that may be cached for five minutes', async () => {
    assert.equal((await keySet()).headers['cache-control'], 'public, max-age=300');
  });

  it('that would be too large to be verified is none, and keeps nobody else from theirs', async () => {
    const customer = await addCustomer(db);
    const session = await db.session(stage, 'a table that is locked');
    await session.query('begin; lock table public.service_contact in exclusive mode');
    assert.equal((await remove(server, customer.id)).status, 200);
    await db.query(`insert into reclaim.erasure_kept (customer_id, name, kind, reason, rows) select $1, 'public.table_' || n, 'table', repeat('a reason ', 20), 1
      from generate_series(1, 5000) n`, [customer.id]);
    await session.query('commit');
    await until('named in the log', () => server.lines.some(({ event, customer_id }) => /its ledger is too long/.test(event) && customer_id === customer.id));
    await certified();
    assertError(await certificate(customer.id), 404, 'NOT_COMPLETE');
    assert.equal(server.lines.filter(({ event }) => /its ledger is too long/.test(event)).length, 1, 'it is logged once');
    await db.query(`delete from reclaim.erasure_kept where customer_id = $1`, [customer.id]);
    await erased(server, customer);
  });

  it('is issued again, naming the former, when something more was erased', async () => {
    const { customer, jws } = await certified();
    await db.query('insert into public.service_contact (customer_id, note) values ($1, $2)', [customer.id, 'late']);
    const asked = await run(stage, ['cascade', 'rescan', customer.id], { database: db });
    assert.equal(asked.code, 0, asked.stderr);
    const again = await until('another certificate', async () => {
      const answer = await certificate(customer.id);
      return answer.status === 200 && answer.body !== jws && claimsOf(answer.body);
    });
    assert.equal((await verify(jws, (await keySet()).body)).code, 0, 'the former one still holds');
    assert.equal(again.replaces, claimsOf(jws).jti);
    assert.deepEqual(again.participants.map(({ rows, late_rows }) => [rows, late_rows]), [[4, 1], [3, undefined]]);
  });

  it('is not there while the erasure is open again for a participant that was added with --past', async () => {
    const { customer, jws, mail } = await certified();
    assert.equal((await run(stage, ['cascade', 'add', 'archive', '--remote', '--past'], { database: db })).code, 0);
    assertError(await certificate(customer.id), 404, 'NOT_COMPLETE');
    assertError(await get(linkIn(mail)), 404, 'NOT_COMPLETE');
    assert.equal((await receipt(server, customer.id, 'archive', { rows: 7 })).status, 200);
    await erased(server, customer);
    const answer = await get(linkIn(mail));
    assert.equal(answer.status, 200, answer.body);
    assert.equal(claimsOf(answer.body).replaces, claimsOf(jws).jti);
    assert.equal((await run(stage, ['cascade', 'remove', 'archive'], { database: db })).code, 0);
  });

  it("is issued again, naming the former, when something was cleared in the customer's own row", async () => {
    const { customer, jws } = await certified();
    await db.query(`update reclaim.customer_customers set name = 'Back Again' where id = $1`, [customer.id]);
    const asked = await run(stage, ['cascade', 'rescan', customer.id], { database: db });
    assert.equal(asked.code, 0, asked.stderr);
    const again = await until('another certificate', async () => {
      const answer = await certificate(customer.id);
      return answer.status === 200 && answer.body !== jws && claimsOf(answer.body);
    });
    assert.equal(again.replaces, claimsOf(jws).jti);
    const { kind, rows, late_rows, how, reported_by } = again.participants.find(({ name }) => name === 'reclaim.customer_customers');
    assert.deepEqual([kind, rows, late_rows, how, reported_by], ['table', 1, 1, 'emptied', 'reclaim']);
    assert.deepEqual(await db.query('select from reclaim.customer_customers where id = $1 and name = $2', [customer.id, 'Back Again']), []);
  });

  it('holds after the key was rotated, and the next one has the new key', async () => {
    const { jws } = await certified();
    const rotated = await run(stage, ['key-set', '--rotate'], { database: db });
    assert.equal(rotated.code, 0, rotated.stderr);
    assert.equal(JSON.parse(rotated.stdout).keys.length, 2);
    assert.deepEqual(JSON.parse((await keySet()).body), JSON.parse(rotated.stdout));
    assert.equal((await verify(jws, rotated.stdout)).code, 0);
    const next = await certified();
    const kid = (text) => JSON.parse(Buffer.from(text.split('.')[0], 'base64url')).kid;
    assert.notEqual(kid(next.jws), kid(jws));
    assert.equal((await verify(next.jws, rotated.stdout)).code, 0);
  });
});
