#include "sandbox/clock.h"

#include <poll.h>

#include "base/clock.h"
#include "base/log.h"
#include "pg/arrays.h"
#include "pg/lock_ids.h"

#define STEPS_MOST 1000              /* then the rest at once, without stops for reminders */
#define MAILS_NS (2 * NS_PER_S)      /* at a stop, while mails are sent */
#define MAILS_ALL_NS (15 * NS_PER_S) /* at all stops */
#define LOOK_EVERY_MS 20

static const struct statement clock_read = {
    .name = "sandbox_read",
    .sql = "SELECT i.sandbox, (extract(epoch FROM i.clock_shift) * 1000)::int8 AS shift_ms,"
           " reclaim.rfc3339(real.at) AS real, reclaim.rfc3339(real.at + i.clock_shift) AS now"
           " FROM reclaim.installation i, (SELECT pg_catalog.clock_timestamp() AS at) real",
    .params = 0,
    .columns = "sandbox:bool shift_ms:int8 real:text now:text",
};

static const struct statement clock_step = {
    .name = "sandbox_clock_step",
    .sql = "SELECT outcome, moved_ms, queued FROM reclaim.clock_step($1::int8, $2::int8[])",
    .params = 2,
    .columns = "outcome:text moved_ms:int8 queued:int8",
};

/* Mails to customers that were not tried yet, while a server runs that sends them. */
static const struct statement mails_wait = {
    .name = "sandbox_mails_wait",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.work_items w WHERE w.kind = 'mail' AND w.state = 'open' AND w.tries <= 1"
           "  AND w.payload ->> 'template' LIKE 'customer-%')"
           " AND EXISTS (SELECT FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_database d ON d.oid = l.database"
           "  WHERE d.datname = current_database() AND l.locktype = 'advisory' AND l.granted"
           "  AND l.classid = " LOCK_CLASS " AND l.objid = " LOCK_LEADER " AND l.objsubid = 2) AS wait",
    .params = 0,
    .columns = "wait:bool",
};

static const struct statement clock_reset = {
    .name = "sandbox_clock_reset",
    .sql = "SELECT outcome, coalesce(what, '') AS what FROM reclaim.clock_reset()",
    .params = 0,
    .columns = "outcome:text what:text",
};

static const struct statement note = {
    .name = "sandbox_note",
    .sql = "SELECT reclaim.sandbox_note($1::bool) AS outcome",
    .params = 1,
    .columns = "outcome:text",
};

static const struct statement clock_audit = {
    .name = "sandbox_clock_audit",
    .sql = "INSERT INTO reclaim.customer_log (action, actor, actor_id, outcome, detail, correlation_id)"
           " VALUES ($1, $2, $3::uuid, 'done', $4, $5::uuid)",
    .params = 5,
    .columns = "",
};

const struct statement *const sandbox_statements[] = {&clock_read,  &clock_step, &mails_wait,
                                                      &clock_reset, &note,       &clock_audit};
const size_t sandbox_statement_count = COUNT_OF(sandbox_statements);

void reminder_times_set(struct reminder_times *times, const int64_t *before_ms, size_t count)
{
    for (size_t i = 0; i < count && i < SANDBOX_REMINDERS_MAX; i++)
        atomic_store(&times->before_ms[i], before_ms[i]);
    atomic_store(&times->count, count < SANDBOX_REMINDERS_MAX ? count : SANDBOX_REMINDERS_MAX);
}

enum err sandbox_read(struct pg *pg, int64_t deadline_ns, struct sandbox_clock *ret)
{
    struct pg_call call = {.ask = &clock_read};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret = (struct sandbox_clock){.is_sandbox = pg_get_bool(&call, 0, 0), .shift_ms = pg_get_i64(&call, 0, 1)};
    e = str_copy(pg_get(&call, 0, 2), ret->real, sizeof ret->real);
    return e ? e : str_copy(pg_get(&call, 0, 3), ret->now, sizeof ret->now);
}

enum err sandbox_note(struct pg *pg, bool is_sandbox, bool may_fall_back, int64_t deadline_ns, struct why *why)
{
    struct pg_call call = {.ask = &note, .args = {pg_text(is_sandbox ? "true" : "false")}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return why_set(why, e,
                       "cannot record whether this is a sandbox (%s %s): a role with few privileges needs GRANT UPDATE "
                       "(sandbox, clock_shift, clock_moved_at) ON reclaim.installation",
                       err_name(e), call.sqlstate);
    struct str outcome = pg_get(&call, 0, 0);
    if (str_eq(outcome, STR("moved")))
        return why_set(
            why, ERR_INPUT,
            "this database is a sandbox whose clock was moved: start with RECLAIM_SANDBOX=on or --demo, or set the "
            "clock back with reclaim clock reset");
    if (!str_eq(outcome, STR("deleted")))
        return OK;
    static const char refusal[] = "customers were deleted in this database while it was no sandbox: their dates must "
                                  "stay true, so its clock cannot be moved";
    if (!may_fall_back)
        return why_set(why, ERR_INPUT, "RECLAIM_SANDBOX is on, but %s", refusal);
    log_warn("this is no sandbox", F_STR("why", refusal));
    return OK;
}

static enum sandbox_outcome outcome_of(struct str name)
{
    return str_eq(name, STR("not_a_sandbox")) ? SANDBOX_NONE
           : str_eq(name, STR("too_far"))     ? SANDBOX_TOO_FAR
           : str_eq(name, STR("dated_ahead")) ? SANDBOX_DATED_AHEAD
                                              : SANDBOX_OK;
}

/* Until mails to customers were sent or have failed once; at most until `until_ns`. A customer that is deleted meanwhile
 * would not get them. */
static enum err await_mails(struct pg *pg, int64_t until_ns, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call call = {.ask = &mails_wait};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e || !pg_get_bool(&call, 0, 0) || clock_ns() >= until_ns)
            return e;
        (void)poll(NULL, 0, LOOK_EVERY_MS);
    }
}

static enum err step(struct pg *pg, const char *reminders, int64_t deadline_ns, int64_t *left_ms,
                     enum sandbox_outcome *ret)
{
    struct pg_call call = {.ask = &clock_step, .args = {pg_i64(*left_ms), pg_text(reminders)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret = outcome_of(pg_get(&call, 0, 0));
    *left_ms -= pg_get_i64(&call, 0, 1);
    return OK;
}

enum err sandbox_advance(struct pg *pg, int64_t *left_ms, const struct reminder_times *reminders, int64_t deadline_ns,
                         enum sandbox_outcome *ret)
{
    AUTO(buf) struct buf times = buf_new(512);
    for (size_t i = 0; i < atomic_load(&reminders->count); i++)
        array_add_i64(&times, atomic_load(&reminders->before_ms[i]));
    const char *stops = array_end(&times);
    if (!stops)
        return ERR_MEMORY;
    int64_t patient_ns = clock_ns() + MAILS_ALL_NS;
    enum err e = OK;
    *ret = SANDBOX_OK;
    for (int steps = 0; !e && !*ret && *left_ms > 0; steps++) {
        int64_t until_ns = clock_ns() + MAILS_NS;
        bool patient = steps < STEPS_MOST && clock_ns() < patient_ns;
        if (patient)
            e = await_mails(pg, until_ns < patient_ns ? until_ns : patient_ns, deadline_ns);
        if (!e)
            e = step(pg, patient ? stops : "{}", deadline_ns, left_ms, ret);
    }
    return e;
}

enum err sandbox_reset(struct pg *pg, int64_t deadline_ns, enum sandbox_outcome *ret, char ret_what[64])
{
    struct pg_call call = {.ask = &clock_reset};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret = outcome_of(pg_get(&call, 0, 0));
    return str_copy(pg_get(&call, 0, 1), ret_what, 64);
}

void sandbox_write_shift(int64_t ms, struct buf *out)
{
    static const struct {
        int64_t ms;
        const char *unit;
    } units[] = {{86400000, "d"}, {3600000, "h"}, {60000, "m"}, {1000, "s"}, {1, "ms"}};
    for (size_t i = 0; i < COUNT_OF(units); i++) {
        if (ms / units[i].ms > 0)
            buf_addf(out, "%s%lld%s", out->len ? " " : "", (long long)(ms / units[i].ms), units[i].unit);
        ms %= units[i].ms;
    }
    if (!out->len)
        buf_addz(out, "0");
}

enum err sandbox_audit(struct pg *pg, const struct clock_mover *by, int64_t ms, int64_t deadline_ns)
{
    AUTO(buf) struct buf detail = buf_new(128);
    if (ms > 0)
        sandbox_write_shift(ms, &detail);
    struct pg_call call = {.ask = &clock_audit,
                           .args = {pg_text(ms > 0 ? "clock-advance" : "clock-reset"), pg_text(by->actor),
                                    pg_text_or_null(by->id), pg_text(ms > 0 ? buf_str(&detail).at : ""),
                                    pg_text_or_null(by->correlation_id)}};
    return pg_ask(pg, &call, deadline_ns);
}
