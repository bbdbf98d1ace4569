/* A cache of refusals, so that the database is not asked again while they apply.
 *
 * An entry is for one subject of one tier with one limit; use does not extend its expiry time. Bounded; when full, the
 * entry that expires first is evicted. Any thread may use it. */
#ifndef LIMITS_REFUSALS_H
#define LIMITS_REFUSALS_H

#include "limits/tiers.h"

struct refusals;

struct refusals *refusals_new(size_t entries) MUST_CHECK;
void refusals_free(struct refusals *r);

/* The refusal ends between until_ns and uncertainty_ns later, which is the time that the database took to reply. */
void refusals_add(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t until_ns,
                  int64_t uncertainty_ns);
/* When the refusal ends; 0 when none is cached. */
int64_t refusals_until(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns);
/* The time after which the refusal has certainly ended, at most the window; 0 when none is cached. */
int64_t refusals_wait(struct refusals *r, const struct counted *c, const struct limit *limit, int64_t now_ns);
void refusals_remove(struct refusals *r, const struct counted *c); /* NULL: everything */

#endif
