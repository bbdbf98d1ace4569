/* POST /hooks/before-user-created: Supabase Auth asks whether it may create a user, and refuses the sign-up while the address cools
 * down. It waits for 5 seconds at most, and refuses sign-ups as long as it gets no answer. */
#include <string.h>

#include "api/db_request.h"
#include "base/clock.h"
#include "base/email.h"
#include "base/json.h"
#include "base/metrics.h"
#include "credentials/webhook_signature.h"
#include "customers/cooldown.h"
#include "customers/customers.h"

#define ANSWER_NS (2 * NS_PER_S)

METRIC_COUNTER(asked, "reclaim_sign_ups_total", "Sign-ups that Supabase Auth asked about, by outcome.", "outcome");

struct sign_up {
    struct db_request db;
    const struct signup_hook *context;
    char hash[DIGEST_HEX_LEN + 1];
    bool cools;
};

static enum err ask_cooldown(struct db_request *db, struct pg *pg);
static void answer_cooldown(struct db_request *db);

/* Supabase Auth takes 200 with {} for a yes. */
static void allow(struct request *rq)
{
    counter_add(&asked, 1, "allowed");
    reply_body(rq, "application/json", STR("{}"));
    reply_send(rq, 200);
}

/* It reads an error in the body of a 200 only, and shows the message to whoever signs up: of other statuses it makes a 500. The
 * sentence does not say why, since anyone may try any address. */
static void refuse(struct request *rq, const struct signup_hook *context)
{
    AUTO(buf) struct buf out = buf_new(2048);
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "error");
    json_open(&w, '{');
    json_key(&w, "http_code");
    json_i64(&w, 403);
    json_key(&w, "message");
    json_str(&w, context->refusal);
    json_close(&w, '}');
    json_close(&w, '}');
    counter_add(&asked, 1, "refused");
    rq->reply.outcome = "COOLS_DOWN";
    reply_json(rq, 200, buf_str(&out));
}

/* The new user's address; absent when it has none. ERR_INPUT: this is no such question. */
static enum err read_address(struct request *rq, struct str *ret)
{
    AUTO(json) json_t *body = json_read_object(rq->body, NULL);
    const json_t *user = json_object_get(body, "user"), *email = json_object_get(user, "email");
    *ret = (struct str){NULL, 0};
    if (!json_is_object(user) || (email && !json_is_string(email) && !json_is_null(email)))
        return ERR_INPUT;
    struct str given = {json_string_value(email), json_string_length(email)};
    if (!given.at || given.len == 0)
        return OK; /* by telephone, or anonymous */
    enum err e = email_normalise(rq->arena, given, ret);
    return e == ERR_INPUT ? OK : e; /* no deleted customer had it */
}

/* 1. On the loop. */
void before_user_created_handle(struct request *rq)
{
    const struct signup_hook *context = rq->route->context;
    const struct webhook_headers headers = {request_header(rq, "webhook-id"), request_header(rq, "webhook-timestamp"),
                                            request_header(rq, "webhook-signature")};
    struct str address;
    if (context->secrets.count == 0) {
        reply_refuse(rq, 404, "HOOK_NOT_CONFIGURED", "This hook is not in use here: RECLAIM_HOOK_SECRET is not set.");
        return;
    }
    if (webhook_verify(&context->secrets, &headers, rq->body, clock_wall_us() / 1000000)) {
        counter_add(&asked, 1, "unsigned");
        reply_refuse(rq, 401, "INVALID_SIGNATURE",
                     "The request is not signed with the hook's secret, or its time is more than five minutes away.");
        return;
    }
    enum err e = read_address(rq, &address);
    if (e == ERR_INPUT) {
        reply_refuse(rq, 400, "INVALID_BODY", "The body must be a JSON object with the user that is to be created.");
        return;
    }
    if (e) {
        reply_fault(rq, e);
        return;
    }
    if (!address.at || atomic_load(&context->customers->cooldown_ms) < 1) {
        allow(rq);
        return;
    }
    struct sign_up *s = db_request_new(rq, sizeof *s, ask_cooldown, answer_cooldown);
    if (!s)
        return;
    s->context = context;
    cooldown_hash(context->customers->cooldown_key, address, s->hash);
    db_request_start_by(&s->db, customers_pool(context->customers, LANE_ANONYMOUS), rq->arrived_ns + ANSWER_NS);
}

/* 2. On a worker. */
static enum err ask_cooldown(struct db_request *db, struct pg *pg)
{
    struct sign_up *s = OWNER_OF(db, struct sign_up, db);
    struct pg_call call = {.ask = &cooldown_ask, .args = {pg_text(s->hash)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    s->cools = !e && pg_get_bool(&call, 0, 0);
    return e;
}

/* 3. On the same worker. */
static void answer_cooldown(struct db_request *db)
{
    const struct sign_up *s = OWNER_OF(db, struct sign_up, db);
    if (s->cools)
        refuse(db->rq, s->context);
    else
        allow(db->rq);
}
