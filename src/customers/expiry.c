#include "customers/expiry.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "customers/delete.h"
#include "customers/last_mail.h"
#include "pg/arrays.h"
#include "pg/tx.h"

#define BATCH 500
#define BATCH_NS (60 * NS_PER_S)
#define CONFLICTS_MAX 5
#define ARRAY_BYTES ((size_t)BATCH * (LAST_MAIL_SEALED_MAX + 8))

METRIC_COUNTER(expired, "reclaim_customers_expired_total", "Customers deleted after their grace period.");
METRIC_COUNTER(failures, "reclaim_expiry_failures_total", "Customers that an expiry pass could not delete.");
METRIC_GAUGE(due, "reclaim_expiry_due", "Customers that were due when the last expiry pass began.");
METRIC_GAUGE(processed, "reclaim_expiry_processed", "Customers that the last expiry pass has deleted so far.");

#define DUE                                                                                                            \
    "c.status = 'frozen' AND c.hold_at IS NULL AND c.tm_deletion_scheduled <="                                         \
    " (SELECT reclaim.now() - $1::int8 * interval '1 millisecond')"
#define BEHIND "(c.tm_deletion_scheduled, c.id) > ($2::timestamptz, $3::uuid)"

static const struct statement expiry_count = {
    .name = "expiry_count",
    .sql = "SELECT count(*) AS due FROM reclaim.customer_customers c WHERE " DUE,
    .params = 1,
    .columns = "due:int8",
};

const struct statement expiry_list = {
    .name = "expiry_list",
    .sql = "SELECT c.id, reclaim.rfc3339(c.tm_deletion_scheduled) AS scheduled, c.tm_deletion_scheduled::text AS after"
           " FROM reclaim.customer_customers c WHERE " DUE " AND " BEHIND
           " ORDER BY c.tm_deletion_scheduled, c.id LIMIT $4::int8",
    .params = 4,
    .columns = "id:uuid scheduled:text after:text",
};

/* Waits for transactions that change one of the customers, then checks the row as it is by then: one that has recovered,
 * was frozen again or is on hold is left out, and none can change before the commit. */
static const struct statement expiry_lock = {
    .name = "expiry_lock",
    .sql = "SELECT c.id, c.tm_deletion_scheduled::text AS after,"
           " coalesce(nullif(c.email, ''), u.email, '')::text AS email"
           " FROM reclaim.customer_customers c LEFT JOIN auth.users u ON u.id = c.owner_user_id"
           " WHERE " DUE " AND " BEHIND " ORDER BY c.tm_deletion_scheduled, c.id LIMIT $4::int8 FOR UPDATE OF c",
    .params = 4,
    .columns = "id:uuid after:text email:text",
};

const struct statement customers_delete = {
    .name = "customers_delete",
    .sql = "SELECT reclaim.delete_customers($1::uuid[], $2::text[], $3, $4, $5::uuid, $6::uuid) AS deleted",
    .params = 6,
    .columns = "deleted:int4",
};

const struct statement *const expiry_statements[] = {
    &expiry_count,     &expiry_list,       &expiry_lock,    &customers_delete,     &deletion_lock,  &deletion_show,
    &deletion_redrive, &reminders_promise, &legal_hold_set, &last_mail_prune_dead, &legal_hold_log,
};
const size_t expiry_statement_count = COUNT_OF(expiry_statements);

void deletion_add(const struct deletion *needs, const char *id, struct str email, struct buf *ids, struct buf *sealed)
{
    char box[LAST_MAIL_SEALED_MAX];
    bool mail = needs->last_mail_key && last_mail_seal(needs->last_mail_key, id, email, box) == OK;
    array_add_plain(ids, str_of(id));
    array_add_text(sealed, mail ? str_of(box) : (struct str){NULL, 0});
}

enum err expiry_begin(struct pg *pg, int64_t grace_ms, int64_t deadline_ns, struct expiry_pass *ret)
{
    struct pg_call call = {.ask = &expiry_count, .args = {pg_i64(grace_ms)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret = (struct expiry_pass){.grace_ms = grace_ms,
                                .due = pg_get_i64(&call, 0, 0),
                                .size = BATCH,
                                .after = EXPIRY_FIRST,
                                .after_id = UUID_NIL};
    return OK;
}

struct batch_end { /* where a batch ended, if it commits */
    int count;
    char after[48], id[37];
};

static enum err lock_batch(const struct deletion *needs, struct tx *tx, const struct expiry_pass *p, struct buf *ids,
                           struct buf *sealed, struct batch_end *ret)
{
    struct pg_call rows = {
        .ask = &expiry_lock,
        .args = {pg_i64(p->grace_ms), pg_text(p->after), pg_text(p->after_id), pg_i64(p->size)},
    };
    enum err e = tx_trip(tx, &rows, 1);
    if (e || rows.rows == 0)
        return e;
    for (int row = 0; row < rows.rows; row++)
        deletion_add(needs, pg_get(&rows, row, 0).at, pg_get(&rows, row, 2), ids, sealed);
    ret->count = rows.rows;
    if (!array_end(ids) || !array_end(sealed) ||
        str_copy(pg_get(&rows, rows.rows - 1, 1), ret->after, sizeof ret->after) ||
        str_copy(pg_get(&rows, rows.rows - 1, 0), ret->id, sizeof ret->id))
        return ERR_MEMORY;
    return OK;
}

static enum err delete_batch(const struct deletion *needs, struct pg *pg, const char *actor,
                             const struct expiry_pass *p, char sqlstate[6], struct batch_end *ret)
{
    AUTO(buf) struct buf ids = buf_new(ARRAY_BYTES);
    AUTO(buf) struct buf sealed = buf_new(ARRAY_BYTES);
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + BATCH_NS);
    *ret = (struct batch_end){0};
    enum err e = lock_batch(needs, tx, p, &ids, &sealed, ret);
    if (e || ret->count == 0)
        return e;
    struct pg_call call = {.ask = &customers_delete,
                           .args = {pg_text(buf_str(&ids).at), pg_text(buf_str(&sealed).at), pg_text("expire"),
                                    pg_text(actor), pg_null(), pg_null()}};
    e = tx_commit(tx, &call, 1);
    memcpy(sqlstate, call.sqlstate, sizeof call.sqlstate);
    return e;
}

static void advance(struct expiry_pass *p, const struct batch_end *end)
{
    memcpy(p->after, end->after, sizeof p->after);
    memcpy(p->after_id, end->id, sizeof p->after_id);
}

enum err expiry_step(const struct deletion *needs, struct pg *pg, const char *actor, struct expiry_pass *p)
{
    struct batch_end end;
    char sqlstate[6] = "";
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = delete_batch(needs, pg, actor, p, sqlstate, &end);
    bool refused = e == ERR_DATABASE && end.count > 0; /* one of these customers cannot be deleted */
    if (e && !refused)
        return e;
    if (refused && p->size > 1) {
        p->size = (p->size + 1) / 2; /* until the batch is that customer alone */
        return OK;
    }
    if (refused) {
        log_error("customer cannot be deleted", F_STR("customer_id", end.id), F_STR("sqlstate", sqlstate));
        counter_add(&failures, 1);
        p->failed++;
    }
    p->over = end.count == 0;
    if (!p->over)
        advance(p, &end);
    if (!refused) {
        p->processed += end.count;
        counter_add(&expired, (uint64_t)end.count);
        p->size = p->size * 2 < BATCH ? p->size * 2 : BATCH;
    }
    return OK;
}

enum err expiry_run(const struct deletion *needs, struct pg *pg, int64_t grace_ms, struct shift *shift)
{
    struct expiry_pass p;
    enum err e = expiry_begin(pg, grace_ms, clock_ns() + BATCH_NS, &p);
    if (e)
        return e;
    gauge_set(&due, (double)p.due);
    gauge_set(&processed, 0);
    int64_t began_ns = clock_ns();
    while (!e && !p.over && shift_goes_on(shift)) {
        e = expiry_step(needs, pg, "system", &p);
        gauge_set(&processed, (double)p.processed);
    }
    if (p.processed || p.failed)
        log_info("expiry pass", F_INT("processed", p.processed), F_INT("failed", p.failed),
                 F_INT("ms", (clock_ns() - began_ns) / NS_PER_MS));
    return e;
}
