// The program under test: a server with its log lines, or one command with its output.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { logFile, reclaimProgram, temporaryDirectory } from './place.js';
import { request } from './http.js';
import { canaryKey } from './people.js';
import { parseMetrics, valueOf } from './prometheus.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

const sanitizer = /(Address|Leak|Thread|Memory|UndefinedBehavior)Sanitizer|runtime error:/;

/** The program does not inherit settings of this process. */
function environment(directory, given) {
  const settings = {
    PATH: process.env.PATH,
    HOME: directory,
    LANG: 'C.UTF-8',
    RECLAIM_DATA_DIR: path.join(directory, 'data'),
    RECLAIM_SECRET_KEY: canaryKey,
    ASAN_OPTIONS: process.env.ASAN_OPTIONS,
    LSAN_OPTIONS: process.env.LSAN_OPTIONS,
    UBSAN_OPTIONS: process.env.UBSAN_OPTIONS ?? 'print_stacktrace=1:halt_on_error=1',
    TSAN_OPTIONS: process.env.TSAN_OPTIONS,
    ...given,
  };
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined && value !== null));
}

/**
 * Benchmarks have the server write its log into a file, as an installation does: reading a line a request would take more of
 * the machine than answering it. The file is read when lines are asked for, without those of requests.
 */
const logsToFiles = process.env.RECLAIM_TEST_LOGS_TO_FILES === '1';
const ofRequest = '"event":"request"';
const portion = 1 << 20;

export class Server {
  #clients = [];
  output = ''; // stdout

  constructor(child, scopeDirectory, log) {
    this.directory = scopeDirectory;
    this.process = child;
    this.pid = child.pid;
    this.logPath = log.path;
    this.#log = log.fd;
    child.stdout.on('data', (part) => {
      this.output += part;
      if (!logsToFiles) fs.writeSync(this.#log, part); // the file is read as stderr alone
    });
    child.stderr?.on('data', (part) => {
      fs.writeSync(this.#log, part);
      this.#take(part);
    });
    this.exited = new Promise((resolve) =>
      child.once('close', (code, signal) => {
        this.#readFile();
        if (this.#partial) this.#line(this.#partial);
        fs.closeSync(this.#log);
        this.exit = { code, signal };
        resolve(this.exit);
      }),
    );
  }

  #log;
  #lines = [];
  #partial = '';
  #read = 0; // of the file, in bytes
  #addresses = {};

  /** Of stderr, parsed; a line that is not JSON is { notJson: text }. */
  get lines() {
    if (!this.exit) this.#readFile();
    return this.#lines;
  }

  #readFile() {
    if (!logsToFiles) return;
    const bytes = Buffer.alloc(portion);
    for (let count; (count = fs.readSync(this.#log, bytes, 0, portion, this.#read)) > 0; this.#read += count)
      this.#take(bytes.toString('latin1', 0, count));
  }

  #take(part) {
    const lines = (this.#partial + part).split('\n');
    this.#partial = lines.pop();
    for (const line of lines) if (!logsToFiles || !line.includes(ofRequest)) this.#line(line);
  }

  #line(text) {
    try {
      this.#lines.push(JSON.parse(text));
    } catch {
      this.#lines.push({ notJson: text });
    }
  }

  events(name) {
    return this.lines.filter((line) => line.event === name);
  }

  /** Waits for a log line that `wanted` accepts. */
  async line(what, wanted, deadlineMs) {
    return until(`log line: ${what}`, () => this.lines.find(wanted) ?? this.#stillThere(), deadlineMs);
  }

  #stillThere() {
    if (this.exit) throw new Ended(`the server ended with ${JSON.stringify(this.exit)}: ${this.tail()}`);
  }

  tail() {
    const most = 3000;
    const log = fs.openSync(this.logPath);
    const bytes = Buffer.alloc(most);
    const count = fs.readSync(log, bytes, 0, most, Math.max(0, fs.fstatSync(log).size - most));
    fs.closeSync(log);
    return bytes.toString('utf8', 0, count);
  }

  address(listener = 'public') {
    return (this.#addresses[listener] ??= this.#readAddress(listener));
  }

  #readAddress(listener) {
    const line = this.lines.find((one) => one.event === 'listening' && one.listener === listener);
    assert.ok(line, `no «listening» line of the ${listener} listener; log: ${this.tail()}`);
    const colon = line.address.lastIndexOf(':');
    return { host: line.address.slice(0, colon).replace(/^\[|\]$/g, ''), port: Number(line.address.slice(colon + 1)) };
  }

  async listening() {
    for (const listener of ['public', 'ops'])
      await this.line(`${listener} listening`, (line) => line.event === 'listening' && line.listener === listener);
  }

  async ready(deadlineMs) {
    await this.listening();
    await until(
      '/readyz 200',
      async () => {
        this.#stillThere();
        return (await request(this, { path: '/readyz', listener: 'ops' })).status === 200;
      },
      deadlineMs,
    );
  }

  /** A client that keeps connections open, as browsers do: closed before the server is stopped. */
  keepsConnections(close) {
    this.#clients.push(close);
  }

  /** After all clients have closed: an open connection is a request without a reply. */
  async withoutConnections() {
    for (const close of this.#clients.splice(0)) await close();
    await until('no connection left open', async () => {
      this.#stillThere();
      const metrics = parseMetrics((await request(this, { path: '/metrics', listener: 'ops' })).body);
      return valueOf(metrics, 'reclaim_http_connections') === 0;
    });
  }

  signal(name) {
    this.process.kill(name);
  }

  assertClean() {
    const report = this.lines.find((line) => sanitizer.test(line.notJson ?? ''));
    assert.ok(!report, `a sanitizer complained: ${this.tail()}`);
    const odd = this.lines.find((line) => 'notJson' in line);
    assert.ok(!odd, `a line on stderr is no JSON: ${odd?.notJson}`);
  }

  /** Stops it as an operator would: the exit code must be 0, and no errors be logged. */
  async stop() {
    if (!this.exit) this.signal('SIGTERM');
    const exit = await this.ended();
    this.assertClean();
    assert.deepEqual(exit, { code: 0, signal: null }, `SIGTERM: ${this.tail()}`);
  }

  async ended(deadlineMs = 60_000) {
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, deadlineMs, 'late')));
    const exit = await Promise.race([this.exited, late]);
    clearTimeout(timer);
    if (exit === 'late') {
      this.signal('SIGKILL');
      assert.fail(`the server did not end: ${this.tail()}`);
    }
    return exit;
  }

  async kill9() {
    this.signal('SIGKILL');
    await this.exited;
  }
}

/**
 * Starts `reclaim serve`, or another command that runs until it is stopped. `wait` is 'ready', 'listening' or
 * 'nothing'. Unless the test has ended it, it is stopped and checked with the scope.
 */
export async function serve(scope, { database, env = {}, args = [], wait = 'ready', directory, command = ['serve'] } = {}) {
  const stage = stageOf(scope);
  const home = directory ?? temporaryDirectory(stage);
  const settings = {
    RECLAIM_LISTEN: '127.0.0.1:0',
    RECLAIM_OPS_LISTEN: '127.0.0.1:0',
    RECLAIM_PROBE_HOLD_MS: '0',
    RECLAIM_PROBE_HOLD_SIGMA_MS: '0',
    RECLAIM_PROBE_TIMEOUT_MS: '1000', // a look-up may wait on a busy machine
    RECLAIM_HOLD_MS: '0',
    RECLAIM_HOLD_SIGMA_MS: '0',
    RECLAIM_LIMIT_PROBE: 'off',
    RECLAIM_LIMIT_GLOBAL: 'off',
    RECLAIM_LIMIT_IP: 'off',
    RECLAIM_LIMIT_EMAIL: 'off',
    RECLAIM_DATABASE_URL: database?.url ?? database,
    ...env,
  };
  const path = logFile('server', 'log');
  const log = { path, fd: fs.openSync(path, 'a+') };
  const child = spawn(reclaimProgram(), [...command, ...args], {
    cwd: home,
    env: environment(home, settings),
    stdio: ['ignore', 'pipe', logsToFiles ? log.fd : 'pipe'],
  });
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  const forget = keepEnded(child.pid);
  const server = new Server(child, home, log);
  server.exited.then(forget);
  stage.after(async () => {
    if (server.exit) return server.assertClean();
    if (wait !== 'nothing') await server.withoutConnections();
    return server.stop();
  });
  if (wait === 'ready') await server.ready();
  if (wait === 'listening') await server.listening();
  return server;
}

/** Runs one command until it exits; `said` is called with what it has written to stderr so far, and with its process. */
export async function run(scope, args, { env = {}, database, directory, deadlineMs = 120_000, said } = {}) {
  const home = directory ?? temporaryDirectory(stageOf(scope));
  const child = spawn(reclaimProgram(), args, {
    cwd: home,
    env: environment(home, { RECLAIM_DATABASE_URL: database?.url ?? database, ...env }),
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  });
  const forget = keepEnded(child.pid);
  const parts = { stdout: [], stderr: [] };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (part) => parts[name].push(part));
  if (said) child.stderr.on('data', () => said(Buffer.concat(parts.stderr).toString('utf8'), child));
  const { code, signal } = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (endCode, endSignal) => resolve({ code: endCode, signal: endSignal }));
  });
  forget();
  const result = { code, signal };
  for (const name of ['stdout', 'stderr']) result[name] = Buffer.concat(parts[name]).toString('utf8');
  fs.writeFileSync(logFile(`run-${args[0] ?? 'bare'}`.replace(/[^a-z-]/g, ''), 'log'), result.stderr);
  assert.ok(!sanitizer.test(result.stderr), `a sanitizer complained: ${result.stderr}`);
  return result;
}
