// One run of a benchmark: its rounds, their measures and limits, and the result files.

import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';

import { repository } from '../../tests/service/lib/place.js';
import { Stage } from '../../tests/service/lib/stage.js';
import { barsPanel, roundsPanel, svg } from './plot.js';
import { median, spread } from './stats.js';

/** Smoke runs must not overwrite measured results. */
const resultsOf = (smoke) => path.join(repository, smoke ? 'build/bench-smoke' : 'bench/results');

export function figure(value, unit = '') {
  if (!Number.isFinite(value)) return 'beyond measure';
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 2;
  const words = Number(value.toFixed(digits)).toLocaleString('en', { maximumFractionDigits: digits });
  return unit ? `${words} ${unit}` : words;
}

function judge(value, { atMost, atLeast }) {
  if (atMost === undefined && atLeast === undefined) return '';
  const met = (atMost === undefined || value <= atMost) && (atLeast === undefined || value >= atLeast);
  return met ? 'met' : 'missed';
}

function limitWords({ atMost, atLeast, unit }) {
  if (atMost === 0) return 'none';
  if (atMost !== undefined) return `at most ${figure(atMost, unit)}`;
  return atLeast === undefined ? '' : `at least ${figure(atLeast, unit)}`;
}

function machine() {
  const [cpu] = os.cpus();
  return {
    cores: os.cpus().length,
    cpu: cpu?.model,
    memory_bytes: os.totalmem(),
    kernel: os.release(),
    load_before: os.loadavg()[0],
  };
}

function commit() {
  try {
    return execFileSync('git', ['-C', repository, 'describe', '--always', '--dirty'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return undefined; // a tarball, or a clone of another owner
  }
}

export class Benchmark {
  measures = [];
  notes = [];
  #panels = [];

  constructor(name, about, { smoke, say }) {
    this.name = name;
    this.about = about;
    this.smoke = smoke;
    this.say = say;
    this.stage = new Stage();
    this.begun = new Date();
    this.machine = machine();
  }

  /** Runs `round(number, scope)` so many times, once in a smoke run; its scope is closed after each. */
  async rounds(count, round) {
    const found = [];
    for (let number = 1; number <= (this.smoke ? 1 : count); number++) {
      const scope = new Stage();
      try {
        found.push(await round(number, scope));
      } finally {
        await scope.end();
      }
    }
    return found;
  }

  /**
   * Runs all contestants in turn, so that other load on the machine affects each; the order rotates. Each takes a scope
   * and returns a number. Returns the numbers of each by round.
   */
  async turns(count, contestants, about = this.name) {
    const all = Object.entries(contestants);
    const found = await this.rounds(count, async (number, scope) => {
      const round = {};
      const first = (number - 1) % all.length;
      for (const [name, turn] of [...all.slice(first), ...all.slice(0, first)]) round[name] = await turn(scope);
      this.say(`${about}: round ${number}: ${all.map(([name]) => `${name} ${figure(round[name])}`).join(', ')}`);
      return round;
    });
    return Object.fromEntries(all.map(([name]) => [name, found.map((round) => round[name])]));
  }

  /** Ours and one peer; also returns their ratios by round. */
  async compare(count, { ours, peer }, about) {
    const found = await this.turns(count, { ours, peer }, about);
    return { ...found, ratios: found.ours.map((value, i) => value / found.peer[i]) };
  }

  /**
   * Records a number of each round; their median is compared with the limit (`atMost` or `atLeast`), if there is one.
   * `beside` shows other series of the same unit in its plot.
   */
  measure(name, { rounds, unit = '', atMost, atLeast, beside = [], plot = true }) {
    const limits = { atMost, atLeast, unit };
    const value = median(rounds);
    const verdict = this.smoke ? 'ran' : judge(value, limits);
    this.measures.push({ measure: name, unit, value, spread: spread(rounds), rounds, at_most: atMost, at_least: atLeast, verdict });
    if (!plot) return;
    const at = atMost ?? atLeast;
    this.#panels.push(
      roundsPanel({
        title: unit ? `${name} (${unit})` : name,
        series: [{ name: 'ours', values: rounds }, ...beside],
        limit: at === undefined ? undefined : { at, words: limitWords(limits) },
        median,
      }),
    );
  }

  bars(title, bars) {
    this.#panels.push(barsPanel({ title, bars }));
  }

  /** A remark for readers of the results; stored and printed. */
  note(words) {
    this.notes.push(words);
  }

  /** The rows of the table at the end. */
  rows() {
    return this.measures.map((one) => {
      const { low, high } = one.spread;
      const around = one.rounds.length > 1 ? ` (${figure(low)} to ${figure(high)})` : '';
      return [this.name, one.measure, figure(one.value, one.unit) + around, limitWords({ atMost: one.at_most, atLeast: one.at_least, unit: one.unit }), one.verdict];
    });
  }

  keep() {
    const { name: benchmark, about, smoke, machine: on, measures, notes } = this;
    const results = resultsOf(smoke);
    fs.mkdirSync(results, { recursive: true });
    const kept = { benchmark, about, begun: this.begun.toISOString(), commit: commit(), smoke, machine: on, measures, notes };
    const plain = (key, value) => (typeof value === 'number' && !Number.isFinite(value) ? String(value) : value);
    fs.writeFileSync(path.join(results, `${benchmark}.json`), `${JSON.stringify(kept, plain, 2)}\n`);
    fs.writeFileSync(path.join(results, `${benchmark}.svg`), svg(benchmark, about, this.#panels));
  }
}
