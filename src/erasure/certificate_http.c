/* Certificates of erasure and the keys that verify them, over HTTP. */
#include "api/db_request.h"
#include "api/fields.h"
#include "erasure/cascade.h"
#include "http/accept.h"

#define KEY_SET_MAX ((size_t)PROOF_GENERATIONS * 256)
#define LINK_SECRET_LEN ((size_t)16) /* as the last mail has it, in hex */

const struct statement certificate_read = {
    .name = "certificate_read",
    .sql = "SELECT e.customer_id IS NOT NULL OR ($2 IS NULL AND c.id IS NOT NULL) AS known, p.jws"
           " FROM (SELECT $1::uuid AS id) q LEFT JOIN reclaim.erasures e ON e.customer_id = q.id"
           " AND ($2::text IS NULL OR e.link_hash = $2::text)"
           " LEFT JOIN reclaim.customer_customers c ON c.id = q.id"
           " LEFT JOIN reclaim.erasure_certificates p ON p.certificate_id = e.certificate_id",
    .params = 2,
    .columns = "known:bool jws:text",
};

const struct statement certificate_generation = {
    .name = "certificate_generation",
    .sql = "SELECT proof_generation AS generation FROM reclaim.installation",
    .params = 0,
    .columns = "generation:int4",
};

struct certificate_request {
    struct db_request db;
    char id[37];
    char secret_hash[DIGEST_HEX_LEN + 1]; /* "" for callers with credentials */
    bool known;
    struct str jws; /* absent: not complete */
    const struct proof_keys *proofs;
    int generation;
};

static enum err read_certificate(struct db_request *db, struct pg *pg);
static void answer_certificate(struct db_request *db);
static enum err read_generation(struct db_request *db, struct pg *pg);
static void answer_keys(struct db_request *db);

static struct certificate_request *request_of(struct db_request *db)
{
    return OWNER_OF(db, struct certificate_request, db);
}

/* People follow the link of the last mail with a browser, which gets a page; programs get the certificate. Only digits and letters of
 * an id and a secret are passed on: without them the page says that the link is not complete. */
static void send_to_page(struct request *rq, struct str secret)
{
    struct str id = str_is_uuid(rq->params[0]) ? rq->params[0] : STR("");
    uint8_t bytes[LINK_SECRET_LEN];
    if (secret.len != 2 * sizeof bytes || hex_read(secret, bytes, sizeof bytes))
        secret = STR("");
    const char *to =
        arena_printf(rq->arena, "/account/certificate?customer=%.*s&secret=%.*s", STR_ARGS(id), STR_ARGS(secret)).at;
    if (!to) {
        reply_fault(rq, ERR_MEMORY);
        return;
    }
    reply_header(rq, "Location", to);
    reply_header(rq, "Referrer-Policy", "no-referrer"); /* it has the secret */
    reply_send(rq, 303);
}

/* GET /v1/customers/{id}/certificate. 1. On the loop. */
bool certificate_by_link(struct request *rq, void *cascade)
{
    struct cascade *context = cascade;
    struct str secret = request_query(rq, "secret");
    if (!secret.at)
        return false;
    if (context->has_pages && accept_prefers(request_header(rq, "Accept"), "text/html", "application/jose")) {
        send_to_page(rq, secret);
        return true;
    }
    struct certificate_request *x = db_request_new(rq, sizeof *x, read_certificate, answer_certificate);
    if (!x || !request_id(rq, 0, x->id))
        return true;
    struct digest hash = digest_sha256(secret);
    digest_hex(&hash, x->secret_hash);
    db_request_start(&x->db, atomic_load(&context->anonymous));
    return true;
}

void certificate_show_handle(struct request *rq, const struct caller *caller, void *cascade)
{
    struct cascade *context = cascade;
    struct certificate_request *x = db_request_new(rq, sizeof *x, read_certificate, answer_certificate);
    if (!x || !request_id(rq, 0, x->id))
        return;
    if (!caller_sees(caller, x->id)) {
        reply_refuse(rq, 403, "FORBIDDEN", "These credentials may not see this customer.");
        return;
    }
    db_request_start(&x->db, atomic_load(&context->pool));
}

/* 2. On a worker. */
static enum err read_certificate(struct db_request *db, struct pg *pg)
{
    struct certificate_request *x = request_of(db);
    struct pg_call call = {.ask = &certificate_read,
                           .args = {pg_text(x->id), pg_text_or_null(*x->secret_hash ? x->secret_hash : NULL)}};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (e)
        return e;
    x->known = pg_get_bool(&call, 0, 0);
    x->jws = (struct str){NULL, 0};
    if (pg_is_null(&call, 0, 1))
        return OK;
    x->jws = arena_copy(db->rq->arena, pg_get(&call, 0, 1));
    return x->jws.at ? OK : ERR_MEMORY;
}

/* 3. On the same worker. */
static void answer_certificate(struct db_request *db)
{
    struct certificate_request *x = request_of(db);
    if (!x->known && *x->secret_hash) {
        reply_refuse(db->rq, 404, "CERTIFICATE_NOT_FOUND",
                     "This link leads to no certificate. Copy all of it from the mail.");
    } else if (!x->known) {
        reply_refuse(db->rq, 404, "CUSTOMER_NOT_FOUND", "There is no customer with this id.");
    } else if (!x->jws.at) {
        reply_refuse(db->rq, 404, "NOT_COMPLETE",
                     "There is no certificate yet: it is issued when every service has given its receipt.");
    } else {
        reply_body(db->rq, "application/jose", x->jws);
        reply_send(db->rq, 200);
    }
}

/* GET /.well-known/reclaim-erasure-key. 1. On the loop. */
void certificate_keys_handle(struct request *rq)
{
    struct cascade *context = rq->route->context;
    struct certificate_request *x = db_request_new(rq, sizeof *x, read_generation, answer_keys);
    if (!x)
        return;
    x->proofs = context->proofs;
    db_request_start(&x->db, atomic_load(&context->anonymous));
}

/* 2. On a worker. */
static enum err read_generation(struct db_request *db, struct pg *pg)
{
    struct pg_call call = {.ask = &certificate_generation};
    enum err e = pg_ask(pg, &call, db->job.deadline_ns);
    if (!e)
        request_of(db)->generation = (int)pg_get_i64(&call, 0, 0);
    return e;
}

/* 3. On the same worker. */
static void answer_keys(struct db_request *db)
{
    AUTO(buf) struct buf text = buf_new(KEY_SET_MAX);
    struct proof_key_set set;
    proof_keys_public(request_of(db)->proofs, request_of(db)->generation, &set);
    proof_key_set_write(&set, &text);
    struct str body = arena_copy(db->rq->arena, buf_str(&text));
    if (!body.at) {
        reply_fault(db->rq, ERR_MEMORY);
        return;
    }
    reply_header(db->rq, "Access-Control-Allow-Origin", "*");
    db->rq->reply.cache_control = "public, max-age=300";
    reply_body(db->rq, "application/jwk-set+json", body);
    reply_send(db->rq, 200);
}
