/* What the commands that delete customers share. */
#ifndef CLI_DELETION_H
#define CLI_DELETION_H

#include "cli/command.h"
#include "customers/expiry.h"

/* By the settings; the command's key is that of last mails. */
enum err deletion_terms_of(struct command_context *c, struct deletion_terms *ret) MUST_CHECK;

#endif
