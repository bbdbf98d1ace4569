/* What `reclaim doctor` says of RECLAIM_CUSTOMERS. */
#ifndef CLI_DOCTOR_CUSTOMERS_H
#define CLI_DOCTOR_CUSTOMERS_H

#include "server/database.h"

/* `users`: the setting is users. `repairs`: puts missing triggers on auth.users. */
void doctor_check_customers(struct pg *pg, bool users, bool repairs, finding_handler *each, void *context);

#endif
