// A world: a database, instances of Reclaim on it, its command line, and where its mails arrive. Each file of
// tests/worlds makes one and tells the core story in it (lib/story.js).

import { addBillingAccount, addMarkedCustomer, env } from '../../service/lib/customers.js';
import { connectTo, postmasterOf } from '../../service/lib/embedded.js';
import { FakeProvider } from '../../service/lib/fake-provider.js';
import { addKeys } from '../../service/lib/gate.js';
import { request } from '../../service/lib/http.js';
import { temporaryDirectory } from '../../service/lib/place.js';
import { Cluster } from '../../service/lib/postgres.js';
import { run, serve } from '../../service/lib/reclaim.js';
import { stageOf } from '../../service/lib/stage.js';

/** Expiry and the cascade come within a second; both steps of the clean-up are held, but shortly. */
export const settings = { ...env, RECLAIM_EXPIRY_INTERVAL: '1s', RECLAIM_HOLD_MS: '20', RECLAIM_HOLD_SIGMA_MS: '1' };

export class World {
  table = 'reclaim.customer_customers';
  expectedWarnings = []; // patterns of events
  mayName = []; // patterns of tables that may name deleted customers
  mayCount = () => true; // whether an instance answers
  addCustomer = addMarkedCustomer;
  contract = 'cleanup-v1';
  registered = []; // users of the story, whose addresses only auth.users may have
  secrets = []; // mailed codes, which nothing may have

  constructor(stage, given) {
    this.stage = stage;
    Object.assign(this, given);
  }

  front; // what stands before the instances and is asked instead

  /** The instance that is asked. */
  get server() {
    return this.front ?? this.servers[0];
  }

  /** Another instance where there are several. */
  get another() {
    return this.front ?? this.servers.at(-1);
  }

  /** Where credentials are shown. */
  get gates() {
    return [...this.servers.filter(this.mayCount), ...(this.front ? [this.front] : [])];
  }

  /** Plain SQL of other programs. */
  sql(text, values) {
    return this.db.query(text, values);
  }

  /** A step of the story; worlds in which something happens meanwhile replace it. */
  during(step, act) {
    return act();
  }
}

/** A database with a provider of mails; `instances` of Reclaim on it. `prepare` may return settings for them and for commands. */
export async function databaseWorld(scope, { instances = 1, prepare, auth, env: more = {}, ...given } = {}) {
  const stage = stageOf(scope);
  const cluster = await Cluster.create(stage);
  const db = await cluster.database(stage, { auth });
  const provider = await FakeProvider.start(stage, 'resend');
  const common = { ...provider.env, ...(await prepare?.(db, cluster)) };
  const all = { ...settings, ...common, ...more };
  const startOne = (place = {}) => serve(stage, { database: db, env: all, ...place });
  const servers = [await startOne()]; // the first migrates
  servers.push(...(await Promise.all(Array.from({ length: instances - 1 }, () => startOne()))));
  return new World(stage, {
    cluster,
    db,
    provider,
    servers,
    startOne,
    run: (args) => run(stage, args, { database: db, env: common }),
    mails: (address) => provider.mailsTo(address).map(({ mail }) => mail),
    ...given,
  });
}

/** `reclaim serve --demo`: an embedded cluster, and mails in the mailbox. */
export async function demoWorld(scope) {
  const stage = stageOf(scope);
  const directory = temporaryDirectory(stage);
  const server = await serve(stage, { directory, args: ['--demo'], env: settings });
  const db = await connectTo(stage, postmasterOf(server).data);
  return new World(stage, {
    db,
    servers: [server],
    run: (args) => run(stage, args, { directory, env }),
    mails: async (address) => (await request(server, { path: '/mailbox.json' })).json.items.filter(({ to }) => to === address).reverse(),
    mayName: [/^(reclaim\.)?mailbox:/], // the last mail arrived there
  });
}

/**
 * A customer with everything that a change of state reaches: an owner, an address, two accounts with money, of which one
 * is held for another reason, a subscription that is not due, a key. `strings` must not be found once it is deleted.
 */
export async function addSubject(world, given = {}) {
  const { db } = world;
  const subject = await world.addCustomer(db, given);
  const held = await addBillingAccount(db, subject, { name: `Held ${subject.mark}`, status: 'frozen', hold_reasons: ['disputed'] });
  const account = await addBillingAccount(db, subject, { name: `Account ${subject.mark}` });
  const [subscription] = await db.query(
    `insert into reclaim.billing_subscriptions (billing_account_id, amount_micros, period_seconds, next_charge_at)
     values ($1, 100, 2592000, clock_timestamp() + interval '20 days') returning id`,
    [account.id],
  );
  const [key] = await addKeys(db, [subject]);
  await db.query('update reclaim.access_keys set name = $2 where customer_id = $1', [subject.id, `Key ${subject.mark}`]);
  return Object.assign(subject, { held, account, subscription, key });
}
