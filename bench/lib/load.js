// Runs the load generator (bench/load.c).

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { repository } from '../../tests/service/lib/place.js';
import { keepEnded } from '../../tests/service/lib/watchdog.js';

function findTool(name) {
  const places = [process.env.BENCH_TOOLS, path.join(repository, 'build/bench/bench')].filter(Boolean);
  const found = places.map((place) => path.join(place, name)).find((file) => fs.existsSync(file));
  if (!found) throw new Error(`the tool ${name} is not built; ./dev bench does that`);
  return found;
}

/**
 * So many callers, each sending its next request once the last is answered. Their beginnings are spread over spreadMs,
 * then warmMs pass before runMs are measured. A run of # in path, headers or body becomes a number below `numbers`.
 * Returns { ended, stop }: `ended` resolves to what load prints.
 */
export function startLoad(server, { path: url, body, headers = {}, callers, spreadMs = 0, warmMs = 0, runMs, numbers = 1 }) {
  const { host, port } = server.address();
  const args = ['--callers', callers, '--spread', spreadMs, '--warm', warmMs, '--run', runMs, '--numbers', numbers];
  if (body !== undefined) args.push('--body', body);
  for (const [name, value] of Object.entries(headers)) args.push('--header', `${name}: ${value}`);
  const child = spawn(findTool('load'), [...args.map(String), `${host}:${port}`, url], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const forget = keepEnded(child.pid);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (part) => (said[name] += part));
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      forget();
      if (code === 0) resolve(JSON.parse(said.stdout));
      else reject(new Error(said.stderr.trim() || `load ended with ${code ?? signal}`));
    });
  });
  ended.catch(() => {}); // told to whoever awaits it, perhaps later
  return { ended, stop: () => child.kill() };
}
