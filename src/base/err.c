#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *err_name(enum err e)
{
    switch (e) {
    case OK:
        return "ok";
    case ERR_MEMORY:
        return "memory";
    case ERR_FULL:
        return "full";
    case ERR_TIMEOUT:
        return "timeout";
    case ERR_CLOSED:
        return "closed";
    case ERR_INPUT:
        return "input";
    case ERR_SYSTEM:
        return "system";
    case ERR_DATABASE:
        return "database";
    case ERR_CONFLICT:
        return "conflict";
    case ERR_MISSING:
        return "missing";
    }
    return "unknown";
}

enum err why_set(struct why *why, enum err e, const char *format, ...)
{
    if (!why)
        return e;

    /* Formats into a copy, because callers add a prefix: why_set(why, e, "migrating: %s", why->text). */
    struct why text = {""};
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text.text, sizeof text.text, format, args);
    va_end(args);
    memcpy(why, &text, sizeof text);
    return e;
}
