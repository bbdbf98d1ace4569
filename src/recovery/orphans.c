#include "recovery/orphans.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"

/* "EXISTS (…) OR EXISTS (…)" over the ownership columns, for the user row `u`. */
static void add_owns_something(struct buf *sql, const struct ownership_column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buf_addf(sql, "%sEXISTS (SELECT 1 FROM \"%s\".\"%s\" o%zu WHERE o%zu.\"%s\" = u.id)", i ? " OR " : "",
                 columns[i].schema, columns[i].table, i, i, columns[i].column);
}

enum err orphan_statements_write(const struct ownership_column *columns, size_t count, struct orphan_statements *ret)
{
    AUTO(buf) struct buf sql = buf_new(32768);
    buf_addz(&sql, "SELECT (");
    add_owns_something(&sql, columns, count);
    buf_addz(&sql, ") AS has_company FROM auth.users u"
                   " WHERE u.email = $1 AND u.is_sso_user = false AND u.deleted_at IS NULL");
    buf_add(&sql, (struct str){"", 1});
    size_t many_at = sql.len;
    buf_addz(&sql, "SELECT q.n, (");
    add_owns_something(&sql, columns, count);
    buf_addz(&sql, ") AS has_company FROM unnest($1::text[]) WITH ORDINALITY AS q(email, n) JOIN auth.users u"
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

void orphan_statements_free(struct orphan_statements *s)
{
    free(s->text);
    *s = (struct orphan_statements){0};
}
