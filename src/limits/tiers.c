#include "limits/tiers.h"

#include <stdio.h>
#include <string.h>

#include "base/email.h"

static const char *const names[TIER_COUNT] = {
    [TIER_GLOBAL] = "global",
    [TIER_GLOBAL_VALIDATE] = "global-validate",
    [TIER_IP] = "ip",
    [TIER_IP_SITE] = "ip-site",
    [TIER_EMAIL] = "email",
    [TIER_EMAIL_VALIDATE] = "email-validate",
    [TIER_PROBE] = "probe",
    [TIER_PROBE_SITE] = "probe-site",
    [TIER_LOGIN] = "login",
    [TIER_LOGIN_ADDRESS] = "login-address",
    [TIER_LOGIN_IP] = "login-ip",
    [TIER_LOGIN_IP_SITE] = "login-ip-site",
    [TIER_CODE] = "code",
    [TIER_CODE_IP] = "code-ip",
    [TIER_CODE_IP_SITE] = "code-ip-site",
};

const char *tier_name(enum tier tier)
{
    return names[tier];
}

struct limit limit_of_many(struct limit one)
{
    return (struct limit){10 * one.requests, one.seconds};
}

enum tier tier_of_sites(enum tier tier)
{
    switch (tier) {
    case TIER_IP:
        return TIER_IP_SITE;
    case TIER_PROBE:
        return TIER_PROBE_SITE;
    case TIER_LOGIN_IP:
        return TIER_LOGIN_IP_SITE;
    case TIER_CODE_IP:
        return TIER_CODE_IP_SITE;
    default:
        return TIER_COUNT;
    }
}

struct counted counted_for_everyone(enum tier tier)
{
    return (struct counted){.tier = tier};
}

struct counted counted_globally(void)
{
    return counted_for_everyone(TIER_GLOBAL);
}

/* Hashing an address takes as long as the rest of a refusal from the cache. */
/* cache: subjects */
struct cached_subject {
    bool used;
    struct ip client;
    struct digest subject;
};

static struct digest subject_of(const struct digest *key, const struct ip *client)
{
    static _Thread_local struct {
        struct digest key;
        struct cached_subject of[64];
    } cache;
    if (memcmp(&cache.key, key, sizeof *key) != 0) {
        memset(&cache, 0, sizeof cache);
        cache.key = *key;
    }
    size_t hash = 0;
    for (size_t i = 0; i < sizeof client->bytes; i++)
        hash = hash * 31 + client->bytes[i];
    struct cached_subject *k = &cache.of[hash % COUNT_OF(cache.of)];
    if (!k->used || memcmp(&k->client, client, sizeof *client) != 0) {
        struct str bytes = {(const char *)client->bytes, sizeof client->bytes};
        *k = (struct cached_subject){true, *client, digest_hmac(key, bytes)};
    }
    return k->subject;
}

struct counted counted_by_ip(enum tier tier, const struct digest *key, const struct ip *client)
{
    struct ip subject = ip_network(client);
    return (struct counted){tier, subject_of(key, &subject)};
}

struct counted counted_by_site(enum tier tier, const struct digest *key, const struct ip *client)
{
    struct ip subject = ip_site(client);
    return (struct counted){tier, subject_of(key, &subject)};
}

struct counted counted_by_email(enum tier tier, const struct digest *key, struct str normalised)
{
    return (struct counted){tier, digest_hmac(key, normalised)};
}

/* The address ends where it ends: no e-mail address contains a zero byte. */
struct counted counted_by_email_and_ip(enum tier tier, const struct digest *key, struct str normalised,
                                       const struct ip *client)
{
    char bytes[EMAIL_MAX + 1 + sizeof client->bytes];
    struct ip network = ip_network(client);
    size_t len = normalised.len < EMAIL_MAX ? normalised.len : EMAIL_MAX;
    memcpy(bytes, normalised.at, len);
    bytes[len] = '\0';
    memcpy(bytes + len + 1, network.bytes, sizeof network.bytes);
    return (struct counted){tier, digest_hmac(key, (struct str){bytes, len + 1 + sizeof network.bytes})};
}

bool tier_counts_everyone(enum tier tier)
{
    return tier == TIER_GLOBAL || tier == TIER_GLOBAL_VALIDATE;
}

void counted_key(const struct counted *c, char into[COUNTED_KEY_MAX])
{
    if (tier_counts_everyone(c->tier)) {
        snprintf(into, COUNTED_KEY_MAX, "%s", names[c->tier]);
        return;
    }
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&c->subject, hex);
    snprintf(into, COUNTED_KEY_MAX, "%s:%s", names[c->tier], hex);
}
