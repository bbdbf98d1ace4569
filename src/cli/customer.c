/* show, freeze and recover: one customer from the command line, as the admin API does it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "calls/hangup.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "customers/customers.h"
#include "server/database.h"

static const struct {
    const char *name;
    enum customer_event event;
} changes[] = {{"freeze", CUSTOMER_FREEZES}, {"recover", CUSTOMER_RECOVERS}};

static enum err show(struct pg *pg, const char *id, struct why *why)
{
    struct pg_call call = {.ask = &customer_show, .args = {pg_text(id)}};
    enum err e = pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS);
    if (e)
        return why_set(why, e, "the customers cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call.sqlstate);
    if (call.rows == 0)
        return why_set(why, ERR_MISSING, "there is no customer %s", id);
    printf("%s\n", pg_get(&call, 0, 0).at);
    return OK;
}

/* As the server does: whoever reads the answer may rely on it at every instance. */
static void wait_out_lease(int64_t committed_ns)
{
    int64_t left_ns = committed_ns + FROZEN_LEASE_NS - clock_ns();
    if (left_ns > 0)
        nanosleep(&(struct timespec){left_ns / NS_PER_S, left_ns % NS_PER_S}, NULL);
}

static enum err change(struct pg *pg, const char *id, enum customer_event event, struct why *why)
{
    AUTO(arena) struct arena *arena = arena_new(4096, (size_t)1 << 20);
    struct change_needs needs = {.hangup = &hangup_for_others};
    struct actor actor = {.kind = "operator"};
    struct changed changed;
    enum err e = arena ? OK : ERR_MEMORY;
    for (int tries = 0; !e && tries < 5; tries++) {
        e = customer_change(&needs, pg, id, event, &actor, clock_ns() + DATABASE_DEADLINE_NS, arena, &changed);
        if (e != ERR_CONFLICT)
            break;
    }
    if (e)
        return why_set(why, e, "nothing was changed (%s); is the schema up to date? (reclaim migrate)", err_name(e));
    if (changed.outcome == CHANGE_UNKNOWN)
        return why_set(why, ERR_MISSING, "there is no customer %s", id);
    if (changed.outcome == CHANGE_REFUSED)
        return why_set(why, ERR_MISSING,
                       event == CUSTOMER_RECOVERS ? "customer %s is not frozen: there is nothing to recover"
                                                  : "customer %s has been deleted",
                       id);
    wait_out_lease(changed.committed_ns);
    printf("%.*s\n", STR_ARGS(changed.object));
    return OK;
}

int command_customer(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 1, &words))
        return 2;
    if (words != 1 || !str_is_uuid(str_of(argv[1]))) {
        fprintf(stderr, "reclaim %s: which customer? Give its id, a UUID\n", argv[0]);
        return 2;
    }
    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)))
        return command_failed(argv[0], &why);
    e = ERR_INPUT;
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        if (strcmp(argv[0], changes[i].name) == 0)
            e = change(db.pg, argv[1], changes[i].event, &why);
    if (strcmp(argv[0], "show") == 0)
        e = show(db.pg, argv[1], &why);
    return e ? command_failed(argv[0], &why) : 0;
}
