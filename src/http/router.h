/* Which function answers which request. */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include "http/request.h"

/* Paths that share manners: who may call from a browser, and what an error looks like. */
struct family {
    const char *prefix; /* "/functions/v1/"; "/" takes all others */
    bool cors;
    /* Fills in the body of an answer the router gives by itself: 400, 404, 405, 413, 503. */
    void (*refuse)(struct request *rq, int status);
    const void *context; /* the refusal's own */
};

struct route {
    enum method method;
    const char *path; /* a part in braces, "/v1/customers/{id}", takes whatever is there: rq->params, in order */
    /* Runs on the loop: must not block. Ends with reply_send, at once or later from another thread. */
    void (*handle)(struct request *rq);
    void *context;                /* the handler's own */
    const struct hold_rule *hold; /* NULL: not held. Otherwise every answer to this route is, errors included */
    bool ignores_body;            /* of whatever size: it is read and dropped */
};

struct router {
    const struct family *families; /* the longest prefix first; the last is "/" */
    size_t family_count;
    const struct route *routes;
    size_t route_count;
};

/* Sets rq->family and rq->route (NULL when no route answers). Returns the methods the path knows: 0 for an unknown path. */
unsigned router_find(const struct router *router, struct request *rq);
/* "POST, OPTIONS" for an Allow header. */
struct str methods_list(struct arena *arena, unsigned known);
/* The refusal of the "/" family: {"error":"NOT_FOUND",…}. */
void refuse_plainly(struct request *rq, int status);

#endif
