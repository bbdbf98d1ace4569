#include "pg/adoption.h"

#include <string.h>

#include "base/embedded.h"
#include "pg/migrate_inside.h"

static const struct statement adoption_begun = {
    .name = "adoption_begun",
    .sql = "SELECT pg_catalog.to_regclass('reclaim.adopted_columns') IS NOT NULL AS begun",
    .params = 0,
    .columns = "begun:bool",
};
static const struct statement adoption_findings = {
    .name = "adoption_findings",
    .sql = "SELECT kind, relation, subject, what, advice, lock_ms FROM pg_temp.adoption_findings($1)"
           " ORDER BY kind = 'refused' DESC, kind, relation DESC",
    .params = 1,
    .columns = ADOPTION_COLUMNS,
};
/* The expression in which NEW is the row: the unit without a name is the whole of the currency. */
static const struct statement adoption_balance = {
    .name = "adoption_balance",
    .sql = "SELECT pg_catalog.set_config('reclaim.balance', pg_catalog.format('pg_catalog.round((NEW.%I)::numeric * "
           "%s)::bigint',"
           " pg_catalog.split_part($1, ':', 1), CASE pg_catalog.split_part($1, ':', 2)"
           " WHEN 'micros' THEN '1' WHEN 'cents' THEN '10000' ELSE '1000000' END), false) AS expression",
    .params = 1,
    .columns = "expression:text",
};
static const struct statement adoption_has_differences = {
    .name = "adoption_has_differences",
    .sql = "SELECT pg_catalog.to_regclass('pg_temp.reclaim_differences') IS NOT NULL AS there",
    .params = 0,
    .columns = "there:bool",
};
static const struct statement adoption_read_differences = {
    .name = "adoption_read_differences",
    .sql = "SELECT what FROM pg_temp.reclaim_differences ORDER BY 1",
    .params = 0,
    .columns = "what:text",
};

enum err adoption_check(struct pg *pg, const char *balance, int64_t deadline_ns,
                        void (*each)(void *context, const struct pg_call *rows), void *context, struct why *why)
{
    const struct embedded *file = embedded_find("sql/adoption_check.sql");
    struct pg_call begun = {.ask = &adoption_begun},
                   findings = {.ask = &adoption_findings, .args = {pg_text_or_null(balance)}};
    AUTO(tx) struct tx *tx = NULL;
    enum err e = migrate_begin(pg, &tx, deadline_ns, why);
    if (e || (e = migrate_ask(tx, &begun, why)))
        return e;
    if (pg_get_bool(&begun, 0, 0)) {
        findings.rows = 0;
        each(context, &findings);
        return OK;
    }
    if (!file)
        return why_set(why, ERR_MISSING, "sql/adoption_check.sql is not part of this program");
    if ((e = pg_script(pg, file->bytes.at, deadline_ns, why)) || (e = migrate_ask(tx, &findings, why)))
        return e;
    each(context, &findings);
    return OK;
}

/* The first row that is refused, if any; they come first. */
static void take_refusal(void *context, const struct pg_call *rows)
{
    struct why *why = context;
    if (rows->rows > 0 && str_eq(pg_get(rows, 0, 0), STR("refused")))
        (void)why_set(
            why, ERR_INPUT,
            "%s cannot be adopted, %s: %s. What to do: %s. Nothing was changed; reclaim migrate --check tells all",
            pg_get(rows, 0, 1).at, pg_get(rows, 0, 2).at, pg_get(rows, 0, 3).at, pg_get(rows, 0, 4).at);
}

enum err adoption_is_possible(struct pg *pg, int64_t deadline_ns, struct why *why)
{
    struct why refusal = {""};
    enum err e = adoption_check(pg, NULL, deadline_ns, take_refusal, &refusal, why);
    if (e)
        return e;
    return refusal.text[0] ? why_set(why, ERR_INPUT, "%s", refusal.text) : OK;
}

enum err adoption_set_balance(struct pg *pg, const char *balance, int64_t deadline_ns, struct why *why)
{
    struct str rest = str_of(balance), column;
    bool named = str_split(&rest, ':', &column) && column.len > 0;
    if (!named || (column.len < strlen(balance) && !str_eq(rest, STR("micros")) && !str_eq(rest, STR("cents"))))
        return why_set(why, ERR_INPUT, "--balance wants COLUMN, COLUMN:micros or COLUMN:cents, not \"%s\"", balance);
    struct pg_call call = {.ask = &adoption_balance, .args = {pg_text(balance)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    return e ? migrate_refused(e, &call, why) : OK;
}

enum err adoption_differences(struct pg *pg, int64_t deadline_ns,
                              void (*each)(void *context, const struct pg_call *rows), void *context, struct why *why)
{
    struct pg_call has = {.ask = &adoption_has_differences}, read = {.ask = &adoption_read_differences};
    enum err e = pg_ask(pg, &has, deadline_ns);
    if (e)
        return migrate_refused(e, &has, why);
    if (!pg_get_bool(&has, 0, 0))
        return OK;
    if ((e = pg_ask(pg, &read, deadline_ns)))
        return migrate_refused(e, &read, why);
    each(context, &read);
    return OK;
}
