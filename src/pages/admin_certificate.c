/* The certificate of a deleted customer in the console: the page to print, and the file. */
#include "pages/admin.h"
#include "pages/certificate.h"
#include "pages/routes.h"

static bool certificate_answered(struct page *p);
static bool keys_answered(struct page *p);
static bool progress_answered(struct page *p);
static bool file_answered(struct page *p);

static void ask(struct page *p, const char *what, bool (*answered)(struct page *p))
{
    const char *id = admin_of(p)->own;
    admin_ask(p, METHOD_GET, arena_printf(p->rq->arena, "/v1/customers/%s/%s", id, what), (struct str){NULL, 0},
              answered);
}

/* NULL after an answer was sent. */
static struct page *begin(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (!p)
        return NULL;
    struct str id = str_is_uuid(rq->params[0]) ? arena_copy(rq->arena, rq->params[0]) : (struct str){NULL, 0};
    if (!id.at) {
        page_show(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
        return NULL;
    }
    admin_of(p)->own = (void *)(uintptr_t)id.at;
    page_set_text(p, "customer", id);
    page_set(p, "for_operators", json_true());
    return p;
}

static bool write_refusal(struct page *p)
{
    if (p->rq->reply.status == 404)
        return page_write(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
    return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
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
    if (!certificate_is_refused(p, "NOT_COMPLETE"))
        return write_refusal(p);
    ask(p, "erasure", progress_answered);
    return false;
}

/* 3. On the last endpoint's thread, one of both. */
static bool keys_answered(struct page *p)
{
    return certificate_set(p) ? certificate_write_page(p) : write_refusal(p);
}

/* The certificate of a customer that is not deleted is not under way. */
static bool progress_answered(struct page *p)
{
    if (!certificate_set_progress(p))
        return write_refusal(p);
    const char *status = json_string_value(json_object_get(json_object_get(p->values, "erasure"), "status"));
    if (!status || str_eq(str_of(status), STR("not_started")))
        return page_write(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
    return certificate_write_progress(p);
}

static void certificate_file(struct request *rq)
{
    struct page *p = begin(rq);
    if (p)
        ask(p, "certificate", file_answered);
}

static bool file_answered(struct page *p)
{
    return p->rq->reply.status == 200 ? certificate_write_file(p, admin_of(p)->own) : write_refusal(p);
}

/* Behind the routes of actions, "/admin/customers/{id}/{action}": the last that fits is taken. */
const struct route admin_certificate_routes[] = {
    {.method = METHOD_GET, .path = "/admin/customers/{id}/certificate", .handle = certificate_page},
    {.method = METHOD_GET, .path = "/admin/customers/{id}/certificate.jose", .handle = certificate_file},
    {0},
};
