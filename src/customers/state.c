#include "customers/state.h"

static const char *const names[] = {[STATE_ACTIVE] = "active", [STATE_FROZEN] = "frozen", [STATE_DELETED] = "deleted"};
static const char *const actions[] = {[CUSTOMER_FREEZES] = "freeze", [CUSTOMER_RECOVERS] = "recover"};

const char *state_name(enum customer_state state)
{
    return names[state];
}

enum err state_parse(struct str name, enum customer_state *ret)
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(name, str_of(names[i]))) {
            *ret = (enum customer_state)i;
            return OK;
        }
    return ERR_INPUT;
}

const char *event_action(enum customer_event event)
{
    return actions[event];
}
