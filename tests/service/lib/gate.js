// The gate over the API, many API keys, and a connection to the database that can be cut.

import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import net from 'node:net';

import { request } from './http.js';
import { canaryKey } from './people.js';
import { stageOf } from './stage.js';

export const gate = (server, headers = {}, more = {}) => request(server, { path: '/gate', headers, ...more });

/** A key for each customer, as `reclaim key create` makes it, inserted in bulk. */
export async function addKeys(db, customers, { secret = canaryKey, keys = customers.map(() => `rk_${randomBytes(32).toString('base64url')}`) } = {}) {
  const hashKey = Buffer.from(hkdfSync('sha256', secret, '', 'access key hash', 32));
  const hashes = keys.map((key) => createHmac('sha256', hashKey).update(key).digest('hex'));
  await db.query('insert into reclaim.access_keys (customer_id, key_hash) select * from unnest($1::uuid[], $2::text[])', [
    customers.map(({ id }) => id),
    hashes,
  ]);
  return keys;
}

/** Forwards bytes in both directions until it is cut: then it reads and sends nothing, as when a cable is pulled. */
export class Wire {
  #sockets = new Set();
  #cut = false;

  static async lay(scope, port) {
    const wire = new Wire();
    wire.server = net.createServer((near) => wire.#join(near, net.connect(port, '127.0.0.1')));
    await new Promise((resolve) => wire.server.listen(0, '127.0.0.1', resolve));
    wire.port = wire.server.address().port;
    stageOf(scope).after(() => {
      wire.drop();
      return new Promise((resolve) => wire.server.close(resolve));
    });
    return wire;
  }

  #join(near, far) {
    for (const [one, other] of [
      [near, far],
      [far, near],
    ]) {
      this.#sockets.add(one);
      one.on('data', (part) => other.write(part));
      one.on('error', () => one.destroy());
      one.on('close', () => {
        this.#sockets.delete(one);
        if (!this.#cut) other.destroy();
      });
      if (this.#cut) one.pause();
    }
  }

  cut() {
    this.#cut = true;
    for (const socket of this.#sockets) socket.pause();
  }

  mend() {
    this.#cut = false;
    for (const socket of this.#sockets) socket.resume();
  }

  /** Ends all connections and accepts new ones. */
  drop() {
    for (const socket of this.#sockets) socket.destroy();
  }
}
