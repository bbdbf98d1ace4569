/* What commands that delete customers share. */
#ifndef CLI_DELETE_H
#define CLI_DELETE_H

#include "customers/expiry.h"
#include "settings/settings.h"

/* What deleting needs at the command line; `key` gets the bytes that `ret` points to. */
enum err deletion_needs(const struct settings *s, struct pg *pg, struct digest *key, struct deletion *ret,
                        struct why *why) MUST_CHECK;

#endif
