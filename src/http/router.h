/* Maps requests to handlers. */
#ifndef HTTP_ROUTER_H
#define HTTP_ROUTER_H

#include "http/request.h"

/* Paths that share CORS rules and a format of errors. */
struct family {
    const char *prefix; /* "/functions/v1/"; "/" matches all others */
    bool cors;
    /* Writes the body of replies that the server itself sends: 400, 404, 405, 413, 431, 503. */
    void (*refuse)(struct request *rq, int status);
    const void *context; /* for refuse() */
};

struct route {
    enum method method;
    bool ignores_body; /* a body of any size is read and dropped */
    size_t body_max;   /* in bytes; 0: REQUEST_BODY_MAX */
    /* A part in braces, "/v1/customers/{id}", matches anything: rq->params, in order. A star behind the last slash
     * matches everything beneath. */
    const char *path;
    /* Runs on the loop's thread: must not block. Calls reply_send(), or has another thread call it later. */
    void (*handle)(struct request *rq);
    void *context;                /* for handle() */
    bool waits_for_replay;        /* refused with 503 while a restored database waits for the replay of erasures */
    const struct hold_rule *hold; /* NULL: not held. Otherwise every reply of this route is held, including errors */
};

struct router {
    const struct family *families; /* the longest prefix first; the last is "/" */
    size_t family_count;
    const struct route *routes;
    size_t route_count;
};

/* Sets rq->family and rq->route (NULL when none matches). Returns the methods of the path: 0 for an unknown path. */
unsigned router_find(const struct router *router, struct request *rq);
/* "POST, OPTIONS" for an Allow header. */
struct str methods_list(struct arena *arena, unsigned known);
/* Calls the route's handler, or refuses. */
void route_handle(struct request *rq);
/* refuse() of the "/" family: {"error":"NOT_FOUND",…}. */
void refuse_by_status(struct request *rq, int status);

#endif
