/* The console's sign-in, its sessions, and what all of its pages share. */
#include "pages/admin.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "credentials/jwt.h"
#include "pages/routes.h"

#define SESSION_LIFE_S (INT64_C(12) * 3600)
#define NOTICE_LIFE_S 60
#define UNDO_LIFE_S 900
#define SIGN_IN "/admin/sign-in"
#define COOKIE "console"

static const char *text_in(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

/* A notice of the page before, once. */
static void take_notice(struct page *p)
{
    json_t *notice = page_state(p, "notice");
    if (!notice)
        return;
    page_set(p, "notice", json_incref(json_object_get(notice, "id")));
    page_set(p, "n", json_incref(json_object_get(notice, "n")));
    page_set(p, "notice_bad", json_incref(json_object_get(notice, "bad")));
    page_set(p, "notice_code", json_incref(json_object_get(notice, "code")));
    page_set(p, "undo", json_incref(json_object_get(notice, "undo")));
    page_forget(p, "notice");
}

/* What the address asks for, for links that keep it: "&q=a&status=frozen". */
static void set_kept(struct page *p)
{
    static const char *const names[] = {"q", "status", "held", "kind", "span", "older_than", "key", "after"};
    admin_of(p)->kept = admin_query(p, "", names, COUNT_OF(names)).at;
    const char *kept = admin_of(p)->kept;
    page_set_text(p, "kept", arena_printf(p->rq->arena, "%s%s", kept && *kept ? "&" : "", kept ? kept : ""));
}

static void read_refresh(struct page *p)
{
    static const char *const every[] = {"0", "2", "5", "30"};
    struct str asked = request_query(p->rq, "every");
    json_t *kept = page_state(p, "refresh");
    int64_t seconds = kept ? json_integer_value(json_object_get(kept, "s")) : 0;
    for (size_t i = 0; i < COUNT_OF(every); i++)
        if (asked.len && str_eq(asked, str_of(every[i]))) {
            (void)!str_to_i64(asked, 0, 30, &seconds);
            page_keep(p, "refresh", json_pack("{s:I}", "s", (json_int_t)seconds), SESSION_LIFE_S);
        }
    page_set(p, "refresh_s", json_integer(seconds));
}

/* NULL after a redirect: without a cookie there is nothing to ask with. */
static struct page *with_session(struct page *p)
{
    json_t *kept = p ? page_state(p, COOKIE) : NULL;
    struct admin *a = kept ? arena_take(p->rq->arena, sizeof *a) : NULL;
    if (p && !a)
        page_go(p, SIGN_IN);
    if (!a)
        return NULL;
    a->bearer = text_in(kept, "bearer"); /* the state lives as long as the request */
    a->session = text_in(kept, "session");
    p->own = a;
    set_kept(p);
    if (a->bearer && a->session)
        return p;
    page_go(p, SIGN_IN);
    return NULL;
}

struct page *admin_begin(struct request *rq)
{
    struct page *p = with_session(page_begin(rq));
    if (p) {
        take_notice(p);
        read_refresh(p);
    }
    return p;
}

struct page *admin_begin_form(struct request *rq)
{
    return with_session(page_begin_form(rq));
}

struct admin *admin_of(struct page *p)
{
    return p->own;
}

static struct str session_path(struct page *p)
{
    return arena_printf(p->rq->arena, "/v1/console/sessions/%s", admin_of(p)->session);
}

void admin_gather(struct page *p, const char *section, const struct page_read *reads, size_t count,
                  bool (*then)(struct page *p))
{
    struct page_read all[PAGE_READS_MAX];
    const struct admin *a = admin_of(p);
    bool refreshes = request_query(p->rq, "refresh").len > 0;
    page_set_text(p, "section", str_of(section));
    all[0] = (struct page_read){
        .name = "session", .path = session_path(p), .query = refreshes ? STR("use=0") : (struct str){NULL, 0}};
    for (size_t i = 0; i < count; i++)
        all[i + 1] = reads[i];
    page_gather(p, a->bearer, all, count + 1, then);
}

void admin_read_again(struct page *p, const struct page_read *read, bool (*then)(struct page *p))
{
    page_gather(p, admin_of(p)->bearer, read, 1, then);
}

bool admin_redirect_with(struct page *p, const char *to, const struct admin_notice *n)
{
    if (n->undo)
        page_keep(p, "undo", n->undo, UNDO_LIFE_S);
    page_keep(p, "notice",
              json_pack("{s:s,s:I,s:b,s:b,s:s?}", "id", n->id, "n", (json_int_t)n->n, "bad", n->bad, "undo",
                        n->undo != NULL, "code", n->code),
              NOTICE_LIFE_S);
    return page_redirect(p, to);
}

bool admin_redirect(struct page *p, const char *to, const char *notice, int64_t n)
{
    return admin_redirect_with(p, to, &(struct admin_notice){.id = notice, .n = n});
}

static bool redirect_bad(struct page *p, const char *to, const char *notice)
{
    return admin_redirect_with(p, to, &(struct admin_notice){.id = notice, .bad = true});
}

bool admin_redirect_failed(struct page *p, const char *to)
{
    int status = p->rq->reply.status;
    const char *code = text_in(page_answer(p), "error");
    if (status == 401) {
        page_forget(p, COOKIE);
        return redirect_bad(p, SIGN_IN, "ended");
    }
    if (status == 403)
        return redirect_bad(p, to, "read_only");
    if (status == 404)
        return redirect_bad(p, to, "gone");
    if (code && strcmp(code, "LEGAL_HOLD") == 0)
        return redirect_bad(p, to, "held");
    if (code && status >= 400 && status < 500)
        return admin_redirect_with(p, to, &(struct admin_notice){.id = "error", .bad = true, .code = code});
    return redirect_bad(p, to, "failed");
}

/* Of an answer about the session. */
static bool is_ended(int status)
{
    return status == 401 || status == 403 || status == 404;
}

bool admin_failed(struct page *p)
{
    int status = p->rq->reply.status;
    if (!json_object_get(p->values, "session")) {
        if (!is_ended(status))
            return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
        page_forget(p, COOKIE);
        return redirect_bad(p, SIGN_IN, "ended");
    }
    admin_of(p)->is_alive = true;
    page_set(p, "may_change",
             json_boolean(strcmp(text_in(json_object_get(p->values, "session"), "scope"), "admin") == 0));
    if (status == 200)
        return false;
    if (status == 404 || status == 400)
        return page_write(p, "not-found", TEXT_PAGE_NOT_FOUND_TITLE, 404);
    return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, status == 503 ? 503 : 500);
}

static void ask_as_operator(struct page *p)
{
    const struct admin *a = admin_of(p);
    page_ask(p, &a->next, a->answered);
}

static bool session_answered(struct page *p)
{
    struct admin *a = admin_of(p);
    if (is_ended(p->rq->reply.status)) {
        page_forget(p, COOKIE);
        return redirect_bad(p, SIGN_IN, "ended");
    }
    if (p->rq->reply.status != 200)
        return page_write(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
    a->is_alive = true;
    ask_as_operator(p);
    return false;
}

/* The cookie alone allows nothing: before the first request of a form the session is asked for. */
void admin_ask(struct page *p, enum method method, struct str path, struct str body, bool (*answered)(struct page *p))
{
    struct admin *a = admin_of(p);
    a->next = (struct forward){.method = method, .path = path, .body = body, .bearer = a->bearer};
    a->answered = answered;
    if (a->is_alive)
        ask_as_operator(p);
    else
        page_ask(p, &(struct forward){.method = METHOD_GET, .path = session_path(p), .bearer = a->bearer},
                 session_answered);
}

/* --- values --- */

static void add_escaped(struct buf *out, struct str text)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] && strchr(plain, text.at[i]))
            buf_add(out, (struct str){text.at + i, 1});
        else
            buf_addf(out, "%%%02X", (unsigned char)text.at[i]);
    }
}

struct str admin_query(struct page *p, const char *first, const char *const *names, size_t count)
{
    AUTO(buf) struct buf out = buf_new(8192);
    buf_addz(&out, first);
    for (size_t i = 0; i < count; i++) {
        struct str value = request_query(p->rq, names[i]);
        if (!value.len)
            continue;
        buf_addf(&out, "%s%s=", out.len ? "&" : "", names[i]);
        add_escaped(&out, str_trim(value));
    }
    return arena_copy(p->rq->arena, out.len && !out.failed ? buf_str(&out) : STR(""));
}

struct str admin_escaped(struct page *p, struct str text)
{
    AUTO(buf) struct buf out = buf_new(8192);
    add_escaped(&out, text);
    return arena_copy(p->rq->arena, out.len && !out.failed ? buf_str(&out) : STR(""));
}

void admin_set_query(struct page *p, const char *name)
{
    struct str value = request_query(p->rq, name);
    if (value.len && str_is_utf8(value))
        page_set_text(p, name, str_trim(value));
}

json_t *admin_word(const json_t *value)
{
    const char *text = json_string_value(value);
    char word[64] = "";
    size_t len = 0;
    for (size_t i = 0; text && text[i] && len < sizeof word - 1; i++) {
        char c = text[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (c >= 'A' && c <= 'Z')
            word[len++] = (char)(c - 'A' + 'a');
        else if (plain || (len > 0 && word[len - 1] != '_'))
            word[len++] = plain ? c : '_';
    }
    return json_stringn(word, len);
}

void admin_set_short(json_t *item, const char *name)
{
    char key[64];
    const char *id = json_string_value(json_object_get(item, name));
    (void)snprintf(key, sizeof key, "%s_short", name);
    if (id)
        json_object_set_new(item, key, json_stringn(id, strnlen(id, 8)));
}

void admin_set_labels(struct page *p, json_t *participants)
{
    static const struct {
        const char *name;
        enum text label;
    } own[] = {{"reclaim.calls", TEXT_ADMIN_PARTICIPANT_CALLS},
               {"reclaim.charges", TEXT_ADMIN_PARTICIPANT_CHARGES},
               {"reclaim.adjustments", TEXT_ADMIN_PARTICIPANT_ADJUSTMENTS}};
    size_t i;
    json_t *one;
    json_array_foreach(participants, i, one)
    {
        const char *name = text_in(one, "name");
        bool has_label = json_string_length(json_object_get(one, "label")) > 0;
        for (size_t n = 0; n < COUNT_OF(own) && !has_label; n++)
            if (name && strcmp(name, own[n].name) == 0) {
                struct str text = sentence(p->reader.sentences, p->reader.language, own[n].label);
                json_object_set_new(one, "label", json_stringn(text.at, text.len));
            }
    }
}

json_t *admin_decimal(const struct page *p, double value, int digits)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%.*f", digits, value);
    char *point = strchr(text, '.');
    if (point && p->reader.language == LANGUAGE_DE)
        *point = ',';
    return json_string(text);
}

json_t *admin_duration(struct page *p, int64_t seconds)
{
    int64_t s = seconds < 0 ? 0 : seconds;
    bool whole = s >= 86400 ? s % 86400 < 3600 : s >= 3600 && s % 3600 < 60;
    enum text id = whole && s >= 86400 ? TEXT_ADMIN_DURATION_WHOLE_DAYS
                   : whole             ? TEXT_ADMIN_DURATION_WHOLE_HOURS
                   : s >= 86400        ? TEXT_ADMIN_DURATION_DAYS
                   : s >= 3600         ? TEXT_ADMIN_DURATION_HOURS
                   : s >= 60           ? TEXT_ADMIN_DURATION_MINUTES
                                       : TEXT_ADMIN_DURATION_SECONDS;
    AUTO(json)
    json_t *parts =
        json_pack("{s:I,s:I,s:I,s:I}", "days", (json_int_t)(s / 86400), "hours", (json_int_t)(s / 3600 % 24), "minutes",
                  (json_int_t)(s / 60 % 60), "seconds", (json_int_t)(s % 60));
    AUTO(buf) struct buf out = buf_new(1024);
    text_fill_sentence(&p->reader, id, parts, &out);
    return json_string(buf_str(&out).at ? buf_str(&out).at : "");
}

int64_t admin_seconds_until(const json_t *rfc3339)
{
    struct tm tm = {0};
    const char *text = json_string_value(rfc3339);
    if (!text || !strptime(text, "%Y-%m-%dT%H:%M:%S", &tm))
        return 0;
    return (int64_t)timegm(&tm) - clock_installation_us() / 1000000;
}

/* --- signing in and out --- */

static void sign_in_handle(struct request *rq)
{
    struct page *p = page_begin(rq);
    if (!p)
        return;
    take_notice(p);
    page_set(p, "offers_demo", json_boolean(p->pages->config.demo && p->pages->config.has_mailbox));
    page_show(p, "admin-sign-in", TEXT_ADMIN_SIGN_IN_TITLE, 200);
}

static bool signed_in(struct page *p)
{
    const struct admin *a = admin_of(p);
    int status = p->rq->reply.status;
    const char *session = status == 201 ? text_in(page_answer(p), "id") : NULL;
    if (!session)
        return redirect_bad(p, SIGN_IN, status == 403 ? "wrong_scope" : status == 401 ? "wrong_key" : "failed");
    page_keep(p, COOKIE, json_pack("{s:s,s:s}", "bearer", a->bearer, "session", session), SESSION_LIFE_S);
    return page_redirect(p, "/admin");
}

static void exchange(struct page *p, const char *bearer)
{
    struct admin *a = arena_take(p->rq->arena, sizeof *a);
    if (!a || !bearer || !*bearer) {
        redirect_bad(p, SIGN_IN, "wrong_key");
        reply_send(p->rq, p->rq->reply.status);
        return;
    }
    a->bearer = bearer;
    p->own = a;
    page_ask(p,
             &(struct forward){
                 .method = METHOD_POST, .path = STR("/v1/console/sessions"), .body = STR("{}"), .bearer = bearer},
             signed_in);
}

static void sign_in_form_handle(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (p)
        exchange(p, arena_copy(rq->arena, page_field(p, "key").at ? page_field(p, "key") : STR("")).at);
}

/* The demonstration has no secrets, and is served on this machine only. */
static void demo_form_handle(struct request *rq)
{
    struct page *p = page_begin_form(rq);
    if (!p)
        return;
    if (!p->pages->config.demo || !p->pages->config.has_mailbox) {
        page_go(p, SIGN_IN);
        return;
    }
    AUTO(buf) struct buf token = buf_new(1024);
    int64_t now_us = clock_wall_us();
    const struct jwt_grant grant = {
        .role = "service_role", .issued_us = now_us, .expires_us = now_us + (int64_t)SESSION_LIFE_S * 1000000};
    if (jwt_sign(p->pages->config.token_key, &grant, &token)) {
        page_go(p, SIGN_IN);
        return;
    }
    exchange(p, arena_copy(rq->arena, buf_str(&token)).at);
}

static bool signed_out(struct page *p)
{
    page_forget(p, COOKIE);
    return admin_redirect(p, SIGN_IN, "signed_out", 0);
}

static void sign_out_form_handle(struct request *rq)
{
    struct page *p = admin_begin_form(rq);
    if (!p)
        return;
    bool everywhere = page_field(p, "everywhere").len > 0;
    admin_ask(p, METHOD_DELETE, everywhere ? STR("/v1/console/sessions") : session_path(p), (struct str){NULL, 0},
              signed_out);
}

const struct route admin_routes[] = {
    {.method = METHOD_GET, .path = "/admin/sign-in", .handle = sign_in_handle},
    {.method = METHOD_POST, .path = "/admin/sign-in", .handle = sign_in_form_handle},
    {.method = METHOD_POST, .path = "/admin/demo", .handle = demo_form_handle},
    {.method = METHOD_POST, .path = "/admin/sign-out", .handle = sign_out_form_handle},
    {0},
};
