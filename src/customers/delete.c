/* Deleting one customer for an admin, the legal hold that prevents it, and the reminders before expiry. */
#include "customers/delete.h"

#include "base/clock.h"
#include "base/metrics.h"
#include "customers/statements.h"
#include "pg/arrays.h"
#include "pg/tx.h"

#define REMIND_BATCH 1000
#define REMIND_NS (60 * NS_PER_S)

METRIC_COUNTER(ends, "reclaim_customer_deletions_total", "Deletions that admins asked for, by outcome.", "outcome");
METRIC_COUNTER(reminded, "reclaim_reminders_total", "Reminder mails queued.");

const struct statement deletion_lock = {
    .name = "deletion_lock",
    .sql = "SELECT c.status::text AS status, (c.hold_at IS NOT NULL) AS held,"
           " EXISTS (SELECT FROM reclaim.erasures e WHERE e.customer_id = c.id) AS erased,"
           " " CUSTOMER_ADDRESS " AS email"
           " FROM reclaim.customer_customers c LEFT JOIN auth.users u ON u.id = c.owner_user_id"
           " WHERE c.id = $1::uuid FOR UPDATE OF c",
    .params = 1,
    .columns = "status:text held:bool erased:bool email:text",
};

const struct statement deletion_show = {
    .name = "deletion_show",
    .sql = "SELECT reclaim.customer_object_for_admin(c)::text AS object FROM reclaim.customer_customers c WHERE c.id = "
           "$1::uuid",
    .params = 1,
    .columns = "object:text",
};

const struct statement deletion_redrive = {
    .name = "deletion_redrive",
    .sql = "WITH revived AS (UPDATE reclaim.work_items SET state = 'open', tries = 0, due_at = "
           "pg_catalog.clock_timestamp()"
           " WHERE kind = 'anonymise' AND state = 'dead' AND payload ->> 'customer_id' = $1::uuid::text)"
           " SELECT reclaim.cascade_redrive($1::uuid, NULL) AS receipts",
    .params = 1,
    .columns = "receipts:int8",
};

const struct statement reminders_promise = {
    .name = "reminders_promise",
    .sql = "SELECT reclaim.remind($1::int8, $2::int8, $3::int4) AS promised",
    .params = 3,
    .columns = "promised:int4",
};

const struct statement legal_hold_set = {
    .name = "legal_hold_set",
    .sql = "UPDATE reclaim.customer_customers c SET hold_reason = $2::text,"
           " hold_at = CASE WHEN $2::text IS NOT NULL THEN coalesce(c.hold_at, (SELECT reclaim.now())) END"
           " WHERE c.id = $1::uuid AND c.status <> 'deleted'"
           " RETURNING reclaim.customer_object_for_admin(c)::text AS object",
    .params = 2,
    .columns = "object:text",
};

const struct statement legal_hold_log = {
    .name = "legal_hold_log",
    .sql = "INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id, detail)"
           " VALUES ($1::uuid, $2, $3, $4::uuid, $5, $6::uuid, $7)",
    .params = 7,
    .columns = "",
};

static const char *outcome_name(const struct deletion_result *result)
{
    static const char *const names[] = {[DELETION_DONE] = "done",
                                        [DELETION_REDRIVEN] = "unchanged",
                                        [DELETION_UNKNOWN] = "unknown",
                                        [DELETION_HELD] = "held"};
    return names[result->outcome];
}

struct deletion_of_one {
    const struct deletion_terms *terms;
    const char *customer_id;
    const struct actor *actor;
    struct buf ids, sealed;
    struct cooldown_batch addresses;
    struct pg_call writes[3];
    size_t count;
};

static enum err write_deletion(struct deletion_of_one *o, struct tx *tx, const struct pg_call *row)
{
    const struct actor *actor = o->actor;
    deletion_add(o->terms, o->customer_id, pg_get(row, 0, 3), &o->ids, &o->sealed);
    const char *ids = array_end(&o->ids), *sealed = array_end(&o->sealed);
    if (!ids || !sealed)
        return ERR_MEMORY;
    enum err e = cooldown_read(o->terms->cooldown_key, tx, ids, NULL, &o->addresses);
    if (e)
        return e;
    o->writes[o->count++] =
        (struct pg_call){.ask = &customers_delete,
                         .args = {pg_text(ids), pg_text(sealed), pg_text("delete"), pg_text(actor->kind),
                                  pg_text_or_null(actor->id), pg_text_or_null(actor->correlation_id)}};
    o->count += cooldown_write(&o->addresses, &o->writes[o->count]);
    return OK;
}

static enum err decide_and_write(struct deletion_of_one *o, struct pg *pg, int64_t deadline_ns, struct arena *arena,
                                 struct deletion_result *ret)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct str brief = arena_printf(arena, "{\"id\":\"%s\",\"status\":\"deleted\"}", o->customer_id);
    if (!brief.at)
        return ERR_MEMORY;
    struct pg_call reads[] = {{.ask = &customer_take_turn, .args = {pg_text(o->customer_id)}},
                              {.ask = &customer_make_row, .args = {pg_text(o->customer_id)}},
                              {.ask = &deletion_lock, .args = {pg_text(o->customer_id)}}};
    const struct pg_call *row = &reads[COUNT_OF(reads) - 1];
    enum err e = tx_trip(tx, reads, COUNT_OF(reads));
    if (e)
        return e;
    bool deleted = row->rows == 1 && str_eq(pg_get(row, 0, 0), STR("deleted"));
    if (row->rows == 0)
        ret->outcome = DELETION_UNKNOWN;
    else if (deleted && pg_get_bool(row, 0, 2))
        ret->outcome = DELETION_REDRIVEN;
    else
        ret->outcome = !deleted && pg_get_bool(row, 0, 1) ? DELETION_HELD : DELETION_DONE;

    if (ret->outcome == DELETION_DONE && (e = write_deletion(o, tx, row)))
        return e;
    if (ret->outcome == DELETION_REDRIVEN)
        o->writes[o->count++] = (struct pg_call){.ask = &deletion_redrive, .args = {pg_text(o->customer_id)}};
    if (ret->outcome != DELETION_DONE)
        o->writes[o->count++] = customer_log(o->customer_id, "delete", o->actor, outcome_name(ret));
    struct pg_call *show = &o->writes[o->count++];
    *show = (struct pg_call){.ask = &deletion_show, .args = {pg_text(o->customer_id)}};
    if ((e = tx_commit(tx, o->writes, o->count)))
        return e;
    if (show->rows == 1)
        ret->object = arena_copy(arena, pg_get(show, 0, 0));
    if (!ret->object.at)
        ret->object = brief; /* what was committed happened, whatever fits into memory */
    return OK;
}

enum err customer_delete(const struct deletion_terms *terms, struct pg *pg, const char *customer_id,
                         const struct actor *actor, int64_t deadline_ns, struct arena *arena,
                         struct deletion_result *ret)
{
    struct deletion_of_one o = {
        .terms = terms, .customer_id = customer_id, .actor = actor, .ids = buf_new(64), .sealed = buf_new(2048)};
    *ret = (struct deletion_result){.outcome = DELETION_UNKNOWN};
    enum err e = decide_and_write(&o, pg, deadline_ns, arena, ret);
    ret->committed_ns = clock_ns();
    buf_free(&o.ids);
    buf_free(&o.sealed);
    cooldown_batch_cleanup(&o.addresses);
    if (e != ERR_CONFLICT)
        counter_add(&ends, 1, e ? "failed" : outcome_name(ret));
    return e;
}

enum err customer_legal_hold(struct pg *pg, const char *customer_id, const char *reason, const struct actor *actor,
                             int64_t deadline_ns, struct arena *arena, struct str *ret_object)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call calls[] = {
        {.ask = &customer_make_row, .args = {pg_text(customer_id)}},
        {.ask = &legal_hold_set, .args = {pg_text(customer_id), pg_text_or_null(reason)}},
    };
    const struct pg_call *set = &calls[1];
    enum err e = tx_trip(tx, calls, COUNT_OF(calls));
    if (e)
        return e;
    bool found = set->rows == 1;
    if (found && !(*ret_object = arena_copy(arena, pg_get(set, 0, 0))).at)
        return ERR_MEMORY;
    struct pg_call log = {.ask = &legal_hold_log,
                          .args = {pg_text(customer_id), pg_text(reason ? "hold" : "unhold"), pg_text(actor->kind),
                                   pg_text_or_null(actor->id), pg_text(found ? "done" : "unknown"),
                                   pg_text_or_null(actor->correlation_id), pg_text(found && reason ? reason : "")}};
    e = tx_commit(tx, &log, 1);
    return e ? e : found ? OK : ERR_MISSING;
}

/* The next shorter one: from then on that reminder is sent instead. */
static int64_t shorter_than(int64_t before_ms, const int64_t *all, size_t count)
{
    int64_t longest = 0;
    for (size_t i = 0; i < count; i++)
        if (all[i] < before_ms && all[i] > longest)
            longest = all[i];
    return longest;
}

enum err reminders_run(struct pg *pg, const int64_t *before_ms, size_t count, struct shift *shift)
{
    for (size_t i = 0; i < count; i++) {
        int64_t promised = 1;
        while (promised > 0 && shift_goes_on(shift)) {
            struct pg_call call = {.ask = &reminders_promise,
                                   .args = {pg_i64(before_ms[i]), pg_i64(shorter_than(before_ms[i], before_ms, count)),
                                            pg_i64(REMIND_BATCH)}};
            enum err e = pg_ask(pg, &call, clock_ns() + REMIND_NS);
            if (e)
                return e;
            promised = pg_get_i64(&call, 0, 0);
            counter_add(&reminded, (uint64_t)promised);
        }
    }
    return OK;
}
