#include "billing/billing.h"

#include <string.h>

#include "api/db_request.h"
#include "api/read.h"
#include "base/metrics.h"
#include "billing/input.h"

METRIC_COUNTER(charges, "reclaim_billing_charges_total", "Charges asked for, by outcome.", "outcome");

/* Each is one trip that returns an outcome and an object, as JSON. */
#define ANSWER .columns = "outcome:text object:text"
#define ANSWER_OF(call) "SELECT outcome, object::text AS object FROM reclaim." call

static const struct statement make_charge = {
    .name = "billing_charge",
    .sql = ANSWER_OF("billing_charge($1::uuid, $2::int8, $3::text, $4::timestamptz, NULL, $5::timestamptz)"),
    .params = 5,
    ANSWER,
};

static const struct statement show_account = {
    .name = "billing_account_show",
    .sql = "SELECT 'found'::text AS outcome, reclaim.billing_account_object(a)::text AS object"
           " FROM reclaim.billing_accounts a WHERE a.id = $1::uuid",
    .params = 1,
    ANSWER,
};

static const struct statement delete_account = {
    .name = "billing_account_delete",
    .sql = ANSWER_OF("billing_account_delete($1::uuid, $2::uuid, $3::uuid)"),
    .params = 3,
    ANSWER,
};

static const struct statement adjust = {
    .name = "billing_adjust",
    .sql = ANSWER_OF("billing_adjust($1::uuid, $2::int8, $3::text, $4::text, $5::uuid, $6::uuid)"),
    .params = 6,
    ANSWER,
};

static const struct statement list_adjustments = {
    .name = "billing_adjustments_page",
    .sql = ANSWER_OF("billing_adjustments_page($1::uuid, $2::uuid, $3::int8)"),
    .params = 3,
    ANSWER,
};

static const struct statement check_balance = {
    .name = "billing_valid_balance",
    .sql = ANSWER_OF("billing_valid_balance($1::uuid, $2::int8)"),
    .params = 2,
    ANSWER,
};

static const struct statement subscribe = {
    .name = "billing_subscribe",
    .sql = ANSWER_OF("billing_subscribe($1::uuid, $2::int8, $3::int8, $4::timestamptz, $5::text, $6::int2)"),
    .params = 6,
    ANSWER,
};

static const struct statement show_subscription = {
    .name = "billing_subscription_show",
    .sql = "SELECT 'found'::text AS outcome, reclaim.billing_subscription_object(s)::text AS object"
           " FROM reclaim.billing_subscriptions s WHERE s.id = $1::uuid",
    .params = 1,
    ANSWER,
};

static const struct statement unsubscribe = {
    .name = "billing_unsubscribe",
    .sql = ANSWER_OF("billing_unsubscribe($1::uuid)"),
    .params = 1,
    ANSWER,
};

const struct statement *const billing_statements[] = {
    &make_charge,   &show_account, &delete_account,    &adjust,      &list_adjustments,
    &check_balance, &subscribe,    &show_subscription, &unsubscribe,
};
const size_t billing_statement_count = COUNT_OF(billing_statements);

/* The HTTP answer for each of the database's outcomes; without a code it is the object. */
static const struct outcome_reply {
    const char *outcome;
    int status;
    const char *code, *message;
} outcome_replies[] = {
    {"charged", 201, NULL, NULL},
    {"made", 201, NULL, NULL},
    {"adjusted", 201, NULL, NULL},
    {"again", 200, NULL, NULL},
    {"found", 200, NULL, NULL},
    {"differs", 409, "REFERENCE_USED", "This reference was used before, for something else."},
    {"unknown", 404, "ACCOUNT_NOT_FOUND", "There is no billing account with this id."},
    {"unsubscribed", 404, "SUBSCRIPTION_NOT_FOUND", "There is no subscription with this id."},
    {"future", 400, "INVALID_TIME", "occurred_at has not come yet; leave it out for now."},
    {"backwards", 400, "INVALID_TIME", "started_at must not be later than occurred_at, which is now unless given."},
    {"past", 400, "INVALID_TIME", "first_charge_at lies more than 1000 periods back."},
    {"too_little", 402, "BALANCE_TOO_LITTLE", "The account's balance does not cover the amount."},
    {"out_of_range", 409, "BALANCE_OUT_OF_RANGE",
     "The balance would leave the range from -9007199254740992 to 9007199254740992."},
    {"frozen", 403, "ACCOUNT_FROZEN", "The account is frozen: usage from the freeze on is not charged."},
    {"was_frozen", 403, "USAGE_WHILE_FROZEN", "The account was frozen when this occurred: it is not charged."},
    {"held", 403, "ACCOUNT_FROZEN", "The account is on hold: nothing can be charged until that is lifted."},
    {"deleted", 403, "ACCOUNT_DELETED", "The account has been deleted."},
};

/* One request, which is one statement. */
struct billing_request {
    struct db_request db;
    struct pg_call call;
    const char *none; /* the outcome when no row comes back */
    char id[37];
    const struct outcome_reply *reply;
    struct str object;
};

static struct billing_request *request_new(struct request *rq, const struct statement *ask);
static struct billing_request *request_about(struct request *rq, const struct statement *ask);
static void start(struct billing_request *b, struct billing *context);

/* 1. On the loop: the handlers read their input and fill the statement's arguments in. */

void charge_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct charge_request in;
    AUTO(fields) struct fields f = billing_fields(rq->arena, rq->body);
    charge_read(&f, &in);
    if (fields_refuse(&f, rq))
        return;
    struct billing_request *b = request_new(rq, &make_charge);
    if (!b)
        return;
    memcpy(b->id, in.account_id, sizeof b->id);
    b->call.args[0] = pg_text(b->id);
    b->call.args[1] = pg_i64(in.amount_micros);
    b->call.args[2] = pg_text(in.reference);
    b->call.args[3] = pg_text_or_null(in.occurred_at);
    b->call.args[4] = pg_text_or_null(in.started_at);
    start(b, billing);
}

void account_show_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct billing_request *b = request_about(rq, &show_account);
    if (b)
        start(b, billing);
}

static struct pg_arg actor_id_of(const struct caller *caller)
{
    const char *id = caller->by_key ? caller->key_id : caller->user_id;
    return pg_text_or_null(*id ? id : NULL);
}

void account_delete_handle(struct request *rq, const struct caller *caller, void *billing)
{
    struct billing_request *b = request_about(rq, &delete_account);
    if (!b)
        return;
    b->call.args[1] = actor_id_of(caller);
    b->call.args[2] = pg_text(rq->correlation_id);
    start(b, billing);
}

void adjust_handle(struct request *rq, const struct caller *caller, void *billing)
{
    struct adjust_request in;
    AUTO(fields) struct fields f = billing_fields(rq->arena, rq->body);
    adjust_read(&f, &in);
    if (fields_refuse(&f, rq))
        return;
    struct billing_request *b = request_about(rq, &adjust);
    if (!b)
        return;
    b->call.args[1] = pg_i64(in.amount_micros);
    b->call.args[2] = pg_text(in.reference);
    b->call.args[3] = pg_text(in.reason);
    b->call.args[4] = actor_id_of(caller);
    b->call.args[5] = pg_text(rq->correlation_id);
    start(b, billing);
}

void adjustments_list_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct list_page page;
    if (!list_page_read(rq, &page))
        return;
    struct billing_request *b = request_about(rq, &list_adjustments);
    if (!b)
        return;
    b->call.args[1] = pg_text_or_null(page.after);
    b->call.args[2] = pg_i64(page.limit);
    start(b, billing);
}

void valid_balance_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct billing_request *b = request_about(rq, &check_balance);
    if (!b)
        return;
    int64_t amount;
    struct str wanted = request_query(rq, "amount_micros");
    if (!wanted.at || str_to_i64(wanted, 0, AMOUNT_MOST, &amount)) {
        reply_refuse(rq, 400, "INVALID_AMOUNT", "amount_micros must be a whole number from 0 to 9007199254740992.");
        return;
    }
    b->call.args[1] = pg_i64(amount);
    start(b, billing);
}

void subscribe_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct subscribe_request in;
    AUTO(fields) struct fields f = billing_fields(rq->arena, rq->body);
    subscribe_read(&f, &in);
    if (fields_refuse(&f, rq))
        return;
    struct billing_request *b = request_new(rq, &subscribe);
    if (!b)
        return;
    memcpy(b->id, in.account_id, sizeof b->id);
    b->call.args[0] = pg_text(b->id);
    b->call.args[1] = pg_i64(in.amount_micros);
    b->call.args[2] = in.period_seconds ? pg_i64(in.period_seconds) : pg_null();
    b->call.args[3] = pg_text_or_null(in.first_charge_at);
    b->call.args[4] = pg_text_or_null(in.reference);
    b->call.args[5] = in.period_months ? pg_i64(in.period_months) : pg_null();
    start(b, billing);
}

void subscription_show_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct billing_request *b = request_about(rq, &show_subscription);
    if (!b)
        return;
    b->none = "unsubscribed";
    start(b, billing);
}

void unsubscribe_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct billing_request *b = request_about(rq, &unsubscribe);
    if (b)
        start(b, billing);
}

static enum err run(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);

/* NULL after a 503 was sent. */
static struct billing_request *request_new(struct request *rq, const struct statement *ask)
{
    struct billing_request *b = db_request_new(rq, sizeof *b, run, answer);
    if (!b)
        return NULL;
    b->call.ask = ask;
    b->none = "unknown";
    return b;
}

/* A request about the id in the path; NULL after an answer was sent. */
static struct billing_request *request_about(struct request *rq, const struct statement *ask)
{
    struct billing_request *b = request_new(rq, ask);
    if (!b || !request_id(rq, 0, b->id))
        return NULL;
    b->call.args[0] = pg_text(b->id);
    return b;
}

static void start(struct billing_request *b, struct billing *context)
{
    db_request_start(&b->db, atomic_load(&context->pool));
}

static const struct outcome_reply *reply_for(struct str outcome)
{
    for (size_t i = 0; i < COUNT_OF(outcome_replies); i++)
        if (str_eq(outcome, str_of(outcome_replies[i].outcome)))
            return &outcome_replies[i];
    return NULL;
}

/* 2. On a worker. */
static enum err run(struct db_request *db, struct pg *pg)
{
    struct billing_request *b = OWNER_OF(db, struct billing_request, db);
    enum err e = pg_ask(pg, &b->call, db->job.deadline_ns);
    if (e)
        return e;
    if (!(b->reply = reply_for(b->call.rows == 1 ? pg_get(&b->call, 0, 0) : str_of(b->none))))
        return ERR_DATABASE;
    if (b->reply->code)
        return OK;
    b->object = arena_copy(db->rq->arena, pg_get(&b->call, 0, 1));
    return b->object.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer(struct db_request *db)
{
    struct billing_request *b = OWNER_OF(db, struct billing_request, db);
    const struct outcome_reply *reply = b->reply;
    if (b->call.ask == &make_charge)
        counter_add(&charges, 1, reply->outcome);
    if (reply->code) {
        reply_refuse(db->rq, reply->status, reply->code, reply->message);
        return;
    }
    reply_body(db->rq, "application/json", b->object);
    reply_send(db->rq, reply->status);
}
