/* Settings that may change while the server runs: trusted proxies, allowed origins, the access log. */
#ifndef HTTP_POLICY_H
#define HTTP_POLICY_H

#include "http/router.h"

struct http_policy {
    const struct cidr *proxies; /* peers whose X-Forwarded-For is trusted */
    size_t proxy_count;
    const char *const *origins; /* allowed for cross-origin calls; "*" alone allows all */
    size_t origin_count;
    bool access_log; /* one log line for each request */
    /* Of callers that are believed about X-Forwarded-For whatever their address: edge functions. NULL: none. */
    const char *proxy_key;
};

bool policy_trusts(const struct http_policy *policy, const struct ip *peer); /* a trusted proxy */
bool ip_is_loopback(const struct ip *ip);
/* For an address of a network that is not on the internet, loopback included: writes the network, "10.1.2.0/24" or
 * "fd00:1:2:3::/64". False for all others. */
bool ip_private_network(const struct ip *ip, char into[IP_TEXT_MAX + 4]);

/* Whether this is the proxy key; in constant time. */
bool policy_knows_key(const struct http_policy *policy, struct str given);

/* The client's address: the right-most address of X-Forwarded-For that is not a trusted proxy. The client can forge
 * everything to the left of it. With the proxy key that address is the caller that has the key, and the client is the one
 * to its left. `forwarded` holds all such headers in order, joined by commas. */
struct ip client_address(const struct http_policy *policy, struct ip peer, bool has_key, struct str forwarded);

/* Adds the CORS headers for this origin to the reply, including those of a preflight unless preflight_methods is 0. */
void cors_headers(const struct http_policy *policy, struct request *rq, struct str origin, unsigned preflight_methods);

#endif
