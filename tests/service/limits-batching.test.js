// Look-ups asked for together: one that is slow or fails spoils nobody else's answer.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { probe } from './lib/http.js';
import { conclusively, metric } from './lib/limits.js';
import { addCompany, addUser, address } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { serve } from './lib/reclaim.js';
import { pause, Stage, until } from './lib/stage.js';

describe('look-ups in one batch', () => {
  const stage = new Stage();
  let db, server;
  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    // A view that is slow about some people and broken about others, and empty.
    await db.query(`
      create table trouble (id uuid primary key, kind text);
      create function troubles(kind text) returns boolean language plpgsql volatile cost 1000000 as $$
        begin
          if kind = 'slow' then perform pg_sleep(60); else raise exception 'broken'; end if;
          return false;
        end $$;
      create view owners as select id as owner from trouble where troubles(kind)`);
    const env = { RECLAIM_OWNERSHIP: 'companies.owner_admin_uuid, owners.owner', RECLAIM_PROBE_TIMEOUT_MS: '1200' };
    server = await serve(stage, { database: db, env });
  });
  after(() => stage.end());

  async function addTrouble(kind) {
    const user = await addUser(db);
    await db.query('insert into trouble values ($1, $2)', [user.id, kind]);
    return user.email;
  }

  async function addPeople() {
    const owner = await addUser(db, { confirmed: '2025-10-20T14:30:00Z' });
    await addCompany(db, owner);
    return [
      ...(await Promise.all(Array.from({ length: 10 }, async () => [(await addUser(db)).email, ['registered_unverified', true]]))),
      [owner.email, ['registered_verified', false]],
      [address('nobody'), ['not_registered', false]],
    ];
  }

  const said = ({ json: { data } }) => [data.status, data.isOrphaned];

  /** All answers of requests that wait for each other's look-up: none is asked for before all are there. */
  async function askTogether(t, emails) {
    const session = await db.session(t);
    return conclusively(async () => {
      await session.query('begin; lock table auth.users in access exclusive mode');
      const asked = await metric(server, 'reclaim_limit_decisions_total');
      const answers = Promise.all(emails.map((email) => probe(server, email)));
      await until('all under way', async () => (await metric(server, 'reclaim_limit_decisions_total')) >= asked + emails.length);
      await pause(20);
      await session.query('rollback');
      const all = await answers;
      assert.ok(all.every(({ status }) => [200, 503].includes(status)));
      return all.every(({ status }) => status === 200) && all; // some may have waited too long
    });
  }

  for (const [kind, promise] of [
    ['slow', 'a slow one gets null, and everyone else the truth'],
    ['broken', 'a failing one gets null, and everyone else the truth'],
  ])
    it(promise, async (t) => {
      const people = await addPeople();
      const plugs = Array.from({ length: 2 }, () => [address('nobody'), ['not_registered', false]]); // the batches under way first
      const all = [...plugs, ...people.slice(0, 6), [await addTrouble(kind), ['registered_unverified', null]], ...people.slice(6)];
      await conclusively(async () => {
        const alone = await metric(server, 'reclaim_probe_alone_total');
        const answers = await askTogether(t, all.map(([email]) => email));
        assert.deepEqual(answers.map(said), all.map(([, truth]) => truth));
        return (await metric(server, 'reclaim_probe_alone_total')) - alone >= 5; // they had been asked for together
      });
    });

  it('several slow ones among many take nobody along', async (t) => {
    const people = await addPeople();
    const slow = await Promise.all(Array.from({ length: 3 }, () => addTrouble('slow')));
    const all = [...slow.map((email) => [email, ['registered_unverified', null]]), ...people, ...people, ...people];
    const answers = await askTogether(t, all.map(([email]) => email));
    assert.deepEqual(answers.map(said), all.map(([, truth]) => truth));
  });

  it('the same address asked for many times at once gets the same answer each time', async (t) => {
    const [[email, truth]] = await addPeople();
    const answers = await askTogether(t, Array(50).fill(email));
    for (const answer of answers) assert.deepEqual(said(answer), truth);
    assert.equal(new Set(answers.map(({ json }) => json.data.correlationId)).size, 50);
  });

  it('a time-out of many seconds still ends in null, never in an error', async (t) => {
    const env = { RECLAIM_OWNERSHIP: 'owners.owner', RECLAIM_PROBE_TIMEOUT_MS: '3000' };
    const patient = await serve(t, { database: db, env });
    const answer = await probe(patient, await addTrouble('slow'));
    assert.equal(answer.status, 200, answer.body);
    assert.deepEqual(said(answer), ['registered_unverified', null]);
  });
});
