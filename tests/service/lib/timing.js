// Measures response times by kind of reply, and whether the kinds can be distinguished.

import assert from 'node:assert/strict';
import { createHmac, hkdfSync, randomBytes, randomInt } from 'node:crypto';
import net from 'node:net';

import { cleanupPath, hashOf } from './cleanup.js';
import { probePath } from './http.js';
import { metric } from './limits.js';
import { canaryKey, clientAddress, domain } from './people.js';
import { rawPost } from './raw.js';
import { pause, stageOf, until } from './stage.js';

/** A persistent connection that sends one request after the other. */
class Lane {
  static async open(server) {
    const lane = new Lane();
    const { host, port } = server.address();
    lane.socket = net.connect({ host, port, localAddress: clientAddress, noDelay: true });
    await new Promise((resolve, reject) => lane.socket.once('connect', resolve).once('error', reject));
    lane.socket.on('data', (part) => lane.#take(part));
    for (const sign of ['error', 'close']) lane.socket.on(sign, () => lane.#reject?.(new Error('the server closed the connection')));
    return lane;
  }

  #bytes = '';
  #sentAt;
  #ms;
  #resolve;
  #reject;

  /** Resolves to the reply, and the time from the last byte sent to the first byte received. */
  ask(bytes) {
    this.answered = false;
    return new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
      this.#bytes = '';
      this.#ms = undefined;
      this.socket.write(bytes); // fits into the socket's buffer
      this.#sentAt = performance.now();
    });
  }

  #take(part) {
    this.#ms ??= performance.now() - this.#sentAt;
    this.#bytes += part.toString('latin1');
    const end = this.#bytes.indexOf('\r\n\r\n');
    const length = /^content-length: *(\d+)\r$/im.exec(this.#bytes)?.[1];
    if (end < 0 || this.#bytes.length < end + 4 + Number(length)) return;
    this.answered = true;
    this.#resolve({ ms: this.#ms, status: Number(this.#bytes.slice(9, 12)), json: JSON.parse(this.#bytes.slice(end + 4)) });
  }

  close() {
    this.#reject = undefined;
    this.socket.destroy();
  }
}

function shuffled(list) {
  const all = [...list];
  for (let i = all.length - 1; i > 0; i--) {
    const j = randomInt(i + 1);
    [all[i], all[j]] = [all[j], all[i]];
  }
  return all;
}

/**
 * Collects so many replies of each kind over so many lanes, all kinds in turn, in a new random order each time. A kind
 * has `bytes()`, its next request, and `check(answer)`. Returns { kind: [{ ms, at }] }.
 */
export async function measure(scope, server, kinds, { answers, lanes, holdMs }) {
  const names = Object.keys(kinds);
  const found = Object.fromEntries(names.map((name) => [name, []]));
  let left = answers * names.length;
  let deck = [];
  const drive = async () => {
    await pause(Math.random() * holdMs);
    const lane = await Lane.open(server);
    try {
      while (left-- > 0) {
        if (deck.length === 0) deck = shuffled(names);
        const name = deck.pop();
        const answer = await lane.ask(kinds[name].bytes());
        kinds[name].check(answer);
        found[name].push({ ms: answer.ms, at: performance.now() });
      }
    } finally {
      lane.close();
    }
  };
  await Promise.all(Array.from({ length: lanes }, drive));
  return found;
}

/**
 * So many other clients that send requests and wait, each starting at a different time, until the scope ends. Once all
 * have sent a request, returns a function that counts the waiting ones.
 */
export async function crowd(scope, server, { size, holdMs, bytes }) {
  let going = true;
  let waiting = 0;
  const lanes = [];
  stageOf(scope).after(() => {
    going = false;
    lanes.forEach((lane) => lane.close());
  });
  const wait = async () => {
    await pause(Math.random() * holdMs);
    const lane = await Lane.open(server);
    lanes.push(lane);
    waiting++;
    while (going) await lane.ask(bytes());
  };
  const faults = [];
  for (let i = 0; i < size; i++)
    wait().catch((fault) => {
      waiting--;
      faults.push(fault.message);
    });
  await until('everyone in the crowd asking', () => waiting + faults.length === size);
  return () => {
    assert.deepEqual(faults, []);
    return waiting;
  };
}

const sortedQuantile = (sorted, q) => {
  const at = (sorted.length - 1) * q;
  const low = sorted[Math.floor(at)];
  return low + (sorted[Math.ceil(at)] - low) * (at - Math.floor(at));
};

const quantileOf = (values, q) => sortedQuantile(Float64Array.from(values).sort(), q);

/** The times of one kind as text. */
export const summary = (found) =>
  Object.entries(found).map(([name, all]) => {
    const times = all.map(({ ms }) => ms);
    const [p50, p95, p99] = [0.5, 0.95, 0.99].map((q) => quantileOf(times, q).toFixed(2));
    return `${name}: ${times.length} answers, median ${p50} ms, p95 ${p95} ms, p99 ${p99} ms`;
  });

const blockMs = 1000;
const resamples = 400;

/** The samples of each kind by second of arrival. */
function blocksOf(found) {
  const blocks = new Map();
  for (const [name, all] of Object.entries(found))
    for (const { ms, at } of all) {
      const number = Math.floor(at / blockMs);
      if (!blocks.has(number)) blocks.set(number, {});
      (blocks.get(number)[name] ??= []).push(ms);
    }
  return [...blocks.values()];
}

/**
 * The difference of a quantile between each two kinds, with its 95 % interval, by bootstrap over whole seconds of all
 * kinds, since disturbances of the machine in a second affect all kinds.
 */
export function differences(found, q) {
  const names = Object.keys(found);
  const blocks = blocksOf(found);
  const drawn = Array.from({ length: resamples }, () => {
    const chosen = Array.from(blocks, () => blocks[randomInt(blocks.length)]);
    return Object.fromEntries(names.map((name) => [name, quantileOf(chosen.flatMap((block) => block[name] ?? []), q)]));
  });
  const whole = Object.fromEntries(names.map((name) => [name, quantileOf(found[name].map(({ ms }) => ms), q)]));
  return names.flatMap((a, i) =>
    names.slice(i + 1).map((b) => {
      const spread = Float64Array.from(drawn, (one) => one[a] - one[b]).sort();
      return { a, b, difference: whole[a] - whole[b], low: sortedQuantile(spread, 0.025), high: sortedQuantile(spread, 0.975) };
    }),
  );
}

const cleanupBytes = (body) => rawPost(JSON.stringify(body), { path: cleanupPath });
const probeBytes = (email) => rawPost(JSON.stringify({ email }), { path: probePath });
const nobody = () => `nobody.${randomBytes(6).toString('hex')}@${domain}`;

/** Cycles through people, so that no two concurrent requests concern the same person. */
const inTurn = (people) => {
  let next = 0;
  return () => people[next++ % people.length];
};

const addMany = (db, count) =>
  db.query(
    `insert into auth.users (id, email, created_at)
     select gen_random_uuid(), 'timing.' || replace(gen_random_uuid()::text, '-', '') || $2, now() from generate_series(1, $1::int)
     returning id, email`,
    [count, `@${domain}`],
  );

const codeKey = Buffer.from(hkdfSync('sha256', canaryKey, '', 'code hash', 32));
const salt = randomBytes(16);
const typed = 'ABCD-EFGH';
const typedHash = createHmac('sha256', codeKey).update(Buffer.concat([salt, Buffer.from(typed.replace('-', '')), Buffer.of(0)])).digest();

const idsOf = (users) => users.map(({ id }) => id);

/** A code for each: the one that is typed, or an unknown one. */
export const addCodes = (db, users, expires, hash = randomBytes(32)) =>
  db.query(
    `insert into reclaim.verification_codes (email_hash, user_id, code_hash, code_salt, expires_at, log_id)
     select email_hash, user_id, $3, $4, now() + $5::interval, 0 from unnest($1::text[], $2::uuid[]) as a(email_hash, user_id)`,
    [users.map(({ email }) => hashOf(email)), idsOf(users), hash, salt, expires],
  );

/** The code that is typed, with the row of the request that asked for it: what a deletion needs. */
const addRightCodes = (db, users) =>
  db.query(
    `with asked as (select * from unnest($1::text[], $2::uuid[]) as a(email_hash, user_id)),
       log as (insert into reclaim.auth_cleanup_log (correlation_id, email_hash, ip_hash, step, status)
         select gen_random_uuid(), email_hash, '', 'request-code', 'pending' from asked returning id, email_hash, created_at)
     insert into reclaim.verification_codes (email_hash, user_id, code_hash, code_salt, expires_at, log_id, created_at)
     select a.email_hash, a.user_id, $3, $4, now() + interval '1 hour', l.id, l.created_at from asked a join log l using (email_hash)`,
    [users.map(({ email }) => hashOf(email)), idsOf(users), typedHash, salt],
  );

/** A second step that needs the right code, and refuses since something has happened after it was mailed. */
const since = (outcome) => ({
  step: 'validate-and-cleanup',
  code: '005',
  async arrange(db, users) {
    await addCodes(db, users, '1 hour', typedHash);
    await outcomes[outcome].arrange(db, users);
  },
});

/**
 * Every outcome of the clean-up: the step, the number of its error unless it succeeds, and what makes the users of this kind
 * so; `hold` does that in a session whose transaction stays open. Without users it is about unknown addresses; of `once` each
 * user is asked about once, since it is deleted or uses up its tries.
 */
const outcomes = {
  unknown: { step: 'request-code', code: '004', users: false },
  orphan: { step: 'request-code' },
  active: {
    step: 'request-code',
    code: '005',
    arrange: (db, users) => db.query('insert into public.companies (owner_admin_uuid) select unnest($1::uuid[])', [idsOf(users)]),
  },
  banned: {
    step: 'request-code',
    code: '005',
    arrange: (db, users) => db.query(`update auth.users set banned_until = now() + interval '1 day' where id = any ($1)`, [idsOf(users)]),
  },
  blocked: {
    step: 'request-code',
    code: '005',
    async arrange(db, users) {
      await db.query('create table if not exists public.invoices (author uuid references auth.users)');
      await db.query('insert into public.invoices select unnest($1::uuid[])', [idsOf(users)]);
    },
  },
  'wrong code': { step: 'validate-and-cleanup', code: '002', once: true, arrange: (db, users) => addCodes(db, users, '1 hour') },
  'expired code': { step: 'validate-and-cleanup', code: '001', arrange: (db, users) => addCodes(db, users, '-10 minutes') },
  'active since the code': since('active'),
  'blocked since the code': since('blocked'),
  deleted: { step: 'validate-and-cleanup', once: true, arrange: addRightCodes },
  'busy address': {
    step: 'request-code',
    code: '009',
    hold: (session, users) => session.query('select reclaim.acquire_cleanup_lock(email) from auth.users where id = any ($1)', [idsOf(users)]),
  },
  'busy row': {
    step: 'validate-and-cleanup',
    code: '009',
    arrange: (db, users) => addCodes(db, users, '1 hour', typedHash),
    hold: (session, users) => session.query('select from auth.users where id = any ($1) for update', [idsOf(users)]),
  },
};

const successes = { 'request-code': 'code-sent', 'validate-and-cleanup': 'user-deleted' };

/** Every kind of person, so many of `each`, and the expected reply to a request about them; `once` for those of one request. */
export async function timingPeople(scope, db, { each, once }) {
  const holder = await db.session(scope);
  await holder.query('begin');
  const cleanup = {};
  const groups = {};
  for (const [name, { step, code, users = true, once: isOnce, arrange, hold }] of Object.entries(outcomes)) {
    if (users) groups[name] = await addMany(db, isOnce ? once : each);
    await arrange?.(db, groups[name]);
    await hold?.(holder, groups[name]);
    const person = users ? inTurn(groups[name]) : () => ({ email: nobody() });
    const more = step === 'request-code' ? {} : { verificationCode: typed };
    cleanup[name] = {
      bytes: () => cleanupBytes({ step, email: person().email, ...more }),
      check: ({ json }) => assert.equal(json.error?.code ?? json.data.step, code ? `ORPHAN_CLEANUP_${code}` : successes[step], name),
    };
  }

  const looks = (group, status, isOrphaned) => {
    const person = group ? inTurn(groups[group]) : () => ({ email: nobody() });
    return {
      bytes: () => probeBytes(person().email),
      check: ({ json }) => assert.deepEqual([json.data.status, json.data.isOrphaned], [status, isOrphaned]),
    };
  };
  const probe = {
    unknown: looks(null, 'not_registered', false),
    orphan: looks('orphan', 'registered_unverified', true),
    complete: looks('active', 'registered_unverified', false),
  };
  return { cleanup, probe };
}

const laneQueue = 4096; // requests that wait for a connection of their lane; one more is refused

/**
 * Fills the lane of anonymous callers until the scope ends: whoever has one of its connections waits for a code's row, and the
 * process that waits for it is stopped, so that no place becomes free.
 */
export async function fillLane(scope, db, server) {
  const stage = stageOf(scope);
  const stopped = new Set();
  const lanes = [];
  stage.after(async () => {
    for (const pid of stopped) process.kill(pid, 'SIGCONT');
    lanes.forEach((lane) => lane.close());
    await until('the lane empty', async () => (await metric(server, 'reclaim_database_lane_queued', lane)) === 0);
  });
  const lane = { lane: 'anonymous' };
  const connections = await metric(server, 'reclaim_database_lane_connections', lane);
  const users = await addMany(db, connections);
  await addCodes(db, users, '1 hour');
  const locker = await db.session(stage);
  await locker.query('begin');
  await locker.query('select from reclaim.verification_codes where user_id = any ($1) for update', [idsOf(users)]);
  const person = inTurn(users);
  const ask = (one) => one.ask(cleanupBytes({ step: 'validate-and-cleanup', email: person().email, verificationCode: typed })).catch(() => {});
  for (let left = laneQueue + connections; left > 0; left -= 200) {
    const some = await Promise.all(Array.from({ length: Math.min(left, 200) }, () => Lane.open(server)));
    some.forEach(ask);
    lanes.push(...some);
  }
  await until('every connection of the lane stuck, its queue full', async () => {
    const waiting = await db.query(`select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
    for (const { pid } of waiting)
      if (stopped.size < connections && !stopped.has(pid)) {
        process.kill(pid, 'SIGSTOP');
        stopped.add(pid);
      }
    if (stopped.size < connections) return false;
    lanes.filter((one) => one.answered).forEach(ask);
    return (await metric(server, 'reclaim_database_lane_queued', lane)) === laneQueue;
  });
}

/** The same requests, which are all refused. */
export const refused = (kinds) =>
  Object.fromEntries(
    Object.entries(kinds).map(([name, { bytes }]) => [name, { bytes, check: ({ json }) => assert.equal(json.error?.code, 'ORPHAN_CLEANUP_006', name) }]),
  );

/** A busy row keeps a connection waiting: enough of them that no other request has to wait for one. */
export const manyConnections = { RECLAIM_DATABASE_CONNECTIONS: '80' };

export const someProbe = () => probeBytes(nobody());
export const someCleanup = () => cleanupBytes({ step: 'request-code', email: nobody() });

/** Providers with delays from zero to three seconds. */
export const slowly = (count) => Array.from({ length: count }, () => ({ delayMs: randomInt(3001) }));
