// Builds and runs the example consumer.

import { execFileSync, spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

import { logFile, repository, temporaryDirectory } from './place.js';
import { stageOf } from './stage.js';
import { keepEnded } from './watchdog.js';

/** Compiles it with the sanitizers; returns the program's path. */
export function buildConsumer(scope) {
  const directory = temporaryDirectory(stageOf(scope));
  execFileSync('make', ['-C', path.join(repository, 'examples/consumer'), `BUILD=${directory}`, 'CFLAGS=-O1 -g -fsanitize=address,undefined'], { stdio: 'pipe' });
  return path.join(directory, 'consumer');
}

export class Consumer {
  static async start(scope, program, { amqpUrl, database, queue }) {
    const consumer = new Consumer();
    consumer.spawn = async () => {
      const log = fs.openSync(logFile('consumer', 'log'), 'a');
      const child = spawn(program, [], {
        env: { PATH: process.env.PATH, AMQP_URL: amqpUrl, DATABASE_URL: database.url, QUEUE: queue, ASAN_OPTIONS: process.env.ASAN_OPTIONS ?? '' },
        stdio: ['ignore', log, log],
      });
      fs.closeSync(log);
      await new Promise((resolve, reject) => child.once('spawn', resolve).once('error', reject));
      const forget = keepEnded(child.pid);
      consumer.process = child;
      consumer.gone = new Promise((resolve) => child.once('exit', resolve)).then(forget);
    };
    await consumer.spawn();
    stageOf(scope).after(() => consumer.kill9());
    return consumer;
  }

  async kill9() {
    this.process.kill('SIGKILL');
    await this.gone;
  }

  async restart() {
    await this.kill9();
    await this.spawn();
  }
}

/** id → { status, epoch, sequence } in the consumer. */
export async function consumed(db) {
  const rows = await db.query('select customer_id as id, status, epoch, sequence::int from customer_states order by customer_id');
  return Object.fromEntries(rows.map(({ id, ...rest }) => [id, rest]));
}
