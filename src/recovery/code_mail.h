/* Private to src/recovery: the mail with a code. */
#ifndef RECOVERY_CODE_MAIL_H
#define RECOVERY_CODE_MAIL_H

#include "mail/mail.h"
#include "recovery/contract.h"

/* `minutes` is the code's life; the caller sets `to` and `expires_us`. */
void code_mail_write(const struct code_shape *shape, const struct code *code, int minutes, const char *reference,
                     struct mail *ret);

#endif
