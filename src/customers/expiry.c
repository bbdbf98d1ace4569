#include "customers/expiry.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "customers/delete.h"
#include "customers/last_mail.h"
#include "customers/statements.h"
#include "pg/arrays.h"
#include "pg/tx.h"

#define BATCH 1000
#define BATCH_NS (60 * NS_PER_S)
#define CONFLICTS_MAX 5
#define ARRAY_BYTES ((size_t)BATCH * (LAST_MAIL_SEALED_MAX + DIGEST_HEX_LEN + 9))
#define CLOCKS_DIFFER_S 300
#define BRAKE_SHARE 20 /* one in so many: 5 % */

METRIC_COUNTER(expired, "reclaim_customers_expired_total", "Customers deleted after their grace period.");
METRIC_COUNTER(failures, "reclaim_expiry_failures_total", "Customers that an expiry pass could not delete.");
METRIC_GAUGE(due, "reclaim_expiry_due", "Customers that were due when the last expiry pass began.");
METRIC_GAUGE(processed, "reclaim_expiry_processed", "Customers that the last expiry pass has deleted so far.");
METRIC_GAUGE(braked, "reclaim_expiry_braked",
             "Customers whose deletion waits for `reclaim expire --confirm`, since unusually many became due at once.");
METRIC_GAUGE(clock_difference, "reclaim_clock_difference_seconds",
             "By which the database's clock is ahead of the leader's, at the last expiry pass.");

#define DUE "c.status = 'frozen' AND c.hold_at IS NULL AND c.deletion_effective_at <= (SELECT reclaim.now())"
#define BEHIND "(c.deletion_effective_at, c.id) > ($1::timestamptz, $2::uuid)"

/* Freezes whose date was not stored: from before it was, or written while the triggers did not fire. */
static const struct statement expiry_fill_dates = {
    .name = "expiry_fill_dates",
    .sql = "UPDATE reclaim.customer_customers c SET deletion_effective_at = c.tm_deletion_scheduled + reclaim.grace()"
           " WHERE c.status = 'frozen' AND c.deletion_effective_at IS NULL",
    .params = 0,
    .columns = "",
};

static const struct statement expiry_count = {
    .name = "expiry_count",
    .sql =
        "SELECT count(c.id) AS due, count(*) FILTER (WHERE c.deletion_effective_at > coalesce(i.expired_until,"
        " '-infinity')) AS became_due, (extract(epoch FROM pg_catalog.clock_timestamp()) * 1000000)::int8 AS clock_us,"
        " (SELECT reclaim.now())::text AS until, i.sandbox FROM reclaim.installation i"
        " LEFT JOIN reclaim.customer_customers c ON " DUE " GROUP BY i.expired_until, i.sandbox",
    .params = 0,
    .columns = "due:int8 became_due:int8 clock_us:int8 until:text sandbox:bool",
};

/* Users that are customers without a row are not counted one by one: the planner's estimate does. */
static const struct statement expiry_count_all = {
    .name = "expiry_count_all",
    .sql = "SELECT count(*) + coalesce((SELECT pg_catalog.max(u.reltuples)::int8 FROM pg_catalog.pg_class u"
           " WHERE u.oid = pg_catalog.to_regclass('auth.users') AND u.reltuples > 0"
           " AND reclaim.users_are_customers()), 0) AS customers"
           " FROM reclaim.customer_customers c WHERE c.status <> 'deleted'",
    .params = 0,
    .columns = "customers:int8",
};

static const struct statement expiry_note_end = {
    .name = "expiry_note_end",
    .sql = "UPDATE reclaim.installation SET expired_until = $1::text::timestamptz",
    .params = 1,
    .columns = "",
};

const struct statement expiry_list = {
    .name = "expiry_list",
    .sql = "SELECT c.id, reclaim.rfc3339(c.tm_deletion_scheduled) AS scheduled,"
           " reclaim.rfc3339(c.deletion_effective_at) AS effective, c.deletion_effective_at::text AS after"
           " FROM reclaim.customer_customers c WHERE " DUE " AND " BEHIND
           " ORDER BY c.deletion_effective_at, c.id LIMIT $3::int8",
    .params = 3,
    .columns = "id:uuid scheduled:text effective:text after:text",
};

static const struct statement expiry_lock = {
    .name = "expiry_lock",
    .sql =
        "SELECT id, after, email FROM reclaim.expiry_lock($1::timestamptz, $2::uuid, $3::int8, $4::text::timestamptz,"
        " $5::int8, $6::int8)",
    .params = 6,
    .columns = "id:uuid after:text email:text",
};

const struct statement customers_delete = {
    .name = "customers_delete",
    .sql = "SELECT reclaim.delete_customers($1::uuid[], $2::text[], $3, $4, $5::uuid, $6::uuid) AS deleted",
    .params = 6,
    .columns = "deleted:int4",
};

const struct statement *const expiry_statements[] = {
    &expiry_fill_dates, &expiry_count,   &expiry_count_all, &expiry_note_end,      &expiry_list,
    &expiry_lock,       &deletion_lock,  &deletion_show,    &customers_delete,     &deletion_redrive,
    &reminders_promise, &legal_hold_set, &legal_hold_log,   &last_mail_prune_dead,
};
const size_t expiry_statement_count = COUNT_OF(expiry_statements);

void deletion_add(const struct deletion_terms *terms, const char *id, struct str email, struct buf *ids,
                  struct buf *sealed)
{
    char text[LAST_MAIL_SEALED_MAX + 1 + DIGEST_HEX_LEN], lower[MAIL_ADDRESS_MAX + 1];
    array_add_plain(ids, str_of(id));
    if (email.len == 0 || str_copy(email, lower, sizeof lower)) {
        array_add_text(sealed, (struct str){NULL, 0});
        return;
    }
    if (!terms->last_mail_key || last_mail_seal(terms->last_mail_key, id, email, text))
        memcpy(text, "::", sizeof "::");
    size_t len = strlen(text);
    text[len] = ':';
    str_lower(lower, email.len);
    cooldown_hash(terms->cooldown_key, (struct str){lower, email.len}, text + len + 1);
    array_add_text(sealed, str_of(text));
}

/* Due in the ordinary course are few at a time; a wrong clock or a wrong setting makes many due at once. */
static enum err is_unusual(struct pg *pg, int64_t brake, int64_t became_due, int64_t deadline_ns, bool *ret)
{
    *ret = false;
    if (brake == EXPIRY_NO_BRAKE || became_due <= brake)
        return OK;
    struct pg_call call = {.ask = &expiry_count_all};
    enum err e = pg_ask(pg, &call, deadline_ns);
    *ret = !e && became_due > pg_get_i64(&call, 0, 0) / BRAKE_SHARE;
    return e;
}

enum err expiry_begin(struct pg *pg, int64_t brake, int64_t deadline_ns, struct expiry_pass *ret)
{
    struct pg_call calls[] = {{.ask = &expiry_fill_dates}, {.ask = &expiry_count}}, *counted = &calls[1];
    *ret = (struct expiry_pass){.size = BATCH, .parts = 1, .after = EXPIRY_FIRST, .after_id = UUID_NIL};
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), deadline_ns);
    if (e || (e = str_copy(pg_get(counted, 0, 3), ret->until, sizeof ret->until)))
        return e;
    ret->due = pg_get_i64(counted, 0, 0);
    ret->became_due = pg_get_i64(counted, 0, 1);
    ret->clock_difference_s = (pg_get_i64(counted, 0, 2) - clock_wall_us()) / 1000000;
    bool unusual;
    if (pg_get_bool(counted, 0, 4))
        brake = EXPIRY_NO_BRAKE; /* who moves a sandbox's clock wants what became due */
    if ((e = is_unusual(pg, brake, ret->became_due, deadline_ns, &unusual)))
        return e;
    if (llabs(ret->clock_difference_s) > CLOCKS_DIFFER_S)
        ret->verdict = EXPIRY_CLOCKS_DIFFER;
    else if (unusual)
        ret->verdict = EXPIRY_BRAKED;
    ret->over = ret->verdict != EXPIRY_RUNS;
    return OK;
}

struct batch_end { /* where a batch ended, if it commits */
    int count;
    char after[48], id[37];
};

static enum err lock_batch(const struct deletion_terms *terms, struct tx *tx, const struct expiry_pass *p,
                           struct buf *ids, struct buf *sealed, struct batch_end *ret)
{
    struct pg_call rows = {
        .ask = &expiry_lock,
        .args = {pg_text(p->after), pg_text(p->after_id), pg_i64(p->size), pg_text(p->until), pg_i64(p->part),
                 pg_i64(p->parts)},
    };
    enum err e = tx_trip(tx, &rows, 1);
    if (e || rows.rows == 0)
        return e;
    for (int row = 0; row < rows.rows; row++)
        deletion_add(terms, pg_get(&rows, row, 0).at, pg_get(&rows, row, 2), ids, sealed);
    ret->count = rows.rows;
    if (!array_end(ids) || !array_end(sealed) ||
        str_copy(pg_get(&rows, rows.rows - 1, 1), ret->after, sizeof ret->after) ||
        str_copy(pg_get(&rows, rows.rows - 1, 0), ret->id, sizeof ret->id))
        return ERR_MEMORY;
    return OK;
}

static enum err delete_batch(const struct deletion_terms *terms, struct pg *pg, const char *actor,
                             const struct expiry_pass *p, char sqlstate[6], struct batch_end *ret)
{
    AUTO(buf) struct buf ids = buf_new(ARRAY_BYTES);
    AUTO(buf) struct buf sealed = buf_new(ARRAY_BYTES);
    AUTO(cooldown_batch) struct cooldown_batch addresses = {0};
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + BATCH_NS);
    *ret = (struct batch_end){0};
    enum err e = lock_batch(terms, tx, p, &ids, &sealed, ret);
    if (e || ret->count == 0)
        return e;
    if ((e = cooldown_read(terms->cooldown_key, tx, buf_str(&ids).at, NULL, &addresses)))
        return e;
    struct pg_call calls[2] = {{.ask = &customers_delete,
                                .args = {pg_text(buf_str(&ids).at), pg_text(buf_str(&sealed).at), pg_text("expire"),
                                         pg_text(actor), pg_null(), pg_null()}}};
    e = tx_commit(tx, calls, cooldown_write(&addresses, &calls[1]) ? 2 : 1);
    memcpy(sqlstate, calls[0].sqlstate, sizeof calls[0].sqlstate);
    return e;
}

static void advance(struct expiry_pass *p, const struct batch_end *end)
{
    memcpy(p->after, end->after, sizeof p->after);
    memcpy(p->after_id, end->id, sizeof p->after_id);
}

/* What became due until this pass began is not counted again by the brake. */
static enum err note_end(struct pg *pg, const struct expiry_pass *p)
{
    struct pg_call call = {.ask = &expiry_note_end, .args = {pg_text(p->until)}};
    return pg_ask(pg, &call, clock_ns() + BATCH_NS);
}

enum err expiry_step(const struct deletion_terms *terms, struct pg *pg, const char *actor, struct expiry_pass *p)
{
    struct batch_end end;
    char sqlstate[6] = "";
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = delete_batch(terms, pg, actor, p, sqlstate, &end);
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
    if (p->over)
        return note_end(pg, p);
    advance(p, &end);
    if (!refused) {
        p->processed += end.count;
        counter_add(&expired, (uint64_t)end.count);
        p->size = p->size * 2 < BATCH ? p->size * 2 : BATCH;
    }
    return OK;
}

static void report_verdict(const struct expiry_pass *p)
{
    gauge_set(&due, (double)p->due);
    gauge_set(&clock_difference, (double)p->clock_difference_s);
    gauge_set(&braked, p->verdict == EXPIRY_BRAKED ? (double)p->became_due : 0);
    if (p->verdict == EXPIRY_BRAKED)
        log_error("no customer was deleted: unusually many became due since the last pass",
                  F_INT("became_due", p->became_due), F_INT("due", p->due),
                  F_STR("if_right", "reclaim expire --confirm with the number that is due"),
                  F_STR("setting", "RECLAIM_EXPIRY_BRAKE"));
    if (p->verdict == EXPIRY_CLOCKS_DIFFER)
        log_error("no customer was deleted: the clocks of this machine and of the database differ",
                  F_INT("seconds", p->clock_difference_s), F_STR("needed", "set the one that is wrong"));
}

/* All parts together. */
static void show_processed(int part, int64_t count)
{
    static _Atomic int64_t of[EXPIRY_PARTS];
    int64_t sum = 0;
    atomic_store(&of[part], count);
    for (int i = 0; i < EXPIRY_PARTS; i++)
        sum += atomic_load(&of[i]);
    gauge_set(&processed, (double)sum);
}

enum err expiry_run(const struct deletion_terms *terms, struct pg *pg, int64_t brake, int part, struct shift *shift)
{
    struct expiry_pass p;
    enum err e = expiry_begin(pg, brake, clock_ns() + BATCH_NS, &p);
    if (e)
        return e;
    p.part = part;
    p.parts = EXPIRY_PARTS;
    if (part == 0)
        report_verdict(&p);
    show_processed(part, 0);
    int64_t began_ns = clock_ns();
    while (!e && !p.over && shift_goes_on(shift)) {
        e = expiry_step(terms, pg, "system", &p);
        show_processed(part, p.processed);
    }
    if (p.processed || p.failed)
        log_info("expiry pass", F_INT("part", part), F_INT("processed", p.processed), F_INT("failed", p.failed),
                 F_INT("ms", (clock_ns() - began_ns) / NS_PER_MS));
    return e;
}
