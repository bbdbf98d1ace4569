// Billing under random charges, adjustments, freezes and recoveries (over the API and in plain SQL), holds, retries and
// crashes, compared with a model that uses only the replies: balances equal the sum of adjustments and charges, no usage
// inside a freeze is charged, none from before is lost, usage that a freeze interrupts is charged in proportion, nothing is
// charged twice, and subscriptions are charged once for each period that is not frozen, and by the calendar. ROUNDS times
// 500 steps, chosen by SEED. Then the calendar over years, by a clock of the test.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { describe, it } from 'node:test';

import { Account, instantOf, microsOf, monthsLater, scheduleOf } from '../service/lib/billing-model.js';
import { adjust, charge, chargesInsideFreezes, showAccount, subscribe, unsubscribe, validBalance } from '../service/lib/billing.js';
import { addCustomer, env, freeze, recover } from '../service/lib/customers.js';
import { Cluster } from '../service/lib/postgres.js';
import { run, serve } from '../service/lib/reclaim.js';
import { pause, stageOf, until } from '../service/lib/stage.js';

const steps = 500 * Number(process.env.ROUNDS ?? 3);
const seed = Number(process.env.SEED ?? 20251101);
const customersCount = 4;

/** Mulberry32, one for each worker: the same steps for the same seed, however they interleave. */
function randomFrom(seedOf) {
  let state = seedOf;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

/** Two instances on one database, and the faults injected. */
class World {
  counts = { steps: 0, kills: 0, cuts: 0, outages: 0, retried: 0 };
  #names = 0;

  static async create(t) {
    const world = new World();
    world.t = t;
    world.cluster = await Cluster.create(t);
    world.db = await world.cluster.database(t);
    world.servers = [await world.#start(), await world.#start()];
    return world;
  }

  async #start() {
    const name = `instance${++this.#names}`;
    const server = await serve(this.t, { database: `${this.db.url}&application_name=${name}`, env: { ...env, RECLAIM_DATABASE_CONNECTIONS: '6' } });
    server.name = name;
    return server;
  }

  /** A killed instance may leave a statement running, which must end before its request is repeated. */
  async #gone(name) {
    await this.sql(() =>
      until(`connections of ${name} gone`, async () => (await this.db.query('select from pg_stat_activity where application_name = $1', [name])).length === 0),
    );
  }

  async blow(random) {
    const kind = random(10);
    if (kind < 4) {
      const n = random(2);
      const { name } = this.servers[n];
      this.counts.kills++;
      await this.servers[n].kill9();
      await this.#gone(name);
      this.servers[n] = await this.#start();
    } else if (kind < 9) {
      this.counts.cuts++;
      await this.sql(() => this.db.query(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'instance%' and random() < 0.7`));
    } else {
      this.counts.outages++;
      await this.cluster.restart('immediate');
    }
  }

  /** Repeats an idempotent statement until it succeeds. */
  async sql(run) {
    return until('the database', async () => [await run()], 120_000).then(([rows]) => rows);
  }

  /** The database's clock. */
  async now() {
    const [{ now }] = await this.sql(() => this.db.query('select reclaim.rfc3339(clock_timestamp()) as now'));
    return microsOf(now);
  }

  /** Repeats the same request until there is a reply, as a client does when its server is killed. */
  async ask(random, request) {
    const end = performance.now() + 120_000;
    for (;;) {
      const server = this.servers[random(2)];
      let answer;
      try {
        answer = await request(server);
      } catch (fault) {
        if (!['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT'].includes(fault.code)) throw fault;
        if (server.exit || server.process.killed) await this.#gone(server.name);
      }
      if (answer && answer.status !== 503) return answer;
      assert.ok(performance.now() < end, `no answer but ${answer?.body}`);
      this.counts.retried++;
      await pause(20);
    }
  }
}

/** The steps of one customer, in sequence; customers run concurrently. */
class Life {
  frozen = null; // since when, if frozen
  freezes = []; // { from, to, after, before }: `to` lies between the last two
  marks = []; // instants between steps: { at, frozen: index of its freeze, or null }
  done = {};

  constructor(world, n, customer, accounts) {
    Object.assign(this, { world, customer, accounts });
    this.random = randomFrom(seed * 31 + n);
    this.n = n;
  }

  pick(list) {
    return list[this.random(list.length)];
  }

  reference() {
    this.made = (this.made ?? 0) + 1;
    return `life${this.n}-${this.made}`;
  }

  async mark() {
    this.marks.push({ at: await this.world.now(), freeze: this.frozen === null ? null : this.freezes.length });
  }

  /** Whether it was frozen at that mark: 'now' by the current freeze, 'then' by a former one, or not. */
  frozenAt({ freeze: index }) {
    if (index === null) return false;
    return index === this.freezes.length && this.frozen !== null ? 'now' : 'then';
  }

  async send(account, body) {
    return this.world.ask(this.random, (server) => charge(server, { billing_account_id: account.id, ...body }));
  }

  /** One charge, and its expected result. */
  async charge(mark) {
    const account = this.pick(this.accounts);
    const amount_micros = 1 + this.random(400);
    const body = { amount_micros, reference: this.reference(), ...(mark ? { occurred_at: instantOf(mark.at) } : {}) };
    const frozenNow = this.frozen !== null;
    await this.assertCharge(account, body, account.expected(amount_micros, { frozenNow, frozenThen: mark ? this.frozenAt(mark) : frozenNow && 'now' }));
  }

  /** Usage with a length, between two marks: with freezes in it, or inside one. */
  async span() {
    if (this.marks.length < 2) return this.charge();
    const account = this.pick(this.accounts);
    const amount_micros = 1 + this.random(400);
    const [started, ended] = [this.pick(this.marks.slice(-60)).at, this.pick(this.marks.slice(-60)).at].sort((a, b) => (a < b ? -1 : 1));
    if (started === ended) return this.charge();
    // Sometimes exactly as long as a freeze, or up to one.
    const freezes = [...(await this.learnFreezes(account)), ...(this.frozen === null ? [] : [{ from: this.frozen, to: null }])];
    const one = this.random(4) === 0 && freezes.length > 0 && this.pick(freezes);
    const usage = one ? { started: this.random(2) ? one.from : one.from - 5000n, ended: this.random(2) && one.to !== null ? one.to : one.from } : { started, ended };
    if (usage.started >= usage.ended) return this.charge();
    const body = { amount_micros, reference: this.reference(), started_at: instantOf(usage.started), occurred_at: instantOf(usage.ended) };
    await this.assertCharge(account, body, account.expectedPart(amount_micros, { ...usage, freezes }));
  }

  async assertCharge(account, body, [status, error, charged]) {
    const answer = await this.send(account, body);
    if (status === 201) {
      assert.ok([200, 201].includes(answer.status), `${JSON.stringify(body)}: expected a charge, got ${answer.status} ${answer.body}`);
      const { amount_micros, charged_micros, started_at, occurred_at } = answer.json;
      assert.deepEqual([amount_micros, charged_micros, started_at], [body.amount_micros, charged, body.started_at ?? null], JSON.stringify(body));
      if (body.occurred_at) assert.equal(occurred_at, body.occurred_at);
      account.charges.set(body.reference, { amount: amount_micros, charged, started_at, occurred_at });
    } else {
      assert.deepEqual([answer.status, answer.json?.error], [status, error], JSON.stringify({ body, answer: answer.body }));
      account.refused.push(body);
    }
  }

  /** A repeated charge is not charged again, and refused with another amount. */
  async repeat() {
    const account = this.pick(this.accounts);
    const all = [...account.charges];
    if (all.length === 0) return;
    const [reference, { amount, charged, started_at, occurred_at }] = this.pick(all);
    const odd = this.random(3) === 0;
    const asked = { reference, amount_micros: amount, ...(started_at ? { started_at } : {}), ...(this.random(2) ? { occurred_at } : {}) };
    const other = started_at && this.random(2) ? { started_at: undefined } : { amount_micros: amount + 1 };
    const answer = await this.send(account, { ...asked, ...(odd ? other : {}) });
    assert.equal(answer.status, odd ? 409 : 200, answer.body);
    if (!odd) assert.equal(answer.json.charged_micros, charged);
  }

  /** Over the API, or as another program does it. Returns since when it is frozen. */
  async freeze() {
    let since;
    if (this.random(3) === 0) {
      this.done.freezesInSql = (this.done.freezesInSql ?? 0) + 1;
      await this.setStatus('frozen');
      [{ since }] = await this.world.sql(() =>
        this.world.db.query('select reclaim.rfc3339(tm_deletion_scheduled) as since from reclaim.customer_customers where id = $1', [this.customer.id]),
      );
    } else {
      const answer = await this.world.ask(this.random, (server) => freeze(server, this.customer.id));
      assert.equal(answer.status, 200, answer.body);
      since = answer.json.tm_deletion_scheduled;
    }
    if (this.frozen === null) this.frozen = microsOf(since);
    else assert.equal(microsOf(since), this.frozen, 'frozen again is frozen as before');
  }

  async recover() {
    const after = await this.world.now();
    if (this.random(3) === 0) await this.setStatus('active');
    else {
      const answer = await this.world.ask(this.random, (server) => recover(server, this.customer.id));
      // 404: the reply to the first try was lost.
      assert.ok([200, 404].includes(answer.status), answer.body);
    }
    this.freezes.push({ from: this.frozen, after, before: await this.world.now() });
    this.frozen = null;
  }

  /** In a session whose clocks change in spring and autumn. */
  async setStatus(status) {
    await this.world.sql(() =>
      this.world.db.query(
        `with zone as materialized (select set_config('timezone', 'America/New_York', true))
         update reclaim.customer_customers set status = $2 from zone where id = $1 and status <> $2`,
        [this.customer.id, status],
      ),
    );
  }

  /** Charges concurrent with a freeze or recovery: each counts as before or after it. */
  async race() {
    const account = this.pick(this.accounts.filter(({ subscribes }) => subscribes));
    const freezing = this.frozen === null;
    const bodies = Array.from({ length: 6 }, () => ({ amount_micros: 1 + this.random(50), reference: this.reference() }));
    const since = await this.world.now();
    const charging = bodies.map(async (body, n) => {
      await pause(n * 2);
      return this.send(account, body);
    });
    await (freezing ? this.freeze() : this.recover());
    await Promise.all(charging);
    for (const body of bodies) {
      // The repeated request gives the final result: charged before, charged now, or refused by the freeze.
      const answer = await this.send(account, body);
      if (answer.status === 403) {
        assert.ok(freezing || account.holds, answer.body);
        continue;
      }
      assert.ok([200, 201].includes(answer.status), answer.body);
      const at = microsOf(answer.json.occurred_at);
      assert.ok(at >= since, 'it occurred when it was charged');
      if (freezing) assert.ok(at < this.frozen, `charged at ${at}, frozen since ${this.frozen}`);
      else assert.ok(at > this.freezes.at(-1).after, 'not before recovery began');
      account.charges.set(body.reference, { amount: body.amount_micros, charged: body.amount_micros, started_at: null, occurred_at: answer.json.occurred_at });
    }
  }

  /** Adds to the balance, or takes off it; a debt is possible, and refuses charges. */
  async adjust() {
    const account = this.pick(this.accounts);
    const amount_micros = this.random(4) === 0 ? -1 - this.random(500) : 1 + this.random(2000);
    const body = { amount_micros, reference: this.reference(), reason: 'of the test' };
    for (const statuses of [[200, 201], [200]]) {
      const answer = await this.world.ask(this.random, (server) => adjust(server, account.id, body));
      assert.ok(statuses.includes(answer.status), answer.body);
      assert.equal(answer.json.amount_micros, amount_micros);
    }
    account.adjustments.set(body.reference, amount_micros);
  }

  /** Sets or releases a hold of another kind; not on accounts with subscriptions, so that their schedule is known. */
  async hold() {
    const account = this.accounts.find(({ subscribes }) => !subscribes);
    account.holds = !account.holds;
    const change = account.holds ? `array_append(array_remove(hold_reasons, 'fraud'), 'fraud')` : `array_remove(hold_reasons, 'fraud')`;
    await this.world.sql(() => this.world.db.query(`update reclaim.billing_accounts set hold_reasons = ${change} where id = $1`, [account.id]));
  }

  async look() {
    const account = this.pick(this.accounts);
    const shown = await this.world.ask(this.random, (server) => showAccount(server, account.id));
    const held = account.holds || this.frozen !== null;
    assert.equal(shown.json.status, held ? 'frozen' : 'active');
    assert.equal(shown.json.frozen_at && microsOf(shown.json.frozen_at), this.frozen);
    if (!account.subscribes) assert.equal(shown.json.balance_micros, account.balance);
    const valid = await this.world.ask(this.random, (server) => validBalance(server, account.id, 1));
    assert.equal(valid.json.valid, !held && (account.subscribes || account.balance >= 1));
  }

  async subscribe() {
    const account = this.accounts.find(({ subscribes }) => subscribes);
    if (this.frozen !== null || account.subscriptions.length >= 6) return;
    const now = await this.world.now();
    const amount = 1 + this.random(9);
    const months = this.random(2) ? this.pick([1, 12]) : 0;
    const seconds = 1 + this.random(2);
    // By the calendar it began in the past, so that its next charge is due in a few seconds.
    const soon = now + BigInt(this.random(20_000_000));
    const first = months ? monthsLater(soon, -months * (1 + this.random(5)), this.random(4) === 0 ? 31 : new Date(Number(soon / 1000n)).getUTCDate()) : now;
    const period = months ? (months === 1 ? 'month' : 'year') : `${seconds}s`;
    const body = { billing_account_id: account.id, amount_micros: amount, period, first_charge_at: instantOf(first), reference: this.reference() };
    const answer = await this.world.ask(this.random, (server) => subscribe(server, body));
    assert.ok([200, 201].includes(answer.status), answer.body);
    account.subscriptions.push({ id: answer.json.id, first, period: months ? { months } : BigInt(seconds) * 1000000n, amount });
  }

  async step() {
    const kinds = [
      [25, 'charge'],
      [20, 'late'],
      [15, 'span'],
      [10, 'repeat'],
      [9, 'turn'],
      [5, 'race'],
      [6, 'adjust'],
      [2, 'hold'],
      [5, 'look'],
      [3, 'subscribe'],
    ];
    let n = this.random(100);
    const [, kind] = kinds.find(([weight]) => (n -= weight) < 0);
    this.done[kind] = (this.done[kind] ?? 0) + 1;
    if (this.random(4) === 0) await this.mark();
    if (kind === 'late') await this.charge(this.marks.length ? this.pick(this.marks.slice(-60)) : null);
    else if (kind === 'turn') await (this.frozen === null || this.random(5) === 0 ? this.freeze() : this.recover());
    else await this[kind]();
  }

  /** The API does not report when a freeze ended: the time in the database must agree with the observed ones. */
  async learnFreezes(account) {
    const rows = await this.world.sql(() => this.world.db.query(
      `select reclaim.rfc3339(frozen_at) as frozen, reclaim.rfc3339(thawed_at) as thawed from reclaim.billing_freezes
       where billing_account_id = $1 and thawed_at is not null order by frozen_at`,
      [account.id],
    ));
    assert.deepEqual(rows.map(({ frozen }) => microsOf(frozen)), this.freezes.map(({ from }) => from), 'every freeze is remembered, at the instant that was told');
    return rows.map(({ frozen, thawed }, n) => {
      const to = microsOf(thawed);
      assert.ok(to >= this.freezes[n].after && to <= this.freezes[n].before, 'and ended when it was ended');
      return { from: microsOf(frozen), to };
    });
  }

  async assertSubscription(account, subscription) {
    const freezes = await this.learnFreezes(account);
    const charged = async () =>
      (
        await this.world.db.query(
          'select reclaim.rfc3339(occurred_at) as at, amount_micros::int as amount from reclaim.billing_charges where subscription_id = $1 order by occurred_at',
          [subscription.id],
        )
      ).map(({ at, amount }) => {
        assert.equal(amount, subscription.amount);
        return microsOf(at);
      });
    const { due } = scheduleOf(subscription.first, subscription.period, freezes, await this.world.now());
    await until('every period charged', async () => (await charged()).length >= due.length);
    const ended = await this.world.ask(this.random, (server) => unsubscribe(server, subscription.id));
    assert.equal(ended.json.status, 'ended');
    const all = await charged();
    const { due: expected, next } = scheduleOf(subscription.first, subscription.period, freezes, await this.world.now());
    assert.deepEqual(all, expected.slice(0, all.length));
    assert.equal(microsOf(ended.json.next_charge_at), expected[all.length] ?? next, 'the next charge is the one that follows');
    return all.length;
  }

  /** Compares the database with the replies, charge by charge. */
  async assertTrue() {
    if (this.frozen !== null) await this.recover();
    let periods = 0;
    for (const account of this.accounts) {
      let subscribed = 0;
      for (const subscription of account.subscriptions) {
        const count = await this.assertSubscription(account, subscription);
        subscribed += count * subscription.amount;
        periods += count;
      }
      await this.learnFreezes(account);
      const rows = await this.world.db.query(
        `select reference, amount_micros::int as amount, charged_micros::int as charged, reclaim.rfc3339(started_at) as started_at,
           reclaim.rfc3339(occurred_at) as occurred_at from reclaim.billing_charges
         where billing_account_id = $1 and subscription_id is null`,
        [account.id],
      );
      const found = new Map(rows.map(({ reference, ...row }) => [reference, row]));
      assert.deepEqual([...found].sort(), [...account.charges].sort(), 'what was answered was charged, and nothing else');
      const adjusted = await this.world.db.query('select reference, amount_micros::int as amount from reclaim.billing_adjustments where billing_account_id = $1', [account.id]);
      assert.deepEqual(adjusted.map(({ reference, amount }) => [reference, amount]).sort(), [...account.adjustments].sort(), 'and so were adjustments');
      const [{ balance_micros }] = await this.world.db.query('select balance_micros from reclaim.billing_accounts where id = $1', [account.id]);
      assert.equal(Number(balance_micros), account.balance - subscribed, 'the balance is what the charges left');
    }
    return periods;
  }
}

describe(`money, ${steps} steps, seed ${seed}`, () => {
  it('adds up, whatever happens', async (t) => {
    const world = await World.create(t);
    const lives = [];
    for (let n = 0; n < customersCount; n++) {
      const customer = await addCustomer(world.db, { owner: false, email: '' });
      const accounts = [new Account(randomUUID(), 3000), new Account(randomUUID(), 1_000_000_000, { subscribes: true })];
      for (const { id, filled } of accounts)
        await world.db.query('insert into reclaim.billing_accounts (id, customer_id, balance_micros) values ($1, $2, $3)', [id, customer.id, filled]);
      lives.push(new Life(world, n, customer, accounts));
    }
    let going = true;
    stageOf(t).after(() => (going = false)); // if the test fails
    const living = lives.map(async (life) => {
      await life.subscribe();
      while (going && world.counts.steps < steps) {
        world.counts.steps++;
        await life.step();
      }
    });
    const random = randomFrom(seed);
    const blows = (async () => {
      for (let next = 60; going && next < steps; next += 80 + random(80)) {
        await until('more steps', () => !going || world.counts.steps >= next, 600_000);
        if (going) await world.blow(random);
      }
    })();
    await Promise.all(living).finally(() => (going = false));
    await blows;
    let periods = 0;
    for (const count of await Promise.all(lives.map((life) => life.assertTrue()))) periods += count;
    assert.deepEqual(await chargesInsideFreezes(world.db), []);
    const done = {};
    for (const life of lives) for (const [kind, n] of Object.entries(life.done)) done[kind] = (done[kind] ?? 0) + n;
    const accounts = lives.flatMap((life) => life.accounts);
    const charges = accounts.reduce((sum, account) => sum + account.charges.size, 0);
    assert.ok(charges > steps / 10 && periods > 0, `${charges} charges and ${periods} periods prove little`);
    t.diagnostic(JSON.stringify({ ...world.counts, ...done, charges, refused: accounts.reduce((sum, account) => sum + account.refused.length, 0), periods }));
    for (const server of world.servers) {
      await server.withoutConnections();
      await server.stop();
    }
  });
});

describe(`the calendar, ${steps} steps, seed ${seed}`, () => {
  it('charges each month and year once, on its day, whatever is frozen', async (t) => {
    const cluster = await Cluster.create(t);
    const db = await cluster.database(t);
    assert.equal((await run(t, ['migrate'], { database: db })).code, 0);
    const random = randomFrom(seed + 1);
    const start = microsOf('2027-01-28T00:00:00.000000Z');
    let now = start;
    const freezes = [];
    const subscriptions = [];
    // The test's clock, and a session whose clocks change in spring and autumn.
    await db.query('create table public.clock (at timestamptz)');
    await db.query('insert into public.clock values (now())');
    await db.query(`create or replace function reclaim.now() returns timestamptz language sql stable as 'select at from public.clock'`);
    const go = async (to) => {
      now = to;
      await db.query(`update public.clock set at = $1`, [instantOf(now)]);
    };
    await go(start);
    const customer = await addCustomer(db, { owner: false, email: '' });
    const account = randomUUID();
    await db.query('insert into reclaim.billing_accounts (id, customer_id, balance_micros) values ($1, $2, 1000000000)', [account, customer.id]);
    const setStatus = (status) =>
      db.query(
        `with zone as materialized (select set_config('timezone', 'Europe/Berlin', true))
         update reclaim.customer_customers set status = $2 from zone where id = $1`,
        [customer.id, status],
      );
    let frozen = null;
    for (let step = 0; step < steps; step++) {
      const kind = random(10);
      if (kind < 4) await go(now + BigInt(1 + random(20 * 86_400)) * 1_000_000n + BigInt(random(1_000_000)));
      else if (kind < 6) {
        if (frozen === null) frozen = now;
        else {
          freezes.push({ from: frozen, to: now });
          frozen = null;
        }
        await setStatus(frozen === null ? 'active' : 'frozen');
      } else if (kind < 9) await db.query('select reclaim.billing_charge_due(100)');
      else if (subscriptions.length < 12 && frozen === null) {
        const months = random(4) ? 1 : 12;
        const first = monthsLater(now, 0, 1 + random(31));
        const [{ outcome, id }] = await db.query(
          `select outcome, object->>'id' as id from reclaim.billing_subscribe($1, 1, null, $2, null, $3::smallint)`,
          [account, instantOf(first), months],
        );
        assert.equal(outcome, 'made');
        // A first charge that lies inside freezes is moved by them.
        let at = first;
        for (const { from, to } of freezes) if (at >= from && at < to) at += to - from;
        subscriptions.push({ id, first: at, made: now, period: { months } });
      }
    }
    if (frozen !== null) {
      await setStatus('active');
      freezes.push({ from: frozen, to: now });
    }
    for (let left = true; left; ) [{ left }] = await db.query('select charged > 0 as left from reclaim.billing_charge_due(100)');
    let charges = 0;
    for (const { id, first: asked, made, period } of subscriptions) {
      // Freezes that began before the first charge move it, too.
      let first = asked;
      for (const { from, to } of freezes) if (from >= made && first >= from) first += to - from;
      const { due, next } = scheduleOf(first, period, freezes, now);
      const rows = await db.query('select reclaim.rfc3339(occurred_at) as at from reclaim.billing_charges where subscription_id = $1 order by occurred_at', [id]);
      assert.deepEqual(rows.map(({ at }) => at), due.map(instantOf));
      const [row] = await db.query('select reclaim.rfc3339(next_charge_at) as next from reclaim.billing_subscriptions where id = $1', [id]);
      assert.equal(row.next, instantOf(next));
      charges += due.length;
    }
    const [{ balance }] = await db.query('select balance_micros::int as balance from reclaim.billing_accounts where id = $1', [account]);
    assert.equal(balance, 1_000_000_000 - charges);
    assert.ok(charges > steps / 10, `${charges} charges prove little`);
    t.diagnostic(JSON.stringify({ steps, charges, freezes: freezes.length, years: Number((now - start) / 86_400_000_000n) / 365 }));
  });
});
