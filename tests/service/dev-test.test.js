// How ./dev test counts files of tests that fail, fail once, hang, crash or cannot be set up, and programs of unit tests.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

import { temporaryDirectory } from './lib/place.js';
import { serve } from './lib/reclaim.js';
import { Stage, stageOf } from './lib/stage.js';

const tools = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../tools');
const head = "import { it } from 'node:test'; import fs from 'node:fs'; import assert from 'node:assert/strict';\n";
const fine = "it('is fine', () => {});\n";

/** Runs files of these contents; what was shown, the exit code, the counts, and where files are. */
function runFiles(t, contents, { seconds = 60 } = {}) {
  const home = temporaryDirectory(stageOf(t));
  const at = (name) => path.join(home, name);
  const files = Object.entries(contents).map(([name, text]) => {
    fs.writeFileSync(at(`${name}.test.mjs`), head + text.replaceAll('HOME', home));
    return at(`${name}.test.mjs`);
  });
  const env = { ...process.env, FILE_SECONDS: String(seconds), CI: 'true' };
  const { status, stdout, stderr } = spawnSync(process.execPath, [path.join(tools, 'node-tests.mjs'), at('run.log'), at('tally'), ...files], { env, encoding: 'utf8' });
  return { status, shown: stdout + stderr, counts: fs.readFileSync(at('tally'), 'utf8').trimEnd(), at };
}

const failsOnce = "it('fails once', () => { fs.appendFileSync('HOME/runs', 'x'); if (fs.readFileSync('HOME/runs', 'utf8') === 'x') assert.fail('the first time'); });\n";

/** A suite whose set-up fails after it has started a process that keeps the file's own process alive. */
const failingSetUp = `import { spawn } from 'node:child_process'; import { describe, before } from 'node:test';
describe('cannot be set up', () => {
  before(async () => {
    const child = spawn('sleep', ['600']);
    await new Promise((resolve) => child.once('spawn', resolve));
    fs.writeFileSync('HOME/pid', String(child.pid));
    throw new Error('no such tool');
  });
  it('is never run', () => fs.writeFileSync('HOME/ran', ''));
});
`;

function isRunning(pid) {
  try {
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

describe('files of tests', () => {
  it('pass when all of their tests do', (t) => {
    const { status, counts } = runFiles(t, { one: fine + fine, two: fine });
    assert.deepEqual([status, counts], [0, '3 0']);
  });

  it('fail the run when a test fails, and are not run again', (t) => {
    const { status, counts, shown, at } = runFiles(t, { good: fine, flaky: fine + failsOnce });
    assert.deepEqual([status, counts], [1, '2 1']);
    assert.match(shown, /failed: fails once/);
    assert.match(shown, /the first time/);
    assert.equal(fs.readFileSync(at('runs'), 'utf8'), 'x');
  });

  it('end at once, with what they started, when their set-up fails', (t) => {
    const { status, counts, shown, at } = runFiles(t, { good: fine, setup: failingSetUp });
    const pid = fs.readFileSync(at('pid'), 'utf8');
    assert.equal(status, 1);
    assert.match(counts, /^1 [12]$/);
    assert.match(shown, /failed: cannot be set up/);
    assert.match(shown, /no such tool/);
    assert.doesNotMatch(shown, /not done after/);
    assert.equal(isRunning(pid), false, `process ${pid} was left running`);
    assert.equal(fs.existsSync(at('ran')), false);
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

describe('a test that waits for a server', () => {
  it('fails at once when the server has ended', async (t) => {
    const stage = new Stage();
    t.after(() => stage.end().catch(() => {})); // which finds fault with what the server wrote about its setting
    const refused = serve(stage, { database: 'postgresql://', env: { RECLAIM_LISTEN: 'no address' } });
    await assert.rejects(refused, /^Error: the server ended with/);
  });
});

const program = (name, result, ...ends) => ({
  name: `reclaim:unit / ${name}`,
  result,
  stdout: ends.map((end, n) => `[ RUN      ] test_${n}\n[ ${end.padStart(8)} ] test_${n}\n`).join(''),
});

describe('programs of unit tests', () => {
  function sum(t, log) {
    const home = temporaryDirectory(stageOf(t));
    const at = (name) => path.join(home, name);
    const lines = (all) => all.map((one) => JSON.stringify(one)).join('\n');
    fs.writeFileSync(at('log.json'), lines(log));
    const tally = (...args) => spawnSync(path.join(tools, 'tally.py'), args, { encoding: 'utf8' });
    const failed = tally('failed', at('log.json')).stdout.split('\n').filter(Boolean);
    assert.equal(tally('sum', at('tally'), at('log.json')).status, 0);
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

});

/** Runs one of the stages' functions in bash, in a folder of its own, after `stubs` have taken the place of the commands that it would run. */
function runStage(t, call, stubs) {
  const home = temporaryDirectory(stageOf(t));
  fs.symlinkSync(tools, path.join(home, 'tools'));
  fs.mkdirSync(path.join(home, 'build/logs'), { recursive: true });
  const script = `set -euo pipefail
    . tools/setup.sh
    . tools/stages.sh
    runs=0
    ${stubs}
    passed=0 failed=0 stage=unit log=build/logs/unit.log tally=build/logs/unit.tally
    ${call}
    printf '%s\n' "runs $runs" "$passed passed, $failed failed" >result`;
  const { status, stderr } = spawnSync('bash', ['-c', script], { cwd: home, env: { ...process.env, CI: 'true' }, encoding: 'utf8' });
  assert.equal(status, 0, stderr);
  return fs.readFileSync(path.join(home, 'result'), 'utf8').trimEnd().split('\n').filter(Boolean);
}

describe('stages of ./dev test', () => {
  const json = (...programs) => programs.map((one) => JSON.stringify(one)).join('\n');
  const good = program('base/a', 'OK', 'OK');
  const meson = `
    meson() { printf 'reclaim:unit / %s\\n' base/a base/b; }
    beside_postgres() {
        local logbase
        runs=$((runs + 1))
        while [[ $1 != --logbase ]]; do shift; done
        logbase=$2
        mkdir -p build/asan/meson-logs
        cat >build/asan/meson-logs/$logbase.json <<<'${json(good, program('base/b', 'FAIL', 'FAILED'))}'
        return 1
    }`;

  it('fail when a program of unit tests fails, and do not run it again', (t) => {
    assert.deepEqual(runStage(t, 'meson_tests asan reclaim', meson), ['runs 1', '1 passed, 1 failed']);
  });

  it('end and name the processes that a test left running', (t) => {
    const left = 'TEST_RUN=$run_id command sleep 600 & left=$!; sleep() { :; }';
    const ends = 'end_left_over >named && failed=9; grep -q "^ *$left sleep 600 $" named; wait $left || passed=$?';
    assert.deepEqual(runStage(t, ends, left), ['runs 0', '137 passed, 0 failed']);
  });

  const smoke = 'smoke() { runs=$((runs + 1)); echo "run $runs"; [[ $runs -gt 1 ]]; }';

  it('fail when a benchmark fails, and do not run it again', (t) => {
    assert.deepEqual(runStage(t, 'stage_bench', smoke), ['runs 1', '0 passed, 1 failed']);
  });
});
