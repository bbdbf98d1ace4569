/* The tiers of rate limits, their limits, and the keys under which requests are counted.
 *
 * A tier counts by subject: one for all requests, a client's address (IPv6 by /64) or an e-mail address. The database
 * stores the subject's HMAC under a key derived from RECLAIM_SECRET_KEY, so that counts contain no personal data. */
#ifndef LIMITS_TIERS_H
#define LIMITS_TIERS_H

#include "base/digest.h"
#include "base/ip.h"

enum tier {
    TIER_GLOBAL,
    TIER_IP,
    TIER_EMAIL,          /* requesting a code */
    TIER_EMAIL_VALIDATE, /* entering a code: counted separately, so that requests by others never block the owner */
    TIER_PROBE,
    TIER_LOGIN,    /* passwords tried for an address or a user */
    TIER_LOGIN_IP, /* and from a client */
    TIER_CODE,     /* sign-in codes requested for an address */
    TIER_CODE_IP,  /* and from a client */
    TIER_COUNT,
};

struct limit {
    int64_t requests; /* 0: the tier is off */
    int64_t seconds;
};

struct tier_table {
    struct limit of[TIER_COUNT];
};

/* A tier and the subject counted in it. */
struct counted {
    enum tier tier;
    struct digest subject; /* all zero for TIER_GLOBAL */
};

/* The purpose for digest_derive() of the key that subjects are hashed with. */
#define IDENTIFIER_PURPOSE "identifiers"

const char *tier_name(enum tier tier); /* "ip"; the part of the key before the colon */

struct counted counted_globally(void);
struct counted counted_by_ip(enum tier tier, const struct digest *key, const struct ip *client);
struct counted counted_by_email(enum tier tier, const struct digest *key, struct str normalised);

#define COUNTED_KEY_MAX 96
/* "global", "ip:<64 hex digits>", …: the key in reclaim.rate_limits. */
void counted_key(const struct counted *c, char into[COUNTED_KEY_MAX]);

#endif
