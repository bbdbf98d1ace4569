// Private PostgreSQL clusters: real servers in a directory under /tmp, on a unix socket, on TCP only when asked.

import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

import { isRoot, logFile, temporaryDirectory } from './place.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

const fixtures = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../fixtures');

function findBinaries() {
  const base = '/usr/lib/postgresql';
  const versions = fs.readdirSync(base).filter((name) => fs.existsSync(path.join(base, name, 'bin/postgres')));
  assert.ok(versions.length > 0, `no PostgreSQL under ${base}`);
  versions.sort((a, b) => Number(a) - Number(b));
  return path.join(base, versions.at(-1), 'bin');
}

export const binaries = findBinaries();

/** PostgreSQL refuses to run as root. */
export const asPostgres = isRoot
  ? {
      uid: Number(execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' })),
      gid: Number(execFileSync('id', ['-g', 'postgres'], { encoding: 'utf8' })),
    }
  : {};

const isFree = (port) =>
  new Promise((resolve) => {
    const server = net.createServer();
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });

/** Below the ports that outgoing connections get: a server binds it seconds later, and until then nobody else takes it. */
export async function freePort() {
  for (;;) {
    const port = randomInt(10_000, 32_768);
    if (await isFree(port)) return port;
  }
}

let databases = 0;

class Database {
  constructor(cluster, name) {
    this.cluster = cluster;
    this.name = name;
    this.url = cluster.url(name);
    this.pool = new pg.Pool({ ...cluster.connection(name), max: 4 });
    this.pool.on('error', () => {}); // a killed server ends idle connections
  }

  async query(sql, values) {
    return (await this.pool.query(sql, values)).rows;
  }

  async fixture(name) {
    await this.pool.query(fs.readFileSync(path.join(fixtures, `${name}.sql`), 'utf8'));
  }

  /** A separate session, for locks; ended with the scope. The name is its application_name. */
  async session(scope, name) {
    const client = new pg.Client({ ...this.cluster.connection(this.name), application_name: name });
    client.on('error', () => {});
    await client.connect();
    stageOf(scope).after(() => client.end().catch(() => {}));
    return client;
  }

  /** Dumps Reclaim's tables for tests/canary.sh. */
  dump() {
    const dumped = spawnSync(
      path.join(binaries, 'pg_dump'),
      ['--schema=reclaim', '--exclude-table-data=reclaim.mailbox', '--file', logFile('dump', 'sql'), '--dbname', this.url], // a mailbox contains addresses
      { encoding: 'utf8' },
    );
    const nothing = /no matching schemas/.test(dumped.stderr);
    assert.ok(dumped.status === 0 || nothing, `pg_dump: ${dumped.stderr}`);
  }

  async drop() {
    await this.pool.end();
    if (!this.cluster.running) return;
    this.dump();
    await this.cluster.admin(`drop database "${this.name}" with (force)`);
  }
}

/** The command that makes a data directory: a copy of the new cluster of tools/with-postgres if there is one, which is quicker. */
const howToMake = (data) =>
  process.env.RECLAIM_TEST_CLUSTER
    ? ['cp', '-R', process.env.RECLAIM_TEST_CLUSTER, data]
    : [path.join(binaries, 'initdb'), '-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8', '--no-sync', '-N'];

export class Cluster {
  constructor(home, port) {
    this.home = home;
    this.data = path.join(home, 'data');
    this.tcp = port !== undefined;
    this.port = port ?? 5432;
  }

  static async create(scope, { tcp = false, settings = {} } = {}) {
    const stage = stageOf(scope);
    const home = temporaryDirectory(stage);
    if (isRoot) fs.chownSync(home, asPostgres.uid, asPostgres.gid);
    const cluster = new Cluster(home, tcp ? await freePort() : undefined);
    const [program, ...args] = howToMake(cluster.data);
    const made = spawnSync(program, args, { ...asPostgres, cwd: '/', encoding: 'utf8', env: { PATH: process.env.PATH, HOME: home, LC_ALL: 'C.UTF-8' } });
    assert.equal(made.status, 0, `${program}: ${made.stderr}`);
    const lines = Object.entries({
      listen_addresses: tcp ? '127.0.0.1' : '',
      port: cluster.port,
      unix_socket_directories: home,
      max_connections: 300,
      shared_buffers: '32MB',
      fsync: 'off',
      full_page_writes: 'off',
      ...settings,
    }).map(([name, value]) => `${name} = '${value}'\n`);
    fs.appendFileSync(path.join(cluster.data, 'postgresql.conf'), lines.join(''));
    stage.after(() => cluster.stop('immediate'));
    await cluster.start();
    return cluster;
  }

  get running() {
    return this.process !== undefined;
  }

  get pid() {
    return this.process?.pid;
  }

  async start() {
    assert.ok(!this.running, 'the cluster runs already');
    fs.rmSync(path.join(this.data, 'postmaster.pid'), { force: true }); // left by a kill -9
    const log = fs.openSync(path.join(this.home, 'log'), 'a');
    const child = spawn(path.join(binaries, 'postgres'), ['-D', this.data], {
      ...asPostgres,
      cwd: '/',
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' },
      stdio: ['ignore', log, log],
    });
    fs.closeSync(log);
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const ended = keepEnded(child.pid, 'QUIT');
    this.process = child;
    this.exited = new Promise((resolve) =>
      child.once('exit', () => {
        ended();
        if (this.process === child) this.process = undefined;
        resolve();
      }),
    );
    await until('PostgreSQL answering', () => {
      if (!this.running) throw new Ended(`PostgreSQL ended: ${fs.readFileSync(path.join(this.home, 'log'), 'utf8').slice(-2000)}`);
      return this.admin('select 1');
    });
  }

  async stop(mode = 'fast') {
    await this.#signal({ smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' }[mode]);
  }

  /** Kills the postmaster only: its children detect that and exit, and the shared memory is freed. */
  async kill9() {
    await this.#signal('SIGKILL');
    await until('the children of a killed postmaster gone', () => processesIn(this.data).length === 0);
  }

  async restart(mode = 'fast') {
    await this.stop(mode);
    await this.start();
  }

  async #signal(signal) {
    if (!this.running) return;
    this.process.kill(signal);
    await this.exited;
  }

  connection(database = 'postgres') {
    return { host: this.home, port: this.port, user: 'postgres', database };
  }

  url(database = 'postgres') {
    return `postgresql://postgres@/${database}?host=${this.home}&port=${this.port}`;
  }

  tcpUrl(database = 'postgres', host = '127.0.0.1') {
    assert.ok(this.tcp);
    return `postgresql://postgres@${host}:${this.port}/${database}`;
  }

  async admin(sql) {
    const client = new pg.Client(this.connection());
    client.on('error', () => {});
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  }

  /** A database with the given auth schema ('minimal', 'supabase' or 'none'), dumped and dropped with the scope; or a copy. */
  async database(scope, { auth = 'minimal', companies = auth !== 'none', template = 'template1' } = {}) {
    const name = `t${process.pid}_${++databases}`;
    await this.admin(`create database "${name}" template "${template}"`);
    const database = new Database(this, name);
    stageOf(scope).after(() => database.drop());
    if (auth !== 'none') await database.fixture(`${auth}-auth`);
    if (companies) await database.fixture('companies');
    return database;
  }
}

/** Processes with their working directory in `directory`, as all processes of a PostgreSQL server. */
export function processesIn(directory) {
  return fs
    .readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const cwd = fs.readlinkSync(`/proc/${pid}/cwd`);
        return cwd === directory || cwd.startsWith(`${directory}/`);
      } catch {
        return false; // ended, or not accessible
      }
    })
    .map(Number);
}
