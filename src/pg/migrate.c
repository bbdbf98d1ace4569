#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "pg/adoption.h"
#include "pg/lock_ids.h"
#include "pg/migrate_inside.h"

#define LOCK_PAUSE_MS 50
#define RETRY_PAUSE_MS 300
#define UNLOCK_LIMIT_S 5
#define AFTER_PARTS_NS (60 * NS_PER_S)

static const struct statement migrate_lock = {
    .name = "migrate_lock",
    .sql = "SELECT pg_catalog.pg_try_advisory_lock(" LOCK_CLASS ", " LOCK_MIGRATION ") AS mine",
    .params = 0,
    .columns = "mine:bool",
};
static const struct statement migrate_unlock = {
    .name = "migrate_unlock",
    .sql = "SELECT pg_catalog.pg_advisory_unlock(" LOCK_CLASS ", " LOCK_MIGRATION ") AS was_mine",
    .params = 0,
    .columns = "was_mine:bool",
};
/* A step does not wait for a table that traffic holds: everyone who comes later would wait behind it. */
static const struct statement migrate_step = {
    .name = "migrate_step",
    .sql = "SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true) AS path,"
           " pg_catalog.set_config('lock_timeout', " MIGRATE_LOCK_PATIENCE ", true) AS patience",
    .params = 0,
    .columns = "path:text patience:text",
};
static const struct statement migrate_has_ledger = {
    .name = "migrate_has_ledger",
    .sql = "SELECT pg_catalog.to_regclass('reclaim.schema_migrations') IS NOT NULL"
           " AND pg_catalog.to_regclass('reclaim.schema_functions') IS NOT NULL AS there",
    .params = 0,
    .columns = "there:bool",
};
static const struct statement migrate_ledger = {
    .name = "migrate_ledger",
    .sql = "SELECT version, name, checksum,"
           " pg_catalog.to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS applied_at"
           " FROM reclaim.schema_migrations ORDER BY version",
    .params = 0,
    .columns = "version:int4 name:text checksum:text applied_at:text",
};
static const struct statement migrate_enter = {
    .name = "migrate_enter",
    .sql = "INSERT INTO reclaim.schema_migrations (version, name, checksum) VALUES ($1, $2, $3)",
    .params = 3,
    .columns = "",
};
static const struct statement migrate_strike = {
    .name = "migrate_strike",
    .sql = "DELETE FROM reclaim.schema_migrations WHERE version = $1",
    .params = 1,
    .columns = "",
};

enum err migrate_refused(enum err e, const struct pg_call *call, struct why *why)
{
    return call->sqlstate[0] ? why_set(why, e, "the database refused %s (SQLSTATE %s)", call->ask->name, call->sqlstate)
                             : why_set(why, e, "%s: %s", call->ask->name, err_name(e));
}

enum err migrate_ask(struct tx *tx, struct pg_call *call, struct why *why)
{
    enum err e = tx_trip(tx, call, 1);
    return e ? migrate_refused(e, call, why) : OK;
}

static enum err run_file(struct pg *pg, const char *name, int64_t deadline_ns, struct why *why)
{
    const struct embedded *file = embedded_find(name);
    if (file == NULL)
        return why_set(why, ERR_MISSING, "%s is not part of this program", name);
    return pg_script(pg, file->bytes.at, deadline_ns, why);
}

static enum err lock(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    enum err pooled = pg_require_direct(pg, why);
    if (pooled)
        return pooled;
    for (bool taken = false;; taken = true) {
        struct pg_call call = {.ask = &migrate_lock};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e && !(e == ERR_TIMEOUT && taken))
            return migrate_refused(e, &call, why);
        if (!e && pg_get_bool(&call, 0, 0))
            return OK;
        int ms = e ? 0 : clock_ms_until(deadline_ns, LOCK_PAUSE_MS);
        if (ms == 0)
            return why_set(why, ERR_TIMEOUT,
                           "another instance is still changing the schema: wait for it and try again");
        (void)nanosleep(&(struct timespec){.tv_nsec = ms * NS_PER_MS}, NULL);
    }
}

static void unlock(struct pg *pg)
{
    struct pg_call call = {.ask = &migrate_unlock};
    if (pg_is_up(pg) && pg_ask(pg, &call, clock_ns() + UNLOCK_LIMIT_S * NS_PER_S) != OK)
        pg_disconnect(pg); /* the lock goes with the session */
}

enum err migrate_begin(struct pg *pg, struct tx **tx, int64_t deadline_ns, struct why *why)
{
    struct pg_call call = {.ask = &migrate_step};
    *tx = tx_begin(pg, deadline_ns);
    return migrate_ask(*tx, &call, why);
}

static void hex_of(const struct migration *m, char into[DIGEST_HEX_LEN + 1])
{
    struct digest digest = digest_sha256(m->up);
    digest_hex(&digest, into);
}

static bool is_changed(const struct migration *m, const struct pg_call *ledger, int row)
{
    char checksum[DIGEST_HEX_LEN + 1];
    hex_of(m, checksum);
    if (str_eq(pg_get(ledger, row, 2), str_of(checksum)))
        return false;
    char former[sizeof "-- formerly " + DIGEST_HEX_LEN];
    (void)snprintf(former, sizeof former, "-- formerly %s", pg_get(ledger, row, 2).at);
    return pg_get(ledger, row, 2).len != DIGEST_HEX_LEN || !strstr(m->up.at, former);
}

/* The schema's version, once every applied migration is found to be the one known here. */
static enum err check_ledger(const struct pg_call *ledger, const struct schema *schema, int *ret_version,
                             struct why *why)
{
    const struct migration *all = schema->steps;
    for (int row = 0; row < ledger->rows; row++) {
        if (pg_get_i64(ledger, row, 0) != row + 1)
            return why_set(why, ERR_INPUT,
                           "reclaim.schema_migrations lacks version %d below version %d: restore that row, or the "
                           "database from a backup",
                           row + 1, (int)pg_get_i64(ledger, row, 0));
        if ((size_t)row >= schema->count)
            return why_set(why, ERR_CONFLICT,
                           "the database is at version %d, this program knows versions up to %zu: use a newer program",
                           (int)pg_get_i64(ledger, ledger->rows - 1, 0), schema->count);
        if (is_changed(&all[row], ledger, row))
            return why_set(why, ERR_INPUT,
                           MIGRATIONS_FOLDER
                           "%04d_%s.up.sql changed after it was applied (%s): bring the old file back and put "
                           "what is new into a further step",
                           all[row].version, all[row].name, pg_get(ledger, row, 3).at);
    }
    *ret_version = ledger->rows;
    return OK;
}

static enum err read_version(struct tx *tx, const struct schema *schema, struct migrate_report *ret, struct why *why)
{
    struct pg_call ledger = {.ask = &migrate_ledger}, set = {.ask = &migrate_read_set};
    enum err e;
    if ((e = migrate_ask(tx, &ledger, why)) || (e = check_ledger(&ledger, schema, &ret->before, why)) ||
        (e = migrate_ask(tx, &set, why)))
        return e;
    return set_compare(&set, schema->set, &ret->set_before, why);
}

/* Prefixes what PostgreSQL says with the file it says it about. */
static enum err run_script(struct pg *pg, const struct migration *m, bool up, int64_t deadline_ns, struct why *why)
{
    struct why words = {""};
    enum err e = pg_script(pg, up ? m->up.at : m->down.at, deadline_ns, &words);
    return e ? why_set(why, e, MIGRATIONS_FOLDER "%04d_%s.%s.sql: %s", m->version, m->name, up ? "up" : "down",
                       words.text)
             : OK;
}

enum err migrate_commit(struct tx *tx, struct why *why)
{
    enum err e = tx_commit(tx, NULL, 0);
    return e ? why_set(why, e, "the migration was not committed: %s", err_name(e)) : OK;
}

/* Makes sure that the ledger is there, and reads it. */
static enum err prepare(struct pg *pg, const struct schema *schema, int64_t deadline_ns, struct migrate_report *ret,
                        struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    enum err e;
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) || (e = run_file(pg, "sql/ledger.sql", deadline_ns, why)) ||
        (e = read_version(tx, schema, ret, why)) || (e = run_file(pg, "sql/search_path.sql", deadline_ns, why)))
        return e;
    return migrate_commit(tx, why);
}

bool migrate_tries_again(struct pg *pg, enum err e, const char *step, const char *what, int64_t deadline_ns)
{
    static const struct str lock_timeout = {"55P03", 5}, deadlock = {"40P01", 5};
    struct str state = str_of(pg_fault(pg)->sqlstate);
    if (!e || !pg_is_up(pg) || !(str_eq(state, lock_timeout) || str_eq(state, deadlock)))
        return false;
    int ms = clock_ms_until(deadline_ns, RETRY_PAUSE_MS);
    if (ms < RETRY_PAUSE_MS)
        return false;
    pg_forget_fault(pg);
    migrate_tell_waiting(step, what);
    (void)nanosleep(&(struct timespec){.tv_nsec = ms * NS_PER_MS}, NULL);
    return true;
}

enum err migrate_enter_step(struct tx *tx, const struct migration *m, struct why *why)
{
    char checksum[DIGEST_HEX_LEN + 1];
    hex_of(m, checksum);
    struct pg_call enter = {.ask = &migrate_enter, .args = {pg_i64(m->version), pg_text(m->name), pg_text(checksum)}};
    return migrate_ask(tx, &enter, why);
}

static enum err step_up(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    enum err e;
    pg_forget_fault(pg);
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) || (e = run_script(pg, m, true, deadline_ns, why)) ||
        (e = migrate_enter_step(tx, m, why)))
        return e;
    return migrate_commit(tx, why);
}

static enum err step_up_patiently(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why)
{
    if (step_is_in_parts(m))
        return parts_up(pg, m, deadline_ns, why);
    enum err e;
    do
        e = step_up(pg, m, deadline_ns, why);
    while (migrate_tries_again(pg, e, m->name, "", deadline_ns));
    return e;
}

static enum err set_up_patiently(struct pg *pg, const struct function_set *set, int64_t deadline_ns, struct why *why)
{
    enum err e;
    do {
        pg_forget_fault(pg);
        e = set_apply(pg, set, deadline_ns, why);
    } while (migrate_tries_again(pg, e, "functions", "", deadline_ns));
    return e;
}

enum err migrate_up(struct pg *pg, const struct schema *schema, int64_t deadline_ns, struct migrate_report *ret,
                    struct why *why)
{
    struct migrate_report report = {0};
    enum err e = lock(pg, deadline_ns, why);
    if (e)
        return e;
    if (schema->set)
        e = adoption_is_possible(pg, deadline_ns, why);
    if (!e)
        e = prepare(pg, schema, deadline_ns, &report, why);
    for (report.after = report.before; !e && (size_t)report.after < schema->count; report.after++) {
        const struct migration *m = &schema->steps[report.after];
        e = step_up_patiently(pg, m, deadline_ns, why);
        /* Parts take as long as they take; the others have their time after them. */
        if (step_is_in_parts(m) && deadline_ns < clock_ns() + AFTER_PARTS_NS)
            deadline_ns = clock_ns() + AFTER_PARTS_NS;
    }
    report.set_after = report.set_before;
    if (!e && schema->set && schema->set->number > report.set_before) {
        e = set_up_patiently(pg, schema->set, deadline_ns, why);
        report.set_after = schema->set->number;
    }
    unlock(pg);
    if (!e)
        *ret = report;
    return e;
}

/* What stands in the database: nothing, or versions that are known here. */
static enum err look(struct pg *pg, const struct schema *schema, int64_t deadline_ns, bool *ret_there,
                     struct migrate_report *ret, struct why *why)
{
    struct pg_call has = {.ask = &migrate_has_ledger}, ledger = {.ask = &migrate_ledger},
                   set = {.ask = &migrate_read_set};
    enum err e = pg_ask(pg, &has, deadline_ns);
    if (e)
        return migrate_refused(e, &has, why);
    *ret_there = pg_get_bool(&has, 0, 0);
    if (!*ret_there)
        return OK;
    if ((e = pg_ask(pg, &ledger, deadline_ns)))
        return migrate_refused(e, &ledger, why);
    if ((e = check_ledger(&ledger, schema, &ret->before, why)))
        return e;
    if ((e = pg_ask(pg, &set, deadline_ns)))
        return migrate_refused(e, &set, why);
    ret->set_before = set.rows > 0 ? (int)pg_get_i64(&set, 0, 0) : 0;
    if (schema->set && ret->set_before > schema->set->number)
        return why_set(why, ERR_CONFLICT,
                       "the functions in the database are set %d, this program knows set %d: use a newer program",
                       ret->set_before, schema->set->number);
    return OK;
}

/* Nothing is applied, but the schema is there. */
static enum err leave(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    enum err e;
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) || (e = run_file(pg, "sql/leave.sql", deadline_ns, why)))
        return e;
    return migrate_commit(tx, why);
}

#define ADOPTION_STEP 11 /* its former text adopted tables at once */

/* With the first step goes the schema; before the first that goes, the functions, `set`, which work on all of them. */
static enum err step_down(struct pg *pg, const struct migration *m, const struct function_set *set, int64_t deadline_ns,
                          struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    struct pg_call strike = {.ask = &migrate_strike, .args = {pg_i64(m->version)}};
    enum err e;
    pg_forget_fault(pg);
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) ||
        (set != NULL && (e = set_remove(pg, tx, set, deadline_ns, why))) ||
        (m->version == ADOPTION_STEP && (e = run_file(pg, "sql/adoption_former.sql", deadline_ns, why))) ||
        (e = run_script(pg, m, false, deadline_ns, why)) || (e = migrate_ask(tx, &strike, why)) ||
        (m->version == 1 && (e = run_file(pg, "sql/leave.sql", deadline_ns, why))))
        return e;
    return migrate_commit(tx, why);
}

static enum err step_down_patiently(struct pg *pg, const struct migration *m, const struct function_set *set,
                                    int64_t deadline_ns, struct why *why)
{
    enum err e;
    do
        e = step_down(pg, m, set, deadline_ns, why);
    while (migrate_tries_again(pg, e, m->name, "", deadline_ns));
    return e;
}

/* A step in parts that was begun and not finished goes first; it does not count. */
static enum err take_back_unfinished(struct pg *pg, const struct schema *schema, int version, int64_t deadline_ns,
                                     struct why *why)
{
    bool begun = false;
    if ((size_t)version >= schema->count)
        return OK;
    enum err e = parts_is_begun(pg, &schema->steps[version], &begun, why);
    return e || !begun ? e : step_down_patiently(pg, &schema->steps[version], NULL, deadline_ns, why);
}

enum err migrate_down(struct pg *pg, const struct schema *schema, int steps, int64_t deadline_ns,
                      struct migrate_report *ret, struct why *why)
{
    if (steps < 1)
        return why_set(why, ERR_INPUT, "the number of steps to take back must be at least 1");
    struct migrate_report report = {0};
    bool there = false;
    enum err e = lock(pg, deadline_ns, why);
    if (e)
        return e;
    e = look(pg, schema, deadline_ns, &there, &report, why);
    if (!e && there && report.before == 0)
        e = leave(pg, deadline_ns, why);
    if (!e && there)
        e = take_back_unfinished(pg, schema, report.before, deadline_ns, why);
    int target = report.before > steps ? report.before - steps : 0;
    for (report.after = report.before; !e && report.after > target; report.after--)
        e = step_down_patiently(pg, &schema->steps[report.after - 1],
                                report.after == report.before ? schema->set : NULL, deadline_ns, why);
    unlock(pg);
    if (!e)
        *ret = report;
    return e;
}

enum err migrate_status(struct pg *pg, const struct schema *schema, int64_t deadline_ns,
                        void (*each)(void *context, int version, const char *name, const char *applied_at,
                                     bool changed),
                        void *context, struct set_status *ret_set, struct why *why)
{
    struct pg_call has = {.ask = &migrate_has_ledger}, ledger = {.ask = &migrate_ledger},
                   set = {.ask = &migrate_read_set};
    const struct migration *all = schema->steps;
    enum err e = pg_ask(pg, &has, deadline_ns);
    if (e)
        return migrate_refused(e, &has, why);
    bool there = pg_get_bool(&has, 0, 0);
    if (there && (e = pg_ask(pg, &ledger, deadline_ns)))
        return migrate_refused(e, &ledger, why);
    int row = 0;
    for (size_t i = 0; i < schema->count || row < ledger.rows;) {
        int64_t applied = row < ledger.rows ? pg_get_i64(&ledger, row, 0) : INT64_MAX;
        bool is_known = i < schema->count && all[i].version <= applied;
        bool is_applied = !is_known || all[i].version == applied;
        each(context, is_known ? all[i].version : (int)applied, is_known ? all[i].name : pg_get(&ledger, row, 1).at,
             is_applied ? pg_get(&ledger, row, 3).at : NULL,
             is_known && is_applied && is_changed(&all[i], &ledger, row));
        i += is_known;
        row += is_applied;
    }
    if (there && (e = pg_ask(pg, &set, deadline_ns)))
        return migrate_refused(e, &set, why);
    *ret_set = (struct set_status){.known = schema->set ? schema->set->number : 0};
    if (set.rows > 0) {
        ret_set->applied = (int)pg_get_i64(&set, 0, 0);
        ret_set->changed = set_compare(&set, schema->set, &ret_set->applied, NULL) != OK;
        (void)snprintf(ret_set->applied_at, sizeof ret_set->applied_at, "%s", pg_get(&set, 0, 2).at);
    }
    return OK;
}

static enum err make_standalone(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    enum err e;
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) || (e = run_file(pg, "sql/standalone.sql", deadline_ns, why)))
        return e;
    return migrate_commit(tx, why);
}

enum err migrate_standalone(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    enum err e = lock(pg, deadline_ns, why);
    if (e)
        return e;
    e = make_standalone(pg, deadline_ns, why);
    unlock(pg);
    return e;
}
