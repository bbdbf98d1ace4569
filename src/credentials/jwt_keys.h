/* Private to src/credentials: the keys that tokens are verified with, each bound to its algorithm. */
#ifndef CREDENTIALS_JWT_KEYS_H
#define CREDENTIALS_JWT_KEYS_H

#include <openssl/evp.h>
#include <sodium.h>

#include "credentials/jwt.h"

enum jwt_algorithm { JWT_HS256, JWT_RS256, JWT_ES256 };

#define JWKS_KEYS_MAX 32
#define JWT_KID_MAX 255
#define ES256_HALF 32 /* bytes of r, of s, and of each coordinate */

struct jwt_public_key {
    enum jwt_algorithm algorithm; /* RS256 or ES256 */
    char kid[JWT_KID_MAX + 1];
    bool has_kid;
    EVP_PKEY *key;
};

struct jwt_keys {
    uint64_t serial;
    /* HMAC states initialized with the keys; each verification uses a copy. */
    crypto_auth_hmacsha256_state own, secret;
    bool has_secret;
    size_t count;
    struct jwt_public_key keys[JWKS_KEYS_MAX];
    char issuer[JWT_NAME_MAX + 1], audience[JWT_NAME_MAX + 1]; /* for other issuers' tokens; "": not checked */
};

#endif
