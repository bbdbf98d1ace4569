#include "auth/who.h"

#include <stdlib.h>
#include <string.h>

#include "auth/errand.h"
#include "auth/seen.h"
#include "base/json.h"
#include "base/log.h"

#define ASK_NS (5 * NS_PER_S)

struct who {
    const struct digest *key_hasher;
    _Atomic(const struct jwt_keys *) tokens;
    struct seen *seen;
    _Atomic(struct frozen *) frozen; /* both NULL until the database is ready */
    _Atomic(struct pool *) pool;
    _Atomic int64_t grace_ms;
};

#define CUSTOMER                                                                                                       \
    "c.id AS customer_id, c.status::text AS status,"                                                                   \
    " (extract(epoch FROM c.tm_deletion_scheduled) * 1000000)::bigint AS scheduled_us"

/* An owner's live customer; without one the deleted one, so that a deleted account is told from none at all. */
static const struct statement who_owns = {
    .name = "who_owns",
    .sql = "SELECT " CUSTOMER " FROM reclaim.customer_customers c WHERE c.owner_user_id = $1::uuid"
           " ORDER BY c.status = 'deleted', c.tm_create DESC NULLS LAST LIMIT 1",
    .params = 1,
    .columns = "customer_id:uuid status:text scheduled_us:int8",
};

static const struct statement who_has_key = {
    .name = "who_has_key",
    .sql = "SELECT " CUSTOMER ", k.id AS key_id FROM reclaim.access_keys k"
           " JOIN reclaim.customer_customers c ON c.id = k.customer_id WHERE k.key_hash = $1 AND k.revoked_at IS NULL",
    .params = 1,
    .columns = "customer_id:uuid status:text scheduled_us:int8 key_id:uuid",
};

/* To the minute is enough for people, and keeps a busy key from being a busy row. */
static const struct statement who_used_key = {
    .name = "who_used_key",
    .sql = "UPDATE reclaim.access_keys SET last_used_at = pg_catalog.now() WHERE key_hash = $1 AND revoked_at IS NULL"
           " AND (last_used_at IS NULL OR last_used_at < pg_catalog.now() - interval '1 minute')",
    .params = 1,
    .columns = "",
};

const struct statement *const who_statements[] = {&who_owns, &who_has_key, &who_used_key};
const size_t who_statement_count = COUNT_OF(who_statements);

struct who *who_new(const struct who_config *config)
{
    struct who *who = calloc(1, sizeof *who);
    if (!who || !(who->seen = seen_new(SEEN_ENTRIES))) {
        free(who);
        return NULL;
    }
    who->key_hasher = config->key_hasher;
    who_set_tokens(who, config->tokens);
    return who;
}

enum err who_open(struct who *who, const char *direct_url, struct pool *pool, struct why *why)
{
    struct frozen *frozen = frozen_start(direct_url, who->seen, why);
    if (!frozen)
        return ERR_SYSTEM;
    atomic_store(&who->frozen, frozen);
    atomic_store(&who->pool, pool);
    return OK;
}

void who_free(struct who *who)
{
    if (!who)
        return;
    frozen_stop(atomic_load(&who->frozen));
    seen_free(who->seen);
    free(who);
}

void who_set_grace(struct who *who, int64_t grace_ms)
{
    atomic_store(&who->grace_ms, grace_ms);
}

void who_set_tokens(struct who *who, const struct jwt_keys *tokens)
{
    atomic_store(&who->tokens, tokens);
}

/* --- verdicts --- */

static void answer(struct question *q, enum who_verdict verdict)
{
    q->verdict = verdict;
    q->answered(q);
}

static void disbelieve(struct question *q, const char *code, const char *message)
{
    q->code = code;
    q->message = message;
    answer(q, WHO_BAD_CREDENTIALS);
}

/* The customer is known; whether he may pass is the asker's to say, unless he is gone. */
static void settle(struct question *q)
{
    if (q->caller.standing == CUSTOMER_DELETED && !q->caller.admin)
        disbelieve(q, "ACCOUNT_DELETED", "The account behind these credentials was deleted.");
    else
        answer(q, WHO_KNOWN);
}

/* --- from memory --- */

static struct digest digest_of_user(const char *user_id)
{
    return digest_quick(str_of(user_id));
}

/* False when memory does not know, or may not be trusted. `by` is the credential, or the user a token names. */
static bool recall(struct question *q, enum seen_kind kind, const struct digest *by)
{
    struct frozen *frozen = atomic_load(&q->who->frozen);
    struct seen_as as;
    struct caller *c = &q->caller;
    if (!frozen)
        return false;
    uint64_t mark = frozen_mark(frozen);
    if (!seen_find(q->who->seen, kind, by, q->asked_ns, &as))
        return false;
    enum frozen_answer is = frozen_look(frozen, mark, as.customer, q->asked_ns, &c->scheduled_us);
    if (is == FROZEN_UNSURE)
        return false;

    c->standing = is == FROZEN_IS ? CUSTOMER_FROZEN : CUSTOMER_ACTIVE;
    customer_id_write(as.customer, c->customer_id);
    if (kind == SEEN_KEY)
        customer_id_write(as.id, c->key_id);
    if (kind == SEEN_TOKEN) {
        customer_id_write(as.id, c->user_id);
        c->admin = as.admin;
    }
    q->from_memory = true;
    return true;
}

/* For next time: who has a customer that is not deleted. */
static void remember(const struct question *q)
{
    const struct caller *c = &q->caller;
    struct seen_as as = {.admin = c->admin};
    if (customer_id_parse(str_of(c->customer_id), &as.customer) ||
        customer_id_parse(str_of(c->by_key ? c->key_id : c->user_id), &as.id))
        return;
    seen_learn(q->who->seen, q->kind, &q->credential, &as, q->asked_ns, q->until_ns);
    if (c->by_key || q->from_memory)
        return;
    struct digest user = digest_of_user(c->user_id);
    as.admin = false; /* that is the token's to say */
    seen_learn(q->who->seen, SEEN_USER, &user, &as, q->asked_ns, INT64_MAX);
}

/* --- from the database, on a worker --- */

static void take_customer(struct caller *c, const struct pg_call *found)
{
    struct str status = pg_get(found, 0, 1);
    c->standing = CUSTOMER_NONE;
    if (found->rows == 0 || str_copy(pg_get(found, 0, 0), c->customer_id, sizeof c->customer_id))
        return;
    c->scheduled_us = pg_get_i64(found, 0, 2);
    c->standing = str_eq(status, STR("active"))   ? CUSTOMER_ACTIVE
                  : str_eq(status, STR("frozen")) ? CUSTOMER_FROZEN
                                                  : CUSTOMER_DELETED;
}

static enum err look_up(struct job *job, struct pg *pg)
{
    struct question *q = OWNER_OF(job, struct question, job);
    struct caller *c = &q->caller;
    struct pg_call calls[] = {
        {.ask = c->by_key ? &who_has_key : &who_owns, .args = {pg_text(c->by_key ? q->key_hash : c->user_id)}},
        {.ask = &who_used_key, .args = {pg_text(q->key_hash)}}};
    const struct pg_call *found = &calls[0];
    q->asked_ns = clock_ns();
    enum err e = pg_trip(pg, calls, c->by_key ? 2 : 1, job->deadline_ns);
    if (e)
        return e;
    take_customer(c, found);
    if (c->by_key && found->rows)
        return str_copy(pg_get(found, 0, 3), c->key_id, sizeof c->key_id);
    return OK;
}

static void looked_up(struct job *job, enum err e)
{
    struct question *q = OWNER_OF(job, struct question, job);
    struct caller *c = &q->caller;
    if (e) {
        log_warn("who is asking cannot be told", F_STR("error", err_name(e)));
        answer(q, WHO_UNSURE);
        return;
    }
    if (c->by_key && c->standing == CUSTOMER_NONE) {
        disbelieve(q, "INVALID_API_KEY", "The API key is unknown or was revoked.");
        return;
    }
    if (c->standing == CUSTOMER_ACTIVE || c->standing == CUSTOMER_FROZEN)
        remember(q);
    settle(q);
}

static void ask_database(const struct question *shown)
{
    struct pool *pool = atomic_load(&shown->who->pool);
    struct question unsure = *shown, *q = pool ? request_work(shown->rq, sizeof *q) : NULL;
    if (q) {
        *q = *shown;
        q->job = (struct job){look_up, looked_up, q->asked_ns + ASK_NS, q->rq->correlation_id};
        if (pool_submit(pool, &q->job) == OK)
            return;
    }
    answer(&unsure, WHO_UNSURE);
}

/* --- what was shown --- */

static void judge_key(struct question *q, struct str key)
{
    q->kind = SEEN_KEY;
    q->caller.by_key = true;
    q->until_ns = INT64_MAX;
    q->credential = digest_quick(key);
    if (recall(q, SEEN_KEY, &q->credential)) {
        settle(q);
    } else if (access_key_is_one(key)) {
        access_key_hash(q->who->key_hasher, key, q->key_hash);
        ask_database(q);
    } else {
        disbelieve(q, "INVALID_API_KEY", "The API key is not one of Reclaim's.");
    }
}

/* The monotonic instant that the wall clock's is now away. */
static int64_t until(int64_t now_ns, int64_t now_us, int64_t wall_us)
{
    int64_t left_us = wall_us - now_us;
    return left_us >= SEEN_NS / NS_PER_US ? now_ns + SEEN_NS : now_ns + left_us * NS_PER_US;
}

static bool verify(struct question *q, const struct jwt_keys *keys, struct str token)
{
    struct claims claims;
    int64_t now_us = clock_wall_us();
    enum jwt_fault fault = keys ? jwt_verify(keys, token, now_us, &claims) : JWT_ALGORITHM;
    if (fault) {
        disbelieve(q, fault == JWT_EXPIRED ? "TOKEN_EXPIRED" : "INVALID_TOKEN", jwt_fault_text(fault));
        return false;
    }
    q->caller.admin = claims.admin;
    memcpy(q->caller.user_id, claims.sub, sizeof q->caller.user_id);
    q->until_ns = until(q->asked_ns, now_us, claims.expires_us);
    return true;
}

/* What is remembered of a token counts for the keys that it was verified with, and for no others. */
static struct digest digest_of_token(struct str token, const struct jwt_keys *keys)
{
    struct digest ret = digest_quick(token);
    uint64_t serial = keys ? jwt_keys_serial(keys) : 0;
    for (size_t i = 0; i < sizeof serial; i++)
        ret.bytes[i] ^= (uint8_t)(serial >> (8 * i));
    return ret;
}

static void judge_token(struct question *q, struct str token)
{
    const struct jwt_keys *keys = atomic_load(&q->who->tokens);
    q->kind = SEEN_TOKEN;
    if (token.len <= JWT_MAX) {
        q->credential = digest_of_token(token, keys);
        if (recall(q, SEEN_TOKEN, &q->credential)) {
            settle(q);
            return;
        }
    }
    if (!verify(q, keys, token))
        return;
    if (!q->caller.user_id[0]) { /* a service's: there is nobody to look up */
        q->from_memory = true;
        settle(q);
        return;
    }
    struct digest user = digest_of_user(q->caller.user_id);
    if (recall(q, SEEN_USER, &user)) {
        remember(q);
        settle(q);
    } else {
        ask_database(q);
    }
}

void who_ask(struct who *who, struct question *q)
{
    struct str shown = request_header(q->rq, "Authorization"), key = request_header(q->rq, "X-API-Key");
    q->who = who;
    q->asked_ns = clock_ns();
    if (shown.len > 7 && str_eq_nocase((struct str){shown.at, 7}, STR("Bearer ")))
        judge_token(q, str_trim((struct str){shown.at + 7, shown.len - 7}));
    else if (key.at)
        judge_key(q, str_trim(key));
    else
        answer(q, WHO_NO_CREDENTIALS);
}

/* --- refusals --- */

int who_word(struct request *rq, const struct question *q)
{
    switch (q->verdict) {
    case WHO_UNSURE:
        reply_error(rq, "UNAVAILABLE", "Reclaim cannot tell right now who is asking. Please try again in a moment.");
        return 503;
    case WHO_KNOWN:
        reply_error(rq, "NO_CUSTOMER", "No customer belongs to these credentials.");
        return 403;
    case WHO_NO_CREDENTIALS:
        reply_header(rq, "WWW-Authenticate", "Bearer");
        reply_error(rq, "NO_CREDENTIALS", "Send a bearer token in Authorization, or an API key in X-API-Key.");
        return 401;
    case WHO_BAD_CREDENTIALS:
        break;
    }
    reply_header(rq, "WWW-Authenticate", "Bearer error=\"invalid_token\"");
    reply_error(rq, q->code, q->message);
    return 401;
}

void who_refuse(struct request *rq, const struct question *q)
{
    reply_send(rq, who_word(rq, q));
}

int who_word_frozen(struct who *who, struct request *rq, const struct caller *caller)
{
    char scheduled[28], effective[28];
    clock_format_us(caller->scheduled_us, scheduled);
    clock_format_us(caller->scheduled_us + atomic_load(&who->grace_ms) * 1000, effective);
    struct str body = arena_printf(rq->arena,
                                   "{\"error\":\"DELETION_SCHEDULED\",\"message\":\"Account deletion scheduled\","
                                   "\"deletion_scheduled_at\":\"%s\",\"deletion_effective_at\":\"%s\","
                                   "\"recovery_endpoint\":\"DELETE /auth/unregister\"}",
                                   scheduled, effective);
    reply_body(rq, "application/json", body);
    return 403;
}

void who_refuse_frozen(struct who *who, struct request *rq, const struct caller *caller)
{
    reply_send(rq, who_word_frozen(who, rq, caller));
}

/* --- the guard of a route --- */

/* The handler may keep the caller, so it goes to the request's work. */
static void pass_on(struct request *rq, const struct guarded *route, const struct caller *c)
{
    struct caller *kept = request_work(rq, sizeof *kept);
    if (!kept) {
        reply_fault(rq, ERR_MEMORY);
        return;
    }
    *kept = *c;
    route->handle(rq, kept, route->room);
}

static bool may_pass(const struct guarded *route, const struct caller *c)
{
    if (c->admin && route->admits & ADMITS_ADMIN)
        return true;
    bool standing = c->standing == CUSTOMER_ACTIVE || (c->standing == CUSTOMER_FROZEN && route->admits & ADMITS_FROZEN);
    return standing && route->admits & ADMITS_CUSTOMER;
}

static void admit(struct question *q)
{
    struct request *rq = q->rq;
    const struct guarded *route = rq->route->room;
    const struct caller *c = &q->caller;
    bool known = q->verdict == WHO_KNOWN;
    if (known && may_pass(route, c))
        pass_on(rq, route, c);
    else if (known && c->standing == CUSTOMER_FROZEN && !(route->admits & ADMITS_FROZEN))
        who_refuse_frozen(route->who, rq, c);
    else if (known && !(route->admits & ADMITS_CUSTOMER))
        reply_refuse(rq, 403, "FORBIDDEN", "Only administrators may do this.");
    else
        who_refuse(rq, q);
}

void who_guard(struct request *rq)
{
    const struct guarded *route = rq->route->room;
    struct question q = {.rq = rq, .answered = admit};
    struct str body = rq->body.len ? arena_copy(rq->arena, rq->body) : STR("");
    if (!body.at) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    rq->body = body;
    who_ask(route->who, &q);
}
