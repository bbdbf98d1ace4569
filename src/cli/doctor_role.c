#include "cli/doctor_role.h"

#include <stdio.h>

#include "base/arena.h"
#include "base/clock.h"

/* One finding a row. The columns are those that statements use; a lock takes the UPDATE of any column. */
static const struct statement privileges_check = {
    .name = "doctor_privileges",
    .sql =
        "SELECT CASE WHEN u.oid IS NULL THEN 'there is no auth.users: set RECLAIM_DATABASE_URL to the Supabase "
        "database or"
        " run reclaim migrate --standalone' WHEN NOT pg_catalog.has_schema_privilege('auth', 'USAGE') THEN"
        " 'this role may not use schema auth: GRANT USAGE ON SCHEMA auth" TO_ME
        " WHEN lacking.columns IS NOT NULL THEN 'this role may not read auth.users: GRANT SELECT (' || lacking.columns "
        "||"
        " ') ON auth.users" TO_ME " END AS finding"
        " FROM (SELECT " USERS_OID " AS oid) u CROSS JOIN LATERAL (SELECT pg_catalog.string_agg("
        " pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum) AS columns FROM pg_catalog.pg_attribute a"
        " WHERE a.attrelid = u.oid AND NOT pg_catalog.has_column_privilege(a.attrelid, a.attnum, 'SELECT') AND "
        "a.attname IN (" USERS_READ ")) lacking"
        " UNION ALL SELECT 'this role may not lock rows of auth.users: GRANT UPDATE (email, encrypted_password, "
        "deleted_at,"
        " raw_app_meta_data) ON auth.users" TO_ME " WHERE NOT pg_catalog.has_any_column_privilege(" USERS_OID
        ", 'UPDATE')"
        " UNION ALL SELECT 'this role may not delete from auth.users: GRANT DELETE ON auth.users" TO_ME
        " WHERE NOT pg_catalog.has_table_privilege(" USERS_OID ", 'DELETE')"
        " UNION ALL SELECT 'this role may not use schema reclaim: run reclaim migrate, or GRANT USAGE ON SCHEMA "
        "reclaim" TO_ME
        " WHERE NOT coalesce(pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace('reclaim'), 'USAGE'), false)"
        " UNION ALL SELECT 'auth.users has no index on email, so look-ups will be slow: CREATE INDEX CONCURRENTLY ON"
        " auth.users (email)' WHERE " USERS_OID " IS NOT NULL AND NOT EXISTS (SELECT 1 FROM"
        " pg_catalog.pg_index i JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]"
        " WHERE i.indrelid = " USERS_OID " AND a.attname = 'email' AND i.indisvalid)",
    .params = 0,
    .columns = "finding:text",
};

static void say(finding_handler *each, void *context, enum severity severity, const char *sentence)
{
    each(context, &(struct finding){severity, sentence});
}

void doctor_check_privileges(struct pg *pg, finding_handler *each, void *context)
{
    struct pg_call call = {.ask = &privileges_check};
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS)) {
        say(each, context, SEVERITY_FAILURE, "the privileges cannot be read");
        return;
    }
    bool lacks = false;
    for (int i = 0; i < call.rows; i++) {
        if (pg_is_null(&call, i, 0))
            continue;
        say(each, context, SEVERITY_FAILURE, pg_get(&call, i, 0).at);
        lacks = true;
    }
    if (!lacks)
        say(each, context, SEVERITY_OK, "privileges");
}

static const struct statement login_check = {
    .name = "doctor_login",
    .sql = "SELECT 'this role cannot read all of auth.mfa_factors, so /auth/login refuses everyone: ' ||"
           " pg_catalog.concat_ws('; ', CASE WHEN NOT (pg_catalog.has_column_privilege(f, 'user_id', 'SELECT')"
           " AND pg_catalog.has_column_privilege(f, 'status', 'SELECT')) THEN"
           " 'GRANT SELECT (user_id, status) ON auth.mfa_factors" TO_ME
           " END, reclaim.row_security_mend(f, 'SELECT')) AS finding"
           " FROM pg_catalog.to_regclass('auth.mfa_factors') AS f WHERE reclaim.has_second_factor(NULL) IS NULL",
    .params = 0,
    .columns = "finding:text",
};

void doctor_check_login(struct pg *pg, finding_handler *each, void *context)
{
    struct pg_call call = {.ask = &login_check};
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS) == OK && call.rows > 0)
        say(each, context, SEVERITY_WARNING, pg_get(&call, 0, 0).at);
}

static const struct statement path_check = {
    .name = "doctor_path",
    .sql = "SELECT role_name, undo FROM reclaim.search_path_undo()",
    .params = 0,
    .columns = "role_name:text undo:text",
};

/* Earlier versions put schema reclaim on the search path of whatever role migrated. */
void doctor_check_search_path(struct pg *pg, bool repairs, finding_handler *each, void *context)
{
    struct pg_call found = {.ask = &path_check};
    AUTO(arena) struct arena *arena = arena_new(4096, 65536); /* a repair reuses the connection's result */
    struct str undo[2];
    char words[1024];
    int count = 0;
    if (!arena || pg_ask(pg, &found, clock_ns() + DATABASE_DEADLINE_NS))
        return; /* without the schema, which check_schema has reported */
    for (int i = 0; i < found.rows && i < (int)COUNT_OF(undo); i++) {
        (void)snprintf(words, sizeof words,
                       "schema reclaim is on the search path of role %s, which is not Reclaim's own: reclaim doctor "
                       "--repair, or %s",
                       pg_get(&found, i, 0).at, pg_get(&found, i, 1).at);
        if (repairs)
            undo[count++] = arena_copy(arena, pg_get(&found, i, 1));
        else
            say(each, context, SEVERITY_WARNING, words);
    }
    for (int i = 0; i < count && undo[i].at; i++) {
        struct why why = {""};
        enum err e = pg_script(pg, undo[i].at, clock_ns() + DATABASE_DEADLINE_NS, &why);
        (void)snprintf(words, sizeof words,
                       e ? "the search path cannot be taken back by this role: run %s (%s)"
                         : "search path taken back: %s",
                       undo[i].at, why.text);
        say(each, context, e ? SEVERITY_FAILURE : SEVERITY_OK, words);
    }
}
