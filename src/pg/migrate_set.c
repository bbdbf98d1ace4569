/* The functions and triggers, which are replaced as one set. */
#include "base/buf.h"
#include "pg/arrays.h"
#include "pg/migrate_inside.h"

#define NAMES_BYTES_MAX ((size_t)64 * FUNCTIONS_MAX)

/* PostgreSQL checks a function's body against what is there already; the files of a set come in the order of their names. */
static const struct statement set_unchecked = {
    .name = "migrate_set_unchecked",
    .sql = "SELECT pg_catalog.set_config('check_function_bodies', 'off', true) AS unchecked",
    .params = 0,
    .columns = "unchecked:text",
};
const struct statement migrate_read_set = {
    .name = "migrate_read_set",
    .sql = "SELECT number, checksum,"
           " pg_catalog.to_char(applied_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS applied_at"
           " FROM reclaim.schema_functions",
    .params = 0,
    .columns = "number:int4 checksum:text applied_at:text",
};
static const struct statement set_forget = {
    .name = "migrate_set_forget",
    .sql = "DELETE FROM reclaim.schema_functions",
    .params = 0,
    .columns = "",
};
static const struct statement set_enter = {
    .name = "migrate_set_enter",
    .sql = "INSERT INTO reclaim.schema_functions (number, checksum) VALUES ($1, $2)",
    .params = 2,
    .columns = "",
};
/* A script that drops these functions and the triggers that call them. A trigger that PostgreSQL copied into a partition
 * goes with the one on its parent; one on a table of another owner, which this role may not drop, goes with its function. */
static const struct statement set_drops = {
    .name = "migrate_set_drops",
    .sql =
        "WITH ours AS (SELECT oid FROM pg_catalog.pg_proc"
        "   WHERE pronamespace = 'reclaim'::pg_catalog.regnamespace AND proname = ANY ($1::text[])),"
        " drops AS (SELECT 1 AS step, pg_catalog.format('DROP TRIGGER %I ON %s;', t.tgname, t.tgrelid::regclass) AS sql"
        "   FROM pg_catalog.pg_trigger t WHERE t.tgfoid IN (SELECT oid FROM ours) AND NOT t.tgisinternal AND "
        "t.tgparentid = 0 AND NOT EXISTS (SELECT FROM pg_catalog.pg_class c WHERE c.oid = t.tgrelid AND NOT"
        "   pg_catalog.pg_has_role(c.relowner, 'USAGE'))"
        "   UNION ALL SELECT 2, pg_catalog.format('DROP FUNCTION %s CASCADE;', f.oid::regprocedure) FROM ours f WHERE"
        "   EXISTS (SELECT FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid"
        "   WHERE t.tgfoid = f.oid AND NOT pg_catalog.pg_has_role(c.relowner, 'USAGE'))"
        "   UNION ALL SELECT 3, 'DROP FUNCTION IF EXISTS ' || pg_catalog.string_agg(oid::regprocedure::text, ', ') || "
        "';' FROM ours)"
        " SELECT coalesce(pg_catalog.string_agg(sql, ' ' ORDER BY step, sql), '') AS script FROM drops",
    .params = 1,
    .columns = "script:text",
};

enum err set_compare(const struct pg_call *stored, const struct function_set *set, int *ret_stored, struct why *why)
{
    int number = stored->rows > 0 ? (int)pg_get_i64(stored, 0, 0) : 0;
    if (set && number == set->number && !str_eq(pg_get(stored, 0, 1), str_of(set->checksum)))
        return why_set(
            why, ERR_INPUT,
            "the functions in the database are set %d, applied %s, and those of this program are another set "
            "with the same number: start the build that is meant to be newer with a higher one (tools/sql-set "
            "--write)",
            number, pg_get(stored, 0, 2).at);
    *ret_stored = number;
    return OK;
}

/* Prefixes PostgreSQL's message with the file it is about. */
static enum err run_one(struct pg *pg, const struct embedded *file, int64_t deadline_ns, struct why *why)
{
    struct why words = {""};
    enum err e = pg_script(pg, file->bytes.at, deadline_ns, &words);
    return e ? why_set(why, e, "%s: %s", file->name, words.text) : OK;
}

enum err set_apply(struct pg *pg, const struct function_set *set, int64_t deadline_ns, struct why *why)
{
    AUTO(tx) struct tx *tx = NULL;
    struct pg_call unchecked = {.ask = &set_unchecked}, forget = {.ask = &set_forget};
    struct pg_call enter = {.ask = &set_enter, .args = {pg_i64(set->number), pg_text(set->checksum)}};
    enum err e = migrate_begin(pg, &tx, deadline_ns, why);
    if (!e)
        e = migrate_ask(tx, &unchecked, why);
    for (size_t i = 0; !e && i < set->count; i++)
        e = run_one(pg, set->functions[i], deadline_ns, why);
    if (!e && set->triggers)
        e = run_one(pg, set->triggers, deadline_ns, why);
    if (e || (e = migrate_ask(tx, &forget, why)) || (e = migrate_ask(tx, &enter, why)))
        return e;
    return migrate_commit(tx, why);
}

enum err set_remove(struct pg *pg, struct tx *tx, const struct function_set *set, int64_t deadline_ns, struct why *why)
{
    AUTO(buf) struct buf names = buf_new(NAMES_BYTES_MAX);
    for (size_t i = 0; i < set->count; i++)
        array_add_text(&names, function_name(set->functions[i]));
    if (!array_end(&names))
        return why_set(why, names.failed, "no memory for the names of the functions");
    struct pg_call drops = {.ask = &set_drops, .args = {pg_text(buf_str(&names).at)}}, forget = {.ask = &set_forget};
    enum err e = migrate_ask(tx, &drops, why);
    if (e)
        return e;
    AUTO(buf) struct buf script = buf_new(1 << 20);
    buf_add(&script, pg_get(&drops, 0, 0));
    if (script.failed)
        return why_set(why, script.failed, "no memory for the names of the functions");
    struct why words = {""};
    if (script.len > 0 && (e = pg_script(pg, buf_str(&script).at, deadline_ns, &words)))
        return why_set(why, e, "the functions cannot be removed: %s", words.text);
    return migrate_ask(tx, &forget, why);
}
