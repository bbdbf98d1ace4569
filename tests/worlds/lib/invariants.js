// What holds after every story, in every world.

import assert from 'node:assert/strict';

import { found } from '../../service/lib/erasure.js';
import { until } from '../../service/lib/stage.js';
import { layersAgree } from './layers.js';

const isTrouble = ({ level }) => level !== 'debug' && level !== 'info';

/** Lines at warn or above that the world does not expect. */
export const troubles = (world) =>
  world.servers
    .flatMap(({ lines }) => lines)
    .filter((line) => isTrouble(line) && !world.expectedWarnings.some((pattern) => pattern.test(line.event)))
    .map((line) => JSON.stringify(line));

/** Items of work are deleted when they are done. */
export async function workDone(db) {
  let items;
  const look = async () => {
    items = await db.query('select kind, state, tries, last_error, payload, due_at, leased_until from reclaim.work_items');
    return items.length === 0 || items.some(({ state }) => state === 'dead');
  };
  await until('all work done', look, 60_000).catch(() => {});
  assert.deepEqual(items, []);
}

/** `deleted`: the customers of the story whose data must be gone. */
export async function assertInvariants(world, deleted) {
  await workDone(world.db);
  await layersAgree(world.db);
  for (const server of world.servers) if (!server.exit) await server.withoutConnections();
  assert.deepEqual(troubles(world), [], 'lines at warn or above');
  const places = await found(world.db, deleted.flatMap(({ strings }) => strings));
  assert.deepEqual(places.filter((place) => !world.mayName.some((table) => table.test(place))), [], 'where deleted customers are still named');
}
