// The journals of instances, read as files, and whether a server says that the database was restored.

import { createHash, createPrivateKey, hkdfSync, sign } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';

import { ops } from './http.js';
import { canaryKey } from './people.js';
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

const inDer = (seed) => Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), seed]); // RFC 8410, section 7
/** The key that Reclaim signs with. */
export const proofKey = (generation) =>
  createPrivateKey({ key: inDer(Buffer.from(hkdfSync('sha256', canaryKey, '', `proof ${generation}`, 32))), format: 'der', type: 'pkcs8' });
const hashOf = (line) => createHash('sha256').update(line).digest('hex');

/**
 * Dates the lines of a database back and signs them again, as if they had been written so long ago, and returns them: journals are to
 * be written with these. `daysOf` gets what a line says. Servers must not run.
 */
export async function dateBack(db, daysOf) {
  const lines = [];
  const renamed = new Map();
  for (const { id, line } of await db.query('select id, line from reclaim.journal_lines order by id')) {
    const [text] = line.split('\t');
    const said = JSON.parse(text);
    const days = daysOf(said);
    const dated = JSON.stringify({ ...said, at: said.at - Math.round(days * 86_400), ...(said.previous && { previous: renamed.get(said.previous) ?? said.previous }) });
    const signed = `${dated}\t${sign(null, Buffer.from(dated), proofKey(1)).toString('base64url')}`;
    renamed.set(hashOf(line), hashOf(signed));
    lines.push(signed);
    await db.query(`update reclaim.journal_lines set hash = decode($2, 'hex'), line = $3, created_at = created_at - $4 * interval '1 day' where id = $1`, [id, hashOf(signed), signed, days]);
    await db.query(`update reclaim.erasures set journal_hash = decode($2, 'hex') where journal_hash = decode($1, 'hex')`, [hashOf(line), hashOf(signed)]);
  }
  return lines;
}
