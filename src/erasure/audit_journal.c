#include "erasure/audit_journal.h"

#include <stdlib.h>
#include <string.h>

#include "erasure/journal_lines.h"
#include "pg/arrays.h"
#include "proof/digest_set.h"
#include "proof/read_journal.h"

#define HEADS_AT_ONCE 5000
#define LINES_AT_ONCE 1000
#define NONE SIZE_MAX

static const struct statement audit_heads = {
    .name = "audit_heads",
    .sql = "SELECT n.size FROM unnest($1::int8[], $2::text[]) AS n (size, hash) WHERE NOT EXISTS (SELECT"
           " FROM reclaim.sealed_heads h WHERE h.size = n.size"
           " AND pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(h.jws, 'UTF8')), 'hex') = n.hash)"
           " ORDER BY n.size",
    .params = 2,
    .columns = "size:int8",
};

static const struct statement audit_restores = {
    .name = "audit_restores",
    .sql = "SELECT pg_catalog.encode(hash, 'hex') AS hash FROM reclaim.journal_lines WHERE kind = 'restore'",
    .params = 0,
    .columns = "hash:text",
};

static const struct statement audit_lines = {
    .name = "audit_lines",
    .sql = "SELECT id, line, pg_catalog.encode(hash, 'hex') AS hash FROM reclaim.journal_lines WHERE id > $1::int8"
           " ORDER BY id LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 line:text hash:text",
};

const struct statement *const audit_journal_statements[] = {&audit_heads, &audit_restores, &audit_lines};
const size_t audit_journal_statement_count = COUNT_OF(audit_journal_statements);

/* A line, and the one before it. */
struct listed {
    struct digest hash, head;
    size_t previous; /* NONE: it is not there */
    int64_t size;    /* of a head; 0: another line */
    bool kept, lost; /* marks of the branches at a restore */
};

struct listing {
    struct listed *at;
    size_t count, room;
};

/* From the end: mostly it is the last one. */
static size_t find(const struct listing *l, const struct digest *hash)
{
    for (size_t i = l->count; i-- > 0;)
        if (digest_eq(&l->at[i].hash, hash))
            return i;
    return NONE;
}

static size_t find_named(const struct listing *l, const json_t *claims, const char *name)
{
    struct digest hash;
    const char *hex = json_string_value(json_object_get(claims, name));
    return hex && digest_parse(str_of(hex), &hash) == OK ? find(l, &hash) : NONE;
}

/* What the database lost with a restore: the lines of one branch that are not in the other. */
static void mark_lost(struct listing *l, const json_t *claims)
{
    const char *which = json_string_value(json_object_get(claims, "lost"));
    bool other = which && strcmp(which, "merges") == 0;
    size_t lost = find_named(l, claims, other ? "merges" : "previous");
    size_t kept = find_named(l, claims, other ? "previous" : "merges");
    for (size_t i = 0; i < l->count; i++)
        l->at[i].kept = false;
    for (size_t i = kept; i != NONE; i = l->at[i].previous)
        l->at[i].kept = true;
    for (size_t i = lost; i != NONE && !l->at[i].kept; i = l->at[i].previous)
        l->at[i].lost = true;
}

static enum err list_line(void *context, const struct journal_line *line, struct str text)
{
    struct listing *l = context;
    (void)text;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 1024;
        struct listed *grown = reallocarray(l->at, room, sizeof *grown);
        if (!grown)
            return ERR_MEMORY;
        l->at = grown;
        l->room = room;
    }
    struct listed one = {.hash = line->hash, .previous = NONE};
    if (line->has_previous)
        one.previous = find(l, &line->previous);
    if (line->kind == JOURNAL_RESTORE)
        mark_lost(l, line->claims);
    if (line->kind == JOURNAL_HEAD) {
        const char *hex = json_string_value(json_object_get(line->claims, "head"));
        one.size = json_integer_value(json_object_get(line->claims, "size"));
        if (!hex || digest_parse(str_of(hex), &one.head))
            return ERR_INPUT;
    }
    l->at[l->count++] = one;
    return OK;
}

/* Whether the database knows of a restore that the journal does not: it is the copy of another instance, which has not written that
 * down yet, or an export from before. */
static enum err knows_more(struct log_verifier *v, const struct listing *l, bool *ret)
{
    struct pg_call call = {.ask = &audit_restores};
    enum err e = verify_ask(v, &call, 1);
    *ret = false;
    for (int i = 0; i < call.rows && !e; i++) {
        struct digest hash;
        *ret |= digest_parse(pg_get(&call, i, 0), &hash) == OK && find(l, &hash) == NONE;
    }
    return e;
}

/* A line that Reclaim did not write proves nothing. */
static enum err list_row(struct log_verifier *v, struct listing *l, const struct pg_call *rows, int row)
{
    struct journal_line line;
    struct why why;
    struct str text = pg_get(rows, row, 1);
    if (journal_row_check(v->keys, pg_get_i64(rows, row, 0), text, pg_get(rows, row, 2), &why) ||
        journal_line_read(text, &line, &why))
        return OK;
    enum err e = strcmp(line.installation, v->installation) == 0 ? list_line(l, &line, text) : OK;
    journal_line_cleanup(&line);
    return e;
}

static enum err list_missing(struct log_verifier *v, struct listing *l)
{
    AUTO(digest_set) struct digest_set ours = {0};
    enum err e = OK;
    for (size_t i = 0; i < l->count && !e; i++)
        e = digest_set_add(&ours, &l->at[i].hash);
    int64_t after = 0;
    for (int count = LINES_AT_ONCE; !e && count == LINES_AT_ONCE;) {
        struct pg_call rows = {.ask = &audit_lines, .args = {pg_i64(after), pg_i64(LINES_AT_ONCE)}};
        if ((e = verify_ask(v, &rows, 1)))
            break;
        count = rows.rows;
        for (int i = 0; i < count && !e; i++) {
            struct digest hash;
            after = pg_get_i64(&rows, i, 0);
            if (digest_parse(pg_get(&rows, i, 2), &hash) == OK && !digest_set_has(&ours, &hash))
                e = list_row(v, l, &rows, i);
        }
    }
    return e;
}

static enum err ask_heads(struct log_verifier *v, struct buf *sizes, struct buf *hashes)
{
    const char *size_list = array_end(sizes), *hash_list = array_end(hashes);
    if (!size_list || !hash_list)
        return ERR_MEMORY;
    struct pg_call call = {.ask = &audit_heads, .args = {pg_text(size_list), pg_text(hash_list)}};
    enum err e = verify_ask(v, &call, 1);
    for (int i = 0; i < call.rows && !e; i++)
        verify_report(v, "removed: the head of size %lld, which the journal lists", (long long)pg_get_i64(&call, i, 0));
    buf_clear(sizes);
    buf_clear(hashes);
    return e;
}

static enum err compare_heads(struct log_verifier *v, struct listing *l, int64_t *ret_heads)
{
    bool more;
    size_t count = l->count; /* what the journal lists is compared */
    enum err e = knows_more(v, l, &more);
    if (!e && more)
        e = list_missing(v, l);
    AUTO(buf) struct buf sizes = buf_new((size_t)1024 * 1024);
    AUTO(buf) struct buf hashes = buf_new((size_t)1024 * 1024);
    int waiting = 0;
    for (size_t i = 0; i < count && !e; i++) {
        char hex[DIGEST_HEX_LEN + 1];
        if (l->at[i].size == 0 || l->at[i].lost)
            continue;
        digest_hex(&l->at[i].head, hex);
        array_add_i64(&sizes, l->at[i].size);
        array_add_plain(&hashes, str_of(hex));
        ++*ret_heads;
        if (++waiting == HEADS_AT_ONCE) {
            e = ask_heads(v, &sizes, &hashes);
            waiting = 0;
        }
    }
    return e || waiting == 0 ? e : ask_heads(v, &sizes, &hashes);
}

enum err audit_journal(struct log_verifier *v, const char *folder, int64_t *ret_heads, struct why *why)
{
    struct listing l = {0};
    struct journal_reading r = {.keys = v->keys, .installation = v->installation, .each = list_line, .context = &l};
    *ret_heads = 0;
    enum err e = journal_read(folder, &r, why);
    if (!e && (e = compare_heads(v, &l, ret_heads)))
        why_set(why, e, "the heads of the sealed log cannot be read (%s)", err_name(e));
    free(l.at);
    return e;
}
