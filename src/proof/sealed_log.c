#include "proof/sealed_log.h"

#include <string.h>

#include "base/base64url.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/log.h"
#include "base/metrics.h"
#include "pg/lock_ids.h"
#include "proof/facts.h"
#include "proof/jws.h"

METRIC_COUNTER(sealed, "reclaim_sealed_facts_total", "Facts appended to the sealed log.");
METRIC_GAUGE(broken, "reclaim_sealed_log_broken",
             "1 while the sealed log does not fit its last signed head: see `reclaim audit verify`.");

static const struct statement sealed_log_lock = {
    .name = "sealed_log_lock",
    /* What is committed is written to the journal: it must survive a crash of the database. A round looks few new rows up among all that
     * were sealed: the planner, which cannot know that they are few, must not read those. Without sequential scans each plan that needs one
     * seems so dear that it would be compiled, which takes longer than a round. */
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(" LOCK_CLASS ", " LOCK_SEALED_LOG ")::text || CASE"
           " pg_catalog.current_setting('synchronous_commit') WHEN 'off' THEN"
           " pg_catalog.set_config('synchronous_commit', 'local', true) ELSE '' END"
           " || pg_catalog.set_config('jit', 'off', true)"
           " || pg_catalog.set_config('enable_hashjoin', 'off', true)"
           " || pg_catalog.set_config('enable_mergejoin', 'off', true)"
           " || pg_catalog.set_config('enable_seqscan', 'off', true) AS nothing",
    .params = 0,
    .columns = "nothing:text",
};

/* matured: sources, with their marks, whose rows up to the mark are all visible, or will never be. */
static const struct statement sealed_log_read = {
    .name = "sealed_log_read",
    .sql = "SELECT h.size, pg_catalog.encode(h.frontier, 'hex') AS frontier, h.jws,"
           " (SELECT pg_catalog.array_agg(s.source || ':' || s.mark)::text FROM reclaim.sealed_sources s WHERE s.mark "
           "> s.floor"
           " AND s.mark_xid <= pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())"
           " AND s.marked_at < pg_catalog.clock_timestamp() - interval '1 minute') AS matured,"
           " pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::int8 AS xmax,"
           " extract(epoch FROM pg_catalog.clock_timestamp())::int8 AS clock,"
           " i.proof_generation AS generation, i.epoch,"
           " (extract(epoch FROM i.created_at) * 1000000)::int8::text AS created"
           " FROM reclaim.installation i LEFT JOIN (SELECT * FROM reclaim.sealed_heads ORDER BY size DESC LIMIT 1) h"
           " ON true",
    .params = 0,
    .columns = "size:int8 frontier:text jws:text matured:text xmax:int8 clock:int8 generation:int4 epoch:int4"
               " created:text",
};

/* Rows after the last one that is sealed need no look whether they are; those before it were committed late, or are sealed. */
/* clang-format off */
#define LAST_SEALED(source) "(SELECT max(m.fact_id) FROM reclaim.sealed_leaves m WHERE m.source = '" source "')"
#define ALL_SEALED(source, up_to) "(SELECT greatest(s.floor, " up_to "::int8) FROM reclaim.sealed_sources s WHERE s.source = '" source "')"
#define NEW_ROWS(source, table, fact, up_to) \
    "(SELECT '" source "' AS source, l.id, " FACT_HASH(fact) " AS hash FROM (" \
    "(SELECT l.* FROM " table " l WHERE l.id > " ALL_SEALED(source, up_to) " AND l.id <= " LAST_SEALED(source) \
    " AND NOT EXISTS (SELECT FROM reclaim.sealed_leaves s WHERE s.source = '" source "' AND s.fact_id = l.id)" \
    " ORDER BY l.id LIMIT $1::int8) UNION ALL" \
    " (SELECT l.* FROM " table " l WHERE l.id > (SELECT greatest(" ALL_SEALED(source, up_to) ", " LAST_SEALED(source) "))" \
    " ORDER BY l.id LIMIT $1::int8) ORDER BY id LIMIT $1::int8) l)"
#define NEW_FACTS \
    NEW_ROWS("customer", "reclaim.customer_log", FACT_OF_CUSTOMER, "$2") " UNION ALL " \
    NEW_ROWS("cleanup", "reclaim.auth_cleanup_events", FACT_OF_CLEANUP, "$3") " UNION ALL " \
    NEW_ROWS("receipt", "reclaim.receipt_facts", FACT_OF_RECEIPT, "$4")
/* clang-format on */

static const struct statement sealed_log_append = {
    .name = "sealed_log_append",
    .sql = "WITH facts AS MATERIALIZED (" NEW_FACTS "),"
           " placed AS (INSERT INTO reclaim.sealed_leaves (position, source, fact_id, hash)"
           " SELECT coalesce((SELECT max(h.size) FROM reclaim.sealed_heads h), 0) - 1"
           " + pg_catalog.row_number() OVER (ORDER BY f.source, f.id), f.source, f.id, f.hash FROM facts f"
           " RETURNING position, source, fact_id, hash)"
           " SELECT count(*) AS count, count(*) FILTER (WHERE q.source = 'receipt') AS receipts, "
           "coalesce(bool_or(n.rows >= $1::int8), false) AS more,"
           " (SELECT pg_catalog.string_agg(pg_catalog.encode(p.hash, 'hex'), '' ORDER BY p.position) FROM placed p)"
           " AS hashes, coalesce(max(q.fact_id) FILTER (WHERE q.source = 'customer'), 0) AS customer,"
           " coalesce(max(q.fact_id) FILTER (WHERE q.source = 'cleanup'), 0) AS cleanup,"
           " coalesce(max(q.fact_id) FILTER (WHERE q.source = 'receipt'), 0) AS receipt FROM placed q JOIN (SELECT "
           "source, count(*) AS rows FROM placed GROUP BY 1) n USING (source)",
    .params = 4,
    .columns = "count:int8 receipts:int8 more:bool hashes:text customer:int8 cleanup:int8 receipt:int8",
};

/* $1: matured sources. Only when every visible row was sealed. A mark of a transaction that is still to come is of another cluster, from
 * which this database was taken over: it is made anew. */
static const struct statement sealed_log_mark = {
    .name = "sealed_log_mark",
    .sql = "UPDATE reclaim.sealed_sources s SET floor = CASE WHEN n.matured THEN s.mark ELSE s.floor END,"
           " mark = CASE WHEN n.anew THEN n.newest ELSE s.mark END,"
           " mark_xid = CASE WHEN n.anew THEN pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())"
           " ELSE s.mark_xid END,"
           " marked_at = CASE WHEN n.anew THEN pg_catalog.clock_timestamp() ELSE s.marked_at END"
           " FROM (SELECT m.source, m.source || ':' || m.mark = ANY ($1::text[]) AS matured,"
           " m.source || ':' || m.mark = ANY ($1::text[]) OR m.mark = m.floor"
           " OR m.mark_xid > pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot()) AS anew, greatest(m.mark,"
           " CASE m.source WHEN 'customer' THEN (SELECT max(id) FROM reclaim.customer_log)"
           " WHEN 'cleanup' THEN (SELECT max(id) FROM reclaim.auth_cleanup_events)"
           " ELSE (SELECT max(id) FROM reclaim.receipt_facts) END) AS newest FROM reclaim.sealed_sources m) n"
           " WHERE n.source = s.source AND (n.matured OR n.anew AND (n.newest > s.mark OR s.mark > s.floor))",
    .params = 1,
    .columns = "",
};

static const struct statement sealed_log_head = {
    .name = "sealed_log_head",
    .sql = "INSERT INTO reclaim.sealed_heads (size, frontier, jws)"
           " VALUES ($1::int8, pg_catalog.decode($2, 'hex'), $3)",
    .params = 3,
    .columns = "",
};

const struct statement sealed_log_add_certificates = {
    .name = "sealed_log_add_certificates",
    .sql = "INSERT INTO reclaim.sealed_leaves (position, source, fact_id, hash)"
           " SELECT n.position, 'certificate', c.id, pg_catalog.decode(n.hash, 'hex')"
           " FROM unnest($1::int8[], $2::uuid[], $3::text[]) AS n (position, certificate_id, hash)"
           " JOIN reclaim.erasure_certificates c USING (certificate_id)",
    .params = 3,
    .columns = "",
};

const struct statement *const sealed_log_statements[] = {
    &sealed_log_lock, &sealed_log_read, &sealed_log_append,
    &sealed_log_mark, &sealed_log_head, &sealed_log_add_certificates,
};
const size_t sealed_log_statement_count = COUNT_OF(sealed_log_statements);

void installation_name(const struct proof_keys *keys, struct str created, char ret[INSTALLATION_ID_LEN + 1])
{
    const struct str parts[] = {{(const char *)keys->generations[0].public.bytes, PROOF_PUBLIC_LEN}, created};
    struct digest id = digest_sha256_parts(parts, COUNT_OF(parts));
    hex_write(id.bytes, INSTALLATION_ID_LEN / 2, ret);
}

static enum err read_digest(const json_t *claims, const char *name, struct digest *ret)
{
    struct str text;
    size_t len;
    return json_get_str(claims, name, &text) || base64url_read(text, ret->bytes, sizeof ret->bytes, &len) ||
                   len != sizeof ret->bytes
               ? ERR_INPUT
               : OK;
}

enum err sealed_head_read(struct str jws, const struct proof_key_set *set, struct sealed_head *ret, struct why *why)
{
    AUTO(buf) struct buf payload = buf_new(SEALED_HEAD_MAX);
    enum err e = jws_read(jws, JWS_HEAD, set, &payload, why);
    if (e)
        return e;
    AUTO(json) json_t *claims = json_read_object(buf_str(&payload), NULL);
    struct str installation;
    *ret = (struct sealed_head){.size = json_integer_value(json_object_get(claims, "size")),
                                .epoch = json_integer_value(json_object_get(claims, "epoch")),
                                .signed_s = json_integer_value(json_object_get(claims, "iat")),
                                .retention_s = json_integer_value(json_object_get(claims, "retention")),
                                .xmax = json_integer_value(json_object_get(claims, "xmax")),
                                .lasting = json_integer_value(json_object_get(claims, "lasting"))};
    ret->has_former = read_digest(claims, "previous", &ret->former) == OK;
    if (ret->size < 1 || read_digest(claims, "root", &ret->root) ||
        json_get_str(claims, "installation", &installation) ||
        str_copy(installation, ret->installation, sizeof ret->installation))
        return why_set(why, ERR_INPUT, "it is not a head of a sealed log");
    return OK;
}

/* The tree as the last head says it is. */
static enum err read_frontier(struct sealed_log *log, const struct proof_key_set *set, const struct pg_call *row)
{
    uint8_t bytes[MERKLE_LEVELS * DIGEST_LEN];
    struct str hex = pg_get(row, 0, 1);
    struct sealed_head head;
    struct why why;
    if (pg_is_null(row, 0, 0))
        return OK;
    if (str_copy(pg_get(row, 0, 2), log->former, sizeof log->former) || hex.len > 2 * sizeof bytes ||
        hex_read(hex, bytes, hex.len / 2) ||
        merkle_frontier_read((uint64_t)pg_get_i64(row, 0, 0), bytes, hex.len / 2, &log->before) ||
        sealed_head_read(str_of(log->former), set, &head, &why))
        return ERR_INPUT;
    struct digest root = merkle_root(&log->before);
    log->lasting = head.lasting;
    return (uint64_t)head.size == log->before.size && digest_eq(&head.root, &root) &&
                   strcmp(head.installation, log->installation) == 0
               ? OK
               : ERR_INPUT;
}

static enum err read_state(struct sealed_log *log, const struct sealed_log_terms *terms, const struct pg_call *row)
{
    int64_t generation = pg_get_i64(row, 0, 6);
    struct proof_key_set set;
    if (generation < 1 || generation > PROOF_GENERATIONS)
        return ERR_INPUT;
    proof_keys_public(terms->keys, (int)generation, &set);
    log->key = &terms->keys->generations[generation - 1];
    log->xmax = pg_get_i64(row, 0, 4);
    log->clock_s = pg_get_i64(row, 0, 5);
    log->epoch = pg_get_i64(row, 0, 7);
    log->retention_s = terms->retention_ms / 1000;
    installation_name(terms->keys, pg_get(row, 0, 8), log->installation);
    enum err e = read_frontier(log, &set, row);
    gauge_set(&broken, e ? 1 : 0);
    if (e)
        log_error("the sealed log does not fit its last signed head: see reclaim audit verify",
                  F_INT("size", pg_get_i64(row, 0, 0)));
    return e;
}

static enum err read_leaves(struct sealed_log *log, const struct pg_call *rows, size_t room)
{
    struct str hashes = pg_get(rows, 0, 3);
    log->facts = (size_t)pg_get_i64(rows, 0, 0);
    log->lasting += pg_get_i64(rows, 0, 1);
    log->more = pg_get_bool(rows, 0, 2);
    log->room = log->facts + room;
    log->leaves = arena_take(log->arena, (log->room ? log->room : 1) * sizeof *log->leaves);
    if (!log->leaves)
        return ERR_MEMORY;
    if (hashes.len != log->facts * DIGEST_HEX_LEN)
        return ERR_INPUT;
    for (; log->count < log->facts; log->count++)
        if (digest_parse((struct str){hashes.at + log->count * DIGEST_HEX_LEN, DIGEST_HEX_LEN},
                         &log->leaves[log->count]))
            return ERR_INPUT;
    return OK;
}

enum err sealed_log_begin(struct sealed_log *log, const struct sealed_log_terms *terms, struct tx *tx,
                          struct arena *arena, size_t room, struct sealed_up_to *up_to)
{
    struct pg_call calls[] = {
        {.ask = &sealed_log_lock},
        {.ask = &sealed_log_read},
        {.ask = &sealed_log_append,
         .args = {pg_i64(SEALED_LOG_ROWS), pg_i64(up_to->customer), pg_i64(up_to->cleanup), pg_i64(up_to->receipt)}}};
    *log = (struct sealed_log){.arena = arena};
    enum err e = tx_trip(tx, calls, COUNT_OF(calls));
    if (!e)
        e = read_state(log, terms, &calls[1]);
    if (!e)
        e = read_leaves(log, &calls[2], room);
    if (!e && !*up_to->matured)
        e = str_copy(pg_is_null(&calls[1], 0, 3) ? STR("{}") : pg_get(&calls[1], 0, 3), up_to->matured,
                     sizeof up_to->matured);
    if (e)
        return e;
    log->matured = up_to->matured;
    int64_t *const last[] = {&up_to->customer, &up_to->cleanup, &up_to->receipt};
    for (int i = 0; i < (int)COUNT_OF(last); i++)
        if (pg_get_i64(&calls[2], 0, 4 + i) > *last[i])
            *last[i] = pg_get_i64(&calls[2], 0, 4 + i);
    return OK;
}

int64_t sealed_log_add(struct sealed_log *log, const struct digest *leaf)
{
    log->leaves[log->count] = *leaf;
    return (int64_t)(log->before.size + log->count++);
}

static void sign_head(struct sealed_log *log)
{
    char text[SEALED_HEAD_MAX];
    struct buf claims = buf_over(text, sizeof text), head = buf_over(log->head, sizeof log->head);
    buf_addf(&claims, "{\"iss\":\"reclaim\",\"installation\":\"%s\",\"iat\":%lld,\"size\":%llu,\"root\":\"",
             log->installation, (long long)log->clock_s, (unsigned long long)log->after.size);
    base64url_add(&claims, digest_str(&log->root));
    if (*log->former) {
        struct digest former = digest_sha256(str_of(log->former));
        buf_addz(&claims, "\",\"previous\":\"");
        base64url_add(&claims, digest_str(&former));
    }
    int64_t lasting = log->lasting + (int64_t)(log->count - log->facts);
    buf_addf(&claims, "\",\"lasting\":%lld,\"epoch\":%lld,\"retention\":%lld,\"xmax\":%lld}", (long long)lasting,
             (long long)log->epoch, (long long)log->retention_s, (long long)log->xmax);
    jws_write(log->key, JWS_HEAD, buf_str(&claims), &head);
}

enum err sealed_log_close(struct sealed_log *log)
{
    uint8_t peaks[MERKLE_LEVELS * DIGEST_LEN];
    if (log->count == 0)
        return OK;
    log->batch = merkle_batch_new(log->arena, &log->before, log->leaves, log->count);
    log->frontier = arena_take(log->arena, 2 * sizeof peaks + 1);
    if (!log->batch || !log->frontier)
        return ERR_MEMORY;
    log->after = log->before;
    merkle_append(&log->after, log->leaves, log->count);
    log->root = merkle_root(&log->after);
    hex_write(peaks, merkle_frontier_write(&log->after, peaks), log->frontier);
    sign_head(log);
    return OK;
}

size_t sealed_log_writes(struct sealed_log *log, struct pg_call *calls)
{
    size_t count = 0;
    counter_add(&sealed, log->count);
    if (log->count)
        calls[count++] =
            (struct pg_call){.ask = &sealed_log_head,
                             .args = {pg_i64((int64_t)log->after.size), pg_text(log->frontier), pg_text(log->head)}};
    if (!log->more && (log->count || strcmp(log->matured, "{}") != 0))
        calls[count++] = (struct pg_call){.ask = &sealed_log_mark, .args = {pg_text(log->matured)}};
    return count;
}
