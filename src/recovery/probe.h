/* POST /functions/v1/check-email-status: how far did this address get with its registration? */
#ifndef RECOVERY_PROBE_H
#define RECOVERY_PROBE_H

#include "http/router.h"
#include "pg/pool.h"
#include "recovery/contract.h"
#include "recovery/orphans.h"

struct probe {
    _Atomic(struct pool *) pool; /* NULL until the database is ready: 503 */
    const struct contract *contract;
    const struct orphan_statements *orphans;
    struct hold_rule hold;
    _Atomic int64_t timeout_ms; /* for the company query; then its answer is null */
};

/* The handler; its route's room is a struct probe. */
void probe_handle(struct request *rq);

extern const struct statement probe_find_user, probe_limit_company_query;

#endif
