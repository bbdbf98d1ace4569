/* Private to src/recovery: the mail with a code. */
#ifndef RECOVERY_CODE_MAIL_H
#define RECOVERY_CODE_MAIL_H

#include "mail/mail.h"
#include "recovery/contract.h"

/* `minutes` is the code's life; the caller sets `to` and `expires_us`. */
void code_mail_write(const struct code_shape *shape, const struct code *code, int minutes, const char *reference,
                     struct mail *ret);

/* The contract that a payload names, by which a mail that is taken over is written. ERR_INPUT: there is no such one. */
enum err code_mail_contract(const json_t *payload, const struct contract **ret) MUST_CHECK;

#endif
