/* The status of a call, which only advances. Pure; nothing here touches a database. */
#ifndef CALLS_STATUS_H
#define CALLS_STATUS_H

#include "base/str.h"

enum call_status {
    CALL_DIALING,
    CALL_RINGING,
    CALL_PROGRESSING, /* answered */
    CALL_TERMINATING, /* being hung up */
    CALL_CANCELING,   /* being cancelled before it was answered */
    CALL_HANGUP,
    CALL_STATUS_COUNT,
};

enum call_transition {
    CALL_TRANSITION_CHANGES,
    CALL_TRANSITION_NONE,    /* it has this status already: nothing changes */
    CALL_TRANSITION_REFUSED, /* an earlier status, or one of the other way out */
};

enum call_transition call_transition(enum call_status now, enum call_status asked);

const char *call_status_name(enum call_status status);
enum err call_status_parse(struct str name, enum call_status *ret) MUST_CHECK; /* ERR_INPUT */

#endif
