/* What the files of this folder know of each other. Private to this folder. */
#ifndef MAIL_INSIDE_H
#define MAIL_INSIDE_H

#include "base/clock.h"
#include "client/client.h"
#include "mail/mail.h"
#include "pg/batch.h"

#define PROVIDERS_MAX 4
#define MAIL_BYTES_MAX ((size_t)32 * 1024)
#define MAIL_KEY_LEN 32

/* wording.c: what a mail says, to people. */
struct wording {
    const char *subject; /* ASCII */
    struct buf text, html;
};
void wording_of(const struct mail *mail, struct wording *ret);
void wording_cleanup(struct wording *w);

/* address.c */
bool address_is_sound(struct str address); /* nothing in it can end a line, a header or an SMTP command */

/* mime.c: RFC 5322, 2045 and 2047. */
struct letter {
    const struct mail_from *from;
    const char *to;
    const char *key; /* the same for every copy of this mail */
    int64_t date_us;
    const struct wording *wording;
};
void mime_write(struct buf *out, const struct letter *letter);
void mime_add_from(struct buf *out, const struct mail_from *from, bool for_header); /* not encoded when for JSON */
void mime_add_quoted_printable(struct buf *out, struct str text);

struct delivery;

enum try_result { TRY_DELIVERED, TRY_AGAIN, TRY_FINAL };

struct provider {
    const char *name;
    /* Begins a try on the engine's thread, for which there is a lease; delivery_tried() tells later how it ended, unless
     * this fails. */
    enum err (*begin)(struct delivery *d);
    /* Ends a try before its time; false when that cannot be, and delivery_tried() will come. */
    bool (*cancel)(struct delivery *d);
    /* The mail as this provider wants it. */
    void (*write)(struct delivery *d, const struct wording *w, struct buf *out);
    char *url;
    char *authorization; /* the whole header; NULL for SMTP */
    bool takes_key;      /* knows Idempotency-Key */
};

struct post {
    struct mail_from from;
    struct provider providers[PROVIDERS_MAX];
    size_t count;
    enum err (*compose)(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret);
    void *compose_context;
    int64_t try_ns, pause_ns;
    struct work_kind kind;
    struct batch *mailbox; /* made when it is first needed, on the engine's thread */
    int64_t pruned_to;     /* mails before this one were dropped; that of its one run at a time */
};

/* How far a mail has come with one provider. */
struct course {
    int tries;
    bool final; /* it said no */
    int64_t failed_ns;
};

struct delivery { /* from mail_promise, or from when an item is taken over, until the item goes */
    struct post *post;
    struct work_item *item;
    struct mail mail;
    struct mail_answer *answer; /* NULL once given, and where nobody waits */
    struct mail_regret *regret; /* given, and not gone yet */
    struct work_timer due, next;
    struct course courses[PROVIDERS_MAX];
    size_t at; /* the provider of the last try, or of the first */
    enum { DELIVERY_WAITING, DELIVERY_COMPOSING, DELIVERY_TRYING } phase;
    bool abandoned;
    int64_t began_ns;

    /* A try: */
    char key[MAIL_KEY_LEN + 1], key_header[64];
    const char *headers[5];
    struct buf body;
    struct client_call call;
    struct batch_item in_mailbox;

    /* What comes back from the pool: */
    struct job job;
    struct work_note note;
    enum err err;
};

/* delivery.c */
struct delivery *delivery_new(struct post *post) MUST_CHECK;
void delivery_forget(void *handed);
void delivery_start(struct work_item *item);
void delivery_abandon(struct work_item *item);
/* `status` is the provider's, 0 for none. */
void delivery_tried(struct delivery *d, enum try_result result, int status, enum err err);
struct provider *delivery_provider(struct delivery *d);

/* providers.c */
void provider_resend(struct provider *p);
void provider_sendgrid(struct provider *p);
void provider_smtp(struct provider *p);

/* mailbox.c */
void provider_mailbox(struct provider *p);

#endif
