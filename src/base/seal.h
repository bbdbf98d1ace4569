/* Sealing bytes so that only holders of a key can read or change them: XChaCha20-Poly1305, through libsodium. */
#ifndef BASE_SEAL_H
#define BASE_SEAL_H

#include "base/digest.h"

#define SEAL_EXTRA 40 /* bytes of a box beyond its content: nonce and tag */

/* Writes content.len + SEAL_EXTRA bytes. `about` is bound to the box: opening it needs the same. */
void seal(const struct digest *key, struct str about, struct str content, uint8_t *ret_box);
/* Writes box.len - SEAL_EXTRA bytes. ERR_INPUT when it was not sealed so with this key. */
enum err seal_open(const struct digest *key, struct str about, struct str box, uint8_t *ret_content) MUST_CHECK;

#endif
