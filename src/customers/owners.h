/* Owners for customers that have none, such as those of an adopted table: found in a temporary table of the session, then
 * written in batches, each a transaction. */
#ifndef CUSTOMERS_OWNERS_H
#define CUSTOMERS_OWNERS_H

#include "customers/freeze.h"

/* Where the pairs of customer and user come from: the address of the customer (query is NULL), or a query that returns
 * customer_id and owner_user_id. `why` has PostgreSQL's words about the query. */
enum err owners_find(struct pg *pg, const char *query, int64_t deadline_ns, struct why *why) MUST_CHECK;
/* Adds pairs to none, as array literals of uuids; owners_find_none() begins. */
enum err owners_find_none(struct pg *pg, int64_t deadline_ns, struct why *why) MUST_CHECK;
enum err owners_add(struct pg *pg, const char *customers, const char *users, int64_t deadline_ns) MUST_CHECK;

/* Pairs that can be written: a live customer without an owner, a user that is there; one user for a customer. */
enum err owners_count(struct pg *pg, int64_t deadline_ns, int64_t *ret_due, int64_t *ret_all) MUST_CHECK;
/* Writes one batch; *ret_left is false when there is none. */
enum err owners_write(struct pg *pg, const struct actor *actor, int64_t deadline_ns, int64_t *ret_written,
                      bool *ret_left) MUST_CHECK;

#endif
