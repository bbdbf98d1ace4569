/* GET /v1/audit and GET /v1/customers/{id}/timeline. */
#include "api/db_request.h"
#include "api/read.h"
#include "base/email.h"
#include "console/statements.h"

const struct statement audit_read = {
    .name = "console_audit",
    .sql = "SELECT a.id, a.object FROM reclaim.audit_page($1::uuid, $2::uuid, $3, $4, $5, $6::int8) a",
    .params = 6,
    .columns = "id:text object:text",
};

const struct statement audit_kind_read = {
    .name = "console_audit_kind",
    .sql = "SELECT a.id, a.object FROM reclaim.audit_of_kind($1, $2, $3::int8) a",
    .params = 3,
    .columns = "id:text object:text",
};

const struct statement timeline_read = {
    .name = "console_timeline",
    .sql = "SELECT reclaim.customer_timeline($1::uuid, $2, $3::int8)::text AS timeline",
    .params = 3,
    .columns = "timeline:text",
};

const struct statement console_log = {
    .name = "console_log",
    .sql = "INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, detail, correlation_id)"
           " VALUES ($1::uuid, $2, $6, $3::uuid, 'done', coalesce($4, ''), $5::uuid)",
    .params = 6,
    .columns = "",
};

struct pg_call console_audit(const struct request *rq, const struct caller *caller, const char *customer_id,
                             const char *action, const char *detail)
{
    const char *id = caller->by_key ? caller->key_id : caller->user_id;
    return (struct pg_call){.ask = &console_log,
                            .args = {pg_text_or_null(customer_id), pg_text(action), pg_text_or_null(*id ? id : NULL),
                                     pg_text_or_null(detail), pg_text(rq->correlation_id),
                                     pg_text(caller->admin ? "admin" : "key")}};
}

/* A UUID of the query in the arena, NULL without; false after a 400 was sent. */
static bool read_uuid(struct request *rq, const char *name, const char **ret)
{
    struct str text = request_query(rq, name);
    *ret = NULL;
    if (!text.len)
        return true;
    if (!str_is_uuid(text)) {
        reply_refuse(rq, 400, "INVALID_ID", "customer and correlation are UUIDs.");
        return false;
    }
    *ret = arena_copy(rq->arena, text).at;
    return true;
}

/* The address and its hash in the arena, NULL without; false after an answer was sent. */
static bool read_email(struct request *rq, const struct digest *identifier_key, const char **ret, const char **ret_hash)
{
    struct str text, email;
    *ret = *ret_hash = NULL;
    enum err e = request_query_text(rq, "email", &text);
    if (!e && !text.len)
        return true;
    if (e == ERR_MEMORY) {
        reply_fault(rq, e);
        return false;
    }
    if (e || email_normalise(rq->arena, text, &email)) {
        reply_refuse(rq, 400, "INVALID_EMAIL", "email is an e-mail address.");
        return false;
    }
    char hash[DIGEST_HEX_LEN + 1];
    struct counted counted = counted_by_email(TIER_EMAIL, identifier_key, email);
    digest_hex(&counted.subject, hash);
    *ret = arena_copy(rq->arena, email).at;
    *ret_hash = arena_copy(rq->arena, str_of(hash)).at;
    return true;
}

/* "mail" or "refusals", NULL without; false after a 400 was sent. */
static bool read_kind(struct request *rq, const char **ret)
{
    struct str kind = request_query(rq, "kind");
    *ret = str_eq(kind, STR("mail")) ? "mail" : str_eq(kind, STR("refusals")) ? "refusals" : NULL;
    if (!kind.len || *ret)
        return true;
    reply_refuse(rq, 400, "INVALID_QUERY", "kind is mail, for mailed codes, or refusals, for what limits refused.");
    return false;
}

void audit_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct console *c = console;
    const char *customer, *correlation, *email, *hash, *kind;
    struct list_page page;
    if (!read_uuid(rq, "customer", &customer) || !read_uuid(rq, "correlation", &correlation) ||
        !read_email(rq, c->identifier_key, &email, &hash) || !read_kind(rq, &kind) ||
        !list_page_read_place(rq, "nln", &page))
        return;
    if ((customer != NULL) + (correlation != NULL) + (email != NULL) + (kind != NULL) > 1) {
        reply_refuse(rq, 400, "INVALID_QUERY", "Give one of customer, correlation, email and kind, or none.");
        return;
    }
    struct pg_call of_kind = {.ask = &audit_kind_read,
                              .args = {pg_text_or_null(kind), pg_text_or_null(page.after), pg_i64(page.limit + 1)}};
    struct pg_call call = {.ask = &audit_read,
                           .args = {pg_text_or_null(customer), pg_text_or_null(correlation), pg_text_or_null(email),
                                    pg_text_or_null(hash), pg_text_or_null(page.after), pg_i64(page.limit + 1)}};
    read_page(rq, atomic_load(&c->pool), &page, kind ? &of_kind : &call);
}

void timeline_handle(struct request *rq, const struct caller *caller, void *console)
{
    (void)caller;
    struct console *c = console;
    struct list_page page;
    char id[37];
    if (!request_id(rq, 0, id) || !list_page_read_place(rq, "nln", &page))
        return;
    struct pg_call call = {
        .ask = &timeline_read,
        .args = {pg_text(arena_copy(rq->arena, str_of(id)).at), pg_text_or_null(page.after), pg_i64(page.limit)}};
    read_object(rq, atomic_load(&c->pool), &call, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
}
