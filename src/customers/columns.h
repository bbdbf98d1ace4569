/* Columns of adopted tables that Reclaim does not know: what a deletion does to each, and what the team decided about it. */
#ifndef CUSTOMERS_COLUMNS_H
#define CUSTOMERS_COLUMNS_H

#include "pg/pg.h"

extern const struct statement columns_list;  /* the columns, with what was decided and what a deletion does */
extern const struct statement columns_check; /* for each table what is undecided, and what cannot be cleared */
extern const struct statement
    column_decide; /* table, column, keep or clear, why or null; returns what is wrong, or null */

#endif
