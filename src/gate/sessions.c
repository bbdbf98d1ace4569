#include "gate/sessions.h"

/* The minute allows for clocks that differ; the token says when it expires. */
const struct statement session_read = {
    .name = "session_read",
    .sql = "SELECT s.id FROM reclaim.sessions s JOIN auth.users u ON u.id = s.user_id"
           " WHERE s.id = $1::uuid AND s.user_id = $2::uuid AND s.ended_at IS NULL"
           " AND s.expires_at > pg_catalog.now() - interval '1 minute' AND u.deleted_at IS NULL"
           " AND coalesce(u.banned_until <= pg_catalog.now(), true)"
           " AND coalesce(s.password_digest = " SESSION_PASSWORD_DIGEST ", true)",
    .params = 2,
    .columns = "id:uuid",
};

enum err session_has_ended(struct pg *pg, const char *session, const char *user_id, int64_t deadline_ns, bool *ret)
{
    struct pg_call call = {.ask = &session_read, .args = {pg_text(session), pg_text(user_id)}};
    enum err e = pg_ask(pg, &call, deadline_ns);
    if (!e)
        *ret = call.rows == 0;
    return e;
}
