/* The schema when a server starts. */
#ifndef SERVER_SCHEMA_H
#define SERVER_SCHEMA_H

#include <stdbool.h>

#include "pg/pg.h"

/* Migrates, if it is to. `embedded`: a private cluster, which gets a minimal schema auth first; `demo`: with the demonstration's people. */
enum err schema_bring_up(struct pg *pg, bool embedded, bool migrates, bool demo, struct why *why) MUST_CHECK;

#endif
