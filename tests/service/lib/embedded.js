// Access to the private cluster of a server under test.

import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import pg from 'pg';

import { logFile } from './place.js';
import { processesIn } from './postgres.js';
import { stageOf } from './stage.js';

function parentOf(pid) {
  try {
    return Number(/^PPid:\s*(\d+)$/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]);
  } catch {
    return 0;
  }
}

/** The postmaster that the server runs: the child of it whose working directory holds a PG_VERSION. */
export function postmasterOf(server) {
  for (const name of fs.readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || parentOf(name) !== server.pid) continue;
    try {
      const data = fs.readlinkSync(`/proc/${name}/cwd`);
      if (fs.existsSync(path.join(data, 'PG_VERSION'))) return { pid: Number(name), data };
    } catch {
      // gone meanwhile
    }
  }
  return null;
}

export const clusterProcesses = (data) => processesIn(data);

/** Host and port of the private cluster. */
export function connectionOf(data) {
  const lines = fs.readFileSync(path.join(data, 'postmaster.pid'), 'utf8').split('\n');
  return { host: lines[4], port: Number(lines[3]), user: 'reclaim', database: 'reclaim' };
}

/** A connection to the private cluster, ended with the scope. */
export async function connectTo(scope, data) {
  const { host, port, user, database } = connectionOf(data);
  const client = new pg.Client({ host, port, user, database });
  client.on('error', () => {});
  await client.connect();
  stageOf(scope).after(() => client.end().catch(() => {}));
  const url = `postgresql://${user}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
  return { url, query: async (sql, values) => (await client.query(sql, values)).rows, end: () => client.end() };
}

/** PostgreSQL's log must not contain addresses either. */
export function keepServerLog(data) {
  const log = path.join(path.dirname(data), 'server.log');
  assert.ok(fs.existsSync(log), log);
  fs.copyFileSync(log, logFile('postgres', 'log'));
}
