// The core story: a registration that broke is cleaned up (registration.js), then a customer that is frozen, refused, recovered, frozen again, and
// deleted when its grace is over. The same in every world, and so are its promises.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { balanceOf, charge, newReference, showSubscription } from '../../service/lib/billing.js';
import { begin, over } from '../../service/lib/calls.js';
import { asKey, asUser, auditOf, eventsOf, rowOf, show } from '../../service/lib/customers.js';
import { deleted, erased, frozenSince } from '../../service/lib/erasure.js';
import { gate } from '../../service/lib/gate.js';
import { probe } from '../../service/lib/http.js';
import { until } from '../../service/lib/stage.js';
import { assertInvariants } from './invariants.js';
import { layersAgree } from './layers.js';
import { registrationStory } from './registration.js';
import { assertNoResidue, assertSearched } from './residues.js';
import { actors, freezes, frozenBy, isAnswered, recovers } from './ways.js';
import { addSubject } from './world.js';

const typesOf = async (db, customer) => (await eventsOf(db, customer)).map(({ type }) => type);

const mailTo = (world, address, subject, count) =>
  until(`mail ${count}: ${subject}`, async () => {
    const mails = (await world.mails(address)).filter((mail) => subject.test(mail.subject));
    return mails.length === count && mails.at(-1);
  });

/** With both credentials, at every instance that answers. */
async function atEveryGate(world, customer, status) {
  const answers = [];
  for (const server of world.gates)
    for (const headers of [asKey(customer.key), asUser(customer.user.id)]) answers.push(await gate(server, headers));
  return answers.every((answer) => answer.status === status) && answers;
}

async function passes(world, customer) {
  for (const answer of await until('passes every gate', () => atEveryGate(world, customer, 200)))
    assert.equal(answer.headers['x-customer-id'], customer.id);
  const call = await begin(world.server, customer);
  assert.equal(call.status, 201, call.body);
  const usage = { billing_account_id: customer.account.id, amount_micros: 10, reference: newReference() };
  const charged = await charge(world.server, usage);
  assert.equal(charged.status, 201, charged.body);
  return call.json;
}

async function isFrozen(world, customer, { way, call, count }) {
  const { db } = world;
  const answers = isAnswered(way)
    ? await atEveryGate(world, customer, 403)
    : await until('refused at every gate', () => atEveryGate(world, customer, 403));
  assert.ok(answers, `a gate lets a customer pass whose freeze by ${way} was answered`);
  const { json: shown } = await show(world.server, customer.id, asUser(customer.user.id));
  assert.equal(shown.status, 'frozen');
  for (const { json } of answers)
    assert.deepEqual(
      { error: json.error, scheduled: json.deletion_scheduled_at, effective: json.deletion_effective_at },
      { error: 'DELETION_SCHEDULED', scheduled: shown.tm_deletion_scheduled, effective: shown.deletion_effective_at },
    );
  assert.equal((await begin(world.server, customer)).status, 403);
  const balance = await balanceOf(db, customer.account);
  const usage = { billing_account_id: customer.account.id, amount_micros: 10, reference: newReference() };
  assert.equal((await charge(world.server, usage)).status, 403);
  assert.equal(await balanceOf(db, customer.account), balance);
  assert.equal((await showSubscription(world.server, customer.subscription.id)).json.status, 'paused');
  assert.equal((await over(world.server, call.id)).hangup_reason, 'account_frozen');
  await mailTo(world, customer.email, /will be deleted/, count);
  const row = await rowOf(db, customer);
  assert.equal(row.frozen_by, frozenBy[way]);
  const log = (await auditOf(db, customer)).filter(({ action }) => action === 'freeze').at(-1);
  assert.deepEqual({ actor: log.actor, outcome: log.outcome }, { actor: actors[way], outcome: 'done' });
  await layersAgree(db);
}

/** Tells it, with the first and the second freeze in the ways named; `worldOf` returns the world once it is made. */
export function coreStory(worldOf, { first, second }) {
  let customer, call;

  registrationStory(worldOf);

  it('an active customer passes every gate, calls and is charged', async () => {
    customer = await addSubject(worldOf());
    call = await passes(worldOf(), customer);
  });

  it(`frozen by ${first}, it is refused everywhere, its call ends, its money stays, its owner has a mail`, async () => {
    const world = worldOf();
    await world.during('freeze', () => freezes[first](world, customer));
    await isFrozen(world, customer, { way: first, call, count: 1 });
  });

  it(`recovered by ${first}, it has everything again`, async () => {
    const world = worldOf();
    await world.during('recover', () => recovers[first](world, customer));
    call = await passes(world, customer);
    await mailTo(world, customer.email, /active again/, 1);
    assert.equal((await showSubscription(world.server, customer.subscription.id)).json.status, 'active');
    assert.deepEqual(await typesOf(world.db, customer), ['customer_frozen', 'customer_recovered']);
    await layersAgree(world.db);
  });

  it(`frozen again, by ${second}, it is refused as before`, async () => {
    const world = worldOf();
    await world.during('freeze again', () => freezes[second](world, customer));
    await isFrozen(world, customer, { way: second, call, count: 2 });
  });

  it('when its grace is over it is deleted, erased with a receipt of every participant, and mailed for the last time', async () => {
    const world = worldOf();
    const { db } = world;
    if (db.url) await assertSearched(world, customer);
    await world.during('expiry', async () => {
      await frozenSince(db, customer);
      await deleted(db, customer);
    });
    const ledger = await erased(world.server, customer);
    // A table of what accounts have done has a part only where there are rows: here the call was charged.
    const participants = await db.query(`select name from reclaim.cascade_participants where enabled and name <> 'reclaim.adjustments' order by name`);
    assert.deepEqual(
      ledger.participants.filter(({ kind }) => kind !== 'column').map(({ name, status }) => ({ name, status })).sort((a, b) => (a.name < b.name ? -1 : 1)),
      participants.map(({ name }) => ({ name, status: 'done' })),
    );
    await mailTo(world, customer.email, /was deleted/, 1);
    await until('refused at every gate', () => atEveryGate(world, customer, 401));
    assert.deepEqual(await typesOf(db, customer), ['customer_frozen', 'customer_recovered', 'customer_frozen', 'customer_deleted']);
    assert.equal((await probe(world.server, customer.user.email)).json.data.status, 'not_registered');
    const log = (await auditOf(db, customer)).at(-1);
    assert.deepEqual({ action: log.action, actor: log.actor, outcome: log.outcome }, { action: 'expire', actor: 'system', outcome: 'done' });
  });

  it('and nothing is left of it: no connection, no busy thread, no work, no warning, nothing personal', async () => {
    const world = worldOf();
    await world.during('end', () => {});
    await assertInvariants(world, [customer]);
    if (world.db.url) await assertNoResidue(world, customer);
  });
}
