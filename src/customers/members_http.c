/* Creating customers, and their members, by admins over HTTP. */
#include "customers/members.h"

#include <string.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "api/read.h"
#include "base/clock.h"
#include "base/email.h"
#include "customers/customers.h"
#include "pg/tx.h"

#define NAME_MAX_BYTES 1000

/* --- POST /v1/customers --- */

struct creation {
    struct db_request db;
    struct customers *context;
    struct actor actor;
    const char *name, *email, *owner;
    enum { CREATED, OWNER_UNKNOWN, TABLE_REFUSED } outcome;
    struct str object;
    char id[37];
};

static enum err run_create(struct db_request *db, struct pg *pg);
static void answer_create(struct db_request *db);

static bool is_name(struct str text)
{
    return !memchr(text.at, 0, text.len);
}

static bool is_email(struct str text)
{
    return text.len <= EMAIL_MAX; /* the shape is checked by email_normalise() */
}

/* False after an answer was sent. */
static bool read_creation(struct request *rq, struct creation *c)
{
    static const char wrong_email[] = "email must be an address like name@example.com.";
    static const struct field name = {.name = "name",
                                      .bytes_max = NAME_MAX_BYTES,
                                      .fits = is_name,
                                      .code = "INVALID_NAME",
                                      .message = "name must be a text of up to 1000 bytes."};
    static const struct field email = {
        .name = "email", .fits = is_email, .code = "INVALID_EMAIL", .message = wrong_email};
    static const struct field owner = {
        .name = "owner_user_id", .code = "INVALID_ID", .message = "owner_user_id must be a UUID."};
    AUTO(fields)
    struct fields f =
        fields_read(rq->arena, rq->body, "INVALID_BODY", "Send {\"name\":…,\"email\":…,\"owner_user_id\":…}, or {}.");
    struct str address = field_text(&f, &email), normal = STR("");
    if (address.len && email_normalise(rq->arena, address, &normal))
        fields_fail(&f, &email, "is no address");
    c->name = field_copy(&f, &name);
    c->owner = field_uuid(&f, &owner);
    c->name = c->name ? c->name : "";
    c->email = normal.at;
    return !fields_refuse(&f, rq);
}

/* 1. On the loop. */
void customer_create_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct creation *c = db_request_new(rq, sizeof *c, run_create, answer_create);
    if (!c)
        return;
    c->context = customers;
    c->actor = actor_of(rq, caller);
    if (read_creation(rq, c))
        db_request_start(&c->db, customers_pool(c->context, LANE_BACKGROUND));
}

/* A table that was taken over may have rules of its own. */
static bool is_refused_by_table(const struct pg_call *call)
{
    return call->err == ERR_DATABASE &&
           (strncmp(call->sqlstate, "22", 2) == 0 || strncmp(call->sqlstate, "23", 2) == 0);
}

/* 2. On a worker. */
static enum err run_create(struct db_request *db, struct pg *pg)
{
    struct creation *c = OWNER_OF(db, struct creation, db);
    AUTO(tx) struct tx *tx = tx_begin(pg, db->job.deadline_ns);
    struct pg_call call = {.ask = &customer_create,
                           .args = {pg_text(c->name), pg_text(c->email), pg_text_or_null(c->owner)}};
    enum err e = tx_trip(tx, &call, 1);
    if (e && is_refused_by_table(&call)) {
        bool owner = c->owner && strcmp(call.sqlstate, "23503") == 0; /* deleted meanwhile: reclaim.keep_user */
        c->outcome = owner ? OWNER_UNKNOWN : TABLE_REFUSED;
        return OK;
    }
    if (e)
        return e;
    c->outcome = call.rows ? CREATED : OWNER_UNKNOWN;
    if (!call.rows)
        return OK;
    c->object = arena_copy(db->rq->arena, pg_get(&call, 0, 1));
    if (!c->object.at || str_copy(pg_get(&call, 0, 0), c->id, sizeof c->id))
        return ERR_MEMORY;
    struct pg_call row = customer_log(c->id, "create", &c->actor, "done");
    return tx_commit(tx, &row, 1);
}

/* 3. On the same worker. */
static void answer_create(struct db_request *db)
{
    struct creation *c = OWNER_OF(db, struct creation, db);
    struct request *rq = db->rq;
    switch (c->outcome) {
    case CREATED:
        reply_header(rq, "Location", arena_printf(rq->arena, "/v1/customers/%s", c->id).at);
        reply_body(rq, "application/json", c->object);
        reply_send(rq, 201);
        return;
    case OWNER_UNKNOWN:
        reply_refuse(rq, 400, "OWNER_UNKNOWN", "There is no user owner_user_id in auth.users.");
        return;
    case TABLE_REFUSED:
        reply_refuse(rq, 409, "CUSTOMER_REFUSED",
                     "The table of customers refuses this row: one of its own rules (unique, not null, check, length) "
                     "does not allow it.");
        return;
    }
}

/* --- members --- */

struct member_request {
    struct db_request db;
    struct customers *context;
    struct actor actor;
    char customer_id[37], user_id[37];
    const char *role;
    struct list_page page;
    struct member_change change;
    struct str found; /* a page of members; absent: no such customer */
};

static enum err run_list(struct db_request *db, struct pg *pg);
static enum err run_add(struct db_request *db, struct pg *pg);
static enum err run_remove(struct db_request *db, struct pg *pg);
static void answer_list(struct db_request *db);
static void answer_change(struct db_request *db);

static struct member_request *request_of(struct db_request *db)
{
    return OWNER_OF(db, struct member_request, db);
}

/* NULL after an answer was sent. */
static struct member_request *request_new(struct request *rq, const struct caller *caller, struct customers *context,
                                          enum err (*run)(struct db_request *, struct pg *),
                                          void (*answer)(struct db_request *))
{
    struct member_request *m = db_request_new(rq, sizeof *m, run, answer);
    if (!m || !request_id(rq, 0, m->customer_id))
        return NULL;
    m->context = context;
    m->actor = actor_of(rq, caller);
    return m;
}

/* GET /v1/customers/{id}/members. 1. On the loop. */
void members_list_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct member_request *m = request_new(rq, caller, customers, run_list, answer_list);
    if (m && list_page_read(rq, &m->page))
        db_request_start(&m->db, customers_pool(m->context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run_list(struct db_request *db, struct pg *pg)
{
    struct member_request *m = request_of(db);
    struct pg_call call = {.ask = &members_page,
                           .args = {pg_text(m->customer_id), pg_text_or_null(m->page.after), pg_i64(m->page.limit)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e || pg_is_null(&call, 0, 0))
        return e;
    m->found = arena_copy(db->rq->arena, pg_get(&call, 0, 0));
    return m->found.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_list(struct db_request *db)
{
    const struct member_request *m = request_of(db);
    if (!m->found.at) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    }
    reply_body(db->rq, "application/json", m->found);
    reply_send(db->rq, 200);
}

/* False after an answer was sent. */
static bool read_member(struct request *rq, struct member_request *m)
{
    static const char wrong_role[] =
        "role must be 1 to 63 of a-z, 0-9, _ and -, beginning with a letter, and not \"owner\".";
    static const struct field user = {
        .name = "user_id", .required = true, .code = "INVALID_ID", .message = "user_id must be a UUID."};
    static const struct field role = {.name = "role",
                                      .bytes_max = MEMBER_ROLE_MAX,
                                      .fits = member_role_is_sound,
                                      .code = "INVALID_ROLE",
                                      .message = wrong_role};
    AUTO(fields)
    struct fields f =
        fields_read(rq->arena, rq->body, "INVALID_BODY", "Send {\"user_id\":…} and, if wanted, \"role\".");
    const char *id = field_uuid(&f, &user);
    m->role = field_copy(&f, &role);
    if (id && str_copy(str_of(id), m->user_id, sizeof m->user_id))
        f.err = ERR_FULL;
    return !fields_refuse(&f, rq);
}

/* POST /v1/customers/{id}/members. 1. On the loop. */
void member_add_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct member_request *m = request_new(rq, caller, customers, run_add, answer_change);
    if (m && read_member(rq, m))
        db_request_start(&m->db, customers_pool(m->context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run_add(struct db_request *db, struct pg *pg)
{
    struct member_request *m = request_of(db);
    return member_add(pg, m->customer_id, m->user_id, m->role, &m->actor, db->job.deadline_ns, db->rq->arena,
                      &m->change);
}

/* DELETE /v1/customers/{id}/members/{user_id}. 1. On the loop. */
void member_remove_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct member_request *m = request_new(rq, caller, customers, run_remove, answer_change);
    if (m && request_id(rq, 1, m->user_id))
        db_request_start(&m->db, customers_pool(m->context, LANE_BACKGROUND));
}

/* 2. On a worker. */
static enum err run_remove(struct db_request *db, struct pg *pg)
{
    struct member_request *m = request_of(db);
    return member_remove(pg, m->customer_id, m->user_id, &m->actor, db->job.deadline_ns, db->rq->arena, &m->change);
}

/* 3. On the same worker: a change is answered once every gate has read it. */
static void answer_change(struct db_request *db)
{
    struct member_request *m = request_of(db);
    struct request *rq = db->rq;
    bool adds = rq->method == METHOD_POST;
    switch (m->change.outcome) {
    case MEMBER_DONE:
    case MEMBER_UNCHANGED:
        reply_not_before(rq, customer_change_known_ns(m->change.committed_ns));
        reply_body(rq, "application/json", m->change.object);
        reply_send(rq, adds && m->change.outcome == MEMBER_DONE ? 201 : 200);
        return;
    case MEMBER_NOT_ONE:
        reply_refuse(rq, 404, "MEMBER_NOT_FOUND", "This user is no member of the customer.");
        return;
    case MEMBER_NO_CUSTOMER:
        reply_refuse(rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
        return;
    case MEMBER_CUSTOMER_DELETED:
        reply_refuse(rq, 409, "CUSTOMER_DELETED", "This customer has been deleted: it gets no members.");
        return;
    case MEMBER_NO_USER:
        reply_refuse(rq, 400, "USER_UNKNOWN", "There is no user user_id in auth.users.");
        return;
    }
}
