/* Mails with a code that proves a mailbox, the same for every feature that sends one: what a work item's payload must have, and
 * which of the sentences it has. */
#ifndef API_CODE_MAIL_H
#define API_CODE_MAIL_H

#include "credentials/codes.h"
#include "mail/mail.h"

/* From the payload {"user_id","salt","correlation_id","language",…}: enough to derive the code again, but not the code. */
struct code_payload {
    struct str user_id, salt_hex, correlation_id; /* C strings, valid as long as the payload */
    struct str language;                          /* absent in those of an older version */
    struct code_salt salt;
};
enum err code_payload_read(const json_t *payload, struct code_payload *ret) MUST_CHECK; /* ERR_INPUT */

struct code_mail {
    enum text subject, opening; /* "Your sign-in code is" */
    enum text life_one, life_other;
    enum text warning; /* for who did not ask for it: a paragraph of its own */
    const char *page;  /* where it is entered */
    enum text open, button;
};

/* One mail: for whom, and with which code. */
struct code_letter {
    const struct mail_design *design;
    enum language language;
    const struct code_shape *shape;
    const struct code *code;
    int minutes; /* of the code's life */
    const char *reference;
};

/* Composes the mail; the caller sets `to` and `expires_us`. */
void code_mail_write(const struct code_mail *words, const struct code_letter *letter, struct mail *ret);

/* For an item that was taken over, whole: derives the same code again. `found` has the address and the seconds that the code
 * has left, or no row. ERR_MISSING: it was used or replaced or has expired, or the user is gone. */
enum err code_mail_compose(const struct code_mail *words, const struct code_keys *keys,
                           const struct mail_design *design, const struct code_shape *shape,
                           const struct code_payload *payload, const struct pg_call *found,
                           struct mail *ret) MUST_CHECK;

#endif
