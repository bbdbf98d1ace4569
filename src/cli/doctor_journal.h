/* Checks of the journal and of what follows from a restored backup; for `reclaim doctor`. */
#ifndef CLI_DOCTOR_JOURNAL_H
#define CLI_DOCTOR_JOURNAL_H

#include "server/database.h"

void doctor_check_journal(struct pg *pg, const struct settings *s, finding_handler *each, void *context);

#endif
