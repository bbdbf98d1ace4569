/* Trips: every call gets its own result, also when other calls fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "server.h"

#define SOON (clock_ns() + 60 * NS_PER_S)

static const struct statement echo = {"echo", "SELECT $1::text AS said", 1, "said:text"};
static const struct statement add = {"add", "SELECT $1::int8 + $2::int8 AS sum", 2, "sum:int8"};
static const struct statement divide = {"divide", "SELECT 1 / $1::int4 AS result", 1, "result:int4"};
static const struct statement nap = {"nap", "SELECT pg_sleep($1::int8 / 1000.0)::text AS slept", 1, "slept:text"};
static const struct statement insert = {"insert", "INSERT INTO things SELECT generate_series(1, $1::int4)", 1, ""};
static const struct statement count = {"count", "SELECT count(*) AS n FROM things", 0, "n:int8"};
static const struct statement limit_next = {"limit_next", "SELECT set_config('statement_timeout', '50', true) AS t", 0,
                                            "t:text"};
static const struct statement my_pid = {"my_pid", "SELECT pg_backend_pid() AS pid", 0, "pid:int4"};

static struct pg *pg;

static int set_up(void **state)
{
    (void)state;
    pg = must_connect(shared_url(), PG_PREPARE_AUTO);
    must_run(pg, "CREATE TEMPORARY TABLE things (n int4)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    pg_free(pg);
    return 0;
}

static void each_call_gets_its_own_answer(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct pg_call calls[] = {
            {.ask = &echo,
             .args = {pg_text("gr\xC3\xBC\xC3\x9F"
                              "e")}},
            {.ask = &add, .args = {pg_i64(INT64_MIN), pg_i64(round)}},
            {.ask = &echo, .args = {pg_null()}},
            {.ask = &insert, .args = {pg_i64(7)}},
            {.ask = &echo, .args = {pg_text("")}},
        };
        assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), OK);
        assert_string_equal(pg_get(&calls[0], 0, 0).at, "gr\xC3\xBC\xC3\x9F"
                                                        "e");
        assert_true(pg_get_i64(&calls[1], 0, 0) == INT64_MIN + round);
        assert_true(pg_is_null(&calls[2], 0, 0));
        assert_null(pg_get(&calls[2], 0, 0).at);
        assert_int_equal(calls[3].rows, 7);
        assert_false(pg_is_null(&calls[4], 0, 0));
        assert_int_equal(pg_get(&calls[4], 0, 0).len, 0);
        assert_int_equal(calls[4].rows, 1);
    }
}

static void fields_that_are_not_there_are_null(void **state)
{
    (void)state;
    struct pg_call call = {.ask = &echo, .args = {pg_text("12x")}};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_true(pg_is_null(&call, 1, 0) && pg_is_null(&call, 0, 1) && pg_is_null(&call, -1, -1));
    assert_int_equal(pg_get_i64(&call, 0, 0), 0);
    assert_false(pg_get_bool(&call, 0, 0));
    struct pg_call never = {.ask = &echo};
    assert_null(pg_get(&never, 0, 0).at);
}

static void answers_before_a_failure_stay_readable_and_those_behind_are_not_reached(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        struct pg_call calls[] = {
            {.ask = &echo, .args = {pg_text("kept")}},
            {.ask = &limit_next},
            {.ask = &nap, .args = {pg_i64(600000)}},
            {.ask = &echo, .args = {pg_text("not reached")}},
        };
        assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_DATABASE);
        assert_string_equal(pg_get(&calls[0], 0, 0).at, "kept");
        assert_int_equal(calls[1].err, OK);
        assert_int_equal(calls[2].err, ERR_DATABASE);
        assert_string_equal(calls[2].sqlstate, "57014");
        assert_int_equal(calls[3].err, ERR_CLOSED);
        assert_null(calls[3].data);
        assert_true(pg_is_up(pg));
    }
}

static void a_trip_is_one_transaction(void **state)
{
    (void)state;
    struct pg_call calls[] = {{.ask = &insert, .args = {pg_i64(5)}}, {.ask = &divide, .args = {pg_i64(0)}}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_DATABASE);
    assert_string_equal(calls[1].sqlstate, "22012");
    struct pg_call after = {.ask = &count};
    assert_int_equal(pg_ask(pg, &after, SOON), OK);
    assert_int_equal(pg_get_i64(&after, 0, 0), 0);
}

static void what_fails_at_the_very_end_fails_the_trip(void **state)
{
    (void)state;
    static const struct statement twice = {"twice", "INSERT INTO once VALUES (1), (1)", 0, ""};
    must_run(pg, "CREATE TEMPORARY TABLE once (n int4 UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    for (int round = 0; round < 2; round++) {
        struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("a")}}, {.ask = &twice}};
        assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_DATABASE);
        assert_int_equal(calls[1].err, ERR_DATABASE);
        assert_string_equal(calls[1].sqlstate, "23505");
    }
}

static void a_statement_that_cannot_be_prepared_fails_alone_and_works_later(void **state)
{
    (void)state;
    static const struct statement late = {"late", "SELECT n FROM late_table", 0, "n:int4"};
    for (int round = 0; round < 2; round++) {
        struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("known")}}, {.ask = &late}};
        assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_DATABASE);
        assert_int_equal(calls[0].err, OK);
        assert_string_equal(calls[1].sqlstate, "42P01");
    }
    must_run(pg, "CREATE TEMPORARY TABLE late_table AS SELECT 4::int4 AS n");
    struct pg_call call = {.ask = &late};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_int_equal(pg_get_i64(&call, 0, 0), 4);
}

static void preparations_behind_a_failure_are_made_up_for(void **state)
{
    (void)state;
    struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("prepared, then rolled back")}},
                              {.ask = &divide, .args = {pg_i64(0)}},
                              {.ask = &add, .args = {pg_i64(1), pg_i64(2)}}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_DATABASE);
    calls[1].args[0] = pg_i64(1);
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), OK);
    assert_int_equal(pg_get_i64(&calls[2], 0, 0), 3);
}

static void a_changed_result_type_heals_at_the_second_run(void **state)
{
    (void)state;
    static const struct statement all = {"all", "SELECT * FROM things", 0, "n:int4"};
    struct pg_call call = {.ask = &all};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    must_run(pg, "ALTER TABLE things ADD COLUMN more text; INSERT INTO things VALUES (1, 'x')");
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_CONFLICT);
    assert_string_equal(call.sqlstate, "0A000");
    /* An earlier failure in the trip may prevent DEALLOCATE and PREPARE from being run. */
    struct pg_call calls[] = {{.ask = &divide, .args = {pg_i64(0)}}, {.ask = &all}};
    assert_int_equal(pg_trip(pg, calls, 2, SOON), ERR_DATABASE);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(pg_ask(pg, &call, SOON), OK);
        assert_string_equal(pg_get(&call, 0, 1).at, "x");
    }
}

static void a_changed_parameter_type_heals_too(void **state)
{
    (void)state;
    static const struct statement find = {"find", "SELECT n::text AS n FROM things WHERE n = $1", 1, "n:text"};
    struct pg_call call = {.ask = &find, .args = {pg_text("1")}};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    must_run(pg, "DROP TABLE things; CREATE TEMPORARY TABLE things (n text); INSERT INTO things VALUES ('1')");
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_DATABASE);
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_int_equal(call.rows, 1);
}

static void two_statements_of_one_name_do_not_mix(void **state)
{
    (void)state;
    static const struct statement other = {"echo", "SELECT 'other ' || $1::text AS said", 1, "said:text"};
    for (int round = 0; round < 2; round++) {
        struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("a")}},
                                  {.ask = &other, .args = {pg_text("b")}},
                                  {.ask = &echo, .args = {pg_text("c")}}};
        assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), OK);
        assert_string_equal(pg_get(&calls[0], 0, 0).at, "a");
        assert_string_equal(pg_get(&calls[1], 0, 0).at, "other b");
        assert_string_equal(pg_get(&calls[2], 0, 0).at, "c");
    }
}

static void more_statements_than_can_be_remembered_go_unnamed(void **state)
{
    (void)state;
    static char names[600][8];
    for (size_t i = 0; i < 2 * COUNT_OF(names); i++) {
        char *name = names[i % COUNT_OF(names)];
        (void)snprintf(name, sizeof names[0], "s%zu", i % COUNT_OF(names));
        struct statement ask = {name, "SELECT $1::text AS said", 1, "said:text"};
        struct pg_call call = {.ask = &ask, .args = {pg_text(name)}};
        assert_int_equal(pg_ask(pg, &call, SOON), OK);
        assert_string_equal(pg_get(&call, 0, 0).at, name);
    }
    struct statement ask = {"c", "SELECT count(*) AS n FROM pg_prepared_statements", 0, "n:int8"};
    struct pg_call call = {.ask = &ask};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_in_range(pg_get_i64(&call, 0, 0), 100, 400);
}

static void large_questions_and_answers_pass_each_other(void **state)
{
    (void)state;
    size_t size = 3 << 20;
    char *big = malloc(size + 1);
    assert_non_null(big);
    memset(big, 'x', size);
    big[size] = '\0';
    struct pg_call calls[PG_CALLS_MAX];
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        calls[i] = (struct pg_call){.ask = &echo, .args = {pg_text(big)}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), OK);
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        assert_int_equal(pg_get(&calls[i], 0, 0).len, size);
    free(big);
}

static void a_missed_deadline_closes_the_connection(void **state)
{
    (void)state;
    struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("first")}}, {.ask = &nap, .args = {pg_i64(600000)}}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), clock_ns() + 300 * NS_PER_MS), ERR_TIMEOUT);
    assert_false(pg_is_up(pg));
    assert_int_equal(pg_socket(pg), -1);
    assert_int_equal(calls[1].err, ERR_CLOSED);
    assert_int_equal(pg_trip(pg, calls, 1, SOON), ERR_CLOSED);
    assert_int_equal(pg_connect(pg, SOON, NULL), OK);
    assert_int_equal(pg_trip(pg, calls, 1, SOON), OK);
}

static void a_deadline_that_has_passed_sends_nothing_and_costs_nothing(void **state)
{
    (void)state;
    struct pg_call call = {.ask = &insert, .args = {pg_i64(1)}};
    assert_int_equal(pg_ask(pg, &call, clock_ns()), ERR_TIMEOUT);
    assert_true(pg_is_up(pg));
    struct pg_call after = {.ask = &count};
    assert_int_equal(pg_ask(pg, &after, SOON), OK);
    assert_int_equal(pg_get_i64(&after, 0, 0), 0);
}

static void too_many_calls_are_refused(void **state)
{
    (void)state;
    struct pg_call calls[PG_CALLS_MAX + 1] = {{.ask = &count}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_INPUT);
    assert_int_equal(calls[PG_CALLS_MAX].err, ERR_CLOSED);
    static const struct statement wide = {"wide", "SELECT 1", PG_ARGS_MAX + 1, ""};
    struct pg_call call = {.ask = &wide};
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_INPUT);
    assert_int_equal(pg_trip(pg, calls, 0, SOON), OK);
}

static void a_server_that_cannot_write_any_more_is_left(void **state)
{
    (void)state;
    static const struct statement make = {"make", "CREATE TABLE never_made (n int)", 0, ""};
    must_run(pg, "SET default_transaction_read_only = on");
    struct pg_call call = {.ask = &make};
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_CLOSED);
    assert_string_equal(call.sqlstate, "25006");
    assert_false(pg_is_up(pg));
}

static void a_cut_connection_is_closed(void **state)
{
    (void)state;
    static const struct statement suicide = {"suicide", "SELECT pg_terminate_backend(pg_backend_pid())", 0, ""};
    struct pg_call calls[] = {{.ask = &echo, .args = {pg_text("last words")}}, {.ask = &suicide}};
    assert_int_equal(pg_trip(pg, calls, COUNT_OF(calls), SOON), ERR_CLOSED);
    assert_false(pg_is_up(pg));
    assert_string_equal(calls[1].sqlstate, "57P01");
    assert_string_equal(pg_get(&calls[0], 0, 0).at, "last words");
}

static void an_idle_connection_that_was_cut_is_not_alive(void **state)
{
    (void)state;
    struct pg_call call = {.ask = &my_pid};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_true(pg_is_alive(pg));
    char sql[128];
    (void)snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 60000)::int", (int)pg_get_i64(&call, 0, 0));
    assert_int_equal(number_from(shared_url(), sql), 1);
    assert_false(pg_is_alive(pg));
    assert_false(pg_is_up(pg));
}

static void a_script_tells_what_failed_and_leaves_nothing_open(void **state)
{
    (void)state;
    struct why why = {""};
    must_run(pg, "CREATE TEMPORARY TABLE a (n int); INSERT INTO things VALUES (1)");
    assert_int_equal(
        pg_script(pg, "BEGIN;\nINSERT INTO things VALUES (2);\nSELECT '\xC3\xA4', oops;\nCOMMIT", SOON, &why),
        ERR_DATABASE);
    assert_string_equal(why.text, "column \"oops\" does not exist (SQLSTATE 42703, line 3)");
    struct pg_call call = {.ask = &count};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_int_equal(pg_get_i64(&call, 0, 0), 1);
}

static void a_script_may_outlast_the_safety_net_which_is_put_back(void **state)
{
    (void)state;
    static const struct statement net = {"net", "SELECT current_setting('statement_timeout') AS s", 0, "s:text"};
    must_run(pg, "INSERT INTO things SELECT 1 WHERE current_setting('statement_timeout') <> '30s'");
    struct pg_call calls[] = {{.ask = &count}, {.ask = &net}};
    assert_int_equal(pg_trip(pg, calls, 2, SOON), OK);
    assert_int_equal(pg_get_i64(&calls[0], 0, 0), 1);
    assert_string_equal(pg_get(&calls[1], 0, 0).at, "30s");
}

static void a_script_misses_its_deadline_or_copies_and_the_connection_is_closed(void **state)
{
    (void)state;
    struct why why;
    assert_int_equal(pg_script(pg, "SELECT pg_sleep(600)", clock_ns() + 200 * NS_PER_MS, &why), ERR_TIMEOUT);
    assert_false(pg_is_up(pg));
    assert_int_equal(pg_script(pg, "SELECT 1", SOON, &why), ERR_CLOSED);
    assert_int_equal(pg_connect(pg, SOON, &why), OK);
    assert_int_equal(pg_script(pg, "COPY (SELECT 1) TO STDOUT", SOON, &why), ERR_CLOSED);
    assert_false(pg_is_up(pg));
}

static void what_is_lost_between_a_session_and_its_statements_is_found_out(void **state)
{
    (void)state;
    struct pg_call call = {.ask = &echo, .args = {pg_text("again")}};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    must_run(pg, "DEALLOCATE ALL");
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_CONFLICT);
    assert_true(pg_is_pooled(pg));
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    /* A detected pooler is remembered across reconnects. */
    assert_int_equal(pg_connect(pg, SOON, NULL), OK);
    assert_true(pg_is_pooled(pg));
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
}

static void where_names_are_insisted_on_a_lost_one_is_prepared_again(void **state)
{
    (void)state;
    struct pg *named = must_connect(shared_url(), PG_PREPARE_ON);
    struct pg_call call = {.ask = &echo, .args = {pg_text("again")}};
    assert_int_equal(pg_ask(named, &call, SOON), OK);
    must_run(named, "DEALLOCATE ALL");
    assert_int_equal(pg_ask(named, &call, SOON), ERR_CONFLICT);
    assert_int_equal(pg_ask(named, &call, SOON), OK);
    assert_false(pg_is_pooled(named));
    struct statement ask = {"c", "SELECT count(*) AS n FROM pg_prepared_statements WHERE name = 'echo'", 0, "n:int8"};
    struct pg_call look = {.ask = &ask};
    assert_int_equal(pg_ask(named, &look, SOON), OK);
    assert_int_equal(pg_get_i64(&look, 0, 0), 1);
    pg_free(named);
}

static void a_name_that_somebody_else_prepared_is_found_out(void **state)
{
    (void)state;
    must_run(pg, "PREPARE echo AS SELECT 'a stranger''s' AS said");
    struct pg_call call = {.ask = &echo, .args = {pg_text("mine")}};
    assert_int_equal(pg_ask(pg, &call, SOON), ERR_CONFLICT);
    assert_string_equal(call.sqlstate, "42P05");
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_string_equal(pg_get(&call, 0, 0).at, "mine");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_call_gets_its_own_answer),
        TEST(fields_that_are_not_there_are_null),
        TEST(answers_before_a_failure_stay_readable_and_those_behind_are_not_reached),
        TEST(a_trip_is_one_transaction),
        TEST(what_fails_at_the_very_end_fails_the_trip),
        TEST(a_statement_that_cannot_be_prepared_fails_alone_and_works_later),
        TEST(preparations_behind_a_failure_are_made_up_for),
        TEST(a_changed_result_type_heals_at_the_second_run),
        TEST(a_changed_parameter_type_heals_too),
        TEST(two_statements_of_one_name_do_not_mix),
        TEST(more_statements_than_can_be_remembered_go_unnamed),
        TEST(large_questions_and_answers_pass_each_other),
        TEST(a_missed_deadline_closes_the_connection),
        TEST(a_deadline_that_has_passed_sends_nothing_and_costs_nothing),
        TEST(too_many_calls_are_refused),
        TEST(a_server_that_cannot_write_any_more_is_left),
        TEST(a_cut_connection_is_closed),
        TEST(an_idle_connection_that_was_cut_is_not_alive),
        TEST(a_script_tells_what_failed_and_leaves_nothing_open),
        TEST(a_script_may_outlast_the_safety_net_which_is_put_back),
        TEST(a_script_misses_its_deadline_or_copies_and_the_connection_is_closed),
        TEST(what_is_lost_between_a_session_and_its_statements_is_found_out),
        TEST(where_names_are_insisted_on_a_lost_one_is_prepared_again),
        TEST(a_name_that_somebody_else_prepared_is_found_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
