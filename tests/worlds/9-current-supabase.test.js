// World 9: a Supabase project as they are made now. Every user is a customer (RECLAIM_CUSTOMERS=users), tokens are signed with
// ES256 and verified with the key set at a URL, and the project's own keys (sb_publishable_…, sb_secret_…) are no tokens. Supabase
// Auth's full schema, the roles with few privileges, row security everywhere.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { addMarkedUser, addScopedKey, asAdmin, asKey, assertError, asUser, bearer, credentials, eventsOf, rowOf, show } from '../service/lib/customers.js';
import { deleted, erased } from '../service/lib/erasure.js';
import { gate } from '../service/lib/gate.js';
import { IdentityProvider, SigningKey } from '../service/lib/identity-provider.js';
import { addSupabaseRoles, documentedStatements } from '../service/lib/roles.js';
import { Stage, until } from '../service/lib/stage.js';
import { assertNoResidue } from './lib/residues.js';
import { coreStory } from './lib/story.js';
import { databaseWorld } from './lib/world.js';

describe('on a current Supabase project, where every user is a customer', () => {
  const stage = new Stage();
  const publishable = { apikey: 'sb_publishable_ABCDEFGHIJKLMNOPQRSTUV_0123456' };
  const secret = 'sb_secret_ABCDEFGHIJKLMNOPQRSTUV_0123456';
  let world, project;

  before(async () => {
    project = await IdentityProvider.start(stage, { keys: [new SigningKey('ES256'), new SigningKey('ES256')] }); // in use, and standby
    world = await databaseWorld(stage, {
      auth: 'supabase',
      addCustomer: addMarkedUser,
      prepare: async (db) => ({
        ...(await addSupabaseRoles(stage, db, documentedStatements().users)),
        ...project.env,
        RECLAIM_CUSTOMERS: 'users',
      }),
    });
    const key = await addScopedKey(stage, world.db, 'admin');
    credentials.user = (id) => ({ ...publishable, ...bearer(project.token({ id })) });
    credentials.admin = () => asKey(key);
  });
  after(() => stage.end());

  it('the doctor has nothing to say against it', async () => {
    const { code, stdout, stderr } = await world.run(['doctor']);
    assert.doesNotMatch(stdout, /FAIL|row-level security hides|TRIGGER/);
    assert.match(stdout, /^ok +customers: every user is one/m);
    assert.equal(code, 0, stdout + stderr);
  });

  coreStory(() => world, { first: 'owner', second: 'cli' });

  it('the project’s secret key is no credential here, and does not disturb one', async () => {
    const { user } = await addMarkedUser(world.db);
    assert.equal((await gate(world.server, { ...asUser(user.id), apikey: secret })).headers['x-customer-id'], user.id);
    assertError(await gate(world.server, { apikey: secret }), 401, 'NO_CREDENTIALS');
    assertError(await gate(world.server, bearer(secret)), 401, 'INVALID_TOKEN');
    assert.equal((await show(world.server, user.id, { ...asAdmin(), apikey: secret })).status, 200);
  });

  it('the key that stood by signs after a rotation, without a restart', async () => {
    const { user } = await addMarkedUser(world.db);
    assert.equal((await gate(world.server, bearer(project.token(user, {}, project.keys[1])))).status, 200);
  });

  it('a user deleted in the dashboard is refused at once, and leaves nothing', async () => {
    const customer = await addMarkedUser(world.db);
    assert.equal((await gate(world.server, asUser(customer.id))).status, 200);
    await world.db.query('delete from auth.users where id = $1', [customer.id]);
    await until('refused', async () => (await gate(world.server, asUser(customer.id))).status === 401);
    await deleted(world.db, await until('its row', () => rowOf(world.db, customer)));
    await erased(world.server, customer);
    assert.deepEqual((await eventsOf(world.db, customer)).map(({ type }) => type), ['customer_deleted']);
    await assertNoResidue(world, customer);
  });

  it('and only who left, is leaving or belongs to a story has a row', async () => {
    const [{ users, rows }] = await world.db.query(`select (select count(*)::int from auth.users) as users,
      (select count(*)::int from reclaim.customer_customers c where c.status = 'active' and c.id = c.owner_user_id) as rows`);
    assert.ok(users >= 3);
    assert.equal(rows, 0);
  });
});
