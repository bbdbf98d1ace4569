/* Error codes. OK is 0, so that `if (e)` reads "if it failed". */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/defs.h"

enum err {
    OK = 0,
    ERR_MEMORY,   /* no memory, or an arena's or buffer's ceiling was reached */
    ERR_FULL,     /* a bounded queue or table is full */
    ERR_TIMEOUT,  /* the deadline passed */
    ERR_CLOSED,   /* the peer or the object is closed; a later retry may succeed */
    ERR_INPUT,    /* the caller's data is wrong */
    ERR_SYSTEM,   /* a system call failed */
    ERR_DATABASE, /* a statement failed; the call has its SQLSTATE */
    ERR_CONFLICT, /* deadlock or serialisation failure: the whole transaction may be retried */
    ERR_MISSING,  /* not found */
};

const char *err_name(enum err e);

/* An error message for the operator, set by calls whose failure stops the server's start or a command. */
struct why {
    char text[512];
};

/* Writes the message (truncated if too long; `why` may be NULL) and returns e, so that a function can return its
 * result. why->text may be among the arguments, so that a caller can put a prefix before a callee's message. */
enum err why_set(struct why *why, enum err e, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
