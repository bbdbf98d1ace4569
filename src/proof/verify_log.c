#include "proof/verify_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proof/facts.h"

#define HEADS_AT_ONCE 1000
#define LEAVES_AT_ONCE 5000
#define DATED_BACK_S 60

static const struct statement verify_installation = {
    .name = "verify_installation",
    .sql = "SELECT proof_generation AS generation, (extract(epoch FROM created_at) * 1000000)::int8::text AS created"
           " FROM reclaim.installation",
    .params = 0,
    .columns = "generation:int4 created:text",
};

static const struct statement verify_heads = {
    .name = "verify_heads",
    .sql = "SELECT size, jws FROM reclaim.sealed_heads WHERE size > $1::int8 ORDER BY size LIMIT $2::int8",
    .params = 2,
    .columns = "size:int8 jws:text",
};

#define ROW_OF(name, source, table, fact)                                                                              \
    " LEFT JOIN LATERAL (SELECT " FACT_HASH(fact) " AS hash, l.created_at, l.xmin::text::int8 AS xmin FROM " table     \
                                                  " l WHERE s.source = '" source "' AND l.id = s.fact_id) " name       \
                                                  " ON true"

static const struct statement verify_leaves = {
    .name = "verify_leaves",
    .sql = "SELECT s.position, s.source, s.fact_id, pg_catalog.encode(s.hash, 'hex') AS hash,"
           " pg_catalog.encode(coalesce(c.hash, e.hash, r.hash, p.hash), 'hex') AS now,"
           " extract(epoch FROM coalesce(c.created_at, e.created_at, r.created_at, p.created_at))::int8 AS created_s,"
           " coalesce(c.xmin, e.xmin, r.xmin, p.xmin) AS xmin FROM reclaim.sealed_leaves s" ROW_OF(
               "c", "customer", "reclaim.customer_log",
               FACT_OF_CUSTOMER) ROW_OF("e", "cleanup", "reclaim.auth_cleanup_events", FACT_OF_CLEANUP)
               ROW_OF("r", "receipt", "reclaim.receipt_facts", FACT_OF_RECEIPT) ROW_OF(
                   "p", "certificate", "reclaim.erasure_certificates",
                   FACT_OF_CERTIFICATE) " WHERE s.position >= $1::int8 AND s.position < $2::int8 ORDER BY s.position",
    .params = 2,
    .columns = "position:int8 source:text fact_id:int8 hash:text now:text created_s:int8 xmin:int8",
};

#define WITHOUT_LEAF(source, table)                                                                                    \
    "SELECT '" source "' AS source, l.id, l.id <= s.floor AS inserted FROM " table " l"                                \
    " JOIN reclaim.sealed_sources s ON s.source = '" source "' WHERE NOT EXISTS (SELECT FROM reclaim.sealed_leaves f"  \
    " WHERE f.source = '" source "' AND f.fact_id = l.id)"

static const struct statement verify_rows = {
    .name = "verify_rows",
    .sql = WITHOUT_LEAF("customer", "reclaim.customer_log") " UNION ALL " WITHOUT_LEAF(
        "cleanup",
        "reclaim.auth_cleanup_events") " UNION ALL " WITHOUT_LEAF("receipt",
                                                                  "reclaim.receipt_facts") " UNION ALL"
                                                                                           " SELECT 'certificate', "
                                                                                           "l.id, true FROM "
                                                                                           "reclaim.erasure_"
                                                                                           "certificates l WHERE NOT "
                                                                                           "EXISTS ("
                                                                                           " SELECT FROM "
                                                                                           "reclaim.sealed_leaves f "
                                                                                           "WHERE f.source = "
                                                                                           "'certificate' AND "
                                                                                           "f.fact_id = l.id)"
                                                                                           " UNION ALL SELECT 'leaf', "
                                                                                           "l.position, true FROM "
                                                                                           "reclaim.sealed_leaves l "
                                                                                           "WHERE l.position < 0 OR "
                                                                                           "l.position >="
                                                                                           " coalesce((SELECT "
                                                                                           "max(h.size) FROM "
                                                                                           "reclaim.sealed_heads h), "
                                                                                           "0) LIMIT 10000",
    .params = 0,
    .columns = "source:text id:int8 inserted:bool",
};

const struct statement *const verify_log_statements[] = {&verify_installation, &verify_heads, &verify_leaves,
                                                         &verify_rows};
const size_t verify_log_statement_count = COUNT_OF(verify_log_statements);

void verify_report(struct log_verifier *v, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    v->findings++;
    v->found(v->context, text);
}

static const char *table_of(struct str source)
{
    static const char *const names[][2] = {{"customer", "customer_log"},
                                           {"cleanup", "auth_cleanup_events"},
                                           {"receipt", "receipt_facts"},
                                           {"certificate", "erasure_certificates"}};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(source, str_of(names[i][0])))
            return names[i][1];
    return "a table that is not sealed";
}

/* What was read and recomputed so far. */
struct log_walk {
    struct merkle_frontier tree;
    struct sealed_head before; /* the last head; size 0: none */
    struct digest before_hash;
    int64_t gone_before_s; /* rows sealed before may have been removed by retention */
    int64_t last_position; /* to notice two rows with one leaf */
};

/* Heads alone: signatures, and each names the one before. */
static void check_head(struct log_verifier *v, struct log_walk *w, int64_t size, struct str jws)
{
    struct sealed_head head;
    struct why why;
    v->heads++;
    if (sealed_head_read(jws, &v->set, &head, &why)) {
        verify_report(v, "changed: the head of size %lld is not one that this installation signed (%s)",
                      (long long)size, why.text);
        head = (struct sealed_head){.size = size};
    } else if (head.size != size || strcmp(head.installation, v->installation) != 0) {
        verify_report(v, "changed: the head of size %lld was signed for another size or installation", (long long)size);
    } else if (w->before.size == 0 ? head.has_former : !head.has_former || !digest_eq(&head.former, &w->before_hash)) {
        verify_report(v, "removed: the head of size %lld names another one before it than the one that is there",
                      (long long)size);
    } else if (head.signed_s < w->before.signed_s) {
        verify_report(v, "changed: the head of size %lld is older than the one before it", (long long)size);
    }
    if (head.signed_s - head.retention_s > w->gone_before_s)
        w->gone_before_s = head.signed_s - head.retention_s;
    w->before = head;
    w->before_hash = digest_sha256(jws);
}

static enum err read_heads(struct log_verifier *v, int64_t after, struct pg_call *ret)
{
    *ret = (struct pg_call){.ask = &verify_heads, .args = {pg_i64(after), pg_i64(HEADS_AT_ONCE)}};
    return pg_ask(v->pg, ret, v->deadline_ns());
}

static enum err check_heads(struct log_verifier *v, struct log_walk *w)
{
    struct pg_call heads;
    int64_t size = -1;
    enum err e;
    do {
        if ((e = read_heads(v, size, &heads)))
            return e;
        for (int i = 0; i < heads.rows; i++)
            check_head(v, w, size = pg_get_i64(&heads, i, 0), pg_get(&heads, i, 1));
    } while (heads.rows == HEADS_AT_ONCE);
    return OK;
}

/* Whether a transaction began to write after the head was signed. Row versions have the lower half of a transaction's number. */
static bool is_later(int64_t xmin, int64_t xmax)
{
    return xmin > 2 && (int32_t)((uint32_t)xmin - (uint32_t)xmax) >= 0;
}

static void check_row(struct log_verifier *v, struct log_walk *w, const struct sealed_head *before,
                      const struct sealed_head *head, const struct pg_call *rows, int row)
{
    struct str source = pg_get(rows, row, 1), now = pg_get(rows, row, 4);
    const char *table = table_of(source);
    long long id = pg_get_i64(rows, row, 2), position = pg_get_i64(rows, row, 0);
    bool keeps = str_eq(source, STR("receipt")) || str_eq(source, STR("certificate"));
    if (!now.at && !keeps && head->signed_s < w->gone_before_s)
        v->expired++;
    else if (!now.at)
        verify_report(v, "removed: row %lld of %s (leaf %lld)", id, table, position);
    else if (!str_eq(now, pg_get(rows, row, 3)))
        verify_report(v, "changed: row %lld of %s (leaf %lld)", id, table, position);
    else if (before->size > 0 && pg_get_i64(rows, row, 5) < before->signed_s - DATED_BACK_S &&
             before->epoch == head->epoch && is_later(pg_get_i64(rows, row, 6), before->xmax))
        verify_report(
            v, "inserted: row %lld of %s (leaf %lld) is dated back: its transaction began after the head of size %lld",
            id, table, position, (long long)before->size);
}

static void check_leaf(struct log_verifier *v, struct log_walk *w, const struct sealed_head *before,
                       const struct sealed_head *head, const struct pg_call *rows, int row)
{
    struct digest leaf;
    int64_t position = pg_get_i64(rows, row, 0);
    if (position == w->last_position) {
        verify_report(v, "inserted: a second row %lld of %s", (long long)pg_get_i64(rows, row, 2),
                      table_of(pg_get(rows, row, 1)));
        return;
    }
    w->last_position = position;
    if (position != (int64_t)w->tree.size || digest_parse(pg_get(rows, row, 3), &leaf)) {
        verify_report(v, "removed: leaf %lld", (long long)w->tree.size);
        w->tree.size = (uint64_t)position; /* the root of this head differs from here on */
        leaf = (struct digest){0};
    }
    merkle_append(&w->tree, &leaf, 1);
    v->leaves++;
    check_row(v, w, before, head, rows, row);
}

/* The leaves between two heads, and the root that they give. */
static enum err check_leaves(struct log_verifier *v, struct log_walk *w, const struct sealed_head *before,
                             const struct sealed_head *head)
{
    int64_t findings = v->findings;
    for (int64_t from = before->size; from < head->size; from += LEAVES_AT_ONCE) {
        int64_t to = from + LEAVES_AT_ONCE < head->size ? from + LEAVES_AT_ONCE : head->size;
        struct pg_call rows = {.ask = &verify_leaves, .args = {pg_i64(from), pg_i64(to)}};
        enum err e = pg_ask(v->pg, &rows, v->deadline_ns());
        if (e)
            return e;
        for (int i = 0; i < rows.rows; i++)
            check_leaf(v, w, before, head, &rows, i);
    }
    if (w->tree.size != (uint64_t)head->size && v->findings == findings)
        verify_report(v, "removed: leaf %lld", (long long)w->tree.size);
    struct digest root = merkle_root(&w->tree);
    if (!digest_eq(&root, &head->root) && v->findings == findings)
        verify_report(v, "changed: the leaves up to %lld do not give the root of their signed head",
                      (long long)head->size);
    w->tree.size = (uint64_t)head->size;
    return OK;
}

/* A page of heads is copied, since reading leaves takes the connection. */
static enum err check_page(struct log_verifier *v, struct log_walk *w, struct sealed_head *before, int64_t *after,
                           bool *ret_more)
{
    struct pg_call page;
    enum err e = read_heads(v, *after, &page);
    if (e)
        return e;
    int count = page.rows;
    struct sealed_head *heads = calloc((size_t)count + 1, sizeof *heads);
    if (!heads)
        return ERR_MEMORY;
    for (int i = 0; i < count; i++)
        if (sealed_head_read(pg_get(&page, i, 1), &v->set, &heads[i], NULL))
            heads[i] = (struct sealed_head){.size = pg_get_i64(&page, i, 0)}; /* reported with the heads */
    for (int i = 0; i < count && !e; i++) {
        e = check_leaves(v, w, before, &heads[i]);
        *after = heads[i].size;
        *before = heads[i];
    }
    free(heads);
    *ret_more = count == HEADS_AT_ONCE;
    return e;
}

static enum err check_rows(struct log_verifier *v)
{
    struct pg_call rows = {.ask = &verify_rows};
    enum err e = pg_ask(v->pg, &rows, v->deadline_ns());
    for (int i = 0; i < rows.rows && !e; i++)
        if (str_eq(pg_get(&rows, i, 0), STR("leaf")))
            verify_report(v, "inserted: leaf %lld is under no signed head", (long long)pg_get_i64(&rows, i, 1));
        else if (pg_get_bool(&rows, i, 2))
            verify_report(v, "inserted: row %lld of %s has no leaf", (long long)pg_get_i64(&rows, i, 1),
                          table_of(pg_get(&rows, i, 0)));
        else
            v->unsealed++;
    return e;
}

enum err log_verify(struct log_verifier *v)
{
    struct log_walk w = {.gone_before_s = clock_wall_us() / 1000000 - v->retention_ms / 1000, .last_position = -1};
    struct sealed_head before = {0};
    struct pg_call installation = {.ask = &verify_installation};
    enum err e = pg_ask(v->pg, &installation, v->deadline_ns());
    if (e)
        return e;
    proof_keys_public(v->keys, (int)pg_get_i64(&installation, 0, 0), &v->set);
    installation_name(v->keys, pg_get(&installation, 0, 1), v->installation);
    if ((e = check_heads(v, &w)))
        return e;
    int64_t after = -1;
    for (bool more = true; more && !e;)
        e = check_page(v, &w, &before, &after, &more);
    return e ? e : check_rows(v);
}
