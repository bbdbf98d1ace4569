/* Checking statements against the server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server.h"

static struct pg *pg;

static int set_up(void **state)
{
    (void)state;
    pg = must_connect(shared_url(), PG_PREPARE_AUTO);
    must_run(pg, "CREATE TEMPORARY TABLE kinds (a bool, b int2, c int4, d int8, e text, f varchar(9), g uuid,"
                 " h timestamptz, i bytea, j jsonb, k json, l float8, m name, n text[])");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pg_free(pg);
    return 0;
}

static const struct statement right = {"right", "SELECT * FROM kinds WHERE d = $1 OR e = $2", 2,
                                       "a:bool b:int2 c:int4 d:int8 e:text f:varchar g:uuid h:timestamptz i:bytea "
                                       "j:jsonb k:json l:float8 m:name n:text[]"};
static const struct statement silent = {"silent", "UPDATE kinds SET a = true WHERE e = $1", 1, ""};

static void check(const struct statement *ask, enum err want, const char *want_why)
{
    struct why why = {""};
    const struct statement *all[] = {&right, &silent, ask};
    assert_int_equal(pg_check_statements(pg, all, COUNT_OF(all), &why), want);
    assert_string_equal(why.text, want_why);
}

static void statements_as_declared_pass(void **state)
{
    (void)state;
    static const struct statement call = {"call", "SELECT pg_notify($1, $2)", 2, "pg_notify:void"};
    static const struct statement returning = {"returning", "DELETE FROM kinds RETURNING d", 0, "d:int8"};
    check(&call, OK, "");
    check(&returning, OK, "");
}

static void each_difference_is_told_by_name(void **state)
{
    (void)state;
    struct statement s = {"s", "SELECT e FROM kinds WHERE d = $1", 2, "e:text"};
    check(&s, ERR_INPUT, "s declares 2 parameters, the database has 1");
    s.params = 1;
    s.columns = "f:text";
    check(&s, ERR_INPUT, "s declares column 1 as f, the database has e");
    s.columns = "e:int8";
    check(&s, ERR_INPUT, "s declares e as int8, the database has text (type 25)");
    s.columns = "e:txt";
    check(&s, ERR_INPUT, "s declares e as txt, the database has text (type 25)");
    s.columns = "e";
    check(&s, ERR_INPUT, "s declares e as , the database has text (type 25)");
    s.columns = "";
    check(&s, ERR_INPUT, "s declares 0 columns, the database has 1");
    s.columns = "e:text d:int8";
    check(&s, ERR_INPUT, "s declares 2 columns, the database has 1");
}

static void what_cannot_be_prepared_is_told_and_the_connection_goes_on(void **state)
{
    (void)state;
    static const struct statement missing = {"missing", "SELECT 1 AS one FROM no_such_table", 0, "one:int4"};
    static const struct statement wrong = {"wrong", "SELEKT 1", 0, ""};
    check(&missing, ERR_DATABASE, "missing cannot be prepared: database, SQLSTATE 42P01");
    check(&wrong, ERR_DATABASE, "wrong cannot be prepared: database, SQLSTATE 42601");
    check(&silent, OK, "");
}

static void names_must_be_usable_and_differ(void **state)
{
    (void)state;
    static const struct statement twin = {"silent", "SELECT 1 AS one", 0, "one:int4"};
    static const struct statement quoted = {"a\"b", "SELECT 1 AS one", 0, "one:int4"};
    static const struct statement wide = {"wide", "SELECT 1 AS one", PG_ARGS_MAX + 1, "one:int4"};
    check(&twin, ERR_INPUT, "two statements are called silent");
    check(&quoted, ERR_INPUT, "\"a\"b\" is no name for a statement");
    check(&wide, ERR_INPUT, "wide has more than 16 parameters");
    static char longest[65];
    memset(longest, 'x', 64);
    struct statement too_long = {longest, "SELECT 1 AS one", 0, "one:int4"};
    struct why why;
    const struct statement *all[] = {&too_long};
    assert_int_equal(pg_check_statements(pg, all, 1, &why), ERR_INPUT);
    longest[63] = '\0';
    assert_int_equal(pg_check_statements(pg, all, 1, &why), OK);
}

static void without_a_connection_nothing_is_checked(void **state)
{
    (void)state;
    pg_disconnect(pg);
    check(&silent, ERR_CLOSED, "there is no connection to the database");
}

static void a_cut_connection_is_told(void **state)
{
    (void)state;
    static const struct statement whoami = {"whoami", "SELECT pg_backend_pid()::int8 AS pid", 0, "pid:int8"};
    struct pg_call call = {.ask = &whoami};
    assert_int_equal(pg_ask(pg, &call, clock_ns() + 60 * NS_PER_S), OK);
    char cut[128];
    (void)snprintf(cut, sizeof cut, "SELECT pg_terminate_backend(%lld, 60000)::int::int8",
                   (long long)pg_get_i64(&call, 0, 0));
    assert_int_equal(number_from(shared_url(), cut), 1);
    struct why why;
    const struct statement *all[] = {&right};
    assert_int_equal(pg_check_statements(pg, all, 1, &why), ERR_CLOSED);
    assert_false(pg_is_up(pg));
}

static void statements_are_checked_through_a_pooler(void **state)
{
    (void)state;
    struct pooler *pooler = pooler_start(shared_url());
    struct pg *through = must_connect(pooler_url(pooler), PG_PREPARE_AUTO);
    static const struct statement one = {"one", "SELECT $1::int4 AS one", 1, "one:int4"};
    const struct statement *all[] = {&one, &one};
    struct why why = {""};
    assert_int_equal(pg_check_statements(through, all, 2, &why), OK);
    pg_free(through);
    pooler_free(pooler);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(statements_as_declared_pass),
        TEST(each_difference_is_told_by_name),
        TEST(what_cannot_be_prepared_is_told_and_the_connection_goes_on),
        TEST(names_must_be_usable_and_differ),
        TEST(without_a_connection_nothing_is_checked),
        TEST(a_cut_connection_is_told),
        TEST(statements_are_checked_through_a_pooler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
