#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/report.h"
#include "server/database.h"

static const char *const columns[] = {"id", "email", "created_at", "verified", "last_sign_in_at"};
static const struct report report = {columns, COUNT_OF(columns), 3, "", "orphaned account"};

/* A report over tables that are missing or partly hidden would call owners orphans. */
static void note_hindrance(void *context, const char *sentence)
{
    struct why *why = context;
    if (!strstr(sentence, "no index") && !strstr(sentence, "foreign key"))
        why_set(why, ERR_DATABASE, "%s", sentence);
}

int command_orphans(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}, {"--older-than", true, NULL}, {"--format", true, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    const char *age = options[1].value ? options[1].value : "7d";
    report_printer *print = report_printer_named(options[2].value);
    int64_t age_ms;
    if (!print || str_to_duration_ms(str_of(age), &age_ms)) {
        fprintf(stderr,
                print ? "reclaim orphans: \"%s\" is not a duration such as 12h or 7d\n"
                      : "reclaim orphans: \"%s\" is not table, csv or json\n",
                print ? age : options[2].value);
        return 2;
    }

    struct why why = {""}, hindrance = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct orphan_statements orphans = {0};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)) ||
        (e = database_check_ownership(db.pg, s->ownership.at, s->ownership.count, note_hindrance, &hindrance, &why)) ||
        (e = database_check_row_security(db.pg, s->ownership.at, s->ownership.count, note_hindrance, &hindrance, &why)))
        return command_failed("orphans", &why);
    if (hindrance.text[0])
        return command_failed("orphans", &hindrance);
    if ((e = orphan_statements_write(s->ownership.at, s->ownership.count, &orphans)))
        return command_failed("orphans", &(struct why){"no memory"});
    struct pg_call found = {.ask = &orphans.list, .args = {pg_i64(age_ms / 1000)}};
    if ((e = pg_ask(db.pg, &found, clock_ns() + 10 * DATABASE_DEADLINE_NS)) == OK)
        print(&report, &found);
    else
        why_set(&why, e, "the look-up failed (%s %s); reclaim doctor checks the tables of RECLAIM_OWNERSHIP",
                err_name(e), found.sqlstate);
    orphan_statements_free(&orphans);
    return e ? command_failed("orphans", &why) : 0;
}
