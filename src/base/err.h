/* What a call that may fail returns. OK is 0, so that `if (e)` reads "if it failed". */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/defs.h"

enum err {
    OK = 0,
    ERR_MEMORY,   /* no memory, or an arena's or buffer's ceiling was reached */
    ERR_FULL,     /* a bounded queue or table has no room */
    ERR_TIMEOUT,  /* the deadline passed */
    ERR_CLOSED,   /* the other side, or the thing itself, is gone; trying later may help */
    ERR_INPUT,    /* the caller's data is wrong */
    ERR_SYSTEM,   /* a system call failed */
    ERR_DATABASE, /* a statement failed; the call has its SQLSTATE */
    ERR_CONFLICT, /* deadlock or serialisation failure: the whole work may be run again */
    ERR_MISSING,  /* what was asked for is not there */
};

const char *err_name(enum err e);

/* A sentence for a person, filled by calls whose failure stops a start or a command. */
struct why {
    char text[512];
};

/* Writes the sentence (cut if too long; `why` may be NULL) and returns e, so that a failing function can end with it.
 * why->text may be among the arguments: that is how a caller puts its own words before a callee's. */
enum err why_set(struct why *why, enum err e, const char *format, ...) PRINTF_LIKE(3, 4);

#endif
