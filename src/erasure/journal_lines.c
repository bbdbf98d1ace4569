#include "erasure/journal_lines.h"

#include "pg/arrays.h"

#define LINES_AT_ONCE 1000
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)

static const struct statement journal_lose = {
    .name = "journal_lose",
    .sql = "SELECT reclaim.journal_lose($1::text[], $2::text[]) AS lost",
    .params = 2,
    .columns = "lost:int8",
};

static const struct statement journal_installation = {
    .name = "journal_installation",
    .sql = "SELECT (extract(epoch FROM created_at) * 1000000)::int8::text AS created FROM reclaim.installation",
    .params = 0,
    .columns = "created:text",
};

/* The last one stays: the next names it. A day longer than journals, whose files are removed as a whole. */
static const struct statement journal_prune_lines = {
    .name = "journal_prune_lines",
    .sql =
        "WITH gone AS (DELETE FROM reclaim.journal_lines WHERE NOT lost AND created_at < pg_catalog.clock_timestamp()"
        " - $1::int8 * interval '1 millisecond' - interval '1 day' AND id < (SELECT max(id) FROM reclaim.journal_lines)"
        " RETURNING created_at) UPDATE reclaim.installation i SET journal_from = g.newest"
        " FROM (SELECT max(created_at) AS newest FROM gone) g WHERE g.newest > coalesce(i.journal_from, '-infinity')",
    .params = 1,
    .columns = "",
};

const struct statement *const journal_lines_statements[] = {&journal_lose, &journal_installation, &journal_prune_lines};
const size_t journal_lines_statement_count = COUNT_OF(journal_lines_statements);

enum err journal_installation_name(struct pg *pg, const struct proof_keys *keys, int64_t deadline_ns,
                                   char ret[INSTALLATION_ID_LEN + 1])
{
    struct pg_call call = {.ask = &journal_installation};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        installation_name(keys, pg_get(&call, 0, 0), ret);
    return e;
}

enum err journal_lines_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &journal_prune_lines, .args = {pg_i64(retention_ms)}};
    return pg_ask(pg, &call, deadline_ns);
}

/* Lines of the database, as they are before they go to a journal */

static enum err refuse_row(struct why *why, int64_t id, const char *what)
{
    return why_set(
        why, ERR_INPUT,
        "row %lld of reclaim.journal_lines was not written by Reclaim (%s): delete it, and see reclaim audit "
        "verify",
        (long long)id, what);
}

/* `named`: by a line that was checked already, so that its signature need not be. */
static enum err check_row(const struct proof_keys *keys, int64_t id, struct str text, struct str hash,
                          const struct digest *named, struct journal_line *line, struct why *why)
{
    struct digest stored;
    struct why inner = {""};
    if (journal_line_read(text, line, &inner))
        return refuse_row(why, id, inner.text);
    bool same = digest_parse(hash, &stored) == OK && digest_eq(&stored, &line->hash);
    bool verified = same && ((named && digest_eq(named, &stored)) || !journal_line_verify(text, keys, line, &inner));
    if (!verified) {
        journal_line_cleanup(line);
        return refuse_row(why, id, same ? inner.text : "its hash is another one");
    }
    return OK;
}

enum err journal_row_check(const struct proof_keys *keys, int64_t id, struct str text, struct str hash, struct why *why)
{
    struct journal_line line;
    enum err e = check_row(keys, id, text, hash, NULL, &line, why);
    if (!e)
        journal_line_cleanup(&line);
    return e;
}

/* Most lines are named by the next one. */
enum err journal_rows_check(const struct proof_keys *keys, const struct pg_call *rows, struct why *why)
{
    struct digest named;
    bool has_named = false;
    for (int i = rows->rows; i-- > 0;) {
        struct journal_line line;
        enum err e = check_row(keys, pg_get_i64(rows, i, 0), pg_get(rows, i, 1), pg_get(rows, i, 2),
                               has_named ? &named : NULL, &line, why);
        if (e)
            return e;
        named = line.previous;
        has_named = line.has_previous;
        journal_line_cleanup(&line);
    }
    return OK;
}

/* Lines that the database lacks */

struct lost_lines lost_lines_new(void)
{
    return (struct lost_lines){.hashes = buf_new(PAGE_BYTES), .lines = buf_new(PAGE_BYTES)};
}

void lost_lines_cleanup(struct lost_lines *lost)
{
    buf_free(&lost->hashes);
    buf_free(&lost->lines);
}

enum err lost_lines_flush(struct lost_lines *lost, struct pg *pg, int64_t deadline_ns)
{
    if (lost->count == 0)
        return OK;
    const char *hashes = array_end(&lost->hashes), *lines = array_end(&lost->lines);
    if (!hashes || !lines)
        return ERR_MEMORY;
    struct pg_call call = {.ask = &journal_lose, .args = {pg_text(hashes), pg_text(lines)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    lost->taken += pg_get_i64(&call, 0, 0);
    lost->count = 0;
    buf_clear(&lost->hashes);
    buf_clear(&lost->lines);
    return OK;
}

enum err lost_lines_add(struct lost_lines *lost, struct pg *pg, int64_t deadline_ns, const struct digest *hash,
                        struct str line)
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(hash, hex);
    array_add_plain(&lost->hashes, str_of(hex));
    array_add_text(&lost->lines, line);
    return ++lost->count < LINES_AT_ONCE ? OK : lost_lines_flush(lost, pg, deadline_ns);
}
