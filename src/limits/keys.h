/* What operators name to see or reset limits: "ip:ADDRESS", "email:ADDRESS" or "global". */
#ifndef LIMITS_KEYS_H
#define LIMITS_KEYS_H

#include "base/arena.h"
#include "limits/tiers.h"

#define LIMITS_KEY_TIERS 8

struct limits_key {
    enum { LIMITS_GLOBAL, LIMITS_IP, LIMITS_EMAIL } kind;
    struct ip ip;
    struct str email;
    bool has_client; /* an address of the client was given with the e-mail address */
};

enum err limits_key_parse(struct arena *arena, struct str text, struct limits_key *ret) MUST_CHECK; /* ERR_INPUT */
/* Every tier that counts under the key, and how many these are. */
size_t limits_key_counted(const struct limits_key *key, const struct digest *identifier_key,
                          struct counted into[LIMITS_KEY_TIERS]);

#endif
