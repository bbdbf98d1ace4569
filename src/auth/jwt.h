/* Bearer tokens: JSON Web Tokens as Supabase Auth issues them, signed with HS256, RS256 or ES256.
 *
 * A key is bound to one algorithm when it is loaded, and a token is only ever tried with keys of the algorithm that it
 * names: no public key can pass for a secret, and no token chooses to go unsigned. */
#ifndef AUTH_JWT_H
#define AUTH_JWT_H

#include "base/buf.h"

#define JWT_MAX 8192      /* bytes of a token; longer ones are refused unread */
#define JWT_SECRET_MIN 32 /* bytes: the digest's, as RFC 7518 demands */
#define JWT_SECRET_MAX 512
#define JWT_LEEWAY_US 30000000 /* clocks may differ by this much */

/* Immutable once loaded: any number of threads verify with it at once. */
struct jwt_keys;

/* With an HS256 secret, or the path of a file with a JSON Web Key Set (RS256 and ES256 public keys), or neither: then
 * every token is of an algorithm that is not accepted. ERR_INPUT for both, a short secret, or a file without any key
 * that could be used. */
enum err jwt_keys_new(const char *secret, const char *jwks_path, struct jwt_keys **ret, struct why *why) MUST_CHECK;
void jwt_keys_free(struct jwt_keys *keys); /* wipes the secret; NULL is fine */
void jwt_keys_cleanup(struct jwt_keys **keys);
bool jwt_keys_can_verify(const struct jwt_keys *keys); /* whether there is any key */
bool jwt_keys_can_sign(const struct jwt_keys *keys);   /* whether there is a secret */
uint64_t jwt_keys_serial(const struct jwt_keys *keys); /* no two sets that this process loads have the same */

enum jwt_fault {
    JWT_FINE = 0,
    JWT_MALFORMED,   /* not a token, too long, or without a usable "exp" */
    JWT_ALGORITHM,   /* one that is not accepted here, "none" among them, or not that of the key it names */
    JWT_UNKNOWN_KEY, /* its "kid" is none of ours */
    JWT_SIGNATURE,
    JWT_EXPIRED,
    JWT_NOT_YET, /* "nbf" is to come */
};

/* A sentence for people, which quotes nothing of the token. */
const char *jwt_fault_text(enum jwt_fault fault);

struct claims {
    char sub[37];       /* the subject, a UUID in lower case; "" when the token has none or another kind */
    bool admin;         /* "role" is "service_role", or "app_metadata"."role" is "admin" */
    int64_t expires_us; /* as clock_wall_us() counts; good for JWT_LEEWAY_US longer */
};

/* Nothing of the claims is believed, or even read, before the signature. `ret` is untouched unless JWT_FINE. */
enum jwt_fault jwt_verify(const struct jwt_keys *keys, struct str token, int64_t now_us, struct claims *ret) MUST_CHECK;

/* What a token of ours says. */
struct jwt_grant {
    const char *role;              /* "authenticated", or "service_role" for an admin */
    const char *sub;               /* a UUID, or NULL for none */
    int64_t issued_us, expires_us; /* told in whole seconds */
};

/* Adds the token to `out`, HS256. ERR_MISSING without a secret, ERR_MEMORY when it does not fit; the caller wipes it. */
enum err jwt_sign_hs256(const struct jwt_keys *keys, const struct jwt_grant *grant, struct buf *out) MUST_CHECK;

#endif
