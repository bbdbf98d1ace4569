/* `reclaim orphans`: the registrations that were never finished. */
#include "recovery/orphans.h"

#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "server/database.h"

static const struct report_column columns[] = {{.name = "id"},
                                               {.name = "email"},
                                               {.name = "created_at"},
                                               {.name = "verified", .kind = REPORT_FLAG},
                                               {.name = "last_sign_in_at"}};
static const struct report_shape orphans_shape = {columns, COUNT_OF(columns), true, "", "orphaned account"};

enum err orphans_read(struct command_context *c)
{
    const char *age = option(c, "--older-than");
    int64_t *age_ms = arena_take(c->arena, sizeof *age_ms);
    if (!age_ms || str_to_duration_ms(str_of(age ? age : "7d"), age_ms))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not a duration such as 12h or 7d", age);
    c->input = age_ms;
    return OK;
}

/* With a missing table or hidden rows, owners would be reported as orphans. */
static void note_hindrance(void *context, const struct finding *finding)
{
    struct why *why = context;
    if (finding->severity == SEVERITY_FAILURE)
        (void)why_set(why, ERR_DATABASE, "%s", finding->sentence);
}

static enum err check_tables(struct command_context *c)
{
    const struct setting_columns *ownership = &c->settings->ownership;
    struct why hindrance = {""};
    enum err e = database_check_ownership(c->pg, ownership->at, ownership->count, note_hindrance, &hindrance, &c->why);
    if (!e)
        e = database_check_row_security(c->pg, ownership->at, ownership->count, note_hindrance, &hindrance, &c->why);
    return e || !hindrance.text[0] ? e : why_set(&c->why, ERR_DATABASE, "%s", hindrance.text);
}

static enum err list(struct command_context *c, const struct orphan_statements *orphans)
{
    const int64_t *age_ms = c->input;
    struct pg_call found = {.ask = &orphans->list, .args = {pg_i64(*age_ms / 1000)}};
    enum err e = pg_ask(c->pg, &found, clock_ns() + 10 * DATABASE_DEADLINE_NS);
    if (e)
        return why_set(&c->why, e, "the look-up failed (%s %s); reclaim doctor checks the tables of RECLAIM_OWNERSHIP",
                       err_name(e), found.sqlstate);
    AUTO(report) struct report *r = report_new(&orphans_shape, c->format);
    report_rows(r, &found);
    return report_print(r, &c->why);
}

enum err orphans_command(struct command_context *c)
{
    struct orphan_statements orphans = {0};
    enum err e = check_tables(c);
    if (e)
        return e;
    if ((e = orphan_statements_write(c->settings->ownership.at, c->settings->ownership.count, &orphans)))
        return why_set(&c->why, e, "no memory");
    e = list(c, &orphans);
    orphan_statements_free(&orphans);
    return e;
}
