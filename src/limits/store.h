/* The counts themselves, for the leader, who prunes them, and for operators, who look at them and reset them. */
#ifndef LIMITS_STORE_H
#define LIMITS_STORE_H

#include "limits/tiers.h"
#include "pg/pg.h"

/* Tells the database how long each tier's rows are needed, and deletes those that are not any more. */
enum err limits_prune(struct pg *pg, const struct tier_table *tiers, int64_t deadline_ns) MUST_CHECK;

struct limit_state {
    int64_t count;   /* within the window */
    int64_t wait_us; /* until one more is let in; 0: at once */
};
enum err limits_look(struct pg *pg, const struct counted *c, const struct limit *limit, int64_t deadline_ns,
                     struct limit_state *ret) MUST_CHECK;
/* Forgets a key's counts, in the database and, through a notification, in every instance's memory. */
enum err limits_reset(struct pg *pg, const struct counted *c, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const limits_statements[];
extern const size_t limits_statement_count;

#endif
