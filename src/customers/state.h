/* The states of a customer: active, frozen for the grace period, deleted. Pure; nothing here touches a database. */
#ifndef CUSTOMERS_STATE_H
#define CUSTOMERS_STATE_H

#include "base/str.h"

enum customer_state { STATE_ACTIVE, STATE_FROZEN, STATE_DELETED, STATE_COUNT };
enum customer_event { CUSTOMER_FREEZES, CUSTOMER_RECOVERS, CUSTOMER_IS_DELETED, CUSTOMER_EVENT_COUNT };

enum transition_kind {
    TRANSITION_CHANGES, /* to `next` */
    TRANSITION_NONE,    /* it is in that state already: the same answer as the first time, nothing is written */
    TRANSITION_REFUSED, /* not possible from this state: 404 */
};
struct transition {
    enum transition_kind kind;
    enum customer_state next;
};

struct transition state_transition(enum customer_state now, enum customer_event event);

const char *state_name(enum customer_state state);                          /* "active" */
enum err state_parse(struct str name, enum customer_state *ret) MUST_CHECK; /* ERR_INPUT */
const char *event_type(enum customer_event event);                          /* "customer_frozen" */
const char *event_action(enum customer_event event);                        /* "freeze", for the log */

#endif
