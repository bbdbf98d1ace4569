/* POST /auth/login: an address with its password, or with a code that was mailed to it, for a session of Reclaim's own.
 * Frozen customers may sign in, to recover.
 *
 * An unknown address takes the same steps and as long: the password is checked against a hash that matches nothing. Other
 * reasons to refuse an account are answered after the right password only. */
#include <stdio.h>
#include <string.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/email.h"
#include "base/log.h"
#include "base/metrics.h"
#include "credentials/verifier.h"
#include "customers/decoy.h"
#include "customers/sign_in_codes.h"
#include "customers/statements.h"
#include "limits/headers.h"

METRIC_COUNTER(logins, "reclaim_logins_total", "Passwords and codes tried at /auth/login.", "outcome");

struct login {
    struct db_request db;
    struct ticket ticket;
    struct verification check;
    struct customers *context;
    struct request *rq;
    struct str email, password, hash;
    struct str code; /* as typed; absent: the password is the proof */
    struct session session;
    char user_id[37];
    char pair_hash[DIGEST_HEX_LEN + 1]; /* of the address and the client's network */
    bool at_address_limit; /* so many passwords were tried for the address that only known networks go on */
    bool known_network;    /* with a successful sign-in to the address */
    bool may_sign_in;      /* has confirmed the address, and is not banned */
    enum { FACTOR_NONE, FACTOR_VERIFIED, FACTOR_UNKNOWN } second_factor;
};

static bool read_body(struct login *l);
static void count_in(struct login *l);
static void limits_decided(struct ticket *ticket);
static enum err read_user(struct db_request *db, struct pg *pg);
static void check_password(struct db_request *db);
static void password_checked(struct verification *v);
static enum err begin_session(struct db_request *db, struct pg *pg);
static enum err use_code(struct db_request *db, struct pg *pg);
static void answer(struct db_request *db);
static void refuse_credentials(struct login *l);
static void send_token(struct login *l);
static void refuse_second_factor(struct login *l);
static void refuse_unknown_factor(struct login *l);

/* 1. On the loop. */
void login_handle(struct request *rq)
{
    struct customers *context = rq->route->context;
    struct login *l = db_request_new(rq, sizeof *l, read_user, check_password);
    if (!l)
        return;
    l->context = context;
    l->rq = rq;
    if (!read_body(l))
        return;
    l->ticket.decided = limits_decided;
    count_in(l);
    admission_ask(context->admission, &l->ticket);
}

/* A code has tries of its own: passwords that others try do not keep its owner out. Passwords count for the address and the
 * client's network together, so that strangers use up their own tries; those for the address from everywhere are a soft
 * tier, since networks that its owner signed in from are let through. */
static void count_in(struct login *l)
{
    struct admission *admission = l->context->admission;
    const struct digest *key = l->context->identifier_key;
    struct counted pair = counted_by_email_and_ip(TIER_LOGIN, key, l->email, &l->rq->client);
    digest_hex(&pair.subject, l->pair_hash);
    if (!l->code.at)
        ticket_count_in(admission, &l->ticket, pair);
    ticket_count_client(admission, &l->ticket, TIER_LOGIN_IP, key, &l->rq->client);
    if (!l->code.at)
        ticket_count_softly(admission, &l->ticket, counted_by_email(TIER_LOGIN_ADDRESS, key, l->email));
}

/* False after a 400 was sent. */
static bool read_body(struct login *l)
{
    static const char wrong[] = "The body must be a JSON object with the strings email and either password or code.";
    static const struct field email = {.name = "email", .required = true, .code = "INVALID_BODY", .message = wrong},
                              password = {.name = "password",
                                          .refuses_null = true,
                                          .code = "INVALID_BODY",
                                          .message = wrong},
                              code = {.name = "code", .refuses_null = true, .code = "INVALID_BODY", .message = wrong},
                              address = {.name = "email",
                                         .code = "INVALID_EMAIL",
                                         .message = "email is not an e-mail address."};
    AUTO(fields) struct fields f = fields_read(l->rq->arena, l->rq->body, "INVALID_BODY", wrong);
    struct str given = field_text(&f, &email);
    l->password = str_of(field_copy(&f, &password));
    l->code = str_of(field_copy(&f, &code));
    if (!f.err && !l->password.at == !l->code.at)
        fields_fail(&f, l->code.at ? &code : &password, "is one of two");
    if (!f.err && email_normalise(l->rq->arena, given, &l->email))
        fields_fail(&f, &address, "is not an e-mail address");
    return !fields_refuse(&f, l->rq);
}

static void refuse_limited(struct login *l)
{
    counter_add(&logins, 1, "limited");
    reply_refuse(l->rq, 429, "TOO_MANY_TRIES", "Too many passwords were tried. Please wait before trying again.");
}

/* Says when to come back and nothing else about what others tried. */
static void refuse_address(struct login *l)
{
    ticket_refuse_softly(&l->ticket);
    limit_retry_header(l->rq, &l->ticket);
    refuse_limited(l);
}

/* 2. On the batching thread, or still on the loop. */
static void limits_decided(struct ticket *ticket)
{
    struct login *l = OWNER_OF(ticket, struct login, ticket);
    if (ticket->verdict == ADMISSION_FAILED) {
        reply_fault(l->rq, ticket->fault);
        return;
    }
    l->at_address_limit = ticket->verdict == ADMISSION_GRANTED && ticket_soft_is_full(ticket);
    if (!l->at_address_limit)
        limit_headers(l->rq, ticket);
    if (ticket->verdict == ADMISSION_REFUSED) {
        refuse_limited(l);
        return;
    }
    if (l->code.at) {
        l->db.run = use_code;
        l->db.answer = answer;
    }
    db_request_start(&l->db, customers_pool(l->context, LANE_ACCOUNT));
}

static enum err find_network(struct login *l, struct pg *pg)
{
    struct pg_call known = {.ask = &session_find_network, .args = {pg_text(l->pair_hash)}};
    enum err e = pg_ask(pg, &known, l->db.job.deadline_ns);
    l->known_network = !e && pg_get_bool(&known, 0, 0);
    return e;
}

/* 3. On a worker, for a password. */
static enum err read_user(struct db_request *db, struct pg *pg)
{
    struct login *l = OWNER_OF(db, struct login, db);
    struct pg_call call = {.ask = &login_find_user, .args = {pg_text(l->email.at)}};
    enum err e = l->at_address_limit ? find_network(l, pg) : OK;
    if (e || (l->at_address_limit && !l->known_network))
        return e;
    decoy_refresh(l->context, pg, db->job.deadline_ns);
    e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e || pg_is_null(&call, 0, 0))
        return e;
    l->hash = arena_copy(l->rq->arena, pg_get(&call, 0, 1));
    l->may_sign_in = pg_get_bool(&call, 0, 2);
    l->second_factor = pg_is_null(&call, 0, 3)    ? FACTOR_UNKNOWN
                       : pg_get_bool(&call, 0, 3) ? FACTOR_VERIFIED
                                                  : FACTOR_NONE;
    return str_copy(pg_get(&call, 0, 0), l->user_id, sizeof l->user_id);
}

/* 4. On the same worker. */
static void check_password(struct db_request *db)
{
    struct login *l = OWNER_OF(db, struct login, db);
    if (l->at_address_limit && !l->known_network) {
        refuse_address(l);
        return;
    }
    if (l->at_address_limit)
        limit_headers(l->rq, &l->ticket);
    l->check = (struct verification){.password = l->password, .hash = l->hash, .verified = password_checked};
    enum err e = verifier_ask(l->context->verifier, &l->check);
    if (e)
        reply_fault(l->rq, e);
}

/* 5. On a verifier's thread. */
static void password_checked(struct verification *v)
{
    struct login *l = OWNER_OF(v, struct login, check);
    if (!v->err && v->verdict.unsupported)
        unsupported_hash_seen();
    if (v->err) {
        reply_fault(l->rq, v->err);
    } else if (!v->verdict.matches || !l->may_sign_in) {
        refuse_credentials(l);
    } else if (l->second_factor == FACTOR_NONE) {
        l->db.run = begin_session;
        l->db.answer = answer;
        db_request_start(&l->db, customers_pool(l->context, LANE_ACCOUNT));
    } else if (l->second_factor == FACTOR_VERIFIED) {
        refuse_second_factor(l);
    } else {
        refuse_unknown_factor(l);
    }
}

/* 6. On a worker, after the right password. */
static enum err begin_session(struct db_request *db, struct pg *pg)
{
    struct login *l = OWNER_OF(db, struct login, db);
    enum err e = session_begin(pg, l->user_id, db->job.deadline_ns, &l->session);
    if (!e && l->session.id[0])
        session_note(pg, l->pair_hash, db->job.deadline_ns);
    return e;
}

/* 3 to 6. On a worker, for a code: it proves single sign-on users and those with a second factor, too. */
static enum err use_code(struct db_request *db, struct pg *pg)
{
    struct login *l = OWNER_OF(db, struct login, db);
    struct code_proof proof = {l->context, l->email, l->code, &l->rq->client, db->job.deadline_ns};
    enum err e = sign_in_code_use(&proof, pg, &l->session);
    if (!e && l->session.id[0])
        session_note(pg, l->pair_hash, db->job.deadline_ns);
    return e;
}

/* 7. On the same worker. */
static void answer(struct db_request *db)
{
    struct login *l = OWNER_OF(db, struct login, db);
    if (l->session.id[0])
        send_token(l);
    else
        refuse_credentials(l);
}

static void refuse_credentials(struct login *l)
{
    counter_add(&logins, 1, "wrong");
    reply_header(l->rq, "WWW-Authenticate", "Bearer");
    reply_refuse(l->rq, 401, "INVALID_CREDENTIALS",
                 l->code.at ? "The code is wrong, was used or has expired. Please ask for a new one."
                            : "Address and password do not match.");
}

static void send_token(struct login *l)
{
    AUTO(buf) struct buf token = buf_new(4096);
    AUTO(buf) struct buf out = buf_new(8192);
    int64_t now_us = clock_wall_us();
    struct jwt_grant grant = {.role = "authenticated",
                              .sub = l->session.user_id,
                              .session = l->session.id,
                              .issued_us = now_us,
                              .expires_us = now_us + SESSION_LIFE_S * INT64_C(1000000)};
    enum err e = jwt_sign(l->context->token_key, &grant, &token);
    if (e) {
        reply_fault(l->rq, e);
        return;
    }
    struct json_writer w = json_to(&out);
    json_open(&w, '{');
    json_key(&w, "token");
    json_str(&w, buf_str(&token));
    json_key(&w, "expires_in");
    json_i64(&w, SESSION_LIFE_S);
    json_close(&w, '}');
    counter_add(&logins, 1, "ok");
    reply_json(l->rq, 200, buf_str(&out));
    secret_wipe(token.at, token.len);
    secret_wipe(out.at, out.len);
}

static void refuse_second_factor(struct login *l)
{
    counter_add(&logins, 1, "second_factor");
    reply_refuse(l->rq, 403, "MFA_REQUIRED",
                 "This account has a second factor. Sign in at your identity provider and send its token instead, or "
                 "ask for a code with POST /auth/code.");
}

static void refuse_unknown_factor(struct login *l)
{
    counter_add(&logins, 1, "fault");
    log_error("login refused: auth.mfa_factors cannot be read in full",
              F_STR("needed", "GRANT SELECT (user_id, status), and with row security a policy that shows all rows"));
    reply_refuse(l->rq, 503, "UNAVAILABLE",
                 "Reclaim cannot tell right now whether this account has a second factor. Please try again later.");
}
