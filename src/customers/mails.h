/* Private to src/customers: the mails that go with a change. The work queue keeps ids only; addresses are read when a
 * mail is written. */
#ifndef CUSTOMERS_MAILS_H
#define CUSTOMERS_MAILS_H

#include "customers/state.h"
#include "mail/mail.h"

#define CUSTOMER_MAIL_PAYLOAD_MAX 256

/* Which mail tells of this event; false when none does. */
bool customer_mail_template(enum customer_event event, enum mail_template *ret);
void customer_mail_payload(enum mail_template template, const char *customer_id, char into[CUSTOMER_MAIL_PAYLOAD_MAX]);

#endif
