/* `reclaim locks`: the clean-up locks that are held, and by which process of the database. */
#include <stdio.h>

#include "cli/commands.h"

/* A 64-bit key is split over classid and objid, with objsubid 1; Reclaim's other locks have two keys and objsubid 2
 * (pg/lock_ids.h). */
const struct statement locks_look = {
    .name = "locks_look",
    .sql = "SELECT (l.classid::int8 << 32 | l.objid::int8) AS lock_id, l.pid,"
           " coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::int8 AS seconds,"
           " coalesce(a.state, '') AS state, coalesce(a.application_name, '') AS application"
           " FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
           " WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted"
           " AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())"
           " ORDER BY seconds DESC, lock_id",
    .params = 0,
    .columns = "lock_id:int8 pid:int4 seconds:int8 state:text application:text",
};

static const struct report_column columns[] = {
    {.name = "lock"},
    {.name = "pid", .kind = REPORT_NUMBER},
    {.name = "seconds", .kind = REPORT_NUMBER},
    {.name = "state"},
    {.name = "application"},
};
static const struct report_shape locks_shape = {columns, COUNT_OF(columns), true, "", NULL};

enum err locks_command(struct command_context *c)
{
    struct pg_call held = {.ask = &locks_look};
    enum err e = command_ask(c, &held);
    if (e)
        return why_set(&c->why, e, "the locks cannot be read (%s %s)", err_name(e), held.sqlstate);
    AUTO(report) struct report *r = report_new(&locks_shape, c->format);
    report_rows(r, &held);
    if ((e = report_print(r, &c->why)) == OK && c->format == REPORT_TABLE)
        printf("%d cleanup lock%s held\n", held.rows, held.rows == 1 ? "" : "s");
    return e;
}
