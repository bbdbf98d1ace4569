/* POST /auth/logout: ends the session of the token that it carries, or all of its user's. The trigger on reclaim.sessions has
 * every gate drop what it cached of them, so that ending them in plain SQL does the same. */
#include "customers/sessions.h"

#include <string.h>

#include "api/db_request.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "customers/customers.h"

static const struct statement begin = {
    .name = "session_begin",
    .sql = SESSION_INSERT("'password'")
        SESSION_EXPIRES("$2") " FROM auth.users u WHERE u.id = $1::uuid AND" SESSION_MAY_BEGIN,
    .params = 2,
    .columns = "id:uuid user_id:uuid",
};

static const struct statement end = {
    .name = "session_end",
    .sql =
        "UPDATE reclaim.sessions SET ended_at = pg_catalog.clock_timestamp() WHERE id = $1::uuid AND ended_at IS NULL",
    .params = 1,
    .columns = "",
};

static const struct statement end_all = {
    .name = "sessions_end_all",
    .sql = "UPDATE reclaim.sessions SET ended_at = pg_catalog.clock_timestamp()"
           " WHERE user_id = $1::uuid AND ended_at IS NULL",
    .params = 1,
    .columns = "",
};

/* A token of the session is refused for its age long before. */
static const struct statement prune_sessions = {
    .name = "sessions_prune",
    .sql = "DELETE FROM reclaim.sessions WHERE id IN (SELECT id FROM reclaim.sessions"
           " WHERE expires_at < pg_catalog.now() - interval '1 day' ORDER BY expires_at LIMIT 10000)",
    .params = 0,
    .columns = "",
};

static const struct statement prune_codes = {
    .name = "sign_in_codes_prune",
    .sql = "DELETE FROM reclaim.sign_in_codes WHERE email_hash IN (SELECT email_hash FROM reclaim.sign_in_codes"
           " WHERE expires_at < (SELECT reclaim.now()) - interval '1 hour' ORDER BY expires_at LIMIT 10000)",
    .params = 0,
    .columns = "",
};

static const struct statement note_network = {
    .name = "session_note_network",
    .sql = "INSERT INTO reclaim.sign_in_networks (pair_hash, signed_in_at) VALUES ($1, pg_catalog.clock_timestamp())"
           " ON CONFLICT (pair_hash) DO UPDATE SET signed_in_at = excluded.signed_in_at",
    .params = 1,
    .columns = "",
};

const struct statement session_find_network = {
    .name = "session_find_network",
    .sql = "SELECT EXISTS (SELECT 1 FROM reclaim.sign_in_networks WHERE pair_hash = $1"
           " AND signed_in_at > pg_catalog.clock_timestamp() - interval '30 days') AS known",
    .params = 1,
    .columns = "known:bool",
};

static const struct statement prune_networks = {
    .name = "sign_in_networks_prune",
    .sql = "DELETE FROM reclaim.sign_in_networks WHERE pair_hash IN (SELECT pair_hash FROM reclaim.sign_in_networks"
           " WHERE signed_in_at <= pg_catalog.now() - interval '30 days' ORDER BY signed_in_at LIMIT 10000)",
    .params = 0,
    .columns = "",
};

const struct statement *const sessions_statements[] = {
    &begin, &end, &end_all, &prune_sessions, &prune_codes, &note_network, &prune_networks, &session_find_network};
const size_t sessions_statement_count = COUNT_OF(sessions_statements);

enum err session_read_begun(const struct pg_call *inserted, struct session *ret)
{
    *ret = (struct session){"", ""};
    if (inserted->rows == 0)
        return OK;
    enum err e = str_copy(pg_get(inserted, 0, 0), ret->id, sizeof ret->id);
    return e ? e : str_copy(pg_get(inserted, 0, 1), ret->user_id, sizeof ret->user_id);
}

enum err session_begin(struct pg *pg, const char *user_id, int64_t deadline_ns, struct session *ret)
{
    struct pg_call call = {.ask = &begin, .args = {pg_text(user_id), pg_i64(SESSION_LIFE_S)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    return e ? e : session_read_begun(&call, ret);
}

void session_note(struct pg *pg, const char *pair_hash, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &note_network, .args = {pg_text(pair_hash)}};
    if (pg_ask(pg, &call, deadline_ns))
        log_warn("the network of a sign-in was not noted", F_STR("sqlstate", call.sqlstate));
}

enum err sessions_prune(struct pg *pg, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call calls[] = {{.ask = &prune_sessions}, {.ask = &prune_codes}, {.ask = &prune_networks}};
        enum err e = pg_trip(pg, calls, COUNT_OF(calls), deadline_ns);
        if (e || (calls[0].rows == 0 && calls[1].rows == 0 && calls[2].rows == 0))
            return e;
    }
}

/* --- /auth/logout --- */

struct logout {
    struct db_request db;
    char session[37], user_id[37];
    bool everywhere;
    int64_t committed_ns;
};

static bool read_everywhere(struct request *rq, bool *ret);
static void authenticated(struct authentication *q);
static enum err end_session(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* 1. On the loop. Users without a customer have sessions, too: no guarded route. */
void logout_handle(struct request *rq)
{
    struct customers *context = rq->route->context;
    struct authentication q = {.rq = rq, .answered = authenticated};
    struct str body = rq->body.len ? arena_copy(rq->arena, rq->body) : STR("");
    if (!body.at) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    rq->body = body; /* it is read once the caller is known */
    authenticate(context->authenticator, &q);
}

/* The body may be left out. False after a 400 was sent. */
static bool read_everywhere(struct request *rq, bool *ret)
{
    AUTO(json) json_t *body = json_read_object(rq->body.len ? rq->body : STR("{}"), NULL);
    const json_t *everywhere = json_object_get(body, "everywhere");
    *ret = json_is_true(everywhere);
    if (body && (!everywhere || json_is_boolean(everywhere)))
        return true;
    reply_refuse(rq, 400, "INVALID_BODY", "The body may be left out, or is {\"everywhere\":true}.");
    return false;
}

/* 2. On the loop or on a worker. */
static void authenticated(struct authentication *q)
{
    struct request *rq = q->rq;
    struct customers *context = rq->route->context;
    if (q->verdict != CALLER_KNOWN) {
        authentication_refuse(rq, q);
        return;
    }
    if (!q->caller.session[0]) {
        reply_refuse(rq, 400, "NO_SESSION", "These credentials are not a session that POST /auth/login began.");
        return;
    }
    bool everywhere;
    struct logout *l = read_everywhere(rq, &everywhere) ? db_request_new(rq, sizeof *l, end_session, answer) : NULL;
    if (!l)
        return;
    l->everywhere = everywhere;
    memcpy(l->session, q->caller.session, sizeof l->session);
    memcpy(l->user_id, q->caller.user_id, sizeof l->user_id);
    db_request_start(&l->db, customers_pool(context, LANE_ACCOUNT));
}

/* 3. On a worker. */
static enum err end_session(struct db_request *db, struct pg *pg)
{
    struct logout *l = OWNER_OF(db, struct logout, db);
    struct pg_call call = {.ask = l->everywhere ? &end_all : &end,
                           .args = {pg_text(l->everywhere ? l->user_id : l->session)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    l->committed_ns = clock_ns();
    return e;
}

/* 4. On the same worker: the session is refused everywhere by the time of the answer. */
static void answer(struct db_request *db)
{
    struct logout *l = OWNER_OF(db, struct logout, db);
    reply_not_before(db->rq, customer_change_known_ns(l->committed_ns));
    reply_send(db->rq, 204);
}
