#include "recovery/orphans.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* Row security that hides rows from this role would make owners look like orphans, and users look unregistered. A subquery
 * of its own, so that it is evaluated once a statement and not once a row. */
static void add_sees_everything(struct buf *sql, const struct ownership_column *columns, size_t count,
                                const char *users_command)
{
    buf_addf(sql, "(SELECT reclaim.sees_all_rows('auth.users', '%s')", users_command);
    buf_addz(sql, " AND reclaim.sees_all_rows('reclaim.customer_customers', 'SELECT')"
                  " AND reclaim.sees_all_rows('reclaim.customer_members', 'SELECT')");
    bool locks = strstr(users_command, "UPDATE"); /* rows with a condition, too */
    for (size_t i = 0; i < count; i++)
        buf_addf(sql, " AND reclaim.sees_all_rows('\"%s\".\"%s\"', '%s')", columns[i].schema, columns[i].table,
                 locks && columns[i].condition ? "UPDATE" : "SELECT");
    buf_addz(sql, ")");
}

/* "EXISTS (…) OR EXISTS (…)" over the ownership columns, and owners and members of live customers, for the user row `u`. A row of
 * the user's id without an owner is the user's where users are customers; one that is a customer without a row is none here. */
static void add_owns_something(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ownership_column *c = &columns[i];
        buf_addf(sql, "EXISTS (SELECT 1 FROM \"%s\".\"%s\" o%zu WHERE o%zu.\"%s\" = u.id", c->schema, c->table, i, i,
                 c->column);
        if (c->condition)
            buf_addf(sql, " AND (%s)", c->condition);
        buf_addz(sql, ") OR ");
    }
    buf_addz(sql, "EXISTS (SELECT 1 FROM reclaim.customer_customers c WHERE c.owner_user_id = u.id"
                  " AND c.status <> 'deleted')"
                  " OR EXISTS (SELECT 1 FROM reclaim.customer_customers c WHERE c.id = u.id AND c.owner_user_id IS NULL"
                  " AND c.status <> 'deleted')"
                  " OR EXISTS (SELECT 1 FROM reclaim.customer_members m JOIN reclaim.customer_customers c"
                  " ON c.id = m.customer_id AND c.status <> 'deleted' WHERE m.user_id = u.id)");
}

/* `has_company`, null when rows are hidden. */
static void add_has_company(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "CASE WHEN ");
    add_sees_everything(sql, columns, count, "SELECT");
    buf_addz(sql, " THEN (");
    add_owns_something(sql, columns, count);
    buf_addz(sql, ") END AS has_company");
}

#define USER_OF(address) "u.email = " address " AND u.is_sso_user = false AND u.deleted_at IS NULL"

static void write_candidates(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "SELECT v.sees_all, u.id, (u.email_confirmed_at IS NOT NULL) AS verified,"
                  " coalesce(u.banned_until > now(), false) AS banned, CASE WHEN v.sees_all THEN (");
    add_owns_something(sql, columns, count);
    buf_addz(sql, ") END AS has_company FROM (SELECT ");
    add_sees_everything(sql, columns, count, "UPDATE DELETE"); /* UPDATE: the row is locked first */
    buf_addz(sql, " AS sees_all) v CROSS JOIN unnest($1::text[]) WITH ORDINALITY AS q(email, n)"
                  " LEFT JOIN auth.users u ON " USER_OF("q.email") " ORDER BY q.n");
}

static void write_has_company(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "SELECT ");
    add_has_company(sql, columns, count);
    buf_addz(sql, " FROM auth.users u WHERE " USER_OF("$1"));
}

static void write_have_company(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "SELECT q.n, ");
    add_has_company(sql, columns, count);
    buf_addz(sql, " FROM unnest($1::text[]) WITH ORDINALITY AS q(email, n) JOIN auth.users u ON " USER_OF("q.email"));
}

static void add_names(struct buf *sql, const struct ownership_column *columns, size_t count, bool conditional)
{
    const char *separator = "";
    buf_addz(sql, "ARRAY[");
    for (size_t i = 0; i < count; i++) {
        if (!columns[i].condition == conditional)
            continue;
        buf_addf(sql, "%s'%s.%s.%s'", separator, columns[i].schema, columns[i].table, columns[i].column);
        separator = ",";
    }
    buf_addz(sql, "]::text[]");
}

/* The ownership columns whose foreign keys stop no orphan's deletion: an orphan may have rows where there is a condition. */
static void add_owned(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    add_names(sql, columns, count, false);
}

static void write_blocked(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "SELECT b.keys, t.id, t.blocked_by FROM reclaim.blocked_users(ARRAY("
                  "SELECT u.id FROM auth.users u WHERE " USER_OF("ANY ($1::text[])") "), ");
    add_owned(sql, columns, count);
    buf_addz(sql, ", false) b LEFT JOIN LATERAL unnest(b.users, b.tables) AS t(id, blocked_by) ON true");
}

/* Says of each key what it does and both ways to change that, and what this role needs to find its rows beforehand. */
static void write_keys(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(
        sql,
        "SELECT pg_catalog.format('%s (%s) refers to %s, and its rows keep a user from being deleted (005): %sALTER "
        "TABLE %s DROP CONSTRAINT %I, ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %s (%s) ON DELETE CASCADE%s',"
        " k.home, k.columns, k.parent, CASE WHEN k.owned_as = ANY (");
    add_names(sql, columns, count, true);
    buf_addz(sql, ") THEN 'take the condition of ' || k.owned_as || ' out of' ELSE 'add ' || k.owned_as || ' to' END ||"
                  " ' RECLAIM_OWNERSHIP if such users are no orphans, or ', k.home, k.name, k.name, k.columns, "
                  "k.parent, k.parent_columns,"
                  " '; until then their code is mailed before they are refused, unless: ' || k.lack) AS finding"
                  " FROM reclaim.deletion_keys(");
    add_owned(sql, columns, count);
    buf_addz(sql, ", false) k ORDER BY k.home, k.columns, k.name");
}

static void write_list(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "WITH orphans AS MATERIALIZED (SELECT u.created_at AS created, u.id, u.email,"
                  " to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS created_at,"
                  " (u.email_confirmed_at IS NOT NULL) AS verified,"
                  " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS last_sign_in_at,"
                  " CASE WHEN u.banned_until > now() THEN 'banned' END AS ban FROM auth.users u"
                  " WHERE u.email IS NOT NULL AND u.is_sso_user = false AND u.deleted_at IS NULL"
                  " AND u.created_at <= now() - make_interval(secs => $1::float8) AND NOT (");
    add_owns_something(sql, columns, count);
    buf_addz(sql, ")), blocked AS (SELECT unnest(b.users) AS id, unnest(b.tables) AS blocked_by"
                  " FROM reclaim.blocked_users(ARRAY(SELECT o.id FROM orphans o), ");
    add_owned(sql, columns, count);
    buf_addz(sql, ", true) b) SELECT o.id, o.email, o.created_at, o.verified, o.last_sign_in_at,"
                  " coalesce(o.ban, b.blocked_by) AS blocked_by"
                  " FROM orphans o LEFT JOIN blocked b ON b.id = o.id ORDER BY o.created, o.id");
}

/* By id, so that each page is one look into the primary key's index. */
static void write_page(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "SELECT u.id, u.email,"
                  " to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS created_at,"
                  " (u.email_confirmed_at IS NOT NULL) AS verified,"
                  " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS last_sign_in_at"
                  " FROM auth.users u WHERE u.id > $2::uuid"
                  " AND u.email IS NOT NULL AND u.is_sso_user = false AND u.deleted_at IS NULL"
                  " AND NOT coalesce(u.banned_until > now(), false)"
                  " AND u.created_at <= now() - make_interval(secs => $1::float8) AND NOT (");
    add_owns_something(sql, columns, count);
    buf_addz(sql, ") ORDER BY u.id LIMIT $3::int8");
}

/* By id, for lists that show what keeps an orphan from being deleted. Where rows are hidden every user might be one: division by
 * zero, so that none is shown. */
static void write_report(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "WITH orphans AS MATERIALIZED (SELECT u.id, u.email::text AS email,"
                  " to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS created_at,"
                  " (u.email_confirmed_at IS NOT NULL) AS verified,"
                  " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS last_sign_in_at,"
                  " CASE WHEN u.banned_until > now() THEN 'banned' END AS ban FROM auth.users u"
                  " WHERE 1 / (SELECT CASE WHEN ");
    add_sees_everything(sql, columns, count, "SELECT");
    buf_addz(sql, " THEN 1 ELSE 0 END) = 1 AND ($2::uuid IS NULL OR u.id > $2::uuid)"
                  " AND u.email IS NOT NULL AND u.is_sso_user = false AND u.deleted_at IS NULL"
                  " AND u.created_at <= now() - make_interval(secs => $1::float8) AND NOT (");
    add_owns_something(sql, columns, count);
    buf_addz(sql,
             ") ORDER BY u.id LIMIT $3::int8), blocked AS (SELECT unnest(b.users) AS id, unnest(b.tables) AS blocked_by"
             " FROM reclaim.blocked_users(ARRAY(SELECT o.id FROM orphans o), ");
    add_owned(sql, columns, count);
    buf_addz(sql, ", true) b) SELECT o.id, json_build_object('id', o.id, 'email', o.email, 'created_at', o.created_at,"
                  " 'verified', o.verified, 'last_sign_in_at', o.last_sign_in_at,"
                  " 'blocked_by', coalesce(o.ban, b.blocked_by))::text AS object"
                  " FROM orphans o LEFT JOIN blocked b ON b.id = o.id ORDER BY o.id");
}

enum err orphan_statements_write(const struct ownership_column *columns, size_t count, struct orphan_statements *ret)
{
    static void (*const writers[])(struct buf *, const struct ownership_column *,
                                   size_t) = {write_candidates, write_has_company, write_have_company, write_list,
                                              write_blocked,    write_keys,        write_report,       write_page};
    AUTO(buf) struct buf sql = buf_new((size_t)128 << 10);
    size_t at[COUNT_OF(writers)];
    for (size_t i = 0; i < COUNT_OF(writers); i++) {
        at[i] = sql.len;
        writers[i](&sql, columns, count);
        buf_add(&sql, (struct str){"", 1});
    }
    if (sql.failed)
        return sql.failed;

    char *text = malloc(sql.len);
    if (!text)
        return ERR_MEMORY;
    memcpy(text, sql.at, sql.len);
    *ret = (struct orphan_statements){
        .candidates = {"orphan_candidates", text + at[0], 1,
                       "sees_all:bool id:uuid verified:bool banned:bool has_company:bool"},
        .has_company = {"orphan_has_company", text + at[1], 1, "has_company:bool"},
        .have_company = {"orphan_have_company", text + at[2], 1, "n:int8 has_company:bool"},
        .list = {"orphan_list", text + at[3], 1,
                 "id:uuid email:varchar created_at:text verified:bool last_sign_in_at:text blocked_by:text"},
        .blocked = {"orphan_blocked", text + at[4], 1, "keys:int4 id:uuid blocked_by:text"},
        .keys = {"orphan_keys", text + at[5], 0, "finding:text"},
        .report = {"orphan_report", text + at[6], 3, "id:uuid object:text"},
        .page = {"orphan_page", text + at[COUNT_OF(writers) - 1], 3,
                 "id:uuid email:varchar created_at:text verified:bool last_sign_in_at:text"},
        .text = text,
    };
    return OK;
}

static void write_table_locks(struct buf *sql, const struct ownership_column *columns, const bool *without_key,
                              size_t count)
{
    size_t before = sql->len;
    for (size_t i = 0; i < count; i++)
        if (without_key[i])
            buf_addf(sql, "%s\"%s\".\"%s\"", sql->len > before ? ", " : "LOCK TABLE ", columns[i].schema,
                     columns[i].table);
    if (sql->len > before)
        buf_addz(sql, " IN SHARE ROW EXCLUSIVE MODE");
}

/* The weakest lock that every update of a row conflicts with; rows that only refer to these can still be written. */
static void write_row_locks(struct buf *sql, const struct ownership_column *columns, const bool *without_key,
                            size_t count)
{
    size_t before = sql->len;
    for (size_t i = 0; i < count; i++)
        if (columns[i].condition && !without_key[i])
            buf_addf(sql, "%s l%zu AS (SELECT 1 FROM \"%s\".\"%s\" o WHERE o.\"%s\" = $1::uuid FOR NO KEY UPDATE OF o)",
                     sql->len > before ? "," : "WITH", i, columns[i].schema, columns[i].table, columns[i].column);
    if (sql->len == before)
        return;
    buf_addz(sql, " SELECT 0::int8");
    for (size_t i = 0; i < count; i++)
        if (columns[i].condition && !without_key[i])
            buf_addf(sql, " + (SELECT count(*) FROM l%zu)", i);
    buf_addz(sql, " AS rows");
}

enum err orphan_statements_lock(struct orphan_statements *s, const struct ownership_column *columns,
                                const bool *without_key, size_t count)
{
    AUTO(buf) struct buf sql = buf_new(8192);
    write_table_locks(&sql, columns, without_key, count);
    bool locks_tables = sql.len > 0;
    buf_add(&sql, (struct str){"", 1});
    size_t rows_at = sql.len;
    write_row_locks(&sql, columns, without_key, count);
    bool locks_rows = sql.len > rows_at;
    buf_add(&sql, (struct str){"", 1});
    char *text = sql.failed ? NULL : malloc(sql.len);
    if (!text)
        return ERR_MEMORY;
    memcpy(text, sql.at, sql.len);
    free(s->lock_text); /* of a start that is tried again */
    s->lock_text = text;
    s->lock_tables = s->lock_rows = (struct statement){0};
    if (locks_tables)
        s->lock_tables = (struct statement){"orphan_lock_tables", s->lock_text, 0, ""};
    if (locks_rows)
        s->lock_rows = (struct statement){"orphan_lock_rows", s->lock_text + rows_at, 1, "rows:int8"};
    return OK;
}

void orphan_statements_free(struct orphan_statements *s)
{
    free(s->text);
    free(s->lock_text);
    *s = (struct orphan_statements){0};
}
