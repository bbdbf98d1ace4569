/* Digests, keys derived from one master key, comparing and wiping secrets. */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

#define DIGEST_LEN 32
#define DIGEST_HEX_LEN 64

struct digest {
    uint8_t bytes[DIGEST_LEN];
};

struct digest digest_sha256(struct str data);
struct digest digest_sha256_parts(const struct str *parts, size_t count); /* one after the other */
/* BLAKE2b: as strong as SHA-256 and several times as fast, for digests that stay inside the process. */
struct digest digest_quick(struct str data);
struct digest digest_hmac(const struct digest *key, struct str data);
/* HKDF-SHA-256 of the master secret; `purpose` says what the key is for and makes it differ from all others.
 * RFC 5869 without salt, the purpose as info. ERR_INPUT when the secret is empty. */
enum err digest_derive(struct str master, const char *purpose, struct digest *ret) MUST_CHECK;

/* Lower-case hex digits and a NUL; reading takes exactly `len` bytes' worth of either case. */
void hex_write(const uint8_t *bytes, size_t len, char *into);
enum err hex_read(struct str hex, uint8_t *into, size_t len) MUST_CHECK;
void digest_hex(const struct digest *d, char into[DIGEST_HEX_LEN + 1]);
enum err digest_parse(struct str hex, struct digest *ret) MUST_CHECK; /* 64 hex digits */
struct str digest_str(const struct digest *d);                        /* its bytes */
bool digest_eq(const struct digest *a, const struct digest *b);       /* in constant time */
void secret_wipe(void *at, size_t len);

#endif
