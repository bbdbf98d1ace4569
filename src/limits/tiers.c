#include "limits/tiers.h"

#include <stdio.h>

static const char *const names[TIER_COUNT] = {
    [TIER_GLOBAL] = "global", [TIER_IP] = "ip", [TIER_EMAIL] = "email", [TIER_EMAIL_VALIDATE] = "email-validate",
    [TIER_PROBE] = "probe",
};

const char *tier_name(enum tier tier)
{
    return names[tier];
}

struct charge charge_global(void)
{
    return (struct charge){.tier = TIER_GLOBAL};
}

struct charge charge_ip(enum tier tier, const struct digest *key, const struct ip *client)
{
    struct ip subject = ip_neighbourhood(client);
    return (struct charge){tier, digest_hmac(key, (struct str){(const char *)subject.bytes, sizeof subject.bytes})};
}

struct charge charge_email(enum tier tier, const struct digest *key, struct str normalised)
{
    return (struct charge){tier, digest_hmac(key, normalised)};
}

void charge_key(const struct charge *c, char into[CHARGE_KEY_MAX])
{
    if (c->tier == TIER_GLOBAL) {
        snprintf(into, CHARGE_KEY_MAX, "%s", names[c->tier]);
        return;
    }
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(&c->subject, hex);
    snprintf(into, CHARGE_KEY_MAX, "%s:%s", names[c->tier], hex);
}
