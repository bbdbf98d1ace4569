/* Whether the session of a token goes on (reclaim.sessions). For tokens that are not in the credential cache. */
#ifndef GATE_SESSIONS_H
#define GATE_SESSIONS_H

#include "pg/pg.h"

/* Asks the database: a session is unknown, another user's, has ended, or its user is banned or deleted. */
enum err session_has_ended(struct pg *pg, const char *session, const char *user_id, int64_t deadline_ns,
                           bool *ret) MUST_CHECK;

extern const struct statement session_read;

#endif
