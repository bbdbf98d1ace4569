/* `reclaim doctor`: checks everything that Reclaim needs and says what to do about what is missing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "calls/switch.h"
#include "calls/switches.h"
#include "cli/columns.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/doctor_adoption.h"
#include "cli/doctor_customers.h"
#include "cli/doctor_journal.h"
#include "cli/doctor_role.h"
#include "cli/doctor_supabase.h"
#include "cli/doctor_tokens.h"
#include "erasure/cascade.h"
#include "events/broker.h"
#include "pg/migrate.h"
#include "sandbox/clock.h"
#include "server/database.h"

#define CLOCKS_DIFFER_MOST_MS 5000

struct examination {
    struct report *report;
    bool is_table; /* for people: each finding is printed at once, since some checks wait for a server */
    bool is_brief; /* only what is wrong */
    int failures, warnings;
    enum err err; /* of the output */
    struct why *why;
};

static const struct report_column columns[] = {{.name = "severity", .width = 4}, {.name = "finding"}};
static const struct report_shape findings_shape = {columns, COUNT_OF(columns), false, "", NULL};

static void note(void *context, const struct finding *finding)
{
    static const char *const names[] = {[SEVERITY_OK] = "ok", [SEVERITY_WARNING] = "warn", [SEVERITY_FAILURE] = "FAIL"};
    struct examination *x = context;
    x->failures += finding->severity == SEVERITY_FAILURE;
    x->warnings += finding->severity == SEVERITY_WARNING;
    if (x->is_brief && finding->severity == SEVERITY_OK)
        return;
    report_text(x->report, str_of(names[finding->severity]));
    report_text(x->report, str_of(finding->sentence));
    if (x->is_table && !x->err)
        x->err = report_flush(x->report, x->why);
}

static void passed(struct examination *x, const char *what, const char *detail)
{
    char sentence[1280];
    (void)snprintf(sentence, sizeof sentence, "%s%s%s", what, detail ? ": " : "", detail ? detail : "");
    note(x, &(struct finding){SEVERITY_OK, sentence});
}

static void warn(struct examination *x, const char *sentence)
{
    note(x, &(struct finding){SEVERITY_WARNING, sentence});
}

static void fault(struct examination *x, const char *sentence)
{
    note(x, &(struct finding){SEVERITY_FAILURE, sentence});
}

static const struct statement server_check = {
    .name = "doctor_server",
    .sql = "SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int8 AS number,"
           " current_setting('max_connections')::int8 AS connections,"
           " (extract(epoch FROM clock_timestamp()) * 1000)::int8 AS wall_ms,"
           " current_setting('fsync') AS fsync, current_setting('synchronous_commit') AS synchronous_commit,"
           " pg_catalog.pg_is_in_recovery() AS standby",
    .params = 0,
    .columns = "version:text number:int8 connections:int8 wall_ms:int8 fsync:text synchronous_commit:text standby:bool",
};

static void check_clocks(struct examination *x, int64_t ahead_ms)
{
    char sentence[200];
    if (llabs(ahead_ms) <= CLOCKS_DIFFER_MOST_MS)
        return;
    (void)snprintf(
        sentence, sizeof sentence,
        "the clock of the database's machine is %lld seconds %s this one's: run NTP on both; codes and tokens "
        "expire by it, and from 5 minutes on no account expires",
        llabs(ahead_ms) / 1000, ahead_ms > 0 ? "ahead of" : "behind");
    warn(x, sentence);
}

static void check_server(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct pg_call call = {.ask = &server_check};
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS)) {
        fault(x, "the version and the settings of the server cannot be read");
        return;
    }
    passed(x, "database", pg_get(&call, 0, 0).at);
    if (pg_get_i64(&call, 0, 1) < 140000)
        fault(x, "PostgreSQL is older than 14: upgrade it");
    if (pg_get_i64(&call, 0, 2) < s->database_connections + 5)
        warn(x, "max_connections of the server is too small for RECLAIM_DATABASE_CONNECTIONS: raise the one or lower "
                "the other");
    check_clocks(x, pg_get_i64(&call, 0, 3) - clock_wall_us() / 1000);
    if (!str_eq(pg_get(&call, 0, 4), STR("on")) || str_eq(pg_get(&call, 0, 5), STR("off")))
        warn(x, "fsync or synchronous_commit is off: a crash may lose transactions that were acknowledged");
    if (pg_get_bool(&call, 0, 6))
        fault(x,
              "this server is a standby and takes no writes: name the primary, or all hosts, in RECLAIM_DATABASE_URL");
}

struct schema_tally {
    int pending, changed;
};

static void tally(void *context, int version, const char *name, const char *applied_at, bool changed)
{
    (void)version, (void)name;
    struct schema_tally *t = context;
    t->pending += !applied_at;
    t->changed += changed;
}

static void check_schema(struct examination *x, struct pg *pg)
{
    const struct schema *schema;
    struct why why = {""};
    struct schema_tally t = {0};
    struct set_status set;
    if (migrations_embedded(&schema, &why) ||
        migrate_status(pg, schema, clock_ns() + DATABASE_DEADLINE_NS, tally, &t, &set, &why))
        fault(x, why.text);
    else if (t.changed || set.changed)
        fault(
            x,
            "the schema was made by another build with the same numbers: run the program version the database was made "
            "with");
    else if (t.pending || set.applied < set.known)
        fault(x, "the schema is not up to date: run reclaim migrate");
    else
        passed(x, "schema", "up to date");
}

/* With another key every hash, and so every code, limit and API key, would be looked for in vain. */
static void check_key(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct why why = {""};
    enum err e = database_same_key(s, pg, &why);
    if (!e)
        passed(x, "master key", "no other has been used with this database");
    else if (e == ERR_CONFLICT || e == ERR_MISSING || e == ERR_INPUT)
        fault(x, why.text); /* what else can fail has been reported with the schema */
}

static void check_ownership(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct why why = {""};
    int before = x->failures + x->warnings;
    if (database_check_ownership(pg, s->ownership.at, s->ownership.count, note, x, &why))
        fault(x, why.text);
    else if (x->failures + x->warnings == before)
        passed(x, "ownership tables", "indexed, with foreign keys to auth.users");
}

static const struct statement lock_check = {
    .name = "doctor_lock",
    .sql =
        "SELECT 'the owner of schema reclaim may not lock rows of auth.users, so a login can be deleted while its "
        "customer"
        " is being created: GRANT USAGE ON SCHEMA auth TO ' || o || '; GRANT SELECT (id), UPDATE (id) ON auth.users TO "
        "'"
        " || o || CASE WHEN c.relrowsecurity THEN '; CREATE POLICY ' || pg_catalog.quote_ident(n.nspowner::"
        "pg_catalog.regrole || '_locks') || ' ON auth.users FOR ALL TO ' || o || ' USING (true)' ELSE '' END AS finding"
        " FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON c.oid = pg_catalog.to_regclass('auth.users')"
        " CROSS JOIN LATERAL (SELECT n.nspowner::pg_catalog.regrole::text AS o) owner"
        " WHERE n.nspname = 'reclaim' AND NOT reclaim.may_lock_users()",
    .params = 0,
    .columns = "finding:text",
};

/* Without the schema its functions are missing too, which check_schema has reported. */
static void check_row_security(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct pg_call lock = {.ask = &lock_check};
    struct why why = {""};
    int before = x->failures;
    enum err e = database_check_row_security(pg, s->ownership.at, s->ownership.count, note, x, &why);
    if (e && e != ERR_MISSING)
        fault(x, why.text);
    if (e || pg_ask(pg, &lock, clock_ns() + DATABASE_DEADLINE_NS))
        return;
    if (x->failures == before)
        passed(x, "row security", "hides nothing from this role");
    if (lock.rows > 0)
        warn(x, pg_get(&lock, 0, 0).at);
}

/* Of a sandbox only. Without the schema nothing is said: check_schema has. */
static void check_clock(struct examination *x, struct pg *pg)
{
    struct sandbox_clock clock;
    if (sandbox_read(pg, clock_ns() + DATABASE_DEADLINE_NS, &clock) || !clock.is_sandbox)
        return;
    if (clock.shift_ms > 0)
        warn(x, "this is a sandbox, and its clock is ahead of the real time: reclaim clock shows by how much");
    else
        passed(x, "clock", "can be moved: this is a sandbox");
}

static void check_statements(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct orphan_statements orphans = {0};
    struct why why = {""};
    if (orphan_statements_write(s->ownership.at, s->ownership.count, &orphans))
        fault(x, "no memory for the statements");
    else if (database_check_statements(pg, &orphans, &why))
        fault(x, why.text);
    else {
        passed(x, "statements", "agree with the schema");
        if (database_check_keys(pg, &orphans, note, x, &why))
            fault(x, why.text);
    }
    orphan_statements_free(&orphans);
}

static void check_pooler(struct examination *x, const struct pg *direct, const struct settings *s)
{
    struct why pooled = {""};
    if (pg_require_direct(direct, &pooled))
        fault(x, pooled.text);
    if (!s->database_url || strcmp(s->database_url, s->database_direct_url) == 0)
        return;
    struct why why = {""};
    AUTO(pg) struct pg *pg = pg_new(s->database_url, s->prepare);
    if (!pg || pg_connect(pg, clock_ns() + DATABASE_DEADLINE_NS, &why))
        fault(x, why.text);
    else
        passed(x, "pooler",
               pg_is_pooled(pg) ? "found; statements are sent unnamed" : "none between here and the server");
}

/* With the query for those who watch the locks from elsewhere: a 64-bit key is split over classid and objid. */
static void check_locks(struct examination *x, struct pg *pg)
{
    struct pg_call held = {.ask = &locks_look};
    char words[1200];
    if (pg_ask(pg, &held, clock_ns() + DATABASE_DEADLINE_NS)) {
        warn(x, "who holds clean-up locks cannot be read");
        return;
    }
    (void)snprintf(words, sizeof words, "%d held; to see by whom, reclaim locks or: %s", held.rows, locks_look.sql);
    passed(x, "clean-up locks", words);
}

static const struct statement dead_check = {
    .name = "doctor_dead",
    .sql = "SELECT count(*) AS dead FROM reclaim.work_items WHERE state = 'dead'",
    .params = 0,
    .columns = "dead:int8",
};

static void check_mail(struct examination *x, struct pg *pg, const struct settings *s)
{
    bool provider = s->resend_api_key || s->sendgrid_api_key || s->smtp_url;
    struct pg_call dead = {.ask = &dead_check};
    if (!provider)
        warn(x, "no mail provider is set, so no code can be sent but in a demonstration (serve --demo): set "
                "RECLAIM_MAIL_FROM and RECLAIM_RESEND_API_KEY, RECLAIM_SENDGRID_API_KEY or RECLAIM_SMTP_URL");
    else
        passed(x, "mail", "a provider is set");
    if (pg_ask(pg, &dead, clock_ns() + DATABASE_DEADLINE_NS) == OK && pg_get_i64(&dead, 0, 0) > 0)
        warn(x, "some mails could not be sent: SELECT * FROM reclaim.work_items WHERE state = 'dead' shows why");
}

static const struct statement returned_check = {
    .name = "doctor_returned",
    .sql = "SELECT count(*) AS returned FROM (SELECT 1 FROM reclaim.event_returns LIMIT 1000000) r",
    .params = 0,
    .columns = "returned:int8",
};

static void warn_of_returned(struct examination *x, int64_t count)
{
    char sentence[160];
    (void)snprintf(sentence, sizeof sentence,
                   "%lld event%s could not be delivered: reclaim events dead says why, reclaim events redrive sends "
                   "%s again",
                   (long long)count, count == 1 ? "" : "s", count == 1 ? "it" : "them");
    warn(x, sentence);
}

static void check_broker(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct why why = {""};
    struct pg_call returned = {.ask = &returned_check};
    const char *missing = NULL;
    char sentence[640];
    if (!s->amqp_url) {
        passed(x, "broker", "none set; events stay in reclaim.event_outbox");
        return;
    }
    AUTO(broker) struct broker *b = broker_new(s->amqp_url, &why);
    if (!b || broker_connect(b, &why) || broker_find_missing(b, &missing, &why)) {
        snprintf(sentence, sizeof sentence, "the broker of RECLAIM_AMQP_URL cannot be used: %s", why.text);
        fault(x, sentence);
    } else if (missing) {
        snprintf(sentence, sizeof sentence,
                 "the broker has no %s yet: a server creates it when it starts, if its user may configure it", missing);
        warn(x, sentence);
    } else {
        passed(x, "broker", "reached; exchange and queues are there");
    }
    if (pg_ask(pg, &returned, clock_ns() + DATABASE_DEADLINE_NS) == OK && pg_get_i64(&returned, 0, 0) > 0)
        warn_of_returned(x, pg_get_i64(&returned, 0, 0));
}

/* What deleting customers needs: the privilege to anonymise users that must stay, and participants without a fault. */
static const struct statement expiry_check = {
    .name = "doctor_expiry",
    .sql = "SELECT (SELECT pg_catalog.string_agg(lack, '; ') FROM (SELECT 'GRANT UPDATE (' || pg_catalog.string_agg("
           " pg_catalog.quote_ident(a.attname), ', ' ORDER BY a.attnum) || ') ON auth.users" TO_ME
           " AS lack FROM pg_catalog.pg_attribute a JOIN reclaim.personal_columns() p ON p.name = a.attname"
           " WHERE a.attrelid = to_regclass('auth.users') AND NOT has_column_privilege(a.attrelid, a.attnum, 'UPDATE')"
           " UNION ALL SELECT 'GRANT SELECT (user_id), DELETE ON ' || t.name || '" TO_ME
           " FROM reclaim.personal_tables() t WHERE NOT has_table_privilege(t.name, 'DELETE')"
           " OR NOT has_column_privilege(t.name, 'user_id', 'SELECT')"
           " UNION ALL SELECT reclaim.row_security_mend(t.name, 'DELETE') FROM reclaim.personal_tables() t) l) AS "
           "alias_lacks,"
           " (SELECT count(*) FROM reclaim.erasures WHERE completed_at IS NULL"
           " AND coalesce(reopened_at, requested_at) <"
           " (SELECT reclaim.now() - $1::int8 * interval '1 millisecond')) AS overdue",
    .params = 1,
    .columns = "alias_lacks:text overdue:int8",
};

static void check_expiry(struct examination *x, struct pg *pg, const struct settings *s)
{
    char words[4096];
    int before = x->failures + x->warnings;
    struct pg_call look = {.ask = &expiry_check, .args = {pg_i64(s->cascade_deadline_ms)}},
                   all = {.ask = &cascade_list};
    if (pg_ask(pg, &look, clock_ns() + DATABASE_DEADLINE_NS)) {
        fault(x, "what expiry needs cannot be checked: run reclaim migrate");
        return;
    }
    if (!pg_is_null(&look, 0, 0)) {
        (void)snprintf(
            words, sizeof words,
            "this role may not empty all that is personal of a user, so customers whose login others refer to "
            "cannot be deleted: %s",
            pg_get(&look, 0, 0).at);
        warn(x, words);
    }
    if (pg_get_i64(&look, 0, 1) > 0)
        warn(x, "erasures are overdue: reclaim cascade status lists them, reclaim cascade redrive tries again");
    if (pg_ask(pg, &all, clock_ns() + DATABASE_DEADLINE_NS)) {
        fault(x, "the participants of the cascade cannot be read");
        return;
    }
    for (int i = 0; i < all.rows; i++) {
        if (!pg_get_bool(&all, i, 6) || pg_is_null(&all, i, 7))
            continue;
        (void)snprintf(words, sizeof words, "participant %s: %s", pg_get(&all, i, 0).at, pg_get(&all, i, 7).at);
        fault(x, words);
    }
    if (x->failures + x->warnings == before)
        passed(x, "expiry",
               all.rows ? "every participant of the cascade can be used" : "the cascade has no participants");
}

/* Triggers that a program has switched off, or dropped with the table. */
static const struct statement layers_triggers = {
    .name = "layers_triggers",
    .sql = "SELECT coalesce(pg_catalog.string_agg(needed, ', ' ORDER BY needed), '') AS off"
           " FROM (VALUES ('customer_customers', 'customer_settle'), ('customer_customers', 'customer_settle_new'),"
           "   ('customer_customers', 'customer_note'), ('customer_customers', 'customer_note_gone'),"
           "   ('customer_customers', 'customer_note_new'), ('customer_customers', 'customer_follow'),"
           "   ('customer_customers', 'customer_keep'), ('customer_customers', 'customer_notify'),"
           "   ('billing_accounts', 'billing_settle_holds'), ('billing_accounts', 'billing_follow')) AS t (relation, "
           "needed)"
           " WHERE NOT EXISTS (SELECT FROM pg_catalog.pg_trigger g WHERE g.tgrelid = reclaim.table_home(t.relation)"
           "   AND g.tgname = t.needed AND g.tgenabled IN ('O', 'A'))",
    .params = 0,
    .columns = "off:text",
};

static const struct statement layers_disagree = {
    .name = "layers_disagree",
    .sql = "SELECT customer_id::text AS customer_id, what FROM reclaim.customer_disagreements($1::int4)",
    .params = 1,
    .columns = "customer_id:text what:text",
};

static const struct statement layers_repair = {
    .name = "layers_repair",
    .sql = "SELECT coalesce(pg_catalog.string_agg(reclaim.customer_repair(one), ' '), '') AS done"
           " FROM (SELECT reclaim.change_by('operator', NULL, NULL)) AS actor, pg_catalog.unnest($1::text[]::uuid[]) "
           "AS one",
    .params = 1,
    .columns = "done:text",
};

#define LAYERS_SHOWN 20

static void check_triggers(struct examination *x, struct pg *pg)
{
    struct pg_call call = {.ask = &layers_triggers};
    char words[1024];
    if (pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS) || pg_get(&call, 0, 0).len == 0)
        return;
    (void)snprintf(words, sizeof words,
                   "triggers are missing or disabled, so changes by other programs are not complete: %s (ALTER TABLE … "
                   "ENABLE TRIGGER, or reclaim migrate)",
                   pg_get(&call, 0, 0).at);
    fault(x, words);
}

/* Mends one customer, in a transaction of its own. */
static bool repair(struct examination *x, struct pg *pg, struct str customer_id)
{
    char one[64], words[256];
    (void)snprintf(one, sizeof one, "{%.*s}", STR_ARGS(customer_id));
    struct pg_call call = {.ask = &layers_repair, .args = {pg_text(one)}};
    enum err e = ERR_CONFLICT;
    for (int tries = 0; e == ERR_CONFLICT && tries < 5; tries++)
        e = pg_ask(pg, &call, clock_ns() + DATABASE_DEADLINE_NS);
    if (!e)
        return true;
    (void)snprintf(words, sizeof words, "customer %.*s could not be repaired (%s %s)", STR_ARGS(customer_id),
                   err_name(e), call.sqlstate);
    fault(x, words);
    return false;
}

/* Every customer whose layers disagree with its row; with --repair they are mended, until none is left or one cannot be. */
static void check_layers(struct examination *x, struct pg *pg, bool repairs)
{
    char words[1024];
    int mended = 0;
    check_triggers(x, pg);
    for (bool more = true; more;) {
        struct pg_call found = {.ask = &layers_disagree, .args = {pg_i64(LAYERS_SHOWN)}};
        if (pg_ask(pg, &found, clock_ns() + DATABASE_DEADLINE_NS)) {
            fault(x, "the layers of customers cannot be compared: run reclaim migrate");
            return;
        }
        AUTO(arena) struct arena *arena = arena_new(4096, 262144); /* a repair reuses the connection's result */
        struct str ids[LAYERS_SHOWN];
        int count = found.rows;
        for (int i = 0; i < count; i++) {
            ids[i] = arena ? arena_copy(arena, pg_get(&found, i, 0)) : (struct str){NULL, 0};
            (void)snprintf(words, sizeof words, "customer %s: %s%s", pg_get(&found, i, 0).at, pg_get(&found, i, 1).at,
                           repairs ? "" : " (reclaim doctor --repair)");
            if (!repairs)
                fault(x, words);
        }
        more = repairs && count > 0;
        for (int i = 0; more && i < count; i++) {
            more = ids[i].at && repair(x, pg, ids[i]);
            mended += more;
        }
        if (!repairs && count == LAYERS_SHOWN)
            warn(x, "there are more of these");
        if (!repairs && count > 0)
            return;
    }
    (void)snprintf(words, sizeof words,
                   mended ? "%d customers repaired" : "billing, keys and events agree with every customer", mended);
    passed(x, "layers", words);
}

static void check_switch(struct examination *x, const struct settings *s)
{
    char version[128];
    struct why why = {""};
    if (!s->switch_rpc_url)
        return;
    if (!kamailio_version(s->switch_rpc_url, clock_ns() + 5 * NS_PER_S, version, &why)) {
        passed(x, "switch", version);
        return;
    }
    (void)why_set(&why, ERR_CLOSED, "the switch of RECLAIM_SWITCH_RPC_URL hangs up no calls: %s", why.text);
    fault(x, why.text);
}

static void check_recorded_switch(struct examination *x, const char *name, const char *url)
{
    char version[128], what[80];
    struct why why = {""};
    (void)snprintf(what, sizeof what, "switch %s", name);
    if (!kamailio_version(url, clock_ns() + 5 * NS_PER_S, version, &why)) {
        passed(x, what, version);
        return;
    }
    (void)why_set(&why, ERR_CLOSED, "the %s hangs up no calls: %s (reclaim switch list)", what, why.text);
    fault(x, why.text);
}

static void check_switches(struct examination *x, struct pg *pg, const struct settings *s)
{
    struct pg_call rows = {.ask = &switches_list}, lacking = {.ask = &switch_lacking};
    enum err e = pg_ask(pg, &lacking, clock_ns() + DATABASE_DEADLINE_NS);
    bool none = !e && pg_get_bool(&lacking, 0, 0);
    if (e || pg_ask(pg, &rows, clock_ns() + DATABASE_DEADLINE_NS)) {
        fault(x, "the switches cannot be read: run reclaim migrate");
        return;
    }
    if (none && !s->switch_rpc_url)
        warn(x, "calls have SIP dialogs, and no switch is recorded: a freeze ends them in the table only, and the "
                "people go on talking; run reclaim switch add NAME URL, or set RECLAIM_SWITCH_RPC_URL");
    for (int i = 0; i < rows.rows; i++) {
        const char *name = pg_get(&rows, i, 0).at;
        bool own = strcmp(name, SWITCH_OF_SETTING) == 0 && s->switch_rpc_url;
        if (own)
            continue; /* checked with the settings */
        if (!pg_is_null(&rows, i, 5))
            check_recorded_switch(x, name, pg_get(&rows, i, 5).at);
        else
            warn(x, "the switch default is reached by instances with RECLAIM_SWITCH_RPC_URL only, which is not set "
                    "here: its calls are left to them; reclaim switch remove default when there is none");
    }
}

static void check_database(struct examination *x, struct pg *pg, const struct settings *s, bool repairs)
{
    check_server(x, pg, s);
    doctor_check_privileges(pg, note, x);
    check_schema(x, pg);
    check_clock(x, pg);
    check_key(x, pg, s);
    doctor_check_login(pg, note, x);
    check_ownership(x, pg, s);
    check_row_security(x, pg, s);
    doctor_check_search_path(pg, repairs, note, x);
    check_statements(x, pg, s);
    check_pooler(x, pg, s);
    check_locks(x, pg);
    check_mail(x, pg, s);
    check_broker(x, pg, s);
    check_expiry(x, pg, s);
    doctor_check_journal(pg, s, note, x);
    doctor_check_storage(pg, s, note, x);
    doctor_check_columns(pg, note, x);
    check_switches(x, pg, s);
    check_layers(x, pg, repairs);
    doctor_check_customers(pg, s->customers == CUSTOMERS_USERS, repairs, note, x);
    doctor_check_owners(pg, note, x);
    doctor_check_balances(pg, note, x);
}

static void check_all(struct examination *x, const char *config, bool repairs)
{
    struct why why = {""};
    AUTO(settings) struct settings *s = NULL;
    AUTO(database) struct database db = {0};
    if (settings_load(config, &s, &why)) {
        fault(x, why.text);
        return;
    }
    passed(x, "settings", NULL);
    for (size_t i = 0; i < s->warnings.count; i++)
        warn(x, s->warnings.at[i]);
    check_switch(x, s);
    doctor_check_tokens(s, note, x);
    doctor_check_hooks(s, note, x);
    if (database_open(s, &db, &why))
        fault(x, why.text);
    else
        check_database(x, db.pg, s, repairs);
}

enum err doctor_examine(const char *config, int *ret_failures, struct why *why)
{
    AUTO(report) struct report *report = report_new(&findings_shape, REPORT_TABLE);
    struct examination x = {.report = report, .is_table = true, .is_brief = true, .why = why};
    check_all(&x, config, false);
    *ret_failures = x.failures;
    return x.err;
}

/* Wrong settings and an unreachable database are findings too, so this command opens both itself. */
enum err doctor_command(struct command_context *c)
{
    AUTO(report) struct report *report = report_new(&findings_shape, c->format);
    struct examination x = {.report = report, .is_table = c->format == REPORT_TABLE, .why = &c->why};
    check_all(&x, c->config, option(c, "--repair") != NULL);
    if (!x.is_table)
        x.err = report_print(report, &c->why);
    if (x.err)
        return x.err;
    if (x.is_table)
        printf("%d failed, %d warning%s\n", x.failures, x.warnings, x.warnings == 1 ? "" : "s");
    return x.failures ? ERR_DATABASE : OK;
}
