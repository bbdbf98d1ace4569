#include "base/seal.h"

#include <sodium.h>

#define NONCE crypto_aead_xchacha20poly1305_ietf_NPUBBYTES

_Static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == DIGEST_LEN, "a digest serves as a key");
_Static_assert(SEAL_EXTRA == NONCE + crypto_aead_xchacha20poly1305_ietf_ABYTES, "nonce and tag");

void seal(const struct digest *key, struct str about, struct str content, uint8_t *ret_box)
{
    randombytes_buf(ret_box, NONCE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(ret_box + NONCE, NULL, (const uint8_t *)content.at, content.len,
                                               (const uint8_t *)about.at, about.len, NULL, ret_box, key->bytes);
}

enum err seal_open(const struct digest *key, struct str about, struct str box, uint8_t *ret_content)
{
    const uint8_t *at = (const uint8_t *)box.at;
    if (box.len < SEAL_EXTRA ||
        crypto_aead_xchacha20poly1305_ietf_decrypt(ret_content, NULL, NULL, at + NONCE, box.len - NONCE,
                                                   (const uint8_t *)about.at, about.len, at, key->bytes))
        return ERR_INPUT;
    return OK;
}
