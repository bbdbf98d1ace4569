#include "gate/authenticate.h"

#include <stdlib.h>
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "base/log.h"
#include "gate/credential_cache.h"
#include "gate/look_up.h"
#include "gate/sessions.h"

#define ASK_NS (800 * NS_PER_MS)    /* callers of the gate wait: better a 503 than a long silence */
#define UNWATCHED_NS (2 * NS_PER_S) /* of an entry whose user can be removed without the gates being told */
#define AFTER_HOLD_US (INT64_C(7) * 86400 * 1000000)

struct authenticator {
    const struct digest *key_hasher;
    struct key_ring *tokens;
    bool reads_keys;
    _Atomic(struct key_reader *) reader; /* NULL until the database is ready, and unless reads_keys */
    struct credential_cache *credentials;
    _Atomic(struct frozen_customers *) frozen; /* both NULL until the database is ready */
    _Atomic(struct lanes *) lanes;
};

/* The key in X-API-Key of a request that has a bearer too. */
struct second_credential {
    struct digest credential;
    char key_hash[DIGEST_HEX_LEN + 1];
    bool first_is_known;
    bool first_from_memory;
    struct caller first;
};

struct authenticator *authenticator_new(const struct authenticator_config *config)
{
    struct authenticator *authenticator = calloc(1, sizeof *authenticator);
    if (!authenticator || !(authenticator->credentials = credential_cache_new(CREDENTIAL_CACHE_ENTRIES))) {
        free(authenticator);
        return NULL;
    }
    authenticator->key_hasher = config->key_hasher;
    authenticator->tokens = config->tokens;
    authenticator->reads_keys = config->reads_keys;
    return authenticator;
}

enum err authenticator_open(struct authenticator *authenticator, const char *direct_url, struct lanes *lanes,
                            struct pg_pulse *pulse, struct key_reader *reader, struct why *why)
{
    struct frozen_customers *frozen = frozen_customers_start(direct_url, authenticator->credentials, pulse, why);
    if (!frozen)
        return ERR_SYSTEM;
    atomic_store(&authenticator->reader, reader);
    atomic_store(&authenticator->frozen, frozen);
    atomic_store(&authenticator->lanes, lanes);
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

int64_t authenticator_lag_ms(struct authenticator *authenticator)
{
    struct frozen_customers *frozen = atomic_load(&authenticator->frozen);
    int64_t age_ns = frozen ? frozen_customers_state(frozen).age_ns : INT64_MAX;
    return age_ns == INT64_MAX ? -1 : age_ns / NS_PER_MS;
}

bool caller_sees_all(const struct caller *caller)
{
    return caller->admin || caller->scope == SCOPE_READ;
}

bool caller_sees(const struct caller *caller, const char *customer_id)
{
    return caller_sees_all(caller) || strcmp(customer_id, caller->customer_id) == 0;
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

static void check_second(struct authentication *q);

/* Only a deleted customer is refused here; `answered` decides about the others. */
static void finish(struct authentication *q)
{
    struct caller *c = &q->caller;
    if (c->standing == STANDING_DELETED && !c->admin) {
        refuse_credential(q, "ACCOUNT_DELETED", "The account behind these credentials was deleted.");
        return;
    }
    if (q->chooses && c->by_key && strcmp(c->customer_id, q->choice) != 0) {
        c->customer_id[0] = '\0';
        c->standing = STANDING_NONE;
    }
    if (q->second)
        check_second(q);
    else
        answer(q, CALLER_KNOWN);
}

/* --- from the cache --- */

/* Of a credential together with the customer that the request chose. */
static struct digest digest_with_choice(const struct authentication *q, struct digest credential)
{
    char both[DIGEST_LEN + sizeof q->choice];
    if (!q->chooses)
        return credential;
    memcpy(both, credential.bytes, DIGEST_LEN);
    memcpy(both + DIGEST_LEN, q->choice, sizeof q->choice);
    return digest_quick((struct str){both, sizeof both});
}

static struct digest digest_of_user(const struct authentication *q)
{
    return digest_with_choice(q, digest_quick(str_of(q->caller.user_id)));
}

/* False if the credential is not cached or the lease has expired. `by` is the credential's digest, or that of the
 * token's user. */
static bool find_in_cache(struct authentication *q, enum credential_kind kind, const struct digest *by)
{
    struct frozen_customers *frozen = atomic_load(&q->authenticator->frozen);
    struct cached_credential as;
    struct caller *c = &q->caller;
    if (!frozen || q->skips_cache)
        return false;
    uint64_t mark = frozen_customers_mark(frozen);
    int64_t until_ns = credential_cache_find(q->authenticator->credentials, kind, by, q->asked_ns, &as);
    if (!until_ns)
        return false;
    enum frozen_answer is = frozen_customers_find(frozen, mark, as.customer, q->asked_ns, &c->freeze);
    if (is == FROZEN_UNSURE)
        return false;

    c->scope = (enum key_scope)as.scope;
    if (c->scope == SCOPE_CUSTOMER) {
        c->standing = is == FROZEN_IS ? STANDING_FROZEN : STANDING_ACTIVE;
        customer_id_write(as.customer, c->customer_id);
    }
    c->is_owner = as.is_owner;
    c->has_several = as.has_several;
    if (kind == CREDENTIAL_KEY)
        customer_id_write(as.id, c->key_id);
    if (kind == CREDENTIAL_TOKEN)
        customer_id_write(as.id, c->user_id);
    if (as.session.high || as.session.low)
        customer_id_write(as.session, c->session);
    if (kind != CREDENTIAL_USER)
        c->admin = as.admin;
    else if (until_ns < q->until_ns)
        q->until_ns = until_ns; /* of the token, which is added to the cache */
    q->from_memory = true;
    return true;
}

static void add_to_cache(const struct authentication *q)
{
    const struct caller *c = &q->caller;
    struct cached_credential as = {
        .admin = c->admin, .is_owner = c->is_owner, .has_several = c->has_several, .scope = (uint8_t)c->scope};
    if ((c->scope == SCOPE_CUSTOMER && customer_id_parse(str_of(c->customer_id), &as.customer)) ||
        customer_id_parse(str_of(c->by_key ? c->key_id : c->user_id), &as.id) ||
        (*c->session && customer_id_parse(str_of(c->session), &as.session)))
        return;
    credential_cache_add(q->authenticator->credentials, q->kind, &q->credential, &as, q->asked_ns, q->until_ns);
    if (c->by_key || q->from_memory)
        return;
    struct digest user = digest_of_user(q);
    as.admin = false; /* depends on the token, not on the user */
    as.session = (struct customer_id){0, 0};
    credential_cache_add(q->authenticator->credentials, CREDENTIAL_USER, &user, &as, q->asked_ns, q->user_until_ns);
}

/* --- from the database, on a worker --- */

/* Keeps what was looked up for a short time only. */
static void expect_removal(struct authentication *q)
{
    q->user_until_ns = q->asked_ns + UNWATCHED_NS;
    if (q->until_ns > q->user_until_ns)
        q->until_ns = q->user_until_ns;
}

static enum err look_up(struct job *job, struct pg *pg)
{
    struct authentication *q = OWNER_OF(job, struct authentication, job);
    q->asked_ns = clock_ns();
    if (q->caller.session[0]) {
        enum err e = session_has_ended(pg, q->caller.session, q->caller.user_id, job->deadline_ns, &q->session_ended);
        if (e)
            return e;
    }
    if (!q->caller.by_key) {
        bool watched;
        enum err e = look_up_user(pg, q->chooses ? q->choice : NULL, job->deadline_ns, &q->caller, &watched);
        q->user_until_ns = INT64_MAX;
        if (!e && !watched)
            expect_removal(q);
        return e;
    }
    struct found_key key;
    enum err e = look_up_key(pg, q->key_hash, job->deadline_ns, &q->caller, &key);
    if (!e && !key.watched)
        expect_removal(q);
    if (!e && key.left_us != INT64_MAX)
        q->until_ns = q->asked_ns + key.left_us * NS_PER_US;
    if (!e && key.use_is_due)
        note_key_use(lanes_pool(atomic_load(&q->authenticator->lanes), LANE_BACKGROUND), q->caller.key_id);
    return e;
}

/* Receipts' keys are few and write once an erasure: they are not cached, since the participant has no place there. */
static bool is_cacheable(const struct caller *c)
{
    return c->scope == SCOPE_CUSTOMER ? c->standing == STANDING_ACTIVE || c->standing == STANDING_FROZEN
                                      : c->scope != SCOPE_RECEIPTS;
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
    if (c->by_key && !*c->key_id) {
        refuse_credential(q, "INVALID_API_KEY", "The API key is unknown or was revoked.");
        return;
    }
    if (q->session_ended && c->standing == STANDING_DELETED) { /* the session ended with the account */
        refuse_credential(q, "ACCOUNT_DELETED", "The account behind these credentials was deleted.");
        return;
    }
    if (q->session_ended) {
        refuse_credential(q, "SESSION_ENDED", "This session has ended. Please sign in again.");
        return;
    }
    if (c->by_key && q->until_ns <= q->asked_ns) {
        refuse_credential(q, "API_KEY_EXPIRED", "The API key has expired.");
        return;
    }
    if (is_cacheable(c))
        add_to_cache(q);
    finish(q);
}

static void ask_database(const struct authentication *shown)
{
    struct pool *pool = lanes_pool(atomic_load(&shown->authenticator->lanes), LANE_GATE);
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

/* The credential is that of a key; true if it is cached. */
static bool find_key(struct authentication *q, const struct digest *credential)
{
    q->kind = CREDENTIAL_KEY;
    q->caller.by_key = true;
    q->until_ns = INT64_MAX;
    q->credential = *credential;
    return find_in_cache(q, CREDENTIAL_KEY, &q->credential);
}

static void refuse_malformed_key(struct authentication *q)
{
    refuse_credential(q, "INVALID_API_KEY", "The API key is malformed.");
}

static void authenticate_key(struct authentication *q, struct str key)
{
    struct digest credential = digest_quick(key);
    if (find_key(q, &credential)) {
        finish(q);
    } else if (access_key_is_one(key)) {
        access_key_hash(q->authenticator->key_hasher, key, q->key_hash);
        ask_database(q);
    } else {
        refuse_malformed_key(q);
    }
}

/* Both are of one customer, or both of an administrator, or the same key. */
static bool mean_the_same(const struct caller *a, const struct caller *b)
{
    return (*a->customer_id && strcmp(a->customer_id, b->customer_id) == 0) || (a->admin && b->admin) ||
           (*a->key_id && strcmp(a->key_id, b->key_id) == 0);
}

/* Called when the bearer is known, and again when the key is; on the loop or on a worker. */
static void check_second(struct authentication *q)
{
    struct second_credential *s = q->second;
    if (!s->first_is_known) {
        s->first = q->caller;
        s->first_is_known = true;
        s->first_from_memory = q->from_memory;
        q->caller = (struct caller){.by_key = true};
        q->from_memory = false;
        memcpy(q->key_hash, s->key_hash, sizeof q->key_hash);
        if (find_key(q, &s->credential))
            finish(q);
        else
            ask_database(q);
        return;
    }
    q->from_memory = q->from_memory && s->first_from_memory;
    if (!mean_the_same(&s->first, &q->caller)) {
        refuse_credential(q, "CREDENTIALS_DIFFER", "The bearer and the API key do not belong to the same customer.");
        return;
    }
    q->caller = s->first;
    answer(q, CALLER_KNOWN);
}

/* False after a refusal. */
static bool keep_second(struct authentication *q, struct str key)
{
    if (!access_key_is_one(key)) {
        refuse_malformed_key(q);
        return false;
    }
    if (!(q->second = request_work(q->rq, sizeof *q->second))) {
        answer(q, CALLER_UNSURE);
        return false;
    }
    q->second->credential = digest_quick(key);
    access_key_hash(q->authenticator->key_hasher, key, q->second->key_hash);
    return true;
}

/* Converts an instant of the wall clock into one of the monotonic clock, at most CREDENTIAL_CACHE_NS from now. */
static int64_t monotonic_until(int64_t now_ns, int64_t now_us, int64_t wall_us)
{
    int64_t left_us = wall_us - now_us;
    return left_us >= CREDENTIAL_CACHE_NS / NS_PER_US ? now_ns + CREDENTIAL_CACHE_NS : now_ns + left_us * NS_PER_US;
}

/* A token whose key is not known, kept until the key set was read again. */
struct token_wait {
    struct key_wait wait;
    struct authentication q;
    struct str token;
};

static void check_token(struct authentication *q, struct str token, bool set_is_fresh);

/* On the reader's thread. */
static void keys_read(struct key_wait *wait, bool reached)
{
    struct token_wait *w = OWNER_OF(wait, struct token_wait, wait);
    w->q.asked_ns = clock_ns();
    if (reached)
        check_token(&w->q, w->token, true);
    else
        answer(&w->q, CALLER_UNSURE);
}

/* False if the token was signed with none of the keys that its issuer publishes. Otherwise the request is answered later, or
 * with 503 if the set cannot be read, since it may be among its keys. */
static bool await_key(const struct authentication *shown, struct str token)
{
    struct authentication unsure = *shown;
    struct key_reader *reader = atomic_load(&shown->authenticator->reader);
    struct token_wait *w = reader ? request_work(shown->rq, sizeof *w + token.len) : NULL;
    enum key_news news = KEYS_OUT_OF_REACH;
    if (w) {
        *w = (struct token_wait){{keys_read, NULL}, *shown, {(char *)(w + 1), token.len}};
        memcpy(w + 1, token.at, token.len);
        news = key_reader_await(reader, &w->wait);
    }
    if (news == KEYS_OUT_OF_REACH)
        answer(&unsure, CALLER_UNSURE);
    return news != KEYS_AS_PUBLISHED;
}

static bool verify(struct authentication *q, const struct jwt_keys *keys, struct str token, bool set_is_fresh)
{
    struct claims claims;
    int64_t now_us = clock_wall_us();
    enum jwt_fault fault = keys ? jwt_verify(keys, token, now_us, &claims) : JWT_ALGORITHM;
    if (fault == JWT_UNKNOWN_KEY && q->authenticator->reads_keys && !set_is_fresh && await_key(q, token))
        return false;
    if (fault) {
        refuse_credential(q, fault == JWT_EXPIRED ? "TOKEN_EXPIRED" : "INVALID_TOKEN", jwt_fault_text(fault));
        return false;
    }
    q->caller.admin = claims.admin;
    memcpy(q->caller.user_id, claims.sub, sizeof q->caller.user_id);
    memcpy(q->caller.session, claims.session, sizeof q->caller.session);
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

/* The token is good: who its user is. */
static void find_user(struct authentication *q)
{
    if (!q->caller.user_id[0] || q->choice_is_malformed) { /* a service's token: no user to look up */
        q->from_memory = true;
        finish(q);
        return;
    }
    struct digest user = digest_of_user(q);
    /* Whether a session goes on is not known of its user. */
    if (!*q->caller.session && find_in_cache(q, CREDENTIAL_USER, &user)) {
        add_to_cache(q);
        finish(q);
    } else {
        ask_database(q);
    }
}

/* `set_is_fresh`: the key set was read for this token. */
static void check_token(struct authentication *q, struct str token, bool set_is_fresh)
{
    struct key_ring *ring = q->authenticator->tokens;
    const struct jwt_keys *keys = key_ring_take(ring);
    q->kind = CREDENTIAL_TOKEN;
    if (token.len <= JWT_MAX)
        q->credential = digest_with_choice(q, digest_of_token(token, keys));
    bool cached = token.len <= JWT_MAX && find_in_cache(q, CREDENTIAL_TOKEN, &q->credential);
    bool verified = !cached && verify(q, keys, token, set_is_fresh);
    key_ring_give(ring, keys);
    if (cached)
        finish(q);
    else if (verified)
        find_user(q);
}

/* In lower case, as it is written everywhere else. */
static void read_choice(struct authentication *q, struct str text)
{
    struct customer_id id;
    q->chooses = true;
    if (customer_id_parse(text, &id))
        q->choice_is_malformed = true;
    else
        customer_id_write(id, q->choice);
}

void authenticate(struct authenticator *authenticator, struct authentication *q)
{
    struct str shown = request_header(q->rq, "Authorization"), key = request_header(q->rq, "X-API-Key");
    struct str choice = request_header(q->rq, "X-Reclaim-Customer");
    q->authenticator = authenticator;
    q->asked_ns = clock_ns();
    if (choice.at)
        read_choice(q, str_trim(choice));
    if (shown.len > 7 && str_eq_nocase((struct str){shown.at, 7}, STR("Bearer "))) {
        struct str bearer = str_trim((struct str){shown.at + 7, shown.len - 7});
        if (key.at && !keep_second(q, str_trim(key)))
            return;
        if (access_key_begins(bearer))
            authenticate_key(q, bearer);
        else
            check_token(q, bearer, false);
    } else if (key.at) {
        authenticate_key(q, str_trim(key));
    } else {
        answer(q, CALLER_HAS_NONE);
    }
}

/* --- refusals --- */

int authentication_write_refusal(struct request *rq, const struct authentication *q)
{
    switch (q->verdict) {
    case CALLER_UNSURE:
        reply_error(rq, "UNAVAILABLE", "Reclaim cannot check the credentials at the moment. Please try again.");
        return 503;
    case CALLER_KNOWN:
        reply_error(rq, "NO_CUSTOMER",
                    q->chooses ? "These credentials do not belong to the customer in X-Reclaim-Customer."
                               : "No customer belongs to these credentials.");
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

/* The promised date. One that a legal hold has outlasted is moved when the hold is lifted, to this long from then. */
static int64_t earliest_deletion_us(struct authenticator *authenticator, const struct freeze *freeze)
{
    struct frozen_customers *frozen = atomic_load(&authenticator->frozen);
    int64_t now_us = frozen ? frozen_customers_now_us(frozen) : clock_wall_us();
    int64_t promised_us = (int64_t)freeze->effective_us;
    return freeze->held && promised_us < now_us ? now_us + AFTER_HOLD_US : promised_us;
}

int authenticator_write_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller)
{
    char scheduled[28], effective[28];
    clock_format_us(caller->freeze.scheduled_us, scheduled);
    clock_format_us(earliest_deletion_us(authenticator, &caller->freeze), effective);
    struct str body = arena_printf(rq->arena,
                                   "{\"error\":\"DELETION_SCHEDULED\",\"message\":\"Account deletion scheduled\","
                                   "\"deletion_scheduled_at\":\"%s\",\"deletion_effective_at\":\"%s\","
                                   "\"recovery_endpoint\":\"%s\"}",
                                   scheduled, effective, caller->freeze.by_admin ? "" : "DELETE /auth/unregister");
    reply_body(rq, "application/json", body);
    return 403;
}

void authenticator_refuse_frozen(struct authenticator *authenticator, struct request *rq, const struct caller *caller)
{
    reply_send(rq, authenticator_write_frozen(authenticator, rq, caller));
}
