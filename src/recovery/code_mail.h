/* Private to src/recovery: the mail with a code. */
#ifndef RECOVERY_CODE_MAIL_H
#define RECOVERY_CODE_MAIL_H

#include "api/code_mail.h"
#include "recovery/contract.h"

extern const struct code_mail recovery_code_words;

/* The contract that a payload names, by which a mail that is taken over is written. ERR_INPUT: there is no such one. */
enum err code_mail_contract(const json_t *payload, const struct contract **ret) MUST_CHECK;

#endif
