/* The leader charges subscriptions, a batch in a transaction. Each period's charge has a unique reference, so that a leader
 * that dies, or two that overlap for a moment, charge nothing twice. */
#include "base/clock.h"
#include "base/metrics.h"
#include "base/restored.h"
#include "billing/billing.h"

#define BATCH 200
#define TURN_NS (5 * NS_PER_S) /* then the leader's other duties run */

METRIC_COUNTER(
    periods, "reclaim_subscription_charges_total",
    "Periods of subscriptions: charged, refused (tried again), or failed (the account is locked or broken; tried "
    "again too).",
    "outcome");
METRIC_GAUGE(lag, "reclaim_subscription_lag_seconds",
             "How long the oldest charge that could be tried has been waiting, as the leader saw it last.");
METRIC_GAUGE(unpaid, "reclaim_subscriptions_unpaid",
             "Subscriptions whose charge is due and was refused, as the leader saw it last.");

static const struct statement charge_due = {
    .name = "billing_charge_due",
    .sql = "SELECT seen, charged, refused, failed FROM reclaim.billing_charge_due($1::int4)",
    .params = 1,
    .columns = "seen:int4 charged:int8 refused:int8 failed:int8",
};

static const struct statement read_due = {
    .name = "billing_read_due",
    .sql = "SELECT (SELECT coalesce(greatest(extract(epoch FROM (SELECT reclaim.now()) - min(attempt_at)), 0), 0)"
           "::int8 FROM reclaim.billing_subscriptions WHERE attempt_at IS NOT NULL) AS lag,"
           " (SELECT count(*) FROM reclaim.billing_subscriptions WHERE tries > 0 AND attempt_at IS NOT NULL) AS unpaid",
    .params = 0,
    .columns = "lag:int8 unpaid:int8",
};

const struct statement *const subscription_statements[] = {&charge_due, &read_due};
const size_t subscription_statement_count = COUNT_OF(subscription_statements);

enum err subscriptions_charge_due(void *context, struct pg *pg, int64_t deadline_ns)
{
    (void)context;
    int64_t until_ns = clock_ns() + TURN_NS;
    for (int64_t more = 1;
         more > 0 && clock_ns() < until_ns && !restored_may_be();) { /* until a batch charges nothing */
        struct pg_call call = {.ask = &charge_due, .args = {pg_i64(BATCH)}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e)
            return e;
        more = pg_get_i64(&call, 0, 0) == BATCH ? BATCH : pg_get_i64(&call, 0, 1);
        counter_add(&periods, (uint64_t)pg_get_i64(&call, 0, 1), "charged");
        counter_add(&periods, (uint64_t)pg_get_i64(&call, 0, 2), "refused");
        counter_add(&periods, (uint64_t)pg_get_i64(&call, 0, 3), "failed");
    }
    struct pg_call due = {.ask = &read_due};
    enum err e = pg_ask(pg, &due, deadline_ns);
    if (e)
        return e;
    gauge_set(&lag, (double)pg_get_i64(&due, 0, 0));
    gauge_set(&unpaid, (double)pg_get_i64(&due, 0, 1));
    return OK;
}
