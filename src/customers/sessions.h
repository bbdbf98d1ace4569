/* Private to src/customers: sessions that /auth/login begins (reclaim.sessions). */
#ifndef CUSTOMERS_SESSIONS_H
#define CUSTOMERS_SESSIONS_H

#include "gate/sessions.h"
#include "pg/pg.h"

#define SESSION_LIFE_S 3600

/* The id of a new session, or "" when the user may not sign in any more. */
struct session {
    char id[37], user_id[37];
};
/* For a user whose password was right. */
enum err session_begin(struct pg *pg, const char *user_id, int64_t deadline_ns, struct session *ret) MUST_CHECK;
/* The columns that a statement which inserts a session returns: id, user_id. */
enum err session_read_begun(const struct pg_call *inserted, struct session *ret) MUST_CHECK;

/* Networks with a successful sign-in to an address, for 30 days (reclaim.sign_in_networks): one keyed hash of both.
 * A failure is logged; the session began without it. */
void session_note(struct pg *pg, const char *pair_hash, int64_t deadline_ns);
extern const struct statement session_find_network; /* $1 hash → known:bool */

/* For such statements. Users who were banned or deleted in the meantime get no session. */
#define SESSION_INSERT(method)                                                                                         \
    "INSERT INTO reclaim.sessions (user_id, method, password_digest, expires_at)"                                      \
    " SELECT u.id, " method ", " SESSION_PASSWORD_DIGEST ","
#define SESSION_EXPIRES(seconds) " pg_catalog.clock_timestamp() + " seconds "::int8 * interval '1 second'"
#define SESSION_MAY_BEGIN                                                                                              \
    " u.email_confirmed_at IS NOT NULL AND u.deleted_at IS NULL AND u.is_anonymous IS NOT TRUE"                        \
    " AND coalesce(u.banned_until <= pg_catalog.now(), true) RETURNING id, user_id"

#endif
