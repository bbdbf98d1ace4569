// Programs that benchmarks run: the C programs of this folder, and those of PostgreSQL.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { repository } from '../../tests/service/lib/place.js';
import { keepEnded } from '../../tests/service/lib/watchdog.js';

/** One of this folder's C programs. */
export function findTool(name) {
  const places = [process.env.BENCH_TOOLS, path.join(repository, 'build/release/bench')].filter(Boolean);
  const found = places.map((place) => path.join(place, name)).find((file) => fs.existsSync(file));
  if (!found) throw new Error(`the tool ${name} is not built; ./dev bench does that`);
  return found;
}

/**
 * Returns { ended, line, stop }: `ended` resolves to the program's output, and rejects with its error output if it
 * fails; `line` resolves to the first line.
 */
export function start(program, args, { env = process.env } = {}) {
  const child = spawn(program, args.map(String), { stdio: ['ignore', 'pipe', 'pipe'], env });
  const forget = keepEnded(child.pid);
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].on('data', (part) => (output[name] += part));
  const line = new Promise((resolve) => {
    child.stdout.on('data', () => output.stdout.includes('\n') && resolve(output.stdout.split('\n', 1)[0]));
  });
  const ended = new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => {
      forget();
      if (code === 0) resolve(output.stdout);
      else reject(new Error(output.stderr.trim().slice(0, 2000) || `${path.basename(program)} ended with ${code ?? signal}`));
    });
  });
  const first = Promise.race([line, ended]);
  for (const promise of [ended, first]) promise.catch(() => {}); // a rejection is handled by the caller, possibly later
  return { ended, line: first, stop: () => child.kill() };
}
