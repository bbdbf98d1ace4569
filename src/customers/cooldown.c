#include "customers/cooldown.h"

#include "base/arena.h"
#include "base/email.h"
#include "pg/arrays.h"

#define BATCH_BYTES ((size_t)128 << 20) /* a batch of customers with very many members */

static const struct statement read_addresses = {
    .name = "cooldown_addresses",
    .sql = "SELECT user_id, address FROM reclaim.cooldown_addresses($1::uuid[], $2::uuid[])",
    .params = 2,
    .columns = "user_id:uuid address:text",
};

static const struct statement begin = {
    .name = "cooldown_begin",
    .sql = "SELECT reclaim.cooldown_begin($1::text[], $2::uuid[]) AS addresses",
    .params = 2,
    .columns = "addresses:int4",
};

const struct statement cooldown_ask = {
    .name = "cooldown_ask",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.address_cooldowns WHERE address_hash = $1"
           " AND ends_at > (SELECT reclaim.now())) AS cools",
    .params = 1,
    .columns = "cools:bool",
};

static const struct statement prune = {
    .name = "cooldown_prune",
    .sql = "DELETE FROM reclaim.address_cooldowns WHERE ctid = ANY (ARRAY(SELECT ctid FROM reclaim.address_cooldowns"
           " WHERE ends_at <= (SELECT reclaim.now()) LIMIT 10000))",
    .params = 0,
    .columns = "",
};

const struct statement *const cooldown_statements[] = {&read_addresses, &begin, &cooldown_ask, &prune};
const size_t cooldown_statement_count = COUNT_OF(cooldown_statements);

void cooldown_batch_cleanup(struct cooldown_batch *batch)
{
    buf_free(&batch->hashes);
    buf_free(&batch->users);
}

void cooldown_hash(const struct digest *key, struct str address, char ret[DIGEST_HEX_LEN + 1])
{
    struct digest hash = digest_hmac(key, address);
    digest_hex(&hash, ret);
}

/* An address of another shape than Supabase Auth takes cannot register, and needs no cool-down. */
static enum err add_address(const struct digest *key, const struct pg_call *rows, int row, struct cooldown_batch *batch)
{
    AUTO(arena) struct arena *arena = arena_new(EMAIL_MAX + 1, (size_t)4 * EMAIL_MAX);
    char hash[DIGEST_HEX_LEN + 1];
    struct str address;
    enum err e = arena ? email_normalise(arena, pg_get(rows, row, 1), &address) : ERR_MEMORY;
    if (e)
        return e == ERR_INPUT ? OK : e;
    cooldown_hash(key, address, hash);
    array_add_plain(&batch->hashes, str_of(hash));
    array_add_text(&batch->users, pg_is_null(rows, row, 0) ? (struct str){NULL, 0} : pg_get(rows, row, 0));
    batch->count++;
    return OK;
}

enum err cooldown_read(const struct digest *key, struct tx *tx, const char *customers, const char *owners,
                       struct cooldown_batch *ret)
{
    struct pg_call rows = {.ask = &read_addresses, .args = {pg_text(customers), pg_text_or_null(owners)}};
    *ret = (struct cooldown_batch){.hashes = buf_new(BATCH_BYTES), .users = buf_new(BATCH_BYTES)};
    enum err e = tx_trip(tx, &rows, 1);
    for (int row = 0; !e && row < rows.rows; row++)
        e = add_address(key, &rows, row, ret);
    if (!e && (!array_end(&ret->hashes) || !array_end(&ret->users)))
        e = ERR_MEMORY;
    return e;
}

bool cooldown_write(const struct cooldown_batch *batch, struct pg_call *ret)
{
    if (batch->count == 0)
        return false;
    *ret = (struct pg_call){.ask = &begin,
                            .args = {pg_text(buf_str(&batch->hashes).at), pg_text(buf_str(&batch->users).at)}};
    return true;
}

enum err cooldown_prune(struct pg *pg, int64_t deadline_ns)
{
    for (int rows = 1; rows > 0;) {
        struct pg_call call = {.ask = &prune};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e)
            return e;
        rows = call.rows;
    }
    return OK;
}
