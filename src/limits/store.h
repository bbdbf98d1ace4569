/* The stored counts: the leader prunes them, operators read and reset them. */
#ifndef LIMITS_STORE_H
#define LIMITS_STORE_H

#include "limits/tiers.h"
#include "pg/pg.h"

/* Stores each tier's window in the database and deletes rows that are older, page by page. */
enum err limits_prune(struct pg *pg, const struct tier_table *tiers, int64_t deadline_ns) MUST_CHECK;

struct limit_state {
    int64_t count;   /* within the window */
    int64_t wait_us; /* until another request is admitted; 0: now */
};
enum err limit_read_state(struct pg *pg, const struct counted *c, const struct limit *limit, int64_t deadline_ns,
                          struct limit_state *ret) MUST_CHECK;
/* Deletes a key's counts in the database and, through a notification, its cached refusals in every instance. */
enum err limits_reset(struct pg *pg, const struct counted *c, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const limits_statements[];
extern const size_t limits_statement_count;

#endif
