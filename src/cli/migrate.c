#include <stdio.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "pg/migrate.h"
#include "server/database.h"

#define MIGRATE_DEADLINE_NS (600 * NS_PER_S)

static void print_step(void *context, int version, const char *name, const char *applied_at, bool changed)
{
    (void)context;
    printf("%04d  %-24s  %s%s\n", version, name, applied_at ? applied_at : "not applied",
           changed ? "  CHANGED since it was applied" : "");
}

static enum err print_status(struct pg *pg, const struct schema *schema, struct why *why)
{
    struct set_status set;
    enum err e = migrate_status(pg, schema, clock_ns() + MIGRATE_DEADLINE_NS, print_step, NULL, &set, why);
    if (e)
        return e;
    if (set.applied == 0)
        printf("functions, set %d: not applied\n", set.known);
    else if (set.applied == set.known)
        printf("functions, set %d: %s%s\n", set.known, set.applied_at,
               set.changed ? "  CHANGED since it was applied" : "");
    else
        printf("functions, set %d: %s, this program has set %d\n", set.applied, set.applied_at, set.known);
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

int command_migrate(int argc, char **argv)
{
    struct option_rule options[] = {
        {"--config", true, NULL}, {"--status", false, NULL}, {"--standalone", false, NULL}, {"--down", true, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    const char *config = options[0].value, *status = options[1].value, *standalone = options[2].value,
               *down_by = options[3].value;
    int64_t steps = 0;
    if (!!status + !!standalone + !!down_by > 1) {
        fprintf(stderr, "reclaim migrate: --status, --standalone and --down exclude each other\n");
        return 2;
    }
    if (down_by && str_to_i64(str_of(down_by), 1, 1000, &steps)) {
        fprintf(stderr, "reclaim migrate: --down wants how many steps to take back, not \"%s\"\n", down_by);
        return 2;
    }

    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    const struct schema *schema;
    enum err e = settings_load(config, &s, &why);
    if (e || (e = migrations_embedded(&schema, &why)) || (e = database_open(s, &db, &why)))
        return command_failed("migrate", &why);
    if (status)
        e = print_status(db.pg, schema, &why);
    else if (steps)
        e = down(db.pg, schema, steps, &why);
    else
        e = up(db.pg, schema, standalone, &why);
    return e ? command_failed("migrate", &why) : 0;
}
