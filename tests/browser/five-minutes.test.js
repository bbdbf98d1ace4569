// From an empty folder and a database with Supabase Auth's schema to people who use the pages: two commands.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { customerAddress, passwordHash } from '../service/lib/customers.js';
import { FakeProvider } from '../service/lib/fake-provider.js';
import { addCompany, addUser, canaryPassword } from '../service/lib/people.js';
import { temporaryDirectory } from '../service/lib/place.js';
import { Cluster } from '../service/lib/postgres.js';
import { run, serve } from '../service/lib/reclaim.js';
import { Stage } from '../service/lib/stage.js';
import { fill, heading, press, signIn } from './lib/account.js';
import { newReader, openBrowser, watched } from './lib/browser.js';

const stage = new Stage();
const users = 10_000;
const own = { RECLAIM_SECRET_KEY: undefined, RECLAIM_DATA_DIR: undefined, RECLAIM_DATABASE_URL: undefined }; // init writes them
let db, mails, browser, orphan, owner;
before(async () => {
  db = await (await Cluster.create(stage)).database(stage, { auth: 'supabase' });
  await db.query(
    `insert into auth.users (id, instance_id, email, created_at) select gen_random_uuid(), '00000000-0000-0000-0000-000000000000', 'user' || n || '@canary-reclaim.example.com', '2025-10-01'
       from generate_series(1, ${users - 2}) n;
     insert into public.companies (owner_admin_uuid) select id from auth.users`,
  );
  orphan = await addUser(db);
  owner = await addUser(db, { email: customerAddress('owner'), confirmed: '2025-10-20T14:30:00Z' });
  await addCompany(db, owner);
  await db.query('update auth.users set encrypted_password = $2 where id = $1', [owner.id, passwordHash]);
  mails = await FakeProvider.start(stage, 'resend');
  browser = await openBrowser(stage);
});
after(() => stage.end());

describe('an existing project', () => {
  it('takes two commands until people delete an orphan and an account in their browsers', async (t) => {
    const folder = temporaryDirectory(stage);
    const began = performance.now();
    const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
    const made = await run(stage, ['init', '--yes', '--database-url', db.url], { directory: folder, env: own });
    assert.equal(made.code, 0, made.stdout + made.stderr);
    const server = await serve(stage, { args: ['--config', 'reclaim.ini'], directory: folder, env: { ...own, ...mails.env } });
    const ready = seconds();

    const stranded = await newReader(browser, server);
    await stranded.goto('/recover');
    await fill(stranded, { email: orphan.email });
    await press(stranded, 'Continue');
    await press(stranded, 'Mail me a code');
    await fill(stranded, { code: (await mails.mailTo(orphan.email)).code });
    await press(stranded, 'Delete and start over');
    assert.equal(await heading(stranded), 'Your address is free again');
    assert.deepEqual(await db.query('select from auth.users where id = $1', [orphan.id]), []);

    const leaving = await newReader(browser, server);
    await signIn(leaving, owner);
    assert.deepEqual(await db.query('select from reclaim.customer_customers'), [], 'nobody needs a row who never left');
    await fill(leaving, { proof: canaryPassword });
    await press(leaving, 'Delete my account');
    assert.match(await heading(leaving), /^Your account is closed and will be deleted on/);
    assert.deepEqual(await db.query('select id, status from reclaim.customer_customers'), [{ id: owner.id, status: 'frozen' }]);
    await press(leaving, 'Take it back');
    assert.equal(await heading(leaving), 'Your account is open again');
    t.diagnostic(`${users} users: 2 commands; ready after ${ready} s, an orphan deleted and an account frozen after ${seconds()} s`);
    for (const page of [stranded, leaving]) await watched(page);
  });
});
