// Paths: the repository, the program under test, its logs, and temporary directories.

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
/** A new file for the log or dump of one server or database; tests/canary.sh reads them all. */
export function logFile(kind, ending) {
  fs.mkdirSync(logDirectory, { recursive: true });
  const about = path.basename(process.argv[1] ?? 'test').replace(/\.test\.js$/, '');
  return path.join(logDirectory, `${about}-${process.pid}-${++logs}-${kind}.${ending}`);
}

/** ./dev test sets it to a file system in memory if there is enough: creating a server's files on disk takes longer. */
const serversDirectory = process.env.RECLAIM_TEST_DIRECTORY ?? '/tmp';

/**
 * An empty directory that other users may enter. Not under TMPDIR, which may be inaccessible to the user postgres, or
 * too long for the 107 bytes of a socket's path.
 */
export function temporaryDirectory(scope, mode = 0o755) {
  const directory = fs.mkdtempSync(path.join(serversDirectory, 'reclaim-test-'));
  const forget = keepRemoved(directory);
  fs.chmodSync(directory, mode);
  scope.after(() => {
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
    forget();
  });
  return directory;
}

export const isRoot = os.userInfo().uid === 0;
