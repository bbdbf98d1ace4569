#include "cli/doctor_customers.h"

#include <stdio.h>

#include "base/clock.h"

/* What functions that run as the schema's owner need of auth.users; where rows are made in a team's table, what keeps them from it. */
static const struct statement customers_check = {
    .name = "doctor_customers",
    .sql =
        "SELECT reclaim.users_are_customers() AS users, reclaim.users_watched() AS watched,"
        " CASE WHEN pg_catalog.has_table_privilege(n.nspowner, 'auth.users', 'TRIGGER') THEN 'start a server again, or "
        "run"
        " reclaim doctor --repair' ELSE 'GRANT TRIGGER ON auth.users TO ' || n.nspowner::pg_catalog.regrole"
        "   || ', then start a server again or run reclaim doctor --repair' END AS mend,"
        " (SELECT 'GRANT SELECT (' || pg_catalog.string_agg(pg_catalog.quote_ident(c), ', ') || ') ON auth.users TO '"
        "   || n.nspowner::pg_catalog.regrole FROM pg_catalog.unnest(ARRAY['id', 'email', 'created_at', 'deleted_at']) "
        "AS c"
        "   WHERE NOT pg_catalog.has_column_privilege(n.nspowner, 'auth.users', c, 'SELECT')) AS unreadable,"
        " (SELECT pg_catalog.string_agg(pg_catalog.format('ALTER TABLE %s ALTER COLUMN %I SET DEFAULT …', "
        "a.attrelid::regclass,"
        "   a.attname), '; ' ORDER BY a.attnum) FROM pg_catalog.pg_attribute a"
        "   WHERE a.attrelid = reclaim.table_home('customer_customers') AND a.attnum > 0 AND NOT a.attisdropped"
        "   AND a.attnotnull AND NOT a.atthasdef AND a.attidentity = ''"
        "   AND a.attname NOT IN ('id', 'owner_user_id', 'email', 'tm_create')) AS without_default,"
        " EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id <> c.id AND c.status <> 'deleted') AS "
        "others,"
        " EXISTS (SELECT FROM pg_catalog.pg_trigger t WHERE t.tgrelid = pg_catalog.to_regclass('auth.users')"
        "   AND t.tgname = 'reclaim_user_deleted') AS triggers"
        " FROM pg_catalog.pg_namespace n WHERE n.nspname = 'reclaim'",
    .params = 0,
    .columns = "users:bool watched:bool mend:text unreadable:text without_default:text others:bool triggers:bool",
};
enum { USERS, WATCHED, MEND, UNREADABLE, WITHOUT_DEFAULT, OTHERS, TRIGGERS };

static const struct statement put_triggers = {
    .name = "doctor_users_watch",
    .sql = "SELECT reclaim.users_watch() AS lack",
    .params = 0,
    .columns = "lack:text",
};

static void say(finding_handler *each, void *context, enum severity severity, const char *sentence)
{
    each(context, &(struct finding){severity, sentence});
}

static void say_with(finding_handler *each, void *context, enum severity severity, const char *why, const char *mend)
{
    char words[1536];
    (void)snprintf(words, sizeof words, "%s: %s", why, mend);
    say(each, context, severity, words);
}

static void check_users(const struct pg_call *found, finding_handler *each, void *context)
{
    bool lacks =
        !pg_is_null(found, 0, UNREADABLE) || !pg_is_null(found, 0, WITHOUT_DEFAULT) || !pg_get_bool(found, 0, WATCHED);
    if (!pg_is_null(found, 0, UNREADABLE))
        say_with(each, context, SEVERITY_FAILURE,
                 "the owner of schema reclaim may not read who is a user, so customer_is_active fails",
                 pg_get(found, 0, UNREADABLE).at);
    if (!pg_is_null(found, 0, WITHOUT_DEFAULT))
        say_with(each, context, SEVERITY_FAILURE,
                 "a user who leaves needs a row in customer_customers, and your columns must not be null",
                 pg_get(found, 0, WITHOUT_DEFAULT).at);
    if (!pg_get_bool(found, 0, WATCHED))
        say_with(each, context, SEVERITY_WARNING,
                 "a user removed from auth.users passes the gate for up to 2 seconds, and is erased only with a row: "
                 "there is no trigger on auth.users",
                 pg_get(found, 0, MEND).at);
    if (!lacks)
        say(each, context, SEVERITY_OK,
            pg_get_bool(found, 0, OTHERS) ? "customers: every user is one, without a row until it is needed; who owns "
                                            "a customer of another id is that one"
                                          : "customers: every user is one, without a row until it is needed");
}

void doctor_check_customers(struct pg *pg, bool users, bool repairs, finding_handler *each, void *context)
{
    struct pg_call found = {.ask = &customers_check}, put = {.ask = &put_triggers};
    if (repairs && pg_ask(pg, &put, clock_ns() + DATABASE_DEADLINE_NS))
        say_with(each, context, SEVERITY_FAILURE, "auth.users cannot be watched", put.sqlstate);
    if (pg_ask(pg, &found, clock_ns() + DATABASE_DEADLINE_NS))
        return; /* without the schema, or auth.users: both have been reported */
    bool recorded = pg_get_bool(&found, 0, USERS);
    if (recorded != users)
        say(each, context, SEVERITY_WARNING,
            users
                ? "RECLAIM_CUSTOMERS is users here, and the server that started last has recorded table, which counts: "
                  "users without a row have no customer"
                : "RECLAIM_CUSTOMERS is table here, and the server that started last has recorded users, which counts: "
                  "users without a row are customers");
    if (recorded)
        check_users(&found, each, context);
    else if (pg_get_bool(&found, 0, TRIGGERS))
        say(each, context, SEVERITY_OK,
            "customers: those with a row; users were customers before, and the triggers on auth.users do nothing now");
}
