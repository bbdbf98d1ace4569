/* Private to src/customers: every sentence of the mails to customers. */
#ifndef CUSTOMERS_TEXTS_H
#define CUSTOMERS_TEXTS_H

#include "api/code_mail.h"

#define WHEN "{when}" /* in a paragraph: the date of the deletion */

enum customer_mail {
    CUSTOMER_MAIL_FROZEN,
    CUSTOMER_MAIL_MOVED, /* the deletion has another date, after a legal hold */
    CUSTOMER_MAIL_RECOVERED,
    CUSTOMER_MAIL_REMINDER,
    CUSTOMER_MAIL_DELETED, /* the last mail */
};

#define MAIL_PARAGRAPHS_MAX 4
struct customer_text {
    const char *subject;
    const char *paragraphs[MAIL_PARAGRAPHS_MAX];          /* NULL ends them */
    const char *paragraphs_by_admin[MAIL_PARAGRAPHS_MAX]; /* after an administrator's freeze; none: the same */
};

const struct customer_text *customer_text_of(enum customer_mail mail);
extern const struct code_mail sign_in_code_text;

#endif
