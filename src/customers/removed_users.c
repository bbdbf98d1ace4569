#include "customers/removed_users.h"

#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"

#define TRIES_MAX 30
#define PAUSE_FIRST_NS NS_PER_S
#define PAUSE_MOST_NS (600 * NS_PER_S)
#define SWEEP_ROWS 2000

static const struct statement leave = {
    .name = "removed_users_leave",
    .sql = "SELECT reclaim.users_leave(ARRAY(SELECT pg_catalog.json_array_elements_text($1::json -> 'user_ids')::uuid),"
           " $1::json ->> 'role') AS deleted",
    .params = 1,
    .columns = "deleted:int4",
};

static const struct statement sweep = {
    .name = "removed_users_sweep",
    .sql = "SELECT last, found FROM reclaim.users_sweep($1::uuid, $2::int4)",
    .params = 2,
    .columns = "last:uuid found:int4",
};

const struct statement *const removed_users_statements[] = {&leave, &sweep};
const size_t removed_users_statement_count = COUNT_OF(removed_users_statements);

static enum err run(struct work_item *item, struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &leave, .args = {pg_text(item->payload.at)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e == ERR_DATABASE)
        log_error("customers whose users were removed cannot be deleted", F_INT("work_item", item->id),
                  F_STR("sqlstate", call.sqlstate));
    return e;
}

struct work_kind removed_users_kind(void)
{
    return (struct work_kind){.name = "user_removed",
                              .tries_max = TRIES_MAX,
                              .pause_first_ns = PAUSE_FIRST_NS,
                              .pause_most_ns = PAUSE_MOST_NS,
                              .run = run};
}

enum err removed_users_sweep(void *context, struct pg *pg, int64_t deadline_ns)
{
    struct removed_users_sweep *s = context;
    struct pg_call call = {.ask = &sweep, .args = {pg_text(*s->after ? s->after : UUID_NIL), pg_i64(SWEEP_ROWS)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    if (pg_get_i64(&call, 0, 1) > 0)
        log_warn("users that are customers were removed from auth.users unnoticed",
                 F_INT("users", pg_get_i64(&call, 0, 1)), F_STR("see", "reclaim doctor"));
    if (pg_is_null(&call, 0, 0)) {
        *s->after = '\0';
        return OK;
    }
    return str_copy(pg_get(&call, 0, 0), s->after, sizeof s->after);
}
