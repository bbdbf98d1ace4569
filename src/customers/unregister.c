/* A customer asks for its own deletion, and recovers from it.
 *
 * The server decides which proof is needed: accounts with a password send it again; single sign-on and API keys send the
 * phrase DELETE, so that no script does it by accident. Users without a password may send a mailed code instead, and with
 * RECLAIM_PROOF=strict they must. */
#include "api/db_request.h"
#include "api/fields.h"
#include "credentials/verifier.h"
#include "customers/decoy.h"
#include "customers/freeze_http.h"
#include "customers/sign_in_codes.h"
#include "customers/statements.h"
#include "limits/headers.h"

#define PHRASE "DELETE"

struct unregistration {
    struct db_request db;
    struct ticket ticket;
    struct verification check;
    struct customers *context;
    struct request *rq;
    const struct caller *caller;
    struct str password, phrase, mailed_code; /* absent when not given */
    struct str hash, email;                   /* of the user; absent: without a password */
    bool code_is_right;
    const char *code, *message; /* of a refusal that is written to customer_log */
};

static bool read_body(struct unregistration *u);
static enum err read_hash(struct db_request *db, struct pg *pg);
static void check_proof(struct db_request *db);
static void check_without_password(struct unregistration *u);
static void count_in(struct unregistration *u);
static void limits_decided(struct ticket *ticket);
static void password_checked(struct verification *v);
static enum err spend_code(struct db_request *db, struct pg *pg);
static void code_checked(struct db_request *db);
static void refuse_proof(struct unregistration *u, const char *code, const char *message);
static enum err write_refusal(struct db_request *db, struct pg *pg);
static void answer_refusal(struct db_request *db);
static void freeze(struct unregistration *u);

static struct unregistration *unregistration_of(struct db_request *db)
{
    return OWNER_OF(db, struct unregistration, db);
}

/* 1. On the loop. */
void unregister_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct unregistration *u = db_request_new(rq, sizeof *u, read_hash, check_proof);
    if (!u)
        return;
    u->context = customers;
    u->rq = rq;
    u->caller = caller;
    if (!read_body(u))
        return;
    if (caller->by_key)
        check_proof(&u->db); /* a key has no password, even if the owner of the account has one */
    else
        db_request_start(&u->db, customers_pool(u->context, LANE_ACCOUNT));
}

/* False after a 400 was sent. */
static bool read_body(struct unregistration *u)
{
#define PROOF(field)                                                                                                   \
    {                                                                                                                  \
        .name = (field), .refuses_null = true, .code = "INVALID_BODY",                                                 \
        .message = "password, confirmation_phrase and code are strings."                                               \
    }
    static const struct field password = PROOF("password"), phrase = PROOF("confirmation_phrase"), code = PROOF("code");
    AUTO(fields)
    struct fields f = fields_read(u->rq->arena, u->rq->body, "INVALID_BODY",
                                  "The body must be a JSON object with one of password, confirmation_phrase and code.");
    u->password = str_of(field_copy(&f, &password));
    u->phrase = str_of(field_copy(&f, &phrase));
    u->mailed_code = str_of(field_copy(&f, &code));
    if (fields_refuse(&f, u->rq))
        return false;
    int given = (u->password.at != NULL) + (u->phrase.at != NULL) + (u->mailed_code.at != NULL);
    if (given != 1) {
        reply_refuse(u->rq, 400, given ? "PROOF_AMBIGUOUS" : "PROOF_MISSING",
                     "Send exactly one of password, confirmation_phrase and code.");
        return false;
    }
    return true;
}

/* 2. On a worker: whether the account has a password. */
static enum err read_hash(struct db_request *db, struct pg *pg)
{
    struct unregistration *u = unregistration_of(db);
    struct pg_call call = {.ask = &login_find_proof, .args = {pg_text(u->caller->user_id)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    u->hash = u->email = (struct str){NULL, 0};
    if (call.rows == 1 && !pg_is_null(&call, 0, 0))
        u->hash = arena_copy(u->rq->arena, pg_get(&call, 0, 0));
    if (call.rows == 1 && !pg_is_null(&call, 0, 1))
        u->email = arena_copy(u->rq->arena, pg_get(&call, 0, 1));
    return OK;
}

/* 3. On the same worker, or on the loop for a key. */
static void check_proof(struct db_request *db)
{
    struct unregistration *u = unregistration_of(db);
    if (u->hash.at && !u->password.at)
        refuse_proof(u, "PASSWORD_REQUIRED",
                     "This account has a password: send {\"password\":…} to confirm the deletion.");
    else if (u->hash.at)
        count_in(u);
    else
        check_without_password(u);
}

static void check_without_password(struct unregistration *u)
{
    bool has_mailbox = !u->caller->by_key && u->email.at;
    if (u->mailed_code.at && has_mailbox)
        count_in(u);
    else if (u->context->strict_proof && has_mailbox)
        refuse_proof(u, "CODE_REQUIRED",
                     "Ask for a code with POST /auth/code, and send {\"code\":…} to confirm the deletion.");
    else if (!u->phrase.at)
        refuse_proof(
            u, "PHRASE_REQUIRED",
            "These credentials have no password: send {\"confirmation_phrase\":\"DELETE\"} to confirm the deletion.");
    else if (!str_eq(u->phrase, STR(PHRASE)))
        refuse_proof(u, "WRONG_PHRASE", "confirmation_phrase must be exactly DELETE.");
    else
        freeze(u);
}

/* Tries are counted before the check, by user: a stolen token must not serve for guessing the password. Codes have tries of
 * their own. */
static void count_in(struct unregistration *u)
{
    struct customers *context = u->context;
    u->ticket.decided = limits_decided;
    if (u->password.at)
        ticket_count_in(context->admission, &u->ticket,
                        counted_by_email(TIER_LOGIN, context->identifier_key, str_of(u->caller->user_id)));
    ticket_count_client(context->admission, &u->ticket, TIER_LOGIN_IP, context->identifier_key, &u->rq->client);
    admission_ask(context->admission, &u->ticket);
}

/* 4. On the batching thread, or still on the one before. */
static void limits_decided(struct ticket *ticket)
{
    struct unregistration *u = OWNER_OF(ticket, struct unregistration, ticket);
    if (ticket->verdict == ADMISSION_FAILED) {
        reply_fault(u->rq, ticket->fault);
        return;
    }
    limit_headers(u->rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED) {
        reply_refuse(u->rq, 429, "TOO_MANY_TRIES",
                     "Too many passwords or codes were tried. Please wait before trying again.");
        return;
    }
    if (u->mailed_code.at) {
        u->db.run = spend_code;
        u->db.answer = code_checked;
        db_request_start(&u->db, customers_pool(u->context, LANE_ACCOUNT));
        return;
    }
    u->check = (struct verification){.password = u->password, .hash = u->hash, .verified = password_checked};
    enum err e = verifier_ask(u->context->verifier, &u->check);
    if (e)
        reply_fault(u->rq, e);
}

/* 5. On a verifier's thread. */
static void password_checked(struct verification *v)
{
    struct unregistration *u = OWNER_OF(v, struct unregistration, check);
    if (!v->err && v->verdict.unsupported)
        unsupported_hash_seen();
    if (v->err)
        reply_fault(u->rq, v->err);
    else if (!v->verdict.matches)
        refuse_proof(u, "WRONG_PASSWORD", "That is not the password of this account.");
    else
        freeze(u);
}

/* 5. On a worker, for a code. A retry after a conflict finds it unused: its deletion was rolled back. */
static enum err spend_code(struct db_request *db, struct pg *pg)
{
    struct unregistration *u = unregistration_of(db);
    struct code_proof proof = {u->context, u->email, u->mailed_code, &u->rq->client, db->job.deadline_ns};
    return sign_in_code_spend(&proof, pg, u->caller->user_id, &u->code_is_right);
}

static void code_checked(struct db_request *db)
{
    struct unregistration *u = unregistration_of(db);
    if (u->code_is_right)
        freeze(u);
    else
        refuse_proof(u, "WRONG_CODE", "The code is wrong, was used or has expired. Please ask for a new one.");
}

/* Failed proof: writes customer_log, then answers 400. */
static void refuse_proof(struct unregistration *u, const char *code, const char *message)
{
    u->code = code;
    u->message = message;
    u->db.run = write_refusal;
    u->db.answer = answer_refusal;
    db_request_start(&u->db, customers_pool(u->context, LANE_ACCOUNT));
}

/* 6a. On a worker. */
static enum err write_refusal(struct db_request *db, struct pg *pg)
{
    struct unregistration *u = unregistration_of(db);
    struct actor actor = actor_of(u->rq, u->caller);
    struct pg_call row = customer_log(u->caller->customer_id, event_action(CUSTOMER_FREEZES), &actor, u->code);
    return pg_ask(pg, &row, db->job.deadline_ns);
}

static void answer_refusal(struct db_request *db)
{
    struct unregistration *u = unregistration_of(db);
    reply_refuse(u->rq, 400, u->code, u->message);
}

/* 6b. On a worker: freeze_http.c. */
static void freeze(struct unregistration *u)
{
    struct actor actor = actor_of(u->rq, u->caller);
    change_over_http(u->rq, u->context, u->caller->customer_id, CUSTOMER_FREEZES, &actor, NULL);
}

void recover_own_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, customers, caller->customer_id, CUSTOMER_RECOVERS, &actor, NULL);
}
