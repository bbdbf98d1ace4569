/* API keys: "rk_" and 32 random bytes in URL-safe base64. Only a keyed hash is stored, so that access to the
 * database or a backup does not reveal usable keys. A key belongs to a customer, or has a scope: what a program may do. */
#ifndef CREDENTIALS_ACCESS_KEYS_H
#define CREDENTIALS_ACCESS_KEYS_H

#include "base/digest.h"
#include "pg/pg.h"

#define ACCESS_KEY_PURPOSE "access key hash" /* for digest_derive(): the key of the hashes */

#define ACCESS_KEY_LEN 46
#define ACCESS_KEY_PREFIX_LEN 9 /* "rk_" and 6 characters, shown in lists: 36 of the 256 bits */
#define ACCESS_KEY_NAME_MAX 100 /* bytes of UTF-8 */

#define KEY_PARTICIPANT_MAX 63 /* bytes of a participant's name, in "receipts:NAME" */

enum key_scope {
    SCOPE_CUSTOMER, /* a customer's key */
    SCOPE_ADMIN,
    SCOPE_READ,     /* everything that admins can read */
    SCOPE_CALLS,    /* a switch */
    SCOPE_BILLING,  /* a billing service */
    SCOPE_RECEIPTS, /* one participant of erasures: "receipts:NAME" */
};

struct access_key {
    char text[ACCESS_KEY_LEN + 1];
};

struct access_key access_key_new(void);  /* the caller must wipe it */
bool access_key_is_one(struct str text); /* checks the format only */
bool access_key_begins(struct str text); /* with "rk_", as no token does */
/* Also for text that is not a key: its hash matches none. */
void access_key_hash(const struct digest *hash_key, struct str text, char into[DIGEST_HEX_LEN + 1]);
void access_key_prefix(const struct access_key *key, char into[ACCESS_KEY_PREFIX_LEN + 1]);
/* UTF-8 of at most ACCESS_KEY_NAME_MAX bytes without control characters; may be "". */
bool access_key_name_is_fine(struct str name);

/* The text of a scope as the table stores it. ERR_INPUT if there is no such scope, or no name of the right form after
 * "receipts:". */
enum err key_scope_parse(struct str text, enum key_scope *ret, char participant[KEY_PARTICIPANT_MAX + 1]) MUST_CHECK;

/* Statements on reclaim.access_keys. They ignore the customer's status unless noted. */
/* $1 customer, $2 hash, $3 prefix, $4 name, $5 life in ms or null → id:uuid; no row if the customer does not exist or is
 * deleted */
extern const struct statement access_key_make_customer; /* $1 customer id */
extern const struct statement access_key_insert;
/* $1 scope, then as above → id:uuid */
extern const struct statement access_key_insert_scoped;
/* $1 key id, $2 its hash (the other null), $3 hash and $4 prefix of the new one, $5 its life in ms (null: as long as the old
 * one's), $6 ms for which the old one remains → id:uuid; no row if there is no such key that counts */
extern const struct statement access_key_rotate;
/* $1 customer, $2 key id, $3 hash: revokes the keys that match all that are not null → id:uuid */
extern const struct statement access_key_revoke;
/* $1 customer, or null for keys with a scope → id:uuid prefix scope name created_at last_used_at expires_at revoked_at,
 * ordered by created_at */
extern const struct statement access_keys_list;
extern const struct statement *const access_key_statements[];
extern const size_t access_key_statement_count;

#endif
