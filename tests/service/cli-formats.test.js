// Every list of the command line as a table, CSV and JSON.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, it } from 'node:test';

import { addCustomer } from './lib/customers.js';
import { addUser } from './lib/people.js';
import { Cluster } from './lib/postgres.js';
import { run } from './lib/reclaim.js';
import { Stage } from './lib/stage.js';

const correlation = randomUUID();

describe('a list', () => {
  const stage = new Stage();
  let db, customer;
  const reclaim = (...args) => run(stage, args, { database: db });
  const done = async (...args) => {
    const { code, stdout, stderr } = await reclaim(...args);
    assert.equal(code, 0, `${args.join(' ')}: ${stderr}`);
    return stdout;
  };

  before(async () => {
    const cluster = await Cluster.create(stage);
    db = await cluster.database(stage);
    await done('migrate');
    await db.query('alter table reclaim.customer_customers add column iban text');
    customer = await addCustomer(db);
    await addUser(db, { created: '2020-01-01T00:00:00Z', email: '\u001b[31mred@canary-reclaim.example.com' });
    await done('customers', 'members', customer.id, 'add', (await addUser(db)).id);
    await done('key', 'create', '--customer', customer.id, '--name', 'one, two');
    await done('cascade', 'add', 'archive', '--remote');
    await db.query(`insert into reclaim.switches (name, address) values ('default', 'http://127.0.0.1:5065/RPC')`);
    await done('delete', (await addCustomer(db)).id);
    const due = await addCustomer(db);
    await done('freeze', due.id);
    await db.query(
      `update reclaim.customer_customers set tm_deletion_scheduled = now() - interval '31 days' where id = $1`, [due.id]);
    await db.query('insert into reclaim.event_returns (event_id, position) select id, position from reclaim.event_outbox limit 1');
    await db.query(
      `insert into reclaim.auth_cleanup_log (correlation_id, email_hash, ip_hash, step, status) values ($1, 'x', 'x', 'request-code', 'pending')`,
      [correlation],
    );
    const program = await db.session(stage);
    await program.query(`select reclaim.acquire_cleanup_lock('someone@canary-reclaim.example.com')`);
  });
  after(() => stage.end());

  const fieldsOf = (line) => line.replace(/"([^"]|"")*"/g, '').split(',');

  for (const [list, columns, numbers = []] of [
    ['orphans --older-than 0s', 'id,email,created_at,verified,last_sign_in_at,blocked_by'],
    ['orphans purge --older-than 0s --dry-run', 'id,email,created_at,verified,last_sign_in_at'],
    ['config', 'name,value,source,where,group'],
    ['customers list', 'id,name,email,status,owner_user_id,tm_create,tm_deletion_scheduled,held_since,hold_reason'],
    ['customers members CUSTOMER', 'user_id,role,email,created_at'],
    ['key list --customer CUSTOMER', 'id,prefix,scope,name,created_at,last_used_at,expires_at,revoked_at'],
    ['cascade list', 'name,kind,table,column,soft_delete,page,enabled,fault,by,label,emptied,kept,bucket,prefix'],
    ['cascade status', 'participant,pending,failed,done,rows,oldest,error,kept', ['pending', 'failed', 'done', 'rows', 'kept']],
    ['switch list', 'name,address,source,live_calls,created_at', ['live_calls']],
    ['columns list', 'table,column,type,decision,deletion,detail'],
    ['locks', 'lock,pid,seconds,state,application', ['pid', 'seconds']],
    ['limits show global', 'tier,requests,limit,window_seconds,left,wait_seconds', ['requests', 'limit', 'window_seconds', 'left', 'wait_seconds']],
    ['trace CORRELATION', 'at,what,outcome,count,correlation_id,sqlstate,constraint,detail,network_hash,log_id,log_status,log_error,log_updated_at', ['count', 'log_id']],
    ['events dead', 'kind,id,returned_at,type,customer_id,epoch,sequence,reason,message', ['epoch', 'sequence']],
    ['migrate --status', 'version,name,applied_at,changed'],
    ['expire --dry-run', 'customer_id,tm_deletion_scheduled,deletion_effective_at'],
    ['clock', 'sandbox,real,shift_ms,now', ['shift_ms']],
    ['doctor', 'severity,finding'],
  ])
    it(`of ${list.split(' ').slice(0, 2).join(' ')} has the same rows in each format`, async () => {
      const args = list.replace('CUSTOMER', customer.id).replace('CORRELATION', correlation).split(' ');
      const rows = JSON.parse(await done(...args, '--format', 'json'));
      assert.ok(rows.length > 0, 'there is something to list');
      assert.equal(Object.keys(rows[0]).join(), columns);
      for (const name of numbers) assert.equal(typeof rows[0][name], 'number', name);
      const [header, ...lines] = (await done(...args, '--format', 'csv')).split('\r\n').slice(0, -1);
      assert.equal(header, columns);
      assert.equal(lines.length, rows.length);
      for (const line of lines) assert.equal(fieldsOf(line).length, columns.split(',').length, line);
      const table = await done(...args, '--format', 'table');
      const first = String(Object.values(rows[0])[0]);
      assert.ok(table.split('\n').some((line) => line.startsWith(first)), table);
      assert.equal(/[^\S\n]$/m.test(table), false, 'no blanks at the end of a line');
    });

  it('of text with control characters shows them escaped in a table and JSON, and as they are in CSV', async () => {
    const [table, csv, json] = await Promise.all(['table', 'csv', 'json'].map((format) => done('orphans', '--format', format)));
    assert.ok(table.includes('\\x1b[31mred@') && !table.includes('\u001b'), table);
    assert.ok(csv.includes('\u001b[31mred@'));
    assert.ok(!json.includes('\u001b') && JSON.parse(json)[0].email.startsWith('\u001b[31mred@'));
  });
});
