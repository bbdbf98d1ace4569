#include "erasure/journal_keeper.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/restored.h"
#include "base/stop.h"
#include "erasure/journal_compare.h"
#include "erasure/replay.h"
#include "proof/journal.h"

#define LINES_AT_ONCE 1000
#define PAGE_BYTES ((size_t)64 * 1024 * 1024)
#define EVERY_MS 60000
#define RETRY_MS 500
#define CLOCKS_DIFFER_S 300 /* as for expiry, which logs it */
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

static const struct statement journal_clock = {
    .name = "journal_clock",
    .sql = "SELECT extract(epoch FROM pg_catalog.clock_timestamp())::int8 AS now_s",
    .params = 0,
    .columns = "now_s:int8",
};

const struct statement *const keeper_statements[] = {&journal_find, &journal_after, &journal_clock};
const size_t keeper_statement_count = COUNT_OF(keeper_statements);

void keeper_note_failure(void)
{
    gauge_set(&failing, 1);
}

/* An empty journal does not show that the database was restored. */
static void warn_of_filling(const struct keeper *k, int64_t lines)
{
    log_warn("the journal was empty: it was filled from the database", F_STR("folder", journal_folder(k->journal)),
             F_INT("lines", lines),
             F_STR("unless_new", "mount the folder that had it; if the database was restored, reclaim replay-erasures "
                                 "--journal with a copy of it"));
}

/* While the journal is locked. */
static enum err compare(struct keeper *k, struct pg *pg, int64_t deadline_ns, struct comparison *c, struct why *why)
{
    *c = (struct comparison){.keys = k->keys,
                             .folder = journal_folder(k->journal),
                             .journal = k->journal,
                             .pg = pg,
                             .deadline_ns = deadline_ns};
    enum err e = journal_compare(c, atomic_load(&k->retention_ms), why);
    counter_add(&written, (uint64_t)c->appended);
    if (c->was_empty && c->appended)
        warn_of_filling(k, c->appended);
    if (c->lost.taken)
        restored_note(true);
    return e;
}

enum err journal_import(const char *folder, const struct proof_keys *keys, int64_t retention_ms, struct pg *pg,
                        int64_t deadline_ns, int64_t *ret_lost, struct why *why)
{
    struct comparison c = {.keys = keys, .folder = folder, .pg = pg, .deadline_ns = deadline_ns};
    enum err e = journal_compare(&c, retention_ms, why);
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
    struct comparison c;
    *ret_lost = 0;
    enum err e = journal_lock(k->journal, why);
    if (e)
        return e;
    e = compare(k, pg, deadline_ns, &c, why);
    *ret_lost = c.lost.taken;
    journal_unlock(k->journal);
    if (e && c.unkept) { /* deletions go on meanwhile, and no erasure is complete */
        log_error("the journal is not kept", F_STR("why", why->text));
        gauge_set(&failing, 1);
        e = OK;
    }
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

/* `ret_compared`: what the journal has the database has too, or is recorded as lost: also when the journal cannot be written. */
static enum err sync_locked(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last, bool *ret_compared,
                            struct why *why)
{
    struct digest tail;
    bool has_lines = journal_tail(k->journal, &tail);
    enum err e = has_lines ? find_line(pg, &tail, deadline_ns, ret_last) : OK;
    if (e)
        return why_set(why, e, "cannot read reclaim.journal_lines (%s)", err_name(e));
    bool compares = *ret_last < 0 || (!has_lines && k->had_lines);
    k->had_lines |= has_lines;
    *ret_compared = !compares;
    if (!compares)
        e = append_after(k, pg, deadline_ns, ret_last, &compares, why);
    if (e || !compares)
        return e;
    struct comparison c;
    e = compare(k, pg, deadline_ns, &c, why);
    *ret_last = c.last;
    *ret_compared |= c.done;
    return e;
}

static enum err sync_journal(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last,
                             bool *ret_compared, struct why *why)
{
    *ret_last = 0;
    *ret_compared = false;
    enum err e = journal_lock(k->journal, why);
    if (!e) {
        e = sync_locked(k, pg, deadline_ns, ret_last, ret_compared, why);
        if (!e)
            e = journal_sync(k->journal, why);
        journal_unlock(k->journal);
    }
    gauge_set(&failing, e && e != ERR_CLOSED && e != ERR_TIMEOUT ? 1 : 0);
    return e;
}

enum err keeper_sync(struct keeper *k, struct pg *pg, int64_t deadline_ns, int64_t *ret_last, struct why *why)
{
    bool compared;
    return sync_journal(k, pg, deadline_ns, ret_last, &compared, why);
}

/* The thread */

struct keeper_thread {
    struct keeper *keeper;
    struct pg *pg;
    int stop_fd;
    pthread_t thread;
    bool logged; /* a failure that lasts is logged once */
};

/* Files are as old as this machine says, which therefore must agree with the database. */
static void remove_old(struct keeper *k, struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &journal_clock};
    if (pg_ask(pg, &call, deadline_ns))
        return;
    int64_t removed, now_s = pg_get_i64(&call, 0, 0);
    if (llabs(now_s - clock_wall_us() / 1000000) > CLOCKS_DIFFER_S || journal_lock(k->journal, NULL))
        return;
    if (journal_prune(k->journal, now_s - atomic_load(&k->retention_ms) / 1000, &removed) == OK && removed)
        log_info("files of the journal that are older than the backups were removed", F_INT("files", removed));
    journal_unlock(k->journal);
}

/* In doubt whether the database is still the one that it was, it is looked at at once. The doubt ends with the comparison: work does
 * not wait for a journal that cannot be written. */
static enum err look(struct keeper_thread *t)
{
    struct why why = {""};
    unsigned doubts = restored_doubts();
    int64_t last, deadline_ns = clock_ns() + ROUND_NS;
    bool compared = false;
    enum err e = pg_connect(t->pg, deadline_ns, &why);
    if (!e)
        e = sync_journal(t->keeper, t->pg, deadline_ns, &last, &compared, &why);
    enum err noted = compared ? note_restored(t->pg, deadline_ns, e ? NULL : &why) : OK;
    if (compared && !noted)
        restored_compared(doubts);
    if (!e)
        e = noted;
    if (!e)
        remove_old(t->keeper, t->pg, deadline_ns);
    pg_disconnect(t->pg);
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
