/* Removes old rows of reclaim.gate_ended. */
#ifndef GATE_GATE_ENDED_H
#define GATE_GATE_ENDED_H

#include "pg/pg.h"

struct gate_ended {
    char finished[24]; /* transactions before this one had ended by the last call; "" before the first */
};

/* A duty of the leader; `gate_ended` is a zeroed struct gate_ended. Removes what is older than an hour: credentials are
 * cached for a minute, and an instance that lost its connection begins anew. */
enum err gate_ended_prune(struct gate_ended *gate_ended, struct pg *pg, int64_t deadline_ns) MUST_CHECK;

extern const struct statement *const gate_ended_statements[];
extern const size_t gate_ended_statement_count;

#endif
