// Stops a flow of the program before a statement: a trigger there waits for an advisory lock that the test holds. By then
// the flow has every lock that it takes before that statement.

const key = '4711, 1'; // the program uses no locks with two numbers

const stopFunction = `
  create or replace function public.interleaving_stop() returns trigger
  language plpgsql set lock_timeout = 0 -- the flow's own would end the stop
  as $$
  begin
    if current_setting('application_name') = TG_ARGV[0] then
      perform pg_advisory_xact_lock_shared(${key});
    end if;
    return case TG_OP when 'DELETE' then old else new end;
  end
  $$`;

/** Stops the session's flow before it writes that row. Returns the function that lifts the stop. */
export async function setStop(scope, db, { session, before, row }, given) {
  const table = before.split(' on ')[1];
  const holder = await db.session(scope, 'stop');
  await holder.query(`select pg_advisory_lock(${key})`);
  await db.query(stopFunction);
  await db.query(`create trigger zz_interleaving_stop before ${before} for each row when (old.id = '${row(given)}')
    execute function public.interleaving_stop('${session}')`);
  let held = true;
  const lift = async () => {
    if (held) await holder.query(`select pg_advisory_unlock(${key})`);
    held = false;
    return '';
  };
  scope.after(async () => {
    await lift();
    await db.query(`drop trigger zz_interleaving_stop on ${table}`);
  });
  return lift;
}
