/* What an operator may change while the server runs: whom to believe and whom to answer. */
#ifndef HTTP_POLICY_H
#define HTTP_POLICY_H

#include "http/router.h"

struct http_policy {
    const struct cidr *proxies; /* peers whose X-Forwarded-For is believed */
    size_t proxy_count;
    const char *const *origins; /* for cross-origin calls; "*" alone allows every one */
    size_t origin_count;
};

/* The client behind the peer: the right-most address of X-Forwarded-For that is not a trusted proxy's own. Anything to
 * the left of it is the client's to invent. `forwarded` holds all such headers in order, joined by commas. */
struct ip client_behind(const struct http_policy *policy, struct ip peer, struct str forwarded);

/* Adds the CORS headers for this origin to the answer, those of a preflight included when asked for. */
void cors_headers(const struct http_policy *policy, struct request *rq, struct str origin, unsigned preflight_methods);

#endif
