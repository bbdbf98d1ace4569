#include "limits/tiers.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TIER_COUNT] = {
    [TIER_GLOBAL] = "global",     [TIER_IP] = "ip",
    [TIER_EMAIL] = "email",       [TIER_EMAIL_VALIDATE] = "email-validate",
    [TIER_PROBE] = "probe",       [TIER_LOGIN] = "login",
    [TIER_LOGIN_IP] = "login-ip", [TIER_CODE] = "code",
    [TIER_CODE_IP] = "code-ip",
};

const char *tier_name(enum tier tier)
{
    return names[tier];
}

struct counted counted_globally(void)
{
    return (struct counted){.tier = TIER_GLOBAL};
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

struct counted counted_by_email(enum tier tier, const struct digest *key, struct str normalised)
{
    return (struct counted){tier, digest_hmac(key, normalised)};
}

void counted_key(const struct counted *c, char into[COUNTED_KEY_MAX])
{
    if (c->tier == TIER_GLOBAL) {
        snprintf(into, COUNTED_KEY_MAX, "%s", names[c->tier]);
        return;
    }
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&c->subject, hex);
    snprintf(into, COUNTED_KEY_MAX, "%s:%s", names[c->tier], hex);
}
