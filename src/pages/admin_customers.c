/* The console's customers: the list with search and filters, and one customer's timeline. */
#include <string.h>

#include "pages/admin.h"
#include "pages/certificate.h"
#include "pages/routes.h"

#define PAGE_SIZE "25" /* a form has no more fields than this and a few */

static struct str customer_path(struct page *p, const char *id, const char *behind)
{
    return arena_printf(p->rq->arena, "/v1/customers/%s%s", id, behind);
}

static void not_found(struct page *p)
{
    page_show(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
}

/* The id of the path as a C string; NULL when it is none. */
static const char *id_of(struct page *p)
{
    return str_is_uuid(p->rq->params[0]) ? arena_copy(p->rq->arena, p->rq->params[0]).at : NULL;
}

/* --- the list --- */

static bool list(struct page *p)
{
    if (admin_failed(p))
        return true;
    const json_t *counts = json_object_get(json_object_get(p->values, "customers"), "counts");
    int64_t all = json_integer_value(json_object_get(counts, "active")) +
                  json_integer_value(json_object_get(counts, "frozen")) +
                  json_integer_value(json_object_get(counts, "deleted"));
    page_set(p, "all", json_integer(all));
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json_object_get(p->values, "customers"), "items"), i, item)
    {
        const json_t *due = json_object_get(item, "deletion_effective_at");
        if (due)
            json_object_set_new(item, "left", admin_duration(p, admin_seconds_until(due)));
    }
    return page_write(p, "admin-customers", TEXT_ADMIN_CUSTOMERS, 200);
}

static void list_handle(struct request *rq)
{
    static const char *const names[] = {"q", "status", "held", "after"};
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        admin_set_query(p, names[i]);
    struct str status = request_query(rq, "status");
    bool frozen = str_eq(status, STR("frozen")) || str_eq(status, STR("due"));
    admin_gather(p, frozen ? "deletions" : "customers",
                 &(struct page_read){.name = "customers",
                                     .path = STR("/v1/customers"),
                                     .query = admin_query(p, "counts=1&limit=" PAGE_SIZE, names, COUNT_OF(names))},
                 1, list);
}

/* --- one customer --- */

static void set_words(json_t *items)
{
    size_t i;
    json_t *item;
    json_array_foreach(items, i, item)
    {
        json_object_set_new(item, "what_word", admin_word(json_object_get(item, "what")));
        json_object_set_new(item, "outcome_word", admin_word(json_object_get(item, "outcome")));
        admin_set_short(item, "correlation_id");
    }
}

/* How far the erasure is, and whether asking again may help. */
static void set_erasure(struct page *p, const json_t *erasure)
{
    json_t *participants = json_object_get(erasure, "participants");
    int64_t done = 0;
    bool failed = false;
    for (size_t i = 0; i < json_array_size(participants); i++) {
        const char *status = json_string_value(json_object_get(json_array_get(participants, i), "status"));
        done += status && (strcmp(status, "done") == 0 || strcmp(status, "kept") == 0);
        failed |= status && strcmp(status, "failed") == 0;
    }
    admin_set_labels(p, participants);
    page_set(p, "receipts_done", json_integer(done));
    page_set(p, "receipts", json_integer((json_int_t)json_array_size(participants)));
    page_set(p, "erasure_failed", json_boolean(failed));
}

static bool write_timeline(struct page *p)
{
    return page_write(p, "admin-customer", TEXT_ADMIN_CUSTOMER, 200);
}

/* The page shows the rest, whatever becomes of the certificate. */
static bool keys_answered(struct page *p)
{
    (void)certificate_set(p);
    return write_timeline(p);
}

static bool certificate_answered(struct page *p)
{
    if (p->rq->reply.status == 200)
        return certificate_ask_keys(p, keys_answered);
    page_set(p, "certificate_later", json_boolean(certificate_is_refused(p, "NOT_COMPLETE")));
    return write_timeline(p);
}

static bool timeline(struct page *p)
{
    if (admin_failed(p))
        return true;
    json_t *t = json_object_get(p->values, "timeline");
    const json_t *due = json_object_get(json_object_get(t, "customer"), "deletion_effective_at");
    if (due)
        page_set(p, "left", admin_duration(p, admin_seconds_until(due)));
    page_set(p, "has_broker", json_incref(json_object_get(t, "has_broker")));
    admin_set_layers(p, json_object_get(t, "layers"));
    set_erasure(p, json_object_get(t, "erasure"));
    set_words(json_object_get(t, "items"));
    const char *status = json_string_value(json_object_get(json_object_get(t, "customer"), "status"));
    if (!status || strcmp(status, "deleted") != 0)
        return write_timeline(p);
    const char *id = json_string_value(json_object_get(json_object_get(t, "customer"), "id"));
    admin_ask(p, METHOD_GET, customer_path(p, id, "/certificate"), (struct str){NULL, 0}, certificate_answered);
    return false;
}

/* Whether the operator had this address shown a short while ago. */
static void set_revealed(struct page *p, const char *id)
{
    const char *shown = json_string_value(json_object_get(page_state(p, "shown"), "id"));
    page_set(p, "revealed", json_boolean(shown && strcmp(shown, id) == 0));
}

static void timeline_handle(struct request *rq)
{
    static const char *const names[] = {"after"};
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    const char *id = id_of(p);
    if (!id) {
        not_found(p);
        return;
    }
    admin_set_query(p, "after");
    set_revealed(p, id);
    admin_gather(p, "customers",
                 &(struct page_read){.name = "timeline",
                                     .path = customer_path(p, id, "/timeline"),
                                     .query = admin_query(p, "limit=50", names, 1)},
                 1, timeline);
}

static bool revealed(struct page *p)
{
    const char *id = admin_of(p)->own, *to = arena_printf(p->rq->arena, "/admin/customers/%s", id).at;
    if (p->rq->reply.status != 200)
        return admin_redirect_failed(p, to);
    page_keep(p, "shown", json_pack("{s:s}", "id", id), 600);
    return page_redirect(p, to);
}

static void reveal_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    const char *id = p ? id_of(p) : NULL;
    if (p && !id)
        not_found(p);
    if (!id)
        return;
    admin_of(p)->own = (void *)(uintptr_t)id;
    admin_ask(p, METHOD_POST, STR("/v1/console/reveals"), page_json(p, "{s:s}", "customer_id", id), revealed);
}

const struct route admin_customers_routes[] = {
    {.method = METHOD_GET, .path = "/admin/customers", .handle = list_handle},
    {.method = METHOD_GET, .path = "/admin/customers/{id}", .handle = timeline_handle},
    {.method = METHOD_POST, .path = "/admin/reveal/{id}", .handle = reveal_form_handle},
    {0},
};
