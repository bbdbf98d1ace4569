/* The address's lock, its user and what it owns: all that both steps decide by. */
#include <string.h>

#include "base/clock.h"
#include "base/metrics.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

METRIC_GAUGE(locks_held, "reclaim_cleanup_locks_held", "Addresses this instance holds the lock of.");
METRIC_HISTOGRAM(check_time, "reclaim_cleanup_orphan_check_seconds", "Lock, user and ownership, looked up in one trip.",
                 metric_seconds, "step");

/* How long an instance takes for granted that no foreign key can stop a deletion. Single requests look for keys each time;
 * when there are many, one in a while does. */
#define KEYS_NS (50 * NS_PER_MS)

struct pg_call candidate_try_lock(const struct flow *f)
{
    return (struct pg_call){.ask = &cleanup_lock, .args = {pg_text(f->email.at)}};
}

void candidate_locked(struct flow *f)
{
    gauge_add(&locks_held, !f->locked);
    f->locked = true;
}

void candidate_unlocked(struct flow *f)
{
    gauge_add(&locks_held, -(double)f->locked);
    f->locked = false;
}

int candidate_lock_ms(const struct flow *f)
{
    const struct hold *hold = &f->rq->hold;
    if (!hold->until_ns)
        return CLEANUP_LOCK_MOST_MS;
    int64_t now = clock_ns(), end = hold_release_ns(hold, now) - hold->step_ns / 5;
    while (end - now < CLEANUP_LOCK_LEAST_MS * NS_PER_MS)
        end += hold->step_ns;
    int64_t ms = (end - now) / NS_PER_MS;
    return ms < CLEANUP_LOCK_MOST_MS ? (int)ms : CLEANUP_LOCK_MOST_MS;
}

bool candidate_lock_denied(const struct pg_call *calls, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(calls[i].sqlstate, "55P03") == 0)
            return true;
    return false;
}

enum err candidate_read(const struct pg_call *found, int row, struct candidate *ret)
{
    bool sees_all = found->rows > row && pg_get_bool(found, row, 0);
    bool registered = sees_all && !pg_is_null(found, row, 1);
    bool banned = registered && pg_get_bool(found, row, 3);
    if (!sees_all || (registered && pg_is_null(found, row, 4)))
        ret->refusal = CLEANUP_FAULT; /* row security hides rows: ownership is unknown, not absent */
    else if (!registered)
        ret->refusal = CLEANUP_UNKNOWN_USER;
    else if (banned || pg_get_bool(found, row, 4))
        ret->refusal = CLEANUP_NOT_ORPHANED;
    if (!registered)
        return OK;
    ret->verified = pg_get_bool(found, row, 2);
    return str_copy(pg_get(found, row, 1), ret->user_id, sizeof ret->user_id);
}

bool candidate_asks_keys(struct cleanup *context)
{
    return atomic_load(&context->keys.any) || clock_ns() >= atomic_load(&context->keys.until_ns);
}

struct pg_call candidate_find_keys(const struct cleanup *context, const char *addresses)
{
    return (struct pg_call){.ask = &context->orphans->blocked, .args = {pg_text(addresses)}};
}

static bool is_blocked(const struct pg_call *found, const char *user_id)
{
    for (int row = 0; row < found->rows; row++)
        if (str_eq(pg_get(found, row, 1), str_of(user_id)))
            return true;
    return false;
}

void candidate_read_keys(struct flow *f, const struct pg_call *found, struct candidate *ret)
{
    atomic_store(&f->context->keys.any, pg_get_i64(found, 0, 0) > 0);
    atomic_store(&f->context->keys.until_ns, clock_ns() + KEYS_NS);
    if (ret->refusal || !is_blocked(found, ret->user_id))
        return;
    ret->refusal = CLEANUP_NOT_ORPHANED;
    f->blocked = true;
}

/* A key that sets a column to null may find that it takes none. */
bool candidate_key_violated(const struct pg_call *deletion)
{
    static const char *const violations[] = {"23503", "23001", "23502"};
    for (size_t i = 0; i < COUNT_OF(violations); i++)
        if (strcmp(deletion->sqlstate, violations[i]) == 0)
            return true;
    return false;
}

void candidate_checked(const struct flow *f, int64_t began_ns)
{
    histogram_observe(&check_time, (double)(clock_ns() - began_ns) / (double)NS_PER_S, step_names[f->step]);
}
