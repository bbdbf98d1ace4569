import http from 'node:http';
import net from 'node:net';

import { cleanupPath } from '../tests/service/lib/cleanup.js';
import { FakeProvider } from '../tests/service/lib/fake-provider.js';
import { addKeys } from '../tests/service/lib/gate.js';
import { canaryKey, domain } from '../tests/service/lib/people.js';
import { pause, until } from '../tests/service/lib/stage.js';
import { addCodes } from '../tests/service/lib/timing.js';
import { startLoad } from './lib/load.js';
import { quantile } from './lib/stats.js';
import { anyAddress, filledDatabase, migrate, startCluster, startServer } from './lib/world.js';

export const about = 'product transactions that hold rows, anonymous clients with invented codes, idle sockets, an open check_rate_limit: who waits, and who fails';

const people = 10_000;
const keyed = 2000; // more than a round asks for twice, so that the gate asks the database too
const connections = 1000; // all that the server takes
const code = 'ABCD-EFGH';
const json = { 'Content-Type': 'application/json' };
const deadlineMs = 10_000;

// Past every tier of the limits, so that anonymous requests reach the database.
const settings = {
  RECLAIM_SECRET_KEY: canaryKey, // under which addCodes and addKeys hash
  RECLAIM_HOLD_MS: '500',
  RECLAIM_HOLD_SIGMA_MS: '25',
  RECLAIM_MAX_CONNECTIONS: String(connections),
  RECLAIM_TRUSTED_PROXIES: '127.0.0.0/8',
  RECLAIM_LIMIT_GLOBAL: '1000000/60',
  RECLAIM_LIMIT_IP: '1000000/60',
  RECLAIM_LIMIT_EMAIL: '1000000/60',
};

/** One request over a kept connection: { status, body, ms }; status 0 without an answer in time. */
function ask(server, agent, { method = 'GET', path, headers = {}, body }) {
  const { host, port } = server.address();
  const sent = performance.now();
  return new Promise((resolve) => {
    const end = (status, text = '') => resolve({ status, body: text, ms: performance.now() - sent });
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const call = http.request({ host, port, method, path, agent, headers: { ...length, ...headers }, timeout: deadlineMs }, (answer) => {
      let text = '';
      answer.on('data', (part) => (text += part));
      answer.on('end', () => end(answer.statusCode, text));
      answer.on('error', () => end(0));
    });
    call.on('timeout', () => call.destroy());
    call.on('error', () => end(0));
    call.end(body);
  });
}

/** Repeats `act`, each time `everyMs` after the last began, in so many streams, until the time is over. */
async function repeatedly({ streams, everyMs, forMs }, act) {
  const end = performance.now() + forMs;
  const found = [];
  const stream = async (number) => {
    for (let next = performance.now() + (everyMs * number) / streams; performance.now() < end; next = Math.max(next + everyMs, performance.now())) {
      await pause(Math.max(0, next - performance.now()));
      found.push(await act(number, found.length));
    }
  };
  await Promise.all(Array.from({ length: streams }, (_, number) => stream(number)));
  return found;
}

/** Each transaction of the product holds a user's row, or has inserted the user's company and not committed. */
async function holdRows(scope, database, held) {
  for (let n = 0; n < held; n++) {
    const session = await database.session(scope, 'product');
    const email = `held${String(n).padStart(2, '0')}@${domain}`;
    await session.query('begin');
    if (n % 2) await session.query('select from auth.users where email = $1 for update', [email]);
    else await session.query('insert into public.companies (owner_admin_uuid) select id from auth.users where email = $1', [email]);
  }
  const other = await database.session(scope, 'another program');
  await other.query('begin');
  await other.query(`select * from reclaim.check_rate_limit('other:upload', 10, 60)`);
}

async function openSockets(scope, server, count) {
  const sockets = [];
  scope.after(() => sockets.forEach((socket) => socket.destroy()));
  const open = () =>
    new Promise((resolve, reject) => {
      const socket = net.connect(server.address()).once('connect', resolve).once('error', reject);
      sockets.push(socket.on('error', () => {}));
    });
  for (let left = count; left > 0; left -= 100) await Promise.all(Array.from({ length: Math.min(left, 100) }, open));
}

/** Anonymous clients: invented codes for users whose rows are held and for others, and codes for invented addresses. */
function storm(server, { clients, held, runMs }) {
  const headers = { ...json, 'X-Forwarded-For': '2001:db8:####::1' };
  const step2 = (email) => JSON.stringify({ step: 'validate-and-cleanup', email, verificationCode: code });
  const attack = (share, body, numbers) => startLoad(server, { path: cleanupPath, body, headers, callers: Math.ceil(clients * share), spreadMs: 300, runMs, numbers });
  return [
    attack(0.4, step2(`held##@${domain}`), held),
    attack(0.3, step2(anyAddress), people),
    attack(0.3, JSON.stringify({ step: 'request-code', email: `invented####@${domain}` }), people),
  ];
}

/** What the product writes: users and companies, among them users whom anonymous clients name. The time of each statement in ms. */
async function productWrites(scope, database, times) {
  const sessions = await Promise.all(Array.from({ length: times.streams }, () => database.session(scope, 'product')));
  const owners = [];
  const statements = [
    (db) => db.query(`insert into auth.users (email, created_at) values ('new.' || gen_random_uuid() || $1, now()) returning id`, [`@${domain}`]),
    (db, owner) => db.query('insert into public.companies (owner_admin_uuid) values ($1)', [owner]),
    (db, owner) => db.query(`update auth.users set last_sign_in_at = now() where id = $1`, [owner]),
    (db, owner) => db.query(`update public.companies set name = 'Renamed' where owner_admin_uuid = $1`, [owner]),
    (db) => db.query('update auth.users set last_sign_in_at = now() where email = $1', [anyAddress.replace(/#+/, String(Math.floor(Math.random() * people)).padStart(6, '0'))]),
  ];
  const turns = Array(times.streams).fill(0);
  return repeatedly(times, async (stream) => {
    const turn = turns[stream]++ % statements.length;
    const began = performance.now();
    const { rows } = await statements[turn](sessions[stream], owners[stream]);
    if (turn === 0) owners[stream] = rows[0].id;
    return performance.now() - began;
  });
}

/** A person's whole recovery: a code, its mail, the deletion. */
async function recover({ server, provider, agent }, email, network) {
  const began = performance.now();
  const send = (body) => ask(server, agent, { method: 'POST', path: cleanupPath, headers: { ...json, 'X-Forwarded-For': network }, body: JSON.stringify({ email, ...body }) });
  const asked = await send({ step: 'request-code' });
  if (asked.status !== 200) return { done: false, why: asked.body || 'no answer' };
  const mail = await provider.mailTo(email, { deadlineMs }).catch(() => null);
  if (!mail) return { done: false, why: 'no mail' };
  const { status, body } = await send({ step: 'validate-and-cleanup', verificationCode: mail.code });
  return { done: status === 200, why: body || 'no answer', ms: performance.now() - began };
}

let recovering = 0;
async function recoveries(world, times) {
  const first = recovering;
  recovering += 1000;
  let n = first;
  const email = (number) => `honest${number}@${domain}`;
  await world.database.query(`insert into auth.users (email, created_at) select 'honest' || n || $3, now() from generate_series($1::int, $2::int) n`, [first, first + 999, `@${domain}`]);
  return repeatedly(times, () => recover(world, email(n), `2001:db8:${(0xa000 + n++).toString(16)}::1`));
}

/** Time of each answer at the gate, in ms; one that is not 200 counts as the longest. */
const gateTimes = ({ server, agent, keys }, times) =>
  repeatedly(times, async () => {
    const { status, ms } = await ask(server, agent, { path: '/gate', headers: { 'X-API-Key': keys[Math.floor(Math.random() * keys.length)] } });
    return status === 200 ? ms : deadlineMs;
  });

/** What the load generator counted; it fails when nobody got an answer, which is a finding here. */
const countedBy = ({ ended }) =>
  ended.catch((fault) => {
    if (!/nothing was answered/.test(fault.message)) throw fault;
    return { statuses: {}, per_second: 0, broken: 0, refused: 0 };
  });

const sum = (values) => values.reduce((total, value) => total + value, 0);

function tallied(ended) {
  const statuses = {};
  for (const one of ended) for (const [status, count] of Object.entries(one.statuses)) statuses[status] = (statuses[status] ?? 0) + count;
  return { statuses, perSecond: sum(ended.map(({ per_second }) => per_second)), broken: sum(ended.map(({ broken, refused }) => broken + refused)) };
}

/** First in peace, then under siege. */
async function round(scope, world, sizes) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 64 });
  scope.after(() => agent.destroy());
  const all = { ...world, agent };
  const observe = (forMs) =>
    Promise.all([
      gateTimes(all, { streams: 4, everyMs: 25, forMs }),
      productWrites(scope, world.database, { streams: 4, everyMs: 25, forMs }),
      recoveries(all, { streams: sizes.honest, everyMs: 100, forMs }),
    ]);
  const [peace] = await observe(sizes.peaceMs);

  agent.destroy(); // a siege finds nobody inside
  await holdRows(scope, world.database, sizes.held);
  await openSockets(scope, world.server, sizes.idle);
  const attacks = storm(world.server, { ...sizes, runMs: sizes.runMs + 1000 });
  await pause(500);
  const [gate, product, honest] = await observe(sizes.runMs);
  const attacked = tallied(await Promise.all(attacks.map(countedBy)));
  return { peace: quantile(peace, 0.99), gate: quantile(gate, 0.99), product: Math.max(...product), honest, attacked };
}

async function prepare(b, sizes) {
  const cluster = await startCluster(b.stage);
  const database = await filledDatabase(b.stage, cluster, people);
  await migrate(b.stage, database);
  const held = await database.query(
    `insert into auth.users (email, created_at) select 'held' || lpad(n::text, 2, '0') || $2, now() from generate_series(0, $1::int - 1) n returning id, email`,
    [sizes.held, `@${domain}`],
  );
  await addCodes(database, held, '1 hour'); // so that invented codes are compared with something
  const customers = await database.query('insert into reclaim.customer_customers (owner_user_id) select gen_random_uuid() from generate_series(1, $1::int) returning id', [keyed]);
  const keys = await addKeys(database, customers);
  await database.query('vacuum analyze');
  const provider = await FakeProvider.start(b.stage, 'resend');
  const server = await startServer(b.stage, database, { ...settings, ...provider.env });
  await until('the gate open', async () => (await ask(server, undefined, { path: '/gate', headers: { 'X-API-Key': keys[0] } })).status === 200);
  return { database, provider, server, keys };
}

export async function bench(b) {
  const sizes = b.smoke
    ? { held: 4, clients: 20, idle: 100, honest: 2, peaceMs: 200, runMs: 1200 }
    : { held: 16, clients: 200, idle: 1000, honest: 4, peaceMs: 3000, runMs: 12_000 };
  const world = await prepare(b, sizes);
  const found = await b.rounds(3, async (number, scope) => {
    const one = await round(scope, world, sizes);
    const failed = one.honest.filter(({ done }) => !done);
    b.say(
      `siege: round ${number}: gate p99 ${one.gate.toFixed(1)} ms (${one.peace.toFixed(1)} in peace), slowest product statement ${one.product.toFixed(0)} ms, ` +
        `${one.honest.length - failed.length} of ${one.honest.length} recoveries, anonymous: ${one.attacked.perSecond.toFixed(0)}/s ${JSON.stringify(one.attacked.statuses)}, ${one.attacked.broken} broken`,
    );
    for (const why of new Set(failed.map((each) => each.why))) b.say(`siege: round ${number}: a recovery failed: ${why}`);
    return one;
  });
  const each = (what) => found.map((one) => one[what]);
  const honest = each('honest').flat();
  const refused = found.map(({ attacked: { statuses } }) => (100 * (statuses[429] ?? 0)) / Math.max(1, sum(Object.values(statuses))));
  const done = honest.filter((one) => one.done);
  b.note(`${done.length} of ${honest.length} honest recoveries succeeded`);
  b.measure('gate under siege, p99', { rounds: each('gate'), unit: 'ms', atMost: 50, beside: [{ name: 'in peace', values: each('peace') }] });
  b.measure('slowest statement of the product, in all rounds', { rounds: [Math.max(...each('product'))], unit: 'ms', atMost: 600, plot: false });
  b.measure('honest recoveries that failed, in all rounds', { rounds: [honest.length - done.length], atMost: 0, plot: false });
  b.measure('an honest recovery from code to deletion, p99', { rounds: [quantile(done.map(({ ms }) => ms), 0.99)], unit: 'ms', plot: false });
  b.measure('anonymous answers per second', { rounds: found.map(({ attacked }) => attacked.perSecond) });
  b.measure('of these, refused by a limit', { rounds: refused, unit: '%', plot: false });
}
