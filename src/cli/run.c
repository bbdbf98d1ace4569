#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/backoff.h"
#include "base/clock.h"
#include "base/random.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "erasure/replay.h"
#include "server/database.h"

#define RETRIES_MAX 5 /* as src/pg/pool.c repeats requests */
#define ARENA_CEILING ((size_t)16 << 20)

enum err command_ask(struct command_context *c, struct pg_call *call)
{
    return pg_ask(c->pg, call, clock_ns() + DATABASE_DEADLINE_NS);
}

/* The pause is random, so that commands that were in conflict do not meet again. */
static void pause_before_retry(int tries)
{
    static const struct backoff retrying = {5 * NS_PER_MS, 160 * NS_PER_MS};
    (void)poll(NULL, 0, backoff_jittered_ms(retrying, tries + 1));
}

static enum err run_repeatedly(struct command_context *c)
{
    for (int tries = 0;; tries++) {
        enum err e = c->command->run(c);
        if (e != ERR_CONFLICT || (c->needs & RUNS_ONCE) || tries == RETRIES_MAX)
            return e;
        pause_before_retry(tries);
        if (!pg_is_alive(c->pg) && (e = pg_connect(c->pg, clock_ns() + DATABASE_DEADLINE_NS, &c->why)))
            return e;
        c->why.text[0] = '\0';
    }
}

static enum err refuse_when_restored(struct command_context *c)
{
    bool restored;
    enum err e = command_look_at_journal(c);
    if (e)
        return e;
    e = replay_is_needed(c->pg, clock_ns() + DATABASE_DEADLINE_NS, &restored);
    if (e == ERR_DATABASE) /* the schema is older: the command itself says so */
        return OK;
    if (e)
        return why_set(&c->why, e, "reclaim.installation cannot be read (%s)", err_name(e));
    return restored ? why_set(&c->why, ERR_INPUT,
                              "the database was restored from a backup: run reclaim replay-erasures first")
                    : OK;
}

static enum err open_and_run(struct command_context *c)
{
    AUTO(settings) struct settings *settings = NULL;
    AUTO(database) struct database db = {0};
    bool uses_database = (c->needs & NEEDS_DATABASE) == NEEDS_DATABASE;
    enum err e = OK;
    if ((c->needs & NEEDS_SETTINGS) == NEEDS_SETTINGS)
        e = settings_load(c->config, &settings, &c->why);
    c->settings = settings;
    if (!e && uses_database) /* first: without a database there is no key, and this says so */
        e = database_open(settings, &db, &c->why);
    if (!e && c->key_purpose)
        e = database_derive(settings, c->key_purpose, &c->key, &c->why);
    if (!e && uses_database && c->key_purpose)
        e = database_same_key(settings, db.pg, &c->why);
    c->pg = db.pg;
    if (!e && c->needs & STOPS_WHEN_RESTORED)
        e = refuse_when_restored(c);
    return e ? e : run_repeatedly(c);
}

int command_run(const struct command *command, int argc, char **argv)
{
    AUTO(arena) struct arena *arena = arena_new(4096, ARENA_CEILING);
    struct command_context c = {
        .command = command, .needs = command->needs, .key_purpose = command->key_purpose, .arena = arena};
    int code = 0;
    if (!arena) {
        (void)why_set(&c.why, ERR_MEMORY, "no memory");
        code = 1;
    } else if (options_read(&c, argc, argv)) {
        return 2;
    } else if (command->read && command->read(&c)) {
        code = 2;
    } else if (open_and_run(&c)) {
        code = 1;
    }
    secret_wipe(&c.key, sizeof c.key);
    if (code && c.why.text[0])
        fprintf(stderr, "reclaim %s: %s\n", command->name, c.why.text);
    return code;
}
