// Many connections that repeat the same request after each reply, using little of this process's time.

import net from 'node:net';

import { stageOf, until } from './stage.js';

export class Crowd {
  counts = {}; // replies by status
  waiting = 0; // requests without a reply
  #sockets = [];
  #leaving = false;

  static async gather(scope, server, size, bytes) {
    const crowd = new Crowd();
    const { host, port } = server.address();
    stageOf(scope).after(() => crowd.#sockets.forEach((socket) => socket.destroy()));
    await Promise.all(Array.from({ length: size }, () => crowd.#join({ host, port, noDelay: true }, bytes)));
    return crowd;
  }

  async #join(address, bytes) {
    const socket = net.connect(address);
    this.#sockets.push(socket);
    await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    socket.on('error', () => (this.counts.cut = (this.counts.cut ?? 0) + 1));
    const ask = () => {
      if (this.#leaving) return;
      this.waiting++;
      socket.write(bytes);
    };
    socket.on('data', (part) => {
      const head = part.latin1Slice(0, 12); // a reply arrives in one piece; a separate body does not start with a status line
      if (!head.startsWith('HTTP/1.1 ')) return;
      const status = head.slice(9);
      this.counts[status] = (this.counts[status] ?? 0) + 1;
      this.waiting--;
      ask();
    });
    ask();
  }

  /** Waits for as many more replies of that status as there are connections. */
  async answered(status) {
    const before = this.counts[status] ?? 0;
    await until(`answers ${status} to a crowd`, () => this.counts[status] >= before + this.#sockets.length);
  }

  /** Sends no more requests, and closes the connections after the last replies. */
  async disperse() {
    this.#leaving = true;
    await until('an answer for everyone', () => this.waiting === 0, 30_000);
    this.#sockets.forEach((socket) => socket.destroy());
  }
}
