/* What the Accept header of a request prefers (RFC 9110, section 12.5.1). */
#ifndef HTTP_ACCEPT_H
#define HTTP_ACCEPT_H

#include "base/str.h"

/* Whether `kind`, "text/html", is wanted more than `other`; false for an absent header, which wants all alike. */
bool accept_prefers(struct str accept, const char *kind, const char *other);

#endif
