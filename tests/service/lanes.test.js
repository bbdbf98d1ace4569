// Lanes: whatever keeps some requests from the database, the others are answered.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { requestCode } from './lib/cleanup.js';
import { addCustomer, addKey, asAdmin, asKey, asUser, canaryPassword, env, freeze, login, recover, show } from './lib/customers.js';
import { ops, probe, request } from './lib/http.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { Relay } from './lib/relay.js';
import { serve } from './lib/reclaim.js';
import { Stage, until } from './lib/stage.js';

const gate = (server, headers) => request(server, { path: '/gate', headers });

const stage = new Stage();
let cluster, db;
before(async () => {
  cluster = await Cluster.create(stage, { tcp: true });
  db = await cluster.database(stage);
});
after(() => stage.end());

describe('beside requests that wait for the product', () => {
  const settings = { ...env, RECLAIM_LIMIT_IP: 'off', RECLAIM_LIMIT_GLOBAL: 'off', RECLAIM_LIMIT_EMAIL: 'off' };

  it('accounts and the gate are answered at once', async (t) => {
    const server = await serve(t, { database: db, env: settings });
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    const users = await Promise.all(Array.from({ length: 40 }, () => addUser(db)));
    const session = await db.session(t);
    await session.query('begin; lock table public.companies in access exclusive mode');
    let over = false;
    const waiting = users.map(async ({ email }) => {
      while (!over) await requestCode(server, email);
    });
    const stuck = async () => (await db.query(`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`)).length;
    await until('requests that wait', async () => (await stuck()) > 1);
    assert.equal((await gate(server, asKey(key))).status, 200);
    assert.equal((await show(server, customer.id, asUser(customer.user.id))).status, 200);
    assert.equal((await freeze(server, customer.id)).status, 200);
    assert.equal((await recover(server, customer.id)).status, 200);
    await until('others waiting still', stuck);
    over = true;
    await session.query('rollback');
    await Promise.all(waiting);
    await server.stop();
  });

  it('only the gate that cannot decide makes the instance unready', async (t) => {
    const server = await serve(t, { database: db, env: settings });
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    const session = await db.session(t);
    await session.query('begin; lock table reclaim.access_keys in access exclusive mode');
    let turnedAway = 0;
    const waiting = Array.from({ length: 20 }, async () => {
      while (turnedAway < 1000 && (await gate(server, asKey(key))).status === 503) turnedAway++;
    });
    const overloaded = await until('overloaded', async () => {
      const answer = await ops(server, '/readyz');
      return answer.status === 503 && answer;
    });
    assert.equal(overloaded.json.status, 'overloaded');
    assert.equal((await request(server, { path: '/v1/customers', headers: asAdmin() })).status, 200, 'a token needs no key');
    await session.query('rollback');
    await Promise.all(waiting);
    await until('ready again', async () => (await ops(server, '/readyz')).status === 200);
    await server.stop();
  });

  it('a key whose row another program holds is let through', async (t) => {
    const server = await serve(t, { database: db, env: settings });
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    const session = await db.session(t);
    const other = await addCustomer(db);
    assert.equal((await gate(server, asKey(await addKey(t, db, other)))).status, 200);
    const used = async () => (await db.query('select last_used_at from reclaim.access_keys where customer_id = $1', [other.id]))[0].last_used_at;
    await until('the use of a key noted', used);
    await session.query(`begin; update reclaim.access_keys set last_used_at = null where customer_id = '${customer.id}'`);
    assert.equal((await gate(server, asKey(key))).status, 200);
    await session.query('rollback');
    await server.stop();
  });
});

describe('a database that is silent', () => {
  // Without a word from the database, a request used to wait five seconds at the gate and thirty elsewhere.
  const patienceMs = 3000;

  it('keeps nobody waiting at the gate or in an account, and is over when it speaks again', async (t) => {
    const relay = await Relay.start(t, cluster.port);
    const url = `postgresql://postgres@127.0.0.1:${relay.port}/${db.name}`;
    const server = await serve(t, { env: { ...env, RECLAIM_DATABASE_URL: url } });
    const customer = await addCustomer(db);
    const key = await addKey(t, db, customer);
    const asked = {
      gate: () => gate(server, asKey(key)),
      own: () => show(server, customer.id, asUser(customer.user.id)),
      login: () => login(server, customer.user.email, canaryPassword),
      list: () => request(server, { path: '/v1/customers', headers: asAdmin() }),
      probe: () => probe(server, customer.user.email),
    };
    for (const [name, ask] of Object.entries(asked)) assert.equal((await ask()).status, 200, name);
    relay.silence();
    try {
      const age = async () => Number(/^reclaim_frozen_age_seconds (.*)$/m.exec((await ops(server, '/metrics')).body)[1]);
      // Far beyond the lease: what was on its way when the relay stopped has arrived by then.
      await until('the end of the lease', async () => (await age()) > 1);
      for (let round = 0; round < 2; round++)
        await Promise.all(Object.entries(asked).map(async ([name, ask]) => {
          const answer = await ask();
          assert.equal(answer.status, 503, `${name}: ${answer.body}`);
          const tookMs = answer.answeredAt - answer.sentAt;
          assert.ok(tookMs < patienceMs, `${name} waited ${tookMs} ms`);
          t.diagnostic(`${name} ${Math.round(tookMs)} ms`);
        }));
      assert.equal((await ops(server, '/readyz')).json.status, 'database_down');
    } finally {
      relay.resume();
    }
    for (const [name, ask] of Object.entries(asked))
      await until(`${name} answered`, async () => (await ask()).status === 200);
    await until('ready again', async () => (await ops(server, '/readyz')).status === 200);
    await server.withoutConnections();
    await server.stop();
  });
});
