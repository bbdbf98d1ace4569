#include "pg/adoption.h"

#include <string.h>

#include "base/embedded.h"
#include "pg/migrate_inside.h"

#define BALANCE_MAX 128

/* Step 0022 is in the list once every table is adopted. */
static const struct statement adoption_state = {
    .name = "adoption_state",
    .sql = "SELECT pg_catalog.to_regclass('reclaim.schema_migrations') IS NOT NULL AS known",
    .params = 0,
    .columns = "known:bool",
};
static const struct statement adoption_ended = {
    .name = "adoption_ended",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.schema_migrations WHERE version >= 22) AS ended",
    .params = 0,
    .columns = "ended:bool",
};
static const struct statement adoption_findings = {
    .name = "adoption_findings",
    .sql = "SELECT kind, relation, subject, what, advice, lock_ms FROM pg_temp.adoption_findings($1)"
           " ORDER BY pg_catalog.array_position(ARRAY['refused', 'change', 'note'], kind), relation DESC, subject = "
           "'table', subject",
    .params = 1,
    .columns = ADOPTION_COLUMNS,
};
static const struct statement adoption_balance = {
    .name = "adoption_balance",
    .sql = "SELECT pg_catalog.set_config('reclaim.balance', $1, false) AS balance",
    .params = 1,
    .columns = "balance:text",
};
static const struct statement adoption_wanted_balance = {
    .name = "adoption_wanted_balance",
    .sql = "SELECT nullif(pg_catalog.current_setting('reclaim.balance', true), '') AS balance",
    .params = 0,
    .columns = "balance:text",
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

static enum err run_file(struct pg *pg, const char *name, int64_t deadline_ns, struct why *why)
{
    const struct embedded *file = embedded_find(name);
    if (!file)
        return why_set(why, ERR_MISSING, "%s is not part of this program", name);
    return pg_script(pg, file->bytes.at, deadline_ns, why);
}

static enum err has_ended(struct pg *pg, int64_t deadline_ns, bool *ret, struct why *why)
{
    struct pg_call state = {.ask = &adoption_state}, ended = {.ask = &adoption_ended};
    enum err e = pg_ask(pg, &state, deadline_ns);
    if (e)
        return migrate_refused(e, &state, why);
    *ret = false;
    if (!pg_get_bool(&state, 0, 0))
        return OK;
    if ((e = pg_ask(pg, &ended, deadline_ns)))
        return migrate_refused(e, &ended, why);
    *ret = pg_get_bool(&ended, 0, 0);
    return OK;
}

/* What the check and the step share stays in the session, for the step. */
enum err adoption_check(struct pg *pg, const char *balance, int64_t deadline_ns,
                        void (*each)(void *context, const struct pg_call *rows), void *context, struct why *why)
{
    struct pg_call findings = {.ask = &adoption_findings, .args = {pg_text_or_null(balance)}};
    bool ended = false;
    enum err e = has_ended(pg, deadline_ns, &ended, why);
    if (e)
        return e;
    if (ended && balance)
        return why_set(why, ERR_INPUT,
                       "--balance goes with an adoption, and there is none: the tables are Reclaim's already. What to "
                       "do: take each balance over with POST /v1/billing/accounts/{id}/adjustments, or write "
                       "balance_micros with SQL while no program charges");
    if (ended) {
        findings.rows = 0;
        each(context, &findings);
        return OK;
    }
    if ((e = run_file(pg, "sql/adoption_shared.sql", deadline_ns, why)) ||
        (e = run_file(pg, "sql/adoption_begin.sql", deadline_ns, why)))
        return e;
    AUTO(tx) struct tx *tx = NULL;
    if ((e = migrate_begin(pg, &tx, deadline_ns, why)) ||
        (e = run_file(pg, "sql/adoption_dependants.sql", deadline_ns, why)) ||
        (e = run_file(pg, "sql/adoption_check.sql", deadline_ns, why)) || (e = migrate_ask(tx, &findings, why)))
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
    struct pg_call wanted = {.ask = &adoption_wanted_balance};
    enum err e = pg_ask(pg, &wanted, deadline_ns);
    if (e)
        return migrate_refused(e, &wanted, why);
    char balance[BALANCE_MAX] = "";
    if ((!pg_is_null(&wanted, 0, 0) && (e = str_copy(pg_get(&wanted, 0, 0), balance, sizeof balance))) ||
        (e = adoption_check(pg, balance[0] ? balance : NULL, deadline_ns, take_refusal, &refusal, why)))
        return e;
    return refusal.text[0] ? why_set(why, ERR_INPUT, "%s", refusal.text) : OK;
}

enum err adoption_set_balance(struct pg *pg, const char *balance, int64_t deadline_ns, struct why *why)
{
    struct str rest = str_of(balance), column;
    bool named = str_split(&rest, ':', &column) && column.len > 0;
    if (!named || strlen(balance) >= BALANCE_MAX ||
        (column.len < strlen(balance) && !str_eq(rest, STR("micros")) && !str_eq(rest, STR("cents"))))
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
