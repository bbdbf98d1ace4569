#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/ask.h"
#include "cli/doctor_role.h"
#include "cli/init.h"
#include "recovery/ownership.h"
#include "server/database.h"

/* Found in the catalogue: a role that may not use schema auth gets no error. */
static const struct statement facts = {
    .name = "init_facts",
    .sql = "SELECT pg_catalog.current_database()::text AS database, current_user::text AS role,"
           " pg_catalog.current_setting('server_version') AS version, r.rolsuper OR r.rolcreaterole AS creates_roles,"
           " EXISTS (SELECT FROM pg_catalog.pg_roles o WHERE o.rolname = $1::text) AS role_exists,"
           " u.oid IS NOT NULL AS has_users, coalesce(pg_catalog.has_schema_privilege(u.relnamespace, 'USAGE')"
           "   AND pg_catalog.has_column_privilege(u.oid, 'id', 'SELECT'), false) AS may_read,"
           " coalesce(pg_catalog.pg_has_role(u.relowner, 'USAGE'), false) AS owns_users,"
           " coalesce(pg_catalog.has_table_privilege(u.oid, 'DELETE'), false) AS may_delete_users,"
           " u.oid IS NOT NULL AND (EXISTS (SELECT FROM pg_catalog.pg_attribute a WHERE a.attrelid = u.oid"
           "   AND a.attname = 'instance_id') OR (SELECT count(*) FROM pg_catalog.pg_roles s WHERE s.rolname IN"
           "   ('supabase_admin', 'authenticated', 'service_role')) = 3) AS is_supabase,"
           " EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
           "   WHERE n.nspname = 'public' AND c.relname IN ('customer_customers', 'billing_accounts')) AS adopts,"
           " coalesce((SELECT pg_catalog.has_schema_privilege(n.oid, 'USAGE') AND pg_catalog.has_table_privilege(c.oid,"
           "   'SELECT') FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
           "   WHERE n.nspname = 'reclaim' AND c.relname = 'installation'), false) AS is_installed,"
           " greatest(u.reltuples, 0)::int8 AS about, (SELECT o.rolname::text FROM pg_catalog.pg_namespace n"
           "   JOIN pg_catalog.pg_roles o ON o.oid = n.nspowner WHERE n.nspname = 'reclaim') AS schema_owner"
           " FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_class u ON u.oid = " USERS_OID
           " WHERE r.rolname = current_user",
    .params = 1,
    .columns = "database:text role:text version:text creates_roles:bool role_exists:bool has_users:bool may_read:bool "
               "owns_users:bool may_delete_users:bool is_supabase:bool adopts:bool is_installed:bool about:int8 "
               "schema_owner:text",
};

static const struct statement count_users = {
    .name = "init_users",
    .sql = "SELECT count(*) AS users FROM (SELECT 1 FROM auth.users LIMIT " TEXT_OF(INIT_COUNT_MOST) ") u",
    .params = 0,
    .columns = "users:int8",
};

static const struct statement read_fingerprint = {
    .name = "init_fingerprint",
    .sql = "SELECT coalesce(key_fingerprint, '') AS fingerprint FROM reclaim.installation",
    .params = 0,
    .columns = "fingerprint:text",
};

/* Schemas of Supabase and of Reclaim are left out, and the tables that an adoption makes Reclaim's. */
static const struct statement find_keys = {
    .name = "init_keys",
    .sql =
        "SELECT n.nspname::text AS schema, c.relname::text AS name, a.attname::text AS attribute,"
        " k.confdeltype::text AS on_delete, EXISTS (SELECT FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid"
        "   AND i.indisvalid AND i.indpred IS NULL AND i.indkey[0] = a.attnum) AS has_index,"
        " coalesce(pg_catalog.has_schema_privilege(n.oid, 'USAGE')"
        "   AND pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'), false) AS may_read,"
        " concat(n.nspname, c.relname, a.attname) ~ '^[A-Za-z0-9_]+$' AND c.relname ~ '^[^0-9]'"
        "   AND a.attname ~ '^[^0-9]' AND n.nspname ~ '^[^0-9]' AS is_plain,"
        " (SELECT pg_catalog.format(CASE WHEN w.atttypid = 'bool'::pg_catalog.regtype THEN '%I' ELSE '%I is not null'"
        "   END, w.attname) FROM pg_catalog.pg_attribute w WHERE w.attrelid = c.oid AND w.attnum > 0"
        "   AND NOT w.attisdropped AND w.attname ~ 'onboard|complet|finish|activat|set_?up'"
        "   AND (w.atttypid = 'bool'::pg_catalog.regtype OR NOT w.attnotnull AND w.atttypid IN"
        "   ('timestamptz'::pg_catalog.regtype, 'timestamp'::pg_catalog.regtype, 'date'::pg_catalog.regtype))"
        "   ORDER BY w.attnum LIMIT 1) AS condition,"
        " pg_catalog.format('%I.%I (%I)', n.nspname, c.relname, a.attname) AS quoted"
        " FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class c ON c.oid = k.conrelid"
        " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND k.conkey = ARRAY[a.attnum]"
        " JOIN pg_catalog.pg_attribute u ON u.attrelid = k.confrelid AND k.confkey = ARRAY[u.attnum]"
        " WHERE k.contype = 'f' AND k.conparentid = 0 AND k.confrelid = " USERS_OID " AND u.attname = 'id'"
        " AND n.nspname !~ '^(auth|reclaim|storage|realtime|_realtime|_analytics|vault|pgsodium|graphql.*|extensions|"
        "cron|net|supabase_.*)$' AND NOT (n.nspname = 'public' AND c.relname IN ('customer_customers',"
        " 'billing_accounts')) ORDER BY n.nspname <> 'public', c.relname, a.attname LIMIT " TEXT_OF(INIT_TABLES_MAX),
    .params = 0,
    .columns = "schema:text name:text attribute:text on_delete:text has_index:bool may_read:bool is_plain:bool "
               "condition:text quoted:text",
};

static enum err ask(struct init *in, struct pg_call *call)
{
    enum err e = pg_ask(in->pg, call, clock_ns() + DATABASE_DEADLINE_NS);
    return e ? why_set(in->why, e, "the database cannot be looked at (%s %s)", err_name(e), call->sqlstate) : OK;
}

static enum err read_facts(struct init *in)
{
    struct pg_call call = {.ask = &facts, .args = {pg_text(in->role)}};
    enum err e = ask(in, &call);
    if (e)
        return e;
    if (!pg_get_bool(&call, 0, 5))
        return why_set(in->why, ERR_MISSING,
                       "database %s has no table auth.users: name the database of Supabase Auth in the URL, or make a "
                       "minimal one with reclaim migrate --standalone",
                       pg_get(&call, 0, 0).at);
    in->database = arena_copy(in->arena, pg_get(&call, 0, 0)).at;
    in->user = arena_copy(in->arena, pg_get(&call, 0, 1)).at;
    in->version = arena_copy(in->arena, pg_get(&call, 0, 2)).at;
    in->creates_roles = pg_get_bool(&call, 0, 3);
    in->role_exists = pg_get_bool(&call, 0, 4);
    in->may_read_users = pg_get_bool(&call, 0, 6);
    in->owns_users = pg_get_bool(&call, 0, 7);
    in->may_delete_users = pg_get_bool(&call, 0, 8);
    in->is_supabase = pg_get_bool(&call, 0, 9);
    in->adopts = pg_get_bool(&call, 0, 10);
    in->key_recorded = pg_get_bool(&call, 0, 11);
    in->user_count = pg_get_i64(&call, 0, 12);
    if (!pg_is_null(&call, 0, 13))
        in->schema_owner = arena_copy(in->arena, pg_get(&call, 0, 13)).at;
    return in->database && in->user && in->version ? OK : why_set(in->why, ERR_MEMORY, "no memory");
}

static enum err read_counts(struct init *in)
{
    struct pg_call users = {.ask = &count_users}, key = {.ask = &read_fingerprint};
    enum err e = in->may_read_users ? ask(in, &users) : OK;
    if (!e && in->may_read_users && pg_get_i64(&users, 0, 0) < INIT_COUNT_MOST)
        in->user_count = pg_get_i64(&users, 0, 0);
    if (!e && in->key_recorded && (e = ask(in, &key)) == OK && key.rows == 1)
        e = str_copy(pg_get(&key, 0, 0), in->fingerprint, sizeof in->fingerprint);
    return e;
}

/* Names from the catalogue are quoted as identifiers are. */
static void add_name(struct buf *sql, const char *name)
{
    buf_addz(sql, "\"");
    for (; *name; name++)
        buf_add(sql, *name == '"' ? STR("\"\"") : (struct str){name, 1});
    buf_addz(sql, "\"");
}

/* A table that cannot be counted in time stays uncounted. */
static void count_rows(struct init *in, struct init_table *t)
{
    AUTO(buf) struct buf sql = buf_new(2048);
    t->rows = t->users = -1;
    if (!t->may_read)
        return;
    buf_addz(&sql, "SELECT count(*) AS rows, count(DISTINCT o.id) AS users FROM (SELECT ");
    add_name(&sql, t->column);
    buf_addz(&sql, " AS id FROM ");
    add_name(&sql, t->schema);
    buf_addz(&sql, ".");
    add_name(&sql, t->table);
    buf_addz(&sql, " LIMIT " TEXT_OF(INIT_COUNT_MOST) ") o");
    struct statement count = {"init_count", buf_str(&sql).at, 0, "rows:int8 users:int8"};
    struct pg_call call = {.ask = &count};
    if (sql.failed || pg_ask(in->pg, &call, clock_ns() + DATABASE_DEADLINE_NS))
        return;
    t->rows = pg_get_i64(&call, 0, 0);
    t->users = pg_get_i64(&call, 0, 1);
    t->is_everyones = in->user_count > 0 && t->users >= in->user_count;
}

enum err init_look(struct init *in)
{
    struct pg_call keys = {.ask = &find_keys};
    enum err e = read_facts(in);
    if (e || (e = read_counts(in)) || (e = ask(in, &keys)))
        return e;
    in->table_count = (size_t)keys.rows;
    for (int i = 0; i < keys.rows; i++) {
        struct init_table *t = &in->tables[i];
        *t = (struct init_table){.schema = arena_copy(in->arena, pg_get(&keys, i, 0)).at,
                                 .table = arena_copy(in->arena, pg_get(&keys, i, 1)).at,
                                 .column = arena_copy(in->arena, pg_get(&keys, i, 2)).at,
                                 .quoted = arena_copy(in->arena, pg_get(&keys, i, 8)).at,
                                 .on_delete = *pg_get(&keys, i, 3).at,
                                 .has_index = pg_get_bool(&keys, i, 4),
                                 .may_read = pg_get_bool(&keys, i, 5),
                                 .is_plain = pg_get_bool(&keys, i, 6)};
        if (!pg_is_null(&keys, i, 7))
            t->condition = arena_copy(in->arena, pg_get(&keys, i, 7)).at;
        if (!t->schema || !t->table || !t->column || !t->quoted)
            return why_set(in->why, ERR_MEMORY, "no memory for the tables");
    }
    for (size_t i = 0; i < in->table_count; i++)
        count_rows(in, &in->tables[i]);
    return OK;
}

static void add_column(struct buf *out, const struct init_table *t)
{
    bool is_public = strcmp(t->schema, "public") == 0;
    buf_addf(out, "%s%s%s.%s", is_public ? "" : t->schema, is_public ? "" : ".", t->table, t->column);
}

/* More users have rows in it: comes first, since the list is short. */
static bool comes_first(const struct init_table *a, const struct init_table *b)
{
    return a->users != b->users ? a->users > b->users : a < b;
}

/* Every row counts unless a condition is given: a user without one counts as an orphan, which may be deleted. */
static void propose(const struct init *in, struct buf *out, size_t *ret_left)
{
    size_t usable = 0, used = 0;
    for (size_t i = 0; i < in->table_count; i++) {
        const struct init_table *t = &in->tables[i];
        size_t before = 0;
        for (size_t j = 0; j < in->table_count; j++)
            before += in->tables[j].is_plain && comes_first(&in->tables[j], t);
        usable += t->is_plain;
        if (!t->is_plain || before >= OWNERSHIP_MAX)
            continue;
        buf_addz(out, used++ ? "," : "");
        add_column(out, t);
    }
    *ret_left = usable - used;
}

static enum err check_ownership(struct init *in, const char *text)
{
    struct str rest = str_of(text), part;
    struct ownership_column column;
    size_t count = 0;
    while (ownership_split(&rest, &part)) {
        part = str_trim(part);
        if (++count > OWNERSHIP_MAX || ownership_parse(part, in->arena, &column))
            return why_set(in->why, ERR_INPUT,
                           "\"%.*s\" is not a column such as companies.owner or profiles.id where onboarded_at is not "
                           "null (up to %d, separated by commas)",
                           STR_ARGS(part), OWNERSHIP_MAX);
    }
    return OK;
}

enum err init_propose_ownership(struct init *in)
{
    AUTO(buf) struct buf proposal = buf_new(4096);
    size_t left = 0;
    propose(in, &proposal, &left);
    const char *text = in->ownership;
    if (!text && in->asks)
        text = ask_line(in->arena, "RECLAIM_OWNERSHIP, the columns whose rows make a user not an orphan",
                        proposal.len ? buf_str(&proposal).at : "");
    else if (!text && proposal.len)
        text = buf_str(&proposal).at;
    if (!in->ownership && left)
        fprintf(stderr, "%zu more tables refer to auth.users; RECLAIM_OWNERSHIP takes %d\n", left, OWNERSHIP_MAX);
    if (!text || !*text)
        return OK;
    in->ownership = arena_copy(in->arena, str_of(text)).at;
    return in->ownership ? check_ownership(in, in->ownership) : why_set(in->why, ERR_MEMORY, "no memory");
}

static void print_table(const struct init_table *t)
{
    char name[256];
    struct buf out = buf_over(name, sizeof name);
    add_column(&out, t);
    printf("  %-36s", name);
    if (t->rows < 0)
        printf("  not counted: this role may not read it");
    else
        printf("  %lld row%s%s of %lld user%s", (long long)t->rows, t->rows == 1 ? "" : "s",
               t->rows == INIT_COUNT_MOST ? " at least" : "", (long long)t->users, t->users == 1 ? "" : "s");
    if (!t->has_index)
        printf(", no index: CREATE INDEX CONCURRENTLY ON %s", t->quoted);
    if (t->is_everyones && t->condition)
        printf("\n    every user has one, so nobody would be an orphan; if these tell who finished:"
               " %s where %s",
               name, t->condition);
    else if (t->is_everyones)
        printf("\n    every user has one, so nobody is an orphan, unless a condition says which rows count:"
               " %s where …",
               name);
    printf("\n");
}

void init_print_tables(const struct init *in)
{
    enum { SHOWN = 8 };
    if (in->table_count == 0)
        printf("Tables     none refers to auth.users: name in RECLAIM_OWNERSHIP the columns with ids of users whose "
               "rows make\n"
               "           a user not an orphan; until then nobody is one\n");
    else
        printf("Tables     that refer to auth.users; who has a row in those of RECLAIM_OWNERSHIP is no orphan:\n");
    for (size_t i = 0; i < in->table_count && i < SHOWN; i++)
        print_table(&in->tables[i]);
    if (in->table_count > SHOWN)
        printf("  and %zu more\n", in->table_count - SHOWN);
}
