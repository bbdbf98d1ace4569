/* Routes that require credentials.
 *
 * The handler of such a route is authenticate_guarded(), its context a struct guarded, which says who is admitted. Refusals
 * are sent here. Otherwise `handle` is called, on the loop or on a worker, with the body in the request's arena and a
 * `caller` that is valid as long as the request's work. It must not block. */
#ifndef GATE_GUARD_H
#define GATE_GUARD_H

#include "gate/authenticate.h"

enum {
    ADMITS_ADMIN = 1,
    ADMITS_CUSTOMER = 2, /* any caller with a customer that is not deleted */
    ADMITS_FROZEN = 4,   /* also if that customer is frozen */
    /* Keys of these scopes: */
    ADMITS_READ = 8,
    ADMITS_CALLS = 16,
    ADMITS_BILLING = 32,
    ADMITS_RECEIPTS = 64, /* the handler compares caller.participant */
    /* Of callers with a token only the customer's owner, who must choose one of several. The database is asked: a cached
     * credential may not know of a customer made a minute ago. */
    ADMITS_OWNER_ONLY = 128,
};

struct guarded {
    struct authenticator *authenticator;
    unsigned admits;
    void (*handle)(struct request *rq, const struct caller *caller, void *context);
    void *context;
    /* Answers, and returns true, when the request itself brings what is needed in place of credentials; NULL: none does. */
    bool (*without)(struct request *rq, void *context);
};

void authenticate_guarded(struct request *rq);
/* The names of those admitted, for the table of routes: "admin", "customer", "frozen", "read", …; NULL at the end. */
const char *admits_name(unsigned admits, size_t at);

#endif
