/* Shapes of requests that libmicrohttpd lets through and two servers in a row may read differently. */
#ifndef HTTP_STRICT_H
#define HTTP_STRICT_H

#include <microhttpd.h>
#include <stdbool.h>

/* True when the request's head is beyond doubt; otherwise it must be refused and the connection closed. `method` and
 * `version` are what libmicrohttpd gives its handler. */
bool strict_accepts(struct MHD_Connection *connection, const char *method, const char *version);

#endif
