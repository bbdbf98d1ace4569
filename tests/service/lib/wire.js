// A TCP proxy that can be cut: it then forwards nothing and closes nothing, as when a cable is pulled.

import net from 'node:net';

import { stageOf } from './stage.js';

export class Wire {
  #pairs = new Set();
  isCut = false;

  static async start(scope, port) {
    const wire = new Wire();
    wire.server = net.createServer({ pauseOnConnect: true }, (near) => wire.#join(near, port));
    await new Promise((resolve, reject) => wire.server.once('error', reject).listen(0, '127.0.0.1', resolve));
    wire.port = wire.server.address().port;
    stageOf(scope).after(async () => {
      const closed = new Promise((resolve) => wire.server.close(resolve));
      for (const pair of wire.#pairs) for (const socket of pair) socket.destroy();
      await closed;
    });
    return wire;
  }

  #join(near, port) {
    if (this.isCut) {
      const pair = [near]; // while cut: accepted by the kernel only
      this.#pairs.add(pair);
      near.on('error', () => {}).once('close', () => this.#pairs.delete(pair));
      return;
    }
    const far = net.connect({ port, host: '127.0.0.1' });
    const pair = [near, far];
    this.#pairs.add(pair);
    for (const [from, to] of [pair, [far, near]]) {
      from.on('error', () => {});
      from.once('close', () => {
        this.#pairs.delete(pair);
        to.destroy();
      });
      from.pipe(to);
    }
  }

  cut() {
    this.isCut = true;
    for (const [near, far] of this.#pairs) {
      near.pause();
      far?.pause();
      near.unpipe();
      far?.unpipe();
    }
  }

  /** Cut connections stay cut; new ones work. */
  mend() {
    this.isCut = false;
    for (const pair of this.#pairs) for (const socket of pair) socket.destroy();
  }
}
