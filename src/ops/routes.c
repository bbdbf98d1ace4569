#include "ops/routes.h"

#include <stdlib.h>

#include "base/embedded.h"

static void openapi(struct request *rq)
{
    const struct embedded *description = embedded_find("openapi/openapi.json");
    if (!description) {
        refuse_plainly(rq, 404);
        reply_send(rq, 404);
        return;
    }
    reply_header(rq, "Access-Control-Allow-Origin", "*");
    reply_body(rq, "application/json", description->bytes);
    reply_send(rq, 200);
}

/* What a refusal costs without deciding it: the benchmarks' measure. Only there when RECLAIM_TEST_CONSTANT is set. */
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

void routes_init(struct routes *r, const struct settings *s, const struct routes_needs *needs)
{
    const struct contract *contract =
        s->contract == CONTRACT_CLEANUP_V1 ? &contract_cleanup_v1 : &contract_registration_recovery;
    r->probe.contract = contract;
    r->probe.orphans = needs->orphans;
    r->probe.identifier_key = needs->identifier_key;
    r->probe.admission = needs->admission;
    r->families[0] =
        (struct family){.prefix = "/functions/v1/", .cors = true, .refuse = contract_family_refuse, .room = contract};
    r->families[1] = (struct family){.prefix = "/", .refuse = refuse_plainly};
    r->routes[0] = (struct route){.method = METHOD_POST,
                                  .path = "/functions/v1/check-email-status",
                                  .handle = probe_handle,
                                  .room = &r->probe,
                                  .hold = &r->probe.hold};
    r->routes[1] = (struct route){.method = METHOD_GET, .path = "/openapi.json", .handle = openapi};
    r->routes[2] = (struct route){.method = METHOD_POST, .path = "/functions/v1/constant", .handle = constant};
    size_t count = COUNT_OF(r->routes) - (getenv("RECLAIM_TEST_CONSTANT") ? 0 : 1);
    r->router = (struct router){r->families, COUNT_OF(r->families), r->routes, count};
}

void routes_configure(struct routes *r, const struct settings *s)
{
    atomic_store(&r->probe.hold.hold_ms, s->probe_hold_ms);
    atomic_store(&r->probe.hold.sigma_ms, s->probe_hold_sigma_ms);
    atomic_store(&r->probe.timeout_ms, s->probe_timeout_ms);
}

enum err routes_open(struct routes *r, struct pool *pool)
{
    return probe_open(&r->probe, pool);
}

void routes_close(struct routes *r)
{
    probe_close(&r->probe);
}
