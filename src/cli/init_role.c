#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/embedded.h"
#include "base/json.h"
#include "cli/doctor_role.h"
#include "cli/init.h"
#include "pg/arrays.h"
#include "recovery/ownership.h"

/* What the server's role needs of tables that are not Reclaim's, $1 the role, $2 the ownership columns, $3 whether users are
 * customers; it owns the schema reclaim itself. Personal columns and tables are those that an erasure empties (sql/functions/customers). */
static const struct statement role_needs = {
    .name = "init_role_needs",
    .sql =
        "WITH own AS (SELECT c.oid, n.nspname, pg_catalog.format('%I.%I', n.nspname, c.relname) AS home, o.attribute, "
        "o.conditional, (SELECT pg_catalog.string_agg("
        "     pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attname <> o.attribute, a.attnum)"
        "     FROM pg_catalog.pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped"
        "     AND (a.attname = o.attribute OR a.attname = ANY (o.words))) AS read"
        "   FROM pg_catalog.jsonb_to_recordset($2::jsonb) AS o (schema text, name text, attribute text, words text[],"
        "     conditional bool) JOIN pg_catalog.pg_namespace n ON n.nspname = o.schema"
        "   JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = o.name),"
        " used AS (SELECT " USERS_OID " AS oid, 'ALL' AS command"
        "   UNION ALL SELECT t.name, 'ALL' FROM pg_temp.personal_tables() t"
        "   UNION ALL SELECT o.oid, CASE WHEN bool_or(o.conditional) THEN 'ALL' ELSE 'SELECT' END FROM own o GROUP BY "
        "o.oid)"
        " SELECT kind, pg_catalog.replace(statement, '%role%', pg_catalog.quote_ident($1::text)) AS statement FROM ("
        " SELECT 1 AS place, 'grant' AS kind, pg_catalog.format('GRANT CONNECT, CREATE ON DATABASE %I TO %%role%%',"
        "   pg_catalog.current_database()) AS statement"
        " UNION ALL SELECT 2, 'grant', 'GRANT USAGE ON SCHEMA auth TO %role%'"
        " UNION ALL SELECT 3, 'grant', pg_catalog.format('GRANT SELECT (%s) ON auth.users TO %%role%%',"
        "   pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum))"
        "   FROM pg_catalog.pg_attribute a WHERE a.attrelid = " USERS_OID "   AND a.attname IN (" USERS_READ
        ", 'instance_id')"
        " UNION ALL SELECT 4, 'grant', pg_catalog.format('GRANT DELETE, UPDATE (%s) ON auth.users TO %%role%%',"
        "   pg_catalog.string_agg(pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum))"
        "   FROM pg_catalog.pg_attribute a JOIN pg_temp.personal_columns() p ON p.name = a.attname"
        "   WHERE a.attrelid = " USERS_OID " AND NOT a.attisdropped"
        " UNION ALL SELECT 4, 'grant', 'GRANT TRIGGER ON auth.users TO %role%' WHERE $3::bool"
        " UNION ALL SELECT 5, 'grant', pg_catalog.format('GRANT SELECT (user_id%s), DELETE ON %s TO %%role%%',"
        "   CASE WHEN t.name::text ~ 'mfa_factors$' THEN ', status' END,"
        "   (SELECT pg_catalog.format('auth.%I', c.relname) FROM pg_catalog.pg_class c WHERE c.oid = t.name))"
        "   FROM pg_temp.personal_tables() t"
        " UNION ALL SELECT DISTINCT 6, 'grant', pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %%role%%', o.nspname)"
        "   FROM own o WHERE NOT pg_catalog.has_schema_privilege('public', o.nspname, 'USAGE')"
        " UNION ALL SELECT 7, 'grant', pg_catalog.format('GRANT SELECT (%s)%s ON %s TO %%role%%', o.read,"
        "   CASE WHEN o.conditional THEN pg_catalog.format(', UPDATE (%I)', o.attribute) END,"
        "   o.home) FROM own o"
        " UNION ALL SELECT 8, 'policy', pg_catalog.format('DROP POLICY IF EXISTS %1$I ON %2$s; CREATE POLICY %1$I ON "
        "%2$s"
        " FOR %3$s TO %%role%% USING (true)', $1::text || CASE u.command WHEN 'SELECT' THEN '_reads' ELSE '_all' END,"
        "   pg_catalog.format('%I.%I', n.nspname, c.relname), u.command) FROM used u"
        "   JOIN pg_catalog.pg_class c ON c.oid = u.oid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
        "   WHERE c.relrowsecurity) AS needs ORDER BY place, statement",
    .params = 3,
    .columns = "kind:text statement:text",
};

/* The functions of the schema, before there is one. */
static enum err define_functions(struct init *in)
{
    static const char *const files[] = {"sql/functions/customers/personal_columns.sql",
                                        "sql/functions/customers/personal_tables.sql"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        const struct embedded *file = embedded_find(files[i]);
        AUTO(buf) struct buf sql = buf_new(65536);
        struct str rest = file ? file->bytes : STR("");
        for (const char *at; (at = memmem(rest.at, rest.len, "reclaim.", 8));) {
            buf_add(&sql, (struct str){rest.at, (size_t)(at - rest.at)});
            buf_addz(&sql, "pg_temp.");
            rest = (struct str){at + 8, rest.len - (size_t)(at - rest.at) - 8};
        }
        buf_add(&sql, rest);
        enum err e = file && !sql.failed
                         ? pg_script(in->pg, buf_str(&sql).at, clock_ns() + DATABASE_DEADLINE_NS, in->why)
                         : why_set(in->why, ERR_MEMORY, "no memory for %s", files[i]);
        if (e)
            return e;
    }
    return OK;
}

static enum err write_ownership(struct init *in, struct buf *out)
{
    struct json_writer w = json_to(out);
    struct str rest = str_of(in->ownership), part;
    struct ownership_column c;
    json_open(&w, '[');
    while (in->ownership && ownership_split(&rest, &part)) {
        AUTO(buf) struct buf words = buf_new(65536);
        enum err e = ownership_parse(str_trim(part), in->arena, &c);
        if (e)
            return why_set(in->why, e, "RECLAIM_OWNERSHIP cannot be read");
        ownership_words(&c, &words);
        json_open(&w, '{');
        json_key(&w, "schema");
        json_str(&w, str_of(c.schema));
        json_key(&w, "name");
        json_str(&w, str_of(c.table));
        json_key(&w, "attribute");
        json_str(&w, str_of(c.column));
        json_key(&w, "words"); /* PostgreSQL reads an array's text as well */
        json_str(&w, str_of(array_end(&words)));
        json_key(&w, "conditional");
        json_bool(&w, c.condition != NULL);
        json_close(&w, '}');
    }
    json_close(&w, ']');
    return out->failed ? why_set(in->why, ERR_MEMORY, "no memory for the ownership columns") : OK;
}

static void add_literal(struct buf *out, const char *text)
{
    buf_addz(out, "'");
    for (; *text; text++)
        buf_add(out, *text == '\'' ? STR("''") : (struct str){text, 1});
    buf_addz(out, "'");
}

static void add_identifier(struct buf *out, const char *name)
{
    buf_addz(out, "\"");
    for (; *name; name++)
        buf_add(out, *name == '"' ? STR("\"\"") : (struct str){name, 1});
    buf_addz(out, "\"");
}

static enum err add_role(struct init *in, struct buf *out)
{
    char verifier[PG_VERIFIER_MAX];
    buf_addz(out, "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = ");
    add_literal(out, in->role);
    buf_addz(out, ") THEN CREATE ROLE ");
    add_identifier(out, in->role);
    buf_addz(out, "; END IF; END $$;\n");
    if (!in->password)
        return OK;
    if (pg_password_verifier(in->pg, in->role, in->password, verifier))
        return why_set(in->why, ERR_SYSTEM, "the password of the role cannot be hashed");
    buf_addz(out, "ALTER ROLE ");
    add_identifier(out, in->role);
    buf_addz(out, " LOGIN PASSWORD ");
    add_literal(out, verifier);
    buf_addz(out, ";\n");
    return OK;
}

enum err init_write_grants(struct init *in)
{
    AUTO(buf) struct buf ownership = buf_new(65536);
    AUTO(buf) struct buf grants = buf_new(65536);
    enum err e = define_functions(in);
    if (e || (e = write_ownership(in, &ownership)) || (!in->uses_given && (e = add_role(in, &grants))))
        return e;
    struct pg_call call = {.ask = &role_needs,
                           .args = {pg_text(in->uses_given ? in->user : in->role), pg_text(buf_str(&ownership).at),
                                    pg_text(init_users_are_customers(in) ? "true" : "false")}};
    if ((e = pg_ask(in->pg, &call, clock_ns() + DATABASE_DEADLINE_NS)))
        return why_set(in->why, e, "what the role needs cannot be found (%s %s)", err_name(e), call.sqlstate);
    for (int i = 0; i < call.rows; i++) {
        struct str statement = pg_get(&call, i, 1);
        if (str_eq(pg_get(&call, i, 0), STR("grant")))
            buf_addf(&grants, "%s;\n", statement.at);
        else if (in->policy_count < INIT_TABLES_MAX)
            in->policies[in->policy_count++] = arena_copy(in->arena, statement).at;
    }
    in->grants = arena_copy(in->arena, buf_str(&grants)).at;
    return in->grants ? OK : why_set(in->why, ERR_MEMORY, "no memory for the grants");
}

/* Supabase's shared pooler finds the project by the user's name. */
static enum err url_for_role(struct init *in, const char *url, const char **ret)
{
    AUTO(buf) struct buf out = buf_new(8192);
    bool pooled = in->project && strncmp(in->target.host, "db.", 3) != 0;
    struct str user = pooled ? arena_printf(in->arena, "%s.%s", in->role, in->project) : str_of(in->role);
    enum err e = pg_url_with(url, &(struct pg_url_change){user.at, in->password, in->database, NULL}, &out, in->why);
    if (!e && !(*ret = arena_copy(in->arena, buf_str(&out)).at))
        e = why_set(in->why, ERR_MEMORY, "no memory for the database URL");
    return e;
}

enum err init_choose_role(struct init *in)
{
    in->role_url = in->url;
    in->role_direct_url = in->direct_url;
    bool cannot_grant = !in->names_role && !in->owns_users && in->may_delete_users; /* hosted Supabase: postgres */
    if (cannot_grant)
        printf(
            "Role       %s, the given one: it does not own auth.users, so it can give no other role what Reclaim needs "
            "there\n",
            in->user);
    if ((in->uses_given = in->same_role || in->adopts || cannot_grant || strcmp(in->user, in->role) == 0))
        return OK;
    if (in->schema_owner && strcmp(in->schema_owner, in->role) != 0)
        return why_set(in->why, ERR_CONFLICT,
                       "Reclaim is set up in this database already, and its schema belongs to %s: name that role with "
                       "--role, or connect with it",
                       in->schema_owner);
    /* From an earlier run in this folder: the role keeps the password that is written there. */
    const char *known = in->force && in->role_exists ? init_read_file(in, INIT_URL_FILE) : NULL;
    struct pg_target target;
    struct why why;
    if (known && pg_url_read(known, &target, &why) == OK && strncmp(target.user, in->role, strlen(in->role)) == 0 &&
        strchr(known, '@')) {
        in->role_url = known;
        const char *direct = init_read_file(in, INIT_DIRECT_FILE);
        in->role_direct_url = in->direct_url ? direct : NULL;
        return OK;
    }
    if (in->role_exists && !in->force)
        return why_set(
            in->why, ERR_CONFLICT,
            "the role %s exists, and its password is not known here: copy " INIT_SETTINGS_FILE
            " and the files beside it from the installation that has it, name another role with --role, or set "
            "a new password with --force, which every installation with this role then needs",
            in->role);
    if (!(in->password = init_new_secret(in->arena)))
        return why_set(in->why, ERR_MEMORY, "no memory for a password");
    enum err e = url_for_role(in, in->url, &in->role_url);
    return e || !in->direct_url ? e : url_for_role(in, in->direct_url, &in->role_direct_url);
}

/* A policy locks its table until its transaction ends, so each has one of its own, and waits for no busy table. */
enum err init_create_role(struct init *in)
{
    AUTO(buf) struct buf script = buf_new(131072);
    struct why said = {""};
    buf_addf(&script, "BEGIN;\n%sCOMMIT", in->grants);
    enum err e =
        script.failed ? ERR_MEMORY : pg_script(in->pg, buf_str(&script).at, clock_ns() + DATABASE_DEADLINE_NS, &said);
    for (size_t i = 0; !e && i < in->policy_count; i++) {
        buf_clear(&script);
        buf_addf(&script, "SET LOCAL lock_timeout = '3s'; %s", in->policies[i]);
        e = pg_script(in->pg, buf_str(&script).at, clock_ns() + DATABASE_DEADLINE_NS, &said);
    }
    return e ? why_set(in->why, e,
                       "the role %s could not be made by %s (%s): run %s/" INIT_ROLE_FILE
                       " as an administrator (on Supabase in the SQL editor), then reclaim serve --config "
                       "%s/" INIT_SETTINGS_FILE,
                       in->role, in->user, said.text, in->directory, in->directory)
             : OK;
}
