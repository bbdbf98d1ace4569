/* Refusals known to last: until then they are given from memory, without asking the database.
 *
 * An entry is for one subject of one tier under one limit, holds a monotonic deadline, and is never extended by being
 * used. Bounded in number; when full, the one that ends soonest makes room. Safe from any thread. */
#ifndef LIMITS_REFUSALS_H
#define LIMITS_REFUSALS_H

#include "limits/tiers.h"

struct refusals;

struct refusals *refusals_new(size_t entries) MUST_CHECK;
void refusals_free(struct refusals *r);

/* The refusal ends at until_ns at the earliest, and at most `doubt_ns` later: so long it took to learn of it. */
void refusals_learn(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t until_ns,
                    int64_t doubt_ns);
/* Until when; 0 when nothing is known. */
int64_t refusals_until(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns);
/* How long a caller must wait to be sure of the end, at most the window; 0 when nothing is known. */
int64_t refusals_wait(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns);
void refusals_forget(struct refusals *r, const struct counted *c); /* NULL: everything */

#endif
