/* The set of frozen customers in memory, and the lease during which it may be used.
 *
 * A thread reads changed customers every 50 ms, more often when reads are slow, over its own direct connection to
 * PostgreSQL. The set is valid while the last completed read began less than FROZEN_LEASE_NS ago. The reply to a
 * freeze is delayed by one lease after the commit; by then every instance has read the freeze or must ask the
 * database. */
#ifndef GATE_FROZEN_CUSTOMERS_H
#define GATE_FROZEN_CUSTOMERS_H

#include "base/clock.h"
#include "gate/credential_cache.h"
#include "pg/pg.h"

#define FROZEN_LEASE_NS (100 * NS_PER_MS)
#define FROZEN_READ_EVERY_NS (50 * NS_PER_MS)

struct frozen_customers;

/* Connects in the background; until the first read every look-up is FROZEN_UNSURE. Entries of customers that were
 * deleted, recovered or got another owner, and of revoked keys, are removed from `credentials` before the read
 * counts as completed. */
struct frozen_customers *frozen_customers_start(const char *direct_url, struct credential_cache *credentials,
                                                struct why *why) MUST_CHECK;
void frozen_customers_stop(struct frozen_customers *frozen); /* NULL is fine */

/* Take it before looking a credential up in the credential cache. */
uint64_t frozen_customers_mark(struct frozen_customers *frozen);

enum frozen_answer { FROZEN_NOT, FROZEN_IS, FROZEN_UNSURE };
/* For a customer found in the credential cache after the mark was taken; `now_ns` is an instant after the request
 * arrived. FROZEN_NOT means active, since credentials of deleted customers are removed from the cache. */
enum frozen_answer frozen_customers_find(struct frozen_customers *frozen, uint64_t mark, struct customer_id id,
                                         int64_t now_ns, int64_t *ret_scheduled_us);

struct frozen_customers_state {
    size_t count, bytes;
    int64_t age_ns; /* since the last completed read began; INT64_MAX before the first */
};
struct frozen_customers_state frozen_customers_state(struct frozen_customers *frozen);

extern const struct statement *const frozen_customers_statements[];
extern const size_t frozen_customers_statement_count;

#endif
