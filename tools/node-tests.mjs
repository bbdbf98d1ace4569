// Runs test files of node:test, FILES_TOGETHER at a time, each in a separate process for at most FILE_SECONDS. A file
// whose set-up fails is ended at once. Files that contain "// takes long" are started first, so that none of them is still
// running when the others have ended. A file that contains "// runs alone" runs after the others.
//
// usage: node tools/node-tests.mjs LOG TALLY [--name PATTERN] FILE...
//
// Writes all output to LOG, and the output of each file to a directory named as LOG without its suffix. Writes
// "PASSED FAILED" to TALLY.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { setUpFailed } from './reporter.mjs';

const [log, tally, ...rest] = process.argv.slice(2);
const pattern = rest[0] === '--name' ? ['--test-name-pattern', rest.splice(0, 2)[1]] : [];
const together = Number(process.env.FILES_TOGETHER ?? 5);
const seconds = process.env.FILE_SECONDS ?? '300';
const logs = log.replace(/\.log$/, '');
const reporter = join(dirname(fileURLToPath(import.meta.url)), 'reporter.mjs');

class TestFile {
  constructor(path) {
    this.path = path;
    this.name = basename(path);
    const text = readFileSync(path, 'utf8');
    this.alone = /^\/\/ runs alone\b/m.test(text);
    this.long = /^\/\/ takes long\b/m.test(text);
  }

  /** Runs it until it ends or is killed. */
  async run() {
    const output = this.#kept('log');
    const counts = this.#kept('json');
    rmSync(counts, { force: true });
    const began = performance.now();
    const { code, shown, ended } = await this.#spawn(output, counts);
    this.took = (performance.now() - began) / 1000;
    this.shown = shown;
    this.passed = 0;
    this.failed = [];
    try {
      ({ passed: this.passed, failed: this.failed } = JSON.parse(readFileSync(counts, 'utf8')));
    } catch {
      // it ended before writing them
    }
    if (ended) {
      // its failures are counted; the exit code is that of the signal
    } else if (code === 124 || code === 137) this.#addFailure(`not done after ${seconds} s, or killed`);
    else if (code !== 0 && this.failed.length === 0) this.#addFailure(`exit ${code}`);
    appendFileSync(log, `=== ${this.path}, ${this.took.toFixed(1)} s\n${this.shown}${read(output)}\n`);
    process.stdout.write(this.shown);
  }

  #kept(ending) {
    return join(logs, this.name.replace(/\.test\.m?js$/, `.${ending}`));
  }

  #addFailure(why) {
    this.failed.push(why);
    this.shown += `--- failed: ${this.path}: ${why}\n`;
  }

  /** In a separate process group, which is ended with this process and at the time limit. */
  #spawn(output, counts) {
    const command = ['--pdeathsig', 'TERM', '--', 'timeout', '-k', '10', seconds, process.execPath, '--test', ...pattern];
    command.push('--test-reporter=spec', `--test-reporter-destination=${output}`);
    command.push(`--test-reporter=${reporter}`, '--test-reporter-destination=stdout', this.path);
    const env = { ...process.env, TALLY: counts };
    delete env.NODE_TEST_CONTEXT; // the tests of this program are themselves run by node:test
    const child = spawn('setpriv', command, { stdio: ['ignore', 'pipe', 'pipe'], env });
    let shown = '';
    let ended = false;
    const take = (part) => {
      shown += part;
      if (ended || !`\n${shown}`.includes(`\n${setUpFailed}`)) return;
      ended = true;
      endGroup(child.pid); // created by timeout: the file's process and its children
    };
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', take);
    return new Promise((resolve, reject) => {
      child.once('error', reject);
      // Not 'close': a process left running may keep the pipe open.
      child.once('exit', (code, signal) => setTimeout(() => resolve({ code: signal ? 137 : code, shown, ended }), 50));
    });
  }
}

function endGroup(leader) {
  try {
    process.kill(-leader, 'SIGTERM');
  } catch (fault) {
    if (fault.code !== 'ESRCH') throw fault; // it has ended already
  }
}

function read(path) {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

async function runAll(files, lanes) {
  const left = [...files];
  const lane = async () => {
    while (left.length) await left.shift().run();
  };
  await Promise.all(Array.from({ length: lanes }, lane));
}

mkdirSync(logs, { recursive: true });
const files = rest.map((path) => new TestFile(path));
const beside = files.filter(({ alone }) => !alone);
await runAll([...beside.filter(({ long }) => long), ...beside.filter(({ long }) => !long)], together);
await runAll(files.filter(({ alone }) => alone), 1);

const sum = (what) => files.reduce((total, file) => total + what(file), 0);
const failed = sum((file) => file.failed.length);
writeFileSync(tally, `${sum((file) => file.passed)} ${failed}\n`);
const slowest = [...files].sort((a, b) => b.took - a.took).slice(0, 10);
appendFileSync(log, `=== the slowest\n${slowest.map(({ path, took }) => `${took.toFixed(1).padStart(7)} s  ${path}\n`).join('')}`);
process.exitCode = failed ? 1 : 0;
process.exit();
