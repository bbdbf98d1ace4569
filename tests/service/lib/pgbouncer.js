// PgBouncer in transaction mode in front of a cluster.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';

import { isRoot, temporaryDirectory } from './place.js';
import { asPostgres, freePort } from './postgres.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

export class Pooler {
  static async start(scope, cluster, { poolSize = 4 } = {}) {
    const stage = stageOf(scope);
    const pooler = new Pooler();
    pooler.home = temporaryDirectory(stage);
    pooler.port = await freePort();
    const settings = path.join(pooler.home, 'pgbouncer.ini');
    fs.writeFileSync(
      settings,
      `[databases]
* = host=${cluster.home} port=${cluster.port}
[pgbouncer]
pool_mode = transaction
listen_addr =
listen_port = ${pooler.port}
unix_socket_dir = ${pooler.home}
auth_type = trust
auth_file = ${path.join(pooler.home, 'users')}
default_pool_size = ${poolSize}
logfile = ${path.join(pooler.home, 'log')}
`,
    );
    fs.writeFileSync(path.join(pooler.home, 'users'), '"postgres" ""\n');
    if (isRoot) fs.chownSync(pooler.home, asPostgres.uid, asPostgres.gid);
    const child = spawn('/usr/sbin/pgbouncer', [settings], { ...asPostgres, cwd: '/', stdio: ['ignore', 'ignore', 'ignore'] });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const forget = keepEnded(child.pid);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    exited.then(forget);
    stage.after(async () => {
      child.kill('SIGKILL');
      await exited;
    });
    await until('PgBouncer answering', async () => {
      if (child.exitCode !== null) throw new Ended(`PgBouncer ended: ${fs.readFileSync(path.join(pooler.home, 'log'), 'utf8')}`);
      const client = new pg.Client({ host: pooler.home, port: pooler.port, user: 'postgres', database: 'postgres' });
      await client.connect();
      await client.end();
      return true;
    });
    return pooler;
  }

  url(database) {
    return `postgresql://postgres@/${database.name}?host=${this.home}&port=${this.port}`;
  }
}
