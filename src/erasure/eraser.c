#include "erasure/eraser.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/restored.h"
#include "erasure/cascade.h"
#include "erasure/storage.h"

#define CUSTOMERS_AT_ONCE 1000
#define PARTICIPANTS_MAX 256
#define PAGE_NS (60 * NS_PER_S)
#define CENSUS_EVERY_NS (2 * NS_PER_S)
#define RESCAN_EVERY_NS NS_PER_S
#define COUNT_MOST 100000 /* larger numbers are not counted out */

METRIC_COUNTER(rows, "reclaim_cascade_rows_total", "Rows, and objects in Supabase Storage, erased from participants.",
               "participant");
METRIC_COUNTER(receipts, "reclaim_cascade_receipts_total", "Receipts of tables and buckets, by outcome.", "participant",
               "outcome");
METRIC_COUNTER(late_found, "reclaim_cascade_late_total", "Complete erasures for which rows were found afterwards.");
METRIC_GAUGE(open_now, "reclaim_cascade_open", "Erasures that are not complete, up to 100000.");
METRIC_GAUGE(overdue, "reclaim_cascade_overdue",
             "Erasures not complete after RECLAIM_CASCADE_DEADLINE, up to 100000: more than 0 needs a person.");
METRIC_GAUGE(oldest, "reclaim_cascade_oldest_seconds", "How long the oldest erasure that is not complete has taken.");

const struct statement eraser_due = {
    .name = "eraser_due",
    .sql = "SELECT p.name FROM reclaim.cascade_participants p WHERE p.kind = 'table' AND p.enabled"
           " AND p.retry_at <= pg_catalog.clock_timestamp() AND EXISTS (SELECT FROM reclaim.cascade_receipts r"
           " WHERE r.participant = p.name AND r.status <> 'done' AND r.status <> 'kept'"
           " AND r.next_try_at <= (SELECT pg_catalog.clock_timestamp())) ORDER BY p.name LIMIT 256",
    .params = 0,
    .columns = "name:text",
};

const struct statement eraser_page = {
    .name = "eraser_page",
    .sql = "SELECT outcome, customers, finished, erased, error FROM reclaim.cascade_page($1, $2::int4)",
    .params = 2,
    .columns = "outcome:text customers:int4 finished:int4 erased:int8 error:text",
};

const struct statement eraser_put_off = {
    .name = "eraser_put_off",
    .sql = "SELECT reclaim.cascade_put_off($1)::text AS nothing",
    .params = 1,
    .columns = "nothing:text",
};

const struct statement eraser_census = {
    .name = "eraser_census",
    .sql = "SELECT (SELECT count(*) FROM (SELECT FROM reclaim.erasures WHERE completed_at IS NULL LIMIT $2::int8) a)"
           " AS open, (SELECT count(*) FROM (SELECT FROM reclaim.erasures WHERE completed_at IS NULL AND requested_at <"
           " (SELECT reclaim.now() - $1::int8 * interval '1 millisecond') AND (reopened_at IS NULL OR "
           "reopened_at <"
           " (SELECT reclaim.now() - $1::int8 * interval '1 millisecond')) LIMIT $2::int8) b) AS overdue,"
           " coalesce((SELECT (extract(epoch FROM reclaim.now() - min(coalesce(reopened_at, "
           "requested_at))) * 1000)::int8"
           " FROM reclaim.erasures WHERE completed_at IS NULL), 0) AS oldest_ms",
    .params = 2,
    .columns = "open:int8 overdue:int8 oldest_ms:int8",
};

const struct statement eraser_rescan = {
    .name = "eraser_rescan",
    .sql = "SELECT looked, found, trouble FROM reclaim.cascade_rescan($1::int4)",
    .params = 1,
    .columns = "looked:int4 found:int4 trouble:text",
};

void eraser_count(const char *participant, int64_t erased, int64_t finished, int64_t failed)
{
    if (erased)
        counter_add(&rows, (uint64_t)erased, participant);
    if (finished)
        counter_add(&receipts, (uint64_t)finished, participant, "done");
    if (failed)
        counter_add(&receipts, (uint64_t)failed, participant, "failed");
}

struct erased_page {
    enum { PAGE_IDLE, PAGE_DONE, PAGE_SPLIT, PAGE_FAILED } outcome;
    int64_t customers;
};

static void read_page(const char *name, const struct pg_call *call, struct erased_page *ret)
{
    struct str outcome = pg_get(call, 0, 0);
    int64_t finished = pg_get_i64(call, 0, 2), erased = pg_get_i64(call, 0, 3);
    ret->customers = pg_get_i64(call, 0, 1);
    ret->outcome = str_eq(outcome, STR("page"))     ? PAGE_DONE
                   : str_eq(outcome, STR("split"))  ? PAGE_SPLIT
                   : str_eq(outcome, STR("failed")) ? PAGE_FAILED
                                                    : PAGE_IDLE;
    eraser_count(name, erased, finished, ret->outcome == PAGE_FAILED ? ret->customers : 0);
    if (ret->outcome == PAGE_FAILED) {
        log_warn("cascade failed", F_STR("participant", name), F_STR("error", pg_get(call, 0, 4).at),
                 F_INT("customers", ret->customers));
    }
}

/* A page that takes too long, or fails in a way that its function cannot record, delays the participant. */
static enum err delay(struct pg *pg, const char *name, enum err why)
{
    struct pg_call call = {.ask = &eraser_put_off, .args = {pg_text(name)}};
    log_warn("cascade failed", F_STR("participant", name), F_STR("error", err_name(why)));
    if (!pg_is_up(pg) && pg_connect(pg, clock_ns() + PAGE_NS, NULL))
        return why;
    return pg_ask(pg, &call, clock_ns() + PAGE_NS);
}

static enum err erase_page(struct pg *pg, const char *name, int64_t customers, struct erased_page *ret)
{
    struct pg_call call = {.ask = &eraser_page, .args = {pg_text(name), pg_i64(customers)}};
    *ret = (struct erased_page){.outcome = PAGE_IDLE};
    enum err e = pg_ask(pg, &call, clock_ns() + PAGE_NS);
    if (e == ERR_CONFLICT)
        return OK; /* tried again in the next round */
    if (e == ERR_DATABASE || e == ERR_TIMEOUT)
        return delay(pg, name, e);
    if (!e)
        read_page(name, &call, ret);
    return e;
}

/* Some of the participant's customers; one at a time when they fail together. */
static enum err erase_some(struct pg *pg, const char *name, struct shift *shift, bool *ret_did)
{
    struct erased_page page;
    enum err e = erase_page(pg, name, CUSTOMERS_AT_ONCE, &page);
    *ret_did |= page.outcome != PAGE_IDLE;
    for (int64_t left = page.outcome == PAGE_SPLIT ? page.customers : 0; !e && left > 0 && shift_goes_on(shift); left--)
        e = erase_page(pg, name, 1, &page);
    return e;
}

/* One page for each participant with open receipts, so that a large one does not delay the others. */
static enum err erase_round(struct pg *pg, struct shift *shift, bool *ret_did)
{
    char names[PARTICIPANTS_MAX][PARTICIPANT_NAME_MAX + 1];
    struct pg_call call = {.ask = &eraser_due};
    enum err e = pg_ask(pg, &call, clock_ns() + PAGE_NS);
    if (e)
        return e;
    int count = call.rows;
    for (int i = 0; i < count; i++)
        if (str_copy(pg_get(&call, i, 0), names[i], sizeof names[i]))
            return ERR_FULL;
    for (int i = 0; !e && i < count && shift_goes_on(shift); i++)
        e = erase_some(pg, names[i], shift, ret_did);
    return e;
}

/* What is in Supabase Storage is deleted by the work engine of any instance. */
static enum err queue_objects(struct pg *pg)
{
    int64_t queued;
    enum err e = storage_queue(pg, clock_ns() + PAGE_NS, &queued);
    return e == ERR_CONFLICT ? OK : e;
}

/* Looks again at customers whose erasure is complete. True in `ret_did` when there is something to erase. */
static enum err look_again(struct eraser *eraser, struct pg *pg, struct shift *shift, bool *ret_did)
{
    if (clock_ns() < eraser->rescan_ns)
        return OK;
    eraser->rescan_ns = clock_ns() + RESCAN_EVERY_NS;
    for (int64_t looked = CUSTOMERS_AT_ONCE; looked == CUSTOMERS_AT_ONCE && shift_goes_on(shift);) {
        struct pg_call call = {.ask = &eraser_rescan, .args = {pg_i64(CUSTOMERS_AT_ONCE)}};
        enum err e = pg_ask(pg, &call, clock_ns() + PAGE_NS);
        if (e)
            return e == ERR_CONFLICT ? OK : e;
        looked = pg_get_i64(&call, 0, 0);
        int64_t found = pg_get_i64(&call, 0, 1);
        if (!pg_is_null(&call, 0, 2))
            log_warn("erasures cannot be looked at again", F_STR("what", pg_get(&call, 0, 2).at));
        if (found) {
            counter_add(&late_found, (uint64_t)found);
            log_info("rows came after their receipts", F_INT("customers", found));
        }
        *ret_did |= found > 0;
    }
    return OK;
}

static enum err take_census(struct eraser *eraser, struct pg *pg)
{
    if (clock_ns() < eraser->census_ns)
        return OK;
    eraser->census_ns = clock_ns() + CENSUS_EVERY_NS;
    struct pg_call call = {.ask = &eraser_census,
                           .args = {pg_i64(atomic_load(&eraser->deadline_ms)), pg_i64(COUNT_MOST)}};
    enum err e = pg_ask(pg, &call, clock_ns() + PAGE_NS);
    if (e)
        return e;
    int64_t late = pg_get_i64(&call, 0, 1);
    gauge_set(&open_now, (double)pg_get_i64(&call, 0, 0));
    gauge_set(&overdue, (double)late);
    gauge_set(&oldest, (double)pg_get_i64(&call, 0, 2) / 1000);
    if (late > 0 && !eraser->alarmed)
        log_error("erasures are overdue: see reclaim cascade status", F_INT("erasures", late));
    eraser->alarmed = late > 0;
    return OK;
}

enum err eraser_run(void *context, struct pg *pg, struct shift *shift)
{
    struct eraser *eraser = context;
    enum err e = OK;
    for (bool did = true; !e && did && !restored_may_be() && shift_goes_on(shift);) {
        did = false;
        e = erase_round(pg, shift, &did);
        if (!e)
            e = queue_objects(pg);
        if (!e)
            e = look_again(eraser, pg, shift, &did);
        if (!e)
            e = take_census(eraser, pg);
    }
    return e;
}
