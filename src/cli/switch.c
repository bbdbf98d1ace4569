/* `reclaim switch`: the SIP switches at which calls are ended. */
#include <stdio.h>
#include <string.h>

#include "calls/switches.h"
#include "cli/commands.h"
#include "client/client.h"

static enum err ask(struct command_context *c, struct pg_call *call)
{
    enum err e = command_ask(c, call);
    return e ? why_set(&c->why, e,
                       "the switches cannot be reached (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

static enum err add(struct command_context *c)
{
    struct pg_call call = {.ask = &switch_add, .args = {pg_text(word(c, 1)), pg_text(word(c, 2))}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    bool is_new = pg_get_bool(&call, 0, 0);
    printf("switch %s %s\n", word(c, 1), is_new ? "recorded" : "has a new address");
    if (is_new && pg_get_i64(&call, 0, 1) > 0)
        fprintf(stderr, "there are several switches now: calls with a SIP dialog must name theirs\n");
    return OK;
}

static const struct report_column columns[] = {
    {.name = "name"},       {.name = "address"}, {.name = "source"}, {.name = "live_calls", .kind = REPORT_NUMBER},
    {.name = "created_at"},
};
static const struct report_shape switches_shape = {columns, COUNT_OF(columns), true, "-", "switch"};

static enum err list(struct command_context *c)
{
    struct pg_call rows = {.ask = &switches_list};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&switches_shape, c->format);
    for (int row = 0; row < rows.rows; row++)
        for (int column = 0; column < (int)COUNT_OF(columns); column++)
            report_text(r, pg_get(&rows, row, column));
    return report_print(r, &c->why);
}

static enum err take_out(struct command_context *c)
{
    const char *name = word(c, 1);
    struct pg_call call = {.ask = &switch_remove,
                           .args = {pg_text(name), pg_text(option(c, "--force") ? "true" : "false")}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    long long live = (long long)pg_get_i64(&call, 0, 1);
    if (str_eq(pg_get(&call, 0, 0), STR("unknown")))
        return why_set(&c->why, ERR_MISSING, "there is no switch %s", name);
    if (str_eq(pg_get(&call, 0, 0), STR("busy")))
        return why_set(
            &c->why, ERR_INPUT,
            "%lld live call%s at %s: wait for their end, or say --force, and a freeze ends them in the table "
            "only",
            live, live == 1 ? " is" : "s are", name);
    printf("switch %s removed\n", name);
    if (pg_get_bool(&call, 0, 2))
        fprintf(stderr, "the next start of a server with RECLAIM_SWITCH_RPC_URL records it again\n");
    return OK;
}

static const char *fault_of_url(const char *url)
{
    if (strlen(url) > SWITCH_URL_MAX || client_check_url(url, CLIENT_HTTP))
        return "the URL is https://, or http:// to this machine (127.0.0.1, [::1] or localhost)";
    if (switch_url_has_secrets(url))
        return "a URL with a user, a password or a query is not stored in the database: set it as "
               "RECLAIM_SWITCH_RPC_URL at the servers";
    return NULL;
}

/* What is wrong with the arguments; NULL when nothing is. */
static const char *fault_of(const struct command_context *c)
{
    const char *verb = word(c, 0);
    bool adds = strcmp(verb, "add") == 0, removes = strcmp(verb, "remove") == 0, lists = strcmp(verb, "list") == 0;
    if (!adds && !removes && !lists)
        return "say add, list or remove";
    if (c->word_count != (adds ? 3 : removes ? 2 : 1))
        return adds ? "say add NAME URL" : removes ? "say remove NAME" : "list takes no name";
    if (!lists && !switch_name_is_sound(str_of(word(c, 1))))
        return "a switch's name has up to 63 lower-case letters, digits, - _ .";
    if (option(c, "--force") && !removes)
        return "only remove takes --force";
    if (c->format_given && !lists)
        return "--format is for list: table, csv or json";
    return adds ? fault_of_url(word(c, 2)) : NULL;
}

enum err switch_read(struct command_context *c)
{
    const char *fault = fault_of(c);
    return fault ? why_set(&c->why, ERR_INPUT, "%s (see reclaim switch --help)", fault) : OK;
}

enum err switch_command(struct command_context *c)
{
    const char *verb = word(c, 0);
    return strcmp(verb, "add") == 0 ? add(c) : strcmp(verb, "remove") == 0 ? take_out(c) : list(c);
}
