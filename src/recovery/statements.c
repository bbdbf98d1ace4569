#include "recovery/statements.h"

#include "recovery/cleanup.h"

#define PRUNE_MOST 5000

/* Not granted is an error (55P03), so that no later statement of the trip runs. */
const struct statement cleanup_lock = {
    .name = "cleanup_lock",
    .sql = "SELECT reclaim.require_cleanup_lock($1)",
    .params = 1,
    .columns = "require_cleanup_lock:void",
};

/* A row for each address, in order. One that is not granted refuses its own request only. */
const struct statement cleanup_try_locks = {
    .name = "cleanup_try_locks",
    .sql = "SELECT pg_catalog.pg_try_advisory_xact_lock(reclaim.email_to_lock_id(q.email)) AS mine"
           " FROM pg_catalog.unnest($1::text[]) AS q(email)",
    .params = 1,
    .columns = "mine:bool",
};

/* For a proven caller: waits as long as the transaction may wait for locks, so that short transactions of callers without a
 * proof do not have it refused. */
const struct statement cleanup_await_lock = {
    .name = "cleanup_await_lock",
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(reclaim.email_to_lock_id($1))",
    .params = 1,
    .columns = "pg_advisory_xact_lock:void",
};

/* Another request may have used the code, or replaced it, since it was compared. */
const struct statement cleanup_find_code = {
    .name = "cleanup_find_code",
    .sql = "SELECT c.log_id FROM reclaim.verification_codes c WHERE c.email_hash = $1 AND c.log_id = $2::int8",
    .params = 2,
    .columns = "log_id:int8",
};

/* Conflicts with the key share lock that an insert into a table with a foreign key to auth.users takes, or a customer that
 * gets an owner: waits for a registration that is completing, and one that begins waits for this transaction. */
const struct statement cleanup_lock_user = {
    .name = "cleanup_lock_user",
    .sql = "SELECT u.id FROM auth.users u WHERE u.id = $1::uuid FOR UPDATE OF u",
    .params = 1,
    .columns = "id:uuid",
};

/* Codes of different addresses. They are locked in the order of their hashes, as wherever several are. */
const struct statement cleanup_store_codes = {
    .name = "cleanup_store_codes",
    .sql =
        "WITH asked AS MATERIALIZED (SELECT * FROM pg_catalog.jsonb_to_recordset($1::jsonb) AS a(email_hash text,"
        "   user_id uuid, code_hash text, code_salt text, correlation_id uuid, ip_hash text)),"
        " log AS (INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, ip_hash, step, status)"
        "   SELECT a.correlation_id, a.email_hash, a.ip_hash, 'request-code', 'pending' FROM asked a"
        "   RETURNING id, email_hash),"
        " event AS (INSERT INTO reclaim.auth_cleanup_events"
        "   (log_id, correlation_id, email_hash, network_hash, kind, outcome)"
        "   SELECT l.id, a.correlation_id, a.email_hash, a.ip_hash, 'request-code', 'code-sent'"
        "   FROM log l JOIN asked a USING (email_hash))"
        " INSERT INTO reclaim.verification_codes AS c (email_hash, user_id, code_hash, code_salt, expires_at, log_id)"
        " SELECT a.email_hash, a.user_id, decode(a.code_hash, 'hex'), decode(a.code_salt, 'hex'),"
        "   (SELECT reclaim.now()) + $2::int8 * interval '1 second', l.id"
        "   FROM log l JOIN asked a USING (email_hash) ORDER BY a.email_hash"
        " ON CONFLICT (email_hash) DO UPDATE SET user_id = excluded.user_id, code_hash = excluded.code_hash,"
        "  code_salt = excluded.code_salt, expires_at = excluded.expires_at, log_id = excluded.log_id, tries = 0,"
        "  network_tries = '{}', created_at = excluded.created_at"
        " RETURNING c.email_hash, c.log_id,"
        "  to_char(c.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') AS expires_at",
    .params = 2,
    .columns = "email_hash:text log_id:int8 expires_at:text",
};

/* As cleanup_store_codes, for a deletion by an operator: the same transaction uses the code, which is sent to nobody. */
const struct statement cleanup_store_operator = {
    .name = "cleanup_store_operator",
    .sql =
        "WITH log AS (INSERT INTO reclaim.auth_cleanup_log (correlation_id, email_hash, step, status)"
        "  VALUES ($5::uuid, $1, $6, 'pending') RETURNING id, created_at),"
        " why AS (INSERT INTO reclaim.auth_cleanup_reasons (log_id, actor, reason, created_at)"
        "  SELECT id, 'operator', $7, created_at FROM log)"
        " INSERT INTO reclaim.verification_codes AS c (email_hash, user_id, code_hash, code_salt, expires_at, log_id)"
        " SELECT $1, $2::uuid, decode($3, 'hex'), decode($4, 'hex'), (SELECT reclaim.now()), log.id FROM log"
        " ON CONFLICT (email_hash) DO UPDATE SET user_id = excluded.user_id, code_hash = excluded.code_hash,"
        "  code_salt = excluded.code_salt, expires_at = excluded.expires_at, log_id = excluded.log_id, tries = 0,"
        "  created_at = excluded.created_at"
        " RETURNING c.log_id, reclaim.rfc3339(c.created_at) AS created_at",
    .params = 7,
    .columns = "log_id:int8 created_at:text",
};

const struct statement cleanup_find_address = {
    .name = "cleanup_find_address",
    .sql = "SELECT u.email FROM auth.users u WHERE u.id = $1::uuid AND u.email IS NOT NULL AND u.is_sso_user = false"
           " AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "email:varchar",
};

/* A network that has used its tries learns no more about this code; others go on, up to all tries of the code. */
const struct statement cleanup_take_try = {
    .name = "cleanup_take_try",
    .sql = "UPDATE reclaim.verification_codes SET tries = tries + 1, network_tries = " CODE_NETWORK_TRIES_PLUS(
        "$2") " WHERE email_hash = $1 AND expires_at > (SELECT reclaim.now()) AND tries < $3::int4"
              " AND " CODE_NETWORK_TRIES("$2") " < " CODE_NETWORK_TRIES_MAX
                                               " RETURNING encode(code_hash, 'hex') AS code_hash, encode(code_salt, "
                                               "'hex') AS code_salt, user_id, log_id,"
                                               " reclaim.rfc3339(created_at) AS created_at",
    .params = 3,
    .columns = "code_hash:text code_salt:text user_id:uuid log_id:int8 created_at:text",
};

/* The code was right and the account could not be deleted: the same code can be sent again. */
const struct statement cleanup_restore_try = {
    .name = "cleanup_restore_try",
    .sql = "UPDATE reclaim.verification_codes SET tries = tries - 1, network_tries = network_tries ||"
           "  jsonb_build_object($3::text, " CODE_NETWORK_TRIES(
               "$3") " - 1)"
                     " WHERE email_hash = $1 AND log_id = $2::int8 AND tries > 0 AND " CODE_NETWORK_TRIES("$3") " > 0",
    .params = 3,
    .columns = "",
};

const struct statement cleanup_drop_code = {
    .name = "cleanup_drop_code",
    .sql = "DELETE FROM reclaim.verification_codes WHERE email_hash = $1 AND log_id = $2::int8",
    .params = 2,
    .columns = "",
};

/* Says to reclaim.user_removed that it is Reclaim's own deletion. */
const struct statement cleanup_delete_user = {
    .name = "cleanup_delete_user",
    .sql = "DELETE FROM auth.users WHERE id = $1::uuid AND set_config('reclaim.own_removal', 'on', true) IS NOT NULL",
    .params = 1,
    .columns = "",
};

/* Where the triggers on auth.users have not told the gates. */
const struct statement cleanup_tell_gates = {
    .name = "cleanup_tell_gates",
    .sql = "SELECT reclaim.users_removed(ARRAY[$1::uuid], true) AS told WHERE NOT reclaim.users_watched()",
    .params = 1,
    .columns = "told:void",
};

/* Keys that are checked at the end of the transaction are checked now, so that a violation can be told from other failures. */
const struct statement cleanup_check_keys = {
    .name = "cleanup_check_keys",
    .sql = "SET CONSTRAINTS ALL IMMEDIATE",
    .params = 0,
    .columns = "",
};

/* By an instance that takes the mail over, which is an event. */
const struct statement cleanup_read_mail = {
    .name = "cleanup_read_mail",
    .sql = "WITH found AS MATERIALIZED (SELECT u.email, c.email_hash, c.log_id,"
           "   ceil(extract(epoch FROM c.expires_at - (SELECT reclaim.now())))::int8 AS left_s"
           "   FROM reclaim.verification_codes c JOIN auth.users u ON u.id = c.user_id"
           "   WHERE c.user_id = $1::uuid AND c.code_salt = decode($2, 'hex') AND u.deleted_at IS NULL),"
           " event AS (INSERT INTO reclaim.auth_cleanup_events (log_id, correlation_id, email_hash, kind, outcome)"
           "   SELECT f.log_id, $3::uuid, f.email_hash, 'mail', 'taken-over' FROM found f WHERE f.left_s > 0)"
           " SELECT f.email, f.left_s FROM found f",
    .params = 3,
    .columns = "email:varchar left_s:int8",
};

static const struct statement purge_codes = {
    .name = "cleanup_purge_codes",
    .sql = "DELETE FROM reclaim.verification_codes WHERE email_hash IN (SELECT c.email_hash"
           " FROM reclaim.verification_codes c WHERE c.expires_at < (SELECT reclaim.now()) - interval '1 hour'"
           " ORDER BY c.email_hash FOR UPDATE)",
    .params = 0,
    .columns = "",
};

static const struct statement prune_reasons = {
    .name = "cleanup_prune_reasons",
    .sql = "DELETE FROM reclaim.auth_cleanup_reasons WHERE log_id IN (SELECT log_id FROM reclaim.auth_cleanup_reasons"
           " WHERE created_at < now() - $1::int8 * interval '1 millisecond' ORDER BY created_at LIMIT $2::int8)",
    .params = 2,
    .columns = "",
};

const struct statement *const cleanup_statements[] = {
    &cleanup_lock,         &cleanup_await_lock, &cleanup_find_code,   &cleanup_lock_user, &cleanup_store_codes,
    &cleanup_try_locks,    &cleanup_take_try,   &cleanup_restore_try, &cleanup_drop_code, &cleanup_delete_user,
    &cleanup_tell_gates,   &cleanup_check_keys, &cleanup_read_mail,   &purge_codes,       &cleanup_store_operator,
    &cleanup_find_address, &prune_reasons};
const size_t cleanup_statement_count = COUNT_OF(cleanup_statements);

enum err cleanup_purge_codes(struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &purge_codes};
    return pg_ask(pg, &call, deadline_ns);
}

enum err cleanup_prune_reasons(struct pg *pg, int64_t retention_ms, int64_t deadline_ns)
{
    for (;;) {
        struct pg_call call = {.ask = &prune_reasons, .args = {pg_i64(retention_ms), pg_i64(PRUNE_MOST)}};
        enum err e = pg_ask(pg, &call, deadline_ns);
        if (e || call.rows < PRUNE_MOST)
            return e;
    }
}
