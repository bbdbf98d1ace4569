#include "gate/look_up.h"

#include <stdlib.h>

#include "base/clock.h"

#define CUSTOMER_WITH(status) "c.id AS customer_id, " status "::text AS status, " FREEZE_OF_C
/* Erased before the database was restored, and not erased again yet. */
#define ERASED_BEFORE(id) "EXISTS (SELECT FROM reclaim.erased_before b WHERE b.id = " id ")"
#define CUSTOMER                                                                                                       \
    CUSTOMER_WITH(                                                                                                     \
        "CASE WHEN " ERASED_BEFORE("c.id") " OR " ERASED_BEFORE("$1::uuid") " THEN 'deleted' ELSE c.status END")
#define CUSTOMER_COLUMNS "customer_id:uuid status:text " FREEZE_COLUMNS
enum { AT_FREEZE = 2, AFTER_CUSTOMER = 6 }; /* the places of its columns, and of the next one */

/* The oldest customer that is not deleted among those that the user owns or is a member of, or the one chosen ($2); else a
 * deleted one: the reply differs from that for a user without any. Where users are customers, the one that the user is comes
 * last. `watched` is false where a user can be removed without the gates being told. */
static const struct statement customer_of_user = {
    .name = "customer_of_user",
    .sql = "SELECT " CUSTOMER ", coalesce(c.owner_user_id = $1::uuid, c.id = $1::uuid AND own.last) AS is_owner,"
           " count(*) FILTER (WHERE c.status <> 'deleted') OVER () > 1 AS has_several,"
           " (SELECT reclaim.users_watched()) AS watched"
           " FROM reclaim.customers_of_user($1::uuid, $2::uuid) AS c"
           " CROSS JOIN reclaim.users_are_customers() AS own (last)"
           " ORDER BY c.status = 'deleted', c.id = $1::uuid AND own.last, c.tm_create NULLS LAST, c.id LIMIT 1",
    .params = 2,
    .columns = CUSTOMER_COLUMNS " is_owner:bool has_several:bool watched:bool",
};

/* What is left of a key's life is computed by the clock that its end was written by; null for a key without an end. The customer
 * may be a user without a row, and its row that of a user who has left. */
static const struct statement customer_of_key = {
    .name = "customer_of_key",
    .sql = "SELECT " CUSTOMER_WITH("CASE WHEN c.owner_user_id = c.id AND reclaim.user_has_left(c.id) OR " ERASED_BEFORE(
        "c.id") " THEN 'deleted'"
                " ELSE c.status END") ", k.id AS key_id, k.scope,"
                                      " (extract(epoch FROM CASE WHEN k.expires_at IS NOT NULL THEN least(interval '1 "
                                      "hour',"
                                      " greatest(interval '-1 hour', k.expires_at - clock_timestamp())) END) * "
                                      "1000000)::bigint AS left_us,"
                                      " coalesce(k.last_used_at < pg_catalog.now() - interval '1 minute', true) AS "
                                      "use_is_due,"
                                      " (SELECT reclaim.users_watched()) AS watched"
                                      " FROM reclaim.access_keys k LEFT JOIN LATERAL "
                                      "reclaim.customer_row(k.customer_id) AS c "
                                      "ON true"
                                      " WHERE k.key_hash = $1 AND k.revoked_at IS NULL AND (k.customer_id IS NULL OR "
                                      "c.id IS "
                                      "NOT NULL)",
    .params = 1,
    .columns = CUSTOMER_COLUMNS " key_id:uuid scope:text left_us:int8 use_is_due:bool watched:bool",
};

/* At most one update a minute, so that a key in heavy use does not mean as many row versions. It does not wait
 * for a row that another program holds. */
static const struct statement touch_key = {
    .name = "touch_key",
    .sql = "UPDATE reclaim.access_keys SET last_used_at = pg_catalog.now() WHERE id ="
           " (SELECT k.id FROM reclaim.access_keys k WHERE k.id = $1::uuid AND k.revoked_at IS NULL"
           " AND (k.last_used_at IS NULL OR k.last_used_at < pg_catalog.now() - interval '1 minute')"
           " FOR UPDATE NOWAIT)",
    .params = 1,
    .columns = "",
};

const struct statement *const look_up_statements[] = {&customer_of_user, &customer_of_key, &touch_key};
const size_t look_up_statement_count = COUNT_OF(look_up_statements);

static void read_customer(struct caller *c, const struct pg_call *found)
{
    struct str status = pg_get(found, 0, 1);
    c->standing = STANDING_NONE;
    if (found->rows == 0 || pg_is_null(found, 0, 0) ||
        str_copy(pg_get(found, 0, 0), c->customer_id, sizeof c->customer_id))
        return;
    c->freeze = freeze_read(found, 0, AT_FREEZE);
    c->standing = str_eq(status, STR("active"))   ? STANDING_ACTIVE
                  : str_eq(status, STR("frozen")) ? STANDING_FROZEN
                                                  : STANDING_DELETED;
}

enum err look_up_user(struct pg *pg, const char *choice, int64_t deadline_ns, struct caller *c, bool *ret_watched)
{
    struct pg_call found = {.ask = &customer_of_user, .args = {pg_text(c->user_id), pg_text_or_null(choice)}};
    enum err e = pg_ask(pg, &found, deadline_ns);
    if (e)
        return e;
    read_customer(c, &found);
    c->is_owner = found.rows && pg_get_bool(&found, 0, AFTER_CUSTOMER);
    c->has_several = found.rows && pg_get_bool(&found, 0, AFTER_CUSTOMER + 1);
    *ret_watched = !found.rows || pg_get_bool(&found, 0, AFTER_CUSTOMER + 2);
    return OK;
}

enum err look_up_key(struct pg *pg, const char *key_hash, int64_t deadline_ns, struct caller *c, struct found_key *ret)
{
    struct pg_call found = {.ask = &customer_of_key, .args = {pg_text(key_hash)}};
    enum err e = pg_ask(pg, &found, deadline_ns);
    *ret = (struct found_key){.left_us = INT64_MAX, .watched = true};
    if (e || found.rows == 0)
        return e;
    read_customer(c, &found);
    if ((e = key_scope_parse(pg_get(&found, 0, AFTER_CUSTOMER + 1), &c->scope, c->participant)))
        return e;
    c->admin = c->scope == SCOPE_ADMIN;
    if (!pg_is_null(&found, 0, AFTER_CUSTOMER + 2))
        ret->left_us = pg_get_i64(&found, 0, AFTER_CUSTOMER + 2);
    ret->use_is_due = pg_get_bool(&found, 0, AFTER_CUSTOMER + 3);
    ret->watched = pg_get_bool(&found, 0, AFTER_CUSTOMER + 4);
    return str_copy(pg_get(&found, 0, AFTER_CUSTOMER), c->key_id, sizeof c->key_id);
}

struct key_use {
    struct job job;
    char key_id[37];
};

static enum err note_use(struct job *job, struct pg *pg)
{
    struct pg_call call = {.ask = &touch_key, .args = {pg_text(OWNER_OF(job, struct key_use, job)->key_id)}};
    return pg_ask(pg, &call, job->deadline_ns);
}

/* A use that could not be noted is noted at the next look-up. */
static void use_noted(struct job *job, enum err e)
{
    (void)e;
    free(OWNER_OF(job, struct key_use, job));
}

void note_key_use(struct pool *background, const char *key_id)
{
    struct key_use *use = calloc(1, sizeof *use);
    if (!use)
        return;
    use->job = (struct job){note_use, use_noted, clock_ns() + 10 * NS_PER_S, NULL};
    if (str_copy(str_of(key_id), use->key_id, sizeof use->key_id) || pool_submit(background, &use->job))
        free(use);
}
