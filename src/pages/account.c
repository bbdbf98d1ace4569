/* `/account`: what deleting an account means, for everyone; and for those who sign in, deleting it and taking it back. */
#include "pages/account.h"

#include <string.h>

#include "base/clock.h"
#include "pages/routes.h"

#define IDLE_S 900
#define SAID_S 600 /* how long a page repeats what the last form led to */
#define TEXT_MAX ((size_t)255)

static void show_public(struct page *p);
static bool public_gathered(struct page *p);
static bool session_known(struct page *p);
static bool show_customer(struct page *p, const json_t *customer);
static bool customer_gathered(struct page *p);
static bool write_page(struct page *p, const char *template, enum text title);

/* --- what both kinds of requests share --- */

int64_t account_now_s(void)
{
    return clock_wall_us() / 1000000;
}

struct account *account_begin(struct page *p)
{
    struct account *a = arena_take(p->rq->arena, sizeof *a);
    if (!a) {
        page_show(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
        return NULL;
    }
    const json_t *session = page_state(p, "session");
    a->until_s = json_integer_value(json_object_get(session, "until"));
    if (a->until_s > account_now_s()) {
        a->token = json_string_value(json_object_get(session, "token"));
        a->customer = json_string_value(json_object_get(session, "customer"));
    }
    p->own = a;
    return a;
}

void account_keep_session(struct page *p, const char *token, int64_t until_s, const char *customer)
{
    int64_t left_s = until_s - account_now_s();
    if (left_s > 0)
        page_keep(p, "session",
                  json_pack("{s:s,s:I,s:s?}", "token", token, "until", (json_int_t)until_s, "customer", customer),
                  left_s < IDLE_S ? left_s : IDLE_S);
}

static struct str kept_text(struct str text)
{
    return (struct str){text.at, text.len < TEXT_MAX ? text.len : TEXT_MAX};
}

static json_t *new_step(const char *form, struct str email)
{
    json_t *step = json_pack("{s:s}", "form", form);
    if (email.at)
        json_object_set_new(step, "email", json_stringn(email.at, kept_text(email).len));
    return step;
}

/* Kept as long as its page counts down. */
static void keep(struct page *p, json_t *step)
{
    int64_t wait_s = json_integer_value(json_object_get(step, "wait_until")) - account_now_s();
    page_keep(p, "account", step, wait_s > SAID_S ? wait_s : SAID_S);
}

void account_keep(struct page *p, json_t *step, const char *say)
{
    json_object_set_new(step, "say", json_string(say));
    keep(p, step);
}

/* The sentence of this page, or that for any page, which asks for the reference. */
static void set_error(struct page *p, json_t *step)
{
    char key[80] = "account.error_";
    const char *code = json_string_value(json_object_get(page_answer(p), "error"));
    size_t len = strlen(key);
    enum text id;
    for (const char *c = code; c && *c && len + 1 < sizeof key; c++)
        key[len++] = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    key[len] = '\0';
    if (sentence_find(str_of(key), &id)) {
        json_object_set_new(step, "error", json_string(code ? code : "other"));
        json_object_set_new(step, "reference", json_string(p->rq->correlation_id));
    }
    json_object_set_new(step, "say", json_string(key + sizeof "account." - 1));
}

void account_keep_error(struct page *p, json_t *step, const char *button)
{
    int64_t wait_s = p->rq->reply.status == 429 ? page_retry_after(p) : 0;
    set_error(p, step);
    if (wait_s > 0) {
        json_object_set_new(step, "wait_until", json_integer(account_now_s() + wait_s));
        json_object_set_new(step, "waits", json_string(button));
    }
    keep(p, step);
}

void account_say(struct page *p, const char *form, const char *say, struct str email)
{
    account_keep(p, new_step(form, email), say);
}

void account_say_error(struct page *p, const char *form, struct str email)
{
    account_keep_error(p, new_step(form, email), "code");
}

/* --- the step with a code --- */

void account_begin_code(struct page *p)
{
    const json_t *before = page_state(p, "account");
    page_set(p, "before", before ? json_deep_copy(before) : json_null());
}

/* What the browser knows of a code for the same address; NULL: nothing. */
static const json_t *code_before(const struct page *p, const char *form, struct str email)
{
    struct str its = {NULL, 0};
    const json_t *before = json_object_get(p->values, "before");
    const char *its_form = json_string_value(json_object_get(before, "form"));
    if (!its_form || strcmp(its_form, form) != 0)
        return NULL;
    if (email.at && (json_get_str(before, "email", &its) || !str_eq_nocase(its, kept_text(email))))
        return NULL;
    return before;
}

bool account_must_wait_for_code(const struct page *p, const char *form, struct str email)
{
    return json_integer_value(json_object_get(code_before(p, form, email), "resend")) > account_now_s();
}

json_t *account_code_step(struct page *p, const char *form, struct str email)
{
    static const char *const kept[] = {"expires", "resend"};
    const json_t *before = code_before(p, form, email);
    json_t *step = new_step(form, email);
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        if (json_object_get(before, kept[i]))
            json_object_set(step, kept[i], json_object_get(before, kept[i]));
    return step;
}

void account_end_session(struct page *p)
{
    const char *code = json_string_value(json_object_get(page_answer(p), "error"));
    bool deleted = code && strcmp(code, "ACCOUNT_DELETED") == 0;
    page_forget(p, "session");
    account_say(p, "notice", deleted ? "deleted_meanwhile" : "session_ended", (struct str){NULL, 0});
}

/* --- GET --- */

/* A code's life counts on the installation's clock, which may have been moved; waits count on the real one. */
static void set_times(struct page *p, const json_t *said)
{
    int64_t now_us = clock_wall_us(), installation_us = clock_installation_us();
    int64_t expires_us = json_integer_value(json_object_get(said, "expires")) * 1000000;
    page_set_countdown(p, "wait", json_integer_value(json_object_get(said, "wait_until")) * 1000000, now_us);
    page_set_countdown(p, "resend", json_integer_value(json_object_get(said, "resend")) * 1000000, now_us);
    page_set_countdown(p, "life", expires_us, installation_us);
    page_set(p, "life_over", json_boolean(expires_us && expires_us <= installation_us));
}

/* What the last form led to. A notice is said once. An address in the query begins again, with that address filled in. */
static void set_said(struct page *p)
{
    struct str email = {NULL, 0};
    if (request_query_text(p->rq, "email", &email) || email.len > TEXT_MAX)
        email = STR("");
    json_t *said = email.at ? NULL : page_state(p, "account");
    const char *form = json_string_value(json_object_get(said, "form"));
    page_set(p, "said", json_incref(said));
    page_set(p, "email", json_incref(json_object_get(said, "email")));
    page_set(p, "waits", json_incref(json_object_get(said, "waits")));
    if (email.at)
        page_set_text(p, "email", str_trim(email));
    if (form && strcmp(form, "notice") == 0)
        page_forget(p, "account");
    set_times(p, said);
}

/* 1. On the loop. */
static void account_page(struct request *rq)
{
    struct page *p = page_begin(rq);
    const struct account *a = p ? account_begin(p) : NULL;
    if (!a)
        return;
    set_said(p);
    if (a->token)
        page_ask(p, &(struct forward){.method = METHOD_GET, .path = STR("/auth/session"), .bearer = a->token},
                 session_known);
    else
        show_public(p);
}

static void show_public(struct page *p)
{
    static const struct page_read reads[] = {{.name = "participants", .path = STR("/v1/erasure/participants")}};
    page_gather(p, NULL, reads, COUNT_OF(reads), public_gathered);
}

/* The sign-in works even while the list cannot be read. */
static bool public_gathered(struct page *p)
{
    account_set_public(p, json_object_get(p->values, "participants"));
    return page_write(p, "account", TEXT_ACCOUNT_TITLE, 200);
}

static bool write_failure(struct page *p)
{
    return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
}

/* The session has ended: the page for everyone, which says so. The cookies are written with the redirect. */
static bool sign_out(struct page *p)
{
    account_end_session(p);
    return page_redirect(p, "/account");
}

static const json_t *find_customer(const json_t *customers, const char *id)
{
    for (size_t i = 0; i < json_array_size(customers); i++) {
        const json_t *one = json_array_get(customers, i);
        const char *its = json_string_value(json_object_get(one, "id"));
        if (id && its && strcmp(id, its) == 0)
            return one;
    }
    return NULL;
}

/* 2. On the endpoint's thread. */
static bool session_known(struct page *p)
{
    const struct account *a = p->own;
    int status = p->rq->reply.status;
    json_t *session = page_answer(p);
    if (status == 401 || status == 403)
        return sign_out(p);
    if (status != 200 || !session)
        return write_failure(p);
    page_set(p, "signed_in", json_true());
    page_set(p, "session", json_incref(session));
    const json_t *customers = json_object_get(session, "customers");
    const json_t *chosen =
        json_array_size(customers) == 1 ? json_array_get(customers, 0) : find_customer(customers, a->customer);
    page_set(p, "has_several", json_boolean(json_array_size(customers) > 1));
    if (chosen)
        return show_customer(p, chosen);
    if (json_array_size(customers) == 0)
        return write_page(p, "account-none", TEXT_ACCOUNT_NONE_TITLE);
    return write_page(p, "account-choose", TEXT_ACCOUNT_CHOOSE_TITLE);
}

static bool show_customer(struct page *p, const json_t *customer)
{
    const struct account *a = p->own;
    const char *id = json_string_value(json_object_get(customer, "id"));
    const char *role = json_string_value(json_object_get(customer, "role"));
    if (role && strcmp(role, "owner") != 0) {
        page_set(p, "customer", json_incref((json_t *)(uintptr_t)customer));
        return write_page(p, "account-member", TEXT_ACCOUNT_MEMBER_TITLE);
    }
    p->customer = id;
    page_set(p, "paused", json_boolean(json_is_true(json_object_get(customer, "deletion_paused"))));
    page_use_language(p, json_object_get(customer, "language"));
    struct page_read reads[] = {
        {.name = "participants", .path = STR("/v1/erasure/participants")},
        {.name = "customer", .path = arena_printf(p->rq->arena, "/v1/customers/%s", id)},
        {.name = "preview",
         .path = arena_printf(p->rq->arena, "/v1/customers/%s/erasure", id),
         .query = STR("preview=1")},
    };
    if (!reads[1].path.at || !reads[2].path.at)
        return write_failure(p);
    page_gather(p, a->token, reads, COUNT_OF(reads), customer_gathered);
    return false;
}

/* 3. On the last endpoint's thread. */
static bool customer_gathered(struct page *p)
{
    const json_t *customer = json_object_get(p->values, "customer"), *preview = json_object_get(p->values, "preview");
    if (p->rq->reply.status == 401)
        return sign_out(p);
    if (!customer || !preview)
        return write_failure(p);
    account_set_public(p, json_object_get(p->values, "participants"));
    account_set_preview(p, preview);
    const char *status = json_string_value(json_object_get(customer, "status"));
    const char *said = json_string_value(json_object_get(json_object_get(p->values, "said"), "form"));
    if (status && strcmp(status, "frozen") != 0)
        return said && strcmp(said, "recovered") == 0 ? write_page(p, "account-recovered", TEXT_ACCOUNT_RECOVERED_TITLE)
                                                      : write_page(p, "account-active", TEXT_ACCOUNT_ACTIVE_TITLE);
    account_set_countdown(p, customer,
                          json_string_value(json_object_get(json_object_get(p->values, "session"), "now")));
    return write_page(p, "account-frozen", TEXT_ACCOUNT_FROZEN_TITLE);
}

/* A page of someone who is signed in; it prolongs the session. */
static bool write_page(struct page *p, const char *template, enum text title)
{
    const struct account *a = p->own;
    account_keep_session(p, a->token, a->until_s, a->customer);
    return page_write(p, template, title, 200);
}

const struct route account_routes[] = {
    {.method = METHOD_GET, .path = "/account", .handle = account_page},
    {.method = METHOD_POST, .path = "/account/sign-in", .handle = account_form_sign_in},
    {.method = METHOD_POST, .path = "/account/code", .handle = account_form_code},
    {.method = METHOD_POST, .path = "/account/start-over", .handle = account_form_start_over},
    {.method = METHOD_POST, .path = "/account/choose", .handle = account_form_choose},
    {.method = METHOD_POST, .path = "/account/delete", .handle = account_form_delete},
    {.method = METHOD_POST, .path = "/account/delete-code", .handle = account_form_delete_code},
    {.method = METHOD_POST, .path = "/account/take-back", .handle = account_form_take_back},
    {.method = METHOD_POST, .path = "/account/sign-out", .handle = account_form_sign_out},
    {.method = METHOD_POST, .path = "/account/sign-out-everywhere", .handle = account_form_sign_out_everywhere},
    {0},
};
