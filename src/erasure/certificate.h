/* The certificate of an erasure: a compact JWS of claims about it, with the place of these claims in the sealed log.
 *
 * The fact that is sealed is the claims without `iat` and `log`, as JSON with sorted keys and without spaces. So whoever has the
 * certificate and the public keys can verify all of it offline: signature, leaf, path, and the signed head of the log. */
#ifndef ERASURE_CERTIFICATE_H
#define ERASURE_CERTIFICATE_H

#include "base/json.h"
#include "proof/merkle.h"
#include "proof/proof_key.h"

#define CERTIFICATE_MAX ((size_t)1024 * 1024)

/* Where a certificate's fact is in the sealed log. */
struct certificate_place {
    int64_t position, size;
    const struct digest *path;
    size_t path_len;
    struct digest root;
    const char *head; /* compact JWS */
};

/* The caller free()s it; NULL without memory. */
char *certificate_fact(const json_t *claims) MUST_CHECK;
/* Adds `iat` and `log` to the claims. */
enum err certificate_write(json_t *claims, int64_t issued_s, const struct certificate_place *place,
                           const struct proof_key *key, struct buf *out) MUST_CHECK;

/* The claims of a certificate that holds; the caller json_decref()s them. NULL, with the reason, when it does not. */
json_t *certificate_check(struct str jws, const struct proof_key_set *set, struct why *why) MUST_CHECK;
/* Whether the certificate is about this address. The salt stands in the last mail, as hex digits. ERR_MISSING: it names none. */
enum err certificate_is_about(const json_t *claims, struct str address, struct str salt_hex, bool *ret) MUST_CHECK;

#endif
