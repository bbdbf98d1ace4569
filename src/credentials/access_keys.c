#include "credentials/access_keys.h"

#include <sodium.h>
#include <string.h>

#include "base/random.h"
#include "credentials/base64url.h"

#define KEY_BYTES 32
#define KEY_PREFIX "rk_"
#define KEY_PREFIX_LEN (sizeof KEY_PREFIX - 1)
_Static_assert(KEY_PREFIX_LEN + sodium_base64_ENCODED_LEN(KEY_BYTES, sodium_base64_VARIANT_URLSAFE_NO_PADDING) ==
                   ACCESS_KEY_LEN + 1,
               "a key is the prefix and the encoded bytes");

struct access_key access_key_new(void)
{
    struct access_key key = {KEY_PREFIX};
    unsigned char bytes[KEY_BYTES];
    random_bytes(bytes, sizeof bytes);
    sodium_bin2base64(key.text + KEY_PREFIX_LEN, sizeof key.text - KEY_PREFIX_LEN, bytes, sizeof bytes,
                      sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    secret_wipe(bytes, sizeof bytes);
    return key;
}

bool access_key_is_one(struct str text)
{
    unsigned char bytes[KEY_BYTES];
    size_t len;
    bool is = text.at && text.len == ACCESS_KEY_LEN && str_starts(text, STR(KEY_PREFIX)) &&
              base64url_read((struct str){text.at + KEY_PREFIX_LEN, text.len - KEY_PREFIX_LEN}, bytes, sizeof bytes,
                             &len) == OK &&
              len == KEY_BYTES;
    secret_wipe(bytes, sizeof bytes);
    return is;
}

void access_key_hash(const struct digest *hash_key, struct str text, char into[DIGEST_HEX_LEN + 1])
{
    struct digest d = digest_hmac(hash_key, text);
    digest_hex(&d, into);
}

void access_key_prefix(const struct access_key *key, char into[ACCESS_KEY_PREFIX_LEN + 1])
{
    memcpy(into, key->text, ACCESS_KEY_PREFIX_LEN);
    into[ACCESS_KEY_PREFIX_LEN] = '\0';
}

bool access_key_name_is_fine(struct str name)
{
    if (!name.at || name.len > ACCESS_KEY_NAME_MAX || !str_is_utf8(name))
        return false;
    for (size_t i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.at[i];
        bool c1 = c == 0xC2 && i + 1 < name.len && (unsigned char)name.at[i + 1] < 0xA0;
        if (c < ' ' || c == 0x7f || c1)
            return false;
    }
    return true;
}

/* FOR SHARE waits for a concurrent deletion, which would not revoke a key inserted meanwhile. */
const struct statement access_key_insert = {
    .name = "access_key_insert",
    .sql = "WITH made AS (INSERT INTO reclaim.access_keys (customer_id, key_hash, prefix, name)"
           "  SELECT c.id, $2, $3, $4 FROM reclaim.customer_customers c"
           "  WHERE c.id = $1::uuid AND c.status <> 'deleted' FOR SHARE RETURNING id, customer_id),"
           " log AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"
           "  SELECT customer_id, 'key_create', 'operator', id, 'done' FROM made)"
           " SELECT id FROM made",
    .params = 4,
    .columns = "id:uuid",
};

const struct statement access_key_revoke = {
    .name = "access_key_revoke",
    .sql = "WITH gone AS (UPDATE reclaim.access_keys SET revoked_at = clock_timestamp()"
           "  WHERE revoked_at IS NULL AND ($1::uuid IS NULL OR customer_id = $1::uuid)"
           "  AND ($2::uuid IS NULL OR id = $2::uuid) AND ($3::text IS NULL OR key_hash = $3::text)"
           "  AND ($1::uuid IS NOT NULL OR $2::uuid IS NOT NULL OR $3::text IS NOT NULL) RETURNING id, customer_id),"
           " log AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"
           "  SELECT customer_id, 'key_revoke', 'operator', id, 'done' FROM gone)"
           " SELECT id FROM gone",
    .params = 3,
    .columns = "id:uuid",
};

const struct statement access_keys_list = {
    .name = "access_keys_list",
    .sql = "SELECT id, prefix, name, reclaim.rfc3339(created_at) AS created_at,"
           " reclaim.rfc3339(last_used_at) AS last_used_at, reclaim.rfc3339(revoked_at) AS revoked_at"
           " FROM reclaim.access_keys k WHERE customer_id = $1::uuid ORDER BY k.created_at, id",
    .params = 1,
    .columns = "id:uuid prefix:text name:text created_at:text last_used_at:text revoked_at:text",
};

const struct statement *const access_key_statements[] = {&access_key_insert, &access_key_revoke, &access_keys_list};
const size_t access_key_statement_count = COUNT_OF(access_key_statements);
