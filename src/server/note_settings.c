#include "server/note_settings.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/database.h"

struct settings_note {
    struct job job;
    int64_t grace_ms;
    bool mails;
    int64_t freeze_limit, cooldown_ms;
};

static enum err note_settings(struct job *job, struct pg *pg)
{
    const struct settings_note *n = OWNER_OF(job, struct settings_note, job);
    return database_note_settings(pg, n->grace_ms, n->mails, n->freeze_limit, n->cooldown_ms, job->deadline_ns);
}

static void log_failure(enum err e)
{
    log_error("settings could not be recorded in the database: reload again", F_STR("error", err_name(e)));
}

static void settings_noted(struct job *job, enum err e)
{
    if (e)
        log_failure(e);
    free(OWNER_OF(job, struct settings_note, job));
}

void note_settings_soon(struct pool *pool, int64_t grace_ms, bool mails, int64_t freeze_limit, int64_t cooldown_ms)
{
    struct settings_note *n = calloc(1, sizeof *n);
    if (!n) {
        log_failure(ERR_MEMORY);
        return;
    }
    *n = (struct settings_note){.job = {note_settings, settings_noted, clock_ns() + DATABASE_DEADLINE_NS, NULL},
                                .grace_ms = grace_ms,
                                .mails = mails,
                                .freeze_limit = freeze_limit,
                                .cooldown_ms = cooldown_ms};
    enum err e = pool_submit(pool, &n->job);
    if (e)
        settings_noted(&n->job, e);
}
