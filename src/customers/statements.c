#include "customers/statements.h"

#include "base/defs.h"
#include "customers/customers.h"
#include "pg/lock_ids.h"

/* For people: "18 March 2026, 12:00 UTC". */
#define FOR_PEOPLE(time) "pg_catalog.to_char((" time ") AT TIME ZONE 'UTC', 'FMDD FMMonth YYYY, HH24:MI \"UTC\"')"
#define GRACE(ms) ms "::int8 * interval '1 millisecond'"

const struct statement customer_take_turn = {
    .name = "customer_take_turn",
    .sql = "SELECT pg_catalog.pg_advisory_xact_lock(" LOCK_CLASS_CUSTOMER
           ", reclaim.customer_turn($1::uuid)) IS NULL AS turn",
    .params = 1,
    .columns = "turn:bool",
};

const struct statement customer_lock = {
    .name = "customer_lock",
    .sql =
        "SELECT c.status::text AS status, reclaim.customer_object(c)::text AS object, coalesce(c.email, '')::text AS "
        "email FROM reclaim.customer_customers c WHERE c.id = $1::uuid FOR UPDATE",
    .params = 1,
    .columns = "status:text object:text email:text",
};

/* Billing is frozen by this transaction; the other layers set their column when they have the freeze. */
const struct statement customer_freeze = {
    .name = "customer_freeze",
    .sql = "UPDATE reclaim.customer_customers c SET status = 'frozen', tm_deletion_scheduled = t.now,"
           " frozen_billing_at = t.now FROM (SELECT reclaim.now() AS now) t WHERE c.id = $1::uuid"
           " RETURNING reclaim.customer_object(c)::text AS object",
    .params = 1,
    .columns = "object:text",
};

const struct statement customer_recover = {
    .name = "customer_recover",
    .sql = "UPDATE reclaim.customer_customers c SET status = 'active' WHERE c.id = $1::uuid"
           " RETURNING reclaim.customer_object(c)::text AS object",
    .params = 1,
    .columns = "object:text",
};

const struct statement customer_publish = {
    .name = "customer_publish",
    .sql = "INSERT INTO reclaim.event_outbox (sequence, type, customer_id, payload)"
           " SELECT c.version, $2, c.id, reclaim.customer_object(c)::jsonb FROM reclaim.customer_customers c"
           " WHERE c.id = $1::uuid",
    .params = 2,
    .columns = "",
};

const struct statement customer_set_billing_hold = {
    .name = "customer_set_billing_hold",
    .sql = "UPDATE reclaim.billing_accounts SET status = 'frozen',"
           " hold_reasons = pg_catalog.array_append(hold_reasons, 'account_frozen')"
           " WHERE customer_id = $1::uuid AND status <> 'deleted' AND NOT 'account_frozen' = ANY (hold_reasons)",
    .params = 1,
    .columns = "",
};

/* A hold for another reason stays; only the freeze's is removed. */
const struct statement customer_clear_billing_hold = {
    .name = "customer_clear_billing_hold",
    .sql = "UPDATE reclaim.billing_accounts SET"
           " status = CASE WHEN hold_reasons <@ ARRAY['account_frozen'] THEN 'active' ELSE status END,"
           " hold_reasons = pg_catalog.array_remove(hold_reasons, 'account_frozen')"
           " WHERE customer_id = $1::uuid AND status <> 'deleted' AND 'account_frozen' = ANY (hold_reasons)",
    .params = 1,
    .columns = "",
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
    .sql = "SELECT reclaim.customer_object(c)::text AS object, c.status::text AS status"
           " FROM reclaim.customer_customers c WHERE c.id = $1::uuid",
    .params = 1,
    .columns = "object:text status:text",
};

const struct statement customers_list = {
    .name = "customers_list",
    .sql = "SELECT c.id, reclaim.customer_object(c)::text AS object FROM reclaim.customer_customers c"
           " WHERE ($1::text IS NULL OR c.status = $1) AND ($2::uuid IS NULL OR c.id > $2::uuid)"
           " ORDER BY c.id LIMIT $3::int8",
    .params = 3,
    .columns = "id:uuid object:text",
};

const struct statement customer_read_mail = {
    .name = "customer_read_mail",
    .sql = "SELECT c.status::text AS status, coalesce(c.email, '')::text AS email,"
           " coalesce(" FOR_PEOPLE(
               "c.tm_deletion_scheduled + " GRACE("$2")) ", '') AS effective"
                                                         " FROM reclaim.customer_customers c WHERE c.id = $1::uuid",
    .params = 2,
    .columns = "status:text email:text effective:text",
};

const struct statement customer_read_reminder = {
    .name = "customer_read_reminder",
    .sql = "SELECT coalesce(c.email, '')::text AS email, " FOR_PEOPLE(
        "effective") " AS effective,"
                     " (extract(epoch FROM effective) * 1000000)::int8 AS expires_us"
                     " FROM (SELECT *, tm_deletion_scheduled + " GRACE(
                         "$2") " AS effective FROM reclaim.customer_customers) c"
                               " WHERE c.id = $1::uuid AND c.status = 'frozen' AND c.hold_at IS NULL"
                               " AND c.tm_deletion_scheduled = $3::text::timestamptz",
    .params = 3,
    .columns = "email:text effective:text expires_us:int8",
};

const struct statement customers_prune_log = {
    .name = "customers_prune_log",
    .sql = "DELETE FROM reclaim.customer_log WHERE (id, created_at) IN (SELECT id, created_at FROM reclaim.customer_log"
           " WHERE created_at < pg_catalog.now() - $1::int8 * interval '1 millisecond' ORDER BY created_at LIMIT 10000)"
           " AND created_at < pg_catalog.now() - $1::int8 * interval '1 millisecond'",
    .params = 1,
    .columns = "",
};

/* Always one row: an unknown address costs the same look-ups. */
const struct statement login_find_user = {
    .name = "login_find_user",
    .sql = "SELECT u.id, coalesce(u.encrypted_password, '')::text AS hash,"
           " u.email_confirmed_at IS NOT NULL AND coalesce(u.banned_until <= pg_catalog.now(), true) AS may_sign_in,"
           " reclaim.has_second_factor(u.id) AS second_factor FROM (VALUES ($1)) AS asked (email)"
           " LEFT JOIN auth.users u ON u.email = asked.email AND NOT u.is_sso_user AND u.deleted_at IS NULL",
    .params = 1,
    .columns = "id:uuid hash:text may_sign_in:bool second_factor:bool",
};

const struct statement login_find_proof = {
    .name = "login_find_proof",
    .sql = "SELECT CASE WHEN NOT is_sso_user THEN nullif(encrypted_password, '') END::text AS hash"
           " FROM auth.users WHERE id = $1::uuid AND deleted_at IS NULL",
    .params = 1,
    .columns = "hash:text",
};

const struct statement *const customers_statements[] = {
    &customer_take_turn,
    &customer_lock,
    &customer_freeze,
    &customer_recover,
    &customer_publish,
    &customer_set_billing_hold,
    &customer_clear_billing_hold,
    &customer_write_log,
    &customer_show,
    &customers_list,
    &customer_read_mail,
    &customers_prune_log,
    &customer_read_reminder,
    &login_find_user,
    &login_find_proof,
};
const size_t customers_statement_count = COUNT_OF(customers_statements);
