/* `/account/certificate`: the page that the link of the last mail leads to, for people and for paper. */
#include "pages/certificate.h"

#include <stdint.h>

#include "base/digest.h"
#include "pages/routes.h"

#define SECRET_LEN ((size_t)16) /* as the last mail has it, in hex */

/* What the link brings; both are passed on as they are, because they are hex digits. */
struct link {
    const char *customer, *secret;
};

static bool certificate_answered(struct page *p);
static bool keys_answered(struct page *p);
static bool progress_answered(struct page *p);
static bool file_answered(struct page *p);

/* --- what is written, here and for the console --- */

bool certificate_write_page(struct page *p)
{
    if (json_object_get(p->values, "broken"))
        return page_write(p, "certificate-broken", TEXT_CERTIFICATE_BROKEN_TITLE, 500);
    page_set_text(p, "public_url", str_of(p->pages->config.public_url));
    return page_write(p, "certificate", TEXT_CERTIFICATE_TITLE, 200);
}

bool certificate_write_progress(struct page *p)
{
    return page_write(p, "certificate-progress", TEXT_CERTIFICATE_PROGRESS_TITLE, 200);
}

bool certificate_write_file(struct page *p, const char *customer)
{
    struct str name = arena_printf(p->rq->arena, "erasure-%s.jose", customer);
    return page_write_file(p, p->rq->reply.body, "application/jose", name.at ? name.at : "erasure.jose");
}

static bool write_failure(struct page *p)
{
    return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
}

/* --- GET --- */

/* NULL after the page of a link that leads nowhere. */
static struct page *begin(struct request *rq)
{
    struct page *p = page_begin(rq);
    struct link *link = p ? arena_take(rq->arena, sizeof *link) : NULL;
    if (!p)
        return NULL;
    struct str customer = request_query(rq, "customer"), secret = request_query(rq, "secret");
    uint8_t bytes[SECRET_LEN];
    p->has_secret_address = true;
    if (!link || !str_is_uuid(customer) || secret.len != 2 * SECRET_LEN || hex_read(secret, bytes, sizeof bytes)) {
        page_show(p, link ? "certificate-unknown" : "failure",
                  link ? TEXT_CERTIFICATE_UNKNOWN_TITLE : TEXT_PAGE_FAILURE_TITLE, link ? 404 : 503);
        return NULL;
    }
    *link = (struct link){customer.at, secret.at};
    p->own = link;
    page_set_text(p, "customer", customer);
    page_set_text(p, "secret", secret);
    return p;
}

static void ask(struct page *p, const char *what, bool (*answered)(struct page *p))
{
    const struct link *link = p->own;
    struct forward to = {.method = METHOD_GET,
                         .path = arena_printf(p->rq->arena, "/v1/customers/%s/%s", link->customer, what),
                         .query = arena_printf(p->rq->arena, "secret=%s", link->secret)};
    page_ask(p, &to, answered);
}

/* 1. On the loop. */
static void certificate_page(struct request *rq)
{
    struct page *p = begin(rq);
    if (p)
        ask(p, "certificate", certificate_answered);
}

/* 2. On the endpoint's thread. */
static bool certificate_answered(struct page *p)
{
    if (p->rq->reply.status == 200)
        return certificate_ask_keys(p, keys_answered);
    if (certificate_is_refused(p, "NOT_COMPLETE")) {
        ask(p, "erasure", progress_answered);
        return false;
    }
    return p->rq->reply.status == 404 ? page_write(p, "certificate-unknown", TEXT_CERTIFICATE_UNKNOWN_TITLE, 404)
                                      : write_failure(p);
}

/* 3. On the last endpoint's thread, one of both. */
static bool keys_answered(struct page *p)
{
    return certificate_set(p) ? certificate_write_page(p) : write_failure(p);
}

static bool progress_answered(struct page *p)
{
    return certificate_set_progress(p) ? certificate_write_progress(p) : write_failure(p);
}

static void certificate_file(struct request *rq)
{
    struct page *p = begin(rq);
    if (p)
        ask(p, "certificate", file_answered);
}

/* Without a certificate the page says why. */
static bool file_answered(struct page *p)
{
    const struct link *link = p->own;
    if (p->rq->reply.status == 200)
        return certificate_write_file(p, link->customer);
    const char *to =
        arena_printf(p->rq->arena, "/account/certificate?customer=%s&secret=%s", link->customer, link->secret).at;
    return to ? page_redirect(p, to) : write_failure(p);
}

const struct route certificate_routes[] = {
    {.method = METHOD_GET, .path = "/account/certificate", .handle = certificate_page},
    {.method = METHOD_GET, .path = "/account/certificate.jose", .handle = certificate_file},
    {0},
};
