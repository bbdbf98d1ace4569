/* Which named statements the server's session has. */
#ifndef PG_PREPARED_H
#define PG_PREPARED_H

#include "pg/inside.h"

/* DEALLOCATE cuts longer names off; the protocol does not. */
#define PREPARED_NAME_MAX 63

/* NULL when the statement has to go unnamed: the table is full, or the name too long or not an identifier. */
struct prepared *prepared_find(struct pg *pg, const struct statement *ask);

#endif
