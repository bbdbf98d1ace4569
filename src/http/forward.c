#include "http/forward.h"

#include <string.h>

#include "base/log.h"
#include "http/loop.h"

static bool decode_params(struct request *rq);

void request_forward(struct request *rq, const struct forward *to)
{
    struct forward *f = arena_take(rq->arena, sizeof *f);
    if (!f) {
        rq->family->refuse(rq, 503);
        reply_send(rq, 503);
        return;
    }
    *f = *to;
    f->route = rq->route;
    f->family = rq->family;
    f->method_before = rq->method;
    f->path_before = rq->path;
    f->body_before = rq->body;
    memcpy(f->params, rq->params, sizeof f->params);
    if (f->bearer)
        f->authorization = arena_printf(rq->arena, "Bearer %s", f->bearer);

    rq->forward = f;
    rq->method = f->method;
    rq->path = f->path;
    rq->body = f->body.at ? f->body : STR("");
    rq->route = NULL;
    rq->family = NULL;
    rq->wants_problem = false;
    rq->reply = (struct reply){0};
    router_find(visit_router(rq), rq);
    if (!rq->route || !decode_params(rq)) {
        rq->family->refuse(rq, 404);
        reply_send(rq, 404);
        return;
    }
    if (!rq->hold.until_ns)
        rq->hold = hold_draw(rq->route->hold, rq->arrived_ns);
    route_handle(rq);
}

/* Callers build paths from ids: nothing in them is escaped. */
static bool decode_params(struct request *rq)
{
    for (size_t i = 0; i < REQUEST_PARAMS_MAX; i++)
        if (rq->params[i].at && !(rq->params[i] = arena_copy(rq->arena, rq->params[i])).at)
            return false;
    return true;
}

struct str forward_header(const struct forward *f, const char *name)
{
    if (strcasecmp(name, "Authorization") == 0)
        return f->authorization;
    if (strcasecmp(name, "X-Reclaim-Customer") == 0)
        return str_of(f->customer);
    if (strcasecmp(name, "Accept-Language") == 0)
        return str_of(f->language);
    return (struct str){NULL, 0};
}

struct str forward_query(const struct forward *f, const char *name)
{
    struct str rest = f->query, pair, key;
    while (rest.at && str_split(&rest, '&', &pair))
        if (str_split(&pair, '=', &key) && str_eq(key, str_of(name)))
            return pair.at ? pair : STR("");
    return (struct str){NULL, 0};
}

/* The page's own request again, with the endpoint's answer in rq->reply. */
static void restore(struct request *rq, const struct forward *f)
{
    rq->forward = NULL;
    rq->route = f->route;
    rq->family = f->family;
    rq->method = f->method_before;
    rq->path = f->path_before;
    rq->body = f->body_before;
    memcpy(rq->params, f->params, sizeof f->params);
}

bool forward_answered(struct request *rq)
{
    struct forward *f = rq->forward;
    restore(rq, f);
    if (!rq->second)
        return f->done(rq, f->context);

    struct reply first = rq->reply;
    rq->reply = *rq->otherwise;
    bool both = f->done(rq, f->context);
    *rq->otherwise = rq->reply;
    rq->reply = first;
    return f->done(rq, f->context) && both;
}
