/* The schema, up and down by the migrations.
 *
 * Applied versions stand in reclaim.schema_migrations with the SHA-256 of their up file; a file that changed after it
 * was applied stops the start. Each step is a transaction; an advisory lock of the session lets any number of instances
 * start at once, and a transaction pooler is refused for its sake. The files run with only pg_catalog on the search path;
 * new sessions of the role that migrated find schema reclaim before public. */
#ifndef PG_MIGRATE_H
#define PG_MIGRATE_H

#include "pg/migrations.h"
#include "pg/pg.h"

struct migrate_report {
    int before, after; /* schema version; 0 is empty */
};

/* Up to the newest, or down by `steps`, at most to nothing. ERR_INPUT when what is applied is not what is known here.
 * A database newer than this program is ERR_CONFLICT, either way. */
enum err migrate_up(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                    struct migrate_report *ret, struct why *why) MUST_CHECK;
enum err migrate_down(struct pg *pg, const struct migration *all, size_t count, int steps, int64_t deadline_ns,
                      struct migrate_report *ret, struct why *why) MUST_CHECK;
/* Calls `each` for every migration known here or applied there; applied_at is NULL for one that is not applied. */
enum err migrate_status(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                        void (*each)(void *context, int version, const char *name, const char *applied_at,
                                     bool changed),
                        void *context, struct why *why) MUST_CHECK;
/* Creates what Reclaim finds in a Supabase database and a bare one lacks (sql/standalone.sql); harmless when repeated. */
enum err migrate_standalone(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;

#endif
