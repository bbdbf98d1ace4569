/* Private to src/pages: one request for a page, from its form to its HTML.
 *
 * A page shows what the API answers and nothing else: it forwards the request to the JSON endpoint (http/forward.h), whose
 * limits, holds and audit apply, and fills a template with the answer.
 *
 *   void thing_handle(struct request *rq)              GET
 *   {
 *       struct page *p = page_begin(rq);
 *       if (p)
 *           page_show(p, "thing", TEXT_THING_TITLE, 200);
 *   }
 *
 *   void thing_form_handle(struct request *rq)         POST, redirect, GET
 *   {
 *       struct page *p = page_begin_form(rq);
 *       if (p)
 *           page_ask(p, &(struct forward){.method = METHOD_POST, .path = …, .body = page_json(p, "{s:s}", …)}, answered);
 *   }
 *
 *   static bool answered(struct page *p)               on the endpoint's thread; may be called twice, see http/forward.h
 *   {
 *       page_keep(p, "thing", json_pack(…), 900);      what the next GET shows, sealed in a cookie
 *       return page_redirect(p, "/thing");
 *   }
 */
#ifndef PAGES_PAGE_H
#define PAGES_PAGE_H

#include "base/json.h"
#include "http/form.h"
#include "http/forward.h"
#include "pages/pages.h"
#include "text/template.h"

struct page {
    struct request *rq;
    struct pages *pages;
    struct reader reader;
    json_t *values; /* for the template; freed with the request */
    struct form form;
    char visitor[33]; /* binds form tokens to this browser */
    bool new_visitor;
    bool keeps_language;          /* the reader chose it by a link */
    bool guesses_language;        /* the reader asked for none that is here */
    bool has_secret_address;      /* no page that is opened from this one may learn its address */
    const char *customer;         /* for X-Reclaim-Customer of what page_gather() reads; NULL: none */
    void *own;                    /* what the page itself needs until it is written */
    struct reply_header *cookies; /* set before the endpoint was asked, which begins a reply of its own */
    struct page_gathering *gathering;
    bool (*answered)(struct page *p);
};

/* On the loop. NULL after a refusal was sent. The form's origin and token are checked. */
struct page *page_begin(struct request *rq) MUST_CHECK;
struct page *page_begin_form(struct request *rq) MUST_CHECK;
struct page *page_new(struct request *rq) MUST_CHECK; /* sends nothing; NULL when out of memory */

struct str page_field(const struct page *p, const char *name); /* of the form, trimmed; absent when there is none */

/* Values for the template. Take the reference over, as json_object_set_new() does. */
void page_set(struct page *p, const char *name, json_t *value);
void page_set_text(struct page *p, const char *name, struct str text); /* absent: null */

/* The language of the reader's customer, "de": used when the browser asked for none that is here. */
void page_use_language(struct page *p, const json_t *tag);

/* countdown.c: {until, now, left} for <reclaim-countdown>; not set once the time is over. */
void page_set_countdown(struct page *p, const char *name, int64_t until_us, int64_t now_us);

/* JSON for a request's body, by jansson's json_pack(); in the request's arena. Absent when out of memory. */
struct str page_json(struct page *p, const char *format, ...) MUST_CHECK;
/* Asks the endpoint; then `answered` makes the page of p->rq->reply. It returns what page_write() or page_redirect()
 * return, or asks again and returns false. */
void page_ask(struct page *p, const struct forward *to, bool (*answered)(struct page *p));
/* The endpoint's answer as JSON; NULL when it is none. Freed with the request. */
json_t *page_answer(struct page *p);
/* Seconds of the endpoint's Retry-After; 0 without one. */
int64_t page_retry_after(const struct page *p);

/* Several answers, one after the other, each stored in the values under its name; then `then` makes the page. Stops at the
 * first that is not 200, unless it is optional: then `then` finds that answer in p->rq->reply. */
struct page_read {
    const char *name;
    struct str path, query;
    bool optional;
};
#define PAGE_READS_MAX 6
void page_gather(struct page *p, const char *bearer, const struct page_read *reads, size_t count,
                 bool (*then)(struct page *p));

/* Writes the reply: for `answered`, which returns their result, true. */
bool page_write(struct page *p, const char *template, enum text title, int status);
/* HTML that is no page of ours, under a policy of its own; it lives as long as the request. */
bool page_write_foreign(struct page *p, struct str html, const char *content_policy);
/* A page that was written before, the same for every reader of its language; `encoding` may be NULL. 304 for who has it. */
bool page_write_static(struct page *p, struct str html, const char *encoding, const char *tag);
/* A file to download, which is in the request's arena. */
bool page_write_file(struct page *p, struct str content, const char *content_type, const char *name);
bool page_redirect(struct page *p, const char *to); /* 303 */
/* The same from a handler: writes and sends. */
void page_show(struct page *p, const char *template, enum text title, int status);
void page_go(struct page *p, const char *to);

/* cookies.c: what a page keeps in the browser between requests: sealed, HttpOnly, SameSite=Lax, and ended by its own clock. */
json_t *page_state(struct page *p, const char *name); /* an object, or NULL; freed with the request; on the loop only */
void page_keep(struct page *p, const char *name, json_t *state, int64_t life_s); /* takes the reference over */
void page_forget(struct page *p, const char *name);
/* Private to page.c and cookies.c: a cookie that the program does not seal. */
struct str cookie_read(struct page *p, const char *name);
void cookie_write(struct page *p, const char *name, const char *value, int64_t life_s, bool for_scripts);

#endif
