// The ways in which a customer is frozen, recovered and deleted: by its owner, by an admin, at the command line, and by
// programs that know nothing but the table.

import assert from 'node:assert/strict';

import { asUser, canaryPassword, freeze, recover, recoverOwn, unregister } from '../../service/lib/customers.js';
import { remove } from '../../service/lib/erasure.js';

async function done(answering) {
  const answer = await answering;
  assert.equal(answer.status, 200, answer.body);
}

async function command(world, ...args) {
  const { code, stderr } = await world.run(args);
  assert.equal(code, 0, stderr);
}

const sets = (what) => (world, { id }) => world.sql(`update ${world.table} set ${what} where id = $1`, [id]);

export const freezes = {
  owner: (world, { user }) => done(unregister(world.server, asUser(user.id), { password: canaryPassword })),
  admin: (world, { id }) => done(freeze(world.server, id)),
  cli: (world, { id }) => command(world, 'freeze', id),
  sql: sets(`status = 'frozen'`),
};

export const recovers = {
  owner: (world, { user }) => done(recoverOwn(world.server, asUser(user.id))),
  admin: (world, { id }) => done(recover(world.server, id)),
  cli: (world, { id }) => command(world, 'recover', id),
  sql: sets(`status = 'active'`),
};

export const deletes = {
  admin: (world, { id }) => done(remove(world.server, id)),
  cli: (world, { id }) => command(world, 'delete', id),
  'sql tm_delete': sets('tm_delete = now()'),
  'sql status': sets(`status = 'deleted'`),
  'sql DELETE': (world, { id }) => world.sql(`delete from ${world.table} where id = $1`, [id]),
  expiry: (world) => command(world, 'expire'), // of all that are due
};

/** What the audit and the row say about who it was. */
export const actors = { owner: 'owner', admin: 'admin', cli: 'operator', sql: 'sql' };
export const frozenBy = { owner: 'owner', admin: 'admin', cli: 'admin', sql: 'sql' };

/** Whether the answer of this way says that every gate has it; plain SQL has no answer of Reclaim. */
export const isAnswered = (way) => !way.startsWith('sql');
