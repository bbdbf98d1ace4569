/* The last mail, which tells that everything is gone. Its address must be nowhere by then, so it travels sealed in the work
 * item: under a key that the database does not have, readable for this customer's mail only, and deleted with the item. */
#ifndef CUSTOMERS_LAST_MAIL_H
#define CUSTOMERS_LAST_MAIL_H

#include "base/digest.h"
#include "mail/mail.h"

#define LAST_MAIL_PURPOSE "farewell"                               /* for digest_derive */
#define FAREWELL_SEALED_MAX ((24 + 16 + MAIL_ADDRESS_MAX) * 2 + 1) /* hex of nonce, address and tag */

/* ERR_INPUT for an address that no mail can go to. */
enum err last_mail_seal(const struct digest *key, const char *customer_id, struct str address,
                        char ret[FAREWELL_SEALED_MAX]) MUST_CHECK;
/* ERR_INPUT when it was not sealed for this customer with this key. */
enum err last_mail_open(const struct digest *key, struct str customer_id, struct str sealed,
                        char ret[MAIL_ADDRESS_MAX + 1]) MUST_CHECK;

/* Deletes last mails that nobody could deliver: their addresses are not kept for people to look at. A duty. */
enum err last_mail_prune(void *context, struct pg *pg, int64_t deadline_ns);

extern const struct statement last_mail_prune_dead;

#endif
