/* The life of a customer: active, frozen for the grace period, deleted. Pure; nothing here touches a database. */
#ifndef CUSTOMERS_STATE_H
#define CUSTOMERS_STATE_H

#include "base/str.h"

enum customer_state { STATE_ACTIVE, STATE_FROZEN, STATE_DELETED, STATE_COUNT };
enum customer_event { EVENT_FREEZE, EVENT_RECOVER, EVENT_DELETE, EVENT_COUNT };

enum step_kind {
    STEP_CHANGES,   /* to `next` */
    STEP_UNCHANGED, /* it is there already: the same answer as the first time, nothing is written */
    STEP_REFUSED,   /* there is nothing to do it to: 404 */
};
struct state_step {
    enum step_kind kind;
    enum customer_state next;
};

struct state_step state_next(enum customer_state now, enum customer_event event);

const char *state_name(enum customer_state state);                          /* "active" */
enum err state_parse(struct str name, enum customer_state *ret) MUST_CHECK; /* ERR_INPUT */
const char *event_type(enum customer_event event);                          /* "customer_frozen" */
const char *event_action(enum customer_event event);                        /* "freeze", for the log */

#endif
