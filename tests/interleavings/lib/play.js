// Plays a race in one order: sends a step, and goes on once it has answered or waits for a lock that only a later step
// releases. Nothing depends on time; the deadline only ends a test that hangs.

import assert from 'node:assert/strict';

import { Stage, pause } from '../../service/lib/stage.js';
import { line } from './orders.js';
import { setStop } from './stop.js';

const deadlineMs = 120_000;

/** Which of these sessions wait for a lock, and which sessions hold it: Map of name → names. */
async function waiting(db, names) {
  const rows = await db.query(
    `select w.application_name as name, array_agg(distinct b.application_name) as blockers
     from pg_stat_activity w, unnest(pg_blocking_pids(w.pid)) as blocker join pg_stat_activity b on b.pid = blocker
     where w.datname = current_database() and w.wait_event_type = 'Lock' and w.application_name = any ($1)
     group by w.application_name`,
    [names],
  );
  return new Map(rows.map(({ name, blockers }) => [name, blockers]));
}

class Player {
  #lines = [];
  #underWay = new Map(); // session → { step, answer: undefined until it is known, over }
  #putOff = [];

  constructor(db, actors) {
    this.db = db;
    this.actors = actors; // name → { does: { step: function }, holdsLocks }
  }

  get lines() {
    return this.#lines;
  }

  async step(step) {
    const name = Object.keys(this.actors).find((one) => step in this.actors[one].does);
    if (this.#underWay.has(name)) {
      this.#lines.push(line(step, `not before ${this.#underWay.get(name).step} completes`));
      this.#putOff.push(step);
      return;
    }
    const sent = { step };
    sent.over = this.actors[name].does[step]().then(
      (answer) => (sent.answer = answer),
      (fault) => (sent.answer = `failed: ${fault.message}`),
    );
    this.#underWay.set(name, sent);
    const stuck = await this.#settled();
    if (sent.answer === undefined) this.#lines.push(line(step, `waits for ${stuck.get(name).join(' and ')}`));
    else this.#complete(name);
    for (const other of [...this.#underWay.keys()]) this.#complete(other);
    await this.#catchUp();
  }

  #complete(name) {
    const { step, answer } = this.#underWay.get(name);
    if (answer === undefined) return;
    this.#underWay.delete(name);
    this.#lines.push(line(step, answer));
  }

  async #catchUp() {
    const [next] = this.#putOff;
    const owner = next && Object.keys(this.actors).find((one) => next in this.actors[one].does);
    if (!next || this.#underWay.has(owner)) return;
    this.#putOff.shift();
    await this.step(next);
  }

  /** Waits until each step under way has answered, or cannot before another step is sent; returns the latter, as #stuck. */
  async #settled() {
    const end = performance.now() + deadlineMs;
    for (;;) {
      const open = [...this.#underWay].filter(([, { answer }]) => answer === undefined).map(([name]) => name);
      if (open.length === 0) return new Map();
      const stuck = this.#stuck(open, await waiting(this.db, open));
      if (open.every((name) => stuck.has(name) || this.#underWay.get(name).answer !== undefined)) return stuck;
      assert.ok(performance.now() < end, `neither answered nor waiting for a lock: ${open}; so far:\n${this.#lines.join('\n')}`);
      await Promise.race([...open.map((name) => this.#underWay.get(name).over), pause(10)]);
    }
  }

  /** Sessions that wait for one between two of its steps, directly or behind others: Map of name → names. */
  #stuck(open, waits) {
    const stuck = new Map();
    const idle = Object.keys(this.actors).filter((name) => this.actors[name].holdsLocks && !open.includes(name));
    for (let before = -1; before < stuck.size; ) {
      before = stuck.size;
      for (const name of open) {
        const blockers = (waits.get(name) ?? []).filter((one) => one in this.actors && one !== name);
        if (blockers.some((one) => idle.includes(one) || stuck.has(one))) stuck.set(name, blockers.sort());
      }
    }
    return stuck;
  }

  /** Steps that have not answered. */
  get left() {
    return [...this.#underWay.values()].map(({ step }) => step);
  }

  async over() {
    await Promise.allSettled([...this.#underWay.values()].map(({ over }) => over));
  }
}

async function cast(scope, world, race, given) {
  // Set first, so that it is removed last: dropping its trigger waits for transactions of the sessions.
  const stop = race.stop && { does: { [race.stop.step]: await setStop(scope, world.db, race.stop, given) }, holdsLocks: true };
  const actors = stop ? { stop } : {};
  for (const [name, { steps, open, holdsLocks = false }] of Object.entries(race.sessions)) {
    const act = await open(scope, world, name, given);
    const does = Object.fromEntries(Object.entries(steps).map(([step, what]) => [step, () => act(what)]));
    actors[name] = { does, holdsLocks };
  }
  return actors;
}

/** Returns { lines, broken }: what each step answered, and how the promise was broken, '' when it was kept. */
export async function play(world, race, order) {
  const scope = new Stage();
  const given = await race.setUp(world);
  let player;
  try {
    player = new Player(world.db, await cast(scope, world, race, given));
    for (const step of order) await player.step(step);
    assert.deepEqual(player.left, [], `still under way at the end:\n${player.lines.join('\n')}`);
  } finally {
    await scope.end(); // closes the sessions, so that what waits for them goes on
    await player?.over();
  }
  let broken = '';
  await Promise.resolve(race.promise(world, given)).catch((fault) => (broken = fault.message));
  return { lines: player.lines, broken };
}

/** What of the result is not as expected, as text; '' when all is. */
export function faultsOf({ lines, broken }, expected) {
  const differs = lines.join('\n') !== expected.join('\n');
  const shown = (list) => list.map((one) => `    ${one}`).join('\n');
  return [
    differs && `expected:\n${shown(expected)}\n  but it went:\n${shown(lines)}`,
    broken && `the promise is broken: ${broken}${differs ? '' : `\n  it went:\n${shown(lines)}`}`,
  ]
    .filter(Boolean)
    .join('\n  ');
}
