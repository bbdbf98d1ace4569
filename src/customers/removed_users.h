/* Where users are customers (RECLAIM_CUSTOMERS=users): what follows when one is removed from auth.users by any program. The triggers
 * on that table, or the sweep, queue an item for it (reclaim.users_removed); it deletes the customer. */
#ifndef CUSTOMERS_REMOVED_USERS_H
#define CUSTOMERS_REMOVED_USERS_H

#include "work/work.h"

struct work_kind removed_users_kind(void);

/* On the leader: looks at some customers with a row, in turn, whose users were removed while no trigger noticed. `context` is a
 * zeroed struct removed_users_sweep. */
struct removed_users_sweep {
    char after[37];
};
enum err removed_users_sweep(void *context, struct pg *pg, int64_t deadline_ns);

extern const struct statement *const removed_users_statements[];
extern const size_t removed_users_statement_count;

#endif
