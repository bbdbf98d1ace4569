/* Whether the session of a token goes on (reclaim.sessions). For tokens that are not in the credential cache. */
#ifndef GATE_SESSIONS_H
#define GATE_SESSIONS_H

#include "pg/pg.h"

/* Of a user `u`, when the session begins and whenever it is read: a session ends with the password that its user had. */
#define SESSION_PASSWORD_DIGEST                                                                                        \
    "pg_catalog.sha256(pg_catalog.convert_to(coalesce(u.encrypted_password, '')::text, 'UTF8'))"

/* Asks the database: a session is unknown, another user's, has ended, or its user is banned, deleted or has another
 * password than when it began. */
enum err session_has_ended(struct pg *pg, const char *session, const char *user_id, int64_t deadline_ns,
                           bool *ret) MUST_CHECK;

extern const struct statement session_read;

#endif
