#include <stdio.h>

#include "base/clock.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "server/database.h"

/* A 64-bit key is split over classid and objid, with objsubid 1; Reclaim's other locks have two keys and objsubid 2
 * (pg/lock_ids.h). */
static const struct statement look = {
    .name = "locks_look",
    .sql = "SELECT (l.classid::int8 << 32 | l.objid::int8) AS lock_id, l.pid,"
           " coalesce(a.application_name, '') AS application, coalesce(a.state, '') AS state,"
           " coalesce(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::int8 AS seconds"
           " FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_stat_activity a ON a.pid = l.pid"
           " WHERE l.locktype = 'advisory' AND l.objsubid = 1 AND l.granted"
           " AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = current_database())"
           " ORDER BY seconds DESC, lock_id",
    .params = 0,
    .columns = "lock_id:int8 pid:int4 application:text state:text seconds:int8",
};

int command_locks(int argc, char **argv)
{
    struct option_rule options[] = {{"--config", true, NULL}};
    if (options_read(argc, argv, options, COUNT_OF(options), 0, NULL))
        return 2;
    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    struct pg_call held = {.ask = &look};
    enum err e = settings_load(options[0].value, &s, &why);
    if (e || (e = database_open(s, &db, &why)))
        return command_failed("locks", &why);
    if ((e = pg_ask(db.pg, &held, clock_ns() + DATABASE_DEADLINE_NS))) {
        why_set(&why, e, "the locks cannot be read (%s %s)", err_name(e), held.sqlstate);
        return command_failed("locks", &why);
    }
    if (held.rows)
        printf("%-20s  %-8s  %-7s  %-20s  %s\n", "lock", "pid", "seconds", "state", "application");
    for (int row = 0; row < held.rows; row++)
        printf("%-20s  %-8s  %-7s  %-20s  %s\n", pg_get(&held, row, 0).at, pg_get(&held, row, 1).at,
               pg_get(&held, row, 4).at, pg_get(&held, row, 3).at, pg_get(&held, row, 2).at);
    printf("%d cleanup lock%s held\n", held.rows, held.rows == 1 ? "" : "s");
    return 0;
}
