/* What the commands that delete customers share. */
#ifndef CLI_DELETION_H
#define CLI_DELETION_H

#include "cli/command.h"
#include "customers/expiry.h"

/* What deleting needs at the command line; the command's key is that of last mails. */
enum err deletion_of(struct command_context *c, struct deletion *ret) MUST_CHECK;

#endif
