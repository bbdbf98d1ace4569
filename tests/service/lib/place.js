// Where things lie: the repository, the program under test, its logs, and directories that go away again.

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { keepRemoved } from './watchdog.js';

export const repository = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../../..');

function findProgram() {
  if (process.env.RECLAIM_PROGRAM) return path.resolve(process.env.RECLAIM_PROGRAM);
  const places = ['build/asan/src/reclaim', 'build/src/reclaim', 'build/reclaim'];
  const found = places.map((place) => path.join(repository, place)).find((file) => fs.existsSync(file));
  if (!found) throw new Error(`no program to test: none of ${places.join(', ')} exists and RECLAIM_PROGRAM is not set`);
  return found;
}

let program;
export function reclaimProgram() {
  program ??= findProgram();
  return program;
}

export const logDirectory = path.resolve(process.env.RECLAIM_TEST_LOGS ?? path.join(repository, 'build/test-logs'));

let logs = 0;
/** A new file for what one server or database leaves behind; tests/canary.sh reads them all. */
export function logFile(kind, ending) {
  fs.mkdirSync(logDirectory, { recursive: true });
  const about = path.basename(process.argv[1] ?? 'test').replace(/\.test\.js$/, '');
  return path.join(logDirectory, `${about}-${process.pid}-${++logs}-${kind}.${ending}`);
}

/**
 * An empty directory that others may enter. Not under TMPDIR, which may be long or closed to the user postgres: a
 * socket's path has room for 107 bytes.
 */
export function temporaryDirectory(scope, mode = 0o755) {
  const directory = fs.mkdtempSync('/tmp/reclaim-test-');
  const forget = keepRemoved(directory);
  fs.chmodSync(directory, mode);
  scope.after(() => {
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    forget();
  });
  return directory;
}

export const isRoot = os.userInfo().uid === 0;
