/* An instance that sends mail, and requests that wait for its results. */
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
#define NO_RESULT (-1)

struct office {
    struct pool *pool;
    struct post *post;
    struct engine *engine;
    struct pg *pg; /* of the flow */
};

struct waiting {
    struct mail_waiter waiter;
    atomic_int times, result;
    _Atomic int64_t when_ns;
    /* A success that can be replaced until then; it has been released already when `released` is set. */
    int64_t revocable_until_ns;
    bool released;
    struct mail_revocable revocable;
    atomic_int kept, revoked;
};

/* The sample's settings, with one template; tests put their providers in. Its context, an atomic_int, gives the error to fail
 * with, and may be NULL. */
struct mail_settings office_settings(void);
struct mail office_mail(void);

struct office office_open(const struct mail_settings *settings, int64_t lease_ns);
void office_close(struct office *o, int64_t limit_ns);

/* Promises the mail in a transaction and hands it over with its bytes. `w` may be NULL. */
void office_send(struct office *o, struct mail *mail, struct waiting *w, int64_t due_ns);
int office_result(struct waiting *w); /* waits for it */

#endif
