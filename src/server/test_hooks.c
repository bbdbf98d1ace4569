#include "server/test_hooks.h"

#include <stdlib.h>

#include "api/db_request.h"
#include "base/clock.h"
#include "base/json.h"

/* Answers as the probe refuses, without deciding anything: what the benchmarks compare a refusal with. */
static void constant(struct request *rq)
{
    static const struct {
        const char *name, *value;
    } headers[] = {{"X-RateLimit-Limit", "30"},
                   {"X-RateLimit-Remaining", "0"},
                   {"X-RateLimit-Reset", "1730040000"},
                   {"Retry-After", "45"},
                   {"RateLimit-Policy", "\"probe\";q=30;w=60"},
                   {"RateLimit", "\"probe\";r=0;t=45"}};
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        reply_header(rq, headers[i].name, headers[i].value);
    reply_body(
        rq, "application/json",
        STR("{\"success\":false,\"correlationId\":\"00000000-0000-4000-8000-000000000000\",\"error\":{\"code\":"
            "\"ORPHAN_CLEANUP_003\",\"message\":\"Too many requests. Please wait 45 seconds before trying again.\","
            "\"httpStatus\":429,\"retryAfter\":45}}"));
    reply_send(rq, 429);
}

/* Answers as the gate passes a request. */
static void constant_pass(struct request *rq)
{
    reply_header(rq, "X-Customer-Id", "00000000-0000-4000-8000-000000000000");
    reply_header(rq, "X-Customer-Status", "active");
    reply_send(rq, 200);
}

/* Answers with the headers and so many bytes as a page has on a first visit. */
static void constant_page(struct request *rq)
{
    static char body[64 * 1024];
    static const struct {
        const char *name, *value;
    } headers[] = {{"Set-Cookie", "reclaim_visitor=00000000000000000000000000000000; Path=/; Max-Age=15552000; "
                                  "SameSite=Lax; HttpOnly"},
                   {"Content-Security-Policy",
                    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
                   {"Referrer-Policy", "same-origin"},
                   {"Cross-Origin-Opener-Policy", "same-origin"}};
    int64_t bytes;
    if (str_to_i64(rq->params[0], 0, sizeof body, &bytes))
        bytes = 0;
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        reply_header(rq, headers[i].name, headers[i].value);
    reply_body(rq, "text/html; charset=utf-8", (struct str){body, (size_t)bytes});
    reply_send(rq, 200);
}

/* The table of routes as JSON: [{"method":…,"path":…,"admits":[…]}]; "admits" is null where no credentials are asked for. */
static void list_routes(struct request *rq)
{
    const struct router *router = rq->route->context;
    AUTO(json) json_t *list = json_array();
    for (size_t i = 0; i < router->route_count; i++) {
        const struct route *route = &router->routes[i];
        const struct guarded *guarded = route->handle == authenticate_guarded ? route->context : NULL;
        json_t *admits = guarded ? json_array() : json_null();
        for (size_t n = 0; guarded && admits_name(guarded->admits, n); n++)
            json_array_append_new(admits, json_string(admits_name(guarded->admits, n)));
        struct str method = methods_list(rq->arena, (unsigned)route->method);
        json_array_append_new(list, json_pack("{s:s%, s:s, s:o}", "method", method.at, method.len, "path", route->path,
                                              "admits", admits));
    }
    char *text = json_dumps(list, 0);
    if (text)
        reply_json(rq, 200, str_of(text));
    else
        reply_fault(rq, ERR_MEMORY);
    free(text);
}

void test_hooks_add_routes(struct routes *r)
{
    if (getenv("RECLAIM_TEST_ROUTES"))
        routes_add(r, (struct route){
                          .method = METHOD_GET, .path = "/test/routes", .handle = list_routes, .context = &r->router});
    if (!getenv("RECLAIM_TEST_CONSTANT"))
        return;
    routes_add(r, (struct route){.method = METHOD_POST, .path = "/functions/v1/constant", .handle = constant});
    routes_add(r, (struct route){.method = METHOD_GET, .path = "/constant-page/{bytes}", .handle = constant_page});
    routes_add(r, (struct route){
                      .method = METHOD_ANY, .path = "/constant-pass", .handle = constant_pass, .ignores_body = true});
}

static int64_t read_ms(const char *name, int64_t otherwise_ns)
{
    int64_t ms;
    const char *text = getenv(name);
    return text && str_to_i64(str_of(text), 1, 60000, &ms) == OK ? ms * NS_PER_MS : otherwise_ns;
}

int64_t test_hooks_request_deadline_ns(int64_t otherwise_ns)
{
    return read_ms("RECLAIM_TEST_REQUEST_DEADLINE_MS", otherwise_ns);
}

int64_t test_hooks_key_set_every_ns(int64_t otherwise_ns)
{
    return read_ms("RECLAIM_TEST_KEY_SET_EVERY_MS", otherwise_ns);
}

int64_t test_hooks_key_set_again_ns(int64_t otherwise_ns)
{
    return read_ms("RECLAIM_TEST_KEY_SET_AGAIN_MS", otherwise_ns);
}

bool test_hooks_count_loopback(void)
{
    return getenv("RECLAIM_TEST_COUNT_LOOPBACK") != NULL;
}

void test_hooks_shift_clocks(void)
{
    int64_t days;
    const char *text = getenv("RECLAIM_TEST_CLOCK_AHEAD_DAYS");
    if (text && str_to_i64(str_of(text), 1, 1000, &days) == OK)
        clock_shift(days * 86400 * NS_PER_S);
}
