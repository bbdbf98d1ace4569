/* The tiers of rate limits, their limits, and the keys under which requests are counted.
 *
 * A tier counts by subject: one for all requests, a client's network (an IPv4 address, an IPv6 /64), an IPv6 client's site
 * (its /48), an e-mail address, or an address and a network. The database
 * stores the subject's HMAC under a key derived from RECLAIM_SECRET_KEY, so that counts contain no personal data. */
#ifndef LIMITS_TIERS_H
#define LIMITS_TIERS_H

#include "base/digest.h"
#include "base/ip.h"

enum tier {
    TIER_GLOBAL,          /* requesting a code, by anyone */
    TIER_GLOBAL_VALIDATE, /* entering a code: counted separately, so that a flood of one step leaves the other */
    TIER_IP,
    TIER_IP_SITE,
    TIER_EMAIL,          /* requesting a code */
    TIER_EMAIL_VALIDATE, /* entering a code: refuses wrong ones only */
    TIER_PROBE,
    TIER_PROBE_SITE,
    TIER_LOGIN,         /* passwords tried for an address from a client */
    TIER_LOGIN_ADDRESS, /* for an address from anywhere */
    TIER_LOGIN_IP,      /* from a client for any address */
    TIER_LOGIN_IP_SITE,
    TIER_CODE,    /* sign-in codes requested for an address */
    TIER_CODE_IP, /* and from a client */
    TIER_CODE_IP_SITE,
    TIER_COUNT,
};

struct limit {
    int64_t requests; /* 0: the tier is off */
    int64_t seconds;
};

/* Ten times the limit: for all networks of a site, or all that try one address. */
struct limit limit_of_many(struct limit one);

struct tier_table {
    struct limit of[TIER_COUNT];
};

/* A tier and the subject counted in it. */
struct counted {
    enum tier tier;
    struct digest subject; /* all zero where everyone is counted */
};

/* The purpose for digest_derive() of the key that subjects are hashed with. */
#define IDENTIFIER_PURPOSE "identifiers"

const char *tier_name(enum tier tier); /* "ip"; the part of the key before the colon */
bool tier_counts_everyone(enum tier tier);

struct counted counted_globally(void);
struct counted counted_for_everyone(enum tier tier); /* TIER_GLOBAL, TIER_GLOBAL_VALIDATE */
struct counted counted_by_ip(enum tier tier, const struct digest *key, const struct ip *client);
/* The tier that counts the same for the /48s of IPv6 clients, with ten times the limit; TIER_COUNT when there is none. */
enum tier tier_of_sites(enum tier tier);
struct counted counted_by_site(enum tier tier, const struct digest *key, const struct ip *client);
struct counted counted_by_email_and_ip(enum tier tier, const struct digest *key, struct str normalised,
                                       const struct ip *client);
struct counted counted_by_email(enum tier tier, const struct digest *key, struct str normalised);

#define COUNTED_KEY_MAX 96
/* "global", "ip:<64 hex digits>", …: the key in reclaim.rate_limits. reclaim.limit_tier_is_own() has the same names. */
void counted_key(const struct counted *c, char into[COUNTED_KEY_MAX]);

#endif
