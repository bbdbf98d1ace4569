// Programs in front of Reclaim, with the files of deploy/ as they are but for their addresses: nginx, Caddy, HAProxy, Deno.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';

import { repository, temporaryDirectory } from './place.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

/** An answer that may not be Reclaim's own, so it is not held against the description. */
export function ask(port, { method = 'GET', path: target = '/things', headers = {}, body, localAddress, agent = false } = {}) {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const call = http.request({ host: '127.0.0.1', port, localAddress, method, path: target, agent, headers: { ...length, ...headers } }, (answer) => {
      const parts = [];
      answer.on('data', (part) => parts.push(part));
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts).toString() }));
      answer.on('error', reject);
    });
    call.on('error', reject);
    call.end(body);
  });
}

/** Somebody's API: records what it receives. */
export async function startApi(scope) {
  const heard = [];
  const api = http.createServer((incoming, answer) => {
    const parts = [];
    incoming.on('data', (part) => parts.push(part));
    incoming.on('end', () => {
      heard.push({ method: incoming.method, path: incoming.url, headers: incoming.headers, body: Buffer.concat(parts).toString() });
      answer.end('from the API');
    });
  });
  await new Promise((resolve) => api.listen(0, '127.0.0.1', resolve));
  stageOf(scope).after(() => {
    api.closeAllConnections();
    return new Promise((resolve) => api.close(resolve));
  });
  return { port: api.address().port, heard };
}

/** A file of deploy/ with other addresses: { '127.0.0.1:8080': '127.0.0.1:4711', … }. Each must be in it. */
export function deployed(name, addresses) {
  const text = fs.readFileSync(path.join(repository, 'deploy', name), 'utf8');
  const lost = Object.keys(addresses).filter((from) => !text.includes(from));
  if (lost.length > 0) throw new Error(`${name} does not have ${lost}`);
  return text.replace(new RegExp(Object.keys(addresses).map((from) => `${from.replace(/[.[\]/]/g, '\\$&')}(?!\\d)`).join('|'), 'g'), (from) => addresses[from]);
}

const accepts = (host, port) =>
  new Promise((resolve) => {
    const socket = net.connect({ host, port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** Starts it and waits until it listens at the port; ended with the scope. Returns its output so far, as a function. */
async function startProgram(scope, { host = '127.0.0.1', port }, program, args, env = process.env) {
  const log = [];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => log.push(part));
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  const forget = keepEnded(child.pid, 'TERM');
  const ended = new Promise((resolve) => child.once('close', resolve));
  ended.then(forget);
  stageOf(scope).after(async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
  });
  const output = () => Buffer.concat(log).toString();
  await until(`${path.basename(program)} listening`, () => {
    if (child.exitCode !== null) throw new Ended(`${program} ended: ${output()}`);
    return accepts(host, port);
  });
  return output;
}

/** With these servers and upstreams. */
export async function startNginx(scope, servers, place) {
  const home = temporaryDirectory(stageOf(scope));
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${home}/${kind};`).join(' ');
  const settings = path.join(home, 'nginx.conf');
  fs.writeFileSync(
    settings,
    `daemon off; worker_processes 1; pid ${home}/pid; error_log stderr;
     events { worker_connections 256; }
     http { access_log off; ${places} ${servers} }`,
  );
  return startProgram(scope, place, '/usr/sbin/nginx', ['-p', home, '-c', settings, '-e', 'stderr']);
}

export async function startCaddy(scope, sites, place) {
  const home = temporaryDirectory(stageOf(scope));
  const settings = path.join(home, 'Caddyfile');
  fs.writeFileSync(settings, `{\n\tadmin off\n}\n${sites}`);
  const env = { PATH: process.env.PATH, HOME: home, XDG_DATA_HOME: home, XDG_CONFIG_HOME: home };
  return startProgram(scope, place, 'caddy', ['run', '--config', settings, '--adapter', 'caddyfile'], env);
}

/** `settings` is called with the path for its socket. Returns a function that sends it a command. */
export async function startHaproxy(scope, settings, place) {
  const home = temporaryDirectory(stageOf(scope));
  const [file, socket] = [path.join(home, 'haproxy.cfg'), path.join(home, 'admin.sock')];
  fs.writeFileSync(file, settings(socket));
  await startProgram(scope, place, '/usr/sbin/haproxy', ['-db', '-f', file]);
  return (command) =>
    new Promise((resolve, reject) => {
      const connection = net.connect(socket, () => connection.write(`${command}\n`));
      let text = '';
      connection.on('data', (part) => (text += part));
      connection.on('end', () => resolve(text)).on('error', reject);
    });
}

const deno = path.join(repository, `tests/node_modules/@deno/linux-${process.arch}-glibc/deno`);

/** Runs one edge function of deploy/ with these secrets; it may reach nothing but this machine. */
export async function startEdgeFunction(scope, name, port, secrets) {
  const names = ['RECLAIM_URL', 'RECLAIM_PROXY_KEY', 'RECLAIM_CLIENT_ADDRESS', 'RECLAIM_TIMEOUT_MS'];
  const args = ['run', '--quiet', '--no-prompt', '--no-lock', '--no-config', '--cached-only', '--allow-net=127.0.0.1', `--allow-env=${names},DENO_SERVE_ADDRESS`];
  const home = temporaryDirectory(stageOf(scope));
  const env = { ...secrets, DENO_SERVE_ADDRESS: `tcp:127.0.0.1:${port}`, DENO_NO_UPDATE_CHECK: '1', DENO_DIR: home, HOME: home, NO_COLOR: '1' };
  return startProgram(scope, { port }, deno, [...args, path.join(repository, `deploy/edge-function/supabase/functions/${name}/index.ts`)], env);
}

/** Throws what the compiler says about this file of the repository. */
export function checkTypes(scope, file) {
  const env = { DENO_DIR: temporaryDirectory(stageOf(scope)), NO_COLOR: '1' };
  execFileSync(deno, ['check', '--quiet', '--no-config', path.join(repository, file)], { env, stdio: 'pipe' });
}
