#include "customers/state.h"

#define TO(state)                                                                                                      \
    {                                                                                                                  \
        STEP_CHANGES, STATE_##state                                                                                    \
    }
#define STAYS(state)                                                                                                   \
    {                                                                                                                  \
        STEP_UNCHANGED, STATE_##state                                                                                  \
    }
#define NEVER(state)                                                                                                   \
    {                                                                                                                  \
        STEP_REFUSED, STATE_##state                                                                                    \
    }

static const struct state_step steps[STATE_COUNT][EVENT_COUNT] = {
    /*                 freeze          recover         delete */
    [STATE_ACTIVE] = {TO(FROZEN), NEVER(ACTIVE), TO(DELETED)},
    [STATE_FROZEN] = {STAYS(FROZEN), TO(ACTIVE), TO(DELETED)},
    [STATE_DELETED] = {NEVER(DELETED), NEVER(DELETED), STAYS(DELETED)},
};

static const char *const names[] = {[STATE_ACTIVE] = "active", [STATE_FROZEN] = "frozen", [STATE_DELETED] = "deleted"};
static const struct {
    const char *type, *action;
} events[] = {
    [EVENT_FREEZE] = {"customer_frozen", "freeze"},
    [EVENT_RECOVER] = {"customer_recovered", "recover"},
    [EVENT_DELETE] = {"customer_deleted", "delete"},
};

struct state_step state_next(enum customer_state now, enum customer_event event)
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
