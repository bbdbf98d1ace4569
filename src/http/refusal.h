/* Private to src/http: refusals that libmicrohttpd cannot send in the server's own form. They are written to the socket past
 * the library, which then finds the connection closed. */
#ifndef HTTP_REFUSAL_H
#define HTTP_REFUSAL_H

#include "http/loop.h"

/* Per connection, for the heads of a request and of its reply; large enough for bearer tokens. */
#define CONNECTION_MEMORY ((size_t)16 * 1024)

/* The head of the request leaves too little of the connection's memory for that of a reply: the library would close the
 * connection without one. */
bool refusal_is_needed(struct MHD_Connection *connection);
/* Sends the refusal of the request's family; nothing can be sent on this connection afterwards. */
void refusal_send(struct visit *visit, int status);
/* The library's logger, called by the loop's thread. */
void refusal_notice(void *context, const char *format, va_list arguments);

#endif
