// Rows that other programs wrote in plain SQL, with texts far larger than the API accepts: nothing that happened is
// reported as failed, and lists go on. And clients that leave before the answer.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { listCalls, over, rowsOf, showCall, sip, talking } from './lib/calls.js';
import { addCustomer, asAdmin, eventsOf, freeze, list, recover, rowOf, scene, show } from './lib/customers.js';
import { FakeSwitch } from './lib/fake-switch.js';
import { request } from './lib/http.js';
import { RawConnection } from './lib/raw.js';
import { run } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const stage = new Stage();
const kB = 1000;
let db, server, provider, bench;
before(async () => {
  bench = await FakeSwitch.start(stage);
  ({ db, server, provider } = await scene(stage, { settings: bench.env }));
});
after(() => stage.end());

const remove = (customer) => request(server, { method: 'DELETE', path: `/v1/customers/${customer.id}`, headers: asAdmin() });
const hold = (customer) =>
  request(server, {
    method: 'POST',
    path: `/v1/customers/${customer.id}/hold`,
    headers: { ...asAdmin(), 'Content-Type': 'application/json' },
    body: '{"reason":"a case"}',
  });
const mailsTo = (address) => provider.attempts.filter(({ mail }) => mail.to === address);

/** Every page of a list: its sizes in bytes, and its items. */
async function pages(read, query) {
  const found = { bytes: [], items: [] };
  for (let after; after !== null; ) {
    const answer = await read(server, `?${query}${after ? `&after=${after}` : ''}`);
    assert.equal(answer.status, 200, answer.body.slice(0, 200));
    assert.ok(answer.json.items.length > 0);
    found.bytes.push(answer.body.length);
    found.items.push(...answer.json.items);
    after = answer.json.next;
  }
  return found;
}

describe('a customer with a large text', () => {
  it('is frozen, held, recovered and deleted as any other, each answer with the whole object', async () => {
    const detail = 'é"\\ of 300 kB '.repeat(20 * kB);
    const customer = await addCustomer(db, { detail });
    const frozen = await freeze(server, customer.id);
    assert.equal(frozen.status, 200, frozen.body.slice(0, 200));
    assert.equal(frozen.json.status, 'frozen');
    assert.equal(frozen.json.detail, detail);
    const unchanged = await freeze(server, customer.id);
    assert.equal(unchanged.json.detail, detail);
    assert.equal((await show(server, customer.id)).json.detail, detail);
    assert.equal((await hold(customer)).json.detail, detail);
    const shown = await run(stage, ['show', customer.id], { database: db });
    assert.equal(JSON.parse(shown.stdout).detail, detail, shown.stderr);
    const recovered = await recover(server, customer.id);
    assert.equal(recovered.json.detail, detail);
    await until('the mails', () => mailsTo(customer.email).length === 2);
    await db.query('update reclaim.customer_customers set hold_at = null, hold_reason = null where id = $1', [customer.id]);
    const deleted = await remove(customer);
    assert.equal(deleted.status, 200, deleted.body.slice(0, 200));
    assert.equal((await rowOf(db, customer)).detail, '');
    assert.deepEqual((await eventsOf(db, customer)).map(({ type }) => type), ['customer_frozen', 'customer_recovered', 'customer_deleted']);
  });

  it('of many megabytes, in any field, is shown by its beginning', async () => {
    const huge = '\u0001'.repeat(2_000 * kB);
    const customer = await addCustomer(db, { detail: `the start ${huge}`, name: huge, address: 'ü'.repeat(3_000 * kB) });
    const frozen = await freeze(server, customer.id);
    assert.equal(frozen.status, 200, frozen.body.slice(0, 200));
    assert.match(frozen.json.detail, /^the start \u0001{990}…$/);
    assert.match(frozen.json.address, /^ü{1000}…$/);
    assert.equal((await show(server, customer.id)).json.status, 'frozen');
    const [event] = await eventsOf(db, customer);
    assert.equal(event.payload.detail, frozen.json.detail);
    const again = await run(stage, ['recover', customer.id], { database: db });
    assert.equal(again.code, 0, again.stderr);
    assert.equal((await remove(customer)).status, 200);
  });

  it('is in the list, whose pages are shorter then', async () => {
    const ids = await db.query(
      `insert into reclaim.customer_customers (name, detail, status)
       select 'large', repeat(md5(n::text), 9375), 'frozen' from generate_series(1, 40) n returning id`,
    );
    const found = await pages(list, 'limit=200&status=frozen');
    const items = found.items.filter(({ name }) => name === 'large');
    assert.deepEqual(items.map(({ id }) => id).sort(), ids.map(({ id }) => id).sort());
    assert.ok(items.every(({ detail }) => detail.length === 300 * kB));
    assert.ok(found.bytes.length >= 3, `${found.bytes}`);
    assert.ok(Math.max(...found.bytes) <= 4_300 * kB, `${found.bytes}`);
  });

  it('with an address that is none gets no mail, and keeps no other customer from being deleted', async (t) => {
    const odd = await addCustomer(db, { email: `${'a'.repeat(100 * kB)}@customers.example.com` });
    const next = await addCustomer(db);
    for (const { id } of [odd, next]) assert.equal((await freeze(server, id)).status, 200);
    await until('the other one’s mail', () => mailsTo(next.email).length === 1);
    const of = [odd.id, next.id];
    await db.query(`update reclaim.customer_customers set tm_deletion_scheduled = now() - interval '1 year' where id = any($1)`, [of]);
    const expired = await run(t, ['expire'], { database: db });
    assert.equal(expired.code, 0, expired.stderr);
    assert.deepEqual(await db.query(`select 1 from reclaim.customer_customers where id = any($1) and status <> 'deleted'`, [of]), []);
    assert.ok(provider.attempts.every(({ mail }) => mail.to.length < 400));
  });
});

describe('a call with large texts', () => {
  it('is shown, and is in the list', async () => {
    const customer = await addCustomer(db);
    const [{ id }] = await db.query(
      `insert into reclaim.call_calls (customer_id, direction, source, destination, status, tm_hangup)
       select $1, 'outgoing', repeat('1', 300000), n, 'hangup', now() from generate_series(1, 20) n returning id`,
      [customer.id],
    );
    const shown = await showCall(server, id);
    assert.equal(shown.json.source.length, 300 * kB, shown.body.slice(0, 200));
    await db.query(`update reclaim.call_calls set source = repeat('2', 20000000) where id = $1`, [id]);
    const found = await pages(listCalls, `limit=100&customer_id=${customer.id}`);
    assert.equal(found.items.length, 20);
    assert.match(found.items.find((call) => call.id === id).source, /^2{1000}…$/);
    assert.ok(found.bytes.length >= 2 && Math.max(...found.bytes) <= 4_300 * kB, `${found.bytes}`);
  });
});

describe('calls with tags that no switch gives', () => {
  it('keep no other call of a frozen customer from being ended', async () => {
    const customer = await addCustomer(db);
    await db.query(
      `insert into reclaim.call_calls (id, customer_id, direction, status, sip_call_id, from_tag)
       select ('00000000-0000-4000-8000-00000000000' || n)::uuid, $1, 'outgoing', 'progressing', 'odd' || n, repeat('a', 200000)
       from generate_series(1, 4) n`,
      [customer.id],
    );
    const call = await talking(server, customer, sip());
    bench.has([call]);
    assert.equal((await freeze(server, customer.id)).status, 200);
    await over(server, call.id);
    await until('all of them', async () => (await rowsOf(db, customer)).every(({ status }) => status === 'hangup'));
  });
});

describe('a request with values as long as it may have', () => {
  it('is carried out and logged as any other', async () => {
    const customer = await addCustomer(db);
    const send = (body) =>
      request(server, {
        method: 'POST',
        path: `/v1/customers/${customer.id}/freeze`,
        headers: { ...asAdmin(), 'Content-Type': 'application/json', 'X-Correlation-Id': 'c'.repeat(8 * kB) },
        body,
      });
    assert.equal((await send(JSON.stringify({ reason: 'x'.repeat(15 * kB) }))).status, 400);
    assert.equal((await send(JSON.stringify({ reason: 'x'.repeat(17 * kB) }))).status, 413);
    const answer = await send(JSON.stringify({ reason: '\u001b\u0085😀'.repeat(142) }));
    assert.equal(answer.status, 200, answer.body);
    assert.match(answer.headers['x-correlation-id'], /^[0-9a-f-]{36}$/);
    const [{ correlation_id }] = await db.query('select correlation_id from reclaim.customer_log where customer_id = $1', [customer.id]);
    assert.equal(correlation_id, answer.headers['x-correlation-id']);
  });
});

describe('a client that has gone before the answer', () => {
  it('has frozen the customer all the same: event, hang-up and mail follow', async () => {
    const customer = await addCustomer(db);
    const call = await talking(server, customer, sip());
    bench.has([call]);
    const connection = await RawConnection.open(server);
    const { Authorization } = asAdmin();
    connection.socket.write(`POST /v1/customers/${customer.id}/freeze HTTP/1.1\r\nHost: x\r\nAuthorization: ${Authorization}\r\nContent-Length: 0\r\n\r\n`);
    connection.socket.destroySoon();
    await until('the freeze', async () => (await rowOf(db, customer)).status === 'frozen');
    await over(server, call.id);
    await until('the mail', () => mailsTo(customer.email).length === 1);
    assert.deepEqual((await eventsOf(db, customer)).map(({ type }) => type), ['customer_frozen']);
    const [row] = await rowsOf(db, customer);
    assert.equal(row.hangup_reason, 'account_frozen');
  });
});
