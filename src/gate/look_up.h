/* Finds the customer of a credential in the database. Private to src/gate. */
#ifndef GATE_LOOK_UP_H
#define GATE_LOOK_UP_H

#include "gate/authenticate.h"

/* A key found in the database. */
struct found_key {
    int64_t
        left_us; /* of its life, at most an hour, not above 0 if it has expired; INT64_MAX for a key without an end */
    bool use_is_due; /* its use was noted more than a minute ago, or never */
    bool watched;    /* as look_up_user() says */
};

/* The customer of caller->user_id; `choice` names one of several, NULL: the oldest. *ret_watched is false where its user can be
 * removed from auth.users without the gates being told (reclaim.users_watch). */
enum err look_up_user(struct pg *pg, const char *choice, int64_t deadline_ns, struct caller *caller,
                      bool *ret_watched) MUST_CHECK;
/* The key of this hash; caller->key_id remains "" if there is none, or it was revoked. */
enum err look_up_key(struct pg *pg, const char *key_hash, int64_t deadline_ns, struct caller *caller,
                     struct found_key *ret) MUST_CHECK;
/* Notes that the key was used, in the background: the gate's own lane takes no row lock. */
void note_key_use(struct pool *background, const char *key_id);

#endif
