/* delete, hold and unhold: one customer from the command line, as the admin API does it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "calls/hangup.h"
#include "cli/commands.h"
#include "cli/delete.h"
#include "cli/options.h"
#include "gate/authenticate.h"
#include "server/database.h"

#define CONFLICTS_MAX 5

static enum err delete_one(struct pg *pg, const struct settings *s, const char *id, struct arena *arena,
                           struct why *why)
{
    struct digest key;
    struct deletion needs;
    struct deletion_result result = {0};
    struct actor actor = {.kind = "operator"};
    enum err e = deletion_needs(s, pg, &key, &needs, why);
    if (e)
        return e;
    needs.hangup = &hangup_for_others;
    e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = customer_delete(&needs, pg, id, &actor, clock_ns() + DATABASE_DEADLINE_NS, arena, &result);
    if (e)
        return why_set(why, e, "nothing was deleted (%s); is the schema up to date? (reclaim migrate)", err_name(e));
    if (result.outcome == DELETION_UNKNOWN)
        return why_set(why, ERR_MISSING, "there is no customer %s", id);
    if (result.outcome == DELETION_HELD)
        return why_set(why, ERR_CONFLICT, "a legal hold keeps customer %s from being deleted (reclaim unhold ends it)",
                       id);
    int64_t left_ns = result.committed_ns + FROZEN_LEASE_NS - clock_ns(); /* as the server does */
    if (left_ns > 0)
        nanosleep(&(struct timespec){left_ns / NS_PER_S, left_ns % NS_PER_S}, NULL);
    printf("%.*s\n", STR_ARGS(result.object));
    return OK;
}

static enum err hold(struct pg *pg, const char *id, const char *reason, struct arena *arena, struct why *why)
{
    struct actor actor = {.kind = "operator"};
    struct str object;
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < CONFLICTS_MAX; tries++)
        e = customer_legal_hold(pg, id, reason, &actor, clock_ns() + DATABASE_DEADLINE_NS, arena, &object);
    if (e == ERR_MISSING)
        return why_set(why, e, "there is no customer %s, or no more", id);
    if (e)
        return why_set(why, e, "nothing was changed (%s); is the schema up to date? (reclaim migrate)", err_name(e));
    printf("%.*s\n", STR_ARGS(object));
    return OK;
}

static const char *complaint(const char *verb, int words, char **argv, const char *reason)
{
    bool holds = strcmp(verb, "hold") == 0;
    if (words != 1 || !str_is_uuid(str_of(argv[1])))
        return "which customer? Give its id, a UUID";
    if (holds && (!reason || str_trim(str_of(reason)).len == 0 || strlen(reason) > HOLD_REASON_MAX ||
                  !str_is_utf8(str_of(reason))))
        return "say why: --reason TEXT, up to 1000 bytes";
    if (!holds && reason)
        return "only hold takes --reason";
    return NULL;
}

int command_removal(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--reason", true, NULL}};
    int words;
    if (options_read(argc, argv, options, COUNT_OF(options), 1, &words))
        return 2;
    const char *wrong = complaint(argv[0], words, argv, options[1].value);
    if (wrong) {
        fprintf(stderr, "reclaim %s: %s\n", argv[0], wrong);
        return 2;
    }
    struct why why = {"no memory"};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    AUTO(arena) struct arena *arena = arena_new(4096, (size_t)1 << 20);
    enum err e = arena ? settings_load(options[0].value, &s, &why) : ERR_MEMORY;
    if (e || (e = database_open(s, &db, &why)))
        return command_failed(argv[0], &why);
    e = strcmp(argv[0], "delete") == 0 ? delete_one(db.pg, s, argv[1], arena, &why)
                                       : hold(db.pg, argv[1], options[1].value, arena, &why);
    return e ? command_failed(argv[0], &why) : 0;
}
