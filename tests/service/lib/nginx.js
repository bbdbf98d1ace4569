// nginx in front of Reclaim.

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';

import { temporaryDirectory } from './place.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

const accepts = (host, port) =>
  new Promise((resolve) => {
    const socket = net.connect({ host, port });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });

/** Starts it with these servers and upstreams, and waits until it listens at the port. Ended with the scope. */
export async function startNginx(scope, servers, { host, port }) {
  const stage = stageOf(scope);
  const home = temporaryDirectory(stage);
  const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${home}/${kind};`).join(' ');
  const [settings, log] = [path.join(home, 'nginx.conf'), path.join(home, 'error.log')];
  fs.writeFileSync(
    settings,
    `daemon off; worker_processes 1; pid ${home}/pid; error_log ${log};
     events { worker_connections 256; }
     http { access_log off; ${places} ${servers} }`,
  );
  const child = spawn('/usr/sbin/nginx', ['-p', home, '-c', settings, '-e', log], { stdio: 'ignore' });
  await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
  const forget = keepEnded(child.pid, 'TERM');
  const ended = new Promise((resolve) => child.once('close', resolve));
  ended.then(forget);
  stage.after(async () => {
    child.kill('SIGTERM');
    await ended;
  });
  await until('nginx listening', () => {
    if (child.exitCode !== null) throw new Ended(`nginx ended: ${fs.readFileSync(log, 'utf8')}`);
    return accepts(host, port);
  });
}
