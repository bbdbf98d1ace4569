// A race as a suite of node:test: one test per order.
//
//   race('a charge and a deletion', () => world, {
//     setUp: async (world) => given,          // anew for each order
//     sessions: { biller: sql({ charge: …, commit: … }), admin: requests({ delete: … }) },
//     stop: { step: 'go', in: 'delete', session: 'admin', before: 'update on TABLE', row: (given) => id },
//     promise: async (world, given) => …,     // throws when it is broken, whatever the order
//     transcripts: `…`,                       // what each order must lead to
//   });
//
// All orders must have a transcript, unless `chosen` says why some are enough.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';

import { env as customerEnv } from '../../service/lib/customers.js';
import { FakeProvider } from '../../service/lib/fake-provider.js';
import { Cluster } from '../../service/lib/postgres.js';
import { serve } from '../../service/lib/reclaim.js';
import { assertComplete, readTranscripts } from './orders.js';
import { faultsOf, play } from './play.js';
import { named } from './sessions.js';

/** A database, changed by the SQL `prepare`, and an instance for each of these sessions, with settings `env`: { cluster, db, provider, servers, env }. */
export async function world(stage, instances, { cluster, prepare, env: more } = {}) {
  cluster ??= await Cluster.create(stage);
  const db = await cluster.database(stage);
  if (prepare) await db.query(prepare);
  const provider = await FakeProvider.start(stage, 'resend');
  const env = { ...customerEnv, ...provider.env, RECLAIM_EXPIRY_INTERVAL: '1d', ...more }; // passes are steps
  const servers = {};
  for (const name of instances) servers[name] = await serve(stage, { database: named(db, name), env });
  return { cluster, db, provider, servers, env };
}

export function race(name, place, spec) {
  describe(name, () => {
    const transcripts = readTranscripts(spec.transcripts);
    it('has a transcript for every order', () => assertComplete(spec, transcripts));
    for (const { order, lines } of transcripts)
      it(order.join(', '), async () => {
        const faults = faultsOf(await play(place(), spec, order), lines);
        assert.ok(!faults, faults);
      });
  });
}
