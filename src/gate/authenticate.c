#include "gate/authenticate.h"

#include <stdlib.h>
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "base/log.h"
#include "gate/credential_cache.h"

#define ASK_NS (5 * NS_PER_S)

struct authenticator {
    const struct digest *key_hasher;
    _Atomic(const struct jwt_keys *) tokens;
    struct credential_cache *credentials;
    _Atomic(struct frozen_customers *) frozen; /* both NULL until the database is ready */
    _Atomic(struct pool *) pool;
    _Atomic int64_t grace_ms;
};

#define CUSTOMER                                                                                                       \
    "c.id AS customer_id, c.status::text AS status,"                                                                   \
    " (extract(epoch FROM c.tm_deletion_scheduled) * 1000000)::bigint AS scheduled_us"

/* The owner's customer that is not deleted, else a deleted one: the reply differs from that for an owner without
 * any. */
static const struct statement customer_of_owner = {
    .name = "customer_of_owner",
    .sql = "SELECT " CUSTOMER " FROM reclaim.customer_customers c WHERE c.owner_user_id = $1::uuid"
           " ORDER BY c.status = 'deleted', c.tm_create DESC NULLS LAST LIMIT 1",
    .params = 1,
    .columns = "customer_id:uuid status:text scheduled_us:int8",
};

static const struct statement customer_of_key = {
    .name = "customer_of_key",
    .sql = "SELECT " CUSTOMER ", k.id AS key_id FROM reclaim.access_keys k"
           " JOIN reclaim.customer_customers c ON c.id = k.customer_id WHERE k.key_hash = $1 AND k.revoked_at IS NULL",
    .params = 1,
    .columns = "customer_id:uuid status:text scheduled_us:int8 key_id:uuid",
};

/* At most one update a minute, so that a key in heavy use does not mean as many row versions. */
static const struct statement touch_key = {
    .name = "touch_key",
    .sql = "UPDATE reclaim.access_keys SET last_used_at = pg_catalog.now() WHERE key_hash = $1 AND revoked_at IS NULL"
           " AND (last_used_at IS NULL OR last_used_at < pg_catalog.now() - interval '1 minute')",
    .params = 1,
    .columns = "",
};

const struct statement *const authenticate_statements[] = {&customer_of_owner, &customer_of_key, &touch_key};
const size_t authenticate_statement_count = COUNT_OF(authenticate_statements);

struct authenticator *authenticator_new(const struct authenticator_config *config)
{
    struct authenticator *authenticator = calloc(1, sizeof *authenticator);
    if (!authenticator || !(authenticator->credentials = credential_cache_new(CREDENTIAL_CACHE_ENTRIES))) {
        free(authenticator);
        return NULL;
    }
    authenticator->key_hasher = config->key_hasher;
    authenticator_set_tokens(authenticator, config->tokens);
    return authenticator;
}

enum err authenticator_open(struct authenticator *authenticator, const char *direct_url, struct pool *pool,
                            struct why *why)
{
    struct frozen_customers *frozen = frozen_customers_start(direct_url, authenticator->credentials, why);
    if (!frozen)
        return ERR_SYSTEM;
    atomic_store(&authenticator->frozen, frozen);
    atomic_store(&authenticator->pool, pool);
    return OK;
}

void authenticator_free(struct authenticator *authenticator)
{
    if (!authenticator)
        return;
    frozen_customers_stop(atomic_load(&authenticator->frozen));
    credential_cache_free(authenticator->credentials);
    free(authenticator);
}

void authenticator_set_grace(struct authenticator *authenticator, int64_t grace_ms)
{
    atomic_store(&authenticator->grace_ms, grace_ms);
}

void authenticator_set_tokens(struct authenticator *authenticator, const struct jwt_keys *tokens)
{
    atomic_store(&authenticator->tokens, tokens);
}

/* --- verdicts --- */

static void answer(struct authentication *q, enum caller_verdict verdict)
{
    q->verdict = verdict;
    q->answered(q);
}

static void refuse_credential(struct authentication *q, const char *code, const char *message)
{
    q->code = code;
    q->message = message;
    answer(q, CALLER_REFUSED);
}

/* Only a deleted customer is refused here; `answered` decides about the others. */
static void finish(struct authentication *q)
{
    if (q->caller.standing == STANDING_DELETED && !q->caller.admin)
        refuse_credential(q, "ACCOUNT_DELETED", "The account behind these credentials was deleted.");
    else
        answer(q, CALLER_KNOWN);
}

/* --- from the cache --- */

static struct digest digest_of_user(const char *user_id)
{
    return digest_quick(str_of(user_id));
}

/* False if the credential is not cached or the lease has expired. `by` is the credential's digest, or that of the
 * token's user. */
static bool find_in_cache(struct authentication *q, enum credential_kind kind, const struct digest *by)
{
    struct frozen_customers *frozen = atomic_load(&q->authenticator->frozen);
    struct cached_credential as;
    struct caller *c = &q->caller;
    if (!frozen)
        return false;
    uint64_t mark = frozen_customers_mark(frozen);
    if (!credential_cache_find(q->authenticator->credentials, kind, by, q->asked_ns, &as))
        return false;
    enum frozen_answer is = frozen_customers_find(frozen, mark, as.customer, q->asked_ns, &c->scheduled_us);
    if (is == FROZEN_UNSURE)
        return false;

    c->standing = is == FROZEN_IS ? STANDING_FROZEN : STANDING_ACTIVE;
    customer_id_write(as.customer, c->customer_id);
    if (kind == CREDENTIAL_KEY)
        customer_id_write(as.id, c->key_id);
    if (kind == CREDENTIAL_TOKEN) {
        customer_id_write(as.id, c->user_id);
        c->admin = as.admin;
    }
    q->from_memory = true;
    return true;
}

static void add_to_cache(const struct authentication *q)
{
    const struct caller *c = &q->caller;
    struct cached_credential as = {.admin = c->admin};
    if (customer_id_parse(str_of(c->customer_id), &as.customer) ||
        customer_id_parse(str_of(c->by_key ? c->key_id : c->user_id), &as.id))
        return;
    credential_cache_add(q->authenticator->credentials, q->kind, &q->credential, &as, q->asked_ns, q->until_ns);
    if (c->by_key || q->from_memory)
        return;
    struct digest user = digest_of_user(c->user_id);
    as.admin = false; /* depends on the token, not on the user */
    credential_cache_add(q->authenticator->credentials, CREDENTIAL_USER, &user, &as, q->asked_ns, INT64_MAX);
}

/* --- from the database, on a worker --- */

static void read_customer(struct caller *c, const struct pg_call *found)
{
    struct str status = pg_get(found, 0, 1);
    c->standing = STANDING_NONE;
    if (found->rows == 0 || str_copy(pg_get(found, 0, 0), c->customer_id, sizeof c->customer_id))
        return;
    c->scheduled_us = pg_get_i64(found, 0, 2);
    c->standing = str_eq(status, STR("active"))   ? STANDING_ACTIVE
                  : str_eq(status, STR("frozen")) ? STANDING_FROZEN
                                                  : STANDING_DELETED;
}

static enum err look_up(struct job *job, struct pg *pg)
{
    struct authentication *q = OWNER_OF(job, struct authentication, job);
    struct caller *c = &q->caller;
    struct pg_call calls[] = {{.ask = c->by_key ? &customer_of_key : &customer_of_owner,
                               .args = {pg_text(c->by_key ? q->key_hash : c->user_id)}},
                              {.ask = &touch_key, .args = {pg_text(q->key_hash)}}};
    const struct pg_call *found = &calls[0];
    q->asked_ns = clock_ns();
    enum err e = pg_trip(pg, calls, c->by_key ? 2 : 1, job->deadline_ns);
    if (e)
        return e;
    read_customer(c, found);
    if (c->by_key && found->rows)
        return str_copy(pg_get(found, 0, 3), c->key_id, sizeof c->key_id);
    return OK;
}

static void looked_up(struct job *job, enum err e)
{
    struct authentication *q = OWNER_OF(job, struct authentication, job);
    struct caller *c = &q->caller;
    if (e) {
        log_warn("the credentials could not be looked up", F_STR("error", err_name(e)));
        answer(q, CALLER_UNSURE);
        return;
    }
    if (c->by_key && c->standing == STANDING_NONE) {
        refuse_credential(q, "INVALID_API_KEY", "The API key is unknown or was revoked.");
        return;
    }
    if (c->standing == STANDING_ACTIVE || c->standing == STANDING_FROZEN)
        add_to_cache(q);
    finish(q);
}

static void ask_database(const struct authentication *shown)
{
    struct pool *pool = atomic_load(&shown->authenticator->pool);
    struct authentication unsure = *shown, *q = pool ? request_work(shown->rq, sizeof *q) : NULL;
    if (q) {
        *q = *shown;
        q->job = (struct job){look_up, looked_up, q->asked_ns + ASK_NS, q->rq->correlation_id};
        if (pool_submit(pool, &q->job) == OK)
            return;
    }
    answer(&unsure, CALLER_UNSURE);
}

/* --- the request's credentials --- */

static void authenticate_key(struct authentication *q, struct str key)
{
    q->kind = CREDENTIAL_KEY;
    q->caller.by_key = true;
    q->until_ns = INT64_MAX;
    q->credential = digest_quick(key);
    if (find_in_cache(q, CREDENTIAL_KEY, &q->credential)) {
        finish(q);
    } else if (access_key_is_one(key)) {
        access_key_hash(q->authenticator->key_hasher, key, q->key_hash);
        ask_database(q);
    } else {
        refuse_credential(q, "INVALID_API_KEY", "The API key is malformed.");
    }
}

/* Converts an instant of the wall clock into one of the monotonic clock, at most CREDENTIAL_CACHE_NS from now. */
static int64_t monotonic_until(int64_t now_ns, int64_t now_us, int64_t wall_us)
{
    int64_t left_us = wall_us - now_us;
    return left_us >= CREDENTIAL_CACHE_NS / NS_PER_US ? now_ns + CREDENTIAL_CACHE_NS : now_ns + left_us * NS_PER_US;
}

static bool verify(struct authentication *q, const struct jwt_keys *keys, struct str token)
{
    struct claims claims;
    int64_t now_us = clock_wall_us();
    enum jwt_fault fault = keys ? jwt_verify(keys, token, now_us, &claims) : JWT_ALGORITHM;
    if (fault) {
        refuse_credential(q, fault == JWT_EXPIRED ? "TOKEN_EXPIRED" : "INVALID_TOKEN", jwt_fault_text(fault));
        return false;
    }
    q->caller.admin = claims.admin;
    memcpy(q->caller.user_id, claims.sub, sizeof q->caller.user_id);
    q->until_ns = monotonic_until(q->asked_ns, now_us, claims.expires_us);
    return true;
}

/* Includes the serial number of the keys, so that entries of tokens verified with other keys are not found. */
static struct digest digest_of_token(struct str token, const struct jwt_keys *keys)
{
    struct digest ret = digest_quick(token);
    uint64_t serial = keys ? jwt_keys_serial(keys) : 0;
    for (size_t i = 0; i < sizeof serial; i++)
        ret.bytes[i] ^= (uint8_t)(serial >> (8 * i));
    return ret;
}

static void authenticate_token(struct authentication *q, struct str token)
{
    const struct jwt_keys *keys = atomic_load(&q->authenticator->tokens);
    q->kind = CREDENTIAL_TOKEN;
    if (token.len <= JWT_MAX) {
        q->credential = digest_of_token(token, keys);
        if (find_in_cache(q, CREDENTIAL_TOKEN, &q->credential)) {
            finish(q);
            return;
        }
    }
    if (!verify(q, keys, token))
        return;
    if (!q->caller.user_id[0]) { /* a service's token: no user to look up */
        q->from_memory = true;
        finish(q);
        return;
    }
    struct digest user = digest_of_user(q->caller.user_id);
    if (find_in_cache(q, CREDENTIAL_USER, &user)) {
        add_to_cache(q);
        finish(q);
    } else {
        ask_database(q);
    }
}

void authenticate(struct authenticator *authenticator, struct authentication *q)
{
    struct str shown = request_header(q->rq, "Authorization"), key = request_header(q->rq, "X-API-Key");
    q->authenticator = authenticator;
    q->asked_ns = clock_ns();
    if (shown.len > 7 && str_eq_nocase((struct str){shown.at, 7}, STR("Bearer ")))
        authenticate_token(q, str_trim((struct str){shown.at + 7, shown.len - 7}));
    else if (key.at)
        authenticate_key(q, str_trim(key));
    else
        answer(q, CALLER_HAS_NONE);
}

/* --- refusals --- */

int authentication_write_refusal(struct request *rq, const struct authentication *q)
{
    switch (q->verdict) {
    case CALLER_UNSURE:
        reply_error(rq, "UNAVAILABLE", "Reclaim cannot check the credentials at the moment. Please try again.");
        return 503;
    case CALLER_KNOWN:
        reply_error(rq, "NO_CUSTOMER", "No customer belongs to these credentials.");
        return 403;
    case CALLER_HAS_NONE:
        reply_header(rq, "WWW-Authenticate", "Bearer");
        reply_error(rq, "NO_CREDENTIALS", "Send a bearer token in Authorization, or an API key in X-API-Key.");
        return 401;
    case CALLER_REFUSED:
        break;
    }
    reply_header(rq, "WWW-Authenticate", "Bearer error=\"invalid_token\"");
    reply_error(rq, q->code, q->message);
    return 401;
}

void authentication_refuse(struct request *rq, const struct authentication *q)
{
    reply_send(rq, authentication_write_refusal(rq, q));
}

int authenticator_write_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller)
{
    char scheduled[28], effective[28];
    clock_format_us(caller->scheduled_us, scheduled);
    clock_format_us(caller->scheduled_us + atomic_load(&authenticator->grace_ms) * 1000, effective);
    struct str body = arena_printf(rq->arena,
                                   "{\"error\":\"DELETION_SCHEDULED\",\"message\":\"Account deletion scheduled\","
                                   "\"deletion_scheduled_at\":\"%s\",\"deletion_effective_at\":\"%s\","
                                   "\"recovery_endpoint\":\"DELETE /auth/unregister\"}",
                                   scheduled, effective);
    reply_body(rq, "application/json", body);
    return 403;
}

void authenticator_refuse_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller)
{
    reply_send(rq, authenticator_write_frozen(authenticator, rq, caller));
}

/* --- the guard of a route --- */

/* The handler may keep the caller: it is copied into the request's work. */
static void call_handler(struct request *rq, const struct guarded *route, const struct caller *c)
{
    struct caller *kept = request_work(rq, sizeof *kept);
    if (!kept) {
        reply_fault(rq, ERR_MEMORY);
        return;
    }
    *kept = *c;
    route->handle(rq, kept, route->context);
}

static bool is_admitted(const struct guarded *route, const struct caller *c)
{
    if (c->admin && route->admits & ADMITS_ADMIN)
        return true;
    bool standing = c->standing == STANDING_ACTIVE || (c->standing == STANDING_FROZEN && route->admits & ADMITS_FROZEN);
    return standing && route->admits & ADMITS_CUSTOMER;
}

static void guard_decide(struct authentication *q)
{
    struct request *rq = q->rq;
    const struct guarded *route = rq->route->context;
    const struct caller *c = &q->caller;
    bool known = q->verdict == CALLER_KNOWN;
    if (known && is_admitted(route, c))
        call_handler(rq, route, c);
    else if (known && c->standing == STANDING_FROZEN && !(route->admits & ADMITS_FROZEN))
        authenticator_refuse_frozen(route->authenticator, rq, c);
    else if (known && !(route->admits & ADMITS_CUSTOMER))
        reply_refuse(rq, 403, "FORBIDDEN", "Only administrators may do this.");
    else
        authentication_refuse(rq, q);
}

void authenticate_guarded(struct request *rq)
{
    const struct guarded *route = rq->route->context;
    struct authentication q = {.rq = rq, .answered = guard_decide};
    struct str body = rq->body.len ? arena_copy(rq->arena, rq->body) : STR("");
    if (!body.at) {
        reply_fault(rq, ERR_FULL);
        return;
    }
    rq->body = body;
    authenticate(route->authenticator, &q);
}
