#include "credentials/webhook_signature.h"

#include <sodium.h>
#include <string.h>

#include "base/defs.h"

#define ID_MAX 256
#define SIGNATURES_MAX 16
#define SIGNATURE_LEN crypto_auth_hmacsha256_BYTES

static enum err read_secret(struct str text, struct webhook_secret *ret)
{
    text = str_trim(text);
    if (str_starts(text, STR("v1,")))
        text = (struct str){text.at + 3, text.len - 3};
    if (!str_starts(text, STR("whsec_")))
        return ERR_INPUT;
    text = (struct str){text.at + 6, text.len - 6};
    if (sodium_base642bin(ret->key, sizeof ret->key, text.at, text.len, NULL, &ret->len, NULL,
                          sodium_base64_VARIANT_ORIGINAL))
        return ERR_INPUT;
    return ret->len >= WEBHOOK_SECRET_MIN ? OK : ERR_INPUT;
}

enum err webhook_secrets_read(struct str text, struct webhook_secrets *ret)
{
    struct str part;
    ret->count = 0;
    while (str_split(&text, '|', &part)) {
        enum err e = ret->count < WEBHOOK_SECRETS_MAX ? read_secret(part, &ret->at[ret->count]) : ERR_INPUT;
        if (e)
            return e;
        ret->count++;
    }
    return ret->count ? OK : ERR_INPUT;
}

static void sign(const struct webhook_secret *secret, const struct webhook_headers *headers, struct str body,
                 unsigned char ret[SIGNATURE_LEN])
{
    const struct str parts[] = {headers->id, STR("."), headers->timestamp, STR("."), body};
    crypto_auth_hmacsha256_state state;
    crypto_auth_hmacsha256_init(&state, secret->key, secret->len);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        crypto_auth_hmacsha256_update(&state, (const unsigned char *)parts[i].at, parts[i].len);
    crypto_auth_hmacsha256_final(&state, ret);
    sodium_memzero(&state, sizeof state);
}

/* "v1," and base64 of the whole signature. Supabase Auth separates several with a comma and a space, the specification with a
 * space. */
static bool read_signature(struct str text, unsigned char ret[SIGNATURE_LEN])
{
    size_t len;
    if (text.len && text.at[text.len - 1] == ',')
        text.len--;
    return str_starts(text, STR("v1,")) &&
           !sodium_base642bin(ret, SIGNATURE_LEN, text.at + 3, text.len - 3, NULL, &len, NULL,
                              sodium_base64_VARIANT_ORIGINAL) &&
           len == SIGNATURE_LEN;
}

/* Two readings of the same bytes must not be possible: neither an id with a dot, nor a time with anything but digits. */
static bool headers_are_sound(const struct webhook_headers *headers, int64_t now_s)
{
    int64_t at_s;
    if (!headers->id.at || headers->id.len == 0 || headers->id.len > ID_MAX || !headers->timestamp.at ||
        !headers->signature.at || memchr(headers->id.at, '.', headers->id.len))
        return false;
    return !str_to_i64(headers->timestamp, 0, INT64_MAX / 2, &at_s) && at_s >= now_s - WEBHOOK_TOLERANCE_S &&
           at_s <= now_s + WEBHOOK_TOLERANCE_S;
}

enum err webhook_verify(const struct webhook_secrets *secrets, const struct webhook_headers *headers, struct str body,
                        int64_t now_s)
{
    unsigned char expected[WEBHOOK_SECRETS_MAX][SIGNATURE_LEN], given[SIGNATURE_LEN];
    struct str rest = headers->signature, one;
    bool right = false;
    if (!headers_are_sound(headers, now_s))
        return ERR_INPUT;
    for (size_t i = 0; i < secrets->count; i++)
        sign(&secrets->at[i], headers, body, expected[i]);
    for (size_t count = 0; count < SIGNATURES_MAX && str_split(&rest, ' ', &one); count++) {
        bool readable = read_signature(one, given);
        for (size_t i = 0; readable && i < secrets->count; i++)
            right |= sodium_memcmp(expected[i], given, SIGNATURE_LEN) == 0;
    }
    sodium_memzero(expected, sizeof expected);
    return right ? OK : ERR_INPUT;
}
