#include "customers/freeze.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "customers/statements.h"
#include "gate/frozen_customers.h"
#include "pg/tx.h"

METRIC_COUNTER(changes, "reclaim_customer_changes_total", "Changes asked for, by outcome.", "action", "outcome");
METRIC_COUNTER(swept, "reclaim_customer_changes_swept_total",
               "Changes whose consequences were written late: their writer's triggers had not fired.");
METRIC_GAUGE(frozen_again, "reclaim_customers_frozen_again",
             "Customers that were frozen three times or more in the last 30 days, as the leader saw it last.");
METRIC_HISTOGRAM(to_billing, "reclaim_freeze_billing_seconds",
                 "From a freeze's first write until its commit, which freezes billing.", metric_seconds);

static const char *const outcomes[] = {
    [CHANGE_DONE] = "done",       [CHANGE_UNCHANGED] = "unchanged", [CHANGE_UNKNOWN] = "unknown",
    [CHANGE_REFUSED] = "refused", [CHANGE_BY_ADMIN] = "by_admin",   [CHANGE_TOO_OFTEN] = "too_often"};

int64_t customer_change_known_ns(int64_t committed_ns)
{
    return committed_ns + FROZEN_LEASE_NS;
}

struct pg_call customer_log(const char *customer_id, const char *action, const struct actor *actor, const char *outcome)
{
    return (struct pg_call){.ask = &customer_write_log,
                            .args = {customer_id ? pg_text(customer_id) : pg_null(), pg_text(action),
                                     pg_text(actor->kind), actor->id ? pg_text(actor->id) : pg_null(), pg_text(outcome),
                                     actor->correlation_id ? pg_text(actor->correlation_id) : pg_null()}};
}

/* `brief` is answered where the whole object does not fit into memory: what was committed happened. */
static enum err read_outcome(const struct pg_call *row, struct arena *arena, struct str brief, struct changed *ret)
{
    struct str outcome = pg_get(row, 0, 0);
    for (size_t i = 0; i < COUNT_OF(outcomes); i++)
        if (str_eq(outcome, str_of(outcomes[i]))) {
            ret->outcome = i;
            if (ret->outcome == CHANGE_TOO_OFTEN)
                return str_to_i64(pg_get(row, 0, 1), 1, INT32_MAX, &ret->wait_s) ? ERR_DATABASE : OK;
            ret->object = arena_copy(arena, pg_get(row, 0, 1));
            if (!ret->object.at)
                ret->object = brief;
            return OK;
        }
    return ERR_DATABASE;
}

enum err customer_change(struct pg *pg, const char *customer_id, enum customer_event event, const struct actor *actor,
                         const char *reason, int64_t deadline_ns, struct arena *arena, struct changed *ret)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call call = {.ask = &customer_make_change,
                           .args = {pg_text(customer_id), pg_text(event_action(event)), pg_text(actor->kind),
                                    pg_text_or_null(actor->id), pg_text_or_null(actor->correlation_id),
                                    pg_text_or_null(reason), pg_text(actor->language ? actor->language : "")}};
    struct str brief = arena_printf(arena, "{\"id\":\"%s\",\"status\":\"%s\"}", customer_id,
                                    state_name(event == CUSTOMER_FREEZES ? STATE_FROZEN : STATE_ACTIVE));
    *ret = (struct changed){.outcome = CHANGE_UNKNOWN};
    if (!brief.at)
        return ERR_MEMORY;
    int64_t writing_ns = clock_ns();
    enum err e = tx_commit(tx, &call, 1);
    ret->committed_ns = clock_ns();
    if (!e)
        e = read_outcome(&call, arena, brief, ret);
    if (!e && ret->outcome == CHANGE_DONE && event == CUSTOMER_FREEZES)
        histogram_observe(&to_billing, (double)(ret->committed_ns - writing_ns) / 1e9);
    if (e != ERR_CONFLICT)
        counter_add(&changes, 1, event_action(event), e ? "failed" : outcomes[ret->outcome]);
    return e;
}

enum err customers_count_frozen_again(struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &customers_read_frozen_again};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        gauge_set(&frozen_again, (double)pg_get_i64(&call, 0, 0));
    return e;
}

enum err customers_sweep(void *context, struct pg *pg, int64_t deadline_ns)
{
    (void)context;
    struct pg_call call = {.ask = &customers_sweep_notes};
    enum err e = pg_ask(pg, &call, deadline_ns);
    int64_t count = e ? 0 : pg_get_i64(&call, 0, 0);
    if (count > 0) {
        counter_add(&swept, (uint64_t)count);
        log_warn("changes of customers were completed late: triggers of customer_customers do not fire for a writer",
                 F_INT("changes", count), F_STR("see", "reclaim doctor"));
    }
    return e;
}
