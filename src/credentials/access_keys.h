/* API keys: "rk_" and 32 random bytes in URL-safe base64. Only a keyed hash of one is stored, so that neither a reader
 * of the database nor of a backup can use it, or tell which key a hash belongs to. */
#ifndef CREDENTIALS_ACCESS_KEYS_H
#define CREDENTIALS_ACCESS_KEYS_H

#include "base/digest.h"
#include "pg/pg.h"

#define ACCESS_KEY_PURPOSE "access key hash" /* what digest_derive is told for the key of the hashes */

#define ACCESS_KEY_LEN 46
#define ACCESS_KEY_PREFIX_LEN 9 /* "rk_" and 6 characters: what lists show of a key, 36 of its 256 bits */
#define ACCESS_KEY_NAME_MAX 100 /* bytes of UTF-8 */

struct access_key {
    char text[ACCESS_KEY_LEN + 1];
};

struct access_key access_key_new(void);  /* the caller shows it once, and wipes it */
bool access_key_is_one(struct str text); /* by its form */
/* Of anything; a text that is not a key's has a hash that no key has. */
void access_key_hash(const struct digest *hash_key, struct str text, char into[DIGEST_HEX_LEN + 1]);
void access_key_prefix(const struct access_key *key, char into[ACCESS_KEY_PREFIX_LEN + 1]);
bool access_key_name_is_fine(struct str name); /* UTF-8 of bounded length without control characters; "" is */

/* Of reclaim.access_keys. A key is live while revoked_at is null; the customer's own state is asked elsewhere. */
/* $1 customer, $2 hash, $3 prefix, $4 name → id:uuid; no row when there is no such customer, or it is deleted */
extern const struct statement access_key_insert;
/* $1 customer, $2 key id, $3 hash: live keys to which all of them that are not null apply → id:uuid */
extern const struct statement access_key_revoke;
/* $1 customer → id:uuid prefix name created_at last_used_at revoked_at, the oldest first */
extern const struct statement access_keys_list;
extern const struct statement *const access_key_statements[];
extern const size_t access_key_statement_count;

#endif
