// A real switch and real telephones on this machine: Kamailio with the configuration of deploy/, and sipp.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import dgram from 'node:dgram';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

import { logFile, repository, temporaryDirectory } from './place.js';
import { freePort } from './postgres.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

export async function freeUdpPort() {
  const socket = dgram.createSocket('udp4');
  await new Promise((resolve, reject) => socket.once('error', reject).bind(0, '127.0.0.1', resolve));
  const { port } = socket.address();
  await new Promise((resolve) => socket.close(resolve));
  return port;
}

/** A JSON-RPC call; returns `result` of the reply. */
export function rpc(port, method, params = []) {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
  return new Promise((resolve, reject) => {
    const call = http.request({ host: '127.0.0.1', port, path: '/RPC', method: 'POST', agent: false, timeout: 20_000 }, (answer) => {
      let text = '';
      answer.on('data', (part) => (text += part));
      answer.on('end', () => {
        try {
          const { result, error } = JSON.parse(text);
          if (error) reject(new Error(`${method}: ${error.message}`));
          else resolve(result);
        } catch (fault) {
          reject(fault);
        }
      });
    });
    call.on('timeout', () => call.destroy(new Error('no answer')));
    call.on('error', reject);
    call.end(body);
  });
}

export class Kamailio {
  /** Reserves the ports first, since the program needs the address of the switch. */
  static async plan(scope) {
    const switchboard = new Kamailio();
    switchboard.stage = stageOf(scope);
    switchboard.rpcPort = await freePort();
    switchboard.sipPort = await freeUdpPort();
    return switchboard;
  }

  get env() {
    return { RECLAIM_SWITCH_RPC_URL: `http://127.0.0.1:${this.rpcPort}/RPC` };
  }

  /** `reclaim` is the program's address: { host, port }; `defines` has RECLAIM_KEY, unless it is not to be reached. */
  async start(reclaim, defines = {}) {
    this.directory = temporaryDirectory(this.stage);
    const settings = {
      SIP_LISTEN: `udp:127.0.0.1:${this.sipPort}`,
      RPC_LISTEN: `tcp:127.0.0.1:${this.rpcPort}`,
      RPC_PORT: this.rpcPort,
      RECLAIM_URL: `http://${reclaim.host}:${reclaim.port}`,
      SIP_WORKERS: 6,
      RECLAIM_PATIENCE: 20, // long enough for a slow machine
      ...defines,
    };
    const config = path.join(this.directory, 'kamailio.cfg');
    fs.copyFileSync(path.join(repository, 'deploy/kamailio/kamailio.cfg'), config);
    fs.writeFileSync(path.join(this.directory, 'local.cfg'), Object.entries(settings).map(([name, value]) => `#!define ${name} ${value}\n`).join(''));
    const log = fs.openSync(logFile('kamailio', 'log'), 'a');
    const child = spawn('kamailio', ['-DD', '-E', '-m', '128', '-f', config, '-w', this.directory, '-Y', this.directory, '-P', path.join(this.directory, 'pid')], {
      cwd: this.directory,
      env: { PATH: `${process.env.PATH}:/usr/sbin`, TZ: 'UTC' },
      stdio: ['ignore', log, log],
    });
    fs.closeSync(log);
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const forget = keepEnded(child.pid, 'TERM');
    const exited = new Promise((resolve) =>
      child.once('exit', (code) => {
        forget();
        this.ended = code ?? -1;
        resolve();
      }),
    );
    this.stop = async () => {
      if (this.ended === undefined) child.kill('SIGTERM');
      await exited;
    };
    this.stage.after(() => this.stop());
    await until('Kamailio answering', () => {
      if (this.ended !== undefined) throw new Ended(`Kamailio ended with ${this.ended}`);
      return this.rpc('core.version');
    });
  }

  rpc(method, ...params) {
    return rpc(this.rpcPort, method, params);
  }

  /** Assigns a number to a customer and a telephone. */
  async number(user, { customer, phone } = {}) {
    const name = `${user}@example.com`;
    if (customer) await this.rpc('htable.sets', 'customer', name, customer.id);
    if (phone) await this.rpc('htable.sets', 'place', name, `sip:127.0.0.1:${phone.port}`);
  }

  /** Dialogs that are not over. */
  async dialogs() {
    return (await this.rpc('dlg.list')).filter(({ state }) => state !== 5);
  }

  async phone(scenario, options) {
    return Phone.start(this, scenario, options);
  }
}

/** sipp with one of the scenarios of fixtures/sipp, for any number of equal calls. */
export class Phone {
  static async start(switchboard, scenario, { caller = 'nobody', callee = 'nobody', calls = 1, rate = 50, more = 'Subject: call', trace = calls === 1 } = {}) {
    const phone = new Phone();
    const { stage, directory } = switchboard;
    phone.port = await freeUdpPort();
    phone.scenario = scenario;
    phone.messages = path.join(directory, `${scenario}-${phone.port}.messages`);
    const args = ['-sf', path.join(repository, `tests/service/fixtures/sipp/${scenario}.xml`), '-i', '127.0.0.1', '-ci', '127.0.0.1', '-p', phone.port];
    args.push('-m', calls, '-nostdin', '-key', 'caller', caller, '-key', 'more', more, '-max_retrans', 20);
    // The switch has several workers, so a 180 may arrive after its 200.
    if (scenario === 'caller-hangs-up') args.push('-default_behaviors', 'all,-abortunexp');
    if (trace) args.push('-trace_msg', '-message_file', phone.messages);
    if (scenario.startsWith('caller')) args.push('-s', callee, '-r', rate, '-l', calls, `127.0.0.1:${switchboard.sipPort}`);
    const child = spawn('sipp', args.map(String), { cwd: directory, env: { PATH: process.env.PATH, TZ: 'UTC', TERM: 'dumb' }, stdio: ['ignore', 'pipe', 'pipe'] });
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const forget = keepEnded(child.pid);
    let words = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (words = (words + part).slice(-4000)));
    phone.done = new Promise((resolve) =>
      child.once('close', (code) => {
        forget();
        phone.ended = code ?? -1;
        resolve();
      }),
    );
    phone.words = () => words;
    stage.after(async () => {
      if (phone.ended === undefined) child.kill('SIGKILL');
      await phone.done;
    });
    if (scenario.startsWith('callee')) {
      await until('a telephone listening', () => {
        if (phone.ended !== undefined) throw new Ended(`sipp ended with ${phone.ended}: ${words}`);
        return listens(phone.port);
      });
    }
    return phone;
  }

  /** Waits until the scenario has ended successfully for every call. */
  async finished(deadlineMs) {
    await until(`${this.scenario} to end`, () => this.ended !== undefined, deadlineMs).catch((fault) => {
      throw new Error(`${fault.message}; what it heard and said: ${this.talkedAbout.slice(-6000)}`);
    });
    assert.equal(this.ended, 0, `${this.scenario} went otherwise: ${this.words()}`);
  }

  get talkedAbout() {
    return fs.existsSync(this.messages) ? fs.readFileSync(this.messages, 'utf8') : '';
  }

  /** When a message with this beginning was first received; wall clock, milliseconds. */
  heard(beginning) {
    for (const part of this.talkedAbout.split(/^-{20,} /m)) {
      const [stamp, what, , first = ''] = part.split('\n');
      if (/received/.test(what ?? '') && first.startsWith(beginning)) return Date.parse(`${stamp.trim().slice(0, 23).replace(' ', 'T')}Z`);
    }
    return undefined;
  }

  async hears(beginning, deadlineMs) {
    return until(`${this.scenario} hears ${beginning}`, () => this.heard(beginning), deadlineMs);
  }
}

function listens(port) {
  const hex = port.toString(16).toUpperCase().padStart(4, '0');
  return fs.readFileSync('/proc/net/udp', 'utf8').includes(`0100007F:${hex} `);
}
