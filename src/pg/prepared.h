/* Keeps track of the prepared statements of a session. */
#ifndef PG_PREPARED_H
#define PG_PREPARED_H

#include "pg/inside.h"

/* DEALLOCATE truncates longer names; the protocol does not. */
#define PREPARED_NAME_MAX 63

/* NULL when the statement must be sent unnamed: the table is full, or its name is too long or contains a quote. */
struct prepared *prepared_find(struct pg *pg, const struct statement *ask);

#endif
