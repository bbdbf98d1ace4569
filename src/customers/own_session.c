/* GET /auth/session: who is signed in, the customers that belong to them, and how they would prove a deletion. */
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "customers/customers.h"
#include "customers/statements.h"

/* A user's customers, oldest first, as the gate chooses among them. */
const struct statement own_session_read = {
    .name = "own_session_read",
    .sql = "SELECT u.email::text AS email,"
           " NOT u.is_sso_user AND coalesce(u.encrypted_password, '') <> '' AS has_password,"
           " reclaim.rfc3339(reclaim.now()) AS now,"
           " coalesce((SELECT json_agg(json_build_object('id', c.id, 'name', pg_catalog.\"left\"(coalesce(c.name, ''), "
           "200),"
           "  'status', c.status, 'role', c.role, 'deletion_paused', CASE WHEN c.role = 'owner' THEN c.held END,"
           "  'language', (reclaim.customer_languages(ARRAY[c.id]))[1]) ORDER BY c.own_last, c.tm_create NULLS LAST, "
           "c.id) FROM"
           "  (SELECT c.id, c.name, c.status, c.tm_create, c.hold_at IS NOT NULL AS held,"
           "   CASE WHEN coalesce(c.owner_user_id, c.id) = u.id THEN 'owner' ELSE 'member' END AS role,"
           "   c.id = u.id AND reclaim.users_are_customers() AS own_last"
           "   FROM reclaim.customers_of_user(u.id, NULL) AS c WHERE c.status <> 'deleted'"
           "   ORDER BY own_last, c.tm_create NULLS LAST, c.id LIMIT 100) AS c), '[]')::text AS customers"
           " FROM auth.users u WHERE u.id = $1::uuid AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "email:text has_password:bool now:text customers:text",
};

struct own_session {
    struct db_request db;
    struct customers *context;
    char user_id[37];
    struct str email, now, customers; /* absent: the user is gone, or has no address */
    bool has_password;
};

static void authenticated(struct authentication *q);
static enum err read_session(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* 1. On the loop. Users without a customer, and those of a frozen one, may ask: no guarded route. The database is asked in any
 * case: a session that a changed password ended is refused at once. */
void own_session_handle(struct request *rq)
{
    struct customers *context = rq->route->context;
    struct authentication q = {.rq = rq, .answered = authenticated, .skips_cache = true};
    authenticate(context->authenticator, &q);
}

/* 2. On the loop or on a worker. */
static void authenticated(struct authentication *q)
{
    struct request *rq = q->rq;
    if (q->verdict != CALLER_KNOWN) {
        authentication_refuse(rq, q);
        return;
    }
    if (!q->caller.user_id[0]) {
        reply_refuse(rq, 403, "NO_USER", "These credentials are not a user's.");
        return;
    }
    struct own_session *o = db_request_new(rq, sizeof *o, read_session, answer);
    if (!o)
        return;
    o->context = rq->route->context;
    memcpy(o->user_id, q->caller.user_id, sizeof o->user_id);
    db_request_start(&o->db, customers_pool(o->context, LANE_ACCOUNT));
}

/* 3. On a worker. */
static enum err read_session(struct db_request *db, struct pg *pg)
{
    struct own_session *o = OWNER_OF(db, struct own_session, db);
    struct pg_call found = {.ask = &own_session_read, .args = {pg_text(o->user_id)}};
    enum err e = pg_ask(pg, &found, db->job.deadline_ns);
    o->customers = (struct str){NULL, 0};
    if (e || found.rows == 0)
        return e;
    o->email = pg_is_null(&found, 0, 0) ? (struct str){NULL, 0} : arena_copy(db->rq->arena, pg_get(&found, 0, 0));
    o->has_password = pg_get_bool(&found, 0, 1);
    o->now = arena_copy(db->rq->arena, pg_get(&found, 0, 2));
    o->customers = arena_copy(db->rq->arena, pg_get(&found, 0, 3));
    return o->now.at && o->customers.at ? OK : ERR_MEMORY;
}

/* What POST /auth/unregister asks for: customers/unregister.c. */
static const char *proof_of(const struct own_session *o)
{
    if (o->has_password)
        return "password";
    return o->context->strict_proof && o->email.at ? "code" : "confirmation_phrase";
}

/* 4. On the same worker. */
static void answer(struct db_request *db)
{
    struct own_session *o = OWNER_OF(db, struct own_session, db);
    AUTO(buf) struct buf out = buf_new(4096 + o->customers.len + 6 * o->email.len);
    struct json_writer w = json_to(&out);
    if (!o->customers.at) {
        reply_refuse(db->rq, 403, "NO_USER", "The user of this token is not known here.");
        return;
    }
    json_open(&w, '{');
    json_key(&w, "user_id");
    json_str(&w, str_of(o->user_id));
    json_key(&w, "email");
    json_str(&w, o->email);
    json_key(&w, "proof");
    json_str(&w, str_of(proof_of(o)));
    json_key(&w, "now");
    json_str(&w, o->now);
    json_key(&w, "customers");
    json_raw(&w, o->customers);
    json_close(&w, '}');
    reply_json(db->rq, 200, buf_str(&out));
}
