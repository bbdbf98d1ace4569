/* The sandbox's clock over HTTP. */
#include <inttypes.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "base/log.h"
#include "gate/frozen_customers.h"
#include "sandbox/clock.h"

struct clock_request {
    struct db_request db;
    const struct reminder_times *reminders;
    const struct caller *caller;
    int64_t advance_ms; /* 0: only read */
    bool resets;
    char what[64]; /* was dated ahead */
    enum sandbox_outcome outcome;
    struct sandbox_clock clock;
    int64_t moved_ns;
};

static enum err run(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

static void start(struct request *rq, const struct caller *caller, struct sandbox *sandbox, int64_t advance_ms,
                  bool resets)
{
    struct clock_request *c = db_request_new(rq, sizeof *c, run, answer);
    if (!c)
        return;
    c->reminders = &sandbox->reminders;
    c->caller = caller;
    c->advance_ms = advance_ms;
    c->resets = resets;
    db_request_start(&c->db, atomic_load(&sandbox->pool));
}

/* 1. On the loop. */
void clock_show_handle(struct request *rq, const struct caller *caller, void *sandbox)
{
    start(rq, caller, sandbox, 0, false);
}

/* 1. On the loop. */
void clock_reset_handle(struct request *rq, const struct caller *caller, void *sandbox)
{
    start(rq, caller, sandbox, 0, true);
}

/* 1. On the loop. */
void clock_advance_handle(struct request *rq, const struct caller *caller, void *sandbox)
{
    static const char wrong[] = "Send {\"advance\":…}, how far: a duration with its unit (ms, s, m, h or d), such as "
                                "29d, up to " SANDBOX_SHIFT_MOST ".";
    static const struct field advance = {
        .name = "advance", .required = true, .code = "INVALID_ADVANCE", .message = wrong};
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, "INVALID_ADVANCE", wrong);
    struct str text = field_text(&f, &advance);
    int64_t ms = 0;
    if (!f.err && (str_to_duration_ms(text, &ms) || ms <= 0 || ms > SANDBOX_SHIFT_MOST_MS))
        fields_fail(&f, &advance, wrong);
    if (!fields_refuse(&f, rq))
        start(rq, caller, sandbox, ms, false);
}

static enum err audit(struct clock_request *c, struct pg *pg, int64_t ms)
{
    const struct caller *caller = c->caller;
    const char *id = caller->by_key ? caller->key_id : caller->user_id;
    return sandbox_audit(pg,
                         &(struct clock_mover){.actor = caller->admin ? "admin" : "key",
                                               .id = *id ? id : NULL,
                                               .correlation_id = c->db.rq->correlation_id},
                         ms, c->db.job.deadline_ns);
}

/* A step that has been committed is not repeated. */
static enum err advance(struct clock_request *c, struct pg *pg)
{
    int64_t asked_ms = c->advance_ms;
    enum err e = sandbox_advance(pg, &c->advance_ms, c->reminders, c->db.job.deadline_ns, &c->outcome);
    if (e || asked_ms == c->advance_ms)
        return e;
    c->moved_ns = clock_ns();
    return audit(c, pg, asked_ms - c->advance_ms);
}

static enum err reset(struct clock_request *c, struct pg *pg)
{
    enum err e = sandbox_reset(pg, c->db.job.deadline_ns, &c->outcome, c->what);
    if (e || c->outcome)
        return e;
    c->moved_ns = clock_ns();
    return audit(c, pg, 0);
}

/* 2. On a worker. */
static enum err run(struct db_request *db, struct pg *pg)
{
    struct clock_request *c = OWNER_OF(db, struct clock_request, db);
    enum err e = c->resets ? reset(c, pg) : c->advance_ms > 0 ? advance(c, pg) : OK;
    return e ? e : sandbox_read(pg, db->job.deadline_ns, &c->clock);
}

/* 3. On the same worker. Answered once every instance has read it. */
static void answer(struct db_request *db)
{
    struct clock_request *c = OWNER_OF(db, struct clock_request, db);
    struct request *rq = db->rq;
    if (c->outcome == SANDBOX_NONE) {
        reply_refuse(rq, 409, "NOT_A_SANDBOX",
                     "The clock of this installation cannot be moved. RECLAIM_SANDBOX=on allows it where there are no "
                     "real customers.");
        return;
    }
    if (c->outcome == SANDBOX_TOO_FAR) {
        reply_refuse(rq, 409, "TOO_FAR_AHEAD",
                     "The clock of a sandbox can be up to " SANDBOX_SHIFT_MOST " ahead of the real time.");
        return;
    }
    if (c->outcome == SANDBOX_DATED_AHEAD) {
        reply_refuse(
            rq, 409, "DATED_AHEAD",
            "The clock stays as it is: something was dated by it since it was moved, and would lie in the future.");
        return;
    }
    if (c->moved_ns) {
        log_info("the clock of the sandbox was moved", F_STR("now", c->clock.now),
                 F_INT("shift_ms", c->clock.shift_ms));
        reply_not_before(rq, c->moved_ns + FROZEN_LEASE_NS);
    }
    reply_json(rq, 200,
               arena_printf(rq->arena, "{\"sandbox\":%s,\"now\":\"%s\",\"real\":\"%s\",\"shift_ms\":%" PRId64 "}",
                            c->clock.is_sandbox ? "true" : "false", c->clock.now, c->clock.real, c->clock.shift_ms));
}
