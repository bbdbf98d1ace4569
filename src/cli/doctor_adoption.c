#include "cli/doctor_adoption.h"

#include <stdio.h>

#include "base/clock.h"

/* A table of Reclaim's own may be without owners by intent: keys reach its customers. */
static const struct statement owners_check = {
    .name = "doctor_owners",
    .sql = "SELECT (SELECT relkind = 'v' FROM pg_catalog.pg_class"
           "   WHERE oid = pg_catalog.to_regclass('reclaim.customer_customers'))"
           " AND EXISTS (SELECT FROM reclaim.customer_customers WHERE status <> 'deleted')"
           " AND NOT EXISTS (SELECT FROM reclaim.customer_customers WHERE owner_user_id IS NOT NULL)"
           " AND NOT EXISTS (SELECT FROM reclaim.customer_members) AS nobody",
    .params = 0,
    .columns = "nobody:bool",
};

void doctor_check_owners(struct pg *pg, finding_handler *each, void *context)
{
    struct pg_call call = {.ask = &owners_check};
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS) == OK && pg_get_bool(&call, 0, 0))
        each(context,
             &(struct finding){SEVERITY_WARNING,
                               "no customer has an owner, so that nobody can sign in for one: reclaim customers import "
                               "--owners finds owners by address, in a CSV file or with --query"});
}

static const struct statement balances_check = {
    .name = "doctor_balances",
    .sql = "SELECT reclaim.billing_left_behind() AS columns",
    .params = 0,
    .columns = "columns:text",
};

void doctor_check_balances(struct pg *pg, finding_handler *each, void *context)
{
    struct pg_call call = {.ask = &balances_check};
    char sentence[2048];
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS) != OK || pg_is_null(&call, 0, 0))
        return;
    (void)snprintf(
        sentence, sizeof sentence,
        "balance_micros is 0 for every account, and your own columns of billing_accounts are not: %s; if they "
        "are balances, take them over with POST /v1/billing/accounts/{id}/adjustments, or with SQL",
        pg_get(&call, 0, 0).at);
    each(context, &(struct finding){SEVERITY_WARNING, sentence});
}
