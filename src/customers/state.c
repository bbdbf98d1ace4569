#include "customers/state.h"

#define TO(state)                                                                                                      \
    {                                                                                                                  \
        TRANSITION_CHANGES, STATE_##state                                                                              \
    }
#define STAYS(state)                                                                                                   \
    {                                                                                                                  \
        TRANSITION_NONE, STATE_##state                                                                                 \
    }
#define NEVER(state)                                                                                                   \
    {                                                                                                                  \
        TRANSITION_REFUSED, STATE_##state                                                                              \
    }

static const struct transition steps[STATE_COUNT][CUSTOMER_EVENT_COUNT] = {
    /*                 freeze          recover         delete */
    [STATE_ACTIVE] = {TO(FROZEN), NEVER(ACTIVE), TO(DELETED)},
    [STATE_FROZEN] = {STAYS(FROZEN), TO(ACTIVE), TO(DELETED)},
    [STATE_DELETED] = {NEVER(DELETED), NEVER(DELETED), STAYS(DELETED)},
};

static const char *const names[] = {[STATE_ACTIVE] = "active", [STATE_FROZEN] = "frozen", [STATE_DELETED] = "deleted"};
static const struct {
    const char *type, *action;
} events[] = {
    [CUSTOMER_FREEZES] = {"customer_frozen", "freeze"},
    [CUSTOMER_RECOVERS] = {"customer_recovered", "recover"},
    [CUSTOMER_IS_DELETED] = {"customer_deleted", "delete"},
};

struct transition state_transition(enum customer_state now, enum customer_event event)
{
    return steps[now][event];
}

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

const char *event_type(enum customer_event event)
{
    return events[event].type;
}

const char *event_action(enum customer_event event)
{
    return events[event].action;
}
