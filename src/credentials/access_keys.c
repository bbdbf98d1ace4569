#include "credentials/access_keys.h"

#include <sodium.h>
#include <string.h>

#include "base/base64url.h"
#include "base/random.h"

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

bool access_key_begins(struct str text)
{
    return str_starts(text, STR(KEY_PREFIX));
}

static bool is_participant(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool is_first = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!is_first && (i == 0 || (c != '_' && c != '.' && c != '-')))
            return false;
    }
    return name.len > 0;
}

enum err key_scope_parse(struct str text, enum key_scope *ret, char participant[KEY_PARTICIPANT_MAX + 1])
{
    static const char *const names[] = {[SCOPE_CUSTOMER] = "customer",
                                        [SCOPE_ADMIN] = "admin",
                                        [SCOPE_READ] = "read",
                                        [SCOPE_CALLS] = "calls",
                                        [SCOPE_BILLING] = "billing"};
    const struct str receipts = STR("receipts:");
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(text, str_of(names[i]))) {
            *ret = (enum key_scope)i;
            return OK;
        }
    if (!text.at || !str_starts(text, receipts))
        return ERR_INPUT;
    struct str name = {text.at + receipts.len, text.len - receipts.len};
    if (!is_participant(name) || str_copy(name, participant, KEY_PARTICIPANT_MAX + 1))
        return ERR_INPUT;
    *ret = SCOPE_RECEIPTS;
    return OK;
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

#define EXPIRES(life_ms) "clock_timestamp() + " life_ms "::int8 * interval '1 ms'"
#define LOG(action, of)                                                                                                \
    " log AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"                        \
    "  SELECT customer_id, '" action "', 'operator', id, 'done' FROM " of ")"

/* Of a user that is a customer without a row; sent before access_key_insert, in one trip. */
const struct statement access_key_make_customer = {
    .name = "access_key_make_customer",
    .sql = "SELECT reclaim.customer_make($1::uuid) AS made",
    .params = 1,
    .columns = "made:bool",
};

/* FOR SHARE waits for a concurrent deletion, which would not revoke a key inserted meanwhile. */
const struct statement access_key_insert = {
    .name = "access_key_insert",
    .sql = "WITH made AS (INSERT INTO reclaim.access_keys (customer_id, key_hash, prefix, name, expires_at)"
           "  SELECT c.id, $2, $3, $4, " EXPIRES(
               "$5") " FROM reclaim.customer_customers c"
                     "  WHERE c.id = $1::uuid AND c.status <> 'deleted' FOR SHARE RETURNING id, customer_id)," LOG(
                         "key_create", "made") " SELECT id FROM made",
    .params = 5,
    .columns = "id:uuid",
};

const struct statement access_key_insert_scoped = {
    .name = "access_key_insert_scoped",
    .sql = "WITH made AS (INSERT INTO reclaim.access_keys (scope, key_hash, prefix, name, expires_at)"
           "  VALUES ($1, $2, $3, $4, " EXPIRES("$5") ") RETURNING id, customer_id)," LOG(
               "key_create", "made") " SELECT id FROM made",
    .params = 5,
    .columns = "id:uuid",
};

/* Ends the old key's life early; never later than it was to end. */
const struct statement access_key_rotate = {
    .name = "access_key_rotate",
    .sql =
        "WITH live AS (SELECT c.id FROM reclaim.customer_customers c JOIN reclaim.access_keys k ON k.customer_id = c.id"
        "  WHERE (k.id = $1::uuid OR k.key_hash = $2::text) AND c.status <> 'deleted' FOR SHARE OF c),"
        " old AS (UPDATE reclaim.access_keys k"
        "  SET expires_at = least(k.expires_at, " EXPIRES(
            "$6") ") FROM reclaim.access_keys was"
                  "  WHERE was.id = k.id AND (k.id = $1::uuid OR k.key_hash = $2::text) AND k.revoked_at IS NULL"
                  "  AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp())"
                  "  AND (k.customer_id IS NULL OR k.customer_id IN (SELECT live.id FROM live))"
                  "  RETURNING k.id, k.customer_id, k.scope, k.name, was.expires_at - was.created_at AS life),"
                  " made AS (INSERT INTO reclaim.access_keys (customer_id, scope, key_hash, prefix, name, expires_at)"
                  "  SELECT customer_id, scope, $3, $4, name,"
                  "  clock_timestamp() + coalesce($5::int8 * interval '1 ms', life) FROM old"
                  "  RETURNING id, customer_id)," LOG("key_rotate", "made") " SELECT id FROM made",
    .params = 6,
    .columns = "id:uuid",
};

const struct statement access_key_revoke = {
    .name = "access_key_revoke",
    .sql = "WITH gone AS (UPDATE reclaim.access_keys SET revoked_at = clock_timestamp()"
           "  WHERE revoked_at IS NULL AND ($1::uuid IS NULL OR customer_id = $1::uuid)"
           "  AND ($2::uuid IS NULL OR id = $2::uuid) AND ($3::text IS NULL OR key_hash = $3::text)"
           "  AND ($1::uuid IS NOT NULL OR $2::uuid IS NOT NULL OR $3::text IS NOT NULL)"
           "  RETURNING id, customer_id)," LOG("key_revoke", "gone") " SELECT id FROM gone",
    .params = 3,
    .columns = "id:uuid",
};

const struct statement access_keys_list = {
    .name = "access_keys_list",
    .sql = "SELECT id, prefix, scope, name, reclaim.rfc3339(created_at) AS created_at,"
           " reclaim.rfc3339(last_used_at) AS last_used_at, reclaim.rfc3339(expires_at) AS expires_at,"
           " reclaim.rfc3339(revoked_at) AS revoked_at"
           " FROM reclaim.access_keys k WHERE customer_id IS NOT DISTINCT FROM $1::uuid ORDER BY k.created_at, id",
    .params = 1,
    .columns =
        "id:uuid prefix:text scope:text name:text created_at:text last_used_at:text expires_at:text revoked_at:text",
};

const struct statement *const access_key_statements[] = {
    &access_key_make_customer, &access_key_insert, &access_key_insert_scoped,
    &access_key_rotate,        &access_key_revoke, &access_keys_list,
};
const size_t access_key_statement_count = COUNT_OF(access_key_statements);
