#include "customers/import.h"

#include "base/defs.h"
#include "pg/arrays.h"
#include "pg/lock_ids.h"
#include "pg/tx.h"

#define ROWS_CEILING ((size_t)4 << 20)
#define TRIES_MAX 5

/* A statement of its own: the next one sees what the batch before it committed. */
static const struct statement take_turn = {
    .name = "import_take_turn",
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(" LOCK_CLASS ", " LOCK_IMPORT ") IS NULL AS turn",
    .params = 0,
    .columns = "turn:bool",
};

/* Whoever owned a customer that was deleted gets no other one by an import. */
#define WITHOUT_CUSTOMER                                                                                               \
    "u.email_confirmed_at IS NOT NULL AND u.deleted_at IS NULL AND NOT u.is_anonymous"                                 \
    " AND NOT EXISTS (SELECT FROM reclaim.customer_customers c WHERE c.owner_user_id = u.id)"                          \
    " AND NOT EXISTS (SELECT FROM reclaim.customer_members m WHERE m.user_id = u.id)"

static const struct statement count_users = {
    .name = "import_count_users",
    .sql = "SELECT count(*) AS total FROM auth.users u WHERE " WITHOUT_CUSTOMER,
    .params = 0,
    .columns = "total:int8",
};

static const struct statement import_users = {
    .name = "import_users",
    .sql = "WITH chosen AS (SELECT u.id, u.email FROM auth.users u WHERE u.id > $1::uuid AND " WITHOUT_CUSTOMER
           "   ORDER BY u.id LIMIT $2::int8),"
           " made AS (INSERT INTO reclaim.customer_customers (email, owner_user_id)"
           "   SELECT coalesce(email, ''), id FROM chosen RETURNING id),"
           " logged AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"
           "   SELECT id, 'import', $3, $4::uuid, 'done' FROM made)"
           " SELECT count(*) AS made, (SELECT id FROM chosen ORDER BY id DESC LIMIT 1) AS last FROM made",
    .params = 4,
    .columns = "made:int8 last:uuid",
};

static const struct statement find_unknown_owners = {
    .name = "import_find_unknown_owners",
    .sql = "SELECT o.n - 1 AS row FROM unnest($1::uuid[]) WITH ORDINALITY AS o (id, n) WHERE o.id IS NOT NULL"
           " AND NOT EXISTS (SELECT FROM auth.users u WHERE u.id = o.id AND u.deleted_at IS NULL) ORDER BY o.n",
    .params = 1,
    .columns = "row:int8",
};

/* The beginnings in lower case are what the indexes have. */
static const struct statement import_rows = {
    .name = "import_rows",
    .sql = "WITH given AS (SELECT DISTINCT name, email, owner"
           "   FROM unnest($1::text[], $2::text[], $3::uuid[]) AS r (name, email, owner)),"
           " made AS (INSERT INTO reclaim.customer_customers (name, email, owner_user_id)"
           "   SELECT g.name, g.email, g.owner FROM given g WHERE NOT EXISTS ("
           "     SELECT FROM reclaim.customer_customers c WHERE c.status <> 'deleted' AND c.name = g.name"
           "       AND c.email = g.email AND c.owner_user_id IS NOT DISTINCT FROM g.owner"
           "       AND lower(\"left\"(c.name, 100)) = lower(\"left\"(g.name, 100))"
           "       AND lower(\"left\"(c.email, 100)) = lower(\"left\"(g.email, 100))) RETURNING id),"
           " logged AS (INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome)"
           "   SELECT id, 'import', $4, $5::uuid, 'done' FROM made)"
           " SELECT count(*) AS made FROM made",
    .params = 5,
    .columns = "made:int8",
};

const struct statement *const import_statements[] = {&take_turn, &count_users, &import_users, &find_unknown_owners,
                                                     &import_rows};
const size_t import_statement_count = COUNT_OF(import_statements);

/* A batch that was in conflict with another transaction is repeated. */
static enum err commit(struct pg *pg, struct pg_call *calls, size_t count, int64_t deadline_ns)
{
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < TRIES_MAX; tries++) {
        AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
        e = tx_commit(tx, calls, count);
    }
    return e;
}

enum err import_users_begin(struct pg *pg, int64_t deadline_ns, struct import_pass *ret)
{
    struct pg_call call = {.ask = &count_users};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        *ret = (struct import_pass){.total = pg_get_i64(&call, 0, 0), .after = UUID_NIL};
    return e;
}

enum err import_users_step(struct pg *pg, const struct actor *actor, int64_t deadline_ns, struct import_pass *pass)
{
    struct pg_call calls[] = {
        {.ask = &take_turn},
        {.ask = &import_users,
         .args = {pg_text(pass->after), pg_i64(IMPORT_BATCH), pg_text(actor->kind), pg_text_or_null(actor->id)}}};
    enum err e = commit(pg, calls, COUNT_OF(calls), deadline_ns);
    if (e)
        return e;
    pass->imported += pg_get_i64(&calls[1], 0, 0);
    pass->over = pg_get_i64(&calls[1], 0, 0) < IMPORT_BATCH;
    return pass->over ? OK : str_copy(pg_get(&calls[1], 0, 1), pass->after, sizeof pass->after);
}

struct import_rows import_rows_new(void)
{
    return (struct import_rows){
        .names = buf_new(ROWS_CEILING), .emails = buf_new(ROWS_CEILING), .owners = buf_new(ROWS_CEILING)};
}

void import_rows_cleanup(struct import_rows *rows)
{
    buf_free(&rows->names);
    buf_free(&rows->emails);
    buf_free(&rows->owners);
}

void import_rows_clear(struct import_rows *rows)
{
    buf_clear(&rows->names);
    buf_clear(&rows->emails);
    buf_clear(&rows->owners);
    rows->count = 0;
    rows->ended = false;
}

void import_rows_add(struct import_rows *rows, struct str name, struct str email, struct str owner)
{
    array_add_text(&rows->names, name);
    array_add_text(&rows->emails, email);
    array_add_text(&rows->owners, owner.len ? owner : (struct str){NULL, 0});
    rows->count++;
}

static bool end_arrays(struct import_rows *rows)
{
    if (!rows->ended)
        rows->ended = array_end(&rows->names) && array_end(&rows->emails) && array_end(&rows->owners);
    return rows->ended;
}

enum err import_rows_check(struct pg *pg, struct import_rows *rows, int64_t deadline_ns, int *ret, int *ret_count)
{
    if (!end_arrays(rows))
        return ERR_MEMORY;
    struct pg_call call = {.ask = &find_unknown_owners, .args = {pg_text(rows->owners.at)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (e)
        return e;
    *ret_count = call.rows;
    for (int i = 0; i < call.rows; i++)
        ret[i] = (int)pg_get_i64(&call, i, 0);
    return OK;
}

enum err import_rows_write(struct pg *pg, struct import_rows *rows, const struct actor *actor, int64_t deadline_ns,
                           int64_t *ret_made)
{
    if (!end_arrays(rows))
        return ERR_MEMORY;
    struct pg_call calls[] = {{.ask = &take_turn},
                              {.ask = &import_rows,
                               .args = {pg_text(rows->names.at), pg_text(rows->emails.at), pg_text(rows->owners.at),
                                        pg_text(actor->kind), pg_text_or_null(actor->id)}}};
    enum err e = commit(pg, calls, COUNT_OF(calls), deadline_ns);
    if (!e)
        *ret_made = pg_get_i64(&calls[1], 0, 0);
    return e;
}
