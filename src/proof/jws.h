/* Compact JSON Web Signatures (RFC 7515) with EdDSA (RFC 8037), as certificates and heads are written. */
#ifndef PROOF_JWS_H
#define PROOF_JWS_H

#include "proof/proof_key.h"

#define JWS_CERTIFICATE "reclaim-erasure+jwt"
#define JWS_HEAD "reclaim-head+jwt"

/* `typ` says what is signed, so that one kind is never taken for another. */
void jws_write(const struct proof_key *key, const char *typ, struct str payload, struct buf *out);
/* Adds the payload to `payload`. ERR_INPUT, with the reason, for anything that is not signed so by a key of the set. */
enum err jws_read(struct str text, const char *typ, const struct proof_key_set *set, struct buf *payload,
                  struct why *why) MUST_CHECK;

#endif
