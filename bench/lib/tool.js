// Programs that benchmarks run: the bench's own, built in C, and those of PostgreSQL.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { repository } from '../../tests/service/lib/place.js';
import { keepEnded } from '../../tests/service/lib/watchdog.js';

/** One of this folder's C programs. */
export function findTool(name) {
  const places = [process.env.BENCH_TOOLS, path.join(repository, 'build/bench/bench')].filter(Boolean);
  const found = places.map((place) => path.join(place, name)).find((file) => fs.existsSync(file));
  if (!found) throw new Error(`the tool ${name} is not built; ./dev bench does that`);
  return found;
}

/**
 * Returns { ended, line, stop }: `ended` resolves to what the program printed, and rejects with its complaint if it
 * fails; `line` to the first line, once it is there.
 */
export function start(program, args, { env = process.env } = {}) {
  const child = spawn(program, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'], env });
  const forget = keepEnded(child.pid);
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (part) => (said[name] += part));
  const line = new Promise((resolve) => {
    child.stdout.on('data', () => said.stdout.includes('\n') && resolve(said.stdout.split('\n', 1)[0]));
  });
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      forget();
      if (code === 0) resolve(said.stdout);
      else reject(new Error(said.stderr.trim().slice(0, 2000) || `${path.basename(program)} ended with ${code ?? signal}`));
    });
  });
  const first = Promise.race([line, ended]);
  for (const promise of [ended, first]) promise.catch(() => {}); // told to whoever awaits it, perhaps later
  return { ended, line: first, stop: () => child.kill() };
}
