// Orders of steps, and the text that says what each order must lead to.

import assert from 'node:assert/strict';

/** Every order of the steps in which each session's own steps keep theirs. */
export function merges(sessions) {
  const left = sessions.filter((steps) => steps.length);
  if (left.length === 0) return [[]];
  return left.flatMap((steps) =>
    merges(left.map((other) => (other === steps ? steps.slice(1) : other))).map((rest) => [steps[0], ...rest]),
  );
}

/** A line is a step and what it answers: ['freeze', 'waits for caller']. */
export const line = (step, answer) => `${step.padEnd(12)} ${answer}`.trim();

/**
 * Paragraphs of lines, one paragraph per order: a step's first line is where it is sent, its second, if it had to wait,
 * where it completes. Returns [{ order, lines }].
 */
export function readTranscripts(text) {
  return text
    .trim()
    .split(/\n\s*\n/)
    .filter(Boolean)
    .map((paragraph) => {
      const pairs = paragraph.split('\n').map((one) => /^\s*(\S+)\s*(.*?)\s*$/.exec(one).slice(1));
      return { order: [...new Set(pairs.map(([step]) => step))], lines: pairs.map(([step, answer]) => line(step, answer)) };
    });
}

/** The orders of a race. A stop is lifted after the step that it stops was sent. */
export function ordersOf({ sessions, stop }) {
  const steps = Object.values(sessions).map((session) => Object.keys(session.steps));
  if (stop) steps.push([stop.step]);
  assert.equal(new Set(steps.flat()).size, steps.flat().length, `two steps have the same name: ${steps.flat()}`);
  const all = merges(steps);
  return stop ? all.filter((order) => order.indexOf(stop.in) < order.indexOf(stop.step)) : all;
}

/** Fails unless the transcripts are of exactly these orders; with `chosen`, of some of them. */
export function assertComplete(race, transcripts) {
  const wanted = ordersOf(race).map((order) => order.join(', '));
  const given = transcripts.map(({ order }) => order.join(', '));
  const list = (orders) => orders.map((order) => `\n  ${order}`).join('');
  const twice = given.filter((order, n) => given.indexOf(order) !== n);
  const unknown = given.filter((order) => !wanted.includes(order));
  const missing = race.chosen ? [] : wanted.filter((order) => !given.includes(order));
  assert.equal(twice.length, 0, `orders that are described twice:${list(twice)}`);
  assert.equal(unknown.length, 0, `orders that the sessions do not allow:${list(unknown)}`);
  assert.equal(missing.length, 0, `orders without a transcript:${list(missing)}`);
}
