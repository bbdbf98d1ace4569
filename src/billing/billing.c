#include "billing/billing.h"

#include <string.h>

#include "api/db_request.h"
#include "base/metrics.h"
#include "billing/input.h"

METRIC_COUNTER(charges, "reclaim_billing_charges_total", "Charges asked for, by what became of them.", "outcome");

/* Each takes one trip, and answers with what became of it and an object, as JSON. */
#define ANSWER .columns = "outcome:text object:text"

static const struct statement make_charge = {
    .name = "billing_charge",
    .sql = "SELECT outcome, object::text AS object FROM reclaim.billing_charge($1::uuid, $2::int8, $3::text,"
           " $4::timestamptz)",
    .params = 4,
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
    .sql = "SELECT outcome, object::text AS object FROM reclaim.billing_account_delete($1::uuid, $2::uuid, $3::uuid)",
    .params = 3,
    ANSWER,
};

static const struct statement check_balance = {
    .name = "billing_valid_balance",
    .sql = "SELECT outcome, object::text AS object FROM reclaim.billing_valid_balance($1::uuid, $2::int8)",
    .params = 2,
    ANSWER,
};

static const struct statement subscribe = {
    .name = "billing_subscribe",
    .sql = "SELECT outcome, object::text AS object FROM reclaim.billing_subscribe($1::uuid, $2::int8, $3::int8,"
           " $4::timestamptz, $5::text)",
    .params = 5,
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
    .sql = "SELECT outcome, object::text AS object FROM reclaim.billing_unsubscribe($1::uuid)",
    .params = 1,
    ANSWER,
};

const struct statement *const billing_statements[] = {
    &make_charge, &show_account, &delete_account, &check_balance, &subscribe, &show_subscription, &unsubscribe,
};
const size_t billing_statement_count = COUNT_OF(billing_statements);

/* What the database's outcomes are over HTTP; without a code the object is the answer. */
static const struct outcome_reply {
    const char *outcome;
    int status;
    const char *code, *message;
} outcome_replies[] = {
    {"charged", 201, NULL, NULL},
    {"made", 201, NULL, NULL},
    {"again", 200, NULL, NULL},
    {"found", 200, NULL, NULL},
    {"differs", 409, "REFERENCE_USED", "This reference was used before, for something else."},
    {"unknown", 404, "ACCOUNT_NOT_FOUND", "There is no billing account with this id."},
    {"unsubscribed", 404, "SUBSCRIPTION_NOT_FOUND", "There is no subscription with this id."},
    {"future", 400, "INVALID_TIME", "occurred_at has not come yet; leave it out for now."},
    {"past", 400, "INVALID_TIME", "first_charge_at lies more than 1000 periods back."},
    {"too_little", 402, "BALANCE_TOO_LITTLE", "The account's balance does not cover the amount."},
    {"frozen", 403, "ACCOUNT_FROZEN", "The account is frozen: usage from the freeze on is not charged."},
    {"was_frozen", 403, "USAGE_WHILE_FROZEN", "The account was frozen when this occurred: it is not charged."},
    {"held", 403, "ACCOUNT_FROZEN", "The account is on hold: nothing can be charged until that is lifted."},
    {"deleted", 403, "ACCOUNT_DELETED", "The account has been deleted."},
};

static const struct outcome_reply *verdict_of(struct str outcome)
{
    for (size_t i = 0; i < COUNT_OF(outcome_replies); i++)
        if (str_eq(outcome, str_of(outcome_replies[i].outcome)))
            return &outcome_replies[i];
    return NULL;
}

struct asking {
    struct db_request db;
    struct pg_call call;
    const char *none; /* the outcome when no row comes back */
    char id[37];
    const struct outcome_reply *verdict;
    struct str object;
};

static enum err run(struct db_request *db, struct pg *pg)
{
    struct asking *a = OWNER_OF(db, struct asking, db);
    enum err e = pg_ask(pg, &a->call, db->job.deadline_ns);
    if (e)
        return e;
    if (!(a->verdict = verdict_of(a->call.rows == 1 ? pg_get(&a->call, 0, 0) : str_of(a->none))))
        return ERR_DATABASE;
    if (a->verdict->code)
        return OK;
    a->object = arena_copy(db->rq->arena, pg_get(&a->call, 0, 1));
    return a->object.at ? OK : ERR_MEMORY;
}

static void answer(struct db_request *db)
{
    struct asking *a = OWNER_OF(db, struct asking, db);
    const struct outcome_reply *v = a->verdict;
    if (a->call.ask == &make_charge)
        counter_add(&charges, 1, v->outcome);
    if (v->code) {
        reply_refuse(db->rq, v->status, v->code, v->message);
        return;
    }
    reply_body(db->rq, "application/json", a->object);
    reply_send(db->rq, v->status);
}

static struct asking *asking_new(struct request *rq, const struct statement *ask)
{
    struct asking *a = db_request_new(rq, sizeof *a, run, answer);
    if (!a)
        return NULL;
    a->call.ask = ask;
    a->none = "unknown";
    return a;
}

static void go(struct asking *a, struct billing *context)
{
    db_request_start(&a->db, atomic_load(&context->pool));
}

static struct pg_arg text_or_null(const char *text)
{
    return text && *text ? pg_text(text) : pg_null();
}

static void refuse_input(struct request *rq, enum err e, const struct complaint *complaint)
{
    if (e == ERR_INPUT)
        reply_refuse(rq, 400, complaint->code, complaint->message);
    else
        reply_fault(rq, e);
}

void charge_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct charge_request in;
    struct complaint complaint;
    enum err e = charge_read(rq->arena, rq->body, &in, &complaint);
    if (e) {
        refuse_input(rq, e, &complaint);
        return;
    }
    struct asking *a = asking_new(rq, &make_charge);
    if (!a)
        return;
    memcpy(a->id, in.account_id, sizeof a->id);
    a->call.args[0] = pg_text(a->id);
    a->call.args[1] = pg_i64(in.amount_micros);
    a->call.args[2] = pg_text(in.reference);
    a->call.args[3] = text_or_null(in.occurred_at);
    go(a, billing);
}

/* A request about what the path names. */
static struct asking *asking_about(struct request *rq, const struct statement *ask)
{
    struct asking *a = asking_new(rq, ask);
    if (!a || !request_id(rq, 0, a->id))
        return NULL;
    a->call.args[0] = pg_text(a->id);
    return a;
}

void account_show_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct asking *a = asking_about(rq, &show_account);
    if (a)
        go(a, billing);
}

void account_delete_handle(struct request *rq, const struct caller *caller, void *billing)
{
    struct asking *a = asking_about(rq, &delete_account);
    if (!a)
        return;
    a->call.args[1] = text_or_null(caller->user_id);
    a->call.args[2] = pg_text(rq->correlation_id);
    go(a, billing);
}

void valid_balance_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct asking *a = asking_about(rq, &check_balance);
    if (!a)
        return;
    int64_t amount;
    struct str wanted = request_query(rq, "amount_micros");
    if (!wanted.at || str_to_i64(wanted, 0, AMOUNT_MOST, &amount)) {
        reply_refuse(rq, 400, "INVALID_AMOUNT", "amount_micros must be a whole number from 0 to 9007199254740992.");
        return;
    }
    a->call.args[1] = pg_i64(amount);
    go(a, billing);
}

void subscribe_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct subscribe_request in;
    struct complaint complaint;
    enum err e = subscribe_read(rq->arena, rq->body, &in, &complaint);
    if (e) {
        refuse_input(rq, e, &complaint);
        return;
    }
    struct asking *a = asking_new(rq, &subscribe);
    if (!a)
        return;
    memcpy(a->id, in.account_id, sizeof a->id);
    a->call.args[0] = pg_text(a->id);
    a->call.args[1] = pg_i64(in.amount_micros);
    a->call.args[2] = pg_i64(in.period_seconds);
    a->call.args[3] = text_or_null(in.first_charge_at);
    a->call.args[4] = text_or_null(in.reference);
    go(a, billing);
}

void subscription_show_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct asking *a = asking_about(rq, &show_subscription);
    if (!a)
        return;
    a->none = "unsubscribed";
    go(a, billing);
}

void unsubscribe_handle(struct request *rq, const struct caller *caller, void *billing)
{
    (void)caller;
    struct asking *a = asking_about(rq, &unsubscribe);
    if (a)
        go(a, billing);
}
