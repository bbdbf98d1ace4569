/* Refuses request heads that libmicrohttpd accepts and that two servers in a row may read differently. */
#ifndef HTTP_STRICT_H
#define HTTP_STRICT_H

#include <microhttpd.h>
#include <stdbool.h>

#include "base/err.h"

/* 0.9.75 to 0.9.77 accept folded lines and lines without a name; strict.c finds these by how the library lays the head out
 * in its buffer. From 1.0 on (the option since 0.9.77.1) level 1 refuses them, and the layout is not looked at. */
#if MHD_VERSION >= 0x00097701
#define STRICT_BY_LEVEL 1
#define STRICT_OPTIONS MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
#define STRICT_BY_LEVEL 0
#define STRICT_OPTIONS MHD_OPTION_STRICT_FOR_CLIENT, 0 /* the library's default: what it accepts is checked here */
#endif

/* True when the request's head has one reading; otherwise it must be refused and the connection closed. `method` and
 * `version` are what libmicrohttpd gives its handler. */
bool strict_accepts(struct MHD_Connection *connection, const char *method, const char *version);

/* At start: sends sound and unsound heads through the libmicrohttpd that was loaded, which may be newer than the one this
 * program was built with. ERR_SYSTEM with a sentence when one of them is not judged as it must be. */
enum err strict_check_library(struct why *why) MUST_CHECK;

#endif
