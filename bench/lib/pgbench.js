// Runs pgbench with one of our scripts and so many clients, each with its own connection.

import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { binaries } from '../../tests/service/lib/postgres.js';
import { start } from './tool.js';

const peers = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../peers');
const rate = /^tps = ([\d.]+) \(without initial connection time\)$/m;

/**
 * Runs bench/peers/`script` with prepared statements and `variables`, for `seconds` or `times` by each client.
 * `searchPath` is set in every session. Returns transactions per second.
 */
export async function pgbench(database, { script, clients, seconds, times, variables = {}, searchPath }) {
  const args = ['-n', '-M', 'prepared', '-c', clients, '-j', Math.min(2, clients), '-f', path.join(peers, script)];
  args.push(...(times ? ['-t', times] : ['-T', seconds]));
  for (const [name, value] of Object.entries(variables)) args.push('-D', `${name}=${value}`);
  const { host, port, user } = database.cluster.connection();
  const env = { ...process.env, PGHOST: host, PGPORT: String(port), PGUSER: user };
  if (searchPath) env.PGOPTIONS = `-c search_path=${searchPath}`;
  const printed = await start(path.join(binaries, 'pgbench'), [...args, database.name], { env }).ended;
  const found = rate.exec(printed);
  if (!found) throw new Error(`pgbench: ${printed}`);
  return Number(found[1]);
}
