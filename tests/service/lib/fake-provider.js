// A local mail provider with the APIs of Resend and SendGrid: replies by a script and records requests.

import assert from 'node:assert/strict';
import http from 'node:http';

import { stageOf, until } from './stage.js';

/**
 * The reply to one request; the last one of a script is repeated:
 *   { status: 500 }                     with the provider's own kind of body
 *   { status: 200, body: 'garbage' }    with this body
 *   { delayMs: 3000 }                   after a while
 *   { silent: true }                    never
 *   { close: true }                     not at all: the connection ends
 *   { cut: true }                       the connection ends in the middle of the body
 */
const fine = {};

const dialects = {
  resend: {
    path: '/emails',
    accepted: (number) => ({ status: 200, body: JSON.stringify({ id: `fake-${number}` }) }),
    refused: (status) => JSON.stringify({ statusCode: status, name: 'application_error', message: 'told so' }),
    read: (json) => ({ to: json.to[0], from: json.from, subject: json.subject, text: json.text, html: json.html }),
  },
  sendgrid: {
    path: '/v3/mail/send',
    accepted: () => ({ status: 202, body: '' }),
    refused: () => JSON.stringify({ errors: [{ message: 'told so', field: null, help: null }] }),
    read: (json) => {
      const part = (type) => json.content.find((one) => one.type === type)?.value;
      const { email, name } = json.from;
      return {
        to: json.personalizations[0].to[0].email,
        from: name ? `${name} <${email}>` : email,
        subject: json.subject,
        text: part('text/plain'),
        html: part('text/html'),
      };
    },
  },
};

/** One request: its time, headers and JSON, the mail in it, and its reply. */
class Attempt {
  constructor(request, body, dialect, step) {
    this.at = performance.now();
    this.headers = request.headers;
    this.json = JSON.parse(body);
    this.mail = dialect.read(this.json);
    this.step = step;
  }

  get delivered() {
    const { status = 200, silent, close, cut } = this.step;
    return status < 300 && !silent && !close && !cut;
  }

  /** The code in the text part: eight symbols with a hyphen, or six digits. */
  get code() {
    return this.mail.text.match(/^ {4}(\S+)\r?$/m)?.[1];
  }

  get key() {
    return this.headers['idempotency-key'];
  }
}

export class FakeProvider {
  attempts = [];
  faults = []; // requests that a real provider would have rejected
  #script = [fine];
  #served = 0;

  /** kind: 'resend' or 'sendgrid'. */
  static async start(scope, kind) {
    const provider = new FakeProvider(kind);
    await provider.#listen();
    stageOf(scope).after(() => provider.#end());
    return provider;
  }

  constructor(kind) {
    this.kind = kind;
    this.dialect = dialects[kind];
    this.apiKey = `canary-${kind}-key`;
    this.server = http.createServer((request, response) => this.#take(request, response));
    this.server.on('clientError', (fault, socket) => socket.destroy());
  }

  async #listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.url = `http://127.0.0.1:${this.server.address().port}${this.dialect.path}`;
  }

  async #end() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    assert.deepEqual(this.faults, []);
  }

  /** Settings that make the program use this provider. */
  get env() {
    const prefix = `RECLAIM_${this.kind.toUpperCase()}`;
    return { [`${prefix}_API_KEY`]: this.apiKey, [`${prefix}_URL`]: this.url, RECLAIM_MAIL_FROM: 'Reclaim <reclaim@example.com>' };
  }

  /** Sets the replies to the next requests, in order. */
  answer(...script) {
    this.#script = script.length > 0 ? script : [fine];
    this.#served = 0;
  }

  get delivered() {
    return this.attempts.filter((attempt) => attempt.delivered);
  }

  mailsTo(address) {
    return this.delivered.filter((attempt) => attempt.mail.to === address);
  }

  /** Waits for the n-th mail to an address that was delivered here. */
  async mailTo(address, { nth = 1, deadlineMs } = {}) {
    return until(`mail ${nth} at ${this.kind}`, () => this.mailsTo(address)[nth - 1], deadlineMs);
  }

  #take(request, response) {
    const parts = [];
    request.on('error', () => {});
    request.on('data', (part) => parts.push(part));
    request.on('end', () => {
      const step = this.#script[Math.min(this.#served++, this.#script.length - 1)];
      try {
        this.#check(request);
        this.attempts.push(new Attempt(request, Buffer.concat(parts).toString('utf8'), this.dialect, step));
      } catch (fault) {
        this.faults.push(fault.message);
      }
      setTimeout(() => this.#reply(step, request.socket, response), step.delayMs ?? 0);
    });
  }

  #check(request) {
    assert.equal(request.method, 'POST');
    assert.equal(request.url, this.dialect.path);
    assert.equal(request.headers.authorization, `Bearer ${this.apiKey}`);
    assert.equal(request.headers['content-type'], 'application/json');
    assert.ok(request.headers['user-agent'], 'no user agent');
  }

  #reply(step, socket, response) {
    if (step.silent) return;
    if (step.close) {
      socket.destroy();
      return;
    }
    const usual = this.dialect.accepted(this.#served);
    const status = step.status ?? usual.status;
    const body = step.body ?? (status < 300 ? usual.body : this.dialect.refused(status));
    if (step.cut) {
      socket.end(`HTTP/1.1 ${status} OK\r\nContent-Length: ${Buffer.byteLength(body) + 100}\r\n\r\n${body}`);
      return;
    }
    response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(body) });
    response.end(body);
  }
}
