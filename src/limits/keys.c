#include "limits/keys.h"

#include "base/email.h"

enum err limits_key_parse(struct arena *arena, struct str text, struct limits_key *ret)
{
    struct str subject = text, kind;
    if (str_eq(text, STR("global"))) {
        ret->kind = LIMITS_GLOBAL;
        return OK;
    }
    if (!str_split(&subject, ':', &kind))
        return ERR_INPUT;
    ret->kind = str_eq(kind, STR("ip")) ? LIMITS_IP : LIMITS_EMAIL;
    if (ret->kind == LIMITS_IP)
        return ip_parse(subject, &ret->ip);
    return str_eq(kind, STR("email")) ? email_normalise(arena, subject, &ret->email) : ERR_INPUT;
}

/* The tiers of clients, each followed by that of sites for an IPv6 address. */
static size_t counted_under_ip(const struct ip *ip, const struct digest *identifier_key,
                               struct counted into[LIMITS_KEY_TIERS])
{
    static const enum tier tiers[] = {TIER_IP, TIER_PROBE, TIER_LOGIN_IP, TIER_CODE_IP};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        into[count++] = counted_by_ip(tiers[i], identifier_key, ip);
        if (!ip_is_v4(ip))
            into[count++] = counted_by_site(tier_of_sites(tiers[i]), identifier_key, ip);
    }
    return count;
}

static size_t counted_under_email(const struct limits_key *key, const struct digest *identifier_key,
                                  struct counted into[LIMITS_KEY_TIERS])
{
    static const enum tier tiers[] = {TIER_EMAIL, TIER_EMAIL_VALIDATE, TIER_LOGIN_ADDRESS, TIER_CODE};
    size_t count = 0;
    for (size_t i = 0; i < COUNT_OF(tiers); i++)
        into[count++] = counted_by_email(tiers[i], identifier_key, key->email);
    if (key->has_client)
        into[count++] = counted_by_email_and_ip(TIER_LOGIN, identifier_key, key->email, &key->ip);
    return count;
}

size_t limits_key_counted(const struct limits_key *key, const struct digest *identifier_key,
                          struct counted into[LIMITS_KEY_TIERS])
{
    switch (key->kind) {
    case LIMITS_IP:
        return counted_under_ip(&key->ip, identifier_key, into);
    case LIMITS_EMAIL:
        return counted_under_email(key, identifier_key, into);
    default:
        into[0] = counted_for_everyone(TIER_GLOBAL);
        into[1] = counted_for_everyone(TIER_GLOBAL_VALIDATE);
        return 2;
    }
}
