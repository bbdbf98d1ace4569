#include "pg/migrate.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/embedded.h"

#define MIGRATIONS_MAX 256
#define SCRIPT_MAX ((size_t)4 << 20)
#define FOLDER "sql/migrations/"

static const struct statement try_lock = {
    .name = "migrate_try_lock",
    .sql = "SELECT pg_catalog.pg_try_advisory_lock(7233173838382854239) AS mine",
    .params = 0,
    .columns = "mine:bool",
};

static const struct statement unlock = {
    .name = "migrate_unlock",
    .sql = "SELECT pg_catalog.pg_advisory_unlock(7233173838382854239) AS was_mine",
    .params = 0,
    .columns = "was_mine:bool",
};

static const struct statement table_there = {
    .name = "migrate_table_there",
    .sql = "SELECT (to_regclass('reclaim.schema_migrations') IS NOT NULL) AS there",
    .params = 0,
    .columns = "there:bool",
};

static const struct statement read_applied = {
    .name = "migrate_read_applied",
    .sql = "SELECT version, name, checksum, to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
           " AS applied_at FROM reclaim.schema_migrations ORDER BY version",
    .params = 0,
    .columns = "version:int4 name:text checksum:text applied_at:text",
};

/* What must stand before the first migration can be recorded. */
static const char bootstrap[] = "CREATE SCHEMA IF NOT EXISTS reclaim;"
                                "CREATE TABLE IF NOT EXISTS reclaim.schema_migrations ("
                                " version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL,"
                                " applied_at timestamptz NOT NULL DEFAULT clock_timestamp());"
                                "REVOKE ALL ON reclaim.schema_migrations FROM PUBLIC;";

/* A step may take as long as its caller gives it, but never waits long for a lock that traffic holds. */
static const char step_begin[] = "BEGIN; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = '30s';";

/* "0001_foundation.up.sql": the four digits are the version. */
static enum err read_name(const struct embedded *file, struct migration *all, size_t *count, struct why *why)
{
    static char names[MIGRATIONS_MAX][64];
    struct str rest = str_of(file->name + strlen(FOLDER)), stem;
    int64_t version;
    if (!str_split(&rest, '.', &stem) || stem.len < 6 || stem.at[4] != '_' ||
        str_to_i64((struct str){stem.at, 4}, 1, MIGRATIONS_MAX, &version))
        return why_set(why, ERR_INPUT, "%s is not named like 0001_name.up.sql", file->name);
    struct migration *m = &all[version - 1];
    struct str name = {stem.at + 5, stem.len - 5};
    if (m->version && !str_eq(name, str_of(m->name)))
        return why_set(why, ERR_INPUT, "two migrations have the version %d", (int)version);
    if (str_copy(name, names[version - 1], sizeof names[0]))
        return why_set(why, ERR_INPUT, "%s has too long a name", file->name);
    m->version = (int)version;
    m->name = names[version - 1];
    if (str_eq(rest, STR("up.sql")))
        m->up = file->bytes;
    else
        m->down = file->bytes;
    *count = *count > (size_t)version ? *count : (size_t)version;
    return OK;
}

enum err migrations_embedded(const struct migration **ret, size_t *ret_count, struct why *why)
{
    static struct migration all[MIGRATIONS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < embedded_count; i++) {
        if (!str_starts(str_of(embedded_files[i].name), STR(FOLDER)))
            continue;
        enum err e = read_name(&embedded_files[i], all, &count, why);
        if (e)
            return e;
    }
    for (size_t i = 0; i < count; i++)
        if (!all[i].up.at || !all[i].down.at)
            return why_set(why, ERR_INPUT, "migration %04zu lacks its up or its down file", i + 1);
    *ret = all;
    *ret_count = count;
    return OK;
}

static enum err fail(struct why *why, enum err e, const char *doing, const struct pg_call *call)
{
    return why_set(why, e, "cannot %s (%s %s)", doing, err_name(e), call->sqlstate);
}

static enum err lock(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    for (;;) {
        struct pg_call call = {.ask = &try_lock};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e)
            return fail(why, e, "take the lock of the migrations", &call);
        if (pg_get_bool(&call, 0, 0))
            return OK;
        if (clock_ns() >= deadline_ns)
            return why_set(why, ERR_TIMEOUT, "another instance has been migrating all this time");
        nanosleep(&(struct timespec){.tv_nsec = 20 * NS_PER_MS}, NULL);
    }
}

static void release(struct pg *pg)
{
    struct pg_call call = {.ask = &unlock};
    if (pg_is_up(pg) && pg_ask(pg, &call, clock_ns() + 5 * NS_PER_S))
        pg_disconnect(pg); /* the lock goes with the session */
}

static enum err read_there(struct pg *pg, int64_t deadline_ns, struct pg_call *applied, struct why *why)
{
    struct pg_call there = {.ask = &table_there};
    enum err e = pg_ask(pg, &there, deadline_ns);
    if (e)
        return fail(why, e, "look at the schema", &there);
    *applied = (struct pg_call){.ask = &read_applied};
    if (!pg_get_bool(&there, 0, 0))
        return OK; /* no rows */
    e = pg_ask(pg, applied, deadline_ns);
    return e ? fail(why, e, "read which migrations were applied", applied) : OK;
}

static bool is_changed(const struct pg_call *applied, int row, const struct migration *m)
{
    char hex[DIGEST_HEX_LEN + 1];
    struct digest sum = digest_sha256(m->up);
    digest_hex(&sum, hex);
    return !str_eq(pg_get(applied, row, 2), str_of(hex));
}

/* Versions applied must be 1…n, each from the file that this program has. Newer ones are beyond it. */
static enum err check_applied(const struct pg_call *applied, const struct migration *all, size_t count, struct why *why)
{
    for (int row = 0; row < applied->rows; row++) {
        if (pg_get_i64(applied, row, 0) != row + 1)
            return why_set(why, ERR_INPUT, "the database lacks migration %04d but has later ones", row + 1);
        if ((size_t)row >= count)
            return why_set(why, ERR_CONFLICT,
                           "the database is at version %d, newer than this program's %zu: upgrade it", applied->rows,
                           count);
        if (is_changed(applied, row, &all[row]))
            return why_set(why, ERR_INPUT, FOLDER "%04d_%s.up.sql was changed after it had been applied", row + 1,
                           all[row].name);
    }
    return OK;
}

static enum err run_step(struct pg *pg, const struct migration *m, struct str script, const char *record,
                         int64_t deadline_ns, struct why *why)
{
    AUTO(buf) struct buf sql = buf_new(SCRIPT_MAX);
    buf_addz(&sql, step_begin);
    buf_add(&sql, script);
    buf_addz(&sql, record);
    buf_addz(&sql, "COMMIT;");
    buf_add(&sql, (struct str){"", 1});
    if (sql.failed)
        return why_set(why, sql.failed, "migration %04d is too large", m->version);
    struct why words = {""};
    enum err e = pg_script(pg, sql.at, deadline_ns, &words);
    return e ? why_set(why, e, "migration %04d_%s: %.400s", m->version, m->name, words.text) : OK;
}

static enum err step_up(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why)
{
    char hex[DIGEST_HEX_LEN + 1], record[256];
    struct digest sum = digest_sha256(m->up);
    digest_hex(&sum, hex);
    snprintf(record, sizeof record,
             ";INSERT INTO reclaim.schema_migrations (version, name, checksum) VALUES (%d, '%s', '%s');", m->version,
             m->name, hex);
    return run_step(pg, m, m->up, record, deadline_ns, why);
}

static enum err step_down(struct pg *pg, const struct migration *m, int64_t deadline_ns, struct why *why)
{
    char record[128];
    snprintf(record, sizeof record, ";DELETE FROM reclaim.schema_migrations WHERE version = %d;%s", m->version,
             m->version == 1 ? "DROP TABLE reclaim.schema_migrations; DROP SCHEMA reclaim;" : "");
    return run_step(pg, m, m->down, record, deadline_ns, why);
}

enum err migrate_up(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                    struct migrate_report *ret, struct why *why)
{
    struct pg_call applied;
    enum err e = lock(pg, deadline_ns, why);
    if (e)
        return e;
    if (!(e = pg_script(pg, bootstrap, deadline_ns, why)) && !(e = read_there(pg, deadline_ns, &applied, why)) &&
        !(e = check_applied(&applied, all, count, why))) {
        ret->before = ret->after = applied.rows;
        while (!e && (size_t)ret->after < count)
            if (!(e = step_up(pg, &all[ret->after], deadline_ns, why)))
                ret->after++;
    }
    release(pg);
    return e;
}

enum err migrate_down(struct pg *pg, const struct migration *all, size_t count, int steps, int64_t deadline_ns,
                      struct migrate_report *ret, struct why *why)
{
    struct pg_call applied;
    enum err e = lock(pg, deadline_ns, why);
    if (e)
        return e;
    if (!(e = read_there(pg, deadline_ns, &applied, why)) && !(e = check_applied(&applied, all, count, why))) {
        ret->before = ret->after = applied.rows;
        while (!e && ret->after > 0 && ret->before - ret->after < steps)
            if (!(e = step_down(pg, &all[ret->after - 1], deadline_ns, why)))
                ret->after--;
    }
    release(pg);
    return e;
}

enum err migrate_status(struct pg *pg, const struct migration *all, size_t count, int64_t deadline_ns,
                        void (*each)(void *context, int version, const char *name, const char *applied_at,
                                     bool changed),
                        void *context, struct why *why)
{
    struct pg_call applied;
    enum err e = read_there(pg, deadline_ns, &applied, why);
    if (e)
        return e;
    for (int i = 0; i < (int)count || i < applied.rows; i++) {
        bool is_applied = i < applied.rows, is_known = i < (int)count;
        each(context, i + 1, is_known ? all[i].name : pg_get(&applied, i, 1).at,
             is_applied ? pg_get(&applied, i, 3).at : NULL, is_applied && is_known && is_changed(&applied, i, &all[i]));
    }
    return OK;
}

enum err migrate_standalone(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    const struct embedded *script = embedded_find("sql/standalone.sql");
    if (!script)
        return why_set(why, ERR_MISSING, "this program was built without sql/standalone.sql");
    enum err e = lock(pg, deadline_ns, why); /* IF NOT EXISTS alone still collides when two create at once */
    if (e)
        return e;
    e = pg_script(pg, script->bytes.at, deadline_ns, why);
    release(pg);
    return e;
}
