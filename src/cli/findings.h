/* Private to src/cli: what `reclaim migrate --check` found, for people. */
#ifndef CLI_FINDINGS_H
#define CLI_FINDINGS_H

#include "pg/pg.h"

/* Rows of ADOPTION_COLUMNS, in paragraphs of 80 characters a line: what is refused, changes, notes, locks. */
void print_findings(const struct pg_call *rows);

#endif
