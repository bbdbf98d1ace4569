#include "recovery/withdraw_code.h"

#include "base/log.h"
#include "recovery/audit.h"
#include "recovery/flow.h"
#include "recovery/statements.h"

static enum err run(struct job *job, struct pg *pg)
{
    struct code_withdrawal *w = OWNER_OF(job, struct code_withdrawal, job);
    struct pg_call calls[] = {
        {.ask = &cleanup_drop_code, .args = {pg_text(w->email_hash), pg_i64(w->log_id)}},
        audit_mail_failed(w->log_id),
    };
    return pg_trip(pg, calls, COUNT_OF(calls), job->deadline_ns);
}

/* A code that stays in the table is known to no user, and expires. */
static void done(struct job *job, enum err e)
{
    struct code_withdrawal *w = OWNER_OF(job, struct code_withdrawal, job);
    if (e)
        log_warn("code not taken back", F_STR("error", err_name(e)));
    w->done(w);
}

void code_withdraw(struct code_withdrawal *w, struct pool *pool)
{
    w->job = (struct job){run, done, clock_ns() + FLOW_NS, w->correlation_id};
    enum err e = pool_submit(pool, &w->job);
    if (e)
        done(&w->job, e);
}
