// Freezes under constant load on three instances, while the database connection of one is cut, one is stopped and
// continued, and the database restarts: after the reply to a freeze no instance lets the customer pass. ROUNDS of 25
// freezes, by default 20; SEED determines the times.

import assert from 'node:assert/strict';
import http from 'node:http';
import { describe, it } from 'node:test';

import { addCustomer, asKey, asUser, env, freeze } from '../service/lib/customers.js';
import { addKeys, gate, Wire } from '../service/lib/gate.js';
import { ops } from '../service/lib/http.js';
import { Cluster } from '../service/lib/postgres.js';
import { parseMetrics, valueOf } from '../service/lib/prometheus.js';
import { serve } from '../service/lib/reclaim.js';
import { pause, stageOf, until } from '../service/lib/stage.js';

const freezes = 25 * Number(process.env.ROUNDS ?? 20);
const network = ['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'];
let state = Number(process.env.SEED ?? 20251028);

/** Mulberry32: the same times for the same seed. */
function random(below) {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % below;
}

/** Load: clients of the customers that send requests repeatedly. */
class Load {
  counts = { 200: 0, 403: 0, 503: 0, cut: 0 };
  wrong = [];

  constructor(scope, instances) {
    this.instances = instances;
    stageOf(scope).after(() => (this.over = true));
  }

  /** Sends both credentials of a customer to each instance, until stopped. */
  send(customer) {
    customer.told = this.instances.map(() => ({ passed: 0, refused: 0 }));
    customer.workers = this.instances.flatMap((instance, n) =>
      [asUser(customer.user.id), asKey(customer.key)].map((headers) => this.#work(instance, customer, customer.told[n], headers)),
    );
  }

  async #work(instance, customer, told, headers) {
    while (!customer.left && !this.over) {
      const begun = performance.now();
      try {
        const { status } = await gate(instance.server, headers, { agent: instance.agent });
        const afterwards = customer.answeredAt !== undefined && begun > customer.answeredAt;
        this.counts[status]++;
        if (status === 200) {
          told.passed++;
          if (afterwards) this.wrong.push(`${instance.name} let ${customer.id} pass ${begun - customer.answeredAt} ms after its freeze was answered`);
        } else if (status === 403 && afterwards) told.refused++;
        else if (status === 503) await pause(10);
        else assert.equal(status, 403);
      } catch (fault) {
        if (!network.includes(fault.code)) throw fault;
        this.counts.cut++;
        await pause(10);
      }
    }
  }

  async leave(customer) {
    customer.left = true;
    await Promise.all(customer.workers);
  }
}

/**
 * Repeats the request until there is a reply, despite outages of the database; false if that took more than one try.
 */
async function freezeFor(server, customer) {
  for (let tries = 1; ; tries++) {
    const answer = await freeze(server, customer.id).catch((fault) => {
      if (!network.includes(fault.code)) throw fault;
      return { status: 503 };
    });
    if (answer.status === 200) {
      customer.answeredAt = performance.now();
      return tries === 1 && Date.now() - Date.parse(answer.json.tm_deletion_scheduled);
    }
    assert.ok([500, 503].includes(answer.status), answer.body);
    await pause(50);
  }
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

describe(`the gate under faults, ${freezes} freezes`, () => {
  it('none of three instances lets a customer through once its freeze is answered', async (t) => {
    const cluster = await Cluster.create(t, { tcp: true });
    const db = await cluster.database(t);
    const wire = await Wire.lay(t, cluster.port);
    const direct = `postgresql://postgres@127.0.0.1:${wire.port}/${db.name}`;
    const instances = [];
    for (const [name, more] of Object.entries({ plain: {}, cut: { RECLAIM_DATABASE_DIRECT_URL: direct }, stopped: {} })) {
      const agent = new http.Agent({ keepAlive: true });
      stageOf(t).after(() => agent.destroy());
      instances.push({ name, agent, server: await serve(t, { database: db, env: { ...env, ...more } }), awake: true });
    }
    const [, , sleeper] = instances;
    stageOf(t).after(() => sleeper.server.exit || sleeper.server.signal('SIGCONT'));

    const blows = [
      async () => {
        wire.cut();
        await pause(300 + random(700));
        wire.mend();
      },
      async () => {
        sleeper.awake = false;
        sleeper.server.signal('SIGSTOP');
        await pause(150 + random(600));
        sleeper.server.signal('SIGCONT');
        sleeper.awake = true;
      },
      () => cluster.restart('fast'),
      async () => {
        wire.drop();
        await pause(random(200));
        wire.drop();
      },
    ];

    const load = new Load(t, instances);
    const took = [];
    let blow = Promise.resolve(),
      previous;
    for (let n = 0; n < freezes; n++) {
      const customer = await until('a new customer', () => addCustomer(db));
      [customer.key] = await until('its key', () => addKeys(db, [customer]));
      load.send(customer);
      const passing = (each) => each.awake && customer.told[instances.indexOf(each)].passed > 1;
      await until('the customer passing at those awake', () => instances.every((each) => !each.awake || passing(each)));

      if (n % 5 === 2) {
        await blow;
        const next = blows[Math.floor(n / 5) % blows.length];
        blow = pause(random(150)).then(next);
      }
      await pause(random(30));
      const ms = await freezeFor(instances[random(2)].server, customer);
      if (ms !== false) took.push(ms);
      await until('the customer refused at those awake', () => instances.every((each, i) => !each.awake || customer.told[i].refused > 1));
      // It continues during the next freeze.
      if (previous) await load.leave(previous);
      previous = customer;
      assert.deepEqual(load.wrong, []);
    }
    await blow;
    await until('refused everywhere', () => previous.told.every((told) => told.refused > 1));
    await load.leave(previous);
    assert.deepEqual(load.wrong, []);

    const decided = async ({ server }, source) =>
      valueOf(parseMetrics((await ops(server, '/metrics')).body), 'reclaim_gate_decisions_total', { source });
    const by = (source) => Promise.all(instances.map((each) => decided(each, source)));
    const [memory, database] = [await by('memory'), await by('database')];
    for (const [n, instance] of instances.entries())
      await until(`${instance.name} answering from memory again`, async () => {
        assert.equal((await gate(instance.server, asKey(previous.key))).status, 403);
        return (await decided(instance, 'memory')) > memory[n];
      });
    took.sort((a, b) => a - b);
    t.diagnostic(`answers ${JSON.stringify(load.counts)}; from memory ${memory}, from the database ${database}`);
    t.diagnostic(`from commit to answer, ms: p50 ${quantile(took, 0.5)}, p99 ${quantile(took, 0.99)}, most ${took.at(-1)} (${took.length} of ${freezes})`);
  });
});
