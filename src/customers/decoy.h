/* Private to src/customers: how long a password is checked for an address that has none. */
#ifndef CUSTOMERS_DECOY_H
#define CUSTOMERS_DECOY_H

#include "customers/customers.h"

/* Once an hour, and before the first password: has the verifier's decoy take as long as most stored hashes. On a worker;
 * a failure leaves the decoy as it is. */
void decoy_refresh(struct customers *context, struct pg *pg, int64_t deadline_ns);
/* Logs, once, and counts a stored hash that Reclaim cannot check. */
void unsupported_hash_seen(void);

extern const struct statement decoy_read_usual;

#endif
