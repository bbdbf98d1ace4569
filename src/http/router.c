#include "http/router.h"

#include <string.h>

#include "base/restored.h"

static const struct {
    const char *name;
    enum method method;
} methods[] = {
    {"GET", METHOD_GET},       {"HEAD", METHOD_HEAD},   {"POST", METHOD_POST},       {"PUT", METHOD_PUT},
    {"DELETE", METHOD_DELETE}, {"PATCH", METHOD_PATCH}, {"OPTIONS", METHOD_OPTIONS},
};

enum method method_parse(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (strcmp(name, methods[i].name) == 0)
            return methods[i].method;
    return METHOD_OTHER;
}

const char *method_name(enum method method)
{
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (methods[i].method == method)
            return methods[i].name;
    return "other";
}

struct str methods_list(struct arena *arena, unsigned known)
{
    struct str list = STR("");
    for (size_t i = 0; i < COUNT_OF(methods); i++)
        if (known & methods[i].method)
            list = arena_printf(arena, "%s%s%s", list.at ? list.at : "", list.len ? ", " : "", methods[i].name);
    return list;
}

/* Compares part by part; parts that match a name in braces are stored in `params`. */
static bool path_matches(struct str path, struct str pattern, struct str params[REQUEST_PARAMS_MAX])
{
    if (!memchr(pattern.at, '{', pattern.len)) {
        if (pattern.at[pattern.len - 1] == '*')
            return str_starts(path, (struct str){pattern.at, pattern.len - 1});
        return str_eq(path, pattern);
    }
    struct str wanted, given, found[REQUEST_PARAMS_MAX] = {{0}};
    size_t count = 0;
    while (str_split(&pattern, '/', &wanted)) {
        if (!str_split(&path, '/', &given))
            return false;
        if (wanted.len && *wanted.at == '{' && given.len && count < REQUEST_PARAMS_MAX)
            found[count++] = given;
        else if (!str_eq(wanted, given))
            return false;
    }
    if (str_split(&path, '/', &given))
        return false;
    memcpy(params, found, sizeof found);
    return true;
}

unsigned router_find(const struct router *router, struct request *rq)
{
    for (size_t i = 0; i < router->family_count && !rq->family; i++)
        if (str_starts(rq->path, str_of(router->families[i].prefix)))
            rq->family = &router->families[i];
    if (!rq->family) /* "*" of an OPTIONS request, or a path without a leading slash */
        rq->family = &router->families[router->family_count - 1];

    unsigned known = 0;
    for (size_t i = 0; i < router->route_count; i++) {
        const struct route *route = &router->routes[i];
        if (!path_matches(rq->path, str_of(route->path), rq->params))
            continue;
        known |= route->method;
        /* HEAD is handled like GET; libmicrohttpd does not send the body. */
        if (route->method == METHOD_GET)
            known |= METHOD_HEAD;
        if (route->method == rq->method || route->method == METHOD_ANY ||
            (route->method == METHOD_GET && rq->method == METHOD_HEAD))
            rq->route = route;
    }
    if (known && rq->family->cors)
        known |= METHOD_OPTIONS;
    return known;
}

void refuse_by_status(struct request *rq, int status)
{
    switch (status) {
    case 400:
        reply_error(rq, "BAD_REQUEST", "The request is not well-formed HTTP.");
        return;
    case 404:
        reply_error(rq, "NOT_FOUND", "There is nothing at this address. /openapi.json lists what there is.");
        return;
    case 405:
        reply_error(rq, "METHOD_NOT_ALLOWED", "This address does not take that method; see the Allow header.");
        return;
    case 413:
        reply_error(rq, "TOO_LARGE",
                    rq->route && rq->route->body_max ? "The body is larger than this address takes."
                                                     : "The body is larger than 16 KiB.");
        return;
    case 431:
        reply_error(rq, "HEADERS_TOO_LARGE", "The request line and headers are larger than 14 KiB.");
        return;
    default:
        reply_error(rq, "UNAVAILABLE", "Reclaim cannot answer right now. Please try again in a moment.");
        return;
    }
}

void route_handle(struct request *rq)
{
    if (!rq->route->waits_for_replay || !restored_is_known()) {
        rq->route->handle(rq);
    } else if (strcmp(rq->family->prefix, "/functions/v1/") == 0) {
        rq->family->refuse(rq, 503); /* in the words of the contract */
        reply_send(rq, 503);
    } else {
        reply_refuse(rq, 503, "RESTORED",
                     "The database was restored from a backup: nothing is deleted, charged or mailed until an operator "
                     "has replayed the erasures since then.");
    }
}
