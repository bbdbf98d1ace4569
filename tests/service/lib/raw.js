// A client that sends raw bytes: for requests that no conforming client sends.

import assert from 'node:assert/strict';
import net from 'node:net';

import { clientAddress } from './people.js';

/** Removes one complete reply from the front of the bytes, or returns null if it is incomplete. */
function takeAnswer(bytes, closed) {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [statusLine, ...lines] = bytes.subarray(0, end).toString('latin1').split('\r\n');
  const [, version, status] = /^HTTP\/(1\.[01]) (\d{3})(?: |$)/.exec(statusLine) ?? assert.fail(`no status line: ${statusLine}`);
  const headers = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const rest = bytes.subarray(end + 4);
  let length = Number(headers['content-length'] ?? NaN);
  if (status === '204' || status.startsWith('1')) length = 0;
  if (Number.isNaN(length)) {
    if (!closed) return null;
    length = rest.length;
  }
  if (rest.length < length) return null;
  const answer = { version, status: Number(status), headers, body: rest.subarray(0, length).toString('utf8') };
  return { answer, rest: rest.subarray(length) };
}

export class RawConnection {
  #bytes = Buffer.alloc(0);
  #waiting = [];
  answers = [];
  closed = null; // 'end' after a regular close by the server, 'reset' after a reset

  static async open(server, { listener = 'public', localAddress = clientAddress } = {}) {
    const { host, port } = server.address(listener);
    const connection = new RawConnection();
    const socket = net.connect({ host, port, localAddress, allowHalfOpen: true, noDelay: true });
    connection.socket = socket;
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('data', (part) => connection.#take(part));
    socket.on('end', () => connection.#close('end'));
    socket.on('error', () => connection.#close('reset'));
    socket.on('close', () => connection.#close('end'));
    return connection;
  }

  #take(part) {
    this.#bytes = Buffer.concat([this.#bytes, part]);
    this.#parse();
  }

  #parse() {
    for (let taken; (taken = takeAnswer(this.#bytes, this.closed !== null)); this.#bytes = taken.rest)
      this.answers.push({ ...taken.answer, answeredAt: performance.now() });
    this.#wake();
  }

  #close(how) {
    this.closed ??= how;
    this.#parse();
  }

  #wake() {
    for (const wake of this.#waiting.splice(0)) wake();
  }

  /** Received bytes that are no complete reply. */
  get rest() {
    return this.#bytes.toString('latin1');
  }

  send(bytes) {
    if (!this.socket.destroyed) this.socket.write(bytes);
    return this;
  }

  /** Closes the sending direction only. */
  halfClose() {
    this.socket.end();
    return this;
  }

  async #until(what, look, deadlineMs) {
    const end = performance.now() + deadlineMs;
    while (!look()) {
      const left = end - performance.now();
      if (left <= 0) assert.fail(`never saw ${what}; answers: ${JSON.stringify(this.answers)}, rest: ${JSON.stringify(this.rest)}`);
      await new Promise((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#waiting.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }

  /** The nth reply (from 1), once it is complete. */
  async answer(n = 1, deadlineMs = 30_000) {
    await this.#until(`answer ${n}`, () => this.answers.length >= n || this.closed, deadlineMs);
    assert.ok(this.answers.length >= n, `closed (${this.closed}) before answer ${n}; came: ${JSON.stringify(this.answers)} ${this.rest}`);
    return this.answers[n - 1];
  }

  async untilClosed(deadlineMs = 30_000) {
    await this.#until('the connection closed', () => this.closed, deadlineMs);
    return this;
  }

  destroy() {
    this.socket.destroy();
  }

  /** Closes with a reset. */
  abort() {
    this.socket.resetAndDestroy?.() ?? this.socket.destroy();
  }
}

/** Sends the bytes on a new connection and waits until the server closes it. */
export async function exchange(server, bytes, { halfClose = false, deadlineMs } = {}) {
  const connection = await RawConnection.open(server);
  try {
    connection.send(bytes);
    if (halfClose) connection.halfClose();
    await connection.untilClosed(deadlineMs);
    return connection;
  } finally {
    connection.destroy();
  }
}

export function rawPost(body, { path = '/functions/v1/check-email-status', headers = [], close = false } = {}) {
  const lines = [`POST ${path} HTTP/1.1`, 'Host: reclaim.example.com', 'Content-Type: application/json', ...headers];
  if (!headers.some((line) => /^(content-length|transfer-encoding)\s*:/i.test(line))) lines.push(`Content-Length: ${Buffer.byteLength(body)}`);
  if (close) lines.push('Connection: close');
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}
