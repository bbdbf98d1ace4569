/* Clears the personal data of customers that other programs deleted in plain SQL: the triggers queue it, since the sealed address
 * of the last mail needs a key that the database does not have. Deletions of Reclaim's own clear in their transaction. */
#ifndef CUSTOMERS_ANONYMISE_H
#define CUSTOMERS_ANONYMISE_H

#include "customers/customers.h"
#include "work/work.h"

/* The kind of these work items; `customers` must live as long as the engine. */
struct work_kind anonymise_kind(struct customers *customers);

#endif
