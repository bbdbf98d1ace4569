// A relay between a server and its database that can stop carrying bytes: nobody is told, as when a network drops packets.

import { createServer, connect } from 'node:net';

import { stageOf } from './stage.js';

export class Relay {
  #pairs = new Set();
  #silent = false;

  /** To the port of a cluster made with `tcp: true`. */
  static async start(scope, port) {
    const relay = new Relay();
    relay.listener = createServer((client) => relay.#join(client, port));
    await new Promise((resolve) => relay.listener.listen(0, '127.0.0.1', resolve));
    relay.port = relay.listener.address().port;
    stageOf(scope).after(() => relay.end());
    return relay;
  }

  #join(client, port) {
    const pair = [client, connect(port, '127.0.0.1')];
    this.#pairs.add(pair);
    pair.forEach((from, n) => {
      const to = pair[1 - n];
      from.on('data', (bytes) => to.write(bytes));
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        this.#pairs.delete(pair);
      });
      if (this.#silent) from.pause();
    });
  }

  silence() {
    this.#silent = true;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.pause());
  }

  resume() {
    this.#silent = false;
    for (const pair of this.#pairs) pair.forEach((socket) => socket.resume());
  }

  end() {
    for (const pair of this.#pairs) pair.forEach((socket) => socket.destroy());
    return new Promise((resolve) => this.listener.close(resolve));
  }
}
