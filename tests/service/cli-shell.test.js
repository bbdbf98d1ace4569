// What makes the command line fit into a system: settings in force, health, completion, manual pages.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';

import { canaryKey, canaryPassword } from './lib/people.js';
import { temporaryDirectory } from './lib/place.js';
import { Cluster, freePort } from './lib/postgres.js';
import { run, serve } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const stage = new Stage();
let home;
before(() => (home = temporaryDirectory(stage)));
after(() => stage.end());

const has = (program) => process.env.PATH.split(':').some((folder) => fs.existsSync(path.join(folder, program)));

describe('config', () => {
  it('lists every setting with its value and source, and no secret', async () => {
    const file = path.join(home, 'reclaim.ini');
    fs.writeFileSync(file, `RECLAIM_GRACE = 10d\nRECLAIM_DATABASE_URL = postgresql://me:${canaryPassword}@h/db\n`, { mode: 0o600 });
    const asked = async (...more) => (await run(stage, ['config', '--config', file, ...more], { env: { RECLAIM_DRAIN: '5s' } })).stdout;
    const rows = JSON.parse(await asked('--format', 'json'));
    const of = (name) => rows.find((row) => row.name === name);
    assert.deepEqual(of('RECLAIM_GRACE'), { name: 'RECLAIM_GRACE', value: '10d', source: 'file', where: `${file}, line 1`, group: 'Account deletion' });
    assert.equal(of('RECLAIM_DRAIN').source, 'environment');
    assert.equal(of('RECLAIM_LISTEN').source, 'default');
    assert.equal(of('RECLAIM_SECRET_KEY').value, '***');
    for (const format of ['table', 'csv', 'json']) {
      const said = await asked('--format', format);
      assert.ok(said.includes('RECLAIM_GRACE'));
      assert.ok(!said.includes(canaryPassword) && !said.includes(canaryKey), format);
    }
  });

  it('says which setting is wrong', async () => {
    const { code, stderr } = await run(stage, ['config'], { env: { RECLAIM_GRACE: 'long' } });
    assert.equal(code, 1);
    assert.match(stderr, /RECLAIM_GRACE: "long" is not/);
  });
});

it('healthcheck is 0 while the server is ready, and says why otherwise', async () => {
  const cluster = await Cluster.create(stage);
  const port = await freePort();
  const env = { RECLAIM_OPS_LISTEN: `0.0.0.0:${port}` };
  const check = () => run(stage, ['healthcheck'], { env });
  const gone = await check();
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /no server answers at 0\.0\.0\.0/);
  const server = await serve(stage, { database: await cluster.database(stage), env });
  assert.deepEqual(await check(), { code: 0, signal: null, stdout: '', stderr: '' });
  await cluster.stop('immediate');
  await server.line('database lost', ({ level }) => level === 'warn' || level === 'error');
  let down;
  do down = await check();
  while (down.code === 0);
  assert.match(down.stderr, /is not ready: \{"status":"database_down"\}/);
  await cluster.start();
});

describe('completion', () => {
  const script = async (shell) => {
    const file = path.join(home, `reclaim.${shell}`);
    const { code, stdout } = await run(stage, ['completion', shell]);
    assert.equal(code, 0);
    fs.writeFileSync(file, stdout);
    return file;
  };

  it('in bash offers commands, their words, options and values', async () => {
    const file = await script('bash');
    const offers = (...words) => {
      const typed = words.map((word) => `'${word}'`).join(' ');
      const asked = spawnSync('bash', ['--norc', '-c', `source '${file}'; COMP_WORDS=(reclaim ${typed}); COMP_CWORD=${words.length}; _reclaim; printf '%s\\n' "\${COMPREPLY[@]}"`], { encoding: 'utf8', cwd: home });
      assert.equal(asked.stderr, '');
      return asked.stdout.split('\n').filter(Boolean);
    };
    assert.deepEqual(offers('cas'), ['cascade']);
    assert.ok(offers('').includes('serve') && offers('').includes('--help'));
    assert.deepEqual(offers('cascade', 're'), ['redrive', 'rescan', 'remove']);
    assert.deepEqual(offers('cascade', 'add', '--ta'), ['--table']);
    assert.deepEqual(offers('orphans', '--format', ''), ['table', 'csv', 'json']);
    assert.deepEqual(offers('cascade', 'add', '--by', 'u'), ['user']);
    assert.deepEqual(offers('serve', '--config', 'reclaim.b'), ['reclaim.bash']);
    assert.deepEqual(offers('completion', 'z'), ['zsh']);
    assert.deepEqual(offers('nonsense', ''), []);
  });

  for (const shell of ['zsh', 'fish'])
    it(`for ${shell} is a script of it`, { skip: !has(shell) && `there is no ${shell}` }, async () => {
      const read = spawnSync(shell, ['-n', await script(shell)], { encoding: 'utf8' });
      assert.equal(read.status, 0, read.stderr);
    });

  it('names every command for every shell, and no other shell', async () => {
    const { stdout } = await run(stage, ['--help']);
    const commands = [...stdout.matchAll(/^ {2}(\S+) /gm)].map(([, name]) => name);
    for (const shell of ['bash', 'zsh', 'fish']) {
      const text = fs.readFileSync(await script(shell), 'utf8');
      for (const command of commands) assert.match(text, new RegExp(`\\b${command}\\b`), `${shell}: ${command}`);
    }
    assert.equal((await run(stage, ['completion', 'csh'])).code, 2);
  });
});

it('the manual pages are complete, and roff reads them without a warning', async () => {
  for (const [args, names] of [
    [['help', '--man'], ['reclaim cascade', '\\-\\-older\\-than', 'EXIT STATUS']],
    [['help', 'settings', '--man'], ['RECLAIM_DATABASE_URL', 'RECLAIM_GRACE', 'Default: 30d']],
  ]) {
    const { code, stdout } = await run(stage, args);
    assert.equal(code, 0);
    for (const name of names) assert.ok(stdout.includes(name), name);
    const read = spawnSync('groff', ['-man', '-Tutf8', '-ww'], { input: stdout, encoding: 'utf8' });
    assert.equal(read.stderr, '');
  }
});
