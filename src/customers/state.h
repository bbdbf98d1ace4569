/* The names of a customer's states and of what happens to it. What may become of a customer is decided in the database
 * (reclaim.customer_transitions), for every program alike. */
#ifndef CUSTOMERS_STATE_H
#define CUSTOMERS_STATE_H

#include "base/str.h"

enum customer_state { STATE_ACTIVE, STATE_FROZEN, STATE_DELETED };
enum customer_event { CUSTOMER_FREEZES, CUSTOMER_RECOVERS };

const char *state_name(enum customer_state state);                          /* "active" */
enum err state_parse(struct str name, enum customer_state *ret) MUST_CHECK; /* ERR_INPUT */
const char *event_action(enum customer_event event);                        /* "freeze", for the log */

#endif
