#include "pages/page.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/random.h"
#include "pages/assets.h"
#include "pages/templates.h"

#define PAGE_MAX ((size_t)2 * 1024 * 1024)
#define VISITOR_LIFE_S ((int64_t)180 * 86400)
#define LANGUAGE_LIFE_S ((int64_t)365 * 86400)

static const char policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

static void free_json(void *json)
{
    json_decref(json);
}

static enum language language_of(struct page *p)
{
    enum language language;
    struct str asked = request_query(p->rq, "lang");
    if (asked.at && !language_parse(asked, &language)) {
        p->keeps_language = true;
        return language;
    }
    struct str kept = cookie_read(p, "lang");
    if (kept.at && !language_parse(kept, &language))
        return language;
    if (!language_asked(request_header(p->rq, "Accept-Language"), &language))
        return language;
    p->guesses_language = true;
    return p->pages->config.language;
}

void page_use_language(struct page *p, const json_t *tag)
{
    enum language language;
    if (!p->guesses_language || !json_is_string(tag) || language_parse(str_of(json_string_value(tag)), &language))
        return;
    p->reader.language = language;
    page_set_text(p, "lang", str_of(language_tag(language)));
}

/* 32 hex digits that bind this browser's forms; made on its first visit. */
static void read_visitor(struct page *p)
{
    uint8_t bytes[16];
    struct str kept = cookie_read(p, "visitor");
    if (!kept.at || kept.len != 32 || hex_read(kept, bytes, sizeof bytes)) {
        random_bytes(bytes, sizeof bytes);
        p->new_visitor = true;
    }
    hex_write(bytes, sizeof bytes, p->visitor);
}

static void token_of(const struct page *p, char into[DIGEST_HEX_LEN + 1])
{
    struct digest token = digest_hmac(&p->pages->token_key, str_of(p->visitor));
    digest_hex(&token, into);
}

/* In a sandbox whose clock was moved every page says so, and counts down from that time. */
static void set_clock(struct page *p)
{
    char now[25];
    page_set(p, "sandbox", json_boolean(clock_is_sandbox()));
    if (clock_sandbox_shift_ms() == 0)
        return;
    clock_format_ms(clock_installation_us(), now);
    page_set(p, "clock_moved", json_true());
    page_set_text(p, "now", str_of(now));
}

/* Where a link of this page may lead to, so that it is there again. The address of a form takes no GET: its page does. What
 * begins with two slashes, or a slash and a backslash, would be another host. */
static struct str own_path(const struct page *p)
{
    struct str path = p->rq->path;
    bool form = p->rq->method != METHOD_GET && p->rq->method != METHOD_HEAD;
    if (path.len < 2 || path.at[0] != '/' || path.at[1] == '/' || path.at[1] == '\\')
        return STR("/");
    const char *slash = form ? memchr(path.at + 1, '/', path.len - 1) : NULL;
    return slash ? (struct str){path.at, (size_t)(slash - path.at)} : path;
}

/* What every template may use. */
static void set_common(struct page *p)
{
    const struct pages_config *c = &p->pages->config;
    char token[DIGEST_HEX_LEN + 1];
    token_of(p, token);
    page_set_text(p, "brand", str_of(c->brand_name));
    page_set_text(p, "logo", str_of(asset_address("logo.svg") ? asset_address("logo.svg") : asset_address("logo.png")));
    page_set_text(p, "lang", str_of(language_tag(p->reader.language)));
    page_set_text(p, "form_token", str_of(token));
    page_set_text(p, "path", own_path(p));
    page_set_text(p, "query", request_query_without(p->rq, "lang"));
    page_set_text(p, "reference", str_of(p->rq->correlation_id));
    page_set_text(p, "signup_url", str_of(c->signup_url));
    page_set(p, "demo", json_boolean(c->demo));
    set_clock(p);
    page_set(p, "has_mailbox", json_boolean(c->has_mailbox));
}

struct page *page_new(struct request *rq)
{
    struct page *p = arena_take(rq->arena, sizeof *p);
    json_t *values = p ? json_object() : NULL;
    if (!values || !request_at_end(rq, free_json, values)) {
        json_decref(values);
        return NULL;
    }
    p->rq = rq;
    p->pages = (struct pages *)(uintptr_t)rq->family->context;
    p->values = values;
    p->reader = (struct reader){p->pages->config.sentences, language_of(p), asset_address};
    read_visitor(p);
    set_common(p);
    return p;
}

struct page *page_begin(struct request *rq)
{
    struct page *p = page_new(rq);
    if (!p) {
        refuse_by_status(rq, 503);
        reply_send(rq, 503);
    }
    return p;
}

/* A page of another site must not send our forms. Browsers say where a form came from; the token is for those that do not. */
static bool is_same_site(const struct request *rq)
{
    struct str site = request_header(rq, "Sec-Fetch-Site"), origin = request_header(rq, "Origin");
    if (site.at)
        return str_eq(site, STR("same-origin"));
    if (!origin.at)
        return true;
    const char *host = memmem(origin.at, origin.len, "://", 3);
    return host && str_eq_nocase((struct str){host + 3, origin.len - (size_t)(host + 3 - origin.at)},
                                 request_header(rq, "Host"));
}

struct page *page_begin_form(struct request *rq)
{
    struct page *p = page_begin(rq);
    char token[DIGEST_HEX_LEN + 1];
    struct digest wanted, given;
    if (!p)
        return NULL;
    token_of(p, token);
    bool sound = !p->new_visitor && is_same_site(rq) && !form_read(rq, &p->form) &&
                 !digest_parse(form_get(&p->form, "token"), &given) && !digest_parse(str_of(token), &wanted) &&
                 digest_eq(&given, &wanted);
    if (sound)
        return p;
    page_show(p, "stale-form", TEXT_PAGE_STALE_FORM_TITLE, 403);
    return NULL;
}

struct str page_field(const struct page *p, const char *name)
{
    struct str value = form_get(&p->form, name);
    return value.at ? str_trim(value) : value;
}

void page_set(struct page *p, const char *name, json_t *value)
{
    json_object_set_new(p->values, name, value);
}

void page_set_text(struct page *p, const char *name, struct str text)
{
    page_set(p, name, text.at ? json_stringn(text.at, text.len) : json_null());
}

struct str page_json(struct page *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    AUTO(json) json_t *value = json_vpack_ex(NULL, 0, format, arguments);
    va_end(arguments);
    char *text = value ? json_dumps(value, JSON_COMPACT) : NULL;
    struct str copy = text ? arena_copy(p->rq->arena, str_of(text)) : (struct str){NULL, 0};
    if (text)
        secret_wipe(text, strlen(text)); /* it may hold a password */
    free(text);
    return copy;
}

static bool endpoint_answered(struct request *rq, void *context)
{
    struct page *p = context;
    for (const struct reply_header *h = p->cookies; h; h = h->next)
        reply_header(rq, h->name, h->value);
    return p->answered(p);
}

/* Copies: an answer that may be replaced has two versions, and each gets them. */
static struct reply_header *cookies_of(struct page *p)
{
    struct reply_header *cookies = NULL;
    for (const struct reply_header *h = p->rq->reply.headers; h; h = h->next) {
        struct reply_header *copy = strcmp(h->name, "Set-Cookie") == 0 ? arena_take(p->rq->arena, sizeof *copy) : NULL;
        if (!copy)
            continue;
        *copy = *h;
        copy->next = cookies;
        cookies = copy;
    }
    return cookies;
}

void page_ask(struct page *p, const struct forward *to, bool (*answered)(struct page *p))
{
    struct forward f = *to;
    f.language = language_tag(p->reader.language);
    f.done = endpoint_answered;
    f.context = p;
    p->answered = answered;
    p->cookies = cookies_of(p);
    request_forward(p->rq, &f);
}

json_t *page_answer(struct page *p)
{
    json_t *answer = json_read_object(p->rq->reply.body, NULL);
    if (answer && !request_at_end(p->rq, free_json, answer)) {
        json_decref(answer);
        return NULL;
    }
    return answer;
}

int64_t page_retry_after(const struct page *p)
{
    int64_t seconds = 0;
    for (const struct reply_header *h = p->rq->reply.headers; h; h = h->next)
        if (strcmp(h->name, "Retry-After") == 0 && str_to_i64(str_of(h->value), 0, 1000000000, &seconds))
            seconds = 0;
    return seconds;
}

/* --- several answers --- */

struct page_gathering {
    const char *bearer;
    struct page_read reads[PAGE_READS_MAX];
    size_t count, next;
    bool (*then)(struct page *p);
};

static void ask_next(struct page *p);

static bool one_read(struct page *p)
{
    struct page_gathering *g = p->gathering;
    const struct page_read *read = &g->reads[g->next++];
    int status = p->rq->reply.status;
    json_t *answer = page_answer(p);
    if (status == 200)
        page_set(p, read->name, json_incref(answer));
    if ((status != 200 && !read->optional) || g->next == g->count)
        return g->then(p);
    ask_next(p);
    return false;
}

static void ask_next(struct page *p)
{
    const struct page_gathering *g = p->gathering;
    const struct page_read *read = &g->reads[g->next];
    page_ask(p,
             &(struct forward){.method = METHOD_GET,
                               .path = read->path,
                               .query = read->query,
                               .bearer = g->bearer,
                               .customer = p->customer},
             one_read);
}

void page_gather(struct page *p, const char *bearer, const struct page_read *reads, size_t count,
                 bool (*then)(struct page *p))
{
    struct page_gathering *g = arena_take(p->rq->arena, sizeof *g);
    if (!g) {
        page_show(p, "failure", TEXT_PAGE_FAILURE_TITLE, 503);
        return;
    }
    *g = (struct page_gathering){.bearer = bearer, .count = count, .then = then};
    memcpy(g->reads, reads, count * sizeof *reads);
    p->gathering = g;
    ask_next(p);
}

/* --- the reply --- */

/* Headers that the endpoint set are for programs; cookies that the page set stay, and the methods of a path. */
static void begin_reply(struct page *p, const char *outcome, const char *content_policy)
{
    struct reply_header *kept = NULL, *next;
    for (struct reply_header *h = p->rq->reply.headers; h; h = next) {
        next = h->next;
        if (strcmp(h->name, "Set-Cookie") != 0 && strcmp(h->name, "Allow") != 0)
            continue;
        h->next = kept;
        kept = h;
    }
    p->rq->reply = (struct reply){.headers = kept, .outcome = outcome};
    if (p->new_visitor)
        cookie_write(p, "visitor", p->visitor, VISITOR_LIFE_S, false);
    if (p->keeps_language)
        cookie_write(p, "lang", language_tag(p->reader.language), LANGUAGE_LIFE_S, false);
    reply_header(p->rq, "Content-Security-Policy", content_policy);
    reply_header(p->rq, "Referrer-Policy", p->has_secret_address ? "no-referrer" : "same-origin");
    reply_header(p->rq, "Cross-Origin-Opener-Policy", "same-origin");
}

bool page_write(struct page *p, const char *template, enum text title, int status)
{
    const char *outcome = p->rq->reply.outcome;
    AUTO(buf) struct buf out = buf_new(PAGE_MAX);
    AUTO(buf) struct buf heading = buf_new(4096);
    text_fill_sentence(&p->reader, title, p->values, &heading);
    page_set_text(p, "title", buf_str(&heading));
    begin_reply(p, outcome, policy);
    templates_fill(p->pages, template, &p->reader, p->values, &out);
    struct str html = out.failed ? (struct str){NULL, 0} : arena_copy(p->rq->arena, buf_str(&out));
    if (!html.at) {
        refuse_by_status(p->rq, 503);
        p->rq->reply.status = 503;
        return true;
    }
    reply_body(p->rq, "text/html; charset=utf-8", html);
    p->rq->reply.status = status;
    return true;
}

bool page_write_foreign(struct page *p, struct str html, const char *content_policy)
{
    begin_reply(p, p->rq->reply.outcome, content_policy);
    reply_body(p->rq, "text/html; charset=utf-8", html);
    p->rq->reply.status = 200;
    return true;
}

bool page_write_static(struct page *p, struct str html, const char *encoding, const char *tag)
{
    bool is_known = str_eq(request_header(p->rq, "If-None-Match"), str_of(tag));
    begin_reply(p, p->rq->reply.outcome, policy);
    reply_header(p->rq, "ETag", tag);
    reply_header(p->rq, "Vary", "Accept-Encoding, Accept-Language, Cookie");
    if (encoding && !is_known)
        reply_header(p->rq, "Content-Encoding", encoding);
    p->rq->reply.cache_control = "private, no-cache"; /* kept, and asked for again with its tag */
    if (!is_known)
        reply_body(p->rq, "text/html; charset=utf-8", html);
    p->rq->reply.status = is_known ? 304 : 200;
    return true;
}

bool page_write_file(struct page *p, struct str content, const char *content_type, const char *name)
{
    struct str disposition = arena_printf(p->rq->arena, "attachment; filename=\"%s\"", name);
    begin_reply(p, p->rq->reply.outcome, policy);
    reply_header(p->rq, "Content-Disposition", disposition.at ? disposition.at : "attachment");
    reply_body(p->rq, content_type, content);
    p->rq->reply.status = 200;
    return true;
}

bool page_redirect(struct page *p, const char *to)
{
    begin_reply(p, p->rq->reply.outcome, policy);
    reply_header(p->rq, "Location", to);
    p->rq->reply.status = 303;
    return true;
}

void page_show(struct page *p, const char *template, enum text title, int status)
{
    page_write(p, template, title, status);
    reply_send(p->rq, p->rq->reply.status);
}

void page_go(struct page *p, const char *to)
{
    page_redirect(p, to);
    reply_send(p->rq, p->rq->reply.status);
}
