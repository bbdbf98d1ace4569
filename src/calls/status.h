/* How far a call has come. It only ever goes on. Pure; nothing here touches a database. */
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

enum call_step {
    CALL_GOES_ON,
    CALL_STAYS,  /* told again: nothing changes */
    CALL_NO_WAY, /* that lies behind it, or on the other way out */
};

enum call_step call_step(enum call_status now, enum call_status asked);

const char *call_status_name(enum call_status status);
enum err call_status_parse(struct str name, enum call_status *ret) MUST_CHECK; /* ERR_INPUT */

#endif
