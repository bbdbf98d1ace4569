// API keys at the command line: shown once, stored as a keyed hash, revoked for good.

import assert from 'node:assert/strict';
import { createHmac, hkdfSync, randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { canaryKey } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

/** What must be stored of a key, computed without Reclaim. */
function hashOf(key) {
  const hasher = Buffer.from(hkdfSync('sha256', canaryKey, '', 'access key hash', 32));
  return createHmac('sha256', hasher).update(key).digest('hex');
}

describe('reclaim key', () => {
  const stage = new Stage();
  let db;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    const { code, stderr } = await run(stage, ['migrate'], { database: db });
    assert.equal(code, 0, stderr);
  });
  after(() => stage.end());

  const key = (t, ...args) => run(t, ['key', ...args], { database: db });
  const addCustomer = async (status = 'active') =>
    (await db.query('insert into reclaim.customer_customers (status) values ($1) returning id', [status]))[0].id;
  const create = async (t, customer, ...args) => {
    const { code, stdout, stderr } = await key(t, 'create', '--customer', customer, ...args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^rk_[\w-]{43}\n$/, 'the key stands alone on stdout');
    return { text: stdout.trim(), id: /its id is ([0-9a-f-]{36});/.exec(stderr)[1] };
  };
  const isLive = async (id) =>
    (await db.query('select revoked_at is null as live from reclaim.access_keys where id = $1', [id]))[0].live;

  it('create shows a key once and stores its keyed hash', async (t) => {
    const customer = await addCustomer();
    const made = await create(t, customer, '--name', 'the shop’s own');
    const [row] = await db.query('select * from reclaim.access_keys where customer_id = $1', [customer]);
    assert.equal(row.id, made.id);
    assert.equal(row.key_hash, hashOf(made.text));
    assert.equal(row.prefix, made.text.slice(0, 9));
    assert.equal(row.name, 'the shop’s own');
    assert.equal(row.revoked_at, null);
    assert.ok(!JSON.stringify(row).includes(made.text.slice(9)));
    const log = await db.query('select action, actor, actor_id, outcome from reclaim.customer_log where customer_id = $1', [customer]);
    assert.deepEqual(log, [{ action: 'key_create', actor: 'operator', actor_id: made.id, outcome: 'done' }]);
  });

  it('list tells every key of one customer, and none of another', async (t) => {
    const customer = await addCustomer();
    const first = await create(t, customer, '--name', 'first');
    const second = await create(t, customer);
    await create(t, await addCustomer());
    await key(t, 'revoke', first.id);
    const json = await key(t, 'list', '--customer', customer, '--format', 'json');
    assert.equal(json.code, 0, json.stderr);
    const items = JSON.parse(json.stdout);
    assert.deepEqual(
      items.map(({ id, prefix, name }) => ({ id, prefix, name })),
      [
        { id: first.id, prefix: first.text.slice(0, 9), name: 'first' },
        { id: second.id, prefix: second.text.slice(0, 9), name: '' },
      ],
    );
    assert.match(items[0].created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
    assert.match(items[0].revoked_at, /Z$/);
    assert.equal(items[1].revoked_at, null);
    assert.equal(items[1].last_used_at, null);
    const table = await key(t, 'list', '--customer', customer);
    assert.match(table.stdout, /^id +prefix +scope +name +created_at +last_used_at +expires_at +revoked_at\n/);
    assert.match(table.stdout, new RegExp(`^${second.id}  ${second.text.slice(0, 9)}  customer  - +\\S+Z  - +- +-$`, 'm'));
    assert.match(table.stdout, /\n2 keys\n$/);
    for (const { stdout } of [json, table])
      for (const made of [first, second]) assert.ok(!stdout.includes(made.text.slice(9)));
    const nobody = await key(t, 'list', '--customer', randomUUID(), '--format', 'json');
    assert.equal(nobody.stdout, '[]\n');
  });

  it('revoke ends one key by its id or by itself, once', async (t) => {
    const customer = await addCustomer();
    const byId = await create(t, customer);
    const byText = await create(t, customer);
    const kept = await create(t, customer);
    assert.equal((await key(t, 'revoke', byId.id, '--customer', customer)).stdout, '1 key revoked\n');
    assert.equal((await key(t, 'revoke', byText.text)).stdout, '1 key revoked\n');
    assert.deepEqual([await isLive(byId.id), await isLive(byText.id), await isLive(kept.id)], [false, false, true]);
    const again = await key(t, 'revoke', byId.id);
    assert.equal(again.code, 1);
    assert.match(again.stderr, /there is no such key, or it is revoked already/);
    const [{ count }] = await db.query("select count(*)::int from reclaim.customer_log where customer_id = $1 and action = 'key_revoke'", [customer]);
    assert.equal(count, 2);
  });

  it('revoke does not reach into another customer', async (t) => {
    const made = await create(t, await addCustomer());
    const other = await key(t, 'revoke', made.id, '--customer', await addCustomer());
    assert.equal(other.code, 1);
    assert.match(other.stderr, /no such key of this customer/);
    assert.equal(await isLive(made.id), true);
  });

  it('revoke ends all keys of a customer', async (t) => {
    const customer = await addCustomer();
    const keys = [await create(t, customer), await create(t, customer)];
    const other = await create(t, await addCustomer());
    assert.equal((await key(t, 'revoke', '--customer', customer)).stdout, '2 keys revoked\n');
    for (const one of keys) assert.equal(await isLive(one.id), false);
    assert.equal(await isLive(other.id), true);
    assert.equal((await key(t, 'revoke', '--customer', customer)).stdout, '0 keys revoked\n');
  });

  it('a customer that is not there, or is deleted, gets none', async (t) => {
    for (const customer of [randomUUID(), await addCustomer('deleted')]) {
      const { code, stdout, stderr } = await key(t, 'create', '--customer', customer);
      assert.equal(code, 1);
      assert.equal(stdout, '');
      assert.match(stderr, new RegExp(`there is no customer ${customer}, or it is deleted`));
    }
    await create(t, await addCustomer('frozen'));
  });

  const createScoped = async (t, ...args) => {
    const { code, stdout, stderr } = await key(t, 'create', ...args);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^rk_[\w-]{43}\n$/);
    return { text: stdout.trim(), id: /its id is ([0-9a-f-]{36});/.exec(stderr)[1] };
  };
  const rowOf = async ({ id }) =>
    (await db.query('select *, extract(epoch from expires_at - created_at)::float8 as life from reclaim.access_keys where id = $1', [id]))[0];

  it('a key for a program has a scope and no customer, and is listed without one', async (t) => {
    const made = await createScoped(t, '--scope', 'calls', '--expires', '90d', '--name', 'switch 1');
    const row = await rowOf(made);
    assert.deepEqual([row.scope, row.customer_id, row.name], ['calls', null, 'switch 1']);
    assert.ok(Math.abs(row.life - 90 * 86_400) < 60);
    await create(t, await addCustomer());
    const items = JSON.parse((await key(t, 'list', '--format', 'json')).stdout);
    assert.deepEqual(items.map(({ id, scope }) => ({ id, scope })), [{ id: made.id, scope: 'calls' }]);
    assert.match(items[0].expires_at, /Z$/);
    const log = await db.query('select customer_id, action, actor from reclaim.customer_log where actor_id = $1', [made.id]);
    assert.deepEqual(log, [{ customer_id: null, action: 'key_create', actor: 'operator' }]);
    assert.equal((await key(t, 'revoke', made.text)).stdout, '1 key revoked\n');
  });

  it('rotate makes another key for the same, and lets the old one work on for the grace', async (t) => {
    const customer = await addCustomer();
    for (const old of [await createScoped(t, '--scope', 'receipts:archive', '--expires', '90d', '--name', 'n'), await create(t, customer, '--name', 'n')]) {
      const before = await rowOf(old);
      const { code, stdout, stderr } = await key(t, 'rotate', old.id, '--grace', '2h');
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^rk_[\w-]{43}\n$/);
      const [was, now] = [await rowOf(old), await rowOf({ id: /its id is ([0-9a-f-]{36});/.exec(stderr)[1] })];
      assert.deepEqual([now.scope, now.customer_id, now.name], [before.scope, before.customer_id, 'n']);
      assert.equal(now.key_hash, hashOf(stdout.trim()));
      assert.equal(now.life === null, before.life === null);
      if (before.life !== null) assert.ok(Math.abs(now.life - before.life) < 60, 'it lives as long as the old one was to');
      assert.ok(Math.abs(was.expires_at - Date.now() - 7_200_000) < 300_000, String(was.expires_at));
      assert.equal(was.revoked_at, null);
    }
  });

  it('rotate never lengthens the old key’s life, and rotates none that is over', async (t) => {
    const short = await createScoped(t, '--scope', 'read', '--expires', '10m');
    const { expires_at: end } = await rowOf(short);
    assert.equal((await key(t, 'rotate', short.text, '--grace', '90d', '--expires', '30d')).code, 0);
    assert.deepEqual((await rowOf(short)).expires_at, end);
    const over = await createScoped(t, '--scope', 'read');
    assert.equal((await key(t, 'rotate', over.id, '--grace', '0s')).code, 0);
    const revoked = await createScoped(t, '--scope', 'read');
    await key(t, 'revoke', revoked.id);
    const customer = await addCustomer();
    const gone = await create(t, customer);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer]);
    for (const { id } of [over, revoked, gone, { id: randomUUID() }]) {
      const { code, stdout, stderr } = await key(t, 'rotate', id);
      assert.deepEqual([code, stdout], [1, ''], stderr);
      assert.match(stderr, /there is no such key, or it is revoked, has expired or is a deleted customer's/);
    }
  });

  it('the table refuses a scope that is none, a customer beside a scope, and a key of neither', async () => {
    const customer = await addCustomer();
    for (const [scope, whose, end] of [
      ['everything', null, null],
      ['calls', customer, null],
      ['customer', null, null],
      ['receipts:', null, null],
      ['calls', null, 'infinity'],
    ])
      await assert.rejects(
        db.query('insert into reclaim.access_keys (scope, customer_id, key_hash, expires_at) values ($1, $2, $3, $4)', [scope, whose, randomUUID(), end]),
        /violates check constraint/,
      );
  });

  it('another master key than the database’s makes no keys', async (t) => {
    await db.query("update reclaim.installation set key_fingerprint = 'another'");
    t.after(() => db.query('update reclaim.installation set key_fingerprint = null'));
    const { code, stderr } = await key(t, 'create', '--customer', await addCustomer());
    assert.equal(code, 1);
    assert.match(stderr, /another RECLAIM_SECRET_KEY/);
  });

  const id = randomUUID();
  for (const args of [
    [],
    ['make', '--customer', id],
    ['create'],
    ['create', '--customer', 'x'],
    ['create', id, '--customer', id],
    ['create', '--customer', id, '--name', 'a\nb'],
    ['create', '--customer', id, '--name', 'n'.repeat(101)],
    ['create', '--customer', id, '--format', 'json'],
    ['list', '--customer', id, '--format', 'xml'],
    ['list', '--customer', id, '--name', 'x'],
    ['revoke'],
    ['revoke', 'rk_short'],
    ['create', '--customer', id, '--scope', 'admin'],
    ['create', '--scope', 'everything'],
    ['create', '--scope', 'customer'],
    ['create', '--scope', 'receipts:'],
    ['create', '--scope', 'receipts:With Capitals'],
    ['create', '--scope', `receipts:${'n'.repeat(64)}`],
    ['create', '--scope', 'read', '--expires', 'soon'],
    ['create', '--scope', 'read', '--expires', '0s'],
    ['create', '--scope', 'read', '--grace', '1h'],
    ['rotate'],
    ['rotate', id, '--scope', 'admin'],
    ['rotate', id, '--customer', id],
    ['rotate', id, '--grace', 'x'],
    ['revoke', id, '--expires', '1d'],
    ['list', '--scope', 'admin'],
  ])
    it(`«reclaim key ${args.join(' ').slice(0, 60)}» is not understood`, async (t) => {
      const { code, stdout, stderr } = await key(t, ...args);
      assert.equal(code, 2);
      assert.equal(stdout, '');
      assert.equal(stderr.trim().split('\n').length, 1, stderr);
    });

  it('has help', async (t) => {
    const { code, stdout } = await key(t, '--help');
    assert.equal(code, 0);
    assert.match(stdout, /^Usage: reclaim key create\|rotate\|revoke\|list/);
  });
});
