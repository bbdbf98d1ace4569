// A private RabbitMQ: a real broker in a directory under /tmp, with a separate node name, port mapper and ports, so
// that it does not conflict with other brokers on the machine. Runs as the user who runs the tests.

import assert from 'node:assert/strict';
import { execFile, execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { promisify } from 'node:util';
import amqp from 'amqplib';

import { temporaryDirectory } from './place.js';
import { freePort } from './postgres.js';
import { Ended, stageOf, until } from './stage.js';
import { keepEnded } from './watchdog.js';

const scripts = '/usr/lib/rabbitmq/bin';
const user = 'reclaim';
const password = 'canary-a/pass:word@of none'; // characters that a URL must escape, and a marker that no log may contain

export const exchange = 'reclaim.events';
export const receipts = 'reclaim.receipts';
export const deadReceipts = 'reclaim.receipts.dead';

/** A CA and a certificate for localhost signed by it. */
function certificates(home) {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: home, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj', '/CN=tests');
  openssl('req', ...key, '-keyout', 'server.key', '-out', 'server.csr', '-subj', '/CN=localhost');
  fs.writeFileSync(path.join(home, 'names'), 'subjectAltName=DNS:localhost,IP:127.0.0.1\n');
  openssl('x509', '-req', '-in', 'server.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2', '-extfile', 'names', '-out', 'server.pem');
}

const connects = (port) =>
  new Promise((resolve, reject) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve(socket.destroy())).once('error', reject);
  });

let vhosts = 0;

export class Broker {
  /** `tls` adds a second listener. With `wait` false it returns before the broker has started. */
  static async start(scope, { tls = false, wait = true } = {}) {
    const stage = stageOf(scope);
    const broker = new Broker();
    broker.home = temporaryDirectory(stage);
    for (const name of ['port', 'mapperPort', 'nodePort', 'tlsPort']) broker[name] = await freePort();
    const file = (name) => path.join(broker.home, name);
    const lines = [`listeners.tcp.1 = 127.0.0.1:${broker.port}`, `default_user = ${user}`, `default_pass = ${password}`, 'disk_free_limit.absolute = 1MB'];
    if (tls) {
      certificates(broker.home);
      broker.authority = file('ca.pem');
      lines.push(`listeners.ssl.1 = 127.0.0.1:${broker.tlsPort}`, `ssl_options.cacertfile = ${file('ca.pem')}`);
      lines.push(`ssl_options.certfile = ${file('server.pem')}`, `ssl_options.keyfile = ${file('server.key')}`, 'ssl_options.verify = verify_none');
    }
    fs.writeFileSync(file('rabbitmq.conf'), `${lines.join('\n')}\n`);
    fs.writeFileSync(file('plugins'), '[].\n');
    stage.after(() => broker.end());
    await broker.#startMapper();
    await broker.start({ wait });
    return broker;
  }

  get #environment() {
    const file = (name) => path.join(this.home, name);
    return {
      PATH: process.env.PATH,
      LANG: 'C.UTF-8',
      HOME: this.home, // for the cookie that authenticates the command line
      ERL_EPMD_PORT: String(this.mapperPort),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_NODENAME: `reclaim${this.port}@localhost`,
      RABBITMQ_BASE: this.home,
      RABBITMQ_MNESIA_BASE: file('mnesia'),
      RABBITMQ_LOG_BASE: file('log'),
      RABBITMQ_LOGS: file('broker.log'),
      RABBITMQ_ENABLED_PLUGINS_FILE: file('plugins'),
      RABBITMQ_CONFIG_FILE: file('rabbitmq.conf'),
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      RABBITMQ_PID_FILE: file('pid'),
      RABBITMQ_DIST_PORT: String(this.nodePort),
      RABBITMQ_ALLOW_INPUT: '1', // the script execs the virtual machine, so that signals reach it
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
      TEST_RUN: process.env.TEST_RUN ?? '',
    };
  }

  async #spawn(program, args) {
    const log = fs.openSync(path.join(this.home, 'output'), 'a');
    const child = spawn(program, args, { cwd: this.home, env: this.#environment, stdio: ['ignore', log, log] });
    fs.closeSync(log);
    await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
    const forget = keepEnded(child.pid);
    child.gone = new Promise((resolve) => child.once('exit', resolve)).then(forget);
    return child;
  }

  async #startMapper() {
    this.mapper = await this.#spawn('epmd', ['-port', String(this.mapperPort), '-address', '127.0.0.1']);
  }

  async start({ wait = true } = {}) {
    assert.ok(!this.process, 'the broker runs already');
    const child = await this.#spawn(path.join(scripts, 'rabbitmq-server'), ['-noinput']);
    this.process = child;
    child.gone.then(() => {
      if (this.process === child) this.process = undefined;
    });
    if (wait) await this.answering();
  }

  async answering() {
    await until(
      'RabbitMQ answering',
      async () => {
        if (!this.process) throw new Ended(`RabbitMQ ended: ${fs.readFileSync(path.join(this.home, 'output'), 'utf8').slice(-2000)}`);
        const connection = await this.connect();
        await connection.close();
        if (this.authority) await connects(this.tlsPort); // its listener comes later
        return true;
      },
      180_000,
    );
  }

  async kill9() {
    await this.#signal('SIGKILL');
  }

  async stop() {
    await this.#signal('SIGTERM');
  }

  async #signal(name) {
    const child = this.process;
    if (!child) return;
    child.kill(name);
    await child.gone;
  }

  async end() {
    await this.kill9();
    this.mapper?.kill('SIGKILL');
    await this.mapper?.gone;
  }

  async restart() {
    await this.kill9();
    await this.start();
  }

  url(port = this.port, { scheme = 'amqp', secret = password } = {}) {
    return `${scheme}://${user}:${encodeURIComponent(secret)}@localhost:${port}`;
  }

  tlsUrl() {
    return `${this.url(this.tlsPort, { scheme: 'amqps' })}/%2f?cacertfile=${this.authority}`;
  }

  /** A connection of amqplib that does not throw when the broker is killed. */
  async connect({ port, vhost = '' } = {}) {
    const connection = await amqp.connect(`${this.url(port)}${vhost && `/${vhost}`}`);
    connection.on('error', () => {});
    return connection;
  }

  async channel(scope, { vhost } = {}) {
    const connection = await this.connect({ vhost });
    stageOf(scope).after(() => connection.close().catch(() => {}));
    const channel = await connection.createConfirmChannel();
    channel.on('error', () => {});
    return channel;
  }

  /** Creates an empty virtual host; returns its name. */
  async addVhost() {
    const name = `v${++vhosts}`;
    const everything = '<<".*">>, <<".*">>, <<".*">>';
    await this.control('eval', `rabbit_vhost:add(<<"${name}">>, <<"t">>), rabbit_auth_backend_internal:set_permissions(<<"${user}">>, <<"${name}">>, ${everything}, <<"t">>).`);
    return name;
  }

  /** The level of the broker's note about each connection of Reclaim's that has ended since then: `info` if in order. It writes its log with a delay. */
  endedConnections(since) {
    const log = fs.readFileSync(path.join(this.home, 'broker.log'), 'utf8');
    const ended = log.matchAll(/^(\S+) (\S+) \[(\w+)\] \S+ closing AMQP connection .* - reclaim\b/gm);
    return [...ended].filter(([, day, time]) => new Date(`${day}T${time}`) >= since).map(([, , , level]) => level);
  }

  /** rabbitmqctl, which takes some seconds to start. */
  async control(...args) {
    const { stdout } = await promisify(execFile)(path.join(scripts, 'rabbitmqctl'), args, { env: this.#environment, cwd: this.home });
    return stdout;
  }
}

/** A durable quorum queue for every event, and the events received from it, in order. */
export class Subscriber {
  events = [];

  static async start(scope, broker, { name = 'all-events', keys = ['#'] } = {}) {
    const subscriber = new Subscriber();
    const channel = await broker.channel(scope);
    await channel.assertExchange(exchange, 'topic', { durable: true });
    await channel.assertQueue(name, { durable: true, arguments: { 'x-queue-type': 'quorum' } });
    for (const key of keys) await channel.bindQueue(name, exchange, key);
    await channel.consume(name, (message) => {
      if (!message) return;
      subscriber.events.push({ message, event: JSON.parse(message.content.toString('utf8')), at: performance.now() });
      channel.ack(message);
    });
    return subscriber;
  }

  of(customer) {
    return this.events.filter(({ event }) => event.subject === customer).map(({ event }) => event);
  }

  ids() {
    return this.events.map(({ event }) => event.id);
  }
}
