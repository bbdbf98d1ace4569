#include "http/policy.h"

#include <string.h>

#include "base/digest.h"

bool policy_trusts(const struct http_policy *policy, const struct ip *ip)
{
    for (size_t i = 0; i < policy->proxy_count; i++)
        if (cidr_holds(&policy->proxies[i], ip))
            return true;
    return false;
}

bool policy_knows_key(const struct http_policy *policy, struct str given)
{
    if (!policy->proxy_key)
        return false;
    struct digest wanted = digest_quick(str_of(policy->proxy_key)), is = digest_quick(given);
    return digest_eq(&wanted, &is); /* digests: the comparison takes as long whatever the lengths */
}

bool ip_is_loopback(const struct ip *ip)
{
    static const struct ip v6 = {{[15] = 1}};
    return ip_is_v4(ip) ? ip->bytes[12] == 127 : memcmp(ip, &v6, sizeof v6) == 0;
}

static bool ip_is_private(const struct ip *ip)
{
    const uint8_t *b = ip->bytes;
    if (!ip_is_v4(ip))
        return (b[0] & 0xfe) == 0xfc || (b[0] == 0xfe && (b[1] & 0xc0) == 0x80);
    b += 12;
    return b[0] == 10 || (b[0] == 172 && (b[1] & 0xf0) == 16) || (b[0] == 192 && b[1] == 168) ||
           (b[0] == 169 && b[1] == 254) || (b[0] == 100 && (b[1] & 0xc0) == 64);
}

bool ip_private_network(const struct ip *ip, char into[IP_TEXT_MAX + 4])
{
    struct ip network = ip_network(ip);
    bool v4 = ip_is_v4(ip);
    if (ip_is_loopback(ip)) {
        memcpy(into, v4 ? "127.0.0.0/8" : "::1/128", v4 ? 12 : 8);
        return true;
    }
    if (!ip_is_private(ip))
        return false;
    if (v4)
        network.bytes[15] = 0;
    ip_format(&network, into);
    memcpy(into + strlen(into), v4 ? "/24" : "/64", 4);
    return true;
}

/* Removes and returns the part after the last comma of *list. */
static struct str last_hop(struct str *list)
{
    size_t start = list->len;
    while (start > 0 && list->at[start - 1] != ',')
        start--;
    struct str hop = str_trim((struct str){list->at + start, list->len - start});
    list->len = start ? start - 1 : 0;
    return hop;
}

/* Some proxies write "192.0.2.1:4711" or "[2001:db8::1]:4711". */
static enum err hop_parse(struct str hop, struct ip *ret)
{
    if (ip_parse(hop, ret) == OK)
        return OK;
    for (size_t i = hop.len; i > 0; i--)
        if (hop.at[i - 1] == ':')
            return ip_parse((struct str){hop.at, i - 1}, ret);
    return ERR_INPUT;
}

struct ip client_address(const struct http_policy *policy, struct ip peer, bool has_key, struct str forwarded)
{
    struct ip client = peer;
    while (forwarded.len > 0) {
        struct ip hop;
        bool trusted = policy_trusts(policy, &client);
        if (!trusted && !has_key)
            return client;
        has_key = has_key && trusted; /* it vouches for one caller */
        if (hop_parse(last_hop(&forwarded), &hop))
            return client; /* malformed entry of a trusted proxy: use the last valid address */
        client = hop;
    }
    return client;
}

static bool origin_allowed(const struct http_policy *policy, struct str origin)
{
    for (size_t i = 0; i < policy->origin_count; i++)
        if (str_eq(origin, str_of(policy->origins[i])))
            return true;
    return false;
}

void cors_headers(const struct http_policy *policy, struct request *rq, struct str origin, unsigned preflight_methods)
{
    bool any = policy->origin_count == 1 && strcmp(policy->origins[0], "*") == 0;
    if (!any)
        reply_header(rq, "Vary", "Origin");
    if (any)
        reply_header(rq, "Access-Control-Allow-Origin", "*");
    else if (origin.at && origin_allowed(policy, origin))
        reply_header(rq, "Access-Control-Allow-Origin", arena_copy(rq->arena, origin).at);
    else
        return;

    if (!preflight_methods) {
        reply_header(rq, "Access-Control-Expose-Headers",
                     "x-correlation-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, "
                     "ratelimit-policy, ratelimit");
        return;
    }
    reply_header(rq, "Access-Control-Allow-Methods", methods_list(rq->arena, preflight_methods).at);
    /* What supabase-js sends, and what callers of Reclaim add; tests/browser/supabase-js.test.js compares. */
    reply_header(rq, "Access-Control-Allow-Headers",
                 "authorization, apikey, x-client-info, x-region, x-retry-count, x-supabase-api-version, traceparent, "
                 "tracestate, baggage, content-type, x-correlation-id, x-api-key, x-reclaim-customer");
    reply_header(rq, "Access-Control-Max-Age", "86400");
}
