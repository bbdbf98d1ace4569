/* Private to src/cli: what `reclaim doctor` says about columns that Reclaim does not know. */
#ifndef CLI_COLUMNS_H
#define CLI_COLUMNS_H

#include "server/database.h"

/* Warns of those that are undecided, and of those that a deletion cannot clear. */
void doctor_check_columns(struct pg *pg, finding_handler *each, void *context);

#endif
