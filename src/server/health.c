#include "server/health.h"

#include "base/metrics.h"
#include "base/restored.h"

static const struct family plain[] = {{.prefix = "/", .refuse = refuse_by_status}};

static void livez(struct request *rq)
{
    reply_body(rq, "application/json", STR("{\"status\":\"live\"}"));
    reply_send(rq, 200);
}

static void readyz(struct request *rq)
{
    struct health *health = rq->route->context;
    struct lanes *lanes = atomic_load(&health->lanes);
    if (atomic_load(&health->draining))
        reply_body(rq, "application/json", STR("{\"status\":\"draining\"}"));
    else if (!lanes)
        reply_body(rq, "application/json", STR("{\"status\":\"starting\"}"));
    else if (atomic_load(&health->pulse->silent) || lanes_read_state(lanes).connected == 0)
        reply_body(rq, "application/json", STR("{\"status\":\"database_down\"}"));
    else if (restored_is_known())
        reply_body(rq, "application/json", STR("{\"status\":\"restored\"}"));
    else if (lanes_is_stalled(lanes, LANE_GATE))
        reply_body(rq, "application/json", STR("{\"status\":\"overloaded\"}"));
    else {
        reply_body(rq, "application/json", STR("{\"status\":\"ready\"}"));
        reply_send(rq, 200);
        return;
    }
    reply_send(rq, 503);
}

static void metrics(struct request *rq)
{
    AUTO(buf) struct buf out = buf_new((size_t)4 << 20);
    metrics_render(&out);
    struct str text = arena_copy(rq->arena, buf_str(&out));
    if (out.failed || !text.at) {
        refuse_by_status(rq, 503);
        reply_send(rq, 503);
        return;
    }
    reply_body(rq, METRICS_CONTENT_TYPE, text);
    reply_send(rq, 200);
}

struct router health_router(struct health *health)
{
    static struct route routes[] = {
        {.method = METHOD_GET, .path = "/livez", .handle = livez},
        {.method = METHOD_GET, .path = "/readyz", .handle = readyz},
        {.method = METHOD_GET, .path = "/metrics", .handle = metrics},
    };
    for (size_t i = 0; i < COUNT_OF(routes); i++)
        routes[i].context = health;
    return (struct router){plain, COUNT_OF(plain), routes, COUNT_OF(routes)};
}
