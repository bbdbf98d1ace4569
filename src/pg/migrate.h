/* The schema, up and down by its steps, and the functions and triggers on top of it.
 *
 * Applied steps stand in reclaim.schema_migrations with the SHA-256 of their up file; a file that changed after it was
 * applied stops the start, unless the file names its former SHA-256 ("-- formerly HEX"). Each step is a transaction, but for
 * those whose first line is "-- reclaim: in parts" (migrate_parts.c): they go on where they were interrupted. No statement
 * waits longer than half a second for a lock that others would wait behind; it is tried again until the deadline. After the steps the functions and triggers are replaced as one set,
 * in one transaction, if the number of this program's set is higher than that in reclaim.schema_functions: an older program
 * works with newer functions.
 *
 * An advisory lock of the session lets any number of instances start at once, and a transaction pooler is refused for its
 * sake. The files run with only pg_catalog on the search path; new sessions of the role that migrated, if
 * it is Reclaim's own, find schema reclaim before public. */
#ifndef PG_MIGRATE_H
#define PG_MIGRATE_H

#include "pg/migrations.h"
#include "pg/pg.h"

struct migrate_report {
    int before, after;         /* schema version; 0 is empty */
    int set_before, set_after; /* number of the functions' set; 0 is none */
};

/* Up to the newest, or down by `steps`, at most to nothing; down removes the functions first. ERR_INPUT when what is
 * applied is not what is known here, the functions included. A database with newer steps than this program is
 * ERR_CONFLICT, either way; newer functions are left alone on the way up and are ERR_CONFLICT on the way down. */
enum err migrate_up(struct pg *pg, const struct schema *schema, int64_t deadline_ns, struct migrate_report *ret,
                    struct why *why) MUST_CHECK;
enum err migrate_down(struct pg *pg, const struct schema *schema, int steps, int64_t deadline_ns,
                      struct migrate_report *ret, struct why *why) MUST_CHECK;

/* How a step in parts goes on; `total` is 0 where it is not known. Without a watcher it is logged. */
struct migrate_progress {
    const char *step, *what;
    int64_t done, total;
    bool waiting; /* for a lock that others hold */
};
void migrate_watch(void (*tell)(void *context, const struct migrate_progress *progress), void *context);

struct set_status {
    int known, applied;  /* numbers; 0 is none */
    char applied_at[32]; /* empty when none is applied */
    bool changed;        /* the same number, other functions */
};

/* Calls `each` for every step known here or applied there; applied_at is NULL for one that is not applied. */
enum err migrate_status(struct pg *pg, const struct schema *schema, int64_t deadline_ns,
                        void (*each)(void *context, int version, const char *name, const char *applied_at,
                                     bool changed),
                        void *context, struct set_status *ret_set, struct why *why) MUST_CHECK;
/* Creates what Reclaim finds in a Supabase database and a bare one lacks (sql/standalone.sql); harmless when repeated. */
enum err migrate_standalone(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;

#endif
