// The journals of instances, read as files, and whether a server says that the database was restored.

import fs from 'node:fs';
import path from 'node:path';

import { ops } from './http.js';
import { until } from './stage.js';

export const folderOf = (home) => path.join(home, 'data/journal');

export const filesOf = (home) =>
  fs.existsSync(folderOf(home))
    ? fs.readdirSync(folderOf(home)).filter((name) => name.endsWith('.jsonl')).sort().map((name) => path.join(folderOf(home), name))
    : [];

export const textOf = (home) => filesOf(home).map((file) => fs.readFileSync(file, 'utf8')).join('');

/** Without one that has no end yet. */
export const linesIn = (home) => filesOf(home).flatMap((file) => fs.readFileSync(file, 'utf8').split('\n').slice(0, -1));

/** What the lines say, without their signatures. */
export const saidIn = (home) => linesIn(home).map((line) => JSON.parse(line.split('\t')[0]));

export const readyz = async (server) => JSON.parse((await ops(server, '/readyz')).body).status;
export const says = (server, status) => until(`/readyz says ${status}`, async () => (await readyz(server)) === status);
