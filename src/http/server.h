/* HTTP/1.1 on a few event loops: a thread each, never blocked, never near a database.
 *
 * A request that cannot be answered at once is suspended: from then on it is an arena of about a kilobyte and, once its
 * answer is ready, an entry on the loop's timer wheel until it may leave (http/hold.h). */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "http/policy.h"
#include "http/router.h"

struct server;

struct server_config {
    const char *name;    /* for logs and metrics: "public", "ops" */
    const char *address; /* "127.0.0.1:8080", "[::1]:8080"; port 0 takes a free one */
    int loops;
    int connections_max; /* open at once, over all loops; more wait to be accepted */
    int64_t
        request_deadline_ns; /* for a whole request to arrive, from its first line or, on an idle connection, sooner */
    int64_t idle_ns;         /* how long a connection may wait for its next request */
    const struct router *router;
    const struct http_policy *policy;
};

#define REQUEST_BODY_MAX ((size_t)16 * 1024)

enum err server_start(const struct server_config *config, struct server **ret, struct why *why) MUST_CHECK;
/* Stops listening, gives every answer that is under way up to the deadline, ends the loops. False when some were not
 * ready by then; their memory must be left alone. */
bool server_stop(struct server *server, int64_t deadline_ns);

const char *server_address(const struct server *server); /* with the real port */
/* The old policy must stay valid until server_stop. */
void server_set_policy(struct server *server, const struct http_policy *policy);

struct server_state {
    int connections;
    int working; /* requests without an answer yet */
    int held;    /* answers waiting for their instant */
};
struct server_state server_look(const struct server *server);

#endif
