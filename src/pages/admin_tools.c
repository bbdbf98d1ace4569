/* The console's tools: orphans, audit and trace, the clock, limits, dead letters, services, settings. */
#include <string.h>

#include "pages/admin.h"
#include "pages/routes.h"

/* --- orphans --- */

static bool orphans(struct page *p)
{
    const char *shown = json_string_value(json_object_get(p->values, "shown"));
    size_t i;
    json_t *item;
    if (admin_failed(p))
        return true;
    json_array_foreach(json_object_get(json_object_get(p->values, "orphans"), "items"), i, item)
    {
        const char *id = json_string_value(json_object_get(item, "id"));
        json_object_set_new(item, "revealed", json_boolean(shown && id && strcmp(shown, id) == 0));
        admin_set_short(item, "id");
    }
    return page_write(p, "admin-orphans", TEXT_ADMIN_ORPHANS, 200);
}

static bool orphan_revealed(struct page *p)
{
    const char *kept = admin_of(p)->kept;
    const char *to = arena_printf(p->rq->arena, "/admin/orphans%s%s", kept && *kept ? "?" : "", kept ? kept : "").at;
    if (p->rq->reply.status != 200)
        return admin_redirect_failed(p, to);
    page_keep(p, "shown", json_pack("{s:s}", "id", (const char *)admin_of(p)->own), 600);
    return page_redirect(p, to);
}

static void orphans_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    if (!p)
        return;
    struct str id = page_field(p, "id");
    const char *copy = id.at ? arena_copy(rq->arena, id).at : "";
    admin_of(p)->own = (void *)(uintptr_t)copy;
    admin_ask(p, METHOD_POST, STR("/v1/console/reveals"), page_json(p, "{s:s}", "user_id", copy), orphan_revealed);
}

static void orphans_handle(struct request *rq)
{
    static const char *const names[] = {"older_than", "after"};
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    admin_set_query(p, "older_than");
    admin_set_query(p, "after");
    page_set(p, "shown", json_incref(json_object_get(page_state(p, "shown"), "id")));
    admin_gather(p, "orphans",
                 &(struct page_read){.name = "orphans",
                                     .path = STR("/v1/orphans"),
                                     .query = admin_query(p, "limit=50", names, COUNT_OF(names))},
                 1, orphans);
}

/* --- audit and trace --- */

static bool show_audit(struct page *p)
{
    size_t i;
    json_t *item;
    if (!json_object_get(p->values, "audit") && p->rq->reply.status == 400 && json_object_get(p->values, "session")) {
        page_set(p, "not_found", json_true());
        p->rq->reply.status = 200;
    }
    if (admin_failed(p))
        return true;
    json_array_foreach(json_object_get(json_object_get(p->values, "audit"), "items"), i, item)
    {
        json_object_set_new(item, "what", json_incref(json_object_get(item, "action")));
        json_object_set_new(item, "what_word", admin_word(json_object_get(item, "action")));
        json_object_set_new(item, "outcome_word", admin_word(json_object_get(item, "outcome")));
        admin_set_short(item, "customer_id");
        admin_set_short(item, "correlation_id");
    }
    return page_write(p, "admin-audit", TEXT_ADMIN_AUDIT, 200);
}

/* An id that is of no request may be a customer's. */
static bool audit(struct page *p)
{
    const char *customer = admin_of(p)->own;
    const json_t *items = json_object_get(json_object_get(p->values, "audit"), "items");
    if (!customer || p->rq->reply.status != 200 || json_array_size(items) > 0)
        return show_audit(p);
    admin_read_again(p, &(struct page_read){.name = "audit", .path = STR("/v1/audit"), .query = str_of(customer)},
                     show_audit);
    return false;
}

static void audit_handle(struct request *rq)
{
    static const char *const place[] = {"after"}, *const place_and_kind[] = {"kind", "after"};
    struct page *p = admin_begin(rq);
    struct str q = p ? str_trim(request_query(rq, "q")) : STR(""), query;
    if (!p)
        return;
    admin_set_query(p, "q");
    admin_set_query(p, "kind");
    admin_set_query(p, "after");
    query = q.len ? admin_query(p, "limit=50", place, 1) : admin_query(p, "limit=50", place_and_kind, 2);
    if (q.len && str_is_uuid(q))
        admin_of(p)->own = (void *)(uintptr_t)arena_printf(rq->arena, "%s&customer=%.*s", query.at, STR_ARGS(q)).at;
    if (q.len)
        query = arena_printf(rq->arena, "%s&%s=%s", query.at, str_is_uuid(q) ? "correlation" : "email",
                             admin_escaped(p, q).at);
    admin_gather(p, "audit", &(struct page_read){.name = "audit", .path = STR("/v1/audit"), .query = query}, 1, audit);
}

/* --- the sandbox's clock --- */

static bool clock_was_moved(struct page *p)
{
    return p->rq->reply.status == 200 ? admin_redirect(p, "/admin", admin_of(p)->own, 0)
                                      : admin_redirect_failed(p, "/admin");
}

static void clock_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    if (!p)
        return;
    struct str advance = page_field(p, "advance");
    bool resets = page_field(p, "reset").len > 0;
    admin_of(p)->own = resets ? "clock_reset" : "clock_moved";
    admin_ask(p, resets ? METHOD_DELETE : METHOD_POST, STR("/v1/sandbox/clock"),
              resets ? (struct str){NULL, 0}
                     : page_json(p, "{s:s%}", "advance", advance.at ? advance.at : "", advance.len),
              clock_was_moved);
}

/* --- limits --- */

static bool limits(struct page *p)
{
    bool refused = p->rq->reply.status == 400 || p->rq->reply.status == 404; /* the latter with a slash in it */
    if (!json_object_get(p->values, "limits") && refused && json_object_get(p->values, "session")) {
        page_set(p, "invalid", json_true());
        p->rq->reply.status = 200;
    }
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json_object_get(p->values, "limits"), "items"), i, item)
        json_object_set_new(item, "word", admin_word(json_object_get(item, "tier")));
    return admin_failed(p) || page_write(p, "admin-limits", TEXT_ADMIN_LIMITS, 200);
}

/* An address or network as people type it, as a key: "global" for nothing. */
static struct str key_of(struct page *p, struct str typed)
{
    struct str text = str_trim(typed);
    bool named = str_starts(text, STR("ip:")) || str_starts(text, STR("email:")) || str_eq(text, STR("global"));
    if (!text.len || named)
        return text.len ? text : STR("global");
    return arena_printf(p->rq->arena, "%s:%.*s", memchr(text.at, '@', text.len) ? "email" : "ip", STR_ARGS(text));
}

static void limits_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    admin_set_query(p, "key");
    struct str key = key_of(p, request_query(rq, "key"));
    page_set_text(p, "asked", key);
    admin_gather(
        p, "limits",
        &(struct page_read){.name = "limits", .path = arena_printf(rq->arena, "/v1/limits/%.*s", STR_ARGS(key))}, 1,
        limits);
}

static bool limits_were_reset(struct page *p)
{
    return p->rq->reply.status == 200 ? admin_redirect(p, admin_of(p)->own, "reset", 0)
                                      : admin_redirect_failed(p, admin_of(p)->own);
}

static void limits_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    if (!p)
        return;
    struct str typed = page_field(p, "key"), key = key_of(p, typed.at ? typed : STR(""));
    bool all = str_eq(key, STR("global"));
    admin_of(p)->own = (void *)(uintptr_t)arena_printf(rq->arena, "/admin/limits%s%s",
                                                       all ? "" : "?key=", all ? "" : admin_escaped(p, typed).at)
                           .at;
    admin_ask(p, METHOD_DELETE, arena_printf(rq->arena, "/v1/limits/%.*s", STR_ARGS(key)), (struct str){NULL, 0},
              limits_were_reset);
}

/* --- dead letters --- */

static bool dead(struct page *p)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json_object_get(p->values, "dead"), "items"), i, item)
    {
        json_object_set_new(item, "what_word", admin_word(json_object_get(item, "what")));
        admin_set_short(item, "customer_id");
    }
    return admin_failed(p) || page_write(p, "admin-dead", TEXT_ADMIN_DEAD, 200);
}

static void dead_handle(struct request *rq)
{
    static const char *const names[] = {"after"};
    struct page *p = admin_begin(rq);
    if (!p)
        return;
    admin_set_query(p, "after");
    admin_gather(p, "dead",
                 &(struct page_read){
                     .name = "dead", .path = STR("/v1/events/dead"), .query = admin_query(p, "limit=50", names, 1)},
                 1, dead);
}

static bool redriven(struct page *p)
{
    return p->rq->reply.status == 200 ? admin_redirect(p, "/admin/dead", "redriven", 1)
                                      : admin_redirect_failed(p, "/admin/dead");
}

static void dead_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    struct str id = p ? page_field(p, "id") : STR("");
    if (p)
        admin_ask(p, METHOD_POST,
                  arena_printf(rq->arena, "/v1/events/dead/%.*s/redrive", STR_ARGS(id.len ? id : STR("0"))), STR("{}"),
                  redriven);
}

/* --- services and settings --- */

static bool services(struct page *p)
{
    admin_set_labels(p, json_object_get(json_object_get(p->values, "services"), "items"));
    return admin_failed(p) || page_write(p, "admin-services", TEXT_ADMIN_SERVICES, 200);
}

static void services_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (p)
        admin_gather(p, "services", &(struct page_read){.name = "services", .path = STR("/v1/participants")}, 1,
                     services);
}

/* The first of each group has its heading. */
static bool settings(struct page *p)
{
    if (admin_failed(p))
        return true;
    const char *last = "";
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(json_object_get(p->values, "settings"), "items"), i, item)
    {
        const char *group = json_string_value(json_object_get(item, "group"));
        if (group && strcmp(group, last) != 0)
            json_object_set_new(item, "heading", admin_word(json_object_get(item, "group")));
        last = group ? group : last;
    }
    return page_write(p, "admin-settings", TEXT_ADMIN_SETTINGS, 200);
}

static void settings_handle(struct request *rq)
{
    struct page *p = admin_begin(rq);
    if (p)
        admin_gather(p, "settings", &(struct page_read){.name = "settings", .path = STR("/v1/settings")}, 1, settings);
}

const struct route admin_tools_routes[] = {
    {.method = METHOD_GET, .path = "/admin/orphans", .handle = orphans_handle},
    {.method = METHOD_POST, .path = "/admin/orphans", .handle = orphans_form_handle},
    {.method = METHOD_GET, .path = "/admin/audit", .handle = audit_handle},
    {.method = METHOD_POST, .path = "/admin/clock", .handle = clock_form_handle},
    {.method = METHOD_GET, .path = "/admin/limits", .handle = limits_handle},
    {.method = METHOD_POST, .path = "/admin/limits", .handle = limits_form_handle},
    {.method = METHOD_GET, .path = "/admin/dead", .handle = dead_handle},
    {.method = METHOD_POST, .path = "/admin/dead", .handle = dead_form_handle},
    {.method = METHOD_GET, .path = "/admin/services", .handle = services_handle},
    {.method = METHOD_GET, .path = "/admin/settings", .handle = settings_handle},
    {0},
};
