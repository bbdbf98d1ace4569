#include "server/listeners.h"

#include "base/clock.h"
#include "server/test_hooks.h"

#define REQUEST_DEADLINE_NS (10 * NS_PER_S)
#define IDLE_NS (75 * NS_PER_S)
#define OPS_CONNECTIONS 256

struct server_config listener_public(const struct settings *s, const struct router *router,
                                     const struct http_policy *policy)
{
    return (struct server_config){
        .name = "public",
        .address = s->listen,
        .loops = (int)s->workers,
        .connections_max = (int)s->max_connections,
        .connections_per_network = s->connections_per_network > 0 ? (int)s->connections_per_network : 0,
        .counts_loopback = test_hooks_count_loopback(),
        .logs_requests = true,
        .request_deadline_ns = test_hooks_request_deadline_ns(REQUEST_DEADLINE_NS),
        .idle_ns = IDLE_NS,
        .router = router,
        .policy = policy,
    };
}

struct server_config listener_ops(const struct settings *s, const struct router *router,
                                  const struct http_policy *policy)
{
    return (struct server_config){
        .name = "ops",
        .address = s->ops_listen,
        .loops = 1,
        .connections_max = OPS_CONNECTIONS,
        .request_deadline_ns = test_hooks_request_deadline_ns(REQUEST_DEADLINE_NS),
        .idle_ns = IDLE_NS,
        .router = router,
        .policy = policy,
    };
}
