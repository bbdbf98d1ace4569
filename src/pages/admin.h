/* Private to src/pages: what the pages of the operators' console share.
 *
 * The key, or the demonstration's token, is in a sealed cookie beside the id of a session (reclaim.console_sessions). Every page and
 * every form asks for the session first: without it, it shows and changes nothing. */
#ifndef PAGES_ADMIN_H
#define PAGES_ADMIN_H

#include "pages/page.h"

struct admin {
    void *own;        /* of the page */
    const char *kept; /* what the address asks for, as a query: "q=a&status=frozen"; "" for nothing */
    /* Private to admin.c, so that a form reaches the API by admin_ask() only: */
    const char *bearer, *session; /* in the request's arena */
    bool is_alive;                /* the session was asked for, and has not ended */
    struct forward next;          /* what is asked once that is known */
    bool (*answered)(struct page *p);
};

/* On the loop. NULL after a redirect to the sign-in page, or another answer. */
struct page *admin_begin(struct request *rq) MUST_CHECK;
struct page *admin_begin_form(struct request *rq) MUST_CHECK;
struct admin *admin_of(struct page *p);

/* Asks for the session, then for these; `then` makes the page. `section` is the entry of the navigation. */
void admin_gather(struct page *p, const char *section, const struct page_read *reads, size_t count,
                  bool (*then)(struct page *p));
/* One more, once these were read. */
void admin_read_again(struct page *p, const struct page_read *read, bool (*then)(struct page *p));
/* At the beginning of `then`: whether an answer is missing. The reply is written then: the sign-in page when the session has ended, or
 * what went wrong. */
bool admin_failed(struct page *p);
/* Asks for the session, and then this with the operator's credentials. When the session has ended, the sign-in page is the reply and
 * `answered` is not called. */
void admin_ask(struct page *p, enum method method, struct str path, struct str body, bool (*answered)(struct page *p));
/* The next page of the console says this once: admin_notice.ID; `n` is a number in it. Returns page_redirect()'s result. */
bool admin_redirect(struct page *p, const char *to, const char *notice, int64_t n);
struct admin_notice {
    const char *id;
    int64_t n;
    bool bad;         /* it was not done, or not for all */
    const char *code; /* with id "error": the sentence of this error */
    json_t *undo; /* a button takes it back: {"action":…,"ids":[…],"to":…}; the reference is taken over; NULL: none */
};
bool admin_redirect_with(struct page *p, const char *to, const struct admin_notice *notice);
/* The same for a request that failed: by its status, or the sentence of its error's code. */
bool admin_redirect_failed(struct page *p, const char *to);

/* "after=…&" and so on from the request's query, as it came, for the endpoint: the named parameters, escaped. */
struct str admin_query(struct page *p, const char *first, const char *const *names, size_t count);
/* The text with %XX for all that is no letter or digit; in the arena. */
struct str admin_escaped(struct page *p, struct str text);
/* The text of a query parameter as a value of the template, under the same name. */
void admin_set_query(struct page *p, const char *name);
/* A word or phrase as in the names of sentences: "ip-site" and "Ip site" as "ip_site". */
json_t *admin_word(const json_t *value);
/* 0.58, or 0,58 in German. */
json_t *admin_decimal(const struct page *p, double value, int digits);
/* Adds NAME_short to the item: the beginning of an id. */
void admin_set_short(json_t *item, const char *name);
/* Adds a label to each participant that has none but is Reclaim's own. */
void admin_set_labels(struct page *p, json_t *participants);
/* A length of time for people: "29 d 23 h", "41 min". */
json_t *admin_duration(struct page *p, int64_t seconds);
/* Sets `layers`: how long each took to have a freeze, with a bar. NULL or null: none. */
void admin_set_layers(struct page *p, const json_t *layers);
/* Seconds from now until the time, negative when it has passed. */
int64_t admin_seconds_until(const json_t *rfc3339);

#endif
