/* Sessions of the console: a key or an administrator's token is exchanged for one, which ends after 30 minutes without a request,
 * after 12 hours, when it is signed out, and with its key. And the audit of addresses that an operator had shown. */
#include <string.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "api/read.h"
#include "console/statements.h"

#define ALIVE                                                                                                          \
    "s.ended_at IS NULL AND s.seen_at > pg_catalog.clock_timestamp() - interval '30 minutes'"                          \
    " AND s.created_at > pg_catalog.clock_timestamp() - interval '12 hours'"
#define OBJECT                                                                                                         \
    "pg_catalog.json_build_object('id', s.id, 'scope', s.scope, 'created_at', reclaim.rfc3339(s.created_at),"          \
    " 'expires_at', reclaim.rfc3339(s.created_at + interval '12 hours'))::text"

const struct statement console_session_begin = {
    .name = "console_session_begin",
    .sql = "INSERT INTO reclaim.console_sessions AS s (key_id, scope) VALUES ($1::uuid, $2) RETURNING " OBJECT
           " AS session",
    .params = 2,
    .columns = "session:text",
};

/* A request that only keeps a page up to date is no use: $3. Written once a minute at most. */
const struct statement console_session_show = {
    .name = "console_session_show",
    .sql = "WITH used AS (UPDATE reclaim.console_sessions s SET seen_at = pg_catalog.clock_timestamp()"
           "   WHERE s.id = $1::uuid AND $3::bool AND " ALIVE
           "   AND s.seen_at < pg_catalog.clock_timestamp() - interval '1 minute')"
           " SELECT pg_catalog.json_build_object('id', s.id, 'scope', s.scope,"
           "   'created_at', reclaim.rfc3339(s.created_at),"
           "   'expires_at', reclaim.rfc3339(s.created_at + interval '12 hours'), 'counts',"
           "   reclaim.console_counts())::text AS session FROM reclaim.console_sessions s"
           " WHERE s.id = $1::uuid AND s.key_id IS NOT DISTINCT FROM $2::uuid AND " ALIVE,
    .params = 3,
    .columns = "session:text",
};

/* $1: null for all of the key. */
const struct statement console_session_end = {
    .name = "console_session_end",
    .sql = "UPDATE reclaim.console_sessions s SET ended_at = pg_catalog.clock_timestamp()"
           " WHERE ($1::uuid IS NULL OR s.id = $1::uuid) AND s.key_id IS NOT DISTINCT FROM $2::uuid"
           " AND s.ended_at IS NULL",
    .params = 2,
    .columns = "",
};

const struct statement sessions_prune_old = {
    .name = "console_sessions_prune",
    .sql = "DELETE FROM reclaim.console_sessions WHERE created_at < pg_catalog.clock_timestamp() - interval '36 hours'",
    .params = 0,
    .columns = "",
};

enum err console_sessions_prune(struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &sessions_prune_old};
    return pg_ask(pg, &call, deadline_ns);
}

struct session_request {
    struct db_request db;
    const struct caller *caller;
    char id[37]; /* "": all of the key */
    const char *customer_id, *user_id;
    struct str object;
};

static struct session_request *request_of(struct db_request *db)
{
    return OWNER_OF(db, struct session_request, db);
}

static struct pg_arg key_of(const struct caller *caller)
{
    return pg_text_or_null(*caller->key_id ? caller->key_id : NULL);
}

static void start(struct request *rq, const struct caller *caller, struct console *console, const char *id,
                  enum err (*run)(struct db_request *, struct pg *), void (*answer)(struct db_request *))
{
    struct session_request *s = db_request_new(rq, sizeof *s, run, answer);
    if (!s)
        return;
    s->caller = caller;
    memcpy(s->id, id, strlen(id) + 1);
    db_request_start(&s->db, atomic_load(&console->pool));
}

static enum err run_begin(struct db_request *db, struct pg *pg)
{
    struct session_request *s = request_of(db);
    struct pg_call calls[] = {
        {.ask = &console_session_begin, .args = {key_of(s->caller), pg_text(s->caller->admin ? "admin" : "read")}},
        console_audit(db->rq, s->caller, NULL, "console-sign-in", NULL)};
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), db->job.deadline_ns);
    if (e)
        return e;
    s->object = arena_copy(db->rq->arena, pg_get(&calls[0], 0, 0));
    return s->object.at ? OK : ERR_MEMORY;
}

static void answer_begin(struct db_request *db)
{
    reply_body(db->rq, "application/json", request_of(db)->object);
    reply_send(db->rq, 201);
}

void session_begin_handle(struct request *rq, const struct caller *caller, void *console)
{
    start(rq, caller, console, "", run_begin, answer_begin);
}

void session_show_handle(struct request *rq, const struct caller *caller, void *console)
{
    struct console *c = console;
    char id[37];
    if (!request_id(rq, 0, id))
        return;
    bool used = !str_eq(request_query(rq, "use"), STR("0"));
    struct pg_call call = {
        .ask = &console_session_show,
        .args = {pg_text(arena_copy(rq->arena, str_of(id)).at), key_of(caller), pg_text(used ? "true" : "false")}};
    read_object(rq, atomic_load(&c->pool), &call, "SESSION_ENDED", "There is no such session, or it has ended.");
}

static enum err run_end(struct db_request *db, struct pg *pg)
{
    struct session_request *s = request_of(db);
    struct pg_call calls[] = {
        {.ask = &console_session_end, .args = {pg_text_or_null(*s->id ? s->id : NULL), key_of(s->caller)}},
        console_audit(db->rq, s->caller, NULL, "console-sign-out", *s->id ? NULL : "everywhere")};
    return pg_trip(pg, calls, COUNT_OF(calls), db->job.deadline_ns);
}

static void answer_end(struct db_request *db)
{
    reply_body(db->rq, "application/json", STR("{\"ended\":true}"));
    reply_send(db->rq, 200);
}

void session_end_handle(struct request *rq, const struct caller *caller, void *console)
{
    char id[37];
    if (request_id(rq, 0, id))
        start(rq, caller, console, id, run_end, answer_end);
}

void sessions_end_handle(struct request *rq, const struct caller *caller, void *console)
{
    start(rq, caller, console, "", run_end, answer_end);
}

static enum err run_reveal(struct db_request *db, struct pg *pg)
{
    struct session_request *s = request_of(db);
    struct str detail = s->user_id ? arena_printf(db->rq->arena, "user %s", s->user_id) : (struct str){NULL, 0};
    struct pg_call call = console_audit(db->rq, s->caller, s->customer_id, "reveal", detail.at);
    return pg_ask(pg, &call, db->job.deadline_ns);
}

static void answer_reveal(struct db_request *db)
{
    reply_body(db->rq, "application/json", STR("{\"recorded\":true}"));
    reply_send(db->rq, 200);
}

void reveal_handle(struct request *rq, const struct caller *caller, void *console)
{
    static const char wrong[] = "Send {\"customer_id\":…} or {\"user_id\":…}: whose address was shown.";
    static const struct field customer = {.name = "customer_id", .code = "INVALID_BODY", .message = wrong},
                              user = {.name = "user_id", .code = "INVALID_BODY", .message = wrong};
    struct console *c = console;
    struct session_request *s = db_request_new(rq, sizeof *s, run_reveal, answer_reveal);
    if (!s)
        return;
    s->caller = caller;
    AUTO(fields) struct fields f = fields_read(rq->arena, rq->body, "INVALID_BODY", wrong);
    s->customer_id = field_uuid(&f, &customer);
    s->user_id = field_uuid(&f, &user);
    if (!f.err && !s->customer_id == !s->user_id)
        fields_fail(&f, &customer, "or user_id is needed");
    if (!fields_refuse(&f, rq))
        db_request_start(&s->db, atomic_load(&c->pool));
}
