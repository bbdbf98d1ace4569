/* Private to src/customers: shared by expiry and the deletion of one customer. */
#ifndef CUSTOMERS_DELETE_H
#define CUSTOMERS_DELETE_H

#include "base/buf.h"
#include "customers/expiry.h"

/* Adds a customer to the two arrays that customers_delete takes (p_sealed of reclaim.clear_customers). */
void deletion_add(const struct deletion_terms *terms, const char *id, struct str email, struct buf *ids,
                  struct buf *sealed);

extern const struct statement
    customers_delete; /* $1 ids $2 sealed $3 action $4 actor $5 actor id $6 correlation → deleted */
extern const struct statement deletion_lock;     /* $1 id → status held erased email */
extern const struct statement deletion_show;     /* $1 id → object */
extern const struct statement deletion_redrive;  /* $1 id → receipts */
extern const struct statement reminders_promise; /* $1 before $2 until $3 limit → promised */
extern const struct statement legal_hold_set;    /* $1 id $2 reason or null → object */
extern const struct statement legal_hold_log;    /* as customer_write_log, and $7 detail */

#endif
