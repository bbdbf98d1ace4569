/* Private to src/credentials: reads one JSON Web Key (RFC 7517, RFC 8037) into a key that is bound to its algorithm. */
#ifndef CREDENTIALS_JWK_H
#define CREDENTIALS_JWK_H

#include "base/json.h"
#include "credentials/jwt_keys.h"

enum jwk_kinds { JWK_PUBLIC_ONLY, JWK_AND_SECRETS };

/* What became of a key of a set. */
enum jwk_verdict {
    JWK_FINE,
    JWK_OTHER_USE, /* of another type, curve or algorithm, or for another use: a set may contain those */
    JWK_MALFORMED,
    JWK_SECRET, /* a symmetric key, where only public ones may be */
};

/* The caller frees the key with jwt_key_free(). `ret` is untouched unless JWK_FINE is returned. */
enum jwk_verdict jwk_read(const json_t *jwk, enum jwk_kinds kinds, struct jwt_key *ret) MUST_CHECK;

#endif
