#include "customers/members.h"

#include <string.h>

#include "base/clock.h"
#include "base/defs.h"
#include "customers/delete.h"
#include "pg/tx.h"

static const struct statement add_member = {
    .name = "member_add",
    .sql = "SELECT reclaim.member_add($1::uuid, $2::uuid, $3) AS outcome",
    .params = 3,
    .columns = "outcome:text",
};

static const struct statement show_member = {
    .name = "member_show",
    .sql = "SELECT reclaim.member_object($1::uuid, $2::uuid)::text AS object",
    .params = 2,
    .columns = "object:text",
};

static const struct statement remove_member = {
    .name = "member_remove",
    .sql = "SELECT EXISTS (SELECT FROM reclaim.customer_row($1::uuid)) AS known,"
           " reclaim.member_remove($1::uuid, $2::uuid)::text AS object",
    .params = 2,
    .columns = "known:bool object:text",
};

const struct statement members_page = {
    .name = "members_page",
    .sql = "SELECT reclaim.members_page($1::uuid, $2::uuid, $3::int8)::text AS page",
    .params = 3,
    .columns = "page:text",
};

const struct statement members_list = {
    .name = "members_list",
    .sql = "SELECT m.user_id, m.role, u.email::text AS email, reclaim.rfc3339(m.created_at) AS created_at"
           " FROM reclaim.customer_members m LEFT JOIN auth.users u ON u.id = m.user_id AND u.deleted_at IS NULL"
           " WHERE m.customer_id = $1::uuid AND ($2::uuid IS NULL OR m.user_id > $2::uuid)"
           " ORDER BY m.user_id LIMIT $3::int8",
    .params = 3,
    .columns = "user_id:uuid role:text email:text created_at:text",
};

const struct statement customers_rows = {
    .name = "customers_rows",
    .sql =
        "SELECT c.id, coalesce(reclaim.shown_text(c.name), '') AS name, coalesce(reclaim.shown_text(c.email), '') AS "
        "email,"
        " c.status::text AS status, c.owner_user_id, reclaim.rfc3339(c.tm_create) AS tm_create,"
        " reclaim.rfc3339(c.tm_deletion_scheduled) AS tm_deletion_scheduled, reclaim.rfc3339(c.hold_at) AS held_since,"
        " reclaim.shown_text(c.hold_reason) AS hold_reason"
        " FROM reclaim.customers_find($1, $2::bool, $3, $4::uuid, $5::int8) AS found (id)"
        " CROSS JOIN LATERAL reclaim.customer_row(found.id) AS c ORDER BY c.id",
    .params = 5,
    .columns = "id:uuid name:text email:text status:text owner_user_id:uuid tm_create:text tm_deletion_scheduled:text"
               " held_since:text hold_reason:text",
};

/* No row: the owner is not in auth.users. */
const struct statement customer_create = {
    .name = "customer_create",
    .sql = "INSERT INTO reclaim.customer_customers AS c (name, email, owner_user_id) SELECT $1, $2, $3::uuid"
           " WHERE $3::uuid IS NULL OR EXISTS (SELECT FROM auth.users WHERE id = $3::uuid AND deleted_at IS NULL)"
           " RETURNING c.id, reclaim.customer_object_for_admin(c)::text AS object",
    .params = 3,
    .columns = "id:uuid object:text",
};

const struct statement *const member_statements[] = {&add_member,   &show_member,    &remove_member,  &members_page,
                                                     &members_list, &customers_rows, &customer_create};
const size_t member_statement_count = COUNT_OF(member_statements);

bool member_role_is_sound(struct str role)
{
    if (role.len == 0 || role.len > MEMBER_ROLE_MAX || str_eq(role, STR("owner")))
        return false;
    for (size_t i = 0; i < role.len; i++) {
        char c = role.at[i];
        bool letter = c >= 'a' && c <= 'z', other = (c >= '0' && c <= '9') || c == '_' || c == '-';
        if (!letter && (i == 0 || !other))
            return false;
    }
    return true;
}

/* The audit row says which user it was about: the id alone, which a deletion of the customer clears. */
static struct pg_call member_log(const char *customer_id, const char *user_id, const char *action,
                                 const struct actor *actor, const char *outcome)
{
    struct pg_call call = customer_log(customer_id, action, actor, outcome);
    call.ask = &legal_hold_log;
    call.args[6] = pg_text(user_id);
    return call;
}

static const struct {
    const char *name;
    int outcome;
} outcomes[] = {{"done", MEMBER_DONE},
                {"unchanged", MEMBER_UNCHANGED},
                {"unknown", MEMBER_NO_CUSTOMER},
                {"deleted", MEMBER_CUSTOMER_DELETED},
                {"user_unknown", MEMBER_NO_USER}};

enum err member_add(struct pg *pg, const char *customer_id, const char *user_id, const char *role,
                    const struct actor *actor, int64_t deadline_ns, struct arena *arena, struct member_change *ret)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call calls[] = {
        {.ask = &add_member, .args = {pg_text(customer_id), pg_text(user_id), pg_text_or_null(role)}},
        {.ask = &show_member, .args = {pg_text(customer_id), pg_text(user_id)}}};
    enum err e = tx_trip(tx, calls, COUNT_OF(calls));
    if (e && strcmp(calls[0].sqlstate, "23503") == 0) { /* deleted between the check and reclaim.keep_user */
        *ret = (struct member_change){.outcome = MEMBER_NO_USER};
        return OK;
    }
    if (e)
        return e;
    size_t at = 0;
    while (at < COUNT_OF(outcomes) && !str_eq(pg_get(&calls[0], 0, 0), str_of(outcomes[at].name)))
        at++;
    if (at == COUNT_OF(outcomes))
        return ERR_DATABASE;
    *ret = (struct member_change){.outcome = outcomes[at].outcome};
    if (ret->outcome <= MEMBER_UNCHANGED && !(ret->object = arena_copy(arena, pg_get(&calls[1], 0, 0))).at)
        return ERR_MEMORY;
    struct pg_call row = member_log(customer_id, user_id, "member_add", actor, outcomes[at].name);
    e = tx_commit(tx, &row, 1);
    ret->committed_ns = clock_ns();
    return e;
}

enum err member_remove(struct pg *pg, const char *customer_id, const char *user_id, const struct actor *actor,
                       int64_t deadline_ns, struct arena *arena, struct member_change *ret)
{
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    struct pg_call call = {.ask = &remove_member, .args = {pg_text(customer_id), pg_text(user_id)}};
    enum err e = tx_trip(tx, &call, 1);
    if (e)
        return e;
    bool known = pg_get_bool(&call, 0, 0), removed = !pg_is_null(&call, 0, 1);
    *ret = (struct member_change){.outcome = removed ? MEMBER_DONE : known ? MEMBER_NOT_ONE : MEMBER_NO_CUSTOMER};
    if (removed && !(ret->object = arena_copy(arena, pg_get(&call, 0, 1))).at)
        return ERR_MEMORY;
    struct pg_call row = member_log(customer_id, user_id, "member_remove", actor, removed ? "done" : "unknown");
    e = tx_commit(tx, &row, 1);
    ret->committed_ns = clock_ns();
    return e;
}
