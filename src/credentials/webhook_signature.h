/* Signatures as the Standard Webhooks specification defines them: HMAC-SHA-256 of id, time and body, as Supabase Auth signs what it
 * sends to HTTP hooks. */
#ifndef CREDENTIALS_WEBHOOK_SIGNATURE_H
#define CREDENTIALS_WEBHOOK_SIGNATURE_H

#include "base/str.h"

#define WEBHOOK_SECRETS_MAX 4
#define WEBHOOK_SECRET_MIN 16 /* bytes of the key */
#define WEBHOOK_SECRET_MAX 128
#define WEBHOOK_TOLERANCE_S 300

struct webhook_secrets {
    size_t count;
    struct webhook_secret {
        unsigned char key[WEBHOOK_SECRET_MAX];
        size_t len;
    } at[WEBHOOK_SECRETS_MAX];
};

/* "v1,whsec_" or "whsec_" and base64; several with '|' between them, while one replaces another. ERR_INPUT. */
enum err webhook_secrets_read(struct str text, struct webhook_secrets *ret) MUST_CHECK;

struct webhook_headers { /* absent where the request has none */
    struct str id, timestamp, signature;
};

/* ERR_INPUT unless one of the signatures is that of one of the secrets, and the time is at most five minutes from `now_s`. */
enum err webhook_verify(const struct webhook_secrets *secrets, const struct webhook_headers *headers, struct str body,
                        int64_t now_s) MUST_CHECK;

#endif
