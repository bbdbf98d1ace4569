/* POST /auth/code: mails a code to an address that may sign in, for users without a password or with a second factor.
 *
 * The answer is the same for every address and is held. An address that may not sign in gets a row as well, with the hash of
 * no code: trying a code takes the same writes for every address. */
#include "customers/sign_in_codes.h"

#include <stdio.h>

#include "api/db_request.h"
#include "api/fields.h"
#include "base/clock.h"
#include "base/email.h"
#include "base/log.h"
#include "base/metrics.h"
#include "base/random.h"
#include "customers/decoy.h"
#include "limits/headers.h"

#define CODE_LIFE_S 300

METRIC_COUNTER(asked, "reclaim_sign_in_codes_total", "Requests for a sign-in code.", "outcome");

static const struct code_shape shape = CODE_SHAPE_LETTERS;

static const struct statement find_user = {
    .name = "sign_in_find_user",
    .sql = "SELECT reclaim.sign_in_user($1) AS id",
    .params = 1,
    .columns = "id:uuid",
};

static const struct statement store_code = {
    .name = "sign_in_store_code",
    .sql = "INSERT INTO reclaim.sign_in_codes AS c (email_hash, user_id, code_hash, code_salt, expires_at)"
           " VALUES ($1, $2::uuid, decode($3, 'hex'), decode($4, 'hex'),"
           "  (SELECT reclaim.now()) + $5::int8 * interval '1 second')"
           " ON CONFLICT (email_hash) DO UPDATE SET user_id = excluded.user_id, code_hash = excluded.code_hash,"
           "  code_salt = excluded.code_salt, expires_at = excluded.expires_at, tries = 0,"
           "  network_tries = '{}', created_at = excluded.created_at",
    .params = 5,
    .columns = "",
};

static const struct statement take_try = {
    .name = "sign_in_take_try",
    .sql = "UPDATE reclaim.sign_in_codes SET tries = tries + 1, network_tries = " CODE_NETWORK_TRIES_PLUS(
        "$2") " WHERE email_hash = $1 AND expires_at > (SELECT reclaim.now()) AND tries < $3::int4"
              " AND " CODE_NETWORK_TRIES(
                  "$2") " < " CODE_NETWORK_TRIES_MAX
                        " RETURNING encode(code_hash, 'hex') AS code_hash, encode(code_salt, 'hex') AS code_salt",
    .params = 3,
    .columns = "code_hash:text code_salt:text",
};

/* The first of several requests with the same code deletes it. Its mailbox proves the user's address of today only. */
static const struct statement use_code = {
    .name = "sign_in_use_code",
    .sql = "WITH used AS (DELETE FROM reclaim.sign_in_codes WHERE email_hash = $1 AND code_salt = decode($2, 'hex')"
           " RETURNING user_id) " SESSION_INSERT("'code'")
               SESSION_EXPIRES("$4") " FROM used JOIN auth.users u ON u.id = used.user_id WHERE lower(u.email::text) = "
                                     "$3 AND" SESSION_MAY_BEGIN,
    .params = 4,
    .columns = "id:uuid user_id:uuid",
};

/* The same for a user who is signed in already. */
static const struct statement spend_code = {
    .name = "sign_in_spend_code",
    .sql = "DELETE FROM reclaim.sign_in_codes WHERE email_hash = $1 AND code_salt = decode($2, 'hex')"
           " AND user_id = $3::uuid RETURNING user_id",
    .params = 3,
    .columns = "user_id:uuid",
};

static const struct statement read_mail = {
    .name = "sign_in_read_mail",
    .sql =
        "SELECT u.email::text AS email, ceil(extract(epoch FROM c.expires_at - (SELECT reclaim.now())))::int8 AS left_s"
        " FROM reclaim.sign_in_codes c JOIN auth.users u ON u.id = c.user_id"
        " WHERE c.user_id = $1::uuid AND c.code_salt = decode($2, 'hex') AND u.deleted_at IS NULL",
    .params = 2,
    .columns = "email:text left_s:int8",
};

const struct statement *const sign_in_statements[] = {&find_user,  &store_code, &take_try,        &use_code,
                                                      &spend_code, &read_mail,  &decoy_read_usual};
const size_t sign_in_statement_count = COUNT_OF(sign_in_statements);

struct code_request {
    struct db_request db;
    struct ticket ticket;
    struct customers *context;
    struct request *rq;
    struct str email;
    enum language language; /* of the mail */
    const char *outcome;
};

static bool read_body(struct code_request *c);
static void limits_decided(struct ticket *ticket);
static enum err make_code(struct db_request *db, struct pg *pg);
static enum err store_and_mail(struct code_request *c, struct pg *pg, const char *user_id);
static enum err store_nothing(struct code_request *c, struct pg *pg);
static void answer(struct db_request *db);

static struct code_request *code_request_of(struct db_request *db)
{
    return OWNER_OF(db, struct code_request, db);
}

/* What the database and the limits know an address by. */
static void hash_email(const struct customers *context, struct str email, char into[DIGEST_HEX_LEN + 1])
{
    struct digest hash = digest_hmac(context->identifier_key, email);
    digest_hex(&hash, into);
}

/* 1. On the loop. */
void sign_in_code_handle(struct request *rq)
{
    struct customers *context = rq->route->context;
    struct code_request *c = db_request_new(rq, sizeof *c, make_code, answer);
    if (!c)
        return;
    c->context = context;
    c->rq = rq;
    c->language =
        language_choose(request_header(rq, "Accept-Language"), mail_language(post_design(context->post), STR("")));
    if (!read_body(c))
        return;
    c->ticket.decided = limits_decided;
    ticket_count_softly(context->admission, &c->ticket, counted_by_email(TIER_CODE, context->identifier_key, c->email));
    ticket_count_client(context->admission, &c->ticket, TIER_CODE_IP, context->identifier_key, &rq->client);
    admission_ask(context->admission, &c->ticket);
}

/* False after a 400 was sent. */
static bool read_body(struct code_request *c)
{
    static const char wrong[] = "The body must be a JSON object with the string email.";
    static const struct field email = {.name = "email", .required = true, .code = "INVALID_BODY", .message = wrong},
                              address = {.name = "email",
                                         .code = "INVALID_EMAIL",
                                         .message = "email is not an e-mail address."};
    AUTO(fields) struct fields f = fields_read(c->rq->arena, c->rq->body, "INVALID_BODY", wrong);
    struct str given = field_text(&f, &email);
    if (!f.err && email_normalise(c->rq->arena, given, &c->email))
        fields_fail(&f, &address, "is not an e-mail address");
    return !fields_refuse(&f, c->rq);
}

/* 2. On the batching thread, or still on the loop. */
static void limits_decided(struct ticket *ticket)
{
    struct code_request *c = OWNER_OF(ticket, struct code_request, ticket);
    if (ticket->verdict == ADMISSION_FAILED) {
        reply_fault(c->rq, ticket->fault);
        return;
    }
    if (ticket->verdict == ADMISSION_GRANTED && ticket_soft_is_full(ticket)) {
        /* The address's limit: its counts would tell of requests by others. */
        ticket_refuse_softly(ticket);
        limit_retry_header(c->rq, ticket);
    } else {
        limit_headers(c->rq, ticket);
    }
    if (ticket->verdict == ADMISSION_REFUSED) {
        counter_add(&asked, 1, "limited");
        reply_unhold_when_crowded(c->rq);
        reply_refuse(c->rq, 429, "TOO_MANY_TRIES", "Too many codes were asked for. Please wait before trying again.");
        return;
    }
    db_request_start(&c->db, customers_pool(c->context, LANE_ANONYMOUS));
}

/* 3. On a worker. */
static enum err make_code(struct db_request *db, struct pg *pg)
{
    static atomic_bool warned;
    struct code_request *c = code_request_of(db);
    struct pg_call found = {.ask = &find_user, .args = {pg_text(c->email.at)}};
    char user_id[37] = "";
    enum err e = pg_ask(pg, &found, db->job.deadline_ns);
    if (e)
        return e;
    if (!pg_is_null(&found, 0, 0) && (e = str_copy(pg_get(&found, 0, 0), user_id, sizeof user_id)))
        return e;
    if (!post_has_provider(c->context->post)) {
        c->outcome = "no_provider";
        if (!atomic_exchange(&warned, true))
            log_warn("no mail provider is set: sign-in codes are not sent");
        return store_nothing(c, pg);
    }
    c->outcome = user_id[0] ? "sent" : "none";
    return user_id[0] ? store_and_mail(c, pg, user_id) : store_nothing(c, pg);
}

static struct pg_call store(const char *email_hash, const char *user_id, const char *code_hash, const char *salt)
{
    return (struct pg_call){.ask = &store_code,
                            .args = {pg_text(email_hash), pg_text_or_null(user_id), pg_text(code_hash), pg_text(salt),
                                     pg_i64(CODE_LIFE_S)}};
}

/* The payload has enough to derive the code again, but not the code. */
static enum err store_and_mail(struct code_request *c, struct pg *pg, const char *user_id)
{
    struct customers *context = c->context;
    struct code_salt salt = code_salt_new();
    struct code code = code_derive(context->code_keys, &shape, &salt, user_id);
    struct digest hash = code_hash(context->code_keys, &salt, &code);
    char salt_hex[2 * CODE_SALT_LEN + 1], hash_hex[DIGEST_HEX_LEN + 1], email_hash[DIGEST_HEX_LEN + 1], payload[320];
    code_salt_hex(&salt, salt_hex);
    digest_hex(&hash, hash_hex);
    hash_email(context, c->email, email_hash);
    (void)snprintf(payload, sizeof payload,
                   "{\"template\":\"sign-in-code\",\"user_id\":\"%s\",\"salt\":\"%s\",\"correlation_id\":\"%s\","
                   "\"language\":\"%s\"}",
                   user_id, salt_hex, c->rq->correlation_id, language_tag(c->language));
    AUTO(mail) struct mail mail;
    code_mail_write(&sign_in_code_words,
                    &(struct code_letter){.design = post_design(context->post),
                                          .language = c->language,
                                          .shape = &shape,
                                          .code = &code,
                                          .minutes = CODE_LIFE_S / 60,
                                          .reference = c->rq->correlation_id},
                    &mail);
    mail.expires_us = clock_installation_us() + CODE_LIFE_S * INT64_C(1000000);
    (void)snprintf(mail.to, sizeof mail.to, "%.*s", STR_ARGS(c->email));
    secret_wipe(&code, sizeof code);

    struct pg_call writes[2] = {store(email_hash, user_id, hash_hex, salt_hex)};
    AUTO(work_item)
    struct work_item *item = mail_promise(context->post, context->engine, payload, &mail, &writes[1]);
    if (!item)
        return ERR_MEMORY;
    enum err e = pg_trip(pg, writes, COUNT_OF(writes), c->db.job.deadline_ns);
    if (e)
        return e;
    work_inserted(item, &writes[1]);
    mail_send(&item, NULL);
    return OK;
}

/* Random bytes in place of a hash. */
static enum err store_nothing(struct code_request *c, struct pg *pg)
{
    struct code_salt salt = code_salt_new();
    struct digest hash;
    char salt_hex[2 * CODE_SALT_LEN + 1], hash_hex[DIGEST_HEX_LEN + 1], email_hash[DIGEST_HEX_LEN + 1];
    random_bytes(hash.bytes, sizeof hash.bytes);
    code_salt_hex(&salt, salt_hex);
    digest_hex(&hash, hash_hex);
    hash_email(c->context, c->email, email_hash);
    struct pg_call write = store(email_hash, NULL, hash_hex, salt_hex);
    return pg_ask(pg, &write, c->db.job.deadline_ns);
}

/* 4. On the same worker. */
static void answer(struct db_request *db)
{
    struct code_request *c = code_request_of(db);
    char body[32];
    counter_add(&asked, 1, c->outcome);
    int len = snprintf(body, sizeof body, "{\"expires_in\":%d}", CODE_LIFE_S);
    reply_json(c->rq, 202, (struct str){body, (size_t)len});
}

/* --- using a code --- */

/* The try is committed before the code is compared: requests at the same time get no more tries than one after another.
 * Each network has tries of its own. The salt tells which code it was. */
static enum err take_and_compare(const struct code_proof *proof, struct pg *pg, const char *email_hash,
                                 const struct code *code, struct code_salt *salt, bool *ret_right)
{
    struct customers *context = proof->context;
    char network[DIGEST_HEX_LEN + 1];
    struct counted client = counted_by_ip(TIER_LOGIN_IP, context->identifier_key, proof->client);
    digest_hex(&client.subject, network);
    struct pg_call taken = {.ask = &take_try,
                            .args = {pg_text(email_hash), pg_text(network), pg_i64(code_tries_max(&shape))}};
    struct digest stored;
    enum err e = pg_ask(pg, &taken, proof->deadline_ns);
    *ret_right = false;
    if (e || taken.rows == 0)
        return e;
    if ((e = digest_parse(pg_get(&taken, 0, 0), &stored)) || (e = code_salt_parse(pg_get(&taken, 0, 1), salt)))
        return e;
    struct digest typed = code_hash(context->code_keys, salt, code);
    *ret_right = digest_eq(&typed, &stored);
    return OK;
}

/* False: it is not a code at all, or not the one that was mailed. Otherwise its row is named by both. */
static enum err is_right(const struct code_proof *proof, struct pg *pg, char email_hash[DIGEST_HEX_LEN + 1],
                         char salt_hex[2 * CODE_SALT_LEN + 1], bool *ret)
{
    struct code code;
    struct code_salt salt;
    *ret = false;
    if (code_read(&shape, proof->typed, &code))
        return OK;
    hash_email(proof->context, proof->email, email_hash);
    enum err e = take_and_compare(proof, pg, email_hash, &code, &salt, ret);
    secret_wipe(&code, sizeof code);
    if (!e && *ret)
        code_salt_hex(&salt, salt_hex);
    return e;
}

enum err sign_in_code_use(const struct code_proof *proof, struct pg *pg, struct session *ret)
{
    char email_hash[DIGEST_HEX_LEN + 1], salt_hex[2 * CODE_SALT_LEN + 1];
    bool right;
    *ret = (struct session){"", ""};
    enum err e = is_right(proof, pg, email_hash, salt_hex, &right);
    if (e || !right)
        return e;
    struct pg_call used = {
        .ask = &use_code,
        .args = {pg_text(email_hash), pg_text(salt_hex), pg_text(proof->email.at), pg_i64(SESSION_LIFE_S)}};
    e = pg_ask(pg, &used, proof->deadline_ns);
    return e ? e : session_read_begun(&used, ret);
}

enum err sign_in_code_spend(const struct code_proof *proof, struct pg *pg, const char *user_id, bool *ret_right)
{
    char email_hash[DIGEST_HEX_LEN + 1], salt_hex[2 * CODE_SALT_LEN + 1];
    enum err e = is_right(proof, pg, email_hash, salt_hex, ret_right);
    if (e || !*ret_right)
        return e;
    struct pg_call spent = {.ask = &spend_code, .args = {pg_text(email_hash), pg_text(salt_hex), pg_text(user_id)}};
    e = pg_ask(pg, &spent, proof->deadline_ns);
    *ret_right = spent.rows == 1;
    return e;
}

/* --- the mail --- */

const struct code_mail sign_in_code_words = {
    .subject = TEXT_MAIL_SIGN_IN_SUBJECT,
    .opening = TEXT_MAIL_SIGN_IN_OPENING,
    .life_one = TEXT_MAIL_SIGN_IN_LIFE_ONE,
    .life_other = TEXT_MAIL_SIGN_IN_LIFE_OTHER,
    .warning = TEXT_MAIL_SIGN_IN_WARNING,
    .page = "/account",
    .open = TEXT_MAIL_SIGN_IN_OPEN,
    .button = TEXT_MAIL_SIGN_IN_BUTTON,
};

enum err sign_in_code_mail_compose(void *customers, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                                   struct mail *ret)
{
    const struct customers *context = customers;
    struct code_payload p;
    enum err e = code_payload_read(payload, &p);
    if (e)
        return e;
    struct pg_call found = {.ask = &read_mail, .args = {pg_text(p.user_id.at), pg_text(p.salt_hex.at)}};
    if ((e = pg_ask(pg, &found, deadline_ns)))
        return e;
    return code_mail_compose(&sign_in_code_words, context->code_keys, post_design(context->post), &shape, &p, &found,
                             ret);
}
