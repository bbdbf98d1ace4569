/* Private to src/pages: what the pages of the operators' console share.
 *
 * The key, or the demonstration's token, is in a sealed cookie beside the id of a session (reclaim.console_sessions). Every page asks
 * for the session first: without it, it shows nothing. */
#ifndef PAGES_ADMIN_H
#define PAGES_ADMIN_H

#include "pages/page.h"

struct admin {
    const char *bearer, *session; /* in the request's arena */
    void *own;                    /* of the page */
};

/* On the loop. NULL after a redirect to the sign-in page, or another answer. */
struct page *admin_begin(struct request *rq) MUST_CHECK;
struct page *admin_begin_form(struct request *rq) MUST_CHECK;
struct admin *admin_of(struct page *p);

/* Asks for the session, then for these; `then` makes the page. `section` is the entry of the navigation. */
void admin_gather(struct page *p, const char *section, const struct page_read *reads, size_t count,
                  bool (*then)(struct page *p));
/* At the beginning of `then`: whether an answer is missing. The reply is written then: the sign-in page when the session has ended, or
 * what went wrong. */
bool admin_failed(struct page *p);
/* Asks with the operator's credentials. */
void admin_ask(struct page *p, enum method method, struct str path, struct str body, bool (*answered)(struct page *p));
/* The next page of the console says this once: admin_notice.ID; `n` is a number in it. Returns page_redirect()'s result. */
bool admin_redirect(struct page *p, const char *to, const char *notice, int64_t n);
/* The same for a request that failed: by its status. */
bool admin_redirect_failed(struct page *p, const char *to);

/* "after=…&" and so on from the request's query, as it came, for the endpoint: the named parameters, escaped. */
struct str admin_query(struct page *p, const char *first, const char *const *names, size_t count);
/* The text with %XX for all that is no letter or digit; in the arena. */
struct str admin_escaped(struct page *p, struct str text);
/* The text of a query parameter as a value of the template, under the same name. */
void admin_set_query(struct page *p, const char *name);
/* A length of time for people: "29 d 23 h", "41 min". */
json_t *admin_duration(struct page *p, int64_t seconds);
/* Sets `layers`: how long each took to have a freeze, with a bar. NULL: none. */
void admin_set_layers(struct page *p, const json_t *layers);
/* Seconds from now until the time, negative when it has passed. */
int64_t admin_seconds_until(const json_t *rfc3339);

#endif
