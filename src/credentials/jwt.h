/* Bearer tokens: JSON Web Tokens of an identity provider such as Supabase Auth, signed with HS256, RS256 or ES256, and
 * Reclaim's own, which are good here and at the gate only.
 *
 * A key is bound to one algorithm when it is loaded, and a token is only ever tried with keys of the algorithm that it
 * names: no public key can pass for a secret, and no token chooses to go unsigned. The issuer chooses the side: "reclaim"
 * is verified with Reclaim's own key only, every other issuer never with it. */
#ifndef CREDENTIALS_JWT_H
#define CREDENTIALS_JWT_H

#include "base/buf.h"
#include "base/digest.h"

#define JWT_MAX 8192      /* bytes of a token; longer ones are refused unread */
#define JWT_SECRET_MIN 32 /* bytes: the digest's, as RFC 7518 demands */
#define JWT_SECRET_MAX 512
#define JWT_NAME_MAX 512         /* bytes of an issuer or an audience */
#define JWT_LEEWAY_US 30000000   /* clocks may differ by this much */
#define JWT_OWN_NAME "reclaim"   /* issuer and audience of Reclaim's own tokens */
#define JWT_OWN_PURPOSE "tokens" /* for digest_derive: the key of Reclaim's own tokens */

/* Immutable once loaded: any number of threads verify with it at once. */
struct jwt_keys;

struct jwt_sources {
    const struct digest *own; /* verifies Reclaim's own tokens */
    /* Of other issuers' tokens; NULL where not used. Without secret and key set none of them is accepted. */
    const char *secret;            /* HS256 */
    const char *jwks_path;         /* a file with a JSON Web Key Set: RS256 and ES256 public keys */
    const char *issuer, *audience; /* what such tokens must say; NULL: not looked at */
};

/* ERR_INPUT for a secret of a wrong length, a name that is too long, or a file without any key that could be used. */
enum err jwt_keys_new(const struct jwt_sources *from, struct jwt_keys **ret, struct why *why) MUST_CHECK;
void jwt_keys_free(struct jwt_keys *keys); /* wipes the secrets; NULL is fine */
void jwt_keys_cleanup(struct jwt_keys **keys);
bool jwt_keys_know_others(const struct jwt_keys *keys); /* whether there is any key for other issuers' tokens */
uint64_t jwt_keys_serial(const struct jwt_keys *keys);  /* no two sets that this process loads have the same */

enum jwt_fault {
    JWT_FINE = 0,
    JWT_MALFORMED,   /* not a token, too long, or without a usable "exp" */
    JWT_ALGORITHM,   /* one that is not accepted here, "none" among them, or not that of the key it names */
    JWT_UNKNOWN_KEY, /* its "kid" is none of ours */
    JWT_SIGNATURE,
    JWT_EXPIRED,
    JWT_NOT_YET, /* "nbf" is to come */
    JWT_ISSUER,
    JWT_AUDIENCE,
};

/* A sentence for people, which quotes nothing of the token. */
const char *jwt_fault_text(enum jwt_fault fault);

struct claims {
    char sub[37];       /* the subject, a UUID in lower case; "" when the token has none or another kind */
    bool admin;         /* "role" is "service_role", or "app_metadata"."role" is "admin" */
    int64_t expires_us; /* as clock_wall_us() counts; good for JWT_LEEWAY_US longer */
};

/* Before the signature the issuer is read, which chooses the keys, and nothing else of the claims. `ret` is untouched unless
 * JWT_FINE. */
enum jwt_fault jwt_verify(const struct jwt_keys *keys, struct str token, int64_t now_us, struct claims *ret) MUST_CHECK;

/* What a token of ours says. */
struct jwt_grant {
    const char *role;              /* "authenticated", or "service_role" for an admin */
    const char *sub;               /* a UUID, or NULL for none */
    int64_t issued_us, expires_us; /* written in whole seconds */
};

/* Adds the token to `out`, HS256. ERR_MEMORY when it does not fit; the caller wipes it. */
enum err jwt_sign(const struct digest *own, const struct jwt_grant *grant, struct buf *out) MUST_CHECK;

#endif
