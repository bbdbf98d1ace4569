/* `reclaim orphans`: the registrations that were never finished. orphans_delete.c deletes them. */
#include "cli/orphans.h"

#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "server/database.h"

static const struct report_column columns[] = {{.name = "id"},
                                               {.name = "email"},
                                               {.name = "created_at"},
                                               {.name = "verified", .kind = REPORT_FLAG},
                                               {.name = "last_sign_in_at"},
                                               {.name = "blocked_by"}};
static const struct report_shape orphans_shape = {columns, COUNT_OF(columns), true, "", "orphaned account"};

static enum err read_age(struct command_context *c, const char *age, struct orphans_input *in)
{
    if (str_to_duration_ms(str_of(age), &in->age_ms))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not a duration such as 12h or 7d", age);
    return OK;
}

/* Listing needs no key. */
static enum err read_list(struct command_context *c, struct orphans_input *in)
{
    const char *age = option(c, "--older-than");
    c->key_purpose = NULL;
    if (option(c, "--reason") || option(c, "--dry-run"))
        return why_set(&c->why, ERR_INPUT, "--reason and --dry-run go with delete and purge");
    return read_age(c, age ? age : "7d", in);
}

static enum err read_purge(struct command_context *c, struct orphans_input *in)
{
    const char *age = option(c, "--older-than");
    if (c->word_count > 1 || !age)
        return why_set(&c->why, ERR_INPUT, "say how old: reclaim orphans purge --older-than AGE");
    if (option(c, "--dry-run"))
        c->key_purpose = NULL;
    else if (c->format_given)
        return why_set(&c->why, ERR_INPUT, "--format goes with --dry-run");
    return read_age(c, age, in);
}

static enum err read_delete(struct command_context *c)
{
    if (!str_is_uuid(str_of(word(c, 1))))
        return why_set(&c->why, ERR_INPUT, "which user? Give the id that reclaim orphans lists, a UUID");
    if (!option(c, "--reason"))
        return why_set(&c->why, ERR_INPUT, "say why: --reason TEXT");
    if (option(c, "--older-than") || option(c, "--dry-run") || c->format_given)
        return why_set(&c->why, ERR_INPUT, "delete takes --reason only");
    return OK;
}

enum err orphans_read(struct command_context *c)
{
    if (!*word(c, 0))
        c->needs &= ~(unsigned)STOPS_WHEN_RESTORED; /* only lists */
    static const char *const names[] = {[ORPHANS_LIST] = "", [ORPHANS_DELETE] = "delete", [ORPHANS_PURGE] = "purge"};
    struct orphans_input *in = arena_take(c->arena, sizeof *in);
    const char *reason = option(c, "--reason");
    if (!in)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    c->input = in;
    while (in->verb < COUNT_OF(names) && strcmp(word(c, 0), names[in->verb]) != 0)
        in->verb++;
    if (in->verb == COUNT_OF(names))
        return why_set(&c->why, ERR_INPUT, "\"%s\" is not delete or purge", word(c, 0));
    if (reason && !is_reason(reason, OPERATOR_REASON_MAX))
        return why_set(&c->why, ERR_INPUT, "--reason takes a text of up to %d bytes", OPERATOR_REASON_MAX);
    if (in->verb != ORPHANS_LIST)
        c->needs |= RUNS_ONCE;
    return in->verb == ORPHANS_LIST ? read_list(c, in) : in->verb == ORPHANS_PURGE ? read_purge(c, in) : read_delete(c);
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
    const struct orphans_input *in = c->input;
    struct pg_call found = {.ask = &orphans->list, .args = {pg_i64(in->age_ms / 1000)}};
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
    const struct orphans_input *in = c->input;
    e = in->verb == ORPHANS_LIST ? list(c, &orphans) : orphans_delete(c, &orphans);
    orphan_statements_free(&orphans);
    return e;
}
