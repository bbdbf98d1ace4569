/* Forwarded headers: nobody becomes someone else by what they write to the left of a trusted proxy's word.
 * The input's lines: trusted networks, separated by commas; the peer; the header. */
#include "base/ip.h"
#include "fuzz.h"
#include "http/policy.h"

#define NETWORKS_MAX 8

static bool same(const struct ip *a, const struct ip *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static void check_text(const struct ip *ip)
{
    char text[IP_TEXT_MAX];
    struct ip again;
    ip_format(ip, text);
    PROMISE(ip_parse(str_of(text), &again) == OK && same(ip, &again));
    struct ip near = ip_network(ip), nearer = ip_network(&near);
    PROMISE(same(&near, &nearer));
}

static size_t read_networks(struct str list, struct cidr *into)
{
    struct str part;
    size_t count = 0;
    while (count < NETWORKS_MAX && str_split(&list, ',', &part)) {
        if (cidr_parse(part, &into[count]))
            continue;
        PROMISE(into[count].bits >= 0 && into[count].bits <= 128 && cidr_holds(&into[count], &into[count].network));
        check_text(&into[count].network);
        count++;
    }
    return count;
}

static bool is_trusted(const struct http_policy *policy, const struct ip *ip)
{
    for (size_t i = 0; i < policy->proxy_count; i++)
        if (cidr_holds(&policy->proxies[i], ip))
            return true;
    return false;
}

/* Whoever is not a proxy may write anything into the header that reaches the first proxy. */
static void check_invented(const struct http_policy *policy, struct ip peer, bool has_key, struct str header,
                           struct ip client)
{
    struct arena *arena = fuzz_arena();
    struct str longer = arena_printf(arena, "203.0.113.99, %.*s", STR_ARGS(header));
    if (longer.at && !memchr(header.at, '\0', header.len)) {
        struct ip still = client_address(policy, peer, has_key, longer);
        PROMISE(same(&still, &client));
    }
    arena_free(arena);
}

/* The caller that has the key stands where the client would without it; what it was told by its own client is invented. */
static void check_key(const struct http_policy *policy, struct ip peer, struct str header, struct ip without)
{
    struct ip client = client_address(policy, peer, true, header);
    check_text(&client);
    if (!same(&client, &without) && !is_trusted(policy, &client))
        check_invented(policy, peer, true, header, client);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str whole = fuzz_text(data, size), header = whole, networks, peer_text;
    struct cidr proxies[NETWORKS_MAX];
    struct ip peer;
    if (str_split(&header, '\n', &networks) && str_split(&header, '\n', &peer_text) && header.at &&
        ip_parse(peer_text, &peer) == OK) {
        struct http_policy policy = {.proxies = proxies, .proxy_count = read_networks(networks, proxies)};
        struct ip client = client_address(&policy, peer, false, header);
        check_text(&peer);
        check_text(&client);
        if (!is_trusted(&policy, &peer))
            PROMISE(same(&client, &peer));
        if (!is_trusted(&policy, &client))
            check_invented(&policy, peer, false, header, client);
        check_key(&policy, peer, header, client);
    }
    fuzz_text_free(whole);
    return 0;
}
