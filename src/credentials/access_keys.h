/* API keys: "rk_" and 32 random bytes in URL-safe base64. Only a keyed hash is stored, so that access to the
 * database or a backup does not reveal usable keys. */
#ifndef CREDENTIALS_ACCESS_KEYS_H
#define CREDENTIALS_ACCESS_KEYS_H

#include "base/digest.h"
#include "pg/pg.h"

#define ACCESS_KEY_PURPOSE "access key hash" /* for digest_derive(): the key of the hashes */

#define ACCESS_KEY_LEN 46
#define ACCESS_KEY_PREFIX_LEN 9 /* "rk_" and 6 characters, shown in lists: 36 of the 256 bits */
#define ACCESS_KEY_NAME_MAX 100 /* bytes of UTF-8 */

struct access_key {
    char text[ACCESS_KEY_LEN + 1];
};

struct access_key access_key_new(void);  /* the caller must wipe it */
bool access_key_is_one(struct str text); /* checks the format only */
/* Also for text that is not a key: its hash matches none. */
void access_key_hash(const struct digest *hash_key, struct str text, char into[DIGEST_HEX_LEN + 1]);
void access_key_prefix(const struct access_key *key, char into[ACCESS_KEY_PREFIX_LEN + 1]);
/* UTF-8 of at most ACCESS_KEY_NAME_MAX bytes without control characters; may be "". */
bool access_key_name_is_fine(struct str name);

/* Statements on reclaim.access_keys. They ignore the customer's status unless noted. */
/* $1 customer, $2 hash, $3 prefix, $4 name → id:uuid; no row if the customer does not exist or is deleted */
extern const struct statement access_key_insert;
/* $1 customer, $2 key id, $3 hash: revokes the keys that match all that are not null → id:uuid */
extern const struct statement access_key_revoke;
/* $1 customer → id:uuid prefix name created_at last_used_at revoked_at, ordered by created_at */
extern const struct statement access_keys_list;
extern const struct statement *const access_key_statements[];
extern const size_t access_key_statement_count;

#endif
