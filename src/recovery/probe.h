/* POST /functions/v1/check-email-status: how far an address got with its registration.
 *
 * Limited per client address; look-ups of many requests share a statement, and those that a slow batch leaves open are
 * looked up one by one. */
#ifndef RECOVERY_PROBE_H
#define RECOVERY_PROBE_H

#include "http/router.h"
#include "limits/admission.h"
#include "recovery/contract.h"
#include "recovery/orphans.h"

struct probe {
    const struct contract *contract;
    const struct orphan_statements *orphans;
    const struct digest *identifier_key; /* hashes client addresses */
    struct admission *admission;
    struct hold_rule hold;
    _Atomic int64_t timeout_ms;     /* for the company query; then its answer is null */
    _Atomic(struct batch *) lookup; /* NULL until the database is ready: 503 */
    struct pool *pool;              /* for look-ups outside a batch */
};

/* The database is ready. */
enum err probe_open(struct probe *probe, struct pool *pool) MUST_CHECK;
void probe_close(struct probe *probe); /* after the last request */

/* The handler; its route's context is a struct probe. */
void probe_handle(struct request *rq);

extern const struct statement probe_find_user, probe_find_users, probe_sees_users, probe_limit_company_query;

#endif
