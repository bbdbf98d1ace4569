/* Private to src/customers: what the ways to the end of a customer share. */
#ifndef CUSTOMERS_ENDING_H
#define CUSTOMERS_ENDING_H

#include "base/buf.h"
#include "customers/expiry.h"

/* Adds a customer to the two arrays that ending_delete takes. */
void ending_add(const struct ending *needs, const char *id, struct str email, struct buf *ids, struct buf *sealed);

extern const struct statement
    ending_delete; /* $1 ids $2 sealed $3 action $4 actor $5 actor id $6 correlation → deleted */
extern const struct statement ending_lock;    /* $1 id → status held erased email */
extern const struct statement ending_show;    /* $1 id → object */
extern const struct statement ending_redrive; /* $1 id → receipts */
extern const struct statement ending_reminds; /* $1 grace $2 before $3 until $4 limit → told */
extern const struct statement holding_set;    /* $1 id $2 reason or null → object */
extern const struct statement holding_log;    /* as customer_write_log, and $7 detail */

#endif
