// Runs the named benchmarks, or all: every other script of this folder is one. Missed goals are reported; the exit code
// is 1 only if a benchmark could not be run.
//
// A benchmark exports `about`, one line of text, and `bench(b)`, which uses lib/benchmark.js.

import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const names = fs
  .readdirSync(here)
  .filter((file) => file.endsWith('.js') && file !== 'run.js')
  .map((file) => file.slice(0, -3))
  .sort();

function readArguments(args) {
  const smoke = args.includes('--smoke') || process.env.RECLAIM_BENCH_SMOKE === '1';
  const chosen = args.filter((arg) => arg !== '--smoke');
  const unknown = chosen.filter((name) => !names.includes(name));
  if (unknown.length > 0) {
    console.error(`there is no benchmark ${unknown.join(', ')}; there are: ${names.join(', ')}`);
    process.exit(2);
  }
  return { smoke, chosen: chosen.length > 0 ? chosen : names };
}

process.env.RECLAIM_TEST_LOGS_TO_FILES = '1';

/** Otherwise the tests' helpers choose the program with sanitizers. */
function chooseProgram() {
  // Constant answers to compare with are in no release program.
  process.env.RECLAIM_PROGRAM ??= path.join(here, '../build/release/src/reclaim-bench');
  if (!fs.existsSync(process.env.RECLAIM_PROGRAM)) {
    console.error(`no program at ${process.env.RECLAIM_PROGRAM}; ./dev bench makes it`);
    process.exit(1);
  }
}

async function run(name, smoke) {
  const { Benchmark } = await import('./lib/benchmark.js');
  const { about, bench } = await import(`./${name}.js`);
  const b = new Benchmark(name, about, { smoke, say: console.log });
  console.log(`${name}: ${about}`);
  let fault;
  try {
    await bench(b);
  } catch (caught) {
    fault = caught;
  }
  try {
    await b.stage.end();
  } catch (caught) {
    fault ??= caught;
  }
  if (fault) throw fault;
  b.keep();
  return b;
}

/** Not in the tests' logs, which every ./dev test removes. */
function chooseLogs() {
  if (process.env.RECLAIM_TEST_LOGS) return;
  process.env.RECLAIM_TEST_LOGS = path.join(here, '../build/bench-logs');
  fs.rmSync(process.env.RECLAIM_TEST_LOGS, { recursive: true, force: true });
}

const { smoke, chosen } = readArguments(process.argv.slice(2));
chooseProgram();
chooseLogs();
/** In the order of `chosen`; those that could not be run are missing. */
const done = [];
const left = [...chosen.entries()];
async function runOneByOne() {
  for (let next = left.shift(); next; next = left.shift()) {
    const [place, name] = next;
    try {
      done[place] = await run(name, smoke);
    } catch (fault) {
      console.error(`${name}: could not be run: ${fault.stack}`);
      process.exitCode = 1;
    }
  }
}
// A smoke run measures nothing: its benchmarks may disturb each other.
await Promise.all(Array.from({ length: smoke ? 3 : 1 }, runOneByOne));

const { table } = await import('./lib/table.js');
const ran = done.filter(Boolean);
for (const { name, notes } of ran) for (const note of notes) console.log(`${name}: ${note}`);
console.log(`\n${table(['benchmark', 'measure', 'value', 'limit', 'verdict'], ran.flatMap((b) => b.rows()))}`);
