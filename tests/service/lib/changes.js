// Freezes and recovers customers in plain SQL, as other programs do.

export async function addCustomers(db, count) {
  const rows = await db.query(
    `insert into reclaim.customer_customers (name) select 'customer ' || n from generate_series(1, $1::int) n returning id`,
    [count],
  );
  return rows.map(({ id }) => id);
}

/** Changes a customer to the other state, or to the given one; returns its event's row. */
export async function change(db, id, status) {
  const [row] = await db.query(
    `update reclaim.customer_customers c
     set status = coalesce($2, case status when 'active' then 'frozen' else 'active' end)
     where id = $1 and status <> 'deleted' returning version`,
    [id, status ?? null],
  );
  const [event] = await db.query(
    `select id, position::int, epoch, sequence::int, type, customer_id from reclaim.event_outbox where customer_id = $1 and sequence = $2
     order by epoch desc limit 1`,
    [id, row.version],
  );
  return event;
}

/** id → { status, epoch, sequence } in the database; only customers that have changed. */
export async function states(db) {
  const rows = await db.query(
    `select distinct on (c.id) c.id, c.status, o.epoch, o.sequence::int
     from reclaim.customer_customers c join reclaim.event_outbox o on o.customer_id = c.id order by c.id, o.epoch desc, o.sequence desc`,
  );
  return Object.fromEntries(rows.map(({ id, ...rest }) => [id, rest]));
}

/** Makes the database as a restore does: the customer has an earlier version, of the same state, and the epoch has grown. */
export async function restore(db, scope, id, version) {
  const session = await db.session(scope);
  await session.query('set session_replication_role = replica'); // triggers would let no version go back
  await session.query('update reclaim.customer_customers set version = $2 where id = $1', [id, version]);
  await session.query('update reclaim.customer_told set version = $2 where customer_id = $1', [id, version]);
  await session.query('delete from reclaim.event_outbox where customer_id = $1 and sequence > $2', [id, version]);
  await session.query('update reclaim.installation set epoch = epoch + 1');
}

/** The state of a consumer that keeps the last epoch and sequence per customer, after events in the order of arrival. */
export function fold(events) {
  const known = {};
  for (const { subject, epoch, sequence, data } of events) {
    const last = known[subject] ?? { epoch: 0 };
    if (epoch > last.epoch || (epoch === last.epoch && sequence > last.sequence)) known[subject] = { status: data.status, epoch, sequence };
  }
  return Object.fromEntries(Object.entries(known).sort(([a], [b]) => (a < b ? -1 : 1)));
}
