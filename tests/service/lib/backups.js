// Backups of a whole database, in the three ways that operators have: a dump, a copy of the cluster, and pgBackRest with its archive of
// the log, which restores to a point in time. Each is { take(), restore() }; the database may be changed in between.

import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

import { temporaryDirectory } from './place.js';
import { asPostgres, binaries, Cluster } from './postgres.js';
import { pause, stageOf, until } from './stage.js';

function tool(program, args, options = {}) {
  const done = spawnSync(program, args, { ...asPostgres, cwd: '/', encoding: 'utf8', env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' }, ...options });
  assert.equal(done.status, 0, `${program} ${args.join(' ')}: ${done.stderr}${done.stdout}`);
}

const folderOfPostgres = (scope) => {
  const folder = temporaryDirectory(stageOf(scope));
  if (asPostgres.uid !== undefined) fs.chownSync(folder, asPostgres.uid, asPostgres.gid);
  return folder;
};

/** What pg_dump prints of a database. */
export const dumpText = async (database, ...args) =>
  (await promisify(execFile)(path.join(binaries, 'pg_dump'), [...args, '--dbname', database.url], { maxBuffer: 1 << 30 })).stdout;

/** pg_dump, restored into a new database of the same name. */
export function dumpOf(scope, database) {
  const file = path.join(folderOfPostgres(scope), 'dump');
  const { cluster, name } = database;
  return {
    take: async () => tool(path.join(binaries, 'pg_dump'), ['-Fc', '-f', file, '-d', database.url]),
    async restore() {
      await cluster.admin(`drop database "${name}" with (force)`);
      await cluster.admin(`create database "${name}"`);
      tool(path.join(binaries, 'pg_restore'), ['-d', database.url, '--exit-on-error', file]);
    },
    /** In one transaction, into the database that servers use meanwhile: none of their connections ends. */
    async restoreInPlace() {
      const script = `${file}.sql`;
      tool(path.join(binaries, 'pg_restore'), ['-f', script, file]);
      const schemas = await database.query(`select quote_ident(nspname) as name from pg_namespace where nspname !~ '^pg_' and nspname <> 'information_schema'`);
      const drop = `drop schema ${schemas.map(({ name }) => name).join(', ')} cascade; create schema public`;
      tool(path.join(binaries, 'psql'), ['--quiet', '--single-transaction', '-v', 'ON_ERROR_STOP=1', '-d', database.url, '-c', drop, '-f', script]);
    },
  };
}

async function replaceData(cluster, put) {
  await cluster.stop('immediate');
  fs.rmSync(cluster.data, { recursive: true });
  await put(cluster.data);
  await cluster.start();
}

/** pg_basebackup: a copy of the cluster as it was. */
export function copyOf(scope, database) {
  const copy = path.join(folderOfPostgres(scope), 'copy');
  const { cluster } = database;
  return {
    take: async () => tool(path.join(binaries, 'pg_basebackup'), ['-D', copy, '-h', cluster.home, '-p', String(cluster.port), '-U', 'postgres', '-c', 'fast', '-X', 'stream']),
    restore: () => replaceData(cluster, async (data) => tool('cp', ['-R', copy, data])),
  };
}

/** A cluster whose log pgBackRest archives. */
export async function archivedCluster(scope) {
  const home = folderOfPostgres(scope);
  const settings = path.join(home, 'pgbackrest.conf');
  const common = ['--config', settings, '--stanza', 'main'];
  const cluster = await Cluster.create(scope, {
    settings: { archive_mode: 'on', archive_command: `pgbackrest ${common.join(' ')} archive-push %p`, archive_timeout: '60' },
  });
  fs.writeFileSync(
    settings,
    `[main]
pg1-path=${cluster.data}
pg1-socket-path=${cluster.home}
pg1-port=${cluster.port}
pg1-user=postgres
[global]
repo1-path=${path.join(home, 'repository')}
log-path=${home}
lock-path=${home}
spool-path=${home}
log-level-file=off
log-level-console=warn
start-fast=y
compress-type=none
`,
  );
  fs.chmodSync(settings, 0o644);
  tool('pgbackrest', [...common, 'stanza-create']);
  return Object.assign(cluster, { backRest: (args) => tool('pgbackrest', [...common, ...args]) });
}

/** pgBackRest, restored to the moment at which take() had returned. */
export function archiveOf(database) {
  const { cluster } = database;
  let target;
  return {
    async take() {
      cluster.backRest(['backup', '--type=full']);
      await pause(1100); // a backup's end is noted in whole seconds, and must lie before the target
      [{ target }] = (await cluster.admin('select clock_timestamp()::text as target')).rows;
    },
    async restore() {
      const [{ file }] = (await cluster.admin('select pg_walfile_name(pg_switch_wal()) as file')).rows;
      await until('the log archived', async () => (await cluster.admin('select last_archived_wal >= $1 as done from pg_stat_archiver'.replace('$1', `'${file}'`))).rows[0].done);
      await replaceData(cluster, async (data) => {
        fs.mkdirSync(data, { mode: 0o700 });
        if (asPostgres.uid !== undefined) fs.chownSync(data, asPostgres.uid, asPostgres.gid);
        cluster.backRest(['restore', '--type=time', `--target=${target}`, '--target-action=promote']);
      });
      await until('promoted', async () => !(await cluster.admin('select pg_is_in_recovery() as recovers')).rows[0].recovers);
    },
  };
}
