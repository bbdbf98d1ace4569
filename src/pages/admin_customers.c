/* The console's customers: the list with search, filters and bulk actions, one customer's timeline, and what is done to it. */
#include <string.h>

#include "pages/admin.h"
#include "pages/routes.h"

#define PAGE_SIZE "25" /* a form has no more fields than this and a few */

enum customer_action { ACTION_FREEZE, ACTION_RECOVER, ACTION_HOLD, ACTION_UNHOLD, ACTION_DELETE, ACTIONS };

static const struct {
    const char *name;
    enum method method;
    const char *path; /* behind /v1/customers/ID */
    bool takes_reason, needs_reason;
    const char *notice, *notice_one; /* of several, of one */
} actions[ACTIONS] = {
    [ACTION_FREEZE] = {"freeze", METHOD_POST, "/freeze", true, false, "frozen", "frozen_one"},
    [ACTION_RECOVER] = {"recover", METHOD_POST, "/recover", false, false, "recovered", "recovered_one"},
    [ACTION_HOLD] = {"hold", METHOD_POST, "/hold", true, true, "held_now", "held_now"},
    [ACTION_UNHOLD] = {"unhold", METHOD_DELETE, "/hold", false, false, "unheld", "unheld"},
    [ACTION_DELETE] = {"delete", METHOD_DELETE, "", false, false, "deleted", "deleted_one"},
};

static enum customer_action action_parse(struct str name)
{
    enum customer_action a = 0;
    while (a < ACTIONS && !str_eq(name, str_of(actions[a].name)))
        a++;
    return a;
}

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
    bool frozen = str_eq(request_query(rq, "status"), STR("frozen"));
    admin_gather(p, frozen ? "deletions" : "customers",
                 &(struct page_read){.name = "customers",
                                     .path = STR("/v1/customers"),
                                     .query = admin_query(p, "counts=1&limit=" PAGE_SIZE, names, COUNT_OF(names))},
                 1, list);
}

/* --- several customers at once --- */

struct bulk {
    enum customer_action action;
    const char *ids[32];
    size_t count, next, done;
};

/* POST: keeps what was chosen, and asks. */
static void choose_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    if (!p)
        return;
    json_t *ids = json_array();
    for (size_t i = 0; i < p->form.count; i++)
        if (str_eq(p->form.fields[i].name, STR("id")) && str_is_uuid(p->form.fields[i].value))
            json_array_append_new(ids, json_stringn(p->form.fields[i].value.at, p->form.fields[i].value.len));
    enum customer_action action = action_parse(page_field(p, "action"));
    bool sound =
        json_array_size(ids) > 0 && (action == ACTION_FREEZE || action == ACTION_RECOVER || action == ACTION_DELETE);
    if (sound)
        page_keep(p, "chosen", json_pack("{s:s,s:O}", "action", actions[action].name, "ids", ids), 900);
    json_decref(ids);
    if (sound)
        page_redirect(p, "/admin/confirm");
    else
        admin_redirect(p, "/admin/customers", "none_chosen", 0);
    reply_send(rq, rq->reply.status);
}

static bool confirm_several(struct page *p)
{
    return admin_failed(p) || page_write(p, "admin-confirm-several", TEXT_ADMIN_CONFIRM, 200);
}

static void confirm_several_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    json_t *chosen = p ? page_state(p, "chosen") : NULL;
    if (p && !chosen)
        page_go(p, "/admin/customers");
    if (!chosen)
        return;
    page_set(p, "chosen", json_incref(chosen));
    page_set(p, "count", json_integer((json_int_t)json_array_size(json_object_get(chosen, "ids"))));
    admin_gather(p, "customers", NULL, 0, confirm_several);
}

static bool one_changed(struct page *p);

static void change_next(struct page *p)
{
    struct bulk *b = admin_of(p)->own;
    struct str path = customer_path(p, b->ids[b->next], actions[b->action].path);
    admin_ask(p, actions[b->action].method, path, STR("{}"), one_changed);
}

static bool one_changed(struct page *p)
{
    struct bulk *b = admin_of(p)->own;
    b->done += p->rq->reply.status == 200;
    if (p->rq->reply.status == 401)
        return admin_redirect_failed(p, "/admin/customers");
    if (++b->next < b->count) {
        change_next(p);
        return false;
    }
    page_forget(p, "chosen");
    if (b->done < b->count)
        return admin_redirect(p, "/admin/customers", "some_changed", (int64_t)(b->count - b->done));
    return admin_redirect(p, "/admin/customers", actions[b->action].notice, (int64_t)b->count);
}

static void change_several_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    json_t *chosen = p ? page_state(p, "chosen") : NULL;
    struct bulk *b = chosen ? arena_take(rq->arena, sizeof *b) : NULL;
    if (p && !b)
        page_go(p, "/admin/customers");
    if (!b)
        return;
    b->action = action_parse(str_of(json_string_value(json_object_get(chosen, "action"))));
    size_t i;
    json_t *id;
    json_array_foreach(json_object_get(chosen, "ids"), i,
                       id) if (b->count < COUNT_OF(b->ids) && str_is_uuid(str_of(json_string_value(id))))
        b->ids[b->count++] = json_string_value(id);
    admin_of(p)->own = b;
    if (b->count > 0 && b->action < ACTIONS)
        change_next(p);
    else
        page_go(p, "/admin/customers");
}

/* --- one customer --- */

static bool timeline(struct page *p)
{
    if (admin_failed(p))
        return true;
    json_t *t = json_object_get(p->values, "timeline"), *customer = json_object_get(t, "customer");
    const json_t *due = json_object_get(customer, "deletion_effective_at"), *participants;
    int64_t done = 0;
    if (due)
        page_set(p, "left", admin_duration(p, admin_seconds_until(due)));
    admin_set_layers(p, json_object_get(t, "layers"));
    participants = json_object_get(json_object_get(t, "erasure"), "participants");
    for (size_t i = 0; i < json_array_size(participants); i++) {
        const char *status = json_string_value(json_object_get(json_array_get(participants, i), "status"));
        done += status && (strcmp(status, "done") == 0 || strcmp(status, "kept") == 0);
    }
    page_set(p, "receipts_done", json_integer(done));
    page_set(p, "receipts", json_integer((json_int_t)json_array_size(participants)));
    return page_write(p, "admin-customer", TEXT_ADMIN_CUSTOMER, 200);
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

static bool confirm(struct page *p)
{
    return admin_failed(p) || page_write(p, "admin-confirm", TEXT_ADMIN_CONFIRM, 200);
}

static void confirm_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    const char *id = id_of(p);
    enum customer_action action = action_parse(rq->params[1]);
    if (!id || action == ACTIONS) {
        not_found(p);
        return;
    }
    page_set_text(p, "action", str_of(actions[action].name));
    page_set(p, "takes_reason", json_boolean(actions[action].takes_reason));
    page_set(p, "needs_reason", json_boolean(actions[action].needs_reason));
    page_set(p, "is_delete", json_boolean(action == ACTION_DELETE));
    admin_gather(p, "customers", &(struct page_read){.name = "customer", .path = customer_path(p, id, "")}, 1, confirm);
}

struct change {
    const char *id;
    enum customer_action action;
};

static bool changed(struct page *p)
{
    const struct change *c = admin_of(p)->own;
    const char *to = arena_printf(p->rq->arena, "/admin/customers/%s", c->id).at;
    if (p->rq->reply.status != 200)
        return admin_redirect_failed(p, to);
    return admin_redirect(p, to, actions[c->action].notice_one, 1);
}

static void change_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    struct change *c = p ? arena_take(rq->arena, sizeof *c) : NULL;
    if (!c)
        return;
    c->id = id_of(p);
    c->action = action_parse(rq->params[1]);
    if (!c->id || c->action == ACTIONS) {
        not_found(p);
        return;
    }
    admin_of(p)->own = c;
    struct str reason = page_field(p, "reason");
    struct str body = actions[c->action].takes_reason && reason.len
                          ? page_json(p, "{s:s%}", "reason", reason.at, reason.len)
                          : STR("{}");
    admin_ask(p, actions[c->action].method, customer_path(p, c->id, actions[c->action].path), body, changed);
}

const struct route admin_customers_routes[] = {
    {.method = METHOD_GET, .path = "/admin/customers", .handle = list_handle},
    {.method = METHOD_POST, .path = "/admin/customers", .handle = choose_form_handle},
    {.method = METHOD_GET, .path = "/admin/confirm", .handle = confirm_several_handle},
    {.method = METHOD_POST, .path = "/admin/confirm", .handle = change_several_form_handle},
    {.method = METHOD_GET, .path = "/admin/customers/{id}", .handle = timeline_handle},
    {.method = METHOD_POST, .path = "/admin/reveal/{id}", .handle = reveal_form_handle},
    {.method = METHOD_GET, .path = "/admin/customers/{id}/{action}", .handle = confirm_handle},
    {.method = METHOD_POST, .path = "/admin/customers/{id}/{action}", .handle = change_form_handle},
    {0},
};
