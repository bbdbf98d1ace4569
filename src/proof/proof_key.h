/* The keys that sign certificates and heads of the sealed log: Ed25519, derived from the master key, one for each generation. A new
 * generation signs from then on; former ones stay in the key set, so that what they signed can be verified. */
#ifndef PROOF_PROOF_KEY_H
#define PROOF_PROOF_KEY_H

#include "base/buf.h"
#include "base/digest.h"

#define PROOF_GENERATIONS 64 /* as reclaim.installation allows */
#define PROOF_PUBLIC_LEN 32
#define PROOF_SIGNATURE_LEN 64
#define PROOF_KID_LEN 43 /* RFC 7638 thumbprint in base64url */

struct proof_public_key {
    uint8_t bytes[PROOF_PUBLIC_LEN];
    char kid[PROOF_KID_LEN + 1];
};

/* Keys to verify with. */
struct proof_key_set {
    struct proof_public_key keys[PROOF_GENERATIONS];
    size_t count;
};

struct proof_key {
    struct proof_public_key public;
    uint8_t secret[64];
};

/* All generations, so that a rotation needs no restart. */
struct proof_keys {
    struct proof_key generations[PROOF_GENERATIONS]; /* generation 1 is the first */
};

enum err proof_keys_derive(struct str master, struct proof_keys *ret) MUST_CHECK;
void proof_keys_wipe(struct proof_keys *keys);
/* Generations 1 to `generation`. */
void proof_keys_public(const struct proof_keys *keys, int generation, struct proof_key_set *ret);

void proof_sign(const struct proof_key *key, struct str message, uint8_t ret[PROOF_SIGNATURE_LEN]);
bool proof_holds(const struct proof_public_key *key, struct str message, const uint8_t signature[PROOF_SIGNATURE_LEN]);
const struct proof_public_key *proof_key_find(const struct proof_key_set *set, struct str kid); /* NULL: unknown */

/* As a JSON Web Key Set (RFC 7517, RFC 8037). */
void proof_key_set_write(const struct proof_key_set *set, struct buf *out);
/* Ed25519 keys of the set; others are passed over. The text may also be one key alone. ERR_INPUT, with the reason, when there is none. */
enum err proof_key_set_read(struct str text, struct proof_key_set *ret, struct why *why) MUST_CHECK;

#endif
