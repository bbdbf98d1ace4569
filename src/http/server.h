/* HTTP/1.1 on a few event loops. Each has its own thread, which never blocks and never accesses the database.
 *
 * A request that is not answered in its handler is suspended: it then needs an arena of about a kilobyte and, once its
 * reply is ready, an entry on the loop's timer wheel until it is sent (http/hold.h). */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/policy.h"
#include "http/router.h"

struct server;

struct server_config {
    const char *name;    /* for logs and metrics: "public", "ops" */
    const char *address; /* "127.0.0.1:8080", "[::1]:8080"; port 0: any free port */
    int loops;
    /* Open at the same time, in all loops. Beyond that the connection that waits longest for its client is closed
     * for a new one; without such a connection new ones wait to be accepted. */
    int connections_max;
    /* Open at the same time from one client network, others are closed at once; 0: no limit. Loopback and trusted proxies
     * are exempt. */
    int connections_per_network;
    bool logs_requests;          /* a line for each, while the policy says so */
    bool counts_loopback;        /* for tests: loopback is not exempt */
    int64_t request_deadline_ns; /* for a complete request: from a new connection's start, then from the first line */
    int64_t idle_ns;             /* how long a connection may wait for its next request */
    const struct router *router;
    const struct http_policy *policy;
};

#define REQUEST_BODY_MAX ((size_t)16 * 1024)

enum err server_start(const struct server_config *config, struct server **ret, struct why *why) MUST_CHECK;
/* Stops listening, sends outstanding replies until the deadline and ends the loops. False when some were not ready by
 * then; their memory is not freed, because other threads may still use it. */
bool server_stop(struct server *server, int64_t deadline_ns);

const char *server_address(const struct server *server); /* with the real port */
/* The old policy must stay valid until server_stop. */
void server_set_policy(struct server *server, const struct http_policy *policy);

struct server_state {
    int connections;
    int working;                 /* requests whose reply is not ready */
    int held;                    /* replies waiting for their release time */
    unsigned long long answered; /* requests, since the start */
};
struct server_state server_read_state(const struct server *server);

#endif
