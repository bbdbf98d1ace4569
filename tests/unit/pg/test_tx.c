/* Transactions: committed completely or not at all, ended at the deadline by both client and server. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pg/tx.h"
#include "server.h"

#define SOON (clock_ns() + 60 * NS_PER_S)

static const struct statement put = {"put", "INSERT INTO tx_test VALUES ($1, 0)", 1, ""};
static const struct statement bump = {"bump", "UPDATE tx_test SET n = n + 1 WHERE id = $1", 1, ""};
static const struct statement look = {"look", "SELECT count(*) AS n FROM tx_test", 0, "n:int8"};
static const struct statement divide = {"divide", "SELECT 1 / $1::int4 AS result", 1, "result:int4"};
static const struct statement limits = {
    "limits",
    "SELECT bool_and(setting::int BETWEEN 1 AND 50000) AS told, txid_current_if_assigned() IS NULL AS unused"
    " FROM pg_settings WHERE name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout')",
    0, "told:bool unused:bool"};
static const struct statement settings = {
    "settings", "SELECT current_setting('statement_timeout') || ' ' || current_setting('lock_timeout') AS s", 0,
    "s:text"};
static const struct statement my_pid = {"my_pid", "SELECT pg_backend_pid() AS pid", 0, "pid:int4"};

static struct pg *pg;

static int set_up(void **state)
{
    (void)state;
    pg = must_connect(shared_url(), PG_PREPARE_AUTO);
    must_run(pg, "DROP TABLE IF EXISTS tx_test;"
                 "CREATE TABLE tx_test (id int8, n int8, UNIQUE (id) DEFERRABLE INITIALLY DEFERRED)");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    struct pg *last = must_connect(shared_url(), PG_PREPARE_OFF);
    pg_free(pg);
    must_run(last, "DROP TABLE tx_test");
    pg_free(last);
    return 0;
}

static int64_t rows(void)
{
    return number_from(shared_url(), "SELECT count(*) FROM tx_test");
}

static void what_is_committed_stays(void **state)
{
    (void)state;
    for (int64_t round = 0; round < 3; round++) {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call first[] = {{.ask = &put, .args = {pg_i64(2 * round)}}, {.ask = &look}};
        struct pg_call last = {.ask = &put, .args = {pg_i64(2 * round + 1)}};
        assert_int_equal(tx_trip(tx, first, 2), OK);
        assert_int_equal(rows(), 2 * round);
        assert_int_equal(tx_commit(tx, &last, 1), OK);
        assert_int_equal(rows(), 2 * round + 2);
    }
}

static void a_single_trip_commits_too(void **state)
{
    (void)state;
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
    assert_int_equal(tx_commit(tx, &call, 1), OK);
    assert_int_equal(rows(), 1);
}

static void as_many_calls_as_a_trip_takes_fit_beside_begin_and_commit(void **state)
{
    (void)state;
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    struct pg_call calls[PG_CALLS_MAX + 1];
    for (size_t i = 0; i < COUNT_OF(calls); i++)
        calls[i] = (struct pg_call){.ask = &put, .args = {pg_i64((int64_t)i)}};
    assert_int_equal(tx_trip(tx, calls, PG_CALLS_MAX + 1), ERR_INPUT);
    assert_int_equal(tx_commit(tx, calls, PG_CALLS_MAX), OK);
    assert_int_equal(rows(), PG_CALLS_MAX);
}

static void what_is_not_committed_is_rolled_back(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
        assert_int_equal(tx_trip(tx, &call, 1), OK);
    }
    assert_true(pg_is_up(pg));
    assert_int_equal(rows(), 0);
    struct pg_call after = {.ask = &look};
    assert_int_equal(pg_ask(pg, &after, SOON), OK);
    assert_int_equal(pg_get_i64(&after, 0, 0), 0);
}

static void nothing_begun_costs_nothing(void **state)
{
    (void)state;
    struct pg_call before = {.ask = &look};
    assert_int_equal(pg_ask(pg, &before, SOON), OK);
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        (void)tx;
    }
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    assert_int_equal(tx_commit(tx, NULL, 0), OK);
    assert_int_equal(pg_get_i64(&before, 0, 0), 0); /* its result is still valid: no trip was made */
}

static void after_a_failure_all_trips_fail_alike(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call calls[] = {{.ask = &put, .args = {pg_i64(1)}}, {.ask = &divide, .args = {pg_i64(0)}}};
        assert_int_equal(tx_trip(tx, calls, 2), ERR_DATABASE);
        assert_int_equal(calls[0].err, OK);
        assert_string_equal(calls[1].sqlstate, "22012");
        struct pg_call next = {.ask = &look};
        assert_int_equal(tx_trip(tx, &next, 1), ERR_DATABASE);
        assert_int_equal(next.err, ERR_CLOSED);
        assert_int_equal(tx_commit(tx, &next, 1), ERR_DATABASE);
    }
    assert_true(pg_is_up(pg));
    assert_int_equal(rows(), 0);
}

static void a_failure_beside_commit_commits_nothing(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call calls[] = {{.ask = &put, .args = {pg_i64(1)}}, {.ask = &divide, .args = {pg_i64(0)}}};
        assert_int_equal(tx_commit(tx, calls, 2), ERR_DATABASE);
    }
    assert_int_equal(rows(), 0);
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
    assert_int_equal(tx_commit(tx, &call, 1), OK);
}

static void commit_of_an_aborted_transaction_is_no_success(void **state)
{
    (void)state;
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    struct pg_call call = {.ask = &put, .args = {pg_i64(1)}}, broken = {.ask = &divide, .args = {pg_i64(0)}};
    assert_int_equal(tx_trip(tx, &call, 1), OK);
    assert_int_equal(pg_ask(pg, &broken, SOON), ERR_DATABASE); /* not through the transaction */
    assert_int_equal(tx_commit(tx, NULL, 0), ERR_DATABASE);
    assert_int_equal(rows(), 0);
}

static void what_commit_itself_refuses_is_told(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call twice[] = {{.ask = &put, .args = {pg_i64(1)}}, {.ask = &put, .args = {pg_i64(1)}}};
        assert_int_equal(tx_commit(tx, twice, 2), ERR_DATABASE);
        assert_int_equal(twice[1].err, OK);
    }
    assert_true(pg_is_up(pg));
    assert_int_equal(rows(), 0);
}

static void the_server_gets_the_deadline_for_this_transaction_only(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + 50 * NS_PER_S);
        struct pg_call calls[] = {{.ask = &limits}, {.ask = &settings}};
        assert_int_equal(tx_trip(tx, calls, 2), OK);
        assert_true(pg_get_bool(&calls[0], 0, 0));
        assert_true(pg_get_bool(&calls[0], 0, 1));
        assert_string_not_equal(pg_get(&calls[1], 0, 0).at, "30s 0");
    }
    struct pg_call call = {.ask = &settings};
    assert_int_equal(pg_ask(pg, &call, SOON), OK);
    assert_string_equal(pg_get(&call, 0, 0).at, "30s 0");
}

static void later_trips_tell_the_server_how_little_time_is_left(void **state)
{
    (void)state;
    static const struct statement told = {"told",
                                          "SELECT setting::int8 AS ms FROM pg_settings"
                                          " WHERE name = 'statement_timeout'",
                                          0, "ms:int8"};
    int64_t shift = 40 * NS_PER_S;
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + 50 * NS_PER_S);
    struct pg_call call = {.ask = &told};
    assert_int_equal(tx_trip(tx, &call, 1), OK);
    assert_in_range(pg_get_i64(&call, 0, 0), 20000, 49900);
    clock_shift(shift);
    enum err e = tx_trip(tx, &call, 1);
    clock_shift(-shift);
    assert_int_equal(e, OK);
    assert_in_range(pg_get_i64(&call, 0, 0), 1, 9900);
}

static void the_server_gets_all_but_a_moment_of_the_deadline(void **state)
{
    (void)state;
    static const struct statement told = {
        "told", "SELECT setting::int8 AS ms FROM pg_settings WHERE name = 'statement_timeout'", 0, "ms:int8"};
    int64_t shift = NS_PER_S;
    AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + 30 * NS_PER_S);
    struct pg_call call = {.ask = &told};
    assert_int_equal(tx_trip(tx, &call, 1), OK);
    assert_in_range(pg_get_i64(&call, 0, 0), 28000, 29900);
    /* A statement that begins a second later must not be allowed to go on behind the deadline. */
    clock_shift(shift);
    enum err e = tx_trip(tx, &call, 1);
    clock_shift(-shift);
    assert_int_equal(e, OK);
    assert_in_range(pg_get_i64(&call, 0, 0), 20000, 28900);
}

static void a_statement_that_uses_the_time_up_is_a_time_out_and_keeps_the_connection(void **state)
{
    (void)state;
    static const struct statement nap = {"nap", "SELECT pg_sleep(600)", 0, "pg_sleep:void"};
    struct pg_call call = {.ask = &nap};
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + 5 * NS_PER_S);
        assert_int_equal(tx_trip(tx, &call, 1), ERR_TIMEOUT);
        assert_string_equal(call.sqlstate, "57014");
    }
    assert_true(pg_is_up(pg));
}

static void waiting_for_a_lock_ends_with_the_deadline_and_keeps_the_connection(void **state)
{
    (void)state;
    must_run(pg, "INSERT INTO tx_test VALUES (1, 0)");
    struct pg *holder = must_connect(shared_url(), PG_PREPARE_OFF);
    must_run(holder, "BEGIN; UPDATE tx_test SET n = 7");
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + 5 * NS_PER_S);
        struct pg_call call = {.ask = &bump, .args = {pg_i64(1)}};
        enum err e = tx_trip(tx, &call, 1);
        assert_true(e == ERR_DATABASE || e == ERR_TIMEOUT);
        assert_true(!strcmp(call.sqlstate, "55P03") || !strcmp(call.sqlstate, "57014"));
    }
    assert_true(pg_is_up(pg));
    pg_free(holder);
}

static void past_its_deadline_a_transaction_sends_nothing(void **state)
{
    (void)state;
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
        assert_int_equal(tx_trip(tx, &call, 1), OK);
        clock_shift(100 * NS_PER_S);
        enum err e = tx_commit(tx, &call, 1);
        clock_shift(-100 * NS_PER_S);
        assert_int_equal(e, ERR_TIMEOUT);
        assert_int_equal(call.err, ERR_CLOSED);
    }
    assert_true(pg_is_up(pg));
    assert_int_equal(rows(), 0);
}

static void a_server_that_hangs_is_left_at_the_deadline(void **state)
{
    (void)state;
    struct pg_call pid = {.ask = &my_pid};
    assert_int_equal(pg_ask(pg, &pid, SOON), OK);
    pid_t backend = (pid_t)pg_get_i64(&pid, 0, 0);
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, clock_ns() + NS_PER_S);
        struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
        assert_int_equal(tx_trip(tx, &call, 1), OK);
        assert_int_equal(kill(backend, SIGSTOP), 0);
        enum err e = tx_commit(tx, &call, 1);
        assert_int_equal(kill(backend, SIGCONT), 0);
        assert_int_equal(e, ERR_TIMEOUT);
    }
    assert_false(pg_is_up(pg));
}

static void a_rollback_that_hangs_closes_the_connection(void **state)
{
    (void)state;
    struct pg_call pid = {.ask = &my_pid};
    assert_int_equal(pg_ask(pg, &pid, SOON), OK);
    pid_t backend = (pid_t)pg_get_i64(&pid, 0, 0);
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call call = {.ask = &put, .args = {pg_i64(1)}};
        assert_int_equal(tx_trip(tx, &call, 1), OK);
        assert_int_equal(kill(backend, SIGSTOP), 0);
    }
    assert_int_equal(kill(backend, SIGCONT), 0);
    assert_false(pg_is_up(pg));
}

struct rival {
    pthread_barrier_t *both_hold_one;
    int64_t first, second;
    enum err e;
};

static void *lock_two(void *context)
{
    struct rival *r = context;
    struct pg *mine = must_connect(shared_url(), PG_PREPARE_AUTO);
    {
        AUTO(tx) struct tx *tx = tx_begin(mine, SOON);
        struct pg_call one = {.ask = &bump, .args = {pg_i64(r->first)}};
        struct pg_call two = {.ask = &bump, .args = {pg_i64(r->second)}};
        r->e = tx_trip(tx, &one, 1);
        (void)pthread_barrier_wait(r->both_hold_one);
        r->e = r->e ? r->e : tx_commit(tx, &two, 1);
    }
    pg_free(mine);
    return NULL;
}

static void one_of_two_that_deadlock_may_run_again(void **state)
{
    (void)state;
    must_run(pg, "INSERT INTO tx_test VALUES (1, 0), (2, 0)");
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, 2);
    struct rival a = {&barrier, 1, 2, OK}, b = {&barrier, 2, 1, OK};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, lock_two, &b), 0);
    (void)lock_two(&a);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&barrier);
    assert_true((a.e == OK && b.e == ERR_CONFLICT) || (a.e == ERR_CONFLICT && b.e == OK));
    assert_int_equal(number_from(shared_url(), "SELECT sum(n) FROM tx_test"), 2);
}

static void a_serialisation_failure_at_commit_may_run_again(void **state)
{
    (void)state;
    /* READ COMMITTED has no serialisation failures, so a trigger that fires at the commit raises one. */
    must_run(pg, "CREATE FUNCTION tx_test_fail() RETURNS trigger LANGUAGE plpgsql AS"
                 " $$ BEGIN RAISE 'unlucky' USING ERRCODE = '40001'; END $$;"
                 "CREATE CONSTRAINT TRIGGER unlucky AFTER INSERT ON tx_test DEFERRABLE INITIALLY DEFERRED"
                 " FOR EACH ROW EXECUTE FUNCTION tx_test_fail()");
    {
        AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
        struct pg_call calls[] = {{.ask = &look}, {.ask = &put, .args = {pg_i64(3)}}};
        assert_int_equal(tx_trip(tx, calls, 2), OK);
        assert_int_equal(tx_commit(tx, NULL, 0), ERR_CONFLICT);
    }
    must_run(pg, "DROP TRIGGER unlucky ON tx_test; DROP FUNCTION tx_test_fail()");
    assert_true(pg_is_up(pg));
    assert_int_equal(rows(), 0);
}

static void a_transaction_sees_what_is_committed_meanwhile_whatever_the_default(void **state)
{
    (void)state;
    must_run(pg, "SET default_transaction_isolation = 'serializable'");
    AUTO(tx) struct tx *tx = tx_begin(pg, SOON);
    struct pg_call call = {.ask = &look};
    assert_int_equal(tx_trip(tx, &call, 1), OK);
    assert_int_equal(pg_get_i64(&call, 0, 0), 0);
    struct pg *other = must_connect(shared_url(), PG_PREPARE_AUTO);
    must_run(other, "INSERT INTO tx_test VALUES (1, 0)");
    pg_free(other);
    assert_int_equal(tx_commit(tx, &call, 1), OK);
    assert_int_equal(pg_get_i64(&call, 0, 0), 1);
}

static void transactions_work_through_a_pooler(void **state)
{
    (void)state;
    struct pooler *pooler = pooler_start(shared_url());
    struct pg *through[3];
    for (size_t i = 0; i < COUNT_OF(through); i++)
        through[i] = must_connect(pooler_url(pooler), PG_PREPARE_AUTO);
    for (int64_t round = 0; round < 30; round++) {
        AUTO(tx) struct tx *tx = tx_begin(through[round % 3], SOON);
        struct pg_call first[] = {{.ask = &put, .args = {pg_i64(2 * round)}}, {.ask = &limits}};
        struct pg_call last = {.ask = &put, .args = {pg_i64(2 * round + 1)}};
        assert_int_equal(tx_trip(tx, first, 2), OK);
        if (round % 2)
            assert_int_equal(tx_commit(tx, &last, 1), OK);
    }
    for (size_t i = 0; i < COUNT_OF(through); i++)
        pg_free(through[i]);
    pooler_free(pooler);
    assert_int_equal(rows(), 30);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_committed_stays),
        TEST(a_single_trip_commits_too),
        TEST(as_many_calls_as_a_trip_takes_fit_beside_begin_and_commit),
        TEST(what_is_not_committed_is_rolled_back),
        TEST(nothing_begun_costs_nothing),
        TEST(after_a_failure_all_trips_fail_alike),
        TEST(a_failure_beside_commit_commits_nothing),
        TEST(commit_of_an_aborted_transaction_is_no_success),
        TEST(what_commit_itself_refuses_is_told),
        TEST(the_server_gets_the_deadline_for_this_transaction_only),
        TEST(later_trips_tell_the_server_how_little_time_is_left),
        TEST(the_server_gets_all_but_a_moment_of_the_deadline),
        TEST(a_statement_that_uses_the_time_up_is_a_time_out_and_keeps_the_connection),
        TEST(waiting_for_a_lock_ends_with_the_deadline_and_keeps_the_connection),
        TEST(past_its_deadline_a_transaction_sends_nothing),
        TEST(a_server_that_hangs_is_left_at_the_deadline),
        TEST(a_rollback_that_hangs_closes_the_connection),
        TEST(one_of_two_that_deadlock_may_run_again),
        TEST(a_serialisation_failure_at_commit_may_run_again),
        TEST(a_transaction_sees_what_is_committed_meanwhile_whatever_the_default),
        TEST(transactions_work_through_a_pooler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
