/* Mail that arrives: composed by features, delivered by the first provider that takes it, promised through the work queue.
 *
 * A flow promises a mail inside its transaction. The table gets a payload without address or code; the mail itself is
 * handed over in memory, and an instance that takes the item over after a crash composes it anew from the payload.
 *
 *   AUTO(work_item) struct work_item *item = mail_promise(post, engine, payload, &mail, &writes[0]);
 *   if (!item)
 *       return ERR_MEMORY;
 *   if ((e = tx_commit(tx, writes, COUNT_OF(writes))))
 *       return e;
 *   work_inserted(item, &writes[0]);
 *   mail_send(&item, &flow->waiter);
 *
 * A mail that ended is a result of its work item, for work_config.record: "sent" with the provider's name, "failed" with a
 * sentence, "expired", or "unneeded".
 *
 * Delivery begins at once. While the request waits, each provider gets one try, one after the other; when all of them
 * have failed, delivery ends. Once the request has been answered, delivery goes on: three tries a provider. */
#ifndef MAIL_MAIL_H
#define MAIL_MAIL_H

#include "base/json.h"
#include "text/sentences.h"
#include "work/work.h"

#define MAIL_ADDRESS_MAX 255
#define MAIL_NAME_MAX 200
#define MAIL_SUBJECT_MAX 255

/* A mail, as a feature composed it. Its bytes hold codes and addresses: mail_free() wipes them. */
struct mail {
    char to[MAIL_ADDRESS_MAX + 1];
    char reference[37];                 /* the correlation id, or the customer's */
    int64_t expires_us;                 /* by clock_installation_us(); not sent from then on; 0: never */
    char subject[MAIL_SUBJECT_MAX + 1]; /* UTF-8 */
    struct buf text, html;              /* the same content twice */
};

/* How mails look and whose they are; immutable once mails are written. Their sentences are the section [mail] of web/texts, their HTML the templates
 * of web/templates/mail. */
struct mail_design;
struct mail_design_config {
    const struct sentences *sentences; /* must outlive the design */
    enum language language;            /* of readers whose language is not known */
    const char *brand_name, *brand_color;
    const char *public_url;   /* of the pages that mails link to; NULL: no links */
    const char *texts_folder; /* whose templates/mail/NAME.html replace those built in; NULL: none */
};
/* ERR_INPUT with a sentence. Texts are copied. */
enum err mail_design_new(const struct mail_design_config *config, struct mail_design **ret, struct why *why) MUST_CHECK;
/* Before the first mail, for pages whose address is known only once the server listens: "127.0.0.1:8080". */
enum err mail_design_link_to(struct mail_design *design, const char *address) MUST_CHECK;
void mail_design_free(struct mail_design *design);
/* The language with this tag, or the default. */
enum language mail_language(const struct mail_design *design, struct str tag);
/* RFC 3339 text as a date for the sentences: "15 December 2026, 14:32 UTC". A new reference. */
json_t *mail_date(const struct mail_design *design, enum language language, struct str rfc3339) MUST_CHECK;

/* What a mail says, in the order of its text: the heading and the code of mails with one, paragraphs, the link. */
#define MAIL_PARAGRAPHS_MAX 4
struct mail_words {
    const char *template; /* "code" or "notice" */
    enum text subject, heading;
    enum text paragraphs[MAIL_PARAGRAPHS_MAX];
    size_t count;
    const char *page;       /* "/account"; NULL: no link */
    enum text open, button; /* of the link: a line of the text with {url}, and the button in the HTML */
};

/* Composes text and HTML; `to` and `expires_us` are set by the caller. `values` fill the sentences' placeholders: its texts are
 * wiped and the reference is dropped; NULL: none. `code` may be NULL; it stands in the link after the `#`. */
void mail_write(struct mail *mail, const struct mail_design *design, enum language language,
                const struct mail_words *words, const char *reference, const char *code, json_t *values);
void mail_free(struct mail *mail);
void mail_cleanup(struct mail *mail); /* for AUTO(mail) */

/* A kind of mail that a feature offers: who gets it and what it contains, composed from a work item's payload on a
 * connection of the pool. ERR_MISSING: it is not needed any more, the item ends. ERR_INPUT: the payload makes no sense.
 * Others: again later. */
struct mail_template {
    const char *name; /* "template" in the payload */
    enum err (*compose)(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret);
    bool passes; /* a code: an undelivered one is of no use to an operator, and its item is not kept */
};
struct mail_templates { /* of one feature */
    const struct mail_template *at;
    size_t count;
    void *context;
};
#define MAIL_FEATURES_MAX 4

/* The sender: "addr" or "Name <addr>". */
struct mail_from {
    char name[MAIL_NAME_MAX + 1]; /* UTF-8; "" for none */
    char address[MAIL_ADDRESS_MAX + 1];
};
enum err mail_from_parse(struct str text, struct mail_from *ret) MUST_CHECK; /* ERR_INPUT */

/* A success that is parked until its release instant and can be replaced until then. Meanwhile each provider has one try.
 * Exactly one of the two is called, once, on the engine's thread or on that of mail_send. */
struct mail_revocable {
    int64_t until_ns;
    /* Every provider's first try has failed. True when the success could still be replaced: delivery ends. */
    bool (*revoke)(struct mail_revocable *success);
    void (*keep)(struct mail_revocable *success);
};

/* The request that promised a mail. `report` is called exactly once: on the engine's thread, or before mail_send returns
 * when the engine's queue is full or it is stopping. For MAIL_PENDING it may return a success that can still be replaced;
 * otherwise NULL. */
enum mail_result {
    MAIL_DELIVERED, /* a provider took it */
    MAIL_PENDING,   /* due_ns came first: answer with success, delivery goes on */
    MAIL_REFUSED,   /* every provider's first try failed before due_ns: delivery has ended */
};
struct mail_waiter { /* a member of what waits */
    int64_t due_ns;
    struct mail_revocable *(*report)(struct mail_waiter *waiter, enum mail_result result);
};

struct mail_settings {
    const char *from; /* "addr" or "Name <addr>" */
    /* Tried in this order; NULL where a provider is not used. */
    const char *resend_api_key, *resend_url;
    const char *sendgrid_api_key, *sendgrid_url;
    const char *smtp_url;
    bool mailbox; /* without any of them: the table reclaim.mailbox, for demonstrations */

    const struct mail_design *design;                  /* must outlive the post */
    struct mail_templates features[MAIL_FEATURES_MAX]; /* for items that are taken over; must outlive the post */

    int64_t try_ns, pause_ns; /* 0: 10 s, and 1 s before a provider's second try, twice that before its third */
};

struct post; /* the providers and what they need; immutable */

/* ERR_INPUT with a sentence when the settings contradict each other. Keys and addresses are copied. */
enum err post_new(const struct mail_settings *settings, struct post **ret, struct why *why) MUST_CHECK;
void post_free(struct post *post);                          /* after pool_stop and work_free */
const struct work_kind *post_kind(const struct post *post); /* for the engine's table */
extern const struct work_kind mail_for_others;              /* a name only, for processes without an engine */
const struct mail_design *post_design(const struct post *post);
bool post_has_provider(const struct post *post); /* false: nothing is configured, mails cannot be promised */

/* Takes the mail's bytes over unless it returns NULL. */
struct work_item *mail_promise(struct post *post, struct engine *engine, const char *payload, struct mail *mail,
                               struct pg_call *ret_insert) MUST_CHECK;
/* `waiter` may be NULL. */
void mail_send(struct work_item **item, struct mail_waiter *waiter);

/* Deletes items of mails that failed for good so long ago. */
enum err mail_prune(struct pg *pg, int64_t retention_ms, int64_t deadline_ns) MUST_CHECK;

/* The local mailbox's newest mails first, 200 at most, for the page that shows them. */
extern const struct statement mailbox_newest;

extern const struct statement *const mail_statements[];
extern const size_t mail_statement_count;

#endif
