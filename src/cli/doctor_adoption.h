/* Private to src/cli: what `reclaim doctor` checks of adopted tables. */
#ifndef CLI_DOCTOR_ADOPTION_H
#define CLI_DOCTOR_ADOPTION_H

#include "server/database.h"

/* Whether anybody owns a customer. */
void doctor_check_owners(struct pg *pg, finding_handler *each, void *context);
/* Whether balances of a team's were left in a column of its own. */
void doctor_check_balances(struct pg *pg, finding_handler *each, void *context);

#endif
