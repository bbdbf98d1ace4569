/* Password checks on threads of their own: each is tens of milliseconds of a core, and no database connection is to wait
 * for one. */
#ifndef CREDENTIALS_VERIFIER_H
#define CREDENTIALS_VERIFIER_H

#include "base/str.h"

struct verifier;

struct verification {          /* a member of what asks */
    struct str password, hash; /* must live until it is told; an absent hash takes as long and matches nothing */
    enum err err;
    bool matches;
    void (*verified)(struct verification *v); /* on a verifier's thread, once */
};

struct verifier *verifier_start(int threads, struct why *why) MUST_CHECK;
void verifier_stop(struct verifier *verifier); /* after what is queued; NULL is fine */
/* ERR_FULL when too many wait: `verified` is not called then. */
enum err verifier_ask(struct verifier *verifier, struct verification *v) MUST_CHECK;

#endif
