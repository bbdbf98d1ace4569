// Random schedules of deletions, backups, restores and crashes: whoever was erased never comes back, whichever backup is restored, and
// nobody is mailed about it twice. ROUNDS schedules, 3 at least; SEED determines what happens.

import assert from 'node:assert/strict';
import { after, before, it } from 'node:test';

import { copyOf, dumpOf } from '../service/lib/backups.js';
import { addCustomer, asAdmin, asUser, env } from '../service/lib/customers.js';
import { addServices, erased, fillServices, remove, tableOf } from '../service/lib/erasure.js';
import { FakeProvider } from '../service/lib/fake-provider.js';
import { ops, request } from '../service/lib/http.js';
import { temporaryDirectory } from '../service/lib/place.js';
import { Cluster } from '../service/lib/postgres.js';
import { seeded } from '../service/lib/random.js';
import { run, serve } from '../service/lib/reclaim.js';
import { Stage, until } from '../service/lib/stage.js';

const schedules = Math.max(3, Number(process.env.ROUNDS ?? 20));
const steps = 12;
const seed = Number(process.env.SEED ?? 20261118);

const readyz = async (server) => JSON.parse((await ops(server, '/readyz')).body).status;
const gate = (server, customer) => request(server, { path: '/gate', headers: asUser(customer.user.id) });

/** What has been done, and what must be true. */
class Schedule {
  live = []; // customers that nobody deleted, in the order in which they came
  gone = []; // those whose deletion was answered and is in a journal
  backups = []; // with who was live then
  servers = [];
  epoch = 1;
  told = [];

  constructor(stage, cluster, random) {
    Object.assign(this, { stage, cluster, random });
  }

  pick(list) {
    return list[Math.floor(this.random() * list.length)];
  }

  async begin() {
    this.db = await this.cluster.database(this.stage);
    assert.equal((await run(this.stage, ['migrate'], { database: this.db })).code, 0);
    await addServices(this.stage, this.db, ['contact']);
    this.provider = await FakeProvider.start(this.stage, 'resend');
    this.homes = [temporaryDirectory(this.stage), temporaryDirectory(this.stage)];
    this.servers = [await this.start(0), await this.start(1)];
    for (let n = 0; n < 3; n++) await this.add();
    await this.backUp();
  }

  start(n, wait = 'ready') {
    return serve(this.stage, { database: this.db, env: { ...env, ...this.provider.env }, directory: this.homes[n], wait });
  }

  async add() {
    const customer = await addCustomer(this.db);
    await fillServices(this.db, customer, 2, ['contact']);
    this.live.push(customer);
    return 'add';
  }

  async remove() {
    if (this.live.length < 2) return this.add();
    const [customer] = this.live.splice(Math.floor(this.random() * this.live.length), 1);
    assert.equal((await remove(this.pick(this.servers), customer.id)).status, 200);
    if (this.random() < 0.5) await erased(this.servers[0], customer);
    else await until('in the journal', async () => (await this.db.query('select from reclaim.erasures where customer_id = $1 and journaled', [customer.id])).length);
    this.gone.push(customer);
    return `remove ${customer.id}`;
  }

  async backUp() {
    const backup = (this.random() < 0.7 ? dumpOf : copyOf)(this.stage, this.db);
    await backup.take();
    this.backups.push({ ...backup, live: [...this.live], gone: [...this.gone] });
    return 'back up';
  }

  async crash() {
    const n = Math.floor(this.random() * 2);
    await this.servers[n].kill9();
    this.servers[n] = await this.start(n);
    return `kill ${n}`;
  }

  async rotate() {
    const done = await run(this.stage, ['key-set', '--rotate'], { database: this.db });
    assert.equal(done.code, 0, done.stderr);
    return 'rotate';
  }

  /** Of any backup, with the servers stopped, killed or running. */
  async restore() {
    const backup = this.pick(this.backups);
    const how = this.pick(['stopped', 'killed', 'running']);
    if (how !== 'running') for (const server of this.servers) await (how === 'stopped' ? server.stop() : server.kill9());
    const lacks = this.gone.length > backup.gone.length;
    await backup.restore();
    this.live = backup.live.filter((customer) => !this.gone.includes(customer));
    if (how !== 'running') this.servers = [await this.start(0, 'listening'), await this.start(1, 'listening')];
    if (lacks) await this.refusesAndReplays();
    else for (const server of this.servers) await until('ready or restored', async () => ['ready', 'restored'].includes(await readyz(server)));
    if (!lacks && (await readyz(this.servers[0])) === 'restored') await this.replay();
    return `restore (${how}${lacks ? ', somebody was erased since' : ''})`;
  }

  async refusesAndReplays() {
    for (const server of this.servers) await until('the restore noticed', async () => (await readyz(server)) === 'restored');
    for (const server of this.servers) for (const customer of this.gone) assert.ok([401, 403].includes((await gate(server, customer)).status), 'served after a restore');
    if (this.random() < 0.3) await this.crashWhileRestored();
    await this.replay();
  }

  async crashWhileRestored() {
    await this.servers[0].kill9();
    this.servers[0] = await this.start(0, 'listening');
    await until('still restored', async () => (await readyz(this.servers[0])) === 'restored');
  }

  async replay() {
    const done = await run(this.stage, ['replay-erasures'], { database: this.db, directory: this.homes[0] });
    assert.equal(done.code, 0, done.stdout + done.stderr);
    for (const server of this.servers) await until('ready', async () => (await readyz(server)) === 'ready');
    const [{ epoch }] = await this.db.query('select epoch from reclaim.installation');
    assert.ok(epoch > this.epoch, `the epoch is ${epoch} after ${this.epoch}`);
    this.epoch = epoch;
  }

  async assertHolds() {
    for (const customer of this.gone) {
      const [row] = await this.db.query('select status from reclaim.customer_customers where id = $1', [customer.id]);
      assert.ok(!row || row.status === 'deleted', `${customer.id} is ${row?.status}`);
      const [{ users, rows }] = await this.db.query(
        `select (select count(*)::int from auth.users where id = $2) as users, (select count(*)::int from ${tableOf('contact')} where customer_id = $1) as rows`, [customer.id, customer.user.id]);
      assert.equal(users, 0, 'the login is back');
      await erased(this.servers[0], customer);
      const [{ left }] = await this.db.query(`select count(*)::int as left from ${tableOf('contact')} where customer_id = $1`, [customer.id]);
      assert.equal(left, 0, `${rows} rows before`);
      const certificate = await request(this.servers[0], { path: `/v1/customers/${customer.id}/certificate`, headers: asAdmin() });
      assert.equal(certificate.status, 200);
      assert.ok(this.provider.mailsTo(customer.email).length <= 1, 'mailed again');
    }
    for (const customer of this.live) assert.equal((await gate(this.servers[1], customer)).status, 200, 'a customer that nobody deleted is refused');
    const audit = await run(this.stage, ['audit', 'verify'], { database: this.db, directory: this.homes[0] });
    assert.equal(audit.code, 0, audit.stdout + audit.stderr);
    for (const directory of this.homes) assert.equal((await run(this.stage, ['journal', 'verify'], { database: this.db, directory })).code, 0);
  }
}

const stage = new Stage();
let cluster;
before(async () => {
  cluster = await Cluster.create(stage);
});
after(() => stage.end());

for (let n = 0; n < schedules; n++)
  it(`schedule ${n}: nobody comes back`, async (t) => {
    const scope = new Stage();
    const schedule = new Schedule(scope, cluster, seeded(seed + n));
    const story = [];
    try {
      await schedule.begin();
      for (let step = 0; step < steps; step++) {
        const draw = schedule.random();
        const act = draw < 0.2 ? 'add' : draw < 0.5 ? 'remove' : draw < 0.62 ? 'backUp' : draw < 0.72 ? 'crash' : draw < 0.77 ? 'rotate' : 'restore';
        story.push(await schedule[act]());
      }
      if (!story.some((one) => one.startsWith('restore'))) story.push(await schedule.restore());
      await schedule.assertHolds();
      for (const server of schedule.servers) await server.stop();
    } catch (caught) {
      t.diagnostic(`SEED=${seed}, schedule ${n}: ${story.join('; ')}`);
      throw caught;
    } finally {
      await scope.end();
    }
  });
