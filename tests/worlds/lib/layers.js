// Whether all layers agree about every customer: its row, accounts, subscriptions, calls, events, keys, the erasure, and
// what gates and consumers were told of it.

import assert from 'node:assert/strict';

import { until } from '../../service/lib/stage.js';

/** A row for each fact that contradicts a customer's state. */
const disagreements = `
  with customer as (
    select c.id, c.status, c.version, c.tm_deletion_scheduled, c.deletion_effective_at, c.frozen_by, c.name, c.email,
      c.frozen_api_at, c.frozen_billing_at from reclaim.customer_customers c
  ), account as (
    select a.id, a.customer_id, a.status, 'account_frozen' = any (a.hold_reasons) as held,
      exists (select from reclaim.billing_freezes f where f.billing_account_id = a.id and f.thawed_at is null) as freeze_open
    from reclaim.billing_accounts a
  ), last_event as (
    select distinct on (customer_id) customer_id, type, sequence, payload ->> 'status' as status
    from reclaim.event_outbox order by customer_id, epoch desc, sequence desc
  )
  select id, 'a freeze without its dates or its author' as what from customer
    where status = 'frozen' and (tm_deletion_scheduled is null or deletion_effective_at is null or frozen_by is null or frozen_billing_at is null)
  union all
  select id, 'an active customer with the dates of a freeze' from customer
    where status = 'active' and num_nonnulls(tm_deletion_scheduled, deletion_effective_at, frozen_by) > 0
  union all
  select c.id, 'account ' || a.id || ' of a ' || c.status || ' customer is ' || a.status || case when a.held then ', held' else ', not held' end
    from customer c join account a on a.customer_id = c.id
    where (a.status <> 'deleted' and (c.status = 'deleted' or a.held <> (c.status = 'frozen') or (a.held and a.status <> 'frozen')))
  union all
  select a.customer_id, 'account ' || a.id || case when a.held then ' held without an open freeze' else ' with an open freeze but no hold' end
    from account a where a.status <> 'deleted' and a.held <> a.freeze_open
  union all
  select a.customer_id, 'subscription ' || s.id || ' is ' || s.status || ' on a ' || a.status || ' account'
    from account a join reclaim.billing_subscriptions s on s.billing_account_id = a.id
    where (a.status = 'deleted') <> (s.status = 'ended') or (a.status <> 'deleted' and a.held <> (s.status = 'paused'))
  union all
  select c.id, 'call ' || l.id || ' of a ' || c.status || ' customer is ' || l.status
    from customer c join reclaim.call_calls l on l.customer_id = c.id where c.status <> 'active' and l.status <> 'hangup'
  union all
  select c.id, 'the last event of a ' || c.status || ' customer is ' || coalesce(e.type, 'missing')
    from customer c left join last_event e on e.customer_id = c.id
    where case c.status when 'frozen' then e.type is distinct from 'customer_frozen'
                        when 'deleted' then e.type is distinct from 'customer_deleted'
                        else e.type <> 'customer_recovered' end
  union all
  select customer_id, 'event ' || type || ' says ' || coalesce(payload ->> 'status', 'nothing') from reclaim.event_outbox
    where payload ->> 'status' is distinct from case type when 'customer_recovered' then 'active' else substr(type, 10) end
  union all
  select customer_id, 'the same event twice in a row: ' || type from (
    select customer_id, type, lag(type) over (partition by customer_id order by position) as before,
      (epoch, sequence) <= (lag(epoch) over (partition by customer_id order by position), lag(sequence) over (partition by customer_id order by position)) as backwards
      from reclaim.event_outbox) e
    where type = before or backwards
  union all
  select c.id, 'a ' || c.status || ' customer was told of as ' || coalesce(t.status, 'nothing')
    from customer c left join reclaim.customer_told t on t.customer_id = c.id
    where coalesce(t.status, 'active') <> c.status
  union all
  select e.customer_id, 'told of version ' || t.version || ', the last event has ' || e.sequence
    from last_event e join reclaim.customer_told t using (customer_id) where t.version <> e.sequence
  union all
  select c.id, 'a deleted customer has its name or address' from customer c
    where c.status = 'deleted' and (c.name <> 'deleted_user_' || c.id or c.email <> 'deleted_' || c.id || '@removed.invalid')
  union all
  select e.customer_id, 'a row that is gone, and the last event is ' || e.type from last_event e
    where e.type <> 'customer_deleted' and not exists (select from customer c where c.id = e.customer_id)
  union all
  select k.customer_id, 'a key of a deleted customer is not revoked' from reclaim.access_keys k
    left join customer c on c.id = k.customer_id where coalesce(c.status, 'deleted') = 'deleted' and k.revoked_at is null and k.customer_id is not null
  union all
  select a.customer_id, 'an account of a customer that is gone is ' || a.status from account a
    where a.status <> 'deleted' and not exists (select from customer c where c.id = a.customer_id)
  union all
  select e.customer_id, 'a deleted customer without an erasure' from last_event e
    where e.type = 'customer_deleted' and not exists (select from reclaim.erasures x where x.customer_id = e.customer_id)
  union all
  select customer_id, 'a change without its consequences: ' || change from reclaim.customer_pending
  order by 1, 2 limit 20`;

export const findDisagreements = async (db) => (await db.query(disagreements)).map(({ id, what }) => `${id}: ${what}`);

/** Calls end, and deleted customers are cleared, after the commit. */
export async function layersAgree(db, deadlineMs = 20_000) {
  let found;
  try {
    await until('the layers agreeing', async () => (found = await findDisagreements(db)).length === 0, deadlineMs);
  } catch (fault) {
    assert.deepEqual(found ?? fault.message, []);
  }
}
