/* What adopting a team's tables would do, asked of sql/adoption_check.sql before anything is changed. */
#ifndef PG_ADOPTION_H
#define PG_ADOPTION_H

#include "pg/pg.h"

/* What is found, in rows of kind (refused, change, note), relation, subject, what, advice and lock_ms. */
#define ADOPTION_COLUMNS "kind:text relation:text subject:text what:text advice:text lock_ms:int8"

/* Calls `each` once, with all rows. Nothing is found where the tables are adopted already. `balance` is NULL, or as in
 * "reclaim migrate --balance COLUMN[:micros|cents]". */
enum err adoption_check(struct pg *pg, const char *balance, int64_t deadline_ns,
                        void (*each)(void *context, const struct pg_call *rows), void *context,
                        struct why *why) MUST_CHECK;
/* ERR_INPUT, with the first thing that stops it and what to do, unless the tables can be adopted. */
enum err adoption_is_possible(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* The column that holds balances, for the adoption that this session begins. ERR_INPUT when it is not COLUMN[:micros|cents]. */
enum err adoption_set_balance(struct pg *pg, const char *balance, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* Calls `each` with what could not be restored when this session took the adoption back: rows of one text. */
enum err adoption_differences(struct pg *pg, int64_t deadline_ns,
                              void (*each)(void *context, const struct pg_call *rows), void *context,
                              struct why *why) MUST_CHECK;

#endif
