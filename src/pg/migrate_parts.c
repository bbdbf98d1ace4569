/* Steps that cannot be one transaction: concurrent indexes, batches over a team's table.
 *
 * The first section of such a file defines reclaim.step_next() and is run again whenever the step goes on. The statements
 * that the function tells are run one by one, each in a transaction of its own, until it tells none. Then the last section runs,
 * in the transaction that enters the step. */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/log.h"
#include "pg/migrate_inside.h"

#define SCRIPT_MAX ((size_t)1 << 20)
#define MARK "-- reclaim: in parts\n"
#define END_MARK "\n-- reclaim: at the end\n"
#define PART_LIMIT_NS (INT64_C(24) * 3600 * NS_PER_S)
#define ASK_LIMIT_NS (60 * NS_PER_S)
#define TELL_EVERY_NS (NS_PER_S / 2)

static const struct statement parts_next = {
    .name = "migrate_parts_next",
    .sql = "SELECT statement, strong, what, done, total FROM reclaim.step_next()",
    .params = 0,
    .columns = "statement:text strong:bool what:text done:int8 total:int8",
};
static const struct statement parts_begun = {
    .name = "migrate_parts_begun",
    .sql = "SELECT pg_catalog.to_regprocedure('reclaim.step_next()') IS NOT NULL AS begun",
    .params = 0,
    .columns = "begun:bool",
};

static struct {
    void (*tell)(void *context, const struct migrate_progress *progress);
    void *context;
} watcher;

void migrate_watch(void (*tell)(void *context, const struct migrate_progress *progress), void *context)
{
    watcher.tell = tell;
    watcher.context = context;
}

static void tell(const struct migrate_progress *p)
{
    if (watcher.tell)
        watcher.tell(watcher.context, p);
    else
        log_info("migrating", F_STR("step", p->step), F_STR("what", p->what), F_INT("done", p->done),
                 F_INT("total", p->total));
}

void migrate_tell_waiting(const char *step, const char *what)
{
    tell(&(struct migrate_progress){.step = step, .what = what, .waiting = true});
}

bool step_is_in_parts(const struct migration *m)
{
    return str_starts(m->up, STR(MARK));
}

enum err parts_is_begun(struct pg *pg, const struct migration *m, bool *ret, struct why *why)
{
    struct pg_call call = {.ask = &parts_begun};
    *ret = false;
    if (!step_is_in_parts(m))
        return OK;
    enum err e = pg_ask(pg, &call, clock_ns() + ASK_LIMIT_NS);
    if (e)
        return migrate_refused(e, &call, why);
    *ret = pg_get_bool(&call, 0, 0);
    return OK;
}

/* The sections of the file, each ended by a NUL. */
static enum err split(const struct migration *m, struct buf *first, const char **ret_last, struct why *why)
{
    const char *end = strstr(m->up.at, END_MARK);
    if (!end)
        return why_set(why, ERR_INPUT, "%04d_%s.up.sql has no line \"-- reclaim: at the end\"", m->version, m->name);
    buf_add(first, (struct str){m->up.at, (size_t)(end - m->up.at)});
    *ret_last = end + strlen(END_MARK);
    return first->failed ? why_set(why, first->failed, "no memory for %s", m->name) : OK;
}

static enum err run_section(struct pg *pg, const struct migration *m, const char *sql, int64_t deadline_ns, bool last,
                            struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    struct why words = {""};
    enum err e = migrate_begin(pg, &tx, deadline_ns, why);
    if (e)
        return e;
    if ((e = pg_script(pg, sql, deadline_ns, &words)))
        return why_set(why, e, MIGRATIONS_FOLDER "%04d_%s.up.sql: %s", m->version, m->name, words.text);
    if (last && (e = migrate_enter_step(tx, m, why)))
        return e;
    return migrate_commit(tx, why);
}

static enum err run_patiently(struct pg *pg, const struct migration *m, const char *sql, int64_t deadline_ns, bool last,
                              struct why *why)
{
    enum err e;
    do
        e = run_section(pg, m, sql, deadline_ns, last, why);
    while (migrate_tries_again(pg, e, m->name, "", deadline_ns));
    return e;
}

/* A part that needs no strong lock may wait as long as others' transactions last: nobody waits for it. */
static enum err run_part(struct pg *pg, const struct migration *m, const char *sql, bool strong, const char *what,
                         int64_t deadline_ns, struct why *why)
{
    struct why words = {""};
    enum err e;
    do {
        pg_forget_fault(pg);
        e = pg_script(pg,
                      strong ? "SET search_path = pg_catalog, pg_temp; SET lock_timeout = " MIGRATE_LOCK_PATIENCE
                             : "SET search_path = pg_catalog, pg_temp; SET lock_timeout = 0",
                      deadline_ns, &words);
        if (!e)
            e = pg_script(pg, sql, deadline_ns, &words);
    } while (migrate_tries_again(pg, e, m->name, what, deadline_ns));
    return e ? why_set(why, e, MIGRATIONS_FOLDER "%04d_%s.up.sql, %s: %s", m->version, m->name, what, words.text) : OK;
}

static void tell_part(const struct migration *m, const struct pg_call *next, struct buf *last_what, int64_t *last_ns)
{
    struct str what = pg_get(next, 0, 2);
    if (str_eq(what, buf_str(last_what)) && clock_ns() - *last_ns < TELL_EVERY_NS)
        return;
    tell(&(struct migrate_progress){
        .step = m->name, .what = what.at, .done = pg_get_i64(next, 0, 3), .total = pg_get_i64(next, 0, 4)});
    *last_ns = clock_ns();
}

static enum err run_parts(struct pg *pg, const struct migration *m, struct why *why)
{
    int64_t last_ns = 0;
    AUTO(buf) struct buf what = buf_new(1024);
    for (;;) {
        struct pg_call next = {.ask = &parts_next};
        enum err e = pg_ask(pg, &next, clock_ns() + ASK_LIMIT_NS);
        if (e)
            return migrate_refused(e, &next, why);
        if (next.rows == 0 || pg_is_null(&next, 0, 0))
            return OK;
        AUTO(buf) struct buf sql = buf_new(SCRIPT_MAX);
        buf_add(&sql, pg_get(&next, 0, 0));
        tell_part(m, &next, &what, &last_ns);
        buf_clear(&what);
        buf_add(&what, pg_get(&next, 0, 2));
        bool strong = pg_get_bool(&next, 0, 1);
        if (sql.failed || what.failed)
            return why_set(why, ERR_MEMORY, "no memory for a part of %s", m->name);
        if ((e = run_part(pg, m, buf_str(&sql).at, strong, buf_str(&what).at, clock_ns() + PART_LIMIT_NS, why)))
            return e;
    }
}

enum err parts_up(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why)
{
    AUTO(buf) struct buf first = buf_new(SCRIPT_MAX);
    const char *last = NULL;
    enum err e;
    if ((e = split(m, &first, &last, why)) || (e = run_patiently(pg, m, buf_str(&first).at, deadline_ns, false, why)) ||
        (e = run_parts(pg, m, why)))
        return e;
    e = run_patiently(pg, m, last, clock_ns() + PART_LIMIT_NS, true, why);
    enum err after =
        pg_is_up(pg) ? pg_script(pg, "RESET search_path; RESET lock_timeout", clock_ns() + ASK_LIMIT_NS, e ? NULL : why)
                     : OK;
    return e ? e : after;
}
