/* Passes a request on to another route of the same server: a page asks the JSON endpoint, whose limits, holds and audit
 * apply unchanged, and makes its page of the answer.
 *
 *   static bool answered(struct request *rq, void *page) { …read rq->reply, write the page's…; return true; }
 *   …
 *   request_forward(rq, &(struct forward){.method = METHOD_POST, .path = STR("/auth/login"), .body = json,
 *                                         .done = answered, .context = page});
 *
 * The endpoint sees the headers and the query given here, and nothing else of what the client sent but its address. */
#ifndef HTTP_FORWARD_H
#define HTTP_FORWARD_H

#include "http/router.h"

struct forward {
    enum method method;
    struct str path;      /* without a query */
    struct str query;     /* "limit=50&q=a%20b"; absent: none */
    struct str body;      /* in the request's arena */
    const char *bearer;   /* for Authorization; NULL: none */
    const char *customer; /* for X-Reclaim-Customer; NULL: none */
    const char *language; /* for Accept-Language; NULL: none */
    /* Called when the endpoint has answered, on its thread, with the answer in rq->reply. Replaces the reply, its status
     * included, and returns true; or calls request_forward() again and returns false. An answer that may still be replaced
     * while it is held has two versions: then it is called for each, must not forward, and must not free what the second
     * call needs. */
    bool (*done)(struct request *rq, void *context);
    void *context;
    /* Private to forward.c: what the request was before. */
    const struct route *route;
    const struct family *family;
    enum method method_before;
    struct str path_before, body_before, params[REQUEST_PARAMS_MAX];
    struct str authorization;
};

/* From the handler, or from `done`. The route must exist: a path that is not served ends with 404 in `done`. A held route
 * holds the page's reply too. */
void request_forward(struct request *rq, const struct forward *to);

/* Private to src/http: */
struct str forward_header(const struct forward *f, const char *name);
struct str forward_query(const struct forward *f, const char *name);
/* Calls `done`; false when the request was passed on once more. */
bool forward_answered(struct request *rq) MUST_CHECK;

#endif
