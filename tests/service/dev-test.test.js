// What ./dev test makes of tests that fail, fail once, hang or crash, and of programs of unit tests.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { temporaryDirectory } from './lib/place.js';
import { stageOf } from './lib/stage.js';

const tools = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../tools');
const head = "import { it } from 'node:test'; import fs from 'node:fs'; import assert from 'node:assert/strict';\n";
const fine = "it('is fine', () => {});\n";

/** Runs files of these contents; what was shown, the exit code, the counts, the notes, and where logs are. */
function runFiles(t, contents, { seconds = 60 } = {}) {
  const home = temporaryDirectory(stageOf(t));
  const at = (name) => path.join(home, name);
  const files = Object.entries(contents).map(([name, text]) => {
    fs.writeFileSync(at(`${name}.test.mjs`), head + text.replaceAll('HOME', home));
    return at(`${name}.test.mjs`);
  });
  const env = { ...process.env, FILE_SECONDS: String(seconds) };
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(tools, 'node-tests.mjs'), at('run.log'), at('tally'), ...files], { env, encoding: 'utf8' });
  const [counts, ...notes] = fs.readFileSync(at('tally'), 'utf8').trimEnd().split('\n');
  return { status, shown: stdout + stderr, counts, notes, log: (name) => fs.readFileSync(at(`run/${name}`), 'utf8') };
}

describe('files of tests', () => {
  it('pass when all of their tests do', (t) => {
    const { status, counts, notes } = runFiles(t, { one: fine + fine, two: fine });
    assert.deepEqual([status, counts, notes], [0, '3 0', []]);
  });

  it('fail the run when a test fails both times', (t) => {
    const { status, counts, notes, shown } = runFiles(t, { good: fine, bad: `${fine}it('is wrong', () => assert.fail('so it is'));` });
    assert.deepEqual([status, counts, notes], [1, '2 1', []]);
    assert.match(shown, /failed: is wrong/);
    assert.match(shown, /so it is/);
  });

  it('pass, and are named, when a test fails among others and not alone', (t) => {
    const once = "it('is moody', () => { if (!fs.existsSync('HOME/seen')) { fs.writeFileSync('HOME/seen', ''); assert.fail('the first time'); } });";
    const { status, counts, notes, log } = runFiles(t, { good: fine, moody: fine + once });
    assert.deepEqual([status, counts], [0, '3 0']);
    assert.equal(notes.length, 1);
    assert.match(notes[0], /^passed only when run again alone: .*moody\.test\.mjs \(is moody\)$/);
    assert.match(log('moody.first.log'), /the first time/);
  });

  it('fail the run when they hang', (t) => {
    const { status, counts, shown } = runFiles(t, { good: fine, hangs: `${fine}it('never ends', () => new Promise(() => setInterval(() => {}, 1000)));` }, { seconds: 3 });
    assert.equal(status, 1);
    assert.match(counts, /^\d [1-9]$/);
    assert.match(shown, /not done after 3 s/);
  });

  it('fail the run when they crash, or cannot be read', (t) => {
    const { status, counts } = runFiles(t, { good: fine, crashes: "process.kill(process.pid, 'SIGKILL');", wrong: 'this is no program' });
    assert.deepEqual([status, counts], [1, '1 2']);
  });
});

const program = (name, result, ...ends) => ({
  name: `reclaim:unit / ${name}`,
  result,
  stdout: ends.map((end, n) => `[ RUN      ] test_${n}\n[ ${end.padStart(8)} ] test_${n}\n`).join(''),
});

describe('programs of unit tests', () => {
  function sum(t, first, second) {
    const home = temporaryDirectory(stageOf(t));
    const at = (name) => path.join(home, name);
    const lines = (all) => all.map((one) => JSON.stringify(one)).join('\n');
    fs.writeFileSync(at('first.json'), lines(first));
    if (second) fs.writeFileSync(at('second.json'), lines(second));
    const tally = (...args) => spawnSync(path.join(tools, 'tally.py'), args, { encoding: 'utf8' });
    const failed = tally('failed', at('first.json')).stdout.split('\n').filter(Boolean);
    assert.equal(tally('sum', at('tally'), at('first.json'), at('second.json')).status, 0);
    return { failed, told: fs.readFileSync(at('tally'), 'utf8') };
  }

  it('are counted test by test', (t) => {
    const { failed, told } = sum(t, [program('base/a', 'OK', 'OK', 'OK', 'SKIPPED'), program('base/b', 'FAIL', 'OK', 'FAILED'), program('base/c', 'TIMEOUT')]);
    assert.deepEqual(failed, ['base/b', 'base/c']);
    assert.equal(told, '3 2\n');
  });

  it('fail when a sanitizer complains at the end', (t) => {
    assert.equal(sum(t, [program('base/a', 'FAIL', 'OK')]).told, '1 1\n');
  });

  it('are named when they passed only the second time', (t) => {
    const first = [program('base/a', 'FAIL', 'OK', 'FAILED'), program('base/b', 'FAIL', 'FAILED')];
    const { told } = sum(t, first, [program('base/a', 'OK', 'OK', 'OK'), program('base/b', 'FAIL', 'FAILED')]);
    assert.equal(told, '2 1\npassed only when run again alone: reclaim:unit / base/a (test_1)\n');
  });
});
