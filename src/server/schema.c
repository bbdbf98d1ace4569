#include "server/schema.h"

#include "base/clock.h"
#include "base/embedded.h"
#include "base/log.h"
#include "pg/migrate.h"
#include "server/database.h"

/* The demo's tables are there to be tried out: changed so that people do not fit into them any more, they stay as they are. */
static enum err fill_demo(struct pg *pg, struct why *why)
{
    const struct embedded *people = embedded_find("sql/demo.sql");
    if (!people)
        return why_set(why, ERR_MISSING, "this program was built without sql/demo.sql");
    enum err e = pg_script(pg, people->bytes.at, clock_ns() + DATABASE_DEADLINE_NS, why);
    if (e != ERR_DATABASE)
        return e;
    log_warn("the people of the demo cannot be added to its tables", F_STR("why", why->text));
    return OK;
}

static void log_migration(const struct schema *schema, const struct migrate_report *report)
{
    if (report->after != report->before)
        log_info("schema migrated", F_INT("from", report->before), F_INT("to", report->after));
    if (report->set_after != report->set_before)
        log_info("functions replaced", F_INT("from", report->set_before), F_INT("to", report->set_after));
    else if (report->set_after > schema->set->number)
        log_info("the functions in the database are newer than this program's, and stay",
                 F_INT("theirs", report->set_after), F_INT("ours", schema->set->number));
}

enum err schema_bring_up(struct pg *pg, bool embedded, bool migrates, bool demo, struct why *why)
{
    int64_t deadline_ns = clock_ns() + 10 * DATABASE_DEADLINE_NS;
    enum err e = OK;
    if (embedded && (e = migrate_standalone(pg, deadline_ns, why)))
        return e;
    if (migrates) {
        const struct schema *schema;
        struct migrate_report report;
        if ((e = migrations_embedded(&schema, why)) || (e = migrate_up(pg, schema, deadline_ns, &report, why)))
            return e;
        log_migration(schema, &report);
    }
    if (embedded && (e = database_note_demo(pg, demo, why)))
        return e;
    return demo ? fill_demo(pg, why) : OK;
}
