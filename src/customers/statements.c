#include "customers/statements.h"

#include "api/read.h"
#include "base/defs.h"
#include "customers/columns.h"
#include "customers/customers.h"
#include "pg/lock_ids.h"

const struct statement customer_take_turn = {
    .name = "customer_take_turn",
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(" LOCK_CLASS_CUSTOMER
           ", reclaim.customer_turn($1::uuid)) IS NULL AS turn",
    .params = 1,
    .columns = "turn:bool",
};

const struct statement customer_make_row = {
    .name = "customer_make_row",
    .sql = "SELECT reclaim.customer_make($1::uuid) AS made",
    .params = 1,
    .columns = "made:bool",
};

/* The language is for the mail that follows (reclaim.customer_consequences); arguments are evaluated before the call. */
const struct statement customer_make_change = {
    .name = "customer_make_change",
    .sql = "SELECT c.outcome, coalesce(c.object, '') AS object"
           " FROM reclaim.customer_change($1::uuid, CASE WHEN pg_catalog.set_config('reclaim.language', $7, true) IS "
           "NOT NULL"
           " THEN $2 END, $3, $4::uuid, $5::uuid, $6) AS c",
    .params = 7,
    .columns = "outcome:text object:text",
};

const struct statement customers_sweep_notes = {
    .name = "customers_sweep_notes",
    .sql = "SELECT reclaim.customer_sweep(1000) AS swept",
    .params = 0,
    .columns = "swept:int4",
};

const struct statement customer_write_log = {
    .name = "customer_write_log",
    .sql = "INSERT INTO reclaim.customer_log (customer_id, action, actor, actor_id, outcome, correlation_id)"
           " VALUES ($1::uuid, $2, $3, $4::uuid, $5, $6::uuid)",
    .params = 6,
    .columns = "",
};

const struct statement customer_show = {
    .name = "customer_show",
    .sql = "SELECT reclaim.customer_object(c)::text AS object FROM reclaim.customer_row($1::uuid) AS c",
    .params = 1,
    .columns = "object:text",
};

const struct statement customer_show_to_admin = {
    .name = "customer_show_to_admin",
    .sql = "SELECT reclaim.customer_object_for_admin(c)::text AS object FROM reclaim.customer_row($1::uuid) AS c",
    .params = 1,
    .columns = "object:text",
};

const struct statement customers_list = {
    .name = "customers_list",
    .sql = PAGE_SQL("SELECT c.id, reclaim.customer_object_for_admin(c)::text AS object"
                    " FROM reclaim.customers_find($1, $2::bool, $3, $4::uuid, $5::int8) AS found (id)"
                    " CROSS JOIN LATERAL reclaim.customer_row(found.id) AS c ORDER BY c.id"),
    .params = 5,
    .columns = "id:uuid object:text",
};

const struct statement customers_count = {
    .name = "customers_count",
    .sql = "SELECT reclaim.customers_count($1)::text AS counts",
    .params = 1,
    .columns = "counts:text",
};

const struct statement customer_read_mail = {
    .name = "customer_read_mail",
    .sql = "SELECT c.status::text AS status, " CUSTOMER_ADDRESS " AS email,"
           " coalesce(reclaim.rfc3339(c.deletion_effective_at), '') AS effective,"
           " coalesce(c.frozen_by, '')::text AS frozen_by, coalesce((reclaim.customer_languages(ARRAY[c.id]))[1], '') "
           "AS language"
           " FROM reclaim.customer_customers c"
           " LEFT JOIN auth.users u ON u.id = c.owner_user_id WHERE c.id = $1::uuid",
    .params = 1,
    .columns = "status:text email:text effective:text frozen_by:text language:text",
};

const struct statement customer_read_reminder = {
    .name = "customer_read_reminder",
    .sql = "SELECT " CUSTOMER_ADDRESS " AS email, reclaim.rfc3339(c.deletion_effective_at) AS effective,"
           " (extract(epoch FROM c.deletion_effective_at) * 1000000)::int8 AS expires_us,"
           " coalesce(c.frozen_by, '')::text AS frozen_by, coalesce((reclaim.customer_languages(ARRAY[c.id]))[1], '') "
           "AS language"
           " FROM reclaim.customer_customers c"
           " LEFT JOIN auth.users u ON u.id = c.owner_user_id WHERE c.id = $1::uuid AND c.status = 'frozen'"
           " AND c.hold_at IS NULL AND c.tm_deletion_scheduled = $2::text::timestamptz",
    .params = 2,
    .columns = "email:text effective:text expires_us:int8 frozen_by:text language:text",
};

/* Hours, not days: those of a session's time zone are not all as long. */
const struct statement customers_read_frozen_again = {
    .name = "customers_read_frozen_again",
    .sql = "SELECT pg_catalog.count(*) AS customers FROM (SELECT FROM reclaim.customer_frozen"
           " WHERE frozen_at > (SELECT reclaim.now() - interval '720 hours')"
           " GROUP BY customer_id HAVING pg_catalog.count(*) >= 3) f",
    .params = 0,
    .columns = "customers:int8",
};

const struct statement customers_prune_log = {
    .name = "customers_prune_log",
    .sql = "DELETE FROM reclaim.customer_log WHERE (id, created_at) IN (SELECT id, created_at FROM reclaim.customer_log"
           " WHERE created_at < pg_catalog.now() - $1::int8 * interval '1 millisecond' ORDER BY created_at LIMIT 10000)"
           " AND created_at < pg_catalog.now() - $1::int8 * interval '1 millisecond'",
    .params = 1,
    .columns = "",
};

/* In the installation's time, as they are counted; whatever the retention of the audit is. */
const struct statement customers_prune_freezes = {
    .name = "customers_prune_freezes",
    .sql = "DELETE FROM reclaim.customer_frozen WHERE ctid = ANY (ARRAY(SELECT ctid FROM reclaim.customer_frozen"
           " WHERE frozen_at < (SELECT reclaim.now() - interval '720 hours') AND $1::int8 > 0 LIMIT 10000))",
    .params = 1,
    .columns = "",
};

const struct statement customers_prune_mails = {
    .name = "customers_prune_mails",
    .sql =
        "DELETE FROM reclaim.customer_mails WHERE id IN (SELECT id FROM reclaim.customer_mails"
        " WHERE created_at < pg_catalog.now() - $1::int8 * interval '1 millisecond' ORDER BY created_at LIMIT 10000)",
    .params = 1,
    .columns = "",
};

/* Always one row: an unknown address costs the same look-ups. */
const struct statement login_find_user = {
    .name = "login_find_user",
    .sql = "SELECT u.id, coalesce(u.encrypted_password, '')::text AS hash,"
           " u.email_confirmed_at IS NOT NULL AND u.is_anonymous IS NOT TRUE"
           " AND coalesce(u.banned_until <= pg_catalog.now(), true) AS may_sign_in,"
           " reclaim.has_second_factor(u.id) AS second_factor FROM (VALUES ($1)) AS asked (email)"
           " LEFT JOIN auth.users u ON u.email = asked.email AND NOT u.is_sso_user AND u.deleted_at IS NULL"
           " AND NOT EXISTS (SELECT FROM reclaim.erased_before b WHERE b.id = u.id)",
    .params = 1,
    .columns = "id:uuid hash:text may_sign_in:bool second_factor:bool",
};

const struct statement login_find_proof = {
    .name = "login_find_proof",
    .sql = "SELECT CASE WHEN NOT is_sso_user THEN nullif(encrypted_password, '') END::text AS hash,"
           " lower(email::text) AS email FROM auth.users WHERE id = $1::uuid AND deleted_at IS NULL",
    .params = 1,
    .columns = "hash:text email:text",
};

const struct statement *const customers_statements[] = {
    &customer_make_row,
    &customer_take_turn,
    &customer_make_change,
    &customers_sweep_notes,
    &customer_write_log,
    &customer_show,
    &customer_show_to_admin,
    &customers_list,
    &customer_read_mail,
    &customers_prune_log,
    &customer_read_reminder,
    &login_find_user,
    &login_find_proof,
    &anonymise_read,
    &anonymise_clear,
    &columns_list,
    &columns_check,
    &column_decide,
    &customers_read_frozen_again,
    &customers_prune_freezes,
    &customers_count,
    &customers_prune_mails,
    &own_session_read,
};
const size_t customers_statement_count = COUNT_OF(customers_statements);
