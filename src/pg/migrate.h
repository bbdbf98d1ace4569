/* The schema, from the files embedded under sql/migrations/: NNNN_name.up.sql and NNNN_name.down.sql.
 *
 * Applied versions stand in reclaim.schema_migrations with the SHA-256 of their up file; a file that changed after it
 * was applied stops the start. Each step is a transaction; an advisory lock lets any number of instances start at once. */
#ifndef PG_MIGRATE_H
#define PG_MIGRATE_H

#include "pg/pg.h"

struct migration {
    int version; /* 1, 2, 3… without gaps */
    const char *name;
    struct str up, down;
};

/* Those embedded in the program, in order. */
enum err migrations_embedded(const struct migration **ret, size_t *ret_count, struct why *why) MUST_CHECK;

struct migrate_report {
    int before, after; /* schema version; 0 is empty */
};

/* Up to the newest, or down by `steps`. A database newer than this program is ERR_CONFLICT going up. */
enum err migrate_up(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                    struct migrate_report *ret, struct why *why) MUST_CHECK;
enum err migrate_down(struct pg *pg, const struct migration *all, size_t count, int steps, int64_t deadline_ns,
                      struct migrate_report *ret, struct why *why) MUST_CHECK;
/* Calls `each` for every migration known here or applied there. */
enum err migrate_status(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                        void (*each)(void *context, int version, const char *name, const char *applied_at,
                                     bool changed),
                        void *context, struct why *why) MUST_CHECK;
/* Creates what Reclaim finds in a Supabase database and a bare one lacks (sql/standalone.sql); harmless when repeated. */
enum err migrate_standalone(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;

#endif
