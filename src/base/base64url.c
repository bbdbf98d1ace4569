#include "base/base64url.h"

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

void base64url_add(struct buf *out, struct str bytes)
{
    char text[sodium_base64_ENCODED_LEN(48, sodium_base64_VARIANT_URLSAFE_NO_PADDING)];
    if (!bytes.at) /* of a buffer that failed */
        out->failed = ERR_MEMORY;
    for (size_t at = 0; at < bytes.len; at += 48) { /* a multiple of 3: parts follow each other without padding */
        size_t len = bytes.len - at < 48 ? bytes.len - at : 48;
        sodium_bin2base64(text, sizeof text, (const unsigned char *)bytes.at + at, len,
                          sodium_base64_VARIANT_URLSAFE_NO_PADDING);
        buf_addz(out, text);
    }
}
