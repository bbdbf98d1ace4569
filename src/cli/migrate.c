/* `reclaim migrate`: the schema, up to date, looked at, or taken back. */
#include "pg/migrate.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/findings.h"
#include "pg/adoption.h"

#define MIGRATE_DEADLINE_NS (600 * NS_PER_S)

static const struct report_column columns[] = {
    {.name = "version"},
    {.name = "name", .width = 24},
    {.name = "applied_at", .where = IN_DATA},
    {.name = "changed", .kind = REPORT_FLAG, .where = IN_DATA},
    {.name = "what", .where = IN_TABLE},
};
static const struct report_shape steps_shape = {columns, COUNT_OF(columns), false, "", NULL};

static const struct report_column finding_columns[] = {
    {.name = "kind", .width = 8},
    {.name = "table", .width = 26},
    {.name = "subject", .width = 24},
    {.name = "what"},
    {.name = "advice"},
    {.name = "lock_ms", .kind = REPORT_NUMBER},
};
static const struct report_shape findings_shape = {finding_columns, COUNT_OF(finding_columns), true, "-", "finding"};

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

struct check {
    struct report *report; /* NULL for people */
    int refused;
};

static void add_findings(void *context, const struct pg_call *rows)
{
    struct check *check = context;
    if (check->report)
        report_rows(check->report, rows);
    else
        print_findings(rows);
    for (int i = 0; i < rows->rows; i++)
        check->refused += str_eq(pg_get(rows, i, 0), STR("refused"));
}

/* Exit code 1 when something stops the adoption. */
static enum err check(struct command_context *c)
{
    AUTO(report) struct report *r = c->format == REPORT_TABLE ? NULL : report_new(&findings_shape, c->format);
    struct check check = {.report = r};
    enum err e =
        adoption_check(c->pg, option(c, "--balance"), clock_ns() + MIGRATE_DEADLINE_NS, add_findings, &check, &c->why);
    if (e || (c->format != REPORT_TABLE && (e = report_print(r, &c->why))))
        return e;
    return check.refused ? why_set(&c->why, ERR_INPUT, "%d of these stop the adoption", check.refused) : OK;
}

/* On a terminal one line that changes, otherwise a line for each part. */
static void show_progress(void *context, const struct migrate_progress *p)
{
    (void)context;
    bool terminal = isatty(STDERR_FILENO);
    fprintf(stderr, "%s%s: %s", terminal ? "\r\033[K" : "", p->step, p->what);
    if (p->total > 0)
        fprintf(stderr, ", %lld %%", (long long)(p->done * 100 / p->total));
    if (p->waiting)
        fprintf(stderr, ", waiting for a lock that others hold");
    fprintf(stderr, terminal ? "\r" : "\n");
    fflush(stderr);
}

static void print_differences(void *context, const struct pg_call *rows)
{
    (void)context;
    for (int i = 0; i < rows->rows; i++)
        printf("not as before the adoption: %s\n", pg_get(rows, i, 0).at);
}

static enum err down(struct pg *pg, const struct schema *schema, int64_t steps, struct why *why)
{
    struct migrate_report report;
    enum err e = migrate_down(pg, schema, (int)steps, clock_ns() + MIGRATE_DEADLINE_NS, &report, why);
    if (e)
        return e;
    printf("schema version %d, was %d\n", report.after, report.before);
    return adoption_differences(pg, clock_ns() + MIGRATE_DEADLINE_NS, print_differences, NULL, why);
}

static enum err up(struct pg *pg, const struct schema *schema, bool standalone, const char *balance, struct why *why)
{
    int64_t deadline_ns = clock_ns() + MIGRATE_DEADLINE_NS;
    enum err e = standalone ? migrate_standalone(pg, deadline_ns, why) : OK;
    struct migrate_report report;
    if (!e && balance)
        e = adoption_set_balance(pg, balance, deadline_ns, why);
    migrate_watch(show_progress, NULL);
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
    const char *status = option(c, "--status"), *standalone = option(c, "--standalone"), *by = option(c, "--down"),
               *checks = option(c, "--check");
    int64_t *steps = arena_take(c->arena, sizeof *steps);
    if (!steps)
        return why_set(&c->why, ERR_MEMORY, "no memory");
    if (!!status + !!standalone + !!by + !!checks > 1)
        return why_set(&c->why, ERR_INPUT, "--check, --status, --standalone and --down exclude each other");
    if (option(c, "--balance") && (status || by))
        return why_set(&c->why, ERR_INPUT, "--balance goes with an adoption, or with --check");
    if (by && str_to_i64(str_of(by), 1, 1000, steps))
        return why_set(&c->why, ERR_INPUT, "--down wants how many steps to take back, not \"%s\"", by);
    if (c->format_given && !status && !checks)
        return why_set(&c->why, ERR_INPUT, "--format goes with --status and --check");
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
    if (option(c, "--check"))
        return check(c);
    return *steps ? down(c->pg, schema, *steps, &c->why)
                  : up(c->pg, schema, option(c, "--standalone") != NULL, option(c, "--balance"), &c->why);
}
