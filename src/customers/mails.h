/* Private to src/customers: the mails about a customer's changes. The work queue keeps ids only; addresses are read when a
 * mail is composed. */
#ifndef CUSTOMERS_MAILS_H
#define CUSTOMERS_MAILS_H

#include "customers/state.h"
#include "mail/mail.h"

#define CUSTOMER_MAIL_PAYLOAD_MAX 256

/* The template of the mail that announces this event; NULL for none. */
const char *customer_mail_template(enum customer_event event);
void customer_mail_payload(const char *template, const char *customer_id, char into[CUSTOMER_MAIL_PAYLOAD_MAX]);

/* Subject and text; the caller sets the recipient. `when` is like "18 March 2026, 12:00 UTC". */
void customer_mail_write_frozen(const char *customer_id, const char *when, struct mail *ret);
void customer_mail_write_recovered(const char *customer_id, struct mail *ret);
void customer_mail_write_reminder(const char *customer_id, const char *when, struct mail *ret);
void customer_mail_write_deleted(const char *customer_id, struct mail *ret);

#endif
