#include "gate/guard.h"

#include "api/db_request.h"

static const struct {
    unsigned flag;
    const char *name;
} names[] = {{ADMITS_ADMIN, "admin"},       {ADMITS_CUSTOMER, "customer"},    {ADMITS_FROZEN, "frozen"},
             {ADMITS_READ, "read"},         {ADMITS_CALLS, "calls"},          {ADMITS_BILLING, "billing"},
             {ADMITS_RECEIPTS, "receipts"}, {ADMITS_OWNER_ONLY, "owner_only"}};

const char *admits_name(unsigned admits, size_t at)
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (admits & names[i].flag && at-- == 0)
            return names[i].name;
    return NULL;
}

/* The handler may keep the caller: it is copied into the request's work. */
static void call_handler(struct request *rq, const struct guarded *route, const struct caller *c)
{
    struct caller *kept = request_work(rq, sizeof *kept);
    if (!kept) {
        reply_fault(rq, ERR_MEMORY);
        return;
    }
    *kept = *c;
    route->handle(rq, kept, route->context);
}

static bool is_admitted(const struct guarded *route, const struct caller *c)
{
    static const unsigned of_scope[] = {
        [SCOPE_CUSTOMER] = 0,         [SCOPE_ADMIN] = ADMITS_ADMIN,     [SCOPE_READ] = ADMITS_READ,
        [SCOPE_CALLS] = ADMITS_CALLS, [SCOPE_BILLING] = ADMITS_BILLING, [SCOPE_RECEIPTS] = ADMITS_RECEIPTS};
    if (c->scope != SCOPE_CUSTOMER)
        return route->admits & of_scope[c->scope];
    if (c->admin && route->admits & ADMITS_ADMIN)
        return true;
    bool standing = c->standing == STANDING_ACTIVE || (c->standing == STANDING_FROZEN && route->admits & ADMITS_FROZEN);
    return standing && route->admits & ADMITS_CUSTOMER;
}

/* Calls the handler unless the route is for owners and the caller is none. The caller may be gone after an answer. */
static void admit(struct request *rq, const struct guarded *route, const struct caller *c)
{
    bool must_own = route->admits & ADMITS_OWNER_ONLY && !c->by_key;
    if (must_own && c->has_several)
        reply_refuse(rq, 400, "WHICH_CUSTOMER", "Several customers belong to you: name one in X-Reclaim-Customer.");
    else if (must_own && !c->is_owner)
        reply_refuse(rq, 403, "NOT_OWNER", "Only the owner of the account may do this.");
    else
        call_handler(rq, route, c);
}

static void guard_decide(struct authentication *q)
{
    struct request *rq = q->rq;
    const struct guarded *route = rq->route->context;
    const struct caller *c = &q->caller;
    bool known = q->verdict == CALLER_KNOWN;
    if (known && q->choice_is_malformed)
        reply_refuse(rq, 400, "INVALID_CUSTOMER", "X-Reclaim-Customer is a customer's id, a UUID.");
    else if (known && is_admitted(route, c))
        admit(rq, route, c);
    else if (known && c->scope != SCOPE_CUSTOMER)
        reply_refuse(rq, 403, "FORBIDDEN", "The scope of this key does not include this.");
    else if (known && c->standing == STANDING_FROZEN && !(route->admits & ADMITS_FROZEN))
        authenticator_refuse_frozen(route->authenticator, rq, c);
    else if (known && !(route->admits & ADMITS_CUSTOMER))
        reply_refuse(rq, 403, "FORBIDDEN", "Only administrators may do this.");
    else
        authentication_refuse(rq, q);
}

void authenticate_guarded(struct request *rq)
{
    const struct guarded *route = rq->route->context;
    if (route->without && route->without(rq, route->context))
        return;
    struct authentication q = {
        .rq = rq, .answered = guard_decide, .skips_cache = (route->admits & ADMITS_OWNER_ONLY) != 0};
    struct str body = rq->body.len ? arena_copy(rq->arena, rq->body) : STR("");
    if (!body.at) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    rq->body = body;
    rq->accept_language = request_header(rq, "Accept-Language"); /* the handler may run on another thread */
    authenticate(route->authenticator, &q);
}
