#include "erasure/journal_keeper.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/restored.h"
#include "base/stop.h"
#include "erasure/replay.h"
#include "pg/arrays.h"
#include "proof/digest_set.h"
#include "proof/journal.h"
#include "proof/read_journal.h"

#define LINES_AT_ONCE 1000
#define HASHES_AT_ONCE 10000
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)
#define EVERY_MS 60000
#define RETRY_MS 500
#define ROUND_NS (50 * NS_PER_S)

METRIC_COUNTER(written, "reclaim_journal_lines_total", "Lines appended to this instance's journal.");
METRIC_GAUGE(
    failing, "reclaim_journal_failing",
    "1 while this instance's journal cannot be read or written: on the leader no erasure is complete until then.");

static const struct statement journal_find = {
    .name = "journal_find",
    .sql = "SELECT id FROM reclaim.journal_lines WHERE hash = pg_catalog.decode($1, 'hex')",
    .params = 1,
    .columns = "id:int8",
};

static const struct statement journal_after = {
    .name = "journal_after",
    .sql = "SELECT id, line, pg_catalog.encode(hash, 'hex') AS hash, imported OR kind = 'restore' AS after_restore"
           " FROM reclaim.journal_lines WHERE id > $1::int8 ORDER BY id LIMIT $2::int8",
    .params = 2,
    .columns = "id:int8 line:text hash:text after_restore:bool",
};

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
    .sql = "SELECT coalesce(extract(epoch FROM journal_from), 0)::int8 + 1 AS at FROM reclaim.installation",
    .params = 0,
    .columns = "at:int8",
};

const struct statement *const keeper_statements[] = {&journal_find, &journal_after, &journal_hashes, &journal_lines_of,
                                                     &journal_oldest};
const size_t keeper_statement_count = COUNT_OF(keeper_statements);

void keeper_note_failure(void)
{
    gauge_set(&failing, 1);
}

/* Comparing everything */

struct comparison {
    const struct proof_keys *keys;
    const char *folder;
    struct journal *journal; /* what it lacks is appended; NULL: it is only read */
    struct pg *pg;
    int64_t deadline_ns, oldest_s;
    struct digest_set ours, theirs; /* of the journal, of the database */
    int64_t missing;                /* of the journal's lines, in the database */
    int64_t lacking;                /* of the database's lines, in the journal */
    int64_t last;                   /* the id of the last line that was read */
    bool refused;                   /* a row is no line of Reclaim's */
    bool starts;                    /* a row that no journal takes keeps no instance from starting */
    struct lost_lines lost;
};

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
        c->refused = true;
        return e;
    }
    uint64_t count = 0;
    for (int i = 0; i < rows.rows; i++) {
        if (!is_wanted(c, pg_get(&rows, i, 1)))
            continue;
        buf_add(&text, pg_get(&rows, i, 1));
        buf_addz(&text, "\n");
        count++;
    }
    if (text.failed)
        return why_set(why, ERR_MEMORY, "no memory for lines of the journal");
    counter_add(&written, count);
    return count ? journal_append(c->journal, buf_str(&text), why) : OK;
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

static enum err read_oldest(struct comparison *c, struct why *why)
{
    struct pg_call call = {.ask = &journal_oldest};
    enum err e = pg_ask(c->pg, &call, c->deadline_ns);
    if (e)
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    if (pg_get_i64(&call, 0, 0) > c->oldest_s)
        c->oldest_s = pg_get_i64(&call, 0, 0);
    return OK;
}

/* What the journal has is read before the database: a line is there first. What the database lacks is recorded before anything is
 * appended: a journal whose last line the database has is not compared again. */
static enum err compare_all(struct comparison *c, int64_t retention_ms, struct why *why)
{
    c->oldest_s = (clock_wall_us() / 1000 - retention_ms) / 1000;
    c->lost = lost_lines_new();
    enum err e = journal_each(c->folder, note_line, c, why);
    if (!e)
        e = walk_lines(c, false, why);
    if (!e)
        e = read_oldest(c, why);
    if (!e)
        e = journal_each(c->folder, count_missing, c, why);
    if (!e && (c->missing || !c->journal))
        e = take_lost(c, why);
    if (!e && c->lacking && c->journal)
        e = walk_lines(c, true, why);
    if (e == ERR_INPUT && c->starts && c->refused) {
        log_error("the journal is not kept", F_STR("why", why->text));
        gauge_set(&failing, 1);
        e = OK;
    }
    digest_set_cleanup(&c->ours);
    digest_set_cleanup(&c->theirs);
    lost_lines_cleanup(&c->lost);
    return e;
}

/* While the journal is locked. */
static enum err compare(struct keeper *k, struct pg *pg, bool starts, int64_t deadline_ns, int64_t *ret_lost,
                        int64_t *ret_last, struct why *why)
{
    struct comparison c = {.keys = k->keys,
                           .folder = journal_folder(k->journal),
                           .journal = k->journal,
                           .pg = pg,
                           .deadline_ns = deadline_ns,
                           .starts = starts};
    enum err e = compare_all(&c, atomic_load(&k->retention_ms), why);
    *ret_lost = c.lost.taken;
    *ret_last = c.last;
    if (c.lost.taken)
        restored_note(true);
    return e;
}

enum err journal_import(const char *folder, const struct proof_keys *keys, int64_t retention_ms, struct pg *pg,
                        int64_t deadline_ns, int64_t *ret_lost, struct why *why)
{
    struct comparison c = {.keys = keys, .folder = folder, .pg = pg, .deadline_ns = deadline_ns};
    enum err e = compare_all(&c, retention_ms, why);
    *ret_lost = c.lost.taken;
    return e;
}

/* Another instance may have recorded already what this one's journal has. */
static enum err note_restored(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    bool needed;
    enum err e = replay_is_needed(pg, deadline_ns, &needed);
    if (e)
        return why_set(why, e, "cannot read reclaim.installation (%s)", err_name(e));
    if (needed)
        restored_note(true);
    return OK;
}

enum err keeper_compare(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_lost, struct why *why)
{
    int64_t last;
    *ret_lost = 0;
    enum err e = journal_lock(k->journal, why);
    if (e)
        return e;
    e = compare(k, pg, true, deadline_ns, ret_lost, &last, why);
    journal_unlock(k->journal);
    return e ? e : note_restored(pg, deadline_ns, why);
}

/* Appending what is new */

/* The id of a line; -1: the database does not have it. */
static enum err find_line(struct pg *pg, const struct digest *hash, int64_t deadline_ns, int64_t *ret)
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(hash, hex);
    struct pg_call call = {.ask = &journal_find, .args = {pg_text(hex)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    *ret = e || call.rows == 0 ? -1 : pg_get_i64(&call, 0, 0);
    return e;
}

enum err journal_is_ahead(const char *folder, struct pg *pg, int64_t deadline_ns, bool *ret, struct why *why)
{
    struct digest last;
    int64_t id = 0;
    *ret = false;
    enum err e = journal_last(folder, &last, why);
    if (e)
        return e == ERR_MISSING ? OK : e;
    if ((e = find_line(pg, &last, deadline_ns, &id)))
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    *ret = id < 0;
    return OK;
}

/* `ret_compare`: lines around a restore follow, which the journal may have in another order. */
static enum err append_after(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *after, bool *ret_compare,
                             struct why *why)
{
    for (int count = LINES_AT_ONCE; count == LINES_AT_ONCE;) {
        AUTO(buf) struct buf text = buf_new(PAGE_BYTES);
        struct pg_call rows = {.ask = &journal_after, .args = {pg_i64(*after), pg_i64(LINES_AT_ONCE)}};
        enum err e = pg_ask(pg, &rows, deadline_ns);
        if (e)
            return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
        count = rows.rows;
        if ((e = journal_rows_check(k->keys, &rows, why)))
            return e;
        for (int i = 0; i < count; i++) {
            buf_add(&text, pg_get(&rows, i, 1));
            buf_addz(&text, "\n");
            *ret_compare |= pg_get_bool(&rows, i, 3);
        }
        if (text.failed)
            return why_set(why, ERR_MEMORY, "no memory for lines of the journal");
        if (*ret_compare || count == 0)
            return OK;
        int64_t last = pg_get_i64(&rows, count - 1, 0);
        if ((e = journal_append(k->journal, buf_str(&text), why)))
            return e;
        counter_add(&written, (uint64_t)count);
        *after = last;
    }
    return OK;
}

static enum err sync_locked(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last, struct why *why)
{
    int64_t lost;
    struct digest tail;
    enum err e = journal_tail(k->journal, &tail) ? find_line(pg, &tail, deadline_ns, ret_last) : OK;
    if (e)
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    bool compares = *ret_last < 0;
    if (!compares)
        e = append_after(k, pg, deadline_ns, ret_last, &compares, why);
    return e || !compares ? e : compare(k, pg, false, deadline_ns, &lost, ret_last, why);
}

enum err keeper_sync(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last, struct why *why)
{
    *ret_last = 0;
    enum err e = journal_lock(k->journal, why);
    if (!e) {
        e = sync_locked(k, pg, deadline_ns, ret_last, why);
        journal_unlock(k->journal);
    }
    gauge_set(&failing, e && e != ERR_CLOSED && e != ERR_TIMEOUT ? 1 : 0);
    return e;
}

/* The thread */

struct keeper_thread {
    struct keeper *keeper;
    struct pg *pg;
    int stop_fd;
    pthread_t thread;
    bool logged; /* a failure that lasts is logged once */
};

static void remove_old(struct keeper *k)
{
    int64_t removed, before_s = (clock_wall_us() / 1000 - atomic_load(&k->retention_ms)) / 1000;
    if (journal_lock(k->journal, NULL))
        return;
    if (journal_prune(k->journal, before_s, &removed) == OK && removed)
        log_info("files of the journal that are older than the backups were removed", F_INT("files", removed));
    journal_unlock(k->journal);
}

/* In doubt whether the database is still the one that it was, it is looked at at once. */
static enum err look(struct keeper_thread *t)
{
    struct why why = {""};
    unsigned doubts = restored_doubts();
    int64_t last, deadline_ns = clock_ns() + ROUND_NS;
    enum err e = pg_connect(t->pg, deadline_ns, &why);
    if (!e)
        e = keeper_sync(t->keeper, t->pg, deadline_ns, &last, &why);
    if (!e)
        e = note_restored(t->pg, deadline_ns, &why);
    pg_disconnect(t->pg);
    if (!e) {
        restored_compared(doubts);
        remove_old(t->keeper);
    }
    if (e && !t->logged && e != ERR_CLOSED && e != ERR_TIMEOUT)
        log_error("the journal is not kept", F_STR("why", why.text));
    t->logged = e != OK;
    return e;
}

static void *keep(void *context)
{
    struct keeper_thread *t = context;
    struct pollfd on[2] = {{.fd = t->stop_fd, .events = POLLIN}, {.fd = restored_doubt_fd(), .events = POLLIN}};
    for (enum err e = OK;;) {
        if (e && stop_wait(t->stop_fd, RETRY_MS))
            break;
        if (!e && poll(on, 2, EVERY_MS) > 0 && on[0].revents)
            break;
        e = look(t);
    }
    return NULL;
}

struct keeper_thread *keeper_start(struct keeper *k, const char *direct_url, struct why *why)
{
    struct keeper_thread *t = calloc(1, sizeof *t);
    if (!t) {
        why_set(why, ERR_MEMORY, "no memory for the journal");
        return NULL;
    }
    t->keeper = k;
    t->pg = pg_new(direct_url, PG_PREPARE_OFF);
    t->stop_fd = stop_new();
    if (t->pg)
        pg_give_up_when(t->pg, t->stop_fd);
    if (!t->pg || t->stop_fd < 0 || pthread_create(&t->thread, NULL, keep, t) != 0) {
        why_set(why, ERR_MEMORY, "cannot start the journal's thread");
        pg_free(t->pg);
        stop_free(t->stop_fd);
        free(t);
        return NULL;
    }
    return t;
}

void keeper_stop(struct keeper_thread *t)
{
    if (!t)
        return;
    stop_raise(t->stop_fd);
    pthread_join(t->thread, NULL);
    pg_free(t->pg);
    stop_free(t->stop_fd);
    free(t);
}
