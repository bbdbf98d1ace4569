// Stops whatever is about to write something, in the middle of its transaction, so that it can be killed there.

import { until } from './stage.js';

const waiting = `pg_locks l where l.locktype = 'advisory' and l.classid = 4712 and l.database = (select oid from pg_database where datname = current_database()) and not l.granted`;

/** `what` is a trigger's event, as in `insert on TABLE for each row`; it stops until lift() is called. */
export async function stopBefore(scope, db, what) {
  await db.query(`create or replace function public.stop_here() returns trigger language plpgsql as $$ begin
    perform pg_advisory_xact_lock_shared(4712, 1); return new; end $$`);
  const holder = await db.session(scope, 'stop');
  await holder.query('select pg_advisory_lock(4712, 1)');
  await db.query(`create trigger zz_stop before ${what} execute function public.stop_here()`);
  return {
    reached: () => until('stopped', async () => (await db.query(`select from ${waiting}`)).length > 0),
    terminate: () => db.query(`select pg_terminate_backend(l.pid) from ${waiting}`),
    async lift() {
      await holder.query('select pg_advisory_unlock(4712, 1)');
      await holder.end();
      await until('the trigger dropped', async () => {
        await db.query(`set lock_timeout = '200ms'; drop trigger zz_stop on ${what.match(/ on (\S+)/)[1]}`);
        return true;
      });
    },
  };
}
