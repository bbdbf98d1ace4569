// Step 2 of the clean-up while its user's registration completes: a user that owns something is never deleted.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';

import { isThere, logOf, requestCode, validate } from '../service/lib/cleanup.js';
import { addCustomer } from '../service/lib/customers.js';
import { addCompany, addUser } from '../service/lib/people.js';
import { Stage } from '../service/lib/stage.js';
import { race, world } from './lib/race.js';
import { requests, sql } from './lib/sessions.js';

const stage = new Stage();
let place, withoutKey;
before(async () => {
  place = await world(stage, ['owner', 'second'], {
    // As many Supabase projects: every user has a profile, and a finished registration is a column of it.
    prepare: `create table profiles (id uuid primary key references auth.users on delete cascade, onboarded_at timestamptz);
      create function add_profile() returns trigger language plpgsql as $$ begin insert into profiles (id) values (new.id); return null; end $$;
      create trigger add_profile after insert on auth.users for each row execute function add_profile()`,
    env: { RECLAIM_OWNERSHIP: 'companies.owner_admin_uuid,profiles.id where onboarded_at is not null,company_admins.admin_uuid' },
  });
  const prepare = 'alter table companies drop constraint companies_owner_admin_uuid_fkey';
  withoutKey = await world(stage, ['owner'], { cluster: place.cluster, prepare });
});
after(() => stage.end());

/** A user without a company, and the code that was mailed to it. */
async function withCode({ db, provider, servers }) {
  const [user, other] = [await addUser(db), await addUser(db)];
  const asked = await requestCode(servers.owner, user.email);
  const { code } = await provider.mailTo(user.email, { nth: 1 });
  const otherCustomer = (await addCustomer(db, { owner: false })).id;
  return { user, code, correlationId: asked.json.correlationId, otherCompany: await addCompany(db, other), otherCustomer };
}

const stopAtDeletion = { step: 'go', in: 'type', session: 'owner', before: 'delete on auth.users', row: ({ user }) => user.id };

const outcomeOf = ({ json }) => (json.success ? json.data.step : json.error.code);

/** Sends the code until the answer is not 009, which a request gives that has waited half a second for a lock. */
async function type(server, { user, code }) {
  for (;;) {
    const outcome = outcomeOf(await validate(server, user.email, code));
    if (outcome !== 'ORPHAN_CLEANUP_009') return outcome;
  }
}

const byKey = (table, column) => [`error: insert or update on table "${table}" violates foreign key constraint "${table}_${column}_fkey"`, 'rollback'];
const nothing = ['insert 0', 'commit'];

/**
 * What completes a registration, and where it is found; what insert and commit answer when the user is deleted `meanwhile`,
 * and when it was deleted before.
 */
const registrations = {
  'a company': {
    insert: ({ user }) => `insert into companies (owner_admin_uuid) values ('${user.id}')`,
    owned: 'select from companies where owner_admin_uuid = $1',
    meanwhile: byKey('companies', 'owner_admin_uuid'),
    later: byKey('companies', 'owner_admin_uuid'),
  },
  'a company, by a column without a foreign key': {
    at: () => withoutKey,
    insert: ({ user }) => `insert into companies (owner_admin_uuid) select id from auth.users where id = '${user.id}'`,
    owned: 'select from companies where owner_admin_uuid = $1',
    meanwhile: nothing,
    later: nothing,
  },
  'a place among the admins of a company': {
    insert: ({ user, otherCompany }) => `insert into company_admins (admin_uuid, company_id) values ('${user.id}', '${otherCompany}')`,
    owned: 'select from company_admins where admin_uuid = $1',
    meanwhile: byKey('company_admins', 'admin_uuid'),
    later: byKey('company_admins', 'admin_uuid'),
  },
  'the last step of its profile': {
    insert: ({ user }) => `update profiles set onboarded_at = now() where id = '${user.id}'`,
    owned: 'select from profiles where id = $1 and onboarded_at is not null',
    done: 'update 1',
    meanwhile: ['update 0', 'commit'],
    later: ['update 0', 'commit'],
  },
  'a customer': {
    insert: ({ user }) => `insert into reclaim.customer_customers (owner_user_id) select id from auth.users where id = '${user.id}'`,
    owned: 'select from reclaim.customer_customers where owner_user_id = $1',
    meanwhile: ['error: the user UUID was deleted while its customer was being written', 'rollback'],
    later: nothing,
  },
  'a place among the members of a customer': {
    insert: ({ user, otherCustomer }) =>
      `insert into reclaim.customer_members (customer_id, user_id) select '${otherCustomer}', id from auth.users where id = '${user.id}'`,
    owned: 'select from reclaim.customer_members where user_id = $1',
    meanwhile: ['error: the user UUID was deleted while its customer was being written', 'rollback'],
    later: nothing,
  },
};

for (const [what, { at = () => place, insert, owned, done = 'insert 1', meanwhile, later }] of Object.entries(registrations))
  race(`a code is typed while another program gives its user ${what}`, at, {
    setUp: withCode,
    sessions: { owner: requests({ type }), program: sql({ insert: (given) => `begin; ${insert(given)}`, commit: 'commit' }) },
    stop: stopAtDeletion,
    async promise({ db }, { user, correlationId }) {
      const owns = (await db.query(owned, [user.id])).length > 0;
      assert.equal(await isThere(db, user), owns, owns ? 'a user that owns something was deleted' : 'an orphan is still there');
      const [row] = await logOf(db, correlationId);
      assert.equal(row.status, owns ? 'pending' : 'completed', 'the log does not say what happened');
    },
    transcripts: `
      insert       ${done}
      commit       commit
      type         ORPHAN_CLEANUP_005
      go

      insert       ${done}
      type         waits for program
      commit       commit
      type         ORPHAN_CLEANUP_005
      go

      insert       ${done}
      type         waits for program
      go
      commit       commit
      type         ORPHAN_CLEANUP_005

      type         waits for stop
      insert       waits for owner
      commit       not before insert completes
      go
      type         user-deleted
      insert       ${meanwhile[0]}
      commit       ${meanwhile[1]}

      type         waits for stop
      insert       waits for owner
      go
      type         user-deleted
      insert       ${meanwhile[0]}
      commit       ${meanwhile[1]}

      type         waits for stop
      go
      type         user-deleted
      insert       ${later[0]}
      commit       ${later[1]}
    `,
  });

race('a code is typed twice, at two instances', () => place, {
  setUp: withCode,
  sessions: {
    owner: requests({ type }),
    second: requests({ again: async (server, { user, code }) => outcomeOf(await validate(server, user.email, code)) }),
  },
  stop: stopAtDeletion,
  async promise({ db }, { user, correlationId }) {
    assert.equal(await isThere(db, user), false);
    assert.deepEqual((await logOf(db, correlationId)).map(({ status }) => status), ['completed']);
  },
  transcripts: `
    again        user-deleted
    type         ORPHAN_CLEANUP_001
    go

    type         waits for stop
    again        ORPHAN_CLEANUP_009
    go
    type         user-deleted

    type         waits for stop
    go
    type         user-deleted
    again        ORPHAN_CLEANUP_001
  `,
});
