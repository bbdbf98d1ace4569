#include "migrate_scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server.h"

int64_t soon(void)
{
    return clock_ns() + 60 * NS_PER_S;
}

void admin(const char *format, ...)
{
    char sql[1024];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    struct pg *pg = must_connect(shared_url(), PG_PREPARE_OFF);
    must_run(pg, sql);
    pg_free(pg);
}

int scene_begin(void **state)
{
    static int number;
    struct scene *s = calloc(1, sizeof *s);
    if (!s)
        return -1;
    (void)snprintf(s->name, sizeof s->name, "migrate_%d_%d", (int)getpid(), ++number);
    admin("CREATE ROLE %s LOGIN", s->name);
    admin("CREATE DATABASE %s OWNER %s", s->name, s->name);
    (void)snprintf(s->url, sizeof s->url, "%s&dbname=%s&user=%s", shared_url(), s->name, s->name);
    s->pg = must_connect(s->url, PG_PREPARE_AUTO);
    *state = s;
    return 0;
}

int scene_end(void **state)
{
    struct scene *s = *state;
    pg_free(s->pg);
    admin("DROP DATABASE %s WITH (FORCE)", s->name);
    admin("DROP ROLE %s", s->name);
    free(s);
    return 0;
}

void scene_again(struct scene *s)
{
    pg_free(s->pg);
    s->pg = must_connect(s->url, PG_PREPARE_AUTO);
}

void expect(const struct scene *s, const char *sql, const char *expected)
{
    struct pg *pg = must_connect(s->url, PG_PREPARE_OFF);
    struct statement ask = {"expect", sql, 0, ""};
    struct pg_call call = {.ask = &ask};
    if (pg_ask(pg, &call, soon()))
        fail_msg("SQLSTATE %s: %s", call.sqlstate, sql);
    struct str got = pg_get(&call, 0, 0);
    assert_string_equal(got.at ? got.at : "(null)", expected);
    pg_free(pg);
}

struct migrate_report must_go_up(struct pg *pg, const struct schema *schema)
{
    struct why why = {""};
    struct migrate_report report = {-1, -1, -1, -1};
    enum err e = migrate_up(pg, schema, soon(), &report, &why);
    if (e)
        fail_msg("%s: %s", err_name(e), why.text);
    return report;
}

struct migrate_report must_go_down(struct pg *pg, const struct schema *schema, int steps)
{
    struct why why = {""};
    struct migrate_report report = {-1, -1, -1, -1};
    enum err e = migrate_down(pg, schema, steps, soon(), &report, &why);
    if (e)
        fail_msg("%s: %s", err_name(e), why.text);
    return report;
}

struct migrate_report must_up(struct pg *pg, const struct migration *all, size_t count)
{
    return must_go_up(pg, STEPS(all, count));
}

struct migrate_report must_down(struct pg *pg, const struct migration *all, size_t count, int steps)
{
    return must_go_down(pg, STEPS(all, count), steps);
}
