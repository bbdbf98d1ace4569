#include "cli/doctor_adoption.h"

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
