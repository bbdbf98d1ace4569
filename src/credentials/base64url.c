#include "credentials/base64url.h"

#include <sodium.h>

/* libsodium 1.0.18 decodes bytes from 0x80 on as digits, so that a value would have several encodings. */
static bool is_ascii(struct str text)
{
    unsigned char any = 0;
    for (size_t i = 0; i < text.len; i++)
        any |= (unsigned char)text.at[i];
    return any < 0x80;
}

enum err base64url_read(struct str text, unsigned char *into, size_t size, size_t *ret_len)
{
    size_t len;
    if (!text.at || !is_ascii(text) ||
        sodium_base642bin(into, size, text.at, text.len, NULL, &len, NULL, sodium_base64_VARIANT_URLSAFE_NO_PADDING) !=
            0)
        return ERR_INPUT;
    *ret_len = len;
    return OK;
}
