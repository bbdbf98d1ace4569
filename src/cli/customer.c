/* show, freeze, recover, delete, hold and unhold: one customer from the command line, as the admin API does it. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/customers.h"
#include "cli/deletion.h"
#include "customers/customers.h"
#include "gate/authenticate.h"
#include "server/database.h"

static const struct actor by_operator = {.kind = "operator"};

enum err customer_read(struct command_context *c)
{
    bool holds = strcmp(c->command->name, "hold") == 0;
    const char *reason = option(c, "--reason");
    if (!str_is_uuid(str_of(word(c, 0))))
        return why_set(&c->why, ERR_INPUT, "which customer? Give its id, a UUID");
    if ((holds && !reason) || (reason && !is_reason(reason, HOLD_REASON_MAX)))
        return why_set(&c->why, ERR_INPUT, "say why: --reason TEXT, up to 1000 bytes");
    return OK;
}

void print_after_lease(int64_t committed_ns, struct str object)
{
    int64_t left_ns = customer_change_known_ns(committed_ns) - clock_ns();
    if (left_ns > 0)
        nanosleep(&(struct timespec){left_ns / NS_PER_S, left_ns % NS_PER_S}, NULL);
    printf("%.*s\n", STR_ARGS(object));
}

static enum err nothing_changed(struct command_context *c, enum err e, const char *done)
{
    return why_set(&c->why, e, "nothing was %s (%s); is the schema up to date? (reclaim migrate)", done, err_name(e));
}

enum err customer_show_command(struct command_context *c)
{
    struct pg_call call = {.ask = &customer_show_to_admin, .args = {pg_text(word(c, 0))}};
    enum err e = command_ask(c, &call);
    if (e)
        return why_set(&c->why, e, "the customers cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call.sqlstate);
    if (call.rows == 0)
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 0));
    printf("%s\n", pg_get(&call, 0, 0).at);
    return OK;
}

static enum err change(struct command_context *c, enum customer_event event, const char *refusal)
{
    struct changed changed;
    const char *reason = event == CUSTOMER_FREEZES ? option(c, "--reason") : NULL;
    enum err e = customer_change(c->pg, word(c, 0), event, &by_operator, reason, clock_ns() + DATABASE_DEADLINE_NS,
                                 c->arena, &changed);
    if (e)
        return nothing_changed(c, e, "changed");
    if (changed.outcome == CHANGE_UNKNOWN)
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 0));
    if (changed.outcome == CHANGE_REFUSED)
        return why_set(&c->why, ERR_INPUT, "customer %s %s", word(c, 0), refusal);
    print_after_lease(changed.committed_ns, changed.object);
    return OK;
}

enum err customer_freeze_command(struct command_context *c)
{
    return change(c, CUSTOMER_FREEZES, "has been deleted");
}

enum err customer_recover_command(struct command_context *c)
{
    return change(c, CUSTOMER_RECOVERS, "is not frozen: there is nothing to recover");
}

enum err customer_delete_command(struct command_context *c)
{
    struct deletion_terms terms;
    struct deletion_result result = {0};
    enum err e = deletion_terms_of(c, &terms);
    if (e)
        return e;
    e = customer_delete(&terms, c->pg, word(c, 0), &by_operator, clock_ns() + DATABASE_DEADLINE_NS, c->arena, &result);
    if (e)
        return nothing_changed(c, e, "deleted");
    if (result.outcome == DELETION_UNKNOWN)
        return why_set(&c->why, ERR_MISSING, "there is no customer %s", word(c, 0));
    if (result.outcome == DELETION_HELD)
        return why_set(&c->why, ERR_INPUT, "a legal hold keeps customer %s from being deleted (reclaim unhold ends it)",
                       word(c, 0));
    print_after_lease(result.committed_ns, result.object);
    return OK;
}

enum err customer_hold_command(struct command_context *c)
{
    struct str object;
    enum err e = customer_legal_hold(c->pg, word(c, 0), option(c, "--reason"), &by_operator,
                                     clock_ns() + DATABASE_DEADLINE_NS, c->arena, &object);
    if (e == ERR_MISSING)
        return why_set(&c->why, e, "there is no customer %s, or it is deleted", word(c, 0));
    if (e)
        return nothing_changed(c, e, "changed");
    printf("%.*s\n", STR_ARGS(object));
    return OK;
}
