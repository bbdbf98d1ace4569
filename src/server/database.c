#include "server/database.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "billing/billing.h"
#include "calls/calls.h"
#include "console/console.h"
#include "credentials/access_keys.h"
#include "customers/customers.h"
#include "customers/expiry.h"
#include "customers/import.h"
#include "customers/members.h"
#include "customers/removed_users.h"
#include "erasure/audit_journal.h"
#include "erasure/audit_receipts.h"
#include "erasure/cascade.h"
#include "erasure/journal_compare.h"
#include "erasure/prove.h"
#include "erasure/replay.h"
#include "erasure/storage.h"
#include "events/outbox.h"
#include "gate/authenticate.h"
#include "gate/gate_ended.h"
#include "gate/sessions.h"
#include "limits/store.h"
#include "pg/arrays.h"
#include "recovery/audit_verify.h"
#include "recovery/cleanup.h"
#include "recovery/probe.h"
#include "sandbox/clock.h"
#include "work/leader.h"

static const struct statement claim_key = {
    .name = "installation_claim_key",
    .sql = "UPDATE reclaim.installation SET key_fingerprint = $1 WHERE key_fingerprint IS NULL",
    .params = 1,
    .columns = "",
};

static const struct statement read_key = {
    .name = "installation_read_key",
    .sql = "SELECT key_fingerprint FROM reclaim.installation",
    .params = 0,
    .columns = "key_fingerprint:text",
};

static const struct statement note_demo = {
    .name = "installation_note_demo",
    .sql = "UPDATE reclaim.installation SET demo = $1::bool WHERE demo <> $1::bool",
    .params = 1,
    .columns = "",
};

static const struct statement read_demo = {
    .name = "installation_read_demo",
    .sql = "SELECT demo FROM reclaim.installation",
    .params = 0,
    .columns = "demo:bool",
};

/* Only what differs is written: every start and every reload comes here. */
static const struct statement note_settings = {
    .name = "installation_note_settings",
    .sql = "UPDATE reclaim.installation SET grace = $1::int8 * interval '1 millisecond', mails = $2::bool,"
           " freeze_limit = $3::int4, cooldown = $4::int8 * interval '1 millisecond'"
           " WHERE (grace, mails, freeze_limit, cooldown) IS DISTINCT FROM ($1::int8 * interval '1 millisecond',"
           " $2::bool, $3::int4, $4::int8 * interval '1 millisecond')",
    .params = 4,
    .columns = "",
};

static const struct statement read_customers = {
    .name = "installation_read_customers",
    .sql = "SELECT customers = 'users' AS users FROM reclaim.installation",
    .params = 0,
    .columns = "users:bool",
};

static const struct statement note_customers = {
    .name = "installation_note_customers",
    .sql = "UPDATE reclaim.installation SET customers = CASE WHEN $1::bool THEN 'users' ELSE 'table' END",
    .params = 1,
    .columns = "",
};

static const struct statement watch_users = {
    .name = "users_watch",
    .sql = "SELECT reclaim.users_watch() AS lack",
    .params = 0,
    .columns = "lack:text",
};

static const struct statement note_ownership = {
    .name = "installation_note_ownership",
    .sql = "UPDATE reclaim.installation SET ownership = $1::text[] WHERE ownership <> $1::text[]",
    .params = 1,
    .columns = "",
};

static const struct statement make_partitions = {
    .name = "installation_make_partitions",
    .sql = "SELECT reclaim.make_audit_partitions() AS made",
    .params = 0,
    .columns = "made:int4",
};

/* For one ownership column, $5 with a condition whose words are $4: whether table and column exist, this role may read it
 * and what the condition names, it may lock rows if need be, an index starts with it, and it refers to auth.users. */
enum {
    OWNERSHIP_HAS_TABLE,
    OWNERSHIP_HAS_COLUMN,
    OWNERSHIP_MAY_READ,
    OWNERSHIP_MAY_LOCK,
    OWNERSHIP_HAS_INDEX,
    OWNERSHIP_HAS_KEY,
    OWNERSHIP_MEND,
    OWNERSHIP_MEND_LOCK,
};
static const struct statement read_ownership = {
    .name = "ownership_read",
    .sql = "SELECT (c.oid IS NOT NULL) AS has_table, (a.attnum IS NOT NULL) AS has_column,"
           " coalesce(used.readable AND pg_catalog.has_schema_privilege(c.schema, 'USAGE'), false) AS may_read,"
           " coalesce(NOT $5::bool OR pg_catalog.has_any_column_privilege(c.oid, 'UPDATE'), true) AS may_lock,"
           " EXISTS (SELECT 1 FROM pg_catalog.pg_index i WHERE i.indrelid = c.oid AND i.indisvalid"
           "   AND i.indpred IS NULL AND i.indkey[0] = a.attnum) AS has_index,"
           " EXISTS (SELECT 1 FROM pg_catalog.pg_constraint k WHERE k.conrelid = c.oid AND k.contype = 'f'"
           "   AND k.confrelid = " USERS_OID " AND k.conkey[1] = a.attnum"
           "   AND cardinality(k.conkey) = 1) AS has_key,"
           " CASE WHEN pg_catalog.has_schema_privilege(c.schema, 'USAGE') THEN '' ELSE"
           "   pg_catalog.format('GRANT USAGE ON SCHEMA %I TO %I; ', $1::text, current_user) END ||"
           "   pg_catalog.format('GRANT SELECT (%s) ON %I.%I TO %I', used.names, $1::text, $2::text, current_user) AS "
           "mend,"
           " pg_catalog.format('GRANT UPDATE (%I) ON %I.%I TO %I', $3::text, $1::text, $2::text, current_user) AS "
           "mend_lock"
           " FROM (SELECT max(r.oid) AS oid, max(n.oid) AS schema FROM pg_catalog.pg_namespace n"
           "   LEFT JOIN pg_catalog.pg_class r ON r.relnamespace = n.oid AND r.relname = $2::text"
           "   WHERE n.nspname = $1::text) c"
           " LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = $3::text AND NOT a.attisdropped"
           " CROSS JOIN LATERAL (SELECT bool_and(pg_catalog.has_column_privilege(r.attrelid, r.attnum, 'SELECT')) AS "
           "readable,"
           "   pg_catalog.string_agg(pg_catalog.quote_ident(r.attname), ', ' ORDER BY r.attname <> $3::text, r.attnum) "
           "AS names"
           "   FROM pg_catalog.pg_attribute r WHERE r.attrelid = c.oid AND r.attnum > 0 AND NOT r.attisdropped"
           "   AND (r.attname = $3::text OR r.attname = ANY ($4::text[]))) used",
    .params = 5,
    .columns = "has_table:bool has_column:bool may_read:bool may_lock:bool has_index:bool has_key:bool mend:text "
               "mend_lock:text",
};

/* The tables of which row security hides rows, or keeps this role from changing them: $1 tables, $2 the command that is used
 * on each; and Reclaim's own. */
static const struct statement find_hidden_rows = {
    .name = "hidden_rows_find",
    .sql = "SELECT pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) AS name,"
           " reclaim.row_security_mend(t.name, t.command) AS mend"
           " FROM (SELECT DISTINCT ON (name) pg_catalog.to_regclass(name) AS name, command FROM ("
           "   SELECT name, command, 1 AS place FROM unnest($1::text[], $2::text[]) AS used (name, command)"
           "   UNION ALL SELECT 'reclaim.' || pg_catalog.quote_ident(o.relname), 'ALL', 2 FROM pg_catalog.pg_class o"
           "   WHERE o.relnamespace = pg_catalog.to_regnamespace('reclaim') AND o.relkind IN ('r', 'p')"
           "   AND o.relrowsecurity AND NOT o.relispartition) a ORDER BY name, place) t"
           " JOIN pg_catalog.pg_class c ON c.oid = t.name JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
           " WHERE NOT reclaim.sees_all_rows(t.name, t.command) ORDER BY 1",
    .params = 2,
    .columns = "name:text mend:text",
};

static const struct statement *const statements[] = {
    &probe_find_user,  &probe_find_users, &probe_sees_users, &probe_limit_company_query,
    &claim_key,        &read_key,         &note_demo,        &read_demo,
    &note_settings,    &note_ownership,   &make_partitions,  &read_ownership,
    &find_hidden_rows, &leader_try,       &leader_expire,    &leader_ping,
    &session_read,     &read_customers,   &note_customers,   &watch_users};

static int64_t deadline(void)
{
    return clock_ns() + DATABASE_DEADLINE_NS;
}

enum err database_open(const struct settings *s, struct database *ret, struct why *why)
{
    struct database db = {0};
    char attached[512];
    const char *url = s->database_direct_url;
    enum err e = OK;
    if (!url) {
        e = cluster_attach(s->data_dir, attached, sizeof attached, why);
        url = attached;
        if (e == ERR_MISSING && !cluster_exists(s->data_dir))
            e = why_set(
                why, e,
                "there is no database: RECLAIM_DATABASE_URL is not set, and RECLAIM_DATA_DIR (%s) has no "
                "cluster; set the servers' URL or their data directory, or start reclaim serve, which makes one",
                s->data_dir);
        else if (e == ERR_MISSING) {
            e = cluster_start(s->data_dir, &db.cluster, why);
            url = e ? NULL : cluster_url(db.cluster);
        }
    }
    if (!e) {
        db.pg = pg_new(url, PG_PREPARE_OFF);
        e = db.pg ? pg_connect(db.pg, deadline(), why) : why_set(why, ERR_MEMORY, "no memory for a connection");
    }
    if (e) {
        database_close(&db);
        return e;
    }
    *ret = db;
    return OK;
}

void database_close(struct database *db)
{
    pg_free(db->pg);
    if (db->cluster)
        cluster_stop(db->cluster, deadline());
    *db = (struct database){0};
}

void database_cleanup(struct database *db)
{
    database_close(db);
}

enum err database_derive(const struct settings *s, const char *purpose, struct digest *ret, struct why *why)
{
    char key[SECRET_KEY_MAX + 1];
    enum err e = settings_secret_key(s, false, key, why);
    if (!e && (e = digest_derive(str_of(key), purpose, ret)))
        (void)why_set(why, e, "no key can be derived from the master key (%s)", err_name(e));
    secret_wipe(key, sizeof key);
    return e;
}

static enum err compare_key(const struct pg_call *stored, const struct digest *fingerprint, struct why *why)
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(fingerprint, hex);
    if (stored->rows == 1 && str_eq(pg_get(stored, 0, 0), str_of(hex)))
        return OK;
    return why_set(why, ERR_CONFLICT,
                   "this database was set up with another RECLAIM_SECRET_KEY; every instance needs the same one");
}

enum err database_same_key(const struct settings *s, struct pg *pg, struct why *why)
{
    struct digest fingerprint;
    struct pg_call stored = {.ask = &read_key};
    enum err e = database_derive(s, FINGERPRINT_PURPOSE, &fingerprint, why);
    if (e)
        return e;
    if ((e = pg_ask(pg, &stored, deadline())))
        return why_set(why, e, "the schema cannot be read (%s %s): run reclaim migrate", err_name(e), stored.sqlstate);
    if (stored.rows == 1 && pg_is_null(&stored, 0, 0))
        return OK; /* no server has started on this database */
    return compare_key(&stored, &fingerprint, why);
}

enum err database_claim(struct pg *pg, const struct digest *fingerprint, struct why *why)
{
    char hex[DIGEST_HEX_LEN + 1];
    digest_hex(fingerprint, hex);
    struct pg_call calls[] = {{.ask = &claim_key, .args = {pg_text(hex)}}, {.ask = &read_key}};
    enum err e = pg_trip(pg, calls, COUNT_OF(calls), deadline());
    if (e)
        return why_set(why, e, "cannot read which key this database belongs to (%s %s)", err_name(e),
                       calls[0].err ? calls[0].sqlstate : calls[1].sqlstate);
    return compare_key(&calls[1], fingerprint, why);
}

enum err database_note_demo(struct pg *pg, bool demo, struct why *why)
{
    struct pg_call call = {.ask = &note_demo, .args = {pg_text(demo ? "true" : "false")}};
    enum err e = pg_ask(pg, &call, deadline());
    return e ? why_set(why, e, "cannot note whether this is a demonstration (%s %s)", err_name(e), call.sqlstate) : OK;
}

enum err database_note_settings(struct pg *pg, int64_t grace_ms, bool mails, int64_t freeze_limit, int64_t cooldown_ms,
                                int64_t deadline_ns)
{
    struct pg_call call = {.ask = &note_settings,
                           .args = {pg_i64(grace_ms), pg_text(mails ? "true" : "false"),
                                    freeze_limit > 0 ? pg_i64(freeze_limit) : pg_null(),
                                    cooldown_ms > 0 ? pg_i64(cooldown_ms) : pg_null()}};
    return pg_ask(pg, &call, deadline_ns);
}

enum err database_users_are_customers(struct pg *pg, bool *ret, struct why *why)
{
    struct pg_call call = {.ask = &read_customers};
    enum err e = pg_ask(pg, &call, deadline());
    if (e)
        return why_set(why, e, "the schema cannot be read (%s %s): run reclaim migrate", err_name(e), call.sqlstate);
    *ret = call.rows == 1 && pg_get_bool(&call, 0, 0);
    return OK;
}

static enum err record_customers(struct pg *pg, bool users, struct why *why)
{
    struct pg_call note = {.ask = &note_customers, .args = {pg_text(users ? "true" : "false")}};
    bool was = false;
    enum err e = database_users_are_customers(pg, &was, why);
    if (e || was == users)
        return e;
    if ((e = pg_ask(pg, &note, deadline())))
        return why_set(why, e,
                       "cannot record RECLAIM_CUSTOMERS in reclaim.installation (%s %s): GRANT UPDATE (customers) ON"
                       " reclaim.installation to this role",
                       err_name(e), note.sqlstate);
    log_info("where customers come from has changed", F_STR("customers", users ? "users" : "table"));
    return OK;
}

enum err database_note_customers(struct pg *pg, bool users, struct why *why)
{
    enum err e = record_customers(pg, users, why);
    if (e || !users)
        return e;
    struct pg_call watch = {.ask = &watch_users};
    if ((e = pg_ask(pg, &watch, deadline())))
        return why_set(why, e, "cannot watch auth.users (%s %s)", err_name(e), watch.sqlstate);
    if (!pg_is_null(&watch, 0, 0))
        log_warn("users removed from auth.users are noticed late, and erased only if they have a row",
                 F_STR("mend", pg_get(&watch, 0, 0).at));
    return OK;
}

enum err database_note_ownership(struct pg *pg, const struct ownership_column *columns, size_t count, struct why *why)
{
    AUTO(buf) struct buf names = buf_new(4096);
    ownership_names(columns, count, &names);
    const char *all = array_end(&names);
    struct pg_call call = {.ask = &note_ownership, .args = {pg_text_or_null(all)}};
    enum err e = all ? pg_ask(pg, &call, deadline()) : ERR_MEMORY;
    if (e == ERR_DATABASE && strcmp(call.sqlstate, "42501") == 0) {
        log_warn(
            "the ownership tables cannot be recorded, so the defaults count for deletions: GRANT UPDATE (ownership)"
            " ON reclaim.installation to this role");
        return OK;
    }
    return e ? why_set(why, e, "cannot record the ownership tables in reclaim.installation (%s %s)", err_name(e),
                       call.sqlstate)
             : OK;
}

enum err database_make_partitions(struct pg *pg, int64_t deadline_ns)
{
    struct pg_call call = {.ask = &make_partitions};
    return pg_ask(pg, &call, deadline_ns);
}

enum err database_is_demo(struct pg *pg, bool *ret, struct why *why)
{
    struct pg_call call = {.ask = &read_demo};
    enum err e = pg_ask(pg, &call, deadline());
    if (e)
        return why_set(why, e, "the schema cannot be read (%s %s): run reclaim migrate", err_name(e), call.sqlstate);
    *ret = call.rows == 1 && pg_get_bool(&call, 0, 0);
    return OK;
}

enum err database_check_statements(struct pg *pg, const struct orphan_statements *orphans, struct why *why)
{
    const struct {
        const struct statement *const *all;
        size_t count;
    } folders[] = {
        {statements, COUNT_OF(statements)},
        {limits_statements, limits_statement_count},
        {work_statements, work_statement_count},
        {mail_statements, mail_statement_count},
        {events_statements, events_statement_count},
        {audit_statements, audit_statement_count},
        {cleanup_statements, cleanup_statement_count},
        {access_key_statements, access_key_statement_count},
        {look_up_statements, look_up_statement_count},
        {key_reader_statements, key_reader_statement_count},
        {frozen_customers_statements, frozen_customers_statement_count},
        {gate_ended_statements, gate_ended_statement_count},
        {customers_statements, customers_statement_count},
        {member_statements, member_statement_count},
        {import_statements, import_statement_count},
        {removed_users_statements, removed_users_statement_count},
        {sessions_statements, sessions_statement_count},
        {sign_in_statements, sign_in_statement_count},
        {billing_statements, billing_statement_count},
        {billing_list_statements, billing_list_statement_count},
        {subscription_statements, subscription_statement_count},
        {expiry_statements, expiry_statement_count},
        {cooldown_statements, cooldown_statement_count},
        {cascade_statements, cascade_statement_count},
        {prove_statements, prove_statement_count},
        {compare_statements, compare_statement_count},
        {keeper_statements, keeper_statement_count},
        {journal_lines_statements, journal_lines_statement_count},
        {replay_statements, replay_statement_count},
        {sealed_log_statements, sealed_log_statement_count},
        {verify_log_statements, verify_log_statement_count},
        {audit_journal_statements, audit_journal_statement_count},
        {audit_receipts_statements, audit_receipts_statement_count},
        {audit_verify_statements, audit_verify_statement_count},
        {storage_statements, storage_statement_count},
        {console_statements, console_statement_count},
        {calls_statements, calls_statement_count},
        {sandbox_statements, sandbox_statement_count},
    };
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        enum err e = pg_check_statements(pg, folders[i].all, folders[i].count, why);
        if (e)
            return e;
    }
    const struct statement *const owned[] = {&orphans->candidates,   &orphans->blocked, &orphans->has_company,
                                             &orphans->have_company, &orphans->list,    &orphans->keys,
                                             &orphans->page,         &orphans->report};
    struct why drift;
    if (pg_check_statements(pg, owned, COUNT_OF(owned), &drift))
        log_warn("ownership tables unusable: check-email-status answers null", F_STR("why", drift.text));
    return OK;
}

static enum err read_column(struct pg *pg, const struct ownership_column *c, struct pg_call *ret, struct why *why)
{
    AUTO(buf) struct buf words = buf_new((size_t)32 << 10);
    ownership_words(c, &words);
    if (!array_end(&words))
        return why_set(why, ERR_MEMORY, "no memory for a condition of RECLAIM_OWNERSHIP");
    *ret = (struct pg_call){.ask = &read_ownership,
                            .args = {pg_text(c->schema), pg_text(c->table), pg_text(c->column), pg_text(words.at),
                                     pg_text(c->condition ? "true" : "false")}};
    enum err e = pg_ask(pg, ret, deadline());
    return e ? why_set(why, e, "the ownership tables cannot be checked (%s %s)", err_name(e), ret->sqlstate) : OK;
}

/* PostgreSQL prepares it by itself, so that a name which the table lacks is not taken for one of auth.users. */
static enum err check_condition(struct pg *pg, const struct ownership_column *c, struct why *why)
{
    AUTO(buf) struct buf sql = buf_new((size_t)16 << 10);
    if (!c->condition)
        return OK;
    buf_addf(&sql,
             "PREPARE reclaim_condition AS SELECT 1 FROM \"%s\".\"%s\" o WHERE true AND (%s);"
             " DEALLOCATE reclaim_condition",
             c->schema, c->table, c->condition);
    struct why said = {""};
    enum err e = sql.failed ? ERR_MEMORY : pg_script(pg, sql.at, deadline(), &said);
    return e ? why_set(why, e == ERR_DATABASE ? ERR_INPUT : e,
                       "RECLAIM_OWNERSHIP: \"%s\" is not a condition on columns of %s.%s, which are named without the "
                       "table: %s",
                       c->condition, c->schema, c->table, said.text)
             : OK;
}

enum err database_guard_ownership(struct pg *pg, const struct ownership_column *columns, size_t count,
                                  struct orphan_statements *orphans, struct why *why)
{
    bool without_key[OWNERSHIP_MAX] = {false};
    for (size_t i = 0; i < count; i++) {
        struct pg_call call;
        enum err e = read_column(pg, &columns[i], &call, why);
        if (e)
            return e;
        without_key[i] = pg_get_bool(&call, 0, OWNERSHIP_HAS_COLUMN) && !pg_get_bool(&call, 0, OWNERSHIP_HAS_KEY);
        if (!pg_get_bool(&call, 0, OWNERSHIP_MAY_LOCK))
            log_warn("the clean-up answers 006: this role may not lock rows of an ownership table with a condition",
                     F_STR("mend", pg_get(&call, 0, OWNERSHIP_MEND_LOCK).at));
        if (pg_get_bool(&call, 0, OWNERSHIP_HAS_COLUMN) && (e = check_condition(pg, &columns[i], why)))
            return e;
    }
    enum err e = orphan_statements_lock(orphans, columns, without_key, count);
    return e ? why_set(why, e, "no memory for the statements") : OK;
}

enum err database_check_ownership(struct pg *pg, const struct ownership_column *columns, size_t count,
                                  finding_handler *each, void *context, struct why *why)
{
    static const struct finding lacks[] = {
        /* in the order of the statement's columns */
        {SEVERITY_FAILURE, "table %1$s.%2$s does not exist; correct RECLAIM_OWNERSHIP or create it (column %3$s)"},
        {SEVERITY_FAILURE, "table %1$s.%2$s has no column %3$s; correct RECLAIM_OWNERSHIP"},
        {SEVERITY_FAILURE, "this role may not read %1$s.%2$s: %4$s"},
        {SEVERITY_FAILURE, "this role may not lock rows of %1$s.%2$s, which has a condition in RECLAIM_OWNERSHIP, so "
                           "the clean-up answers "
                           "006: %5$s"},
        {SEVERITY_WARNING,
         "table %1$s.%2$s has no index on %3$s, so look-ups will be slow: CREATE INDEX CONCURRENTLY ON "
         "%1$s.%2$s (%3$s)"},
        {SEVERITY_WARNING,
         "%1$s.%2$s(%3$s) has no foreign key to auth.users, so deletions have to lock the whole table: "
         "ALTER TABLE %1$s.%2$s ADD FOREIGN KEY (%3$s) REFERENCES auth.users (id)"},
    };
    for (size_t i = 0; i < count; i++) {
        const struct ownership_column *c = &columns[i];
        struct pg_call call;
        enum err e = read_column(pg, c, &call, why);
        if (e)
            return e;
        bool usable = true;
        for (int lack = 0; usable && lack < (int)COUNT_OF(lacks); lack++) {
            if (pg_get_bool(&call, 0, lack))
                continue;
            char sentence[1024];
            snprintf(sentence, sizeof sentence, lacks[lack].sentence, c->schema, c->table, c->column,
                     pg_get(&call, 0, OWNERSHIP_MEND).at, pg_get(&call, 0, OWNERSHIP_MEND_LOCK).at);
            each(context, &(struct finding){lacks[lack].severity, sentence});
            usable = lacks[lack].severity != SEVERITY_FAILURE;
        }
        struct why condition = {""};
        e = usable ? check_condition(pg, c, &condition) : OK;
        if (e == ERR_INPUT)
            each(context, &(struct finding){SEVERITY_FAILURE, condition.text});
        else if (e)
            return why_set(why, e, "%s", condition.text);
    }
    return OK;
}

enum err database_check_keys(struct pg *pg, const struct orphan_statements *orphans, finding_handler *each,
                             void *context, struct why *why)
{
    struct pg_call call = {.ask = &orphans->keys};
    enum err e = pg_ask(pg, &call, deadline());
    if (e)
        return why_set(
            why, e,
            "which foreign keys keep users from being deleted cannot be read (%s %s), so the clean-up answers "
            "006: GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA reclaim to this role",
            err_name(e), call.sqlstate);
    for (int i = 0; i < call.rows; i++)
        each(context, &(struct finding){SEVERITY_WARNING, pg_get(&call, i, 0).at});
    return OK;
}

enum err database_check_row_security(struct pg *pg, const struct ownership_column *columns, size_t count,
                                     finding_handler *each, void *context, struct why *why)
{
    AUTO(buf) struct buf names = buf_new(8192);
    AUTO(buf) struct buf commands = buf_new(1024);
    static const struct {
        struct str name, command;
    } always[] = {{STR("auth.users"), STR("UPDATE DELETE")},
                  {STR("reclaim.customer_customers"), STR("UPDATE")},
                  {STR("reclaim.customer_members"), STR("DELETE")},
                  {STR("reclaim.billing_accounts"), STR("UPDATE")}};
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        array_add_plain(&names, always[i].name);
        array_add_plain(&commands, always[i].command);
    }
    for (size_t i = 0; i < count; i++) {
        buf_addf(&names, ",\"\\\"%s\\\".\\\"%s\\\"\"", columns[i].schema, columns[i].table);
        buf_addz(&commands, columns[i].condition ? ",UPDATE" : ",SELECT"); /* to lock its rows */
    }
    if (!array_end(&names) || !array_end(&commands))
        return why_set(why, ERR_MEMORY, "no memory for the names of the ownership tables");
    struct pg_call call = {.ask = &find_hidden_rows, .args = {pg_text(names.at), pg_text(commands.at)}};
    enum err e = pg_ask(pg, &call, deadline());
    if (e && (strcmp(call.sqlstate, "3F000") == 0 || strcmp(call.sqlstate, "42883") == 0))
        return why_set(why, ERR_MISSING, "the schema is missing or not up to date: run reclaim migrate");
    if (e)
        return why_set(
            why, e,
            "whether row security hides rows cannot be asked (%s %s): GRANT USAGE ON SCHEMA reclaim, EXECUTE "
            "ON ALL FUNCTIONS IN SCHEMA reclaim to this role",
            err_name(e), call.sqlstate);
    for (int i = 0; i < call.rows; i++) {
        char sentence[512];
        snprintf(sentence, sizeof sentence,
                 "row-level security hides rows of %s from this role, or keeps it from changing them: %s",
                 pg_get(&call, i, 0).at, pg_get(&call, i, 1).at);
        each(context, &(struct finding){SEVERITY_FAILURE, sentence});
    }
    return OK;
}

static void log_finding(void *context, const struct finding *finding)
{
    (void)context;
    log_warn("the database is not as it should be", F_STR("why", finding->sentence));
}

void database_warn_of_hidden_rows(struct pg *pg, const struct ownership_column *columns, size_t count)
{
    struct why why = {""};
    if (database_check_row_security(pg, columns, count, log_finding, NULL, &why))
        log_finding(NULL, &(struct finding){SEVERITY_WARNING, why.text});
}
