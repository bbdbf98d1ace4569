/* Private to src/http: %XX in paths and queries, which libmicrohttpd is told to leave. */
#ifndef HTTP_ESCAPES_H
#define HTTP_ESCAPES_H

#include "base/arena.h"
#include "base/str.h"

/* The text itself when it has no escapes, otherwise in the arena with a NUL behind it. ERR_INPUT: an escape is malformed, or
 * what comes out is not UTF-8 without NUL. ERR_MEMORY. */
enum err escapes_decode(struct arena *arena, struct str text, struct str *ret) MUST_CHECK;

#endif
