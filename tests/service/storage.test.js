// Objects of users in Supabase Storage are erased through its API: folder by folder, page by page, with a receipt; and an API that
// fails, forgets or lies neither ends an erasure nor keeps it going for ever.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addCustomer, env, scene, tokenOf } from './lib/customers.js';
import { erased, ledger, metric, preview, remove } from './lib/erasure.js';
import { FakeStorage } from './lib/fake-storage.js';
import { addUser } from './lib/people.js';
import { run, serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
let db, server, storage;
before(async () => {
  storage = await FakeStorage.start(stage);
  ({ db, server } = await scene(stage, { settings: storage.env }));
  storage.add('avatars', []);
  const added = await cascade('add', 'avatars', '--storage', 'avatars', '--label', 'Pictures');
  assert.equal(added.code, 0, added.stderr);
});
after(() => stage.end());

const cascade = (...args) => run(stage, ['cascade', ...args], { database: db });
const partOf = async (customer, name = 'avatars') => (await ledger(server, customer.id)).json.participants.find((one) => one.name === name);
const withStatus = (customer, status, name) =>
  until(`${name ?? 'avatars'} ${status}`, async () => {
    const part = await partOf(customer, name);
    return part.status === status && part;
  });

/** Deletes a customer whose owner has these objects in the bucket. */
async function gone(names, { mode, before } = {}) {
  const customer = await addCustomer(db);
  before?.(customer);
  if (mode) storage.modes.set(customer.user.id, mode);
  storage.add('avatars', names.map((name) => `${customer.user.id}/${name}`));
  assert.equal((await remove(server, customer.id)).status, 200);
  return customer;
}
const many = (count) => Array.from({ length: count }, (_, i) => `${i}.png`);
const left = (customer) => storage.names('avatars').filter((name) => name.startsWith(`${customer.user.id}/`));
const redrive = async () => assert.equal((await cascade('redrive')).code, 0);

describe('a bucket takes part', () => {
  it('by its name and the folder of each user', async () => {
    for (const [args, words] of [
      [['--storage', 'a/b'], /name of a bucket/],
      [['--storage', 'x', '--prefix', 'everyone/'], /\{user\}/],
      [['--storage', 'x', '--prefix', '{user}/{folder}'], /\{user\}/],
      [['--storage', 'x', '--by', 'user'], /go with --storage/],
      [['--remote', '--prefix', '{user}/'], /goes with --storage/],
    ]) {
      const { code, stderr } = await cascade('add', 'bad', ...args);
      assert.equal(code, 2, args.join(' '));
      assert.match(stderr, words);
    }
    assert.equal((await cascade('add', 'documents', '--storage', 'My documents & co', '--prefix', 'v1/user-{user}')).code, 0);
    const { stdout } = await cascade('list');
    assert.match(stdout, /^avatars +"Pictures" bucket avatars, \{user\}\/$/m);
    assert.match(stdout, /^documents +bucket My documents & co, v1\/user-\{user\}\/$/m);
    const listed = JSON.parse((await cascade('list', '--format', 'json')).stdout).find((one) => one.name === 'documents');
    assert.deepEqual([listed.kind, listed.bucket, listed.prefix, listed.table, listed.page], ['storage', 'My documents & co', 'v1/user-{user}/', null, null]);
  });

  it('the preview of a deletion has no number, unless the table of objects can be read', async () => {
    const customer = await addCustomer(db);
    const rows = async () => (await preview(server, customer.id)).json.participants.find((one) => one.name === 'avatars');
    assert.deepEqual(await rows(), { name: 'avatars', label: 'Pictures', kind: 'storage', rows: null, more: false, error: null });
    await db.query('create schema storage');
    await db.query('create table storage.objects (bucket_id text, name text)');
    await db.query(`insert into storage.objects select 'avatars', $1 || '/' || n from generate_series(1, 3) n`, [customer.user.id]);
    await db.query(`insert into storage.objects values ('avatars', 'other/x'), ('elsewhere', $1 || '/x')`, [customer.user.id]);
    assert.equal((await rows()).rows, 3);
    await db.query('drop schema storage cascade');
  });
});

describe('objects are deleted with their customer', () => {
  const odd = [
    'ä ö/ü ß.png', 'quote".png', "it's.png", 'back\\slash.png', 'per%cent/100%.png', 'under_score/a_b.png', 'underXscore/aXb.png', 'Case/One.png', 'case/one.png',
    'plus+and&or=?#;:@!$,().png', 'new\nline.png', 'tab\t.png', 'emoji-😀/日本語.txt', '{"json":true}.txt', '../up.png', './here.png', 'a//double.png', 'trailing/', ' space /  two.png',
    'nul-like\u0001.bin', 'file', 'file/below-a-file.png', '%2e%2e/%2f.png', `${'d/'.repeat(120)}deep.png`, 'x'.repeat(900),
  ];
  const own = {};
  before(async () => {
    storage.add('My documents & co', ['readme.txt']);
    own.plain = await gone(['a.png', 'b/c.png', 'b/d/e/f.png', '.emptyFolderPlaceholder'], {
      before: ({ user }) => storage.add('My documents & co', [`v1/user-${user.id}/x.pdf`, `v1/user-${user.id}0/y.pdf`, `${user.id}/z.pdf`]),
    });
    const { id } = own.plain.user;
    own.bystander = await addCustomer(db);
    storage.add('avatars', [`${own.bystander.user.id}/a.png`, 'a.png', `backup/${id}/a.png`]);
    own.odd = await gone(odd);
    own.many = await gone(many(10_000).map((name, i) => (i % 4 ? name : `folder ${i % 3}/${name}`)));
  });

  it('those of its users, and nobody else', async () => {
    const parts = Object.fromEntries((await erased(server, own.plain)).participants.map((one) => [one.name, one]));
    assert.deepEqual([parts.avatars.kind, parts.avatars.label, parts.avatars.status, parts.avatars.rows], ['storage', 'Pictures', 'done', 4]);
    assert.equal(parts.documents.rows, 1);
    assert.deepEqual(left(own.plain), []);
    assert.deepEqual(storage.names('My documents & co').map((name) => name.slice(-5)).sort(), ['e.txt', 'y.pdf', 'z.pdf']);
    for (const name of [`${own.bystander.user.id}/a.png`, 'a.png', `backup/${own.plain.user.id}/a.png`]) assert.ok(storage.names('avatars').includes(name), name);
  });

  it('whatever they are called', async () => {
    assert.equal((await withStatus(own.odd, 'done')).rows, odd.length);
    assert.deepEqual(left(own.odd), []);
  });

  it('page by page, however many they are, with both headers that Supabase wants', async () => {
    assert.equal((await withStatus(own.many, 'done')).rows, 10_000);
    assert.deepEqual(left(own.many), []);
    const asked = storage.asked.filter(({ body }) => (body?.prefix ?? body?.prefixes?.[0])?.startsWith(own.many.user.id));
    assert.ok(asked.length < 250, `${asked.length} requests`);
    for (const { body, headers, path } of asked) {
      assert.ok(body.limit === 100 || (body.prefixes.length <= 100 && new Set(body.prefixes).size === body.prefixes.length));
      assert.deepEqual([headers.authorization, headers.apikey], [`Bearer ${FakeStorage.key}`, FakeStorage.key]);
      assert.ok(!path.includes('//'), path);
    }
    assert.ok(!JSON.stringify(server.lines).includes(FakeStorage.key));
    assert.ok((await metric(server, 'reclaim_cascade_rows_total', { participant: 'avatars' })) > 10_000);
    assert.equal((await cascade('remove', 'documents')).code, 0);
  });

  it('of members whose logins go, not of a user with another customer; also after plain SQL', async () => {
    const [customer, other, plain, nobody] = [await addCustomer(db), await addCustomer(db), await addCustomer(db), await addCustomer(db, { owner: false })];
    const [going, staying] = [await addUser(db), await addUser(db)];
    for (const [{ id }, user] of [[customer, going], [customer, staying], [other, staying]])
      await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [id, user.id]);
    storage.add('avatars', [customer.user, going, staying, plain.user].map(({ id }) => `${id}/a.png`));
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [plain.id]);
    for (const { id } of [customer, nobody]) await remove(server, id);
    for (const [who, rows] of [[customer, 2], [nobody, 0], [plain, 1]]) assert.equal((await withStatus(who, 'done')).rows, rows);
    assert.ok(storage.names('avatars').includes(`${staying.id}/a.png`));
  });

  it('those that came late, too: a rescan finds them, and the ledger says so', async () => {
    await erased(server, own.plain);
    storage.add('avatars', [`${own.plain.user.id}/late.png`]);
    assert.equal((await cascade('rescan', own.plain.id)).code, 0);
    const part = await until('late object', async () => {
      const one = await partOf(own.plain);
      return one.late_rows === 1 && one;
    });
    assert.deepEqual([part.status, part.rows, left(own.plain)], ['done', 5, []]);
    await erased(server, own.plain);
    const facts = await db.query('select distinct kind, how, reported_by from reclaim.receipt_facts where customer_id = $1 and participant = $2', [own.plain.id, part.name]);
    assert.deepEqual(facts, [{ kind: 'storage', how: 'deleted', reported_by: 'reclaim' }]);
  });
});

describe('an API that fails', () => {
  const failsWith = async (customer, words) => {
    const part = await until(`failed: ${words}`, async () => {
      const one = await partOf(customer);
      return one.status === 'failed' && words.test(one.error) && one;
    });
    assert.equal((await ledger(server, customer.id)).json.status, 'pending');
    return part;
  };

  it('for one customer is not asked for ever, and that one fails; what it does not delete at once is asked for again', async () => {
    const cases = { forgets: /the same objects again and again/, endless: /more and more objects, and deletes none/, 'same page': /the same objects again and again/, 'no list': /no list of objects/ };
    const customers = {};
    for (const mode of [...Object.keys(cases), 'halves']) customers[mode] = await gone(many(120), { mode });
    assert.equal((await withStatus(customers.halves, 'done')).rows, 120);
    for (const [mode, words] of Object.entries(cases)) await failsWith(customers[mode], words);
    storage.modes.clear();
    await redrive();
    for (const mode of Object.keys(cases)) {
      const { rows } = await withStatus(customers[mode], 'done');
      assert.equal(rows, storage.claimed.get(customers[mode].user.id), `${mode}: as many as the API said, however often it was asked`);
      assert.deepEqual(left(customers[mode]), []);
    }
  });

  it('because of its limits, its key, or because there is no such bucket, says so in the receipt', async () => {
    storage.faults = [[429, { statusCode: '429', message: 'slow down' }]];
    const customer = await gone(['a.png']);
    await failsWith(customer, /answers 429/);
    storage.keys = ['another'];
    await redrive();
    await failsWith(customer, /refuses RECLAIM_STORAGE_KEY \(403\): it must be the project's secret or service_role key/);
    storage.keys = [FakeStorage.key];
    assert.equal((await cascade('add', 'typo', '--storage', 'avatar', '--past')).code, 0);
    await redrive();
    assert.equal((await withStatus(customer, 'done')).rows, 1);
    assert.match((await withStatus(customer, 'failed', 'typo')).error, /there is no bucket avatar, or/, 'an empty list is no proof');
    assert.equal((await cascade('disable', 'typo')).code, 0);
    assert.equal((await erased(server, customer)).participants.find((one) => one.name === 'typo').reason, 'the participant is disabled');
    assert.equal((await cascade('remove', 'typo')).code, 0);
  });

  it('in the middle, for a while, is asked again without help, and nothing is counted twice', async () => {
    storage.faults = [undefined, undefined, undefined, undefined, undefined, [503, 'Bad Gateway']];
    const customer = await gone(many(350));
    assert.equal((await failsWith(customer, /answers 503; it is asked again/)).rows, 200);
    assert.equal((await withStatus(customer, 'done')).rows, 350);
    assert.deepEqual(left(customer), []);
  });
});

describe('settings', () => {
  it('that would erase nothing stop the start, and doctor asks for each bucket', async () => {
    const attempt = (command, given) => run(stage, [command], { database: db, env: { ...storage.env, ...given } });
    for (const [given, words] of [
      [{ RECLAIM_STORAGE_URL: 'http://storage.example.com' }, /RECLAIM_STORAGE_URL: .*https/],
      [{ RECLAIM_STORAGE_KEY: null }, /RECLAIM_STORAGE_KEY is not set, but RECLAIM_STORAGE_URL is/],
      [{ RECLAIM_STORAGE_KEY: 'sb_publishable_abcdefghijkl' }, /RECLAIM_STORAGE_KEY: .*secret key/],
      [{ RECLAIM_STORAGE_KEY: tokenOf({ role: 'anon' }) }, /RECLAIM_STORAGE_KEY: .*secret key/],
    ]) {
      const { code, stderr } = await attempt('serve', given);
      assert.equal(code, 1, stderr);
      assert.match(stderr, words);
      assert.ok(!given.RECLAIM_STORAGE_KEY || !stderr.includes(given.RECLAIM_STORAGE_KEY));
    }
    for (const [given, words] of [
      [{}, /storage avatars: the bucket can be reached/],
      [{ RECLAIM_STORAGE_KEY: 'sb_secret_of_another_project' }, /participant avatars: the Storage API refuses RECLAIM_STORAGE_KEY/],
      [{ RECLAIM_STORAGE_URL: 'http://127.0.0.1:1/storage/v1' }, /participant avatars: the Storage API cannot be reached/],
      [{ RECLAIM_STORAGE_URL: storage.env.RECLAIM_STORAGE_URL.replace('/storage/v1/', '') }, /participant avatars: no Storage API is at RECLAIM_STORAGE_URL \(404\): on Supabase it ends in \/storage\/v1/],
      [{ RECLAIM_STORAGE_URL: null, RECLAIM_STORAGE_KEY: null }, /participant avatars: RECLAIM_STORAGE_URL and RECLAIM_STORAGE_KEY are not set/],
    ])
      assert.match((await attempt('doctor', given)).stdout, words);
  });

  it('that are missing are named by the receipt; a server that dies in the middle leaves the rest to the next one', async () => {
    storage.delayMs = 60;
    const customer = await gone(many(500));
    await until('begun', async () => (await partOf(customer)).rows > 0);
    await server.kill9();
    await db.query('update reclaim.work_items set leased_until = clock_timestamp()'); // as it is half a minute later
    server = await serve(stage, { database: db, env });
    const part = await withStatus(customer, 'failed');
    assert.match(part.error, /RECLAIM_STORAGE_URL and RECLAIM_STORAGE_KEY are not set/);
    assert.ok(part.rows < 500);
    await server.stop();
    storage.delayMs = 0;
    server = await serve(stage, { database: db, env: { ...env, ...storage.env } });
    await redrive();
    const { rows } = await withStatus(customer, 'done');
    assert.ok(rows >= 400 && rows <= 500, `${rows} counted: a page may be deleted and not noted`);
    assert.deepEqual(left(customer), []);
  });
});
