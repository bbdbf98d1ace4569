#include "recovery/orphans.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* Row-level security that hides rows from this role would make owners look like orphans: no answer then. A policy that
 * shows the role every row is as good as none. */
static void add_sees_everything(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(
            sql,
            "%s(SELECT NOT row_security_active(t.oid) OR (EXISTS (SELECT 1 FROM pg_catalog.pg_policy p"
            " WHERE p.polrelid = t.oid AND p.polpermissive AND p.polcmd IN ('r', '*')"
            " AND (p.polroles = '{0}' OR (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = current_user)"
            " = ANY (p.polroles)) AND pg_get_expr(p.polqual, p.polrelid) = 'true')"
            " AND NOT EXISTS (SELECT 1 FROM pg_catalog.pg_policy p WHERE p.polrelid = t.oid AND NOT p.polpermissive"
            " AND p.polcmd IN ('r', '*'))) FROM (SELECT '\"%s\".\"%s\"'::regclass::oid) t(oid))",
            i ? " AND " : "", columns[i].schema, columns[i].table);
}

/* "EXISTS (…) OR EXISTS (…)" over the ownership columns, for the user row `u`. */
static void add_owns_something(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(sql, "%sEXISTS (SELECT 1 FROM \"%s\".\"%s\" o%zu WHERE o%zu.\"%s\" = u.id)", i ? " OR " : "",
                 columns[i].schema, columns[i].table, i, i, columns[i].column);
}

static void add_has_company(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    buf_addz(sql, "CASE WHEN ");
    add_sees_everything(sql, columns, count);
    buf_addz(sql, " THEN (");
    add_owns_something(sql, columns, count);
    buf_addz(sql, ") END AS has_company");
}

enum err orphan_statements_write(const struct ownership_column *columns, size_t count, struct orphan_statements *ret)
{
    AUTO(buf) struct buf sql = buf_new(32768);
    buf_addz(&sql, "SELECT ");
    add_has_company(&sql, columns, count);
    buf_addz(&sql, " FROM auth.users u"
                   " WHERE u.email = $1 AND u.is_sso_user = false AND u.deleted_at IS NULL");
    buf_add(&sql, (struct str){"", 1});
    size_t many_at = sql.len;
    buf_addz(&sql, "SELECT q.n, ");
    add_has_company(&sql, columns, count);
    buf_addz(&sql, " FROM unnest($1::text[]) WITH ORDINALITY AS q(email, n) JOIN auth.users u"
                   " ON u.email = q.email AND u.is_sso_user = false AND u.deleted_at IS NULL");
    buf_add(&sql, (struct str){"", 1});
    size_t list_at = sql.len;
    buf_addz(&sql, "SELECT u.id, u.email,"
                   " to_char(u.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS created_at,"
                   " (u.email_confirmed_at IS NOT NULL) AS verified,"
                   " to_char(u.last_sign_in_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') AS last_sign_in_at"
                   " FROM auth.users u"
                   " WHERE u.email IS NOT NULL AND u.is_sso_user = false AND u.deleted_at IS NULL"
                   " AND u.created_at <= now() - make_interval(secs => $1::float8) AND NOT (");
    add_owns_something(&sql, columns, count);
    buf_addz(&sql, ") ORDER BY u.created_at, u.id");
    buf_add(&sql, (struct str){"", 1});
    if (sql.failed)
        return sql.failed;

    char *text = malloc(sql.len);
    if (!text)
        return ERR_MEMORY;
    memcpy(text, sql.at, sql.len);
    *ret = (struct orphan_statements){
        .has_company = {"orphan_has_company", text, 1, "has_company:bool"},
        .have_company = {"orphan_have_company", text + many_at, 1, "n:int8 has_company:bool"},
        .list = {"orphan_list", text + list_at, 1,
                 "id:uuid email:varchar created_at:text verified:bool last_sign_in_at:text"},
        .text = text,
    };
    return OK;
}

enum err orphan_statements_lock(struct orphan_statements *s, const struct ownership_column *columns,
                                const bool *without_key, size_t count)
{
    AUTO(buf) struct buf sql = buf_new(4096);
    for (size_t i = 0; i < count; i++)
        if (without_key[i])
            buf_addf(&sql, "%s\"%s\".\"%s\"", sql.len ? ", " : "LOCK TABLE ", columns[i].schema, columns[i].table);
    if (sql.len == 0 && !sql.failed)
        return OK;
    buf_addz(&sql, " IN SHARE ROW EXCLUSIVE MODE");
    buf_add(&sql, (struct str){"", 1});
    if (sql.failed || !(s->lock_text = malloc(sql.len)))
        return ERR_MEMORY;
    memcpy(s->lock_text, sql.at, sql.len);
    s->lock_tables = (struct statement){"orphan_lock_tables", s->lock_text, 0, ""};
    return OK;
}

void orphan_statements_free(struct orphan_statements *s)
{
    free(s->text);
    free(s->lock_text);
    *s = (struct orphan_statements){0};
}
