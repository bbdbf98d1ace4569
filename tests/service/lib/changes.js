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
    `select id, position::int, sequence::int, type, customer_id from reclaim.event_outbox where customer_id = $1 and sequence = $2`,
    [id, row.version],
  );
  return event;
}

/** id → { status, sequence } in the database; only customers that have changed. */
export async function states(db) {
  const rows = await db.query(
    `select c.id, c.status, (select max(sequence)::int from reclaim.event_outbox where customer_id = c.id) as sequence
     from reclaim.customer_customers c where exists (select from reclaim.event_outbox where customer_id = c.id) order by c.id`,
  );
  return Object.fromEntries(rows.map(({ id, ...rest }) => [id, rest]));
}

/** The state of a consumer that keeps the last sequence per customer, after events in the order of arrival. */
export function fold(events) {
  const known = {};
  for (const { subject, sequence, data } of events)
    if (sequence > (known[subject]?.sequence ?? -1)) known[subject] = { status: data.status, sequence };
  return Object.fromEntries(Object.entries(known).sort(([a], [b]) => (a < b ? -1 : 1)));
}
