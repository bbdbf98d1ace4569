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

/** Where a table that may not, or a log line, has a customer that is deleted, a user of the story, or a mailed code. */
async function leaks({ db, servers, mayName, registered, secrets }, deleted) {
  const gone = [...deleted.flatMap(({ strings }) => strings), ...secrets];
  const all = [...gone, ...registered.map(({ email }) => email)];
  const isUser = (place) => place.startsWith('auth.users:') && !gone.some((text) => place.includes(text));
  const stored = (await found(db, all)).filter((place) => !isUser(place) && !mayName.some((table) => table.test(place)));
  const logged = servers.flatMap(({ lines }) => lines.map((line) => JSON.stringify(line)));
  return [...stored, ...logged.filter((line) => all.some((text) => line.includes(text)))];
}

/** `deleted`: the customers of the story whose data must be gone. */
export async function assertInvariants(world, deleted) {
  await workDone(world.db);
  await layersAgree(world.db);
  const running = world.servers.filter(({ exit }) => !exit);
  for (const server of running) await server.withoutConnections();
  await Promise.all(running.map(withoutBusyThread));
  assert.deepEqual(troubles(world), [], 'lines at warn or above');
  assert.deepEqual(await leaks(world, deleted), [], 'where something personal is left');
  const audit = await world.run(['audit', 'verify']);
  assert.equal(audit.code, 0, audit.stdout + audit.stderr);
}
