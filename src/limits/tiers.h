/* Who may ask how often: the tiers, their limits, and the names under which requests are counted.
 *
 * A tier counts by a subject: nobody in particular, a client's address (IPv6 by /64), an e-mail address. In the database
 * a subject is its HMAC under a key derived from RECLAIM_SECRET_KEY, so that the counts tell nothing about people. */
#ifndef LIMITS_TIERS_H
#define LIMITS_TIERS_H

#include "base/digest.h"
#include "base/ip.h"

enum tier {
    TIER_GLOBAL,
    TIER_IP,
    TIER_EMAIL,          /* asking for a code */
    TIER_EMAIL_VALIDATE, /* trying a code: a bucket of its own, so that strangers asking never stop the owner typing */
    TIER_PROBE,
    TIER_LOGIN,    /* passwords tried for an address or a user */
    TIER_LOGIN_IP, /* and from a client */
    TIER_COUNT,
};

struct limit {
    int64_t requests; /* 0: the tier is off */
    int64_t seconds;
};

struct tier_table {
    struct limit of[TIER_COUNT];
};

/* What is counted: a tier, and in it a subject. */
struct counted {
    enum tier tier;
    struct digest subject; /* all zero for TIER_GLOBAL */
};

/* What digest_derive is told for the key that subjects are hashed with. */
#define IDENTIFIER_PURPOSE "identifiers"

const char *tier_name(enum tier tier); /* "ip"; the key's part before the colon */

struct counted counted_globally(void);
struct counted counted_by_ip(enum tier tier, const struct digest *key, const struct ip *client);
struct counted counted_by_email(enum tier tier, const struct digest *key, struct str normalised);

#define COUNTED_KEY_MAX 96
/* "global", "ip:<64 hex digits>", …: the key in reclaim.rate_limits. */
void counted_key(const struct counted *c, char into[COUNTED_KEY_MAX]);

#endif
