// Members of customers and owners of several: over the API, at the command line, in plain SQL, and at the end of a customer.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { addCustomer, addKey, asAdmin, asKey, assertError, asUser, auditOf, bearer, list, rowOf, scene, show, tokenOf } from './lib/customers.js';
import { request } from './lib/http.js';
import { addUser, address } from './lib/people.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';
import { temporaryDirectory } from './lib/place.js';

const stage = new Stage();
let db, server;
before(async () => {
  ({ db, server } = await scene(stage));
});
after(async () => {
  // Imported customers have the addresses of their users, which the canary looks for everywhere but in auth.users.
  await db.query(`update reclaim.customer_customers set email = '' where email like '%@canary-reclaim.example.com'`);
  await stage.end();
});

const confirmed = '2025-10-02T00:00:00Z';
const call = (method, path, body, headers = asAdmin()) =>
  request(server, { method, path, headers: { 'Content-Type': 'application/json', ...headers }, body: typeof body === 'object' ? JSON.stringify(body) : body });
const create = (body, headers) => call('POST', '/v1/customers', body, headers);
const members = (customer, query = '', headers) => call('GET', `/v1/customers/${customer.id}/members${query}`, undefined, headers);
const add = (customer, body, headers) => call('POST', `/v1/customers/${customer.id}/members`, body, headers);
const remove = (customer, user, headers) => call('DELETE', `/v1/customers/${customer.id}/members/${user.id}`, undefined, headers);
const erase = (customer) => call('DELETE', `/v1/customers/${customer.id}`);
const isThere = async (user) => (await db.query('select from auth.users where id = $1 and deleted_at is null', [user.id])).length === 1;
const ended = (user) => db.query(`select changed_xid from reclaim.gate_ended where kind = 'user' and id = $1`, [user.id]);
const idsOf = ({ json }) => json.items.map(({ id }) => id);

describe('POST /v1/customers', () => {
  it('creates a customer, one more for an owner who has one, and logs it', async () => {
    const first = await addCustomer(db);
    const answer = await create({ name: 'Branch', email: ' Branch@Customers.Example.Com ', owner_user_id: first.user.id });
    assert.equal(answer.status, 201, answer.body);
    assert.equal(answer.headers.location, `/v1/customers/${answer.json.id}`);
    assert.deepEqual([answer.json.name, answer.json.email, answer.json.status], ['Branch', 'branch@customers.example.com', 'active']);
    assert.deepEqual((await show(server, answer.json.id)).json, answer.json);
    assert.equal((await rowOf(db, answer.json)).owner_user_id, first.user.id);
    const [row] = await auditOf(db, answer.json);
    assert.deepEqual([row.action, row.actor, row.outcome, row.correlation_id], ['create', 'admin', 'done', answer.headers['x-correlation-id']]);
    const bare = await create({});
    assert.equal(bare.status, 201, bare.body);
    assert.deepEqual([bare.json.name, bare.json.email], ['', '']);
  });

  it('refuses values that are wrong, and an owner who is not there', async () => {
    const [{ n: before }] = await db.query('select count(*) as n from reclaim.customer_customers');
    for (const body of ['', '[]', '{', '"x"']) assertError(await create(body), 400, 'INVALID_BODY');
    assertError(await create({ name: 7 }), 400, 'INVALID_NAME');
    assertError(await create({ name: 'n'.repeat(1001) }), 400, 'INVALID_NAME');
    assertError(await create({ email: 'nobody' }), 400, 'INVALID_EMAIL');
    assertError(await create({ email: `${'a'.repeat(250)}@example.com` }), 400, 'INVALID_EMAIL');
    assertError(await create({ owner_user_id: 'me' }), 400, 'INVALID_ID');
    assertError(await create({ owner_user_id: randomUUID() }), 400, 'OWNER_UNKNOWN');
    const gone = await addUser(db, { confirmed, deleted: confirmed });
    assertError(await create({ owner_user_id: gone.id }), 400, 'OWNER_UNKNOWN');
    assert.deepEqual(await db.query('select count(*) as n from reclaim.customer_customers'), [{ n: before }]);
  });

  it('says when a rule of the table itself refuses the row', async () => {
    await db.query(`alter table reclaim.customer_customers add constraint no_forbidden check (name <> 'Forbidden')`);
    assertError(await create({ name: 'Forbidden' }), 409, 'CUSTOMER_REFUSED');
    await db.query('alter table reclaim.customer_customers drop constraint no_forbidden');
  });
});

describe('members over the API', () => {
  it('are added, listed in pages, changed and removed; each is in the audit and announced to the gates', async () => {
    const customer = await addCustomer(db);
    const users = [];
    for (let i = 0; i < 3; i++) users.push(await addUser(db, { confirmed }));
    users.sort((a, b) => (a.id < b.id ? -1 : 1));
    for (const user of users) {
      const answer = await add(customer, { user_id: user.id });
      assert.equal(answer.status, 201, answer.body);
      assert.deepEqual([answer.json.user_id, answer.json.role, answer.json.email], [user.id, 'member', user.email]);
      assert.equal((await ended(user)).length, 1, 'a cached "no customer" goes');
    }
    const again = await add(customer, { user_id: users[0].id.toUpperCase(), role: 'billing' });
    assert.equal(again.status, 200, again.body);
    assert.equal(again.json.role, 'billing');
    assert.equal((await add(customer, { user_id: users[0].id })).json.role, 'billing', 'without a role it keeps the one it has');

    const first = await members(customer, '?limit=2');
    assert.deepEqual(first.json.items.map(({ user_id }) => user_id), users.slice(0, 2).map(({ id }) => id));
    assert.equal(first.json.next, users[1].id);
    const second = await members(customer, `?limit=2&after=${first.json.next}`);
    assert.deepEqual(second.json, { items: [(await add(customer, { user_id: users[2].id })).json], next: null });

    const removed = await remove(customer, users[1]);
    assert.equal(removed.status, 200, removed.body);
    assert.equal(removed.json.user_id, users[1].id);
    assert.equal((await ended(users[1])).length, 2);
    assertError(await remove(customer, users[1]), 404, 'MEMBER_NOT_FOUND');
    assert.deepEqual((await members(customer)).json.items.map(({ user_id }) => user_id), [users[0].id, users[2].id]);

    const audit = await db.query(
      `select action, actor, outcome, detail from reclaim.customer_log where customer_id = $1 and action like 'member%' order by id`, [customer.id]);
    assert.deepEqual(audit.slice(0, 4).map(({ action, outcome }) => [action, outcome]),
      [['member_add', 'done'], ['member_add', 'done'], ['member_add', 'done'], ['member_add', 'unchanged']]);
    assert.deepEqual(audit.slice(-2), [
      { action: 'member_remove', actor: 'admin', outcome: 'done', detail: users[1].id },
      { action: 'member_remove', actor: 'admin', outcome: 'unknown', detail: users[1].id },
    ]);
  });

  it('of no customer, a deleted one, or of no user are refused', async () => {
    const [customer, user] = [await addCustomer(db), await addUser(db, { confirmed })];
    const nobody = { id: randomUUID() };
    assertError(await members(nobody), 404, 'CUSTOMER_NOT_FOUND');
    assertError(await members({ id: 'x' }), 400, 'INVALID_ID');
    assertError(await members(customer, '?after=x'), 400, 'INVALID_ID');
    assertError(await members(customer, '?limit=0'), 400, 'INVALID_LIMIT');
    assertError(await add(nobody, { user_id: user.id }), 404, 'CUSTOMER_NOT_FOUND');
    assertError(await add(customer, { user_id: randomUUID() }), 400, 'USER_UNKNOWN');
    assertError(await add(customer, { user_id: 'me' }), 400, 'INVALID_ID');
    assertError(await add(customer, {}), 400, 'INVALID_ID');
    assertError(await add(customer, '[]'), 400, 'INVALID_BODY');
    for (const role of ['owner', 'Admin', '', 7, 'a'.repeat(64)])
      assertError(await add(customer, { user_id: user.id, role }), 400, 'INVALID_ROLE');
    assertError(await remove(nobody, user), 404, 'CUSTOMER_NOT_FOUND');
    assertError(await remove(customer, { id: 'x' }), 400, 'INVALID_ID');
    assert.deepEqual((await members(customer)).json, { items: [], next: null });
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [customer.id]);
    assertError(await add(customer, { user_id: user.id }), 409, 'CUSTOMER_DELETED');
  });

  it('and new customers are an admin’s business', async (t) => {
    const customer = await addCustomer(db);
    const key = asKey(await addKey(t, db, customer));
    for (const headers of [asUser(customer.user.id), key]) {
      assertError(await create({}, headers), 403, 'FORBIDDEN');
      assertError(await members(customer, '', headers), 403, 'FORBIDDEN');
      assertError(await add(customer, { user_id: customer.user.id }, headers), 403, 'FORBIDDEN');
      assertError(await remove(customer, customer.user, headers), 403, 'FORBIDDEN');
    }
    assertError(await create({}, bearer('nonsense')), 401, 'INVALID_TOKEN');
    assert.equal((await create({}, bearer(tokenOf({ sub: randomUUID(), app_metadata: { role: 'admin' } })))).status, 201);
  });

  it('one that is added while its customer is deleted is either gone with it or refused', async (t) => {
    const [customer, user] = [await addCustomer(db), await addUser(db, { confirmed })];
    const program = await db.session(t);
    await program.query('begin');
    await program.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [customer.id, user.id]);
    const deleting = erase(customer);
    const waiting = `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await until('the deletion waiting for the member', async () => (await db.query(waiting)).length > 0);
    await program.query('commit');
    assert.equal((await deleting).status, 200);
    assert.equal(await isThere(user), false);
    assert.deepEqual(await db.query('select from reclaim.customer_members where user_id = $1', [user.id]), []);
    await assert.rejects(
      program.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $2)', [customer.id, user.id]), /is deleted/);
  });
});

describe('at the end of a customer', () => {
  it('logins of members go, but of those who own or belong to another that is not deleted', async () => {
    const [customer, other] = [await addCustomer(db), await addCustomer(db)];
    const [only, both] = [await addUser(db, { confirmed }), await addUser(db, { confirmed })];
    for (const user of [only, both, other.user]) await add(customer, { user_id: user.id });
    await add(other, { user_id: both.id });
    assert.equal((await erase(customer)).status, 200);
    assert.deepEqual(await Promise.all([customer.user, only, both, other.user].map(isThere)), [false, false, true, true]);
    assert.deepEqual((await members(customer)).json.items, []);
    assert.equal((await erase(other)).status, 200);
    assert.deepEqual(await Promise.all([both, other.user].map(isThere)), [false, false]);
  });

  it('an owner of two keeps its login until the second is deleted', async () => {
    const first = await addCustomer(db);
    const second = (await create({ owner_user_id: first.user.id })).json;
    assert.equal((await erase(first)).status, 200);
    assert.equal(await isThere(first.user), true);
    assert.equal((await erase(second)).status, 200);
    assert.equal(await isThere(first.user), false);
  });

  it('two deletions at the same time that share a member do not both leave its login', async () => {
    for (let round = 0; round < 10; round++) {
      const [one, two] = [await addCustomer(db), await addCustomer(db)];
      const user = await addUser(db, { confirmed });
      await db.query('insert into reclaim.customer_members (customer_id, user_id) values ($1, $3), ($2, $3)', [one.id, two.id, user.id]);
      const answers = await Promise.all([erase(one), erase(two)]);
      assert.deepEqual(answers.map(({ status }) => status), [200, 200]);
      assert.equal(await isThere(user), false);
    }
  });
});

describe('GET /v1/customers', () => {
  it('finds by id, by how name or address begins, by legal hold and by status', async () => {
    const tag = `Q${randomUUID().slice(0, 8)}`;
    const one = await addCustomer(db, { name: `${tag} One%`, email: `${tag.toLowerCase()}.one@customers.example.com` });
    const two = await addCustomer(db, { name: `${tag.toLowerCase()}_two`, email: `TWO.${tag}@customers.example.com` });
    const all = [one.id, two.id].sort();
    assert.deepEqual(idsOf(await list(server, `?q=${one.id.toUpperCase()}`)), [one.id]);
    assert.deepEqual(idsOf(await list(server, `?q=${tag.toUpperCase()}`)), all);
    assert.deepEqual(idsOf(await list(server, `?q=${encodeURIComponent(`${tag} one%`)}`)), [one.id]);
    assert.deepEqual(idsOf(await list(server, `?q=two.${tag}%40CUSTOMERS`)), [two.id]);
    assert.deepEqual(idsOf(await list(server, `?q=${tag}%25`)), [], 'no pattern');
    const page = await list(server, `?q=${tag}&limit=1`);
    assert.deepEqual([idsOf(page), page.json.next], [all.slice(0, 1), all[0]]);
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&limit=1&after=${all[0]}`)), all.slice(1));

    assert.deepEqual(idsOf(await list(server, `?q=${tag}&held=1`)), []);
    assert.equal((await call('POST', `/v1/customers/${two.id}/hold`, { reason: 'case 7' })).status, 200);
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&held=1`)), [two.id]);
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&held=0`)), all);
    assert.ok(idsOf(await list(server, '?held=1')).includes(two.id));
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&held=1&status=frozen`)), []);

    assertError(await list(server, '?held=yes'), 400, 'INVALID_HELD');
    assert.deepEqual(idsOf(await list(server, `?q=${tag}+%6fne`)), [one.id], 'a space as +');
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&held=%31`)), [two.id]);
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&limit=%31&after=${all[0].replaceAll('-', '%2D')}`)), all.slice(1));
    assert.deepEqual(idsOf(await list(server, `?q=${tag}&status=%61ctive`)), all);
    for (const [query, code] of [
      ['status=active%', 'INVALID_STATUS'],
      ['held=%3', 'INVALID_HELD'],
      ['limit=%zz1', 'INVALID_LIMIT'],
      ['after=%00', 'INVALID_ID'],
    ])
      assertError(await list(server, `?${query}`), 400, code);
    assert.equal((await call('GET', `/v1/customers/${one.id.replaceAll('-', '%2d')}`)).json.id, one.id);
    for (const id of ['%zz', '%', `${one.id}%4`, '%ff%fe', '%00']) assertError(await call('GET', `/v1/customers/${id}`), 400, 'INVALID_ID');
    assertError(await call('GET', '/v1/customers/a%2Fb'), 400, 'INVALID_ID');
    assertError(await list(server, `?q=${'x'.repeat(401)}`), 400, 'INVALID_QUERY');
    for (const text of ['%ff%fe', '%zz', '%', '%4', 'a%00b']) assertError(await list(server, `?q=${text}`), 400, 'INVALID_QUERY');
    assert.equal((await list(server, `?q=${'x'.repeat(400)}`)).status, 200);
  });

  it('finds by the beginning of a text with an index, however many customers there are', async () => {
    await db.query(`insert into reclaim.customer_customers (name, email) select 'Crowd ' || n, 'crowd' || n || '@customers.example.com' from generate_series(1, 5000) n`);
    await db.query('analyze reclaim.customer_customers');
    const plan = await db.query(
      `explain select id from reclaim.customer_customers c where c.status <> 'deleted' and (lower("left"(c.name, 100)) like 'crowd 4999%' or lower("left"(c.email, 100)) like 'crowd 4999%') order by id limit 51`);
    const text = plan.map((row) => row['QUERY PLAN']).join('\n');
    assert.match(text, /customer_by_name[^]*customer_by_email/);
    assert.equal(idsOf(await list(server, '?q=crowd%204999')).length, 1);
  });
});

describe('reclaim customers', () => {
  const reclaim = (...args) => run(stage, ['customers', ...args], { database: db, directory: server.home });
  const done = async (...args) => {
    const { code, stdout, stderr } = await reclaim(...args);
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const json = async (...args) => JSON.parse(await done(...args, '--format', 'json'));
  const fails = async (code, why, ...args) => {
    const result = await reclaim(...args);
    assert.equal(result.code, code, `${args.join(' ')}: ${result.stdout}`);
    assert.match(result.stderr, why);
    assert.equal(result.stdout, '');
    return result.stderr;
  };
  const file = (text) => {
    const at = path.join(temporaryDirectory(stage), 'customers.csv');
    fs.writeFileSync(at, text);
    return at;
  };
  const named = (prefix) => db.query('select name, email, owner_user_id from reclaim.customer_customers where name like $1 order by name', [`${prefix}%`]);

  it('list and members do what the API does, with an audit of their own', async () => {
    const customer = await addCustomer(db, { name: 'Command One' });
    const user = await addUser(db, { confirmed });
    const [row] = await json('list', '--q', 'command one', '--status', 'active');
    assert.deepEqual([row.id, row.name, row.status, row.owner_user_id, row.held_since], [customer.id, 'Command One', 'active', customer.user.id, null]);
    assert.deepEqual(await json('list', '--q', customer.id, '--held'), []);
    await call('POST', `/v1/customers/${customer.id}/hold`, { reason: 'case 8' });
    assert.equal((await json('list', '--q', customer.id, '--held'))[0].hold_reason, 'case 8');

    assert.equal(JSON.parse(await done('members', customer.id, 'add', user.id, '--role', 'billing')).role, 'billing');
    assert.deepEqual((await json('members', customer.id)).map(({ user_id, role, email }) => [user_id, role, email]), [[user.id, 'billing', user.email]]);
    assert.equal(JSON.parse(await done('members', customer.id, 'remove', user.id)).user_id, user.id);
    await fails(1, /is no member/, 'members', customer.id, 'remove', user.id);
    await fails(1, /no customer/, 'members', randomUUID());
    await fails(1, /no user/, 'members', customer.id, 'add', randomUUID());
    assert.deepEqual((await auditOf(db, customer)).filter(({ action }) => action.startsWith('member')).map(({ actor, outcome }) => [actor, outcome]),
      [['operator', 'done'], ['operator', 'done'], ['operator', 'unknown'], ['operator', 'user_unknown']]);
  });

  for (const args of [[], ['forget'], ['list', 'all'], ['list', '--status', 'gone'], ['list', '--role', 'x'], ['list', '--q', ''], ['members'],
    ['members', 'x'], ['members', randomUUID(), 'add'], ['members', randomUUID(), 'add', 'x'], ['members', randomUUID(), 'forget', randomUUID()],
    ['members', randomUUID(), 'add', randomUUID(), '--role', 'owner'], ['members', randomUUID(), 'remove', randomUUID(), '--role', 'x'], ['import'],
    ['import', 'a.csv', '--from-users'], ['import', 'a.csv', '--format', 'csv'], ['import', 'a.csv', '--held']])
    it(`${args.map((arg) => (arg.length === 36 ? 'ID' : `"${arg}"`)).join(' ')} is not understood`, async () => {
      await fails(2, /reclaim customers:/, ...args);
    });

  it('import FILE makes customers once, however often it is repeated', async () => {
    const owner = await addUser(db, { confirmed });
    const at = file(`\ufeffowner_user_id,name,email\r\n${owner.id},"Import ""A"", Ltd\nsecond line",A@Customers.Example.Com\r\n\r\n,Import B,\r\n`);
    assert.equal(await done('import', at, '--dry-run'), '{"imported":0,"due":2}\n');
    assert.deepEqual(await named('Import'), []);
    assert.equal(await done('import', at), '{"imported":2,"skipped":0}\n');
    assert.deepEqual(await named('Import'), [
      { name: 'Import "A", Ltd\nsecond line', email: 'a@customers.example.com', owner_user_id: owner.id },
      { name: 'Import B', email: '', owner_user_id: null },
    ]);
    assert.equal(await done('import', at), '{"imported":0,"skipped":2}\n');
    assert.equal((await named('Import')).length, 2);
    const log = await db.query(`select distinct actor, outcome from reclaim.customer_log where action = 'import'`);
    assert.deepEqual(log, [{ actor: 'operator', outcome: 'done' }]);
  });

  it('import FILE names the lines that are wrong, and imports none of them nor any other', async () => {
    const stranger = randomUUID();
    const rows = Array.from({ length: 600 }, (_, n) => `Wrong ${n},,`);
    const at = file(['name,email,owner_user_id', ...rows, 'Wrong x,nobody,', `Wrong y,,${stranger}`, 'Wrong z,,me', ',,', 'Wrong w'].join('\n'));
    const stderr = await fails(1, /5 lines are wrong; nothing was imported/, 'import', at);
    for (const line of ['line 602: the email is no address', 'line 603: the owner_user_id is not in auth.users', 'line 604: the owner_user_id is no UUID',
      'line 605: nothing is given', 'line 606: not as many fields as columns'])
      assert.ok(stderr.includes(line), `${line} in ${stderr}`);
    assert.deepEqual(await named('Wrong'), []);
    await fails(1, /the columns are name, email and owner_user_id/, 'import', file('name,phone\nx,1\n'));
    await fails(1, /a quote is not closed/, 'import', file('name\n"Wrong\n'));
    await fails(1, /empty/, 'import', file(''));
    await fails(1, /cannot be read/, 'import', path.join(temporaryDirectory(stage), 'none.csv'));
  });

  it('import FILE is all or nothing for each batch, and goes on where it stopped', async () => {
    await db.query(`alter table reclaim.customer_customers add constraint no_seven check (name <> 'Batch 0700')`);
    const at = file(['name', ...Array.from({ length: 1200 }, (_, n) => `Batch ${String(n).padStart(4, '0')}`)].join('\n'));
    await fails(1, /lines 502 to 1001 were refused/, 'import', at);
    assert.equal((await named('Batch')).length, 500);
    await db.query('alter table reclaim.customer_customers drop constraint no_seven');
    assert.equal(await done('import', at), '{"imported":700,"skipped":500}\n');
    await db.query(`delete from reclaim.customer_customers where name like 'Batch %'`);
  });

  it('import --from-users gives each confirmed user without a customer one, once, also when two run at the same time', async () => {
    const users = [];
    for (let n = 0; n < 3; n++) users.push(await addUser(db, { confirmed, email: address(`import${n}`) }));
    const kept = [await addUser(db), await addUser(db, { confirmed, deleted: confirmed }), await addUser(db, { confirmed, anonymous: true })];
    const [customer, member] = [await addCustomer(db), await addUser(db, { confirmed })];
    await add(customer, { user_id: member.id });
    const former = await addCustomer(db);
    await db.query(`update reclaim.customer_customers set status = 'deleted' where id = $1`, [former.id]);
    const due = JSON.parse(await done('import', '--from-users', '--dry-run')).due;
    assert.ok(due >= 3);
    const both = await Promise.all([done('import', '--from-users'), done('import', '--from-users')]);
    assert.equal(both.reduce((sum, text) => sum + JSON.parse(text).imported, 0), due);
    const of = (list) => db.query('select email, owner_user_id from reclaim.customer_customers where owner_user_id = any ($1) order by email', [list.map(({ id }) => id)]);
    assert.deepEqual(await of(users), users.map(({ id, email }) => ({ email, owner_user_id: id })));
    assert.deepEqual(await of([...kept, member]), []);
    assert.equal((await of([former.user])).length, 1, 'whoever was deleted is not a customer again');
  });
});
