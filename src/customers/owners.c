#include "customers/owners.h"

#include "base/buf.h"
#include "base/defs.h"
#include "pg/tx.h"

#define QUERY_MAX ((size_t)256 * 1024)
#define TRIES_MAX 5

/* An address that several users have, or that a user has not confirmed, tells no owner. */
#define BY_ADDRESS                                                                                                     \
    "SELECT c.id AS customer_id, (pg_catalog.array_agg(u.id))[1] AS owner_user_id FROM reclaim.customer_customers c"   \
    " JOIN auth.users u ON u.email = pg_catalog.lower(pg_catalog.btrim(c.email)) AND u.email_confirmed_at IS NOT NULL" \
    " AND u.deleted_at IS NULL WHERE c.owner_user_id IS NULL AND c.status <> 'deleted' AND c.email <> ''"              \
    " GROUP BY c.id HAVING pg_catalog.count(*) = 1"

static const struct statement add_pairs = {
    .name = "owners_add",
    .sql = "INSERT INTO pg_temp.reclaim_owners SELECT * FROM unnest($1::uuid[], $2::uuid[])",
    .params = 2,
    .columns = "",
};

#define CAN_BE_WRITTEN                                                                                                 \
    "EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.id = o.customer_id AND c.owner_user_id IS NULL"          \
    " AND c.status <> 'deleted') AND EXISTS (SELECT FROM auth.users u WHERE u.id = o.owner_user_id"                    \
    " AND u.deleted_at IS NULL)"

static const struct statement count_pairs = {
    .name = "owners_count",
    .sql = "SELECT count(DISTINCT o.customer_id) FILTER (WHERE " CAN_BE_WRITTEN ") AS due, count(*) AS total"
           " FROM pg_temp.reclaim_owners o",
    .params = 0,
    .columns = "due:int8 total:int8",
};
static const struct statement write_pairs = {
    .name = "owners_write",
    .sql = "WITH taken AS (DELETE FROM pg_temp.reclaim_owners WHERE ctid = ANY (ARRAY("
           "   SELECT ctid FROM pg_temp.reclaim_owners LIMIT 500)) RETURNING customer_id, owner_user_id),"
           " one AS (SELECT DISTINCT ON (customer_id) customer_id, owner_user_id FROM taken ORDER BY 1, 2),"
           " written AS (UPDATE reclaim.customer_customers c SET owner_user_id = o.owner_user_id FROM one o"
           "   WHERE c.id = o.customer_id AND c.owner_user_id IS NULL AND c.status <> 'deleted'"
           "     AND EXISTS (SELECT FROM auth.users u WHERE u.id = o.owner_user_id AND u.deleted_at IS NULL)"
           "   RETURNING c.id),"
           " logged AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"
           "   SELECT id, 'own', $1, $2::uuid, 'done' FROM written)"
           " SELECT (SELECT count(*) FROM written) AS written, (SELECT count(*) FROM taken) AS taken",
    .params = 2,
    .columns = "written:int8 taken:int8",
};

enum err owners_find_none(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    return pg_script(pg,
                     "DROP TABLE IF EXISTS pg_temp.reclaim_owners;"
                     "CREATE TEMP TABLE reclaim_owners (customer_id uuid, owner_user_id uuid)",
                     deadline_ns, why);
}

enum err owners_find(struct pg *pg, const char *query, int64_t deadline_ns, struct why *why)
{
    AUTO(buf) struct buf sql = buf_new(QUERY_MAX);
    enum err e = owners_find_none(pg, deadline_ns, why);
    if (e)
        return e;
    buf_addf(&sql,
             "INSERT INTO pg_temp.reclaim_owners SELECT q.customer_id::uuid, q.owner_user_id::uuid FROM (\n%s\n) AS q",
             query ? query : BY_ADDRESS);
    if (sql.failed)
        return why_set(why, sql.failed, "the query is longer than 256 KiB");
    return pg_script(pg, buf_str(&sql).at, deadline_ns, why);
}

enum err owners_add(struct pg *pg, const char *customers, const char *users, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &add_pairs, .args = {pg_text(customers), pg_text(users)}};
    return pg_ask(pg, &call, deadline_ns);
}

enum err owners_count(struct pg *pg, int64_t deadline_ns, int64_t *ret_due, int64_t *ret_all)
{
    struct pg_call call = {.ask = &count_pairs};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret_due = pg_get_i64(&call, 0, 0);
    *ret_all = pg_get_i64(&call, 0, 1);
    return OK;
}

enum err owners_write(struct pg *pg, const struct actor *actor, int64_t deadline_ns, int64_t *ret_written,
                      bool *ret_left)
{
    struct pg_call call = {.ask = &write_pairs, .args = {pg_text(actor->kind), pg_text_or_null(actor->id)}};
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < TRIES_MAX; tries++) {
        AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
        e = tx_commit(tx, &call, 1);
    }
    if (e)
        return e;
    *ret_written += pg_get_i64(&call, 0, 0);
    *ret_left = pg_get_i64(&call, 0, 1) > 0;
    return OK;
}
