#include "calls/status.h"

static const char *const names[CALL_STATUS_COUNT] = {
    [CALL_DIALING] = "dialing",         [CALL_RINGING] = "ringing",     [CALL_PROGRESSING] = "progressing",
    [CALL_TERMINATING] = "terminating", [CALL_CANCELING] = "canceling", [CALL_HANGUP] = "hangup",
};

/* The statuses that may follow each. A call that was answered is hung up, never cancelled. */
#define BIT(status) (1U << CALL_##status)
static const unsigned following[CALL_STATUS_COUNT] = {
    [CALL_DIALING] = BIT(RINGING) | BIT(PROGRESSING) | BIT(TERMINATING) | BIT(CANCELING) | BIT(HANGUP),
    [CALL_RINGING] = BIT(PROGRESSING) | BIT(TERMINATING) | BIT(CANCELING) | BIT(HANGUP),
    [CALL_PROGRESSING] = BIT(TERMINATING) | BIT(HANGUP),
    [CALL_TERMINATING] = BIT(HANGUP),
    [CALL_CANCELING] = BIT(HANGUP),
};

enum call_transition call_transition(enum call_status now, enum call_status asked)
{
    if (now == asked)
        return CALL_TRANSITION_NONE;
    return following[now] & (1U << asked) ? CALL_TRANSITION_CHANGES : CALL_TRANSITION_REFUSED;
}

const char *call_status_name(enum call_status status)
{
    return names[status];
}

enum err call_status_parse(struct str name, enum call_status *ret)
{
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (str_eq(name, str_of(names[i]))) {
            *ret = (enum call_status)i;
            return OK;
        }
    return ERR_INPUT;
}
