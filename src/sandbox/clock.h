/* The clock of a sandbox: reclaim.now(), which is ahead of the real time by what the database records, the same for all
 * instances. It goes ahead only; set back it can be while nothing was dated by it. Lives of tokens, sessions and keys, limits
 * and leases of work go by the real time. What this process knows of it without asking is in base/clock.h. */
#ifndef SANDBOX_CLOCK_H
#define SANDBOX_CLOCK_H

#include "gate/guard.h"
#include "pg/lanes.h"
#include "pg/pg.h"

#define SANDBOX_SHIFT_MOST "3650d"
#define SANDBOX_SHIFT_MOST_MS INT64_C(315360000000)

enum sandbox_outcome {
    SANDBOX_OK,
    SANDBOX_NONE,        /* this installation is no sandbox */
    SANDBOX_TOO_FAR,     /* further ahead than SANDBOX_SHIFT_MOST */
    SANDBOX_DATED_AHEAD, /* set back, something would lie in the future */
};

/* RECLAIM_REMINDERS. A reload may change it while it is read: an advance at that moment may stop for some of both. */
#define SANDBOX_REMINDERS_MAX 16
struct reminder_times {
    _Atomic size_t count;
    _Atomic int64_t before_ms[SANDBOX_REMINDERS_MAX];
};
void reminder_times_set(struct reminder_times *times, const int64_t *before_ms, size_t count);

struct sandbox_clock {
    bool is_sandbox;
    int64_t shift_ms;
    char real[28], now[28]; /* as the API writes times */
};
enum err sandbox_read(struct pg *pg, int64_t deadline_ns, struct sandbox_clock *ret) MUST_CHECK;

/* Records whether this is a sandbox. `may_fall_back`: where it cannot be one, it is none, and that is logged; otherwise
 * ERR_INPUT, as for a sandbox whose clock is ahead and that is to be none. */
enum err sandbox_note(struct pg *pg, bool is_sandbox, bool may_fall_back, int64_t deadline_ns,
                      struct why *why) MUST_CHECK;

/* Moves the clock ahead, with a stop where reminders are due on the way: their mails are sent before the customer may be
 * deleted. Blocks while these are sent, a few seconds at most. What becomes due otherwise follows soon after.
 * `left_ms` becomes 0; after a failure it is what was not done, so that a repetition goes no further than was asked. */
enum err sandbox_advance(struct pg *pg, int64_t *left_ms, const struct reminder_times *reminders, int64_t deadline_ns,
                         enum sandbox_outcome *ret) MUST_CHECK;
/* `ret_what`: what was dated ahead. */
enum err sandbox_reset(struct pg *pg, int64_t deadline_ns, enum sandbox_outcome *ret, char ret_what[64]) MUST_CHECK;

/* Who moved the clock, for the audit; `id` and `correlation_id` may be NULL. */
struct clock_mover {
    const char *actor, *id, *correlation_id;
};
/* An audit row: the clock was moved ahead by so much, or with 0 set back. */
enum err sandbox_audit(struct pg *pg, const struct clock_mover *by, int64_t ms, int64_t deadline_ns) MUST_CHECK;
/* "29d 12h", without the parts that are 0. */
void sandbox_write_shift(int64_t ms, struct buf *out);

struct sandbox {
    _Atomic(struct pool *) pool; /* NULL until the database is ready */
    struct reminder_times reminders;
};

/* Behind authenticate_guarded; the context is a struct sandbox: */
void clock_show_handle(struct request *rq, const struct caller *caller, void *sandbox);    /* GET /v1/sandbox/clock */
void clock_advance_handle(struct request *rq, const struct caller *caller, void *sandbox); /* POST */
void clock_reset_handle(struct request *rq, const struct caller *caller, void *sandbox);   /* DELETE */

extern const struct statement *const sandbox_statements[];
extern const size_t sandbox_statement_count;

#endif
