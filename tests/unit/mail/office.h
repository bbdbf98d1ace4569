/* An instance that mails, and someone who waits for its answers. */
#ifndef TESTS_MAIL_OFFICE_H
#define TESTS_MAIL_OFFICE_H

#include <stdatomic.h>

#include "base/clock.h"
#include "mail/mail.h"

#define ADDRESS "uma.secret@example.com"
#define CODE "QWXZ-7K9M"
#define REFERENCE "3f0b5ab0-5df2-4d33-8f5e-0d3e9c6b1a11"
#define PAYLOAD                                                                                                        \
    "{\"user_id\": \"d0000000-0000-4000-8000-000000000001\", \"salt\": \"00ff\", \"template\": \"cleanup-code\"}"
#define NOT_GIVEN (-1)

struct office {
    struct pool *pool;
    struct post *post;
    struct engine *engine;
    struct pg *pg; /* of the flow */
};

struct waiting {
    struct mail_answer answer;
    atomic_int times, verdict;
    _Atomic int64_t when_ns;
    /* For those who can be told otherwise after the success, until then; it has left already when `left` is set. */
    int64_t regret_until_ns;
    bool left;
    struct mail_regret regret;
    atomic_int kept, taken_back;
};

/* The sample's settings; tests put their providers in. */
struct mail_settings office_settings(void);
/* Composes the sample from its payload; the context, an atomic_int, gives the error to fail with, and may be NULL. */
enum err office_compose(void *context, struct pg *pg, const json_t *payload, int64_t deadline_ns, struct mail *ret);
struct mail office_mail(void);

struct office office_open(const struct mail_settings *settings, int64_t lease_ns);
void office_close(struct office *o, int64_t patience_ns);

/* Promises the mail in a transaction and hands it over. `w` may be NULL. */
void office_send(struct office *o, const struct mail *mail, struct waiting *w, int64_t due_ns);
int office_verdict(struct waiting *w); /* waits for it */

#endif
