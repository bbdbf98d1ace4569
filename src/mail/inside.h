/* Private to src/mail: shared by its files. */
#ifndef MAIL_INSIDE_H
#define MAIL_INSIDE_H

#include "base/clock.h"
#include "client/client.h"
#include "mail/mail.h"
#include "pg/batch.h"

#define PROVIDERS_MAX 4
#define MAIL_BYTES_MAX ((size_t)32 * 1024)
#define MAIL_KEY_LEN 32

/* compose.c: the mail of an item that was taken over; ERR_INPUT when no feature has its template. */
const struct mail_template *mail_template_of(const struct post *post, const json_t *payload, void **ret_context);
enum err mail_compose(const struct post *post, struct pg *pg, const json_t *payload, int64_t deadline_ns,
                      struct mail *ret) MUST_CHECK;

/* address.c */
bool address_is_sound(struct str address); /* no character in it can end a line, a header or an SMTP command */

/* mime.c: RFC 5322, 2045 and 2047. */
struct mime_message {
    const struct mail_from *from;
    const struct mail *mail;
    const char *key; /* the same for every copy of this mail */
    int64_t date_us;
};
void mime_write(struct buf *out, const struct mime_message *message);
void mime_add_from(struct buf *out, const struct mail_from *from, bool for_header); /* not encoded when for JSON */
void mime_add_quoted_printable(struct buf *out, struct str text);

struct delivery;

enum try_result { TRY_DELIVERED, TRY_AGAIN, TRY_FINAL };

struct provider {
    const char *name;
    /* Begins a try on the engine's thread, under a lease; ends with delivery_tried(), unless this fails. */
    enum err (*begin)(struct delivery *d);
    /* Ends a try early; false when that is not possible, and delivery_tried() will be called. */
    bool (*cancel)(struct delivery *d);
    /* The mail as this provider takes it. */
    void (*write)(struct delivery *d, struct buf *out);
    char *url;
    char *authorization; /* the whole header; NULL for SMTP */
    bool takes_key;      /* has Idempotency-Key */
};

struct post {
    struct mail_from from;
    struct provider providers[PROVIDERS_MAX];
    size_t count;
    const struct mail_design *design;
    struct mail_templates features[MAIL_FEATURES_MAX];
    int64_t try_ns, pause_ns;
    struct work_kind kind;
    struct batch *mailbox; /* made when it is first needed, on the engine's thread */
    int64_t pruned_to;     /* mails before this one were deleted; used by the mailbox's one batch at a time */
};

/* The tries of a mail with one provider. */
struct provider_tries {
    int count;
    bool final; /* it refused for good */
    int64_t failed_ns;
};

struct delivery { /* from mail_promise, or from when an item is taken over, until the item ends */
    struct post *post;
    struct work_item *item;
    struct mail mail;
    struct mail_waiter *waiter;       /* NULL once it has its result, and when no request waits */
    struct mail_revocable *revocable; /* the success it was answered with, while that can be replaced */
    struct work_timer due, next;
    struct provider_tries tries[PROVIDERS_MAX];
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

    /* The result of work in the pool: */
    struct job job;
    struct work_note note;
    enum err err;
};

/* delivery.c */
struct delivery *delivery_new(struct post *post) MUST_CHECK;
void delivery_forget(void *handed);
void delivery_start(struct work_item *item);
void delivery_give_up(struct work_item *item);
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
