/* Private to src/customers: the mails about a customer's changes. The work queue keeps ids only; addresses are read when a
 * mail is composed. */
#ifndef CUSTOMERS_MAILS_H
#define CUSTOMERS_MAILS_H

#include "customers/state.h"
#include "customers/texts.h"
#include "mail/mail.h"

/* Subject and text, from texts.c; the caller sets the recipient. `when` is like "18 March 2026, 12:00 UTC". After a freeze by an
 * administrator the person cannot recover the account. */
void customer_mail_write(enum customer_mail kind, const char *customer_id, const char *when, bool by_admin,
                         struct mail *ret);

#endif
