/* The last mail, which confirms the deletion. The database keeps no address by then, so the work item has it sealed: under a
 * key that the database does not have, bound to this customer, and deleted with the item. */
#ifndef CUSTOMERS_LAST_MAIL_H
#define CUSTOMERS_LAST_MAIL_H

#include "base/digest.h"
#include "mail/mail.h"

#define LAST_MAIL_PURPOSE "farewell" /* for digest_derive */
#define LAST_MAIL_SECRET_LEN 16
/* Hex of nonce, secret, address and tag, and two hashes. */
#define LAST_MAIL_SEALED_MAX ((24 + 16 + 1 + LAST_MAIL_SECRET_LEN + MAIL_ADDRESS_MAX) * 2 + 2 * 65 + 1)

/* What only the last mail says: to whom it goes, the salt of the address in the certificate, and the secret of the link to it. */
struct last_mail {
    char to[MAIL_ADDRESS_MAX + 1];
    char salt[2 * LAST_MAIL_SECRET_LEN + 1],
        link[2 * LAST_MAIL_SECRET_LEN + 1]; /* hex; "" in mails of older programs */
};

/* What the database stores: the sealed mail, the salted hash of the address, and the hash of the link's secret, with colons between
 * them. The secret is made here, at random. ERR_INPUT for an address that no mail can go to. */
enum err last_mail_seal(const struct digest *key, const char *customer_id, struct str address,
                        char ret[LAST_MAIL_SEALED_MAX]) MUST_CHECK;
/* ERR_INPUT when it was not sealed for this customer with this key. */
enum err last_mail_open(const struct digest *key, struct str customer_id, struct str sealed,
                        struct last_mail *ret) MUST_CHECK;

/* Deletes last mails that could not be delivered, and with them their addresses. A duty of the leader. */
enum err last_mail_prune(void *context, struct pg *pg, int64_t deadline_ns);

extern const struct statement last_mail_prune_dead;

#endif
