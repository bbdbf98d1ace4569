/* The frozen customers, in memory, and how long that knowledge may be trusted.
 *
 * A thread reads what changed every 50 ms, or oftener when reads are slow, over a connection of its own, straight to the
 * server. What it knows counts only while its last completed read began less than FROZEN_LEASE_NS ago. So a freeze that
 * is answered no sooner than that after its commit is known, from the answer on, to everyone who dares to answer from
 * memory. */
#ifndef GATE_FROZEN_CUSTOMERS_H
#define GATE_FROZEN_CUSTOMERS_H

#include "base/clock.h"
#include "gate/credential_cache.h"
#include "pg/pg.h"

#define FROZEN_LEASE_NS (100 * NS_PER_MS)
#define FROZEN_READ_EVERY_NS (50 * NS_PER_MS)

struct frozen_customers;

/* Connects in its own time; until then nothing may be trusted. Forgets in `seen` whoever was deleted, recovered or got
 * another owner, and keys that were revoked, before it trusts itself again. */
struct frozen_customers *frozen_customers_start(const char *direct_url, struct credential_cache *credentials,
                                                struct why *why) MUST_CHECK;
void frozen_customers_stop(struct frozen_customers *frozen); /* NULL is fine */

/* To be taken before a credential is looked for in `seen`. */
uint64_t frozen_customers_mark(struct frozen_customers *frozen);

enum frozen_answer { FROZEN_NOT, FROZEN_IS, FROZEN_UNSURE };
/* Of a customer that `seen` led to since the mark was taken; `now_ns` is an instant at which the request was here
 * already. FROZEN_NOT: active, since what leads to a deleted customer is forgotten. */
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
