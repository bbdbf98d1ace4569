/* Bearer tokens: JSON Web Tokens of an identity provider such as Supabase Auth, signed with HS256, RS256, ES256 or EdDSA,
 * and Reclaim's own, which only Reclaim's API and gate accept.
 *
 * A key is bound to one algorithm when it is loaded, and a token is verified only with keys of the algorithm in its
 * header: a public key is never used as an HMAC secret, and unsigned tokens are refused. Tokens of the issuer
 * "reclaim" are verified with Reclaim's own key only, tokens of other issuers never with it. */
#ifndef CREDENTIALS_JWT_H
#define CREDENTIALS_JWT_H

#include "base/buf.h"
#include "base/digest.h"

#define JWT_MAX 8192      /* bytes of a token; longer ones are not parsed */
#define JWT_SECRET_MIN 32 /* bytes: the size of the hash, as RFC 7518 requires */
#define JWT_SECRET_MAX 512
#define JWT_NAME_MAX 512         /* bytes of an issuer or an audience */
#define JWT_LEEWAY_US 30000000   /* allowed difference between clocks */
#define JWT_OWN_NAME "reclaim"   /* issuer and audience of Reclaim's own tokens */
#define JWT_OWN_PURPOSE "tokens" /* for digest_derive: the key of Reclaim's own tokens */

/* Immutable once loaded: any number of threads may use it. */
struct jwt_keys;

struct jwt_sources {
    const struct digest *own; /* verifies Reclaim's own tokens */
    /* For other issuers' tokens; NULL or absent if not used. Without any of the three, none of these tokens is accepted. */
    const char *secret;            /* HS256 */
    const char *jwks_path;         /* a file with a JSON Web Key Set: public keys, and secrets for HS256 */
    struct str jwks_read;          /* the set that was read from a URL: public keys only */
    const char *issuer, *audience; /* required in such tokens; NULL: not checked */
};

/* ERR_INPUT for a secret of a wrong length, a name that is too long, or a set without a usable key. */
enum err jwt_keys_new(const struct jwt_sources *from, struct jwt_keys **ret, struct why *why) MUST_CHECK;
void jwt_keys_free(struct jwt_keys *keys); /* wipes the secrets; NULL is fine */
void jwt_keys_cleanup(struct jwt_keys **keys);
size_t jwt_keys_count(const struct jwt_keys *keys);    /* of other issuers */
uint64_t jwt_keys_serial(const struct jwt_keys *keys); /* unique in this process */

enum jwt_fault {
    JWT_FINE = 0,
    JWT_MALFORMED,   /* not a token, too long, without a usable "exp", or Reclaim's own with an unusable "sid" */
    JWT_ALGORITHM,   /* not accepted, such as "none", or without a key for it */
    JWT_UNKNOWN_KEY, /* "kid" is that of no public key of the token's algorithm */
    JWT_SIGNATURE,
    JWT_EXPIRED,
    JWT_NOT_YET, /* before "nbf" */
    JWT_ISSUER,
    JWT_AUDIENCE,
};

/* A sentence for users, which does not quote the token. */
const char *jwt_fault_text(enum jwt_fault fault);

struct claims {
    char sub[37];       /* a UUID in lower case; "" if the token has none or no UUID */
    char session[37];   /* "sid" of Reclaim's own tokens: reclaim.sessions.id; "" for tokens without a session */
    bool admin;         /* "role" is "service_role", or "app_metadata"."role" is "admin" */
    int64_t expires_us; /* wall clock; accepted for JWT_LEEWAY_US longer */
};

/* The issuer, which selects the keys, is the only claim read before the signature is verified. `ret` is untouched
 * unless JWT_FINE is returned. */
enum jwt_fault jwt_verify(const struct jwt_keys *keys, struct str token, int64_t now_us, struct claims *ret) MUST_CHECK;

/* Claims of Reclaim's own tokens. */
struct jwt_grant {
    const char *role;              /* "authenticated", or "service_role" for an admin */
    const char *sub;               /* a UUID, or NULL */
    const char *session;           /* reclaim.sessions.id, or NULL; only with a sub */
    int64_t issued_us, expires_us; /* written in whole seconds */
};

/* Appends a token signed with HS256 to `out`, which the caller must wipe. ERR_MEMORY if it does not fit. */
enum err jwt_sign(const struct digest *own, const struct jwt_grant *grant, struct buf *out) MUST_CHECK;

#endif
