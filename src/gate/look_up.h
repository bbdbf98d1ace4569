/* Finds the customer of a credential in the database. Private to src/gate. */
#ifndef GATE_LOOK_UP_H
#define GATE_LOOK_UP_H

#include "gate/authenticate.h"

/* The customer of caller->user_id; `choice` names one of several, NULL: the oldest. */
enum err look_up_user(struct pg *pg, const char *choice, int64_t deadline_ns, struct caller *caller) MUST_CHECK;
/* The key of this hash; caller->key_id remains "" if there is none, or it was revoked. Sets what is left of its life, at most
 * an hour and not above 0 if it has expired; untouched for a key without an end. */
enum err look_up_key(struct pg *pg, const char *key_hash, int64_t deadline_ns, struct caller *caller,
                     int64_t *ret_left_us) MUST_CHECK;

#endif
