/* The set of frozen customers in memory, and the lease during which it may be used.
 *
 * A thread reads changed customers every 50 ms, more often when reads are slow, over its own direct connection to
 * PostgreSQL. What ended (reclaim.gate_ended) is read with them. The set is valid while the last completed read began less
 * than FROZEN_LEASE_NS ago. The reply to a freeze is delayed by one lease after the commit; by then every instance has
 * read the freeze or must ask the database.
 *
 * No other connection asks as often: this one finds out whether the database answers at all. */
#ifndef GATE_FROZEN_CUSTOMERS_H
#define GATE_FROZEN_CUSTOMERS_H

#include "base/clock.h"
#include "gate/credential_cache.h"
#include "pg/pg.h"

#define FROZEN_LEASE_NS (100 * NS_PER_MS)
#define FROZEN_READ_EVERY_NS (50 * NS_PER_MS)

struct frozen_customers;

/* Connects in the background; until the first read every look-up is FROZEN_UNSURE. Entries of customers that were
 * deleted, recovered or got another owner, of revoked keys, and of whatever ended are removed from `credentials` before
 * the read counts as completed. */
struct frozen_customers *frozen_customers_start(const char *direct_url, struct credential_cache *credentials,
                                                struct pg_pulse *pulse, struct why *why) MUST_CHECK;
void frozen_customers_stop(struct frozen_customers *frozen); /* NULL is fine */

/* Take it before looking a credential up in the credential cache. */
uint64_t frozen_customers_mark(struct frozen_customers *frozen);

enum frozen_answer { FROZEN_NOT, FROZEN_IS, FROZEN_UNSURE };
/* For a customer found in the credential cache after the mark was taken; `now_ns` is an instant after the request
 * arrived. FROZEN_NOT means active, since credentials of deleted customers are removed from the cache. */
enum frozen_answer frozen_customers_find(struct frozen_customers *frozen, uint64_t mark, struct customer_id id,
                                         int64_t now_ns, struct freeze *ret);
/* The installation's time, reclaim.now(), as of the last read; before the first, the wall clock. */
int64_t frozen_customers_now_us(struct frozen_customers *frozen);

struct frozen_customers_state {
    size_t count, bytes;
    int64_t age_ns; /* since the last completed read began; INT64_MAX before the first */
};
struct frozen_customers_state frozen_customers_state(struct frozen_customers *frozen);

/* The freeze of a customer `c`, and what a statement's .columns says of it. An infinite instant would be an error here, and
 * so keep every freeze from being read. */
#define FREEZE_US(at)                                                                                                  \
    "(extract(epoch FROM greatest(least(" at ", timestamptz '9999-12-31 00:00+00'), timestamptz 'epoch'))"             \
    " * 1000000)::bigint"
#define FREEZE_OF_C                                                                                                    \
    FREEZE_US("c.tm_deletion_scheduled")                                                                               \
    " AS scheduled_us, " FREEZE_US(                                                                                    \
        "coalesce(c.deletion_effective_at,"                                                                            \
        " c.tm_deletion_scheduled + (SELECT i.grace FROM reclaim.installation i))") " AS effective_us, "               \
                                                                                    "coalesce(c.frozen_by = 'admin', " \
                                                                                    "false) AS by_admin, c.hold_at "   \
                                                                                    "IS NOT NULL AS held"
#define FREEZE_COLUMNS "scheduled_us:int8 effective_us:int8 by_admin:bool held:bool"
/* Reads those four columns, the first of which is at `column`. */
struct freeze freeze_read(const struct pg_call *rows, int row, int column);

extern const struct statement *const frozen_customers_statements[];
extern const size_t frozen_customers_statement_count;

#endif
