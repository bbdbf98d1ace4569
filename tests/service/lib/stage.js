// What a suite or a test has set up, taken down in reverse order. Every helper that starts something takes a scope:
// a Stage, or a test's own context.

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

/** A test's context runs its hooks first come, first served; a stage of its own turns the order round. */
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

/** Thrown by what `until` calls, when the process that is waited for has ended: `until` passes it on at once. */
export class Ended extends Error {}

/** Waits until `look` returns something true, and returns that. The deadline is there to end a test, not to judge speed. */
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
