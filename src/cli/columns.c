/* `reclaim columns`: columns of adopted tables that Reclaim does not know, and whether deletions clear them. */
#include "cli/columns.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "customers/columns.h"

static enum err ask(struct command_context *c, struct pg_call *call)
{
    enum err e = command_ask(c, call);
    return e ? why_set(&c->why, e, "the columns cannot be read (%s %s); is the schema up to date? (reclaim migrate)",
                       err_name(e), call->sqlstate)
             : OK;
}

static const struct report_column columns[] = {
    {.name = "table"},    {.name = "column"},   {.name = "type"},
    {.name = "decision"}, {.name = "deletion"}, {.name = "detail"},
};
static const struct report_shape columns_shape = {columns, COUNT_OF(columns), true, "-", "unknown column"};

static enum err list(struct command_context *c)
{
    struct pg_call rows = {.ask = &columns_list};
    enum err e = ask(c, &rows);
    if (e)
        return e;
    AUTO(report) struct report *r = report_new(&columns_shape, c->format);
    report_rows(r, &rows);
    return report_print(r, &c->why);
}

static enum err decide(struct command_context *c)
{
    struct pg_call call = {.ask = &column_decide,
                           .args = {pg_text(word(c, 1)), pg_text(word(c, 2)), pg_text(word(c, 0)),
                                    pg_text_or_null(option(c, "--reason"))}};
    enum err e = ask(c, &call);
    if (e)
        return e;
    if (!pg_is_null(&call, 0, 0))
        return why_set(&c->why, ERR_MISSING, "%s", pg_get(&call, 0, 0).at);
    printf("deletions %s %s of %s from now on\n", word(c, 0), word(c, 2), word(c, 1));
    return OK;
}

enum err columns_read(struct command_context *c)
{
    bool lists = strcmp(word(c, 0), "list") == 0;
    if (!lists && strcmp(word(c, 0), "keep") != 0 && strcmp(word(c, 0), "clear") != 0)
        return why_set(&c->why, ERR_INPUT, "say list, keep or clear (see reclaim columns --help)");
    if (c->word_count != (lists ? 1 : 3))
        return why_set(&c->why, ERR_INPUT, lists ? "list takes no name" : "say %s TABLE COLUMN", word(c, 0));
    if (option(c, "--reason") && strcmp(word(c, 0), "keep") != 0)
        return why_set(&c->why, ERR_INPUT, "--reason goes with keep");
    if (option(c, "--reason") && !is_reason(option(c, "--reason"), KEPT_REASON_MAX))
        return why_set(&c->why, ERR_INPUT, "--reason takes a text of up to %d bytes", KEPT_REASON_MAX);
    if (c->format_given && !lists)
        return why_set(&c->why, ERR_INPUT, "--format is for list: table, csv or json");
    return OK;
}

enum err columns_command(struct command_context *c)
{
    return strcmp(word(c, 0), "list") == 0 ? list(c) : decide(c);
}

static bool warn(finding_handler *each, void *context, const struct pg_call *rows, int row, int column,
                 const char *what, const char *remedy)
{
    char sentence[8192];
    if (pg_is_null(rows, row, column))
        return false;
    (void)snprintf(sentence, sizeof sentence, "%s of %s %s: %s; %s", column == 3 ? "personal columns" : "columns",
                   pg_get(rows, row, 0).at, what, pg_get(rows, row, column).at, remedy);
    each(context, &(struct finding){SEVERITY_WARNING, sentence});
    return true;
}

void doctor_check_columns(struct pg *pg, finding_handler *each, void *context)
{
    struct pg_call rows = {.ask = &columns_check};
    bool warned = false;
    if (pg_ask(pg, &rows, clock_ns() + DATABASE_DEADLINE_NS)) {
        each(context,
             &(struct finding){SEVERITY_FAILURE, "the columns of adopted tables cannot be read: run reclaim migrate"});
        return;
    }
    for (int i = 0; i < rows.rows; i++) {
        warned |= warn(each, context, &rows, i, 1, "that Reclaim does not know are cleared when a customer is deleted",
                       "decide about each with reclaim columns keep|clear TABLE COLUMN");
        warned |= warn(each, context, &rows, i, 2, "cannot be cleared and are kept when a customer is deleted",
                       "let them be null, or accept it with reclaim columns keep TABLE COLUMN");
        warned |= warn(each, context, &rows, i, 3, "cannot be cleared and are kept when a customer is deleted",
                       "let them be null, or change the constraint");
    }
    if (!warned)
        each(context,
             &(struct finding){SEVERITY_OK, "columns: a deletion clears all that were not decided to be kept"});
}
