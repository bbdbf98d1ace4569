/* Pages for people: registration recovery, deleting an account, the operators' console, the API's description. */
#ifndef PAGES_PAGES_H
#define PAGES_PAGES_H

#include "base/digest.h"
#include "http/router.h"
#include "text/template.h"

struct pages_config {
    const struct digest *key;            /* seals cookies and makes the tokens of forms */
    const struct digest *token_key;      /* signs the token of the demonstration's operator */
    const char *public_url, *signup_url; /* NULL: not set */
    const char *brand_name, *brand_logo, *brand_color;
    enum language language;            /* of readers who ask for none that is here */
    const struct sentences *sentences; /* must outlive the pages */
    const char *texts_folder;          /* whose templates/NAME.html replace those built in; NULL: none */
    bool demo, uniform, probe_off, has_mailbox, six_digits;
    int64_t grace_ms, backup_retention_ms, audit_retention_ms;
};

struct pages {
    struct pages_config config;
    struct digest seal_key, token_key;
    bool https;                      /* cookies are Secure and have the prefix __Host- */
    struct page_template *templates; /* sorted by name */
    size_t template_count;
    struct arena *template_texts;
};

enum err pages_new(const struct pages_config *config, struct pages **ret, struct why *why) MUST_CHECK;
void pages_free(struct pages *pages);

/* The routes of all pages, one after the other; NULL at the end. The context of each is the struct pages. */
const struct route *pages_route(size_t at);
/* Refuses in HTML where a browser asked, otherwise in JSON; for the family of all other paths, whose context are the pages. */
void pages_refuse(struct request *rq, int status);

#endif
