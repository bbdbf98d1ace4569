/* Private to src/credentials: the keys that tokens are verified with, each bound to its algorithm. */
#ifndef CREDENTIALS_JWT_KEYS_H
#define CREDENTIALS_JWT_KEYS_H

#include <openssl/evp.h>
#include <sodium.h>

#include "credentials/jwt.h"

enum jwt_algorithm { JWT_HS256, JWT_RS256, JWT_ES256, JWT_EDDSA };

#define JWKS_KEYS_MAX 32 /* of one set */
#define JWT_KID_MAX 255
#define ES256_HALF 32 /* bytes of r, of s, and of each coordinate */

struct jwt_key {
    enum jwt_algorithm algorithm;
    char kid[JWT_KID_MAX + 1];
    bool has_kid;
    EVP_PKEY *key;                       /* NULL for HS256 */
    crypto_auth_hmacsha256_state secret; /* HS256: initialized with the secret; each verification uses a copy */
};

void jwt_key_free(struct jwt_key *key); /* wipes the secret */

struct jwt_keys {
    uint64_t serial;
    int users; /* see credentials/key_ring.c; guarded by its lock */
    crypto_auth_hmacsha256_state own;
    size_t count;
    struct jwt_key keys[1 + 2 * JWKS_KEYS_MAX]; /* for other issuers' tokens: the secret, a file's set, a URL's set */
    char issuer[JWT_NAME_MAX + 1], audience[JWT_NAME_MAX + 1]; /* for other issuers' tokens; "": not checked */
};

#endif
