#include "database.h"

#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pg/migrate.h"

#define SOON (clock_ns() + 60 * NS_PER_S)

static char url[512], name[64];

static struct pg *connected(const char *to)
{
    struct pg *pg = pg_new(to, PG_PREPARE_OFF);
    struct why why = {""};
    if (!pg || pg_connect(pg, SOON, &why))
        fail_msg("no database: %s", why.text);
    return pg;
}

static const char *server_url(void)
{
    const char *given = getenv("RECLAIM_TEST_DATABASE_URL");
    if (!given)
        fail_msg("RECLAIM_TEST_DATABASE_URL is not set: run this under tools/with-postgres");
    return given;
}

static void run_on(const char *to, const char *script)
{
    AUTO(pg) struct pg *pg = connected(to);
    struct why why = {""};
    if (pg_script(pg, script, SOON, &why))
        fail_msg("%s: %s", script, why.text);
}

const char *database_make(const char *prefix)
{
    char script[128];
    const char *server = server_url();
    snprintf(name, sizeof name, "%s_%d", prefix, (int)getpid());
    snprintf(script, sizeof script, "CREATE DATABASE %s", name);
    run_on(server, script);
    snprintf(url, sizeof url, "%s%cdbname=%s", server, strchr(server, '?') ? '&' : '?', name);

    AUTO(pg) struct pg *pg = connected(url);
    const struct schema *schema;
    struct migrate_report report;
    struct why why = {""};
    if (pg_script(pg, "CREATE SCHEMA IF NOT EXISTS reclaim", SOON, &why) || migrations_embedded(&schema, &why) ||
        migrate_up(pg, schema, SOON, &report, &why))
        fail_msg("no schema: %s", why.text);
    return url;
}

void database_drop(void)
{
    char script[128];
    snprintf(script, sizeof script, "DROP DATABASE %s WITH (FORCE)", name);
    run_on(server_url(), script);
}

void database_use(const char *made)
{
    snprintf(url, sizeof url, "%s", made);
}

const char *database_url(void)
{
    return url;
}

void database_run(const char *script)
{
    run_on(url, script);
}

int64_t database_number(const char *sql)
{
    AUTO(pg) struct pg *pg = connected(url);
    return database_number_by(pg, sql);
}

int64_t database_number_by(struct pg *pg, const char *sql)
{
    const struct statement ask = {"ask", sql, 0, ""};
    struct pg_call call = {.ask = &ask};
    if (pg_ask(pg, &call, SOON) || call.rows != 1)
        fail_msg("%s: %s", sql, call.sqlstate);
    return pg_get_i64(&call, 0, 0);
}

void database_await(const char *sql, int64_t wanted)
{
    int64_t end_ns = SOON, seen;
    while ((seen = database_number(sql)) != wanted) {
        if (clock_ns() > end_ns)
            fail_msg("%s: %lld, never %lld", sql, (long long)seen, (long long)wanted);
        (void)poll(NULL, 0, 20);
    }
}

void database_check(const struct statement *const *statements, size_t count)
{
    AUTO(pg) struct pg *pg = connected(url);
    struct why why = {""};
    if (pg_check_statements(pg, statements, count, &why))
        fail_msg("%s", why.text);
}

struct pool *database_pool(int connections)
{
    struct pool_config config = {
        .url = url, .prepare = PG_PREPARE_ON, .connections = connections, .queue_capacity = 16384};
    struct why why = {""};
    struct pool *pool = pool_start(&config, &why);
    if (!pool)
        fail_msg("no pool: %s", why.text);
    return pool;
}
