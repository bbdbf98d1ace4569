// Runs PostgreSQL's own load generator: a script of ours by so many clients, each over a connection of its own.

import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { binaries } from '../../tests/service/lib/postgres.js';
import { start } from './tool.js';

const peers = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../peers');
const rate = /^tps = ([\d.]+) \(without initial connection time\)$/m;

/**
 * Runs bench/peers/`script` prepared, with `variables`, by so many clients for so many whole seconds, or so many
 * `times` each. `searchPath` is the sessions'. Returns how often a second.
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
