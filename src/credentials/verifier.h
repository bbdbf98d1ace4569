/* Checks passwords on separate threads: each takes tens of milliseconds of a core, during which no database connection
 * should be held. */
#ifndef CREDENTIALS_VERIFIER_H
#define CREDENTIALS_VERIFIER_H

#include "credentials/passwords.h"

struct verifier;

struct verification {          /* embed it */
    struct str password, hash; /* valid until `verified` is called; an absent hash takes as long and never matches */
    enum err err;
    struct password_verdict verdict;          /* unless `err` */
    void (*verified)(struct verification *v); /* called once, on a verifier's thread */
};

struct verifier *verifier_start(int threads, struct why *why) MUST_CHECK;
void verifier_stop(struct verifier *verifier); /* completes queued checks first; NULL is fine */
/* What later checks without a usable hash take as long as; at first password_decoy_usual. */
void verifier_set_decoy(struct verifier *verifier, const struct password_decoy *decoy);
/* ERR_FULL if the queue is full: `verified` is then not called. */
enum err verifier_ask(struct verifier *verifier, struct verification *v) MUST_CHECK;

#endif
