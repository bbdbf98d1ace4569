/* Private to src/customers: the mails about a customer's changes. The work queue keeps ids only; addresses are read when a
 * mail is composed. */
#ifndef CUSTOMERS_MAILS_H
#define CUSTOMERS_MAILS_H

#include "customers/last_mail.h"
#include "customers/state.h"
#include "mail/mail.h"

enum customer_mail {
    CUSTOMER_MAIL_FROZEN,
    CUSTOMER_MAIL_MOVED, /* the deletion has another date, after a legal hold */
    CUSTOMER_MAIL_RECOVERED,
    CUSTOMER_MAIL_REMINDER,
    CUSTOMER_MAIL_DELETED, /* the last mail */
};

struct customer_letter {
    enum customer_mail kind;
    const char *customer_id;
    enum language language;
    struct str when;               /* of the deletion, RFC 3339; absent: not said */
    bool by_admin;                 /* an administrator froze it: the person cannot recover the account */
    bool cools_down;               /* of the last mail: the address cannot register again yet */
    const struct last_mail *proof; /* of the last mail: salt and link of the certificate; NULL: none */
};

/* The caller sets the recipient. */
void customer_mail_write(const struct mail_design *design, const struct customer_letter *letter, struct mail *ret);

#endif
