/* Mail that arrives: worded here, delivered by the first provider that takes it, promised through the work queue.
 *
 * A flow promises a mail inside its transaction. The table gets a payload without address or code; the mail itself goes
 * along in memory, and whoever takes the item over after a crash composes it anew from the payload.
 *
 *   AUTO(work_item) struct work_item *item = mail_promise(post, engine, payload, &mail, &writes[0]);
 *   if (!item)
 *       return ERR_MEMORY;
 *   if ((e = tx_commit(tx, writes, COUNT_OF(writes))))
 *       return e;
 *   mail_send(&item, &writes[0], &flow->answer);
 *
 * Delivery begins at once. While the answer is open, each provider gets one try, one after the other; when all of them
 * have failed, delivery ends there. Once the answer is given, delivery goes on: three tries a provider. */
#ifndef MAIL_MAIL_H
#define MAIL_MAIL_H

#include "base/json.h"
#include "work/work.h"

#define MAIL_ADDRESS_MAX 255
#define MAIL_NAME_MAX 200

/* What a mail says, before it is worded. Wipe it (secret_wipe) when done with it. */
struct mail {
    enum mail_template {
        MAIL_CLEANUP_CODE,
        MAIL_CUSTOMER_FROZEN,
        MAIL_CUSTOMER_RECOVERED,
        MAIL_CUSTOMER_REMINDER,
        MAIL_CUSTOMER_DELETED
    } template;
    char to[MAIL_ADDRESS_MAX + 1];
    char code[16];      /* as people are to read it: "ABCD-EFGH" */
    int minutes;        /* the code's life */
    char when[64];      /* as people write it: "18 March 2026, 12:00 UTC" */
    char reference[37]; /* the correlation id, or the customer's */
    int64_t expires_us; /* wall clock; not sent from then on; 0: never */
};

/* Who mails: "addr" or "Name <addr>". */
struct mail_from {
    char name[MAIL_NAME_MAX + 1]; /* UTF-8; "" for none */
    char address[MAIL_ADDRESS_MAX + 1];
};
enum err mail_from_parse(struct str text, struct mail_from *ret) MUST_CHECK; /* ERR_INPUT */

/* A success that has been given and has not left yet. While it lasts each provider has one try; exactly one of the two is
 * called, once, on the engine's thread or on that of mail_send. */
struct mail_regret {
    int64_t until_ns;
    /* Every provider's first try has failed. True when the success could still be taken back: delivery ends. */
    bool (*take_back)(struct mail_regret *regret);
    void (*keep)(struct mail_regret *regret);
};

/* The answer of the request that promised a mail. `give` is called exactly once: on the engine's thread, or before
 * mail_send returns when the engine has no room or is stopping. After MAIL_GOES_ON it may return what can still be
 * regretted; otherwise NULL. */
enum mail_verdict {
    MAIL_DELIVERED, /* a provider took it */
    MAIL_GOES_ON,   /* due_ns came first: answer with success, delivery goes on */
    MAIL_REFUSED,   /* every provider's first try failed before due_ns: delivery has ended */
};
struct mail_answer { /* a member of what waits */
    int64_t due_ns;
    struct mail_regret *(*give)(struct mail_answer *answer, enum mail_verdict verdict);
};

struct mail_settings {
    const char *from; /* "addr" or "Name <addr>" */
    /* Tried in this order; NULL where a provider is not used. */
    const char *resend_api_key, *resend_url;
    const char *sendgrid_api_key, *sendgrid_url;
    const char *smtp_url;
    bool mailbox; /* where there is none of them: the table reclaim.mailbox, for demonstrations */

    /* For an item taken over: who gets it and what it says, on a connection of the pool. ERR_MISSING: nobody needs it
     * any more, the item ends. ERR_INPUT: the payload makes no sense. Others: again later. */
    enum err (*compose)(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret);
    void *compose_context;

    int64_t try_ns, pause_ns; /* 0: 10 s, and 1 s before a provider's second try, twice that before its third */
};

struct post; /* the providers and what they need; immutable */

/* ERR_INPUT with a sentence when the settings do not fit together. Keys and addresses are copied. */
enum err post_new(const struct mail_settings *settings, struct post **ret, struct why *why) MUST_CHECK;
void post_free(struct post *post);                          /* after pool_stop and work_free */
const struct work_kind *post_kind(const struct post *post); /* for the engine's table */
extern const struct work_kind mail_for_others;              /* a name only, for who has no engine */
bool post_has_provider(const struct post *post);            /* false: nothing is configured, mails cannot be promised */

struct work_item *mail_promise(struct post *post, struct engine *engine, const char *payload, const struct mail *mail,
                               struct pg_call *ret_insert) MUST_CHECK;
/* `answer` may be NULL where nobody waits. */
void mail_send(struct work_item **item, const struct pg_call *inserted, struct mail_answer *answer);

/* The local mailbox's newest mails first, 200 at most, for the page that shows them. */
extern const struct statement mailbox_newest;

extern const struct statement *const mail_statements[];
extern const size_t mail_statement_count;

#endif
