/* `reclaim migrate`: the schema, up to date, looked at, or taken back. */
#include "pg/migrate.h"

#include <stdio.h>

#include "base/clock.h"
#include "cli/commands.h"

#define MIGRATE_DEADLINE_NS (600 * NS_PER_S)

static const struct report_column columns[] = {
    {.name = "version"},
    {.name = "name", .width = 24},
    {.name = "applied_at", .where = IN_DATA},
    {.name = "changed", .kind = REPORT_FLAG, .where = IN_DATA},
    {.name = "what", .where = IN_TABLE},
};
static const struct report_shape steps_shape = {columns, COUNT_OF(columns), false, "", NULL};

static void add_row(struct report *r, const char *version, const char *name, const char *applied_at, bool changed)
{
    AUTO(buf) struct buf what = buf_new(256);
    report_text(r, str_of(version));
    report_text(r, str_of(name));
    report_text(r, str_of(applied_at));
    report_flag(r, changed);
    buf_addf(&what, "%s%s", applied_at ? applied_at : "not applied", changed ? "  CHANGED since it was applied" : "");
    report_text(r, buf_str(&what));
}

static void add_step(void *context, int version, const char *name, const char *applied_at, bool changed)
{
    char number[16];
    snprintf(number, sizeof number, "%04d", version);
    add_row(context, number, name, applied_at, changed);
}

static void print_set(const struct set_status *set)
{
    if (set->applied == 0)
        printf("functions, set %d: not applied\n", set->known);
    else if (set->applied == set->known)
        printf("functions, set %d: %s%s\n", set->known, set->applied_at,
               set->changed ? "  CHANGED since it was applied" : "");
    else
        printf("functions, set %d: %s, this program has set %d\n", set->applied, set->applied_at, set->known);
}

/* For people the set of functions has a line of its own, for programs a row like the steps. */
static enum err list_steps(struct command_context *c, const struct schema *schema)
{
    struct set_status set;
    AUTO(report) struct report *r = report_new(&steps_shape, c->format);
    enum err e = migrate_status(c->pg, schema, clock_ns() + MIGRATE_DEADLINE_NS, add_step, r, &set, &c->why);
    if (e)
        return e;
    if (c->format != REPORT_TABLE) {
        char number[24];
        snprintf(number, sizeof number, "set %d", set.applied ? set.applied : set.known);
        add_row(r, number, "functions", set.applied ? set.applied_at : NULL, set.changed);
    }
    if ((e = report_print(r, &c->why)))
        return e;
    if (c->format == REPORT_TABLE)
        print_set(&set);
    return OK;
}

static enum err down(struct pg *pg, const struct schema *schema, int64_t steps, struct why *why)
{
    struct migrate_report report;
    enum err e = migrate_down(pg, schema, (int)steps, clock_ns() + MIGRATE_DEADLINE_NS, &report, why);
    if (!e)
        printf("schema version %d, was %d\n", report.after, report.before);
    return e;
}

static enum err up(struct pg *pg, const struct schema *schema, bool standalone, struct why *why)
{
    int64_t deadline_ns = clock_ns() + MIGRATE_DEADLINE_NS;
    enum err e = standalone ? migrate_standalone(pg, deadline_ns, why) : OK;
    struct migrate_report report;
    if (e || (e = migrate_up(pg, schema, deadline_ns, &report, why)))
        return e;
    if (report.after == report.before && report.set_after == report.set_before)
        printf("schema version %d, functions set %d: nothing to do\n", report.after, report.set_after);
    else
        printf("schema version %d, was %d; functions set %d, was %d\n", report.after, report.before, report.set_after,
               report.set_before);
    if (report.set_after > schema->set->number)
        printf("this program has set %d: the newer functions stay\n", schema->set->number);
    return OK;
}

enum err migrate_command_read(struct command_context *c)
{
    const char *status = option(c, "--status"), *standalone = option(c, "--standalone"), *by = option(c, "--down");
    int64_t *steps = arena_take(c->arena, sizeof *steps);
    if (!steps)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    if (!!status + !!standalone + !!by > 1)
        return why_set(&c->why, ERR_INPUT, "--status, --standalone and --down exclude each other");
    if (by && str_to_i64(str_of(by), 1, 1000, steps))
        return why_set(&c->why, ERR_INPUT, "--down wants how many steps to take back, not \"%s\"", by);
    if (c->format_given && !status)
        return why_set(&c->why, ERR_INPUT, "--format goes with --status");
    c->input = steps;
    return OK;
}

enum err migrate_command(struct command_context *c)
{
    const int64_t *steps = c->input;
    const struct schema *schema;
    enum err e = migrations_embedded(&schema, &c->why);
    if (e)
        return e;
    if (option(c, "--status"))
        return list_steps(c, schema);
    return *steps ? down(c->pg, schema, *steps, &c->why)
                  : up(c->pg, schema, option(c, "--standalone") != NULL, &c->why);
}
