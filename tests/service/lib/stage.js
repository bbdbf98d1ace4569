// Undoes the set-up of a suite or a test in reverse order. Every helper that starts something takes a scope: a Stage,
// or a test's context.

import assert from 'node:assert/strict';

export class Stage {
  #undo = [];

  after(fn) {
    this.#undo.push(fn);
  }

  async end() {
    const faults = [];
    for (const fn of this.#undo.splice(0).reverse()) {
      try {
        await fn();
      } catch (fault) {
        faults.push(fault);
      }
    }
    if (faults.length === 1) throw faults[0];
    if (faults.length > 1) throw new AggregateError(faults, faults.map((fault) => fault.message).join('; '));
  }
}

const stages = new WeakMap();

/** A test's context runs its hooks in order of registration; a stage reverses that. */
export function stageOf(scope) {
  if (scope instanceof Stage) return scope;
  let stage = stages.get(scope);
  if (!stage) {
    stage = new Stage();
    stages.set(scope, stage);
    scope.after(() => stage.end());
  }
  return stage;
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Thrown by the function given to `until` if the process waited for has ended: `until` rethrows it at once. */
export class Ended extends Error {}

/** Waits until `look` returns a truthy value, and returns it. The deadline only ends a hanging test. */
export async function until(what, look, deadlineMs = 150_000) {
  const end = performance.now() + deadlineMs;
  let last;
  for (;;) {
    try {
      const seen = await look();
      if (seen) return seen;
    } catch (fault) {
      if (fault instanceof Ended) throw fault;
      last = fault;
    }
    if (performance.now() > end) assert.fail(`never saw: ${what}${last ? ` (${last.message})` : ''}`);
    await pause(25);
  }
}
