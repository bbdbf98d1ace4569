#include "proof/verify_log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proof/facts.h"

#define HEADS_AT_ONCE 1000
#define LEAVES_AT_ONCE 5000
#define CALLS_AT_ONCE 4
/* Between a row's time and its commit, or its sealing: more than a transaction of Reclaim, and a round of the leader, may take. */
#define LAG_S 60
#define LAG "60"

/* Operators and functions that are not qualified must be PostgreSQL's: a role's or database's own search_path may name others. */
static const struct statement verify_path = {
    .name = "verify_path",
    .sql = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true) AS path",
    .params = 0,
    .columns = "path:text",
};

/* In seconds. A time that is infinite, or years away, is a finding and not an error. */
#define SECONDS(time)                                                                                                  \
    "extract(epoch FROM least(greatest(" time ", '0001-01-01 00:00Z'::timestamptz), '9999-01-01 "                      \
    "00:00Z'::timestamptz))"

static const struct statement verify_installation = {
    .name = "verify_installation",
    .sql = "SELECT proof_generation AS generation, (" SECONDS(
        "created_at") " * 1000000)::int8::text AS created, epoch,"
                      " " SECONDS("created_at") "::int8 AS created_s FROM reclaim.installation",
    .params = 0,
    .columns = "generation:int4 created:text epoch:int4 created_s:int8",
};

static const struct statement verify_heads = {
    .name = "verify_heads",
    .sql = "SELECT size, jws, pg_catalog.encode(frontier, 'hex') AS frontier FROM reclaim.sealed_heads"
           " WHERE size > $1::int8 ORDER BY size LIMIT $2::int8",
    .params = 2,
    .columns = "size:int8 jws:text frontier:text",
};

/* clang-format off */
#define ROW_OF(name, source, table, fact) \
    " LEFT JOIN LATERAL (SELECT " FACT_HASH(fact) " AS hash, l.created_at, l.xmin::text::int8 AS xmin" \
    " FROM " table " l WHERE s.source = '" source "' AND l.id = s.fact_id) " name " ON true"

static const struct statement verify_leaves = {
    .name = "verify_leaves",
    .sql = "SELECT s.position, s.source, s.fact_id, pg_catalog.encode(s.hash, 'hex') AS hash,"
           " pg_catalog.encode(coalesce(c.hash, e.hash, r.hash, p.hash), 'hex') AS now,"
           " " SECONDS("coalesce(c.created_at, e.created_at, r.created_at, p.created_at)") "::int8 AS created_s,"
           " coalesce(c.xmin, e.xmin, r.xmin, p.xmin) AS xmin FROM reclaim.sealed_leaves s"
           ROW_OF("c", "customer", "reclaim.customer_log", FACT_OF_CUSTOMER)
           ROW_OF("e", "cleanup", "reclaim.auth_cleanup_events", FACT_OF_CLEANUP)
           ROW_OF("r", "receipt", "reclaim.receipt_facts", FACT_OF_RECEIPT)
           ROW_OF("p", "certificate", "reclaim.erasure_certificates", FACT_OF_CERTIFICATE)
           " WHERE s.position >= $1::int8 AND s.position < $2::int8 ORDER BY s.position",
    .params = 2,
    .columns = "position:int8 source:text fact_id:int8 hash:text now:text created_s:int8 xmin:int8",
};

#define WITHOUT_LEAF(source, table) \
    table " l WHERE NOT EXISTS (SELECT FROM reclaim.sealed_leaves f WHERE f.source = '" source "' AND f.fact_id = l.id)"
/* Of those: what is not new. Rows up to the floor were sealed; a row that is older than the head after which its transaction began
 * was dated back. As is_later(), and signed_s and xmax are those of sealed_to. */
#define INSERTED(source, table, signed_s, xmax) \
    "SELECT '" source "' AS source, l.id FROM " WITHOUT_LEAF(source, table) \
    " AND (l.id <= (SELECT s.floor FROM reclaim.sealed_sources s WHERE s.source = '" source "')" \
    " OR l.created_at < least(pg_catalog.to_timestamp(" signed_s "::float8), pg_catalog.clock_timestamp())" \
    " - " LAG " * interval '1 second'" \
    " AND l.xmin::text::int8 > 2 AND (l.xmin::text::int8 - " xmax "::int8) & 4294967295 < 2147483648)"

/* $1 leaves under signed heads; $8 the last head that was read: others were signed meanwhile */
static const struct statement verify_inserted = {
    .name = "verify_inserted",
    .sql = INSERTED("customer", "reclaim.customer_log", "$2", "$3")
           " UNION ALL " INSERTED("cleanup", "reclaim.auth_cleanup_events", "$4", "$5")
           " UNION ALL " INSERTED("receipt", "reclaim.receipt_facts", "$6", "$7")
           " UNION ALL SELECT 'certificate', l.id FROM " WITHOUT_LEAF("certificate", "reclaim.erasure_certificates")
           " UNION ALL SELECT 'leaf', l.position FROM reclaim.sealed_leaves l"
           " WHERE l.position < 0 OR l.position >="
           " coalesce((SELECT max(h.size) FROM reclaim.sealed_heads h WHERE h.size > $8::int8), $1::int8)"
           " ORDER BY 1, 2 LIMIT 10000",
    .params = 8,
    .columns = "source:text id:int8",
};

static const struct statement verify_unsealed = {
    .name = "verify_unsealed",
    .sql = "SELECT (SELECT count(*) FROM " WITHOUT_LEAF("customer", "reclaim.customer_log") ")"
           " + (SELECT count(*) FROM " WITHOUT_LEAF("cleanup", "reclaim.auth_cleanup_events") ")"
           " + (SELECT count(*) FROM " WITHOUT_LEAF("receipt", "reclaim.receipt_facts") ") AS count",
    .params = 0,
    .columns = "count:int8",
};
/* clang-format on */

/* Rows up to the floor are never sealed any more: it is at most the newest id that was. */
static const struct statement verify_sources = {
    .name = "verify_sources",
    .sql = "SELECT n.source, s.source IS NULL AS removed FROM (SELECT 'customer' AS source, max(l.id) AS newest"
           " FROM reclaim.customer_log l UNION ALL SELECT 'cleanup', max(l.id) FROM reclaim.auth_cleanup_events l"
           " UNION ALL SELECT 'receipt', max(l.id) FROM reclaim.receipt_facts l) n"
           " LEFT JOIN reclaim.sealed_sources s ON s.source = n.source"
           " CROSS JOIN LATERAL (SELECT coalesce(max(f.fact_id), 0) AS newest FROM reclaim.sealed_leaves f"
           " WHERE f.source = n.source) f"
           " WHERE s.source IS NULL OR s.floor > f.newest OR s.mark > greatest(f.newest, n.newest)",
    .params = 0,
    .columns = "source:text removed:bool",
};

const struct statement *const verify_log_statements[] = {&verify_path,   &verify_installation, &verify_heads,
                                                         &verify_leaves, &verify_inserted,     &verify_unsealed,
                                                         &verify_sources};
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

enum err verify_ask(struct log_verifier *v, struct pg_call *calls, size_t count)
{
    struct pg_call all[1 + CALLS_AT_ONCE] = {{.ask = &verify_path}};
    if (count > CALLS_AT_ONCE)
        return ERR_FULL;
    memcpy(all + 1, calls, count * sizeof *calls);
    enum err e = pg_trip(v->pg, all, 1 + count, v->deadline_ns());
    memcpy(calls, all + 1, count * sizeof *calls);
    return e;
}

/* In the order of their leaves under one head. Of audit rows, retention removes those that are old. */
enum log_source { CLEANUP, CUSTOMER, RECEIPT, CERTIFICATE, SOURCES };

static const struct {
    const char *name, *table;
    bool expires;
} sources[SOURCES] = {
    [CLEANUP] = {"cleanup", "auth_cleanup_events", true},
    [CUSTOMER] = {"customer", "customer_log", true},
    [RECEIPT] = {"receipt", "receipt_facts", false},
    [CERTIFICATE] = {"certificate", "erasure_certificates", false},
};

static enum log_source source_of(struct str name)
{
    enum log_source s = 0;
    while (s < SOURCES && !str_eq(name, str_of(sources[s].name)))
        s++;
    return s;
}

/* What was read and recomputed so far. */
struct log_walk {
    struct merkle_frontier tree;
    bool in_step;              /* the tree fits the last head */
    struct sealed_head before; /* the last head; size 0: none */
    struct digest before_hash;
    struct proof_key_set generations; /* that the installation says it has */
    int64_t later_key;                /* size of the first head that is signed with a later one; 0: none */
    int64_t installed_s;
    int64_t now_s;
    int64_t gone_before_s; /* rows made before may have been removed by retention */
    int64_t last_position; /* to notice two rows with one leaf */
    int64_t lasting;       /* leaves of rows that retention does not remove */
    struct {
        struct sealed_head sealed_to; /* the last head by which every row that was there was sealed */
        int64_t leaves;               /* under this head */
        bool present;                 /* a row of a leaf before is there */
    } of[SOURCES];
    enum log_source last_source; /* of the leaf before, under this head */
    int64_t last_id;
    int64_t out_of_order; /* a leaf under this head that is; -1: none */
};

/* Heads alone: signatures, and each names the one before. */
static void check_head(struct log_verifier *v, struct log_walk *w, int64_t size, struct str jws)
{
    struct sealed_head head, again;
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
    } else if (w->later_key == 0 && sealed_head_read(jws, &w->generations, &again, NULL)) {
        w->later_key = size;
    }
    if (head.signed_s <= w->now_s && head.signed_s - head.retention_s > w->gone_before_s)
        w->gone_before_s = head.signed_s - head.retention_s;
    w->before = head;
    w->before_hash = digest_sha256(jws);
}

static enum err read_heads(struct log_verifier *v, int64_t after, struct pg_call *ret)
{
    *ret = (struct pg_call){.ask = &verify_heads, .args = {pg_i64(after), pg_i64(HEADS_AT_ONCE)}};
    return verify_ask(v, ret, 1);
}

static enum err check_heads(struct log_verifier *v, struct log_walk *w)
{
    struct pg_call heads;
    int64_t size = INT64_MIN;
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

/* Whether retention may have removed the row of a leaf. Rows under a head are about as old as the head; when many were sealed late they
 * are at most as old as the head before, and retention has removed those before them too. */
static bool may_be_gone(const struct log_walk *w, enum log_source s, const struct sealed_head *head)
{
    const struct sealed_head *sealed_to = &w->of[s].sealed_to;
    int64_t oldest_s = sealed_to->size ? sealed_to->signed_s - LAG_S : w->installed_s;
    return sources[s].expires &&
           (head->signed_s - LAG_S < w->gone_before_s || (oldest_s < w->gone_before_s && !w->of[s].present));
}

/* Whether a row is older than rows of its time can be: those of before the head were sealed by then. The clock of the database may have
 * gone back since. */
static bool is_dated_back(const struct sealed_head *sealed_to, const struct sealed_head *head, int64_t created_s,
                          int64_t xmin)
{
    int64_t oldest_s = (sealed_to->signed_s < head->signed_s ? sealed_to->signed_s : head->signed_s) - LAG_S;
    return sealed_to->size > 0 && created_s < oldest_s && is_later(xmin, sealed_to->xmax);
}

static void check_row(struct log_verifier *v, struct log_walk *w, enum log_source s, const struct sealed_head *head,
                      const struct pg_call *rows, int row)
{
    struct str now = pg_get(rows, row, 4);
    const struct sealed_head *sealed_to = &w->of[s].sealed_to;
    long long id = pg_get_i64(rows, row, 2), position = pg_get_i64(rows, row, 0);
    w->of[s].leaves++;
    if (!now.at && may_be_gone(w, s, head))
        v->expired++;
    else if (!now.at)
        verify_report(v, "removed: row %lld of %s (leaf %lld)", id, sources[s].table, position);
    else if (!str_eq(now, pg_get(rows, row, 3)))
        verify_report(v, "changed: row %lld of %s (leaf %lld)", id, sources[s].table, position);
    else if (is_dated_back(sealed_to, head, pg_get_i64(rows, row, 5), pg_get_i64(rows, row, 6)))
        verify_report(
            v, "inserted: row %lld of %s (leaf %lld) is dated back: its transaction began after the head of size %lld",
            id, sources[s].table, position, (long long)sealed_to->size);
    if (now.at)
        w->of[s].present = true;
}

static void check_leaf(struct log_verifier *v, struct log_walk *w, const struct sealed_head *head,
                       const struct pg_call *rows, int row)
{
    struct digest leaf;
    int64_t position = pg_get_i64(rows, row, 0), id = pg_get_i64(rows, row, 2);
    enum log_source s = source_of(pg_get(rows, row, 1));
    if (position == w->last_position) {
        verify_report(v, "inserted: a second row %lld of %s", (long long)id,
                      s < SOURCES ? sources[s].table : "no table");
        return;
    }
    w->last_position = position;
    if (position != (int64_t)w->tree.size) {
        verify_report(v, "removed: leaf %lld", (long long)w->tree.size);
        w->tree.size = (uint64_t)position; /* the root of this head differs from here on */
    }
    if (digest_parse(pg_get(rows, row, 3), &leaf))
        leaf = (struct digest){0};
    if (w->out_of_order < 0 && (s < w->last_source || (s == w->last_source && id <= w->last_id)))
        w->out_of_order = position;
    w->last_source = s;
    w->last_id = id;
    merkle_append(&w->tree, &leaf, 1);
    v->leaves++;
    if (s == SOURCES)
        verify_report(v, "changed: leaf %lld is of a table that is not sealed", (long long)position);
    else
        check_row(v, w, s, head, rows, row);
}

/* A head that holds, and the tree that is stored with it. */
struct page_head {
    struct sealed_head head;
    struct merkle_frontier stored;
};

static bool has_root(const struct merkle_frontier *tree, const struct sealed_head *head)
{
    struct digest root = merkle_root(tree);
    return tree->size == (uint64_t)head->size && digest_eq(&root, &head->root);
}

/* Goes on with the stored tree if it fits, so that leaves that were changed are reported with their own head alone. */
static void check_root(struct log_verifier *v, struct log_walk *w, int64_t from, const struct page_head *h, bool found)
{
    bool fits = has_root(&w->tree, &h->head), stored_fits = has_root(&h->stored, &h->head);
    long long last = h->head.size - 1;
    if (!fits && !found && w->in_step && w->out_of_order >= 0)
        verify_report(v,
                      "changed: leaf %lld is not where it was; the leaves %lld to %lld do not give the root of their"
                      " signed head, of size %lld",
                      (long long)w->out_of_order, (long long)from, last, last + 1);
    else if (!fits && !found && w->in_step)
        verify_report(v, "changed: the leaves %lld to %lld do not give the root of their signed head, of size %lld",
                      (long long)from, last, last + 1);
    if (!stored_fits)
        verify_report(v, "changed: the frontier of the head of size %lld", last + 1);
    else
        w->tree = h->stored;
    w->tree.size = (uint64_t)h->head.size;
    w->in_step = fits || stored_fits;
}

/* The leaves between two heads, and the root that they give. */
static enum err check_leaves(struct log_verifier *v, struct log_walk *w, const struct page_head *h)
{
    int64_t findings = v->findings, begin = (int64_t)w->tree.size;
    w->last_source = 0;
    w->last_id = INT64_MIN;
    w->out_of_order = -1;
    for (enum log_source s = 0; s < SOURCES; s++)
        w->of[s].leaves = 0;
    for (int64_t from = begin; from < h->head.size; from += LEAVES_AT_ONCE) {
        int64_t to = from + LEAVES_AT_ONCE < h->head.size ? from + LEAVES_AT_ONCE : h->head.size;
        struct pg_call rows = {.ask = &verify_leaves, .args = {pg_i64(from), pg_i64(to)}};
        enum err e = verify_ask(v, &rows, 1);
        if (e)
            return e;
        for (int i = 0; i < rows.rows; i++)
            check_leaf(v, w, &h->head, &rows, i);
    }
    if (w->tree.size != (uint64_t)h->head.size)
        verify_report(v, "removed: leaf %lld", (long long)w->tree.size);
    check_root(v, w, begin, h, v->findings != findings);
    w->lasting += w->of[RECEIPT].leaves + w->of[CERTIFICATE].leaves;
    if (w->lasting != h->head.lasting && v->findings == findings)
        verify_report(v, "changed: a leaf among %lld to %lld says that it is of another table than it was",
                      (long long)begin, (long long)h->head.size - 1);
    w->lasting = h->head.lasting;
    for (enum log_source s = 0; s < SOURCES; s++)
        if (w->of[s].leaves < SEALED_LOG_ROWS)
            w->of[s].sealed_to = h->head;
    return OK;
}

/* False for a head that does not hold: it is reported with the heads, and its leaves are checked with those of the next one. */
static bool read_head(const struct log_verifier *v, const struct pg_call *page, int row, struct page_head *ret)
{
    uint8_t bytes[MERKLE_LEVELS * DIGEST_LEN];
    struct str hex = pg_get(page, row, 2);
    if (sealed_head_read(pg_get(page, row, 1), &v->set, &ret->head, NULL) || ret->head.size != pg_get_i64(page, row, 0))
        return false;
    if (hex.len > 2 * sizeof bytes || hex_read(hex, bytes, hex.len / 2) ||
        merkle_frontier_read((uint64_t)ret->head.size, bytes, hex.len / 2, &ret->stored))
        ret->stored = (struct merkle_frontier){0};
    return true;
}

/* A page of heads is copied, since reading leaves takes the connection. */
static enum err check_page(struct log_verifier *v, struct log_walk *w, int64_t *after, bool *ret_more)
{
    struct pg_call page;
    enum err e = read_heads(v, *after, &page);
    if (e)
        return e;
    size_t count = 0;
    struct page_head *heads = calloc((size_t)page.rows + 1, sizeof *heads);
    if (!heads)
        return ERR_MEMORY;
    for (int i = 0; i < page.rows; i++) {
        count += read_head(v, &page, i, &heads[count]);
        *after = pg_get_i64(&page, i, 0);
    }
    *ret_more = page.rows == HEADS_AT_ONCE;
    for (size_t i = 0; i < count && !e; i++)
        e = check_leaves(v, w, &heads[i]);
    free(heads);
    return e;
}

/* Leaves one after the other are one finding. Returns the row of the last. */
static int report_leaves(struct log_verifier *v, const struct pg_call *rows, int row)
{
    long long first = pg_get_i64(rows, row, 1), last = first;
    while (row + 1 < rows->rows && str_eq(pg_get(rows, row + 1, 0), pg_get(rows, row, 0)) &&
           pg_get_i64(rows, row + 1, 1) == last + 1) {
        row++;
        last++;
    }
    if (first == last)
        verify_report(v, "inserted: leaf %lld is under no signed head", first);
    else
        verify_report(v, "inserted: leaf %lld and those up to %lld are under no signed head", first, last);
    return row;
}

static enum err check_rows(struct log_verifier *v, const struct log_walk *w, int64_t last_head)
{
    const struct sealed_head *customer = &w->of[CUSTOMER].sealed_to, *cleanup = &w->of[CLEANUP].sealed_to,
                             *receipt = &w->of[RECEIPT].sealed_to;
    struct pg_call calls[] = {{.ask = &verify_inserted,
                               .args = {pg_i64((int64_t)w->tree.size), pg_i64(customer->signed_s),
                                        pg_i64(customer->xmax), pg_i64(cleanup->signed_s), pg_i64(cleanup->xmax),
                                        pg_i64(receipt->signed_s), pg_i64(receipt->xmax), pg_i64(last_head)}},
                              {.ask = &verify_unsealed},
                              {.ask = &verify_sources}};
    enum err e = verify_ask(v, calls, COUNT_OF(calls));
    if (e)
        return e;
    v->unsealed = pg_get_i64(&calls[1], 0, 0);
    for (int i = 0; i < calls[0].rows; i++) {
        enum log_source s = source_of(pg_get(&calls[0], i, 0));
        long long id = pg_get_i64(&calls[0], i, 1);
        if (s == SOURCES)
            i = report_leaves(v, &calls[0], i);
        else
            verify_report(v, "inserted: row %lld of %s has no leaf, and is not new", id, sources[s].table);
        v->unsealed -= s < CERTIFICATE;
    }
    for (int i = 0; i < calls[2].rows; i++)
        verify_report(v, "%s: the row %s of sealed_sources", pg_get_bool(&calls[2], i, 1) ? "removed" : "changed",
                      pg_get(&calls[2], i, 0).at);
    return OK;
}

static enum err read_installation(struct log_verifier *v, struct log_walk *w, int64_t *ret_epoch)
{
    struct pg_call row = {.ask = &verify_installation};
    enum err e = verify_ask(v, &row, 1);
    if (e)
        return e;
    proof_keys_public(v->keys, (int)pg_get_i64(&row, 0, 0), &w->generations);
    proof_keys_public(v->keys, PROOF_GENERATIONS, &v->set);
    installation_name(v->keys, pg_get(&row, 0, 1), v->installation);
    *ret_epoch = pg_get_i64(&row, 0, 2);
    w->installed_s = pg_get_i64(&row, 0, 3);
    return OK;
}

enum err log_verify(struct log_verifier *v)
{
    int64_t now_s = clock_wall_us() / 1000000;
    struct log_walk w = {
        .now_s = now_s, .gone_before_s = now_s - v->retention_ms / 1000, .last_position = -1, .in_step = true};
    int64_t epoch, after = INT64_MIN;
    enum err e = read_installation(v, &w, &epoch);
    if (e || (e = check_heads(v, &w)))
        return e;
    if (w.later_key)
        verify_report(v,
                      "changed: the proof_generation in reclaim.installation is before that of the head of size %lld",
                      (long long)w.later_key);
    if (epoch < w.before.epoch)
        verify_report(v, "changed: the epoch in reclaim.installation is before that of the head of size %lld",
                      (long long)w.before.size);
    v->gone_before_s = w.gone_before_s;
    for (bool more = true; more && !e;)
        e = check_page(v, &w, &after, &more);
    return e ? e : check_rows(v, &w, after);
}
