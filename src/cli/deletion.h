/* What the commands that delete customers share. */
#ifndef CLI_DELETION_H
#define CLI_DELETION_H

#include "cli/command.h"
#include "customers/expiry.h"

/* The command's key, which is that of last mails; NULL where no mail can be sent. */
enum err last_mail_key_of(struct command_context *c, const struct digest **ret) MUST_CHECK;

#endif
