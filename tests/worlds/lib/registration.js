// Registration recovery: a person whose registration broke gets rid of it with a mailed code and registers again, and
// nobody who has something to lose can be cleaned up. Part of the core story.

import assert from 'node:assert/strict';
import { it } from 'node:test';

import { assertDeleted, assertRefused, assertSent, contracts, isThere, requestCode, validate, wrong } from '../../service/lib/cleanup.js';
import { customerAddress } from '../../service/lib/customers.js';
import { probe } from '../../service/lib/http.js';
import { addCompany, addUser } from '../../service/lib/people.js';
import { until } from '../../service/lib/stage.js';

const codeIn = ({ text }) => text.match(/^ {4}(\S+)\r?$/m)?.[1];

async function stateOf(server, { email }) {
  const answer = await probe(server, email);
  assert.equal(answer.status, 200, answer.body);
  const { status, hasCompanyData, isOrphaned } = answer.json.data;
  return { status, hasCompanyData, isOrphaned };
}

/** Asks for a code and reads it from the mail. */
async function mailedCode(world, { email }) {
  const before = (await world.mails(email)).length;
  assertSent(await requestCode(world.server, email), world.contract);
  const code = codeIn(await until('the code', async () => (await world.mails(email))[before]));
  world.secrets.push(code);
  return code;
}

const orphan = { status: 'registered_unverified', hasCompanyData: false, isOrphaned: true };
const nobody = { status: 'not_registered', hasCompanyData: false, isOrphaned: false };
const complete = { status: 'registered_verified', hasCompanyData: true, isOrphaned: false };

/** `worldOf` returns the world once it is made. */
export function registrationStory(worldOf) {
  const confirmed = '2025-10-02T00:00:00Z';
  let person;

  it('a registration that broke is found; a wrong code changes nothing, the mailed one deletes it, once', async () => {
    const world = worldOf();
    const { gone } = contracts[world.contract];
    person = await addUser(world.db);
    world.registered.push(person);
    assert.deepEqual(await stateOf(world.server, person), orphan);
    const code = await mailedCode(world, person);
    assertRefused(await validate(world.another, person.email, wrong(code)), world.contract, '002');
    assert.deepEqual(await stateOf(world.another, person), orphan);
    assertDeleted(await validate(world.another, person.email, code), world.contract, person);
    assert.deepEqual(await stateOf(world.server, person), nobody);
    assert.equal(await isThere(world.db, person), false);
    assertRefused(await validate(world.server, person.email, code), world.contract, gone);
  });

  it('the same address registers again, to the end, and cannot be cleaned up any more', async () => {
    const world = worldOf();
    const again = await addUser(world.db, { email: person.email, confirmed });
    await addCompany(world.db, again);
    for (const server of [world.server, world.another]) {
      assert.deepEqual(await stateOf(server, person), complete);
      assertRefused(await requestCode(server, person.email), world.contract, '005');
    }
    assert.equal(await isThere(world.db, again), true);
  });

  it('who became the owner of a customer cannot be cleaned up, not even with a code mailed before', async () => {
    const world = worldOf();
    const owner = await addUser(world.db, { confirmed });
    world.registered.push(owner);
    const code = await mailedCode(world, owner);
    await world.db.query(`insert into reclaim.customer_customers (name, email, owner_user_id) values ('Owned', $1, $2)`, [customerAddress(), owner.id]);
    assertRefused(await validate(world.server, owner.email, code), world.contract, '005');
    assertRefused(await requestCode(world.server, owner.email), world.contract, '005');
    assert.deepEqual(await stateOf(world.server, owner), complete);
    assert.equal(await isThere(world.db, owner), true);
  });
}
