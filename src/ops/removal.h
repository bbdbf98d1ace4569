/* What commands that delete customers share. */
#ifndef OPS_REMOVAL_H
#define OPS_REMOVAL_H

#include "customers/expiry.h"
#include "ops/settings.h"

/* What deleting needs at the command line; `key` gets the bytes that `ret` points to. */
enum err ending_needs(const struct settings *s, struct pg *pg, struct digest *key, struct ending *ret,
                      struct why *why) MUST_CHECK;

#endif
