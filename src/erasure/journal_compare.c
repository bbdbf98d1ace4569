#include "erasure/journal_compare.h"

#include "pg/arrays.h"
#include "proof/journal.h"
#include "proof/read_journal.h"

#define HASHES_AT_ONCE 10000
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)

static const struct statement journal_hashes = {
    .name = "journal_hashes",
    .sql =
        "SELECT id, pg_catalog.encode(hash, 'hex') AS hash FROM reclaim.journal_lines WHERE id > $1::int8 ORDER BY id"
        " LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 hash:text",
};

static const struct statement journal_lines_of = {
    .name = "journal_lines_of",
    .sql =
        "SELECT id, line, pg_catalog.encode(hash, 'hex') AS hash FROM reclaim.journal_lines WHERE id = ANY ($1::int8[])"
        " ORDER BY id",
    .params = 1,
    .columns = "id:int8 line:text hash:text",
};

static const struct statement journal_oldest = {
    .name = "journal_oldest",
    .sql =
        "SELECT greatest(coalesce(extract(epoch FROM journal_from), 0)::int8 + 1, extract(epoch FROM"
        " pg_catalog.clock_timestamp() - $1::int8 * interval '1 millisecond')::int8) AS at FROM reclaim.installation",
    .params = 1,
    .columns = "at:int8",
};

const struct statement *const compare_statements[] = {&journal_hashes, &journal_lines_of, &journal_oldest};
const size_t compare_statement_count = COUNT_OF(compare_statements);

static enum err note_line(void *context, const struct journal_place *place, struct str line)
{
    struct comparison *c = context;
    struct digest hash = digest_sha256(line);
    (void)place;
    return digest_set_add(&c->ours, &hash);
}

/* Those that the database has removed are missed by nobody. */
static enum err count_missing(void *context, const struct journal_place *place, struct str text)
{
    struct comparison *c = context;
    struct digest hash = digest_sha256(text);
    struct journal_line line;
    (void)place;
    if (digest_set_has(&c->theirs, &hash))
        return OK;
    bool read = journal_line_read(text, &line, NULL) == OK;
    if (!read || line.written_s >= c->oldest_s)
        c->missing++;
    if (read)
        journal_line_cleanup(&line);
    return OK;
}

static enum err take_missing(void *context, const struct journal_line *line, struct str text)
{
    struct comparison *c = context;
    if (line->written_s < c->oldest_s || digest_set_has(&c->theirs, &line->hash))
        return OK;
    return lost_lines_add(&c->lost, c->pg, c->deadline_ns, &line->hash, text);
}

/* The journal as a whole must be sound before anything in it counts. */
static enum err take_lost(struct comparison *c, struct why *why)
{
    char installation[INSTALLATION_ID_LEN + 1];
    enum err e = journal_installation_name(c->pg, c->keys, c->deadline_ns, installation);
    if (e)
        return why_set(why, e, "cannot read reclaim.installation (%s)", err_name(e));
    struct journal_reading r = {.keys = c->keys, .installation = installation};
    if ((e = journal_read(c->folder, &r, why)) || c->missing == 0)
        return e;
    r.each = take_missing;
    r.context = c;
    if ((e = journal_read(c->folder, &r, why)))
        return e;
    if ((e = lost_lines_flush(&c->lost, c->pg, c->deadline_ns)))
        return why_set(why, e, "cannot record what the journal has (%s)", err_name(e));
    return OK;
}

/* The journal has removed lines that the database still has: behind newer ones they would be lines without the one before them. */
static bool is_wanted(const struct comparison *c, struct str text)
{
    struct journal_line line;
    if (c->ours.count == 0)
        return true;
    if (journal_line_read(text, &line, NULL))
        return false;
    bool young = line.written_s >= c->oldest_s;
    journal_line_cleanup(&line);
    return young;
}

static enum err append_ids(struct comparison *c, struct buf *ids, struct why *why)
{
    const char *literal = array_end(ids);
    if (!literal)
        return ERR_MEMORY;
    AUTO(buf) struct buf text = buf_new(PAGE_BYTES);
    struct pg_call rows = {.ask = &journal_lines_of, .args = {pg_text(literal)}};
    enum err e = pg_ask(c->pg, &rows, c->deadline_ns);
    if (e)
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    if ((e = journal_rows_check(c->keys, &rows, why))) {
        c->unkept = e == ERR_INPUT;
        return e;
    }
    int64_t count = 0;
    for (int i = 0; i < rows.rows; i++) {
        if (!is_wanted(c, pg_get(&rows, i, 1)))
            continue;
        buf_add(&text, pg_get(&rows, i, 1));
        buf_addz(&text, "\n");
        count++;
    }
    if (text.failed)
        return why_set(why, ERR_MEMORY, "no memory for lines of the journal");
    e = count ? journal_append(c->journal, buf_str(&text), why) : OK;
    c->unkept = e == ERR_SYSTEM;
    c->appended += e ? 0 : count;
    return e;
}

/* Reads which lines the database has and the journal lacks; `appends`: and appends these. */
static enum err walk_lines(struct comparison *c, bool appends, struct why *why)
{
    int64_t after = 0;
    for (int count = HASHES_AT_ONCE; count == HASHES_AT_ONCE;) {
        AUTO(buf) struct buf ids = buf_new((size_t)1024 * 1024);
        struct pg_call rows = {.ask = &journal_hashes, .args = {pg_i64(after), pg_i64(HASHES_AT_ONCE)}};
        enum err e = pg_ask(c->pg, &rows, c->deadline_ns);
        if (e)
            return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
        count = rows.rows;
        int lacking = 0;
        for (int i = 0; i < count && !e; i++) {
            struct digest hash;
            after = pg_get_i64(&rows, i, 0);
            if ((e = digest_parse(pg_get(&rows, i, 1), &hash)) || (!appends && (e = digest_set_add(&c->theirs, &hash))))
                break;
            if (!digest_set_has(&c->ours, &hash)) {
                array_add_i64(&ids, after);
                lacking++;
            }
        }
        c->last = after;
        c->lacking += lacking;
        if (e || (lacking && appends && (e = append_ids(c, &ids, why))))
            return e;
    }
    return OK;
}

/* By the database's clock: this machine's may be wrong, and what is too old is missed by nobody. */
static enum err read_oldest(struct comparison *c, int64_t retention_ms, struct why *why)
{
    struct pg_call call = {.ask = &journal_oldest, .args = {pg_i64(retention_ms)}};
    enum err e = pg_ask(c->pg, &call, c->deadline_ns);
    if (e)
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    c->oldest_s = pg_get_i64(&call, 0, 0);
    return OK;
}

/* What the journal has is read before the database: a line is there first. What the database lacks is recorded before anything is
 * appended: a journal whose last line the database has is not compared again. */
enum err journal_compare(struct comparison *c, int64_t retention_ms, struct why *why)
{
    c->lost = lost_lines_new();
    enum err e = journal_each(c->folder, note_line, c, why);
    c->was_empty = !e && c->ours.count == 0;
    if (!e)
        e = walk_lines(c, false, why);
    if (!e)
        e = read_oldest(c, retention_ms, why);
    if (!e)
        e = journal_each(c->folder, count_missing, c, why);
    if (!e && (c->missing || !c->journal))
        e = take_lost(c, why);
    c->done = !e;
    if (!e && c->lacking && c->journal)
        e = walk_lines(c, true, why);
    digest_set_cleanup(&c->ours);
    digest_set_cleanup(&c->theirs);
    lost_lines_cleanup(&c->lost);
    return e;
}
