// What npm would publish of clients/js: the files, their size, the types.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';

import * as client from '../../clients/js/index.js';
import { repository } from './lib/place.js';

const folder = path.join(repository, 'clients/js');
const text = (name) => fs.readFileSync(path.join(folder, name), 'utf8');
const manifest = JSON.parse(text('package.json'));
const run = async (command, given, options) =>
  (await promisify(execFile)(command, given, options).catch((fault) => assert.fail(`${command}: ${fault.stdout}${fault.stderr}`))).stdout;
const minified = (name) => run('esbuild', ['--minify', '--format=esm', '--log-level=warning', path.join(folder, name)]);

describe('@reclaim/client', () => {
  it('publishes the module, its types, examples, licence and README, and nothing else', async () => {
    const [packed] = JSON.parse(await run('npm', ['pack', '--dry-run', '--json', '--loglevel=error'], { cwd: folder }));
    assert.equal(packed.name, '@reclaim/client');
    assert.deepEqual(packed.files.map((file) => file.path).sort(), [
      'LICENSE',
      'README.md',
      'examples/DeleteAccount.jsx',
      'examples/RegisterAgain.vue',
      'index.d.ts',
      'index.js',
      'package.json',
    ]);
    assert.equal(text('LICENSE'), fs.readFileSync(path.join(repository, 'LICENSE'), 'utf8'));
  });

  it('has a manifest for bundlers, TypeScript and Node 18, of the program’s version, without dependencies', () => {
    const { type, sideEffects, license, engines, types, exports, version } = manifest;
    assert.deepEqual({ type, sideEffects, license, engines }, { type: 'module', sideEffects: false, license: 'Apache-2.0', engines: { node: '>=18' } });
    assert.deepEqual(exports['.'], { types: './index.d.ts', default: './index.js' });
    assert.equal(types, exports['.'].types);
    for (const field of ['dependencies', 'peerDependencies', 'optionalDependencies', 'scripts']) assert.equal(manifest[field], undefined, field);
    const build = fs.readFileSync(path.join(repository, 'meson.build'), 'utf8');
    assert.equal(version, /version: '([^']+)'/.exec(build)[1]);
    assert.doesNotMatch(text('index.js'), /^import\b|\bimport\(|\brequire\(/m);
  });

  it('is smaller than 4 KB, minified and compressed', async () => {
    const size = gzipSync(await minified('index.js'), { level: 9 }).length;
    assert.ok(size < 4000, `${size} bytes`);
  });

  it('offers what its types say', () => {
    const described = /interface Reclaim \{([^]*?)\n\}/.exec(text('index.d.ts'))[1];
    const methods = [...described.matchAll(/^ {2}(\w+)\(/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(client.createReclaim({ url: 'http://x' })).sort(), methods.sort());
    assert.deepEqual(methods, ['account', 'export', 'probe', 'recover', 'requestCode', 'unregister', 'validateAndCleanup']);
    const exported = [...text('index.d.ts').matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
    assert.deepEqual(Object.keys(client).sort(), exported.sort());
  });

  it('has types that TypeScript accepts with clients of supabase-js, and that refuse mistakes', async (t) => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'reclaim-types-'));
    t.after(() => fs.rmSync(home, { recursive: true }));
    fs.mkdirSync(path.join(home, 'node_modules/@reclaim'), { recursive: true });
    fs.symlinkSync(folder, path.join(home, 'node_modules/@reclaim/client'));
    for (const name of ['@supabase', 'supabase-js-newest']) fs.symlinkSync(path.join(repository, 'tests/node_modules', name), path.join(home, 'node_modules', name));
    fs.writeFileSync(path.join(home, 'package.json'), '{"type":"module"}');
    fs.copyFileSync(path.join(repository, 'tests/service/fixtures/client-types.ts'), path.join(home, 'use.ts'));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--target', 'es2022', '--module', 'nodenext', '--lib', 'es2022,dom'];
    await run(process.execPath, [path.join(repository, 'tests/node_modules/typescript/bin/tsc'), ...options, 'use.ts'], { cwd: home });
  });

  it('has examples that parse and call only what there is', async () => {
    const methods = new Set(Object.keys(client.createReclaim({ url: 'http://x' })));
    const script = /<script setup>([^]*)<\/script>/.exec(text('examples/RegisterAgain.vue'))[1];
    for (const source of [await minified('examples/DeleteAccount.jsx'), script]) {
      const called = [...source.matchAll(/\.(\w+)\(/g)].map(([, name]) => name).filter((name) => methods.has(name));
      assert.ok(called.length >= 3, called.join());
    }
    for (const name of ['DeleteAccount.jsx', 'RegisterAgain.vue'])
      for (const [, method] of text(`examples/${name}`).matchAll(/\breclaim\.(\w+)\(/g)) assert.ok(methods.has(method), `${name}: ${method}`);
    const child = execFile('esbuild', ['--loader=js', '--log-level=warning']);
    child.stdin.end(script);
    assert.equal(await new Promise((resolve) => child.once('exit', resolve)), 0);
  });
});
