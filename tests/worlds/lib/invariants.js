// What holds after every story, in every world.

import assert from 'node:assert/strict';

import { found } from '../../service/lib/erasure.js';
import { watchThreads } from '../../service/lib/process.js';
import { pause, until } from '../../service/lib/stage.js';
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

/** A thread that never waits is runnable all the time, on a busy machine too. */
async function withoutBusyThread({ pid }) {
  await until('no busy thread', async () => {
    const look = watchThreads(pid);
    await pause(300);
    const { running, waiting } = look();
    return running + waiting < 0.5;
  });
}

/** Each of `strings` that a table has, other than those that may, or a log line. */
async function leaks(world, strings, mayHave = []) {
  const allowed = [...world.mayName, ...mayHave];
  const stored = (await found(world.db, strings)).filter((place) => !allowed.some((table) => table.test(place)));
  const logged = world.servers.flatMap(({ lines }) => lines.map((line) => JSON.stringify(line)));
  return [...stored, ...logged.filter((line) => strings.some((text) => line.includes(text)))];
}

/** `deleted`: the customers of the story whose data must be gone. */
export async function assertInvariants(world, deleted) {
  await workDone(world.db);
  await layersAgree(world.db);
  const running = world.servers.filter(({ exit }) => !exit);
  for (const server of running) await server.withoutConnections();
  await Promise.all(running.map(withoutBusyThread));
  assert.deepEqual(troubles(world), [], 'lines at warn or above');
  assert.deepEqual(await leaks(world, deleted.flatMap(({ strings }) => strings)), [], 'where deleted customers are still named');
  assert.deepEqual(await leaks(world, world.registered.map(({ email }) => email), [/^auth\.users:/]), [], 'where users are named');
  assert.deepEqual(await leaks(world, world.secrets), [], 'where codes are kept');
}
