/* A customer asks for its own deletion, and takes it back.
 *
 * What proves the wish is the server's to decide: accounts with a password type it again; single sign-on and API keys
 * write DELETE, so that no script does it by accident. */
#include <string.h>

#include "api/db_request.h"
#include "base/json.h"
#include "credentials/verifier.h"
#include "customers/freeze_http.h"
#include "customers/statements.h"
#include "limits/headers.h"

#define PHRASE "DELETE"

struct wish {
    struct db_request db;
    struct ticket ticket;
    struct verification check;
    struct customers *context;
    struct request *rq;
    const struct caller *caller;
    struct str password, phrase; /* absent when not given */
    struct str hash;             /* absent: the phrase is the proof */
    const char *code, *message;  /* of a refusal that is kept in the audit */
};

static struct wish *wish_of(struct db_request *db)
{
    return OWNER_OF(db, struct wish, db);
}

static void refuse(struct wish *w, const char *code, const char *message)
{
    reply_refuse(w->rq, 400, code, message);
}

static enum err write_refusal(struct db_request *db, struct pg *pg)
{
    struct wish *w = wish_of(db);
    struct actor actor = actor_of(w->rq, w->caller);
    struct pg_call note = customer_log(w->caller->customer_id, event_action(CUSTOMER_FREEZES), &actor, w->code);
    return pg_ask(pg, &note, db->job.deadline_ns);
}

static void tell_refusal(struct db_request *db)
{
    struct wish *w = wish_of(db);
    refuse(w, w->code, w->message);
}

/* A proof that was weighed and found wanting: whoever looks into the account later shall see that it was tried. */
static void refuse_proof(struct wish *w, const char *code, const char *message)
{
    w->code = code;
    w->message = message;
    w->db.run = write_refusal;
    w->db.answer = tell_refusal;
    db_request_start(&w->db, atomic_load(&w->context->pool));
}

static void freeze(struct wish *w)
{
    struct actor actor = actor_of(w->rq, w->caller);
    change_over_http(w->rq, w->context, w->caller->customer_id, CUSTOMER_FREEZES, &actor);
}

static void verified(struct verification *v)
{
    struct wish *w = OWNER_OF(v, struct wish, check);
    if (v->err)
        reply_fault(w->rq, v->err);
    else if (!v->matches)
        refuse_proof(w, "WRONG_PASSWORD", "That is not the password of this account.");
    else
        freeze(w);
}

/* Tries are counted before they are made, by user: a stolen token must not become a tool for guessing the password. */
static void admitted(struct ticket *ticket)
{
    struct wish *w = OWNER_OF(ticket, struct wish, ticket);
    if (ticket->verdict == ADMISSION_FAILED) {
        reply_fault(w->rq, ticket->fault);
        return;
    }
    limit_headers(w->rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED) {
        reply_refuse(w->rq, 429, "TOO_MANY_TRIES", "Too many passwords were tried. Please wait before trying again.");
        return;
    }
    w->check = (struct verification){.password = w->password, .hash = w->hash, .verified = verified};
    enum err e = verifier_ask(w->context->verifier, &w->check);
    if (e)
        reply_fault(w->rq, e);
}

static void check_password(struct wish *w)
{
    w->ticket.decided = admitted;
    ticket_count_in(w->context->admission, &w->ticket,
                    counted_by_email(TIER_LOGIN, w->context->identifier_key, str_of(w->caller->user_id)));
    ticket_count_in(w->context->admission, &w->ticket,
                    counted_by_ip(TIER_LOGIN_IP, w->context->identifier_key, &w->rq->client));
    admission_ask(w->context->admission, &w->ticket);
}

static enum err read_proof(struct db_request *db, struct pg *pg)
{
    struct wish *w = wish_of(db);
    struct pg_call call = {.ask = &login_find_proof, .args = {pg_text(w->caller->user_id)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    w->hash = (struct str){NULL, 0};
    if (call.rows == 1 && !pg_is_null(&call, 0, 0))
        w->hash = arena_copy(w->rq->arena, pg_get(&call, 0, 0));
    return OK;
}

static void weigh(struct db_request *db)
{
    struct wish *w = wish_of(db);
    if (w->hash.at && !w->password.at)
        refuse_proof(w, "PASSWORD_REQUIRED",
                     "This account has a password: send {\"password\":…} to confirm the deletion.");
    else if (w->hash.at)
        check_password(w);
    else if (!w->phrase.at)
        refuse_proof(
            w, "PHRASE_REQUIRED",
            "These credentials have no password: send {\"confirmation_phrase\":\"DELETE\"} to confirm the deletion.");
    else if (!str_eq(w->phrase, STR(PHRASE)))
        refuse_proof(w, "WRONG_PHRASE", "confirmation_phrase must be exactly DELETE.");
    else
        freeze(w);
}

/* A member that is there must be a string; 400 was sent otherwise. */
static bool read_member(struct wish *w, const json_t *body, const char *name, struct str *ret)
{
    struct str given;
    enum err e = json_get_str(body, name, &given);
    if (e == ERR_MISSING)
        return true;
    if (e || !(*ret = arena_copy(w->rq->arena, given)).at) {
        refuse(w, "INVALID_BODY", "password and confirmation_phrase are strings.");
        return false;
    }
    return true;
}

static bool read_body(struct wish *w)
{
    struct why why;
    AUTO(json) json_t *body = json_read_object(w->rq->body, &why);
    if (!body) {
        refuse(w, "INVALID_BODY", "The body must be a JSON object with either password or confirmation_phrase.");
        return false;
    }
    if (!read_member(w, body, "password", &w->password) || !read_member(w, body, "confirmation_phrase", &w->phrase))
        return false;
    if (!w->password.at == !w->phrase.at) {
        refuse(w, w->password.at ? "PROOF_AMBIGUOUS" : "PROOF_MISSING",
               "Send exactly one of password and confirmation_phrase.");
        return false;
    }
    return true;
}

void unregister_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct wish *w = db_request_new(rq, sizeof *w, read_proof, weigh);
    if (!w)
        return;
    w->context = customers;
    w->rq = rq;
    w->caller = caller;
    if (!read_body(w))
        return;
    if (caller->by_key)
        weigh(&w->db); /* a key has no password, whoever owns the account */
    else
        db_request_start(&w->db, atomic_load(&w->context->pool));
}

void recover_own_handle(struct request *rq, const struct caller *caller, void *customers)
{
    struct actor actor = actor_of(rq, caller);
    change_over_http(rq, customers, caller->customer_id, CUSTOMER_RECOVERS, &actor);
}
