/* What operators do to customers: one or several, each after a question, with a button that takes it back where that is possible. */
#include <string.h>

#include "pages/admin.h"
#include "pages/routes.h"

#define LIST "/admin/customers"
#define CHOSEN_LIFE_S 900

enum customer_action {
    ACTION_FREEZE,
    ACTION_RECOVER,
    ACTION_HOLD,
    ACTION_UNHOLD,
    ACTION_DELETE,
    ACTION_RETRY, /* of an erasure that failed */
    ACTIONS
};

static const struct action {
    const char *name;
    enum method method;
    const char *path; /* behind /v1/customers/ID */
    bool takes_reason, needs_reason, for_several;
    const char *notice, *notice_one; /* of several, of one */
    enum customer_action undo;       /* ACTIONS: none */
} actions[ACTIONS] = {
    [ACTION_FREEZE] = {"freeze", METHOD_POST, "/freeze", true, false, true, "frozen", "frozen_one", ACTION_RECOVER},
    [ACTION_RECOVER] = {"recover", METHOD_POST, "/recover", false, false, true, "recovered", "recovered_one", ACTIONS},
    [ACTION_HOLD] = {"hold", METHOD_POST, "/hold", true, true, false, "held_now", "held_now", ACTION_UNHOLD},
    [ACTION_UNHOLD] = {"unhold", METHOD_DELETE, "/hold", false, false, false, "unheld", "unheld", ACTIONS},
    [ACTION_DELETE] = {"delete", METHOD_DELETE, "", false, false, true, "deleted", "deleted_one", ACTIONS},
    [ACTION_RETRY] = {"retry", METHOD_DELETE, "", false, false, false, "retried", "retried", ACTIONS},
};

static enum customer_action action_parse(struct str name)
{
    enum customer_action a = 0;
    while (a < ACTIONS && !str_eq(name, str_of(actions[a].name)))
        a++;
    return a;
}

/* A change under way: of each customer its state is read, and then it is changed. */
struct changes {
    enum customer_action action;
    const char *ids[32];
    size_t count, next, done;
    bool one;        /* customer, whose page comes next */
    bool is_undo;    /* which offers no undo itself */
    bool has_effect; /* on the customer that was read last */
    const char *to;  /* the page that comes next */
    struct str body;
    json_t *undoable; /* ids, of the request's values */
};

static struct changes *changes_of(struct page *p)
{
    return admin_of(p)->own;
}

static struct str customer_path(struct page *p, const char *id, const char *behind)
{
    return arena_printf(p->rq->arena, "/v1/customers/%s%s", id, behind);
}

static const char *page_of(struct page *p, const char *id)
{
    return arena_printf(p->rq->arena, LIST "/%s", id).at;
}

/* The list as it was when customers were chosen. */
static const char *list_of(struct page *p, const char *query)
{
    return query && *query ? arena_printf(p->rq->arena, LIST "?%s", query).at : LIST;
}

static void add_ids(struct changes *c, const json_t *ids)
{
    for (size_t i = 0; i < json_array_size(ids) && c->count < COUNT_OF(c->ids); i++) {
        const char *id = json_string_value(json_array_get(ids, i));
        if (id && str_is_uuid(str_of(id)))
            c->ids[c->count++] = id;
    }
}

/* --- changing --- */

static bool was_read(struct page *p);
static bool was_changed(struct page *p);

static void read_next(struct page *p)
{
    const struct changes *c = changes_of(p);
    admin_ask(p, METHOD_GET, customer_path(p, c->ids[c->next], ""), (struct str){NULL, 0}, was_read);
}

/* What was frozen or held before is not undone. */
static bool was_read(struct page *p)
{
    struct changes *c = changes_of(p);
    const json_t *customer = page_answer(p);
    const char *status = json_string_value(json_object_get(customer, "status"));
    c->has_effect = c->action == ACTION_FREEZE ? status && strcmp(status, "active") == 0
                                               : !json_is_object(json_object_get(customer, "legal_hold"));
    admin_ask(p, actions[c->action].method, customer_path(p, c->ids[c->next], actions[c->action].path), c->body,
              was_changed);
    return false;
}

static json_t *undo_of(const struct changes *c)
{
    enum customer_action undo = actions[c->action].undo;
    if (c->is_undo || undo == ACTIONS || json_array_size(c->undoable) == 0)
        return NULL;
    return json_pack("{s:s,s:O,s:s,s:b}", "action", actions[undo].name, "ids", c->undoable, "to", c->to, "one", c->one);
}

static bool say_done(struct page *p)
{
    const struct changes *c = changes_of(p);
    struct admin_notice notice = {.id = c->one ? actions[c->action].notice_one : actions[c->action].notice,
                                  .n = (int64_t)c->count,
                                  .undo = undo_of(c)};
    if (c->done < c->count)
        notice = (struct admin_notice){.id = c->done ? "some_changed" : "none_changed",
                                       .n = (int64_t)(c->count - c->done),
                                       .bad = true,
                                       .undo = notice.undo};
    if (!c->one)
        page_forget(p, "chosen");
    return admin_redirect_with(p, c->to, &notice);
}

static bool was_changed(struct page *p)
{
    struct changes *c = changes_of(p);
    bool done = p->rq->reply.status == 200;
    if (!done && (c->one || p->rq->reply.status == 401))
        return admin_redirect_failed(p, c->to);
    c->done += done;
    if (done && c->has_effect)
        json_array_append_new(c->undoable, json_string(c->ids[c->next]));
    if (++c->next == c->count)
        return say_done(p);
    read_next(p);
    return false;
}

static void change(struct page *p, struct changes *c)
{
    struct str reason = page_field(p, "reason");
    c->body = actions[c->action].takes_reason && reason.len ? page_json(p, "{s:s%}", "reason", reason.at, reason.len)
                                                            : STR("{}");
    page_set(p, "undoable", c->undoable = json_array());
    admin_of(p)->own = c;
    read_next(p);
}

/* --- one customer --- */

/* The action and the id of the path; NULL after the answer that there is no such page. */
static struct changes *read_path(struct page *p)
{
    struct changes *c = arena_take(p->rq->arena, sizeof *c);
    enum customer_action action = action_parse(p->rq->params[1]);
    if (!c || !str_is_uuid(p->rq->params[0]) || action == ACTIONS) {
        page_show(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
        return NULL;
    }
    *c = (struct changes){.action = action, .count = 1, .one = true};
    c->ids[0] = arena_copy(p->rq->arena, p->rq->params[0]).at;
    c->to = page_of(p, c->ids[0]);
    return c;
}

static bool confirm(struct page *p)
{
    return admin_failed(p) || page_write(p, "admin-confirm", TEXT_ADMIN_CONFIRM, 200);
}

static void set_action(struct page *p, enum customer_action action)
{
    page_set_text(p, "action", str_of(actions[action].name));
    page_set(p, "takes_reason", json_boolean(actions[action].takes_reason));
    page_set(p, "needs_reason", json_boolean(actions[action].needs_reason));
    page_set(p, "is_delete", json_boolean(action == ACTION_DELETE));
}

static void confirm_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    const struct changes *c = p ? read_path(p) : NULL;
    if (!c)
        return;
    set_action(p, c->action);
    admin_gather(p, "customers", &(struct page_read){.name = "customer", .path = customer_path(p, c->ids[0], "")}, 1,
                 confirm);
}

static void change_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    struct changes *c = p ? read_path(p) : NULL;
    if (c)
        change(p, c);
}

/* --- several --- */

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
    bool sound = json_array_size(ids) > 0 && action < ACTIONS && actions[action].for_several;
    if (sound) {
        page_keep(p, "chosen",
                  json_pack("{s:s,s:O,s:s}", "action", actions[action].name, "ids", ids, "list", admin_of(p)->kept),
                  CHOSEN_LIFE_S);
        page_redirect(p, "/admin/confirm");
    } else {
        admin_redirect_with(p, list_of(p, admin_of(p)->kept), &(struct admin_notice){.id = "none_chosen", .bad = true});
    }
    json_decref(ids);
    reply_send(rq, rq->reply.status);
}

/* What was chosen; NULL after a redirect. */
static struct changes *read_chosen(struct page *p)
{
    json_t *chosen = page_state(p, "chosen");
    struct changes *c = chosen ? arena_take(p->rq->arena, sizeof *c) : NULL;
    if (c) {
        *c = (struct changes){.action = action_parse(str_of(json_string_value(json_object_get(chosen, "action")))),
                              .to = list_of(p, json_string_value(json_object_get(chosen, "list")))};
        add_ids(c, json_object_get(chosen, "ids"));
    }
    if (c && c->count > 0 && c->action < ACTIONS)
        return c;
    page_go(p, LIST);
    return NULL;
}

static bool add_chosen(struct page *p)
{
    struct changes *c = changes_of(p);
    json_t *customer = page_answer(p);
    if (p->rq->reply.status == 200)
        json_array_append(json_object_get(p->values, "customers"), customer);
    if (++c->next < c->count) {
        admin_ask(p, METHOD_GET, customer_path(p, c->ids[c->next], ""), (struct str){NULL, 0}, add_chosen);
        return false;
    }
    p->rq->reply.status = 200;
    return page_write(p, "admin-confirm-several", TEXT_ADMIN_CONFIRM, 200);
}

static bool confirm_several(struct page *p)
{
    const struct changes *c = changes_of(p);
    if (admin_failed(p))
        return true;
    page_set(p, "customers", json_array());
    admin_ask(p, METHOD_GET, customer_path(p, c->ids[0], ""), (struct str){NULL, 0}, add_chosen);
    return false;
}

static void confirm_several_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    struct changes *c = p ? read_chosen(p) : NULL;
    if (!c)
        return;
    set_action(p, c->action);
    page_set(p, "count", json_integer((json_int_t)c->count));
    page_set_text(p, "list", str_of(c->to));
    admin_of(p)->own = c;
    admin_gather(p, "customers", NULL, 0, confirm_several);
}

static void change_several_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    struct changes *c = p ? read_chosen(p) : NULL;
    if (c)
        change(p, c);
}

/* --- taking it back --- */

static void undo_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    json_t *undo = p ? page_state(p, "undo") : NULL;
    struct changes *c = undo ? arena_take(rq->arena, sizeof *c) : NULL;
    if (c) {
        *c = (struct changes){.action = action_parse(str_of(json_string_value(json_object_get(undo, "action")))),
                              .to = json_string_value(json_object_get(undo, "to")),
                              .one = json_is_true(json_object_get(undo, "one")),
                              .is_undo = true};
        add_ids(c, json_object_get(undo, "ids"));
        page_forget(p, "undo");
    }
    if (c && c->count > 0 && c->action < ACTIONS && c->to)
        change(p, c);
    else if (p)
        page_go(p, LIST);
}

const struct route admin_actions_routes[] = {
    {.method = METHOD_POST, .path = LIST, .handle = choose_form_handle},
    {.method = METHOD_GET, .path = "/admin/confirm", .handle = confirm_several_handle},
    {.method = METHOD_POST, .path = "/admin/confirm", .handle = change_several_form_handle},
    {.method = METHOD_POST, .path = "/admin/undo", .handle = undo_form_handle},
    {.method = METHOD_GET, .path = LIST "/{id}/{action}", .handle = confirm_handle},
    {.method = METHOD_POST, .path = LIST "/{id}/{action}", .handle = change_form_handle},
    {0},
};
