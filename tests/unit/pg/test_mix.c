/* No call gets another call's result, whichever calls fail, time out, lose the connection or change the schema. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "pg/tx.h"
#include "server.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define ROUNDS 400

/* Each statement that succeeds returns its first argument and its own name. */
enum kind { PLAIN, TEXT, SHAPED, SLOW, DIVISION, MISSING, CONFLICT, CUT, KINDS };
static const struct statement mix[KINDS] = {
    [PLAIN] = {"plain", "SELECT $1::text, 'plain'", 1, ""},
    [TEXT] = {"text", "SELECT $1::text, 'text', repeat('x', 20000)", 1, ""},
    [SHAPED] = {"shaped", "SELECT $1::text, 'shaped', shape.* FROM (SELECT) AS one LEFT JOIN shape ON true LIMIT 1", 1,
                ""},
    [SLOW] = {"slow", "SELECT $1::text, 'slow', pg_sleep(0.05)", 1, ""},
    [DIVISION] = {"division", "SELECT $1::text, 'division', 1 / ($1::int8 % 2)", 1, ""},
    [MISSING] = {"missing", "SELECT $1::text, 'missing', x FROM no_such_table AS x", 1, ""},
    [CONFLICT] = {"conflict", "SELECT $1::text, 'conflict', pg_temp.conflict($1::int8)", 1, ""},
    [CUT] = {"cut", "SELECT $1::text, 'cut', pg_terminate_backend(pg_backend_pid())", 1, ""},
};

static uint64_t seed = 20240229;
static int64_t next_id = 1;
static int answered, failed, lost;

static unsigned below(unsigned bound)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (unsigned)(seed % bound);
}

static enum kind draw(void)
{
    unsigned n = below(100);
    if (n < 70)
        return (enum kind)(n % 3);
    if (n < 80)
        return DIVISION;
    return n < 86 ? SLOW : n < 92 ? MISSING : n < 97 ? CONFLICT : CUT;
}

static void reconnect(struct pg *pg)
{
    struct why why = {""};
    if (pg_connect(pg, SOON, &why))
        fail_msg("%s", why.text);
    must_run(
        pg,
        "CREATE TEMPORARY TABLE IF NOT EXISTS shape (a int);"
        "CREATE OR REPLACE FUNCTION pg_temp.conflict(n int8) RETURNS int LANGUAGE plpgsql AS $$ BEGIN IF n % 2 = 0 THEN"
        " RAISE EXCEPTION 'again' USING ERRCODE = '40001'; END IF; RETURN 1; END $$");
}

static void change_shape(struct pg *pg)
{
    char sql[96];
    (void)snprintf(sql, sizeof sql, "DROP TABLE shape; CREATE TEMPORARY TABLE shape (a %s)", below(2) ? "int" : "text");
    must_run(pg, sql);
}

static void check_own_answer(const struct pg_call *call, int64_t id)
{
    if (call->err) {
        assert_null(call->data);
        failed++;
        return;
    }
    assert_int_equal(call->rows, 1);
    assert_int_equal(pg_get_i64(call, 0, 0), id);
    assert_string_equal(pg_get(call, 0, 1).at, call->ask->name);
    answered++;
}

static enum err send_either_way(struct pg *pg, struct pg_call *calls, size_t count, int64_t deadline_ns)
{
    if (below(2))
        return pg_trip(pg, calls, count, deadline_ns);
    AUTO(tx) struct tx *tx = tx_begin(pg, deadline_ns);
    return below(2) ? tx_trip(tx, calls, count) : tx_commit(tx, calls, count);
}

static void one_trip(struct pg *pg)
{
    struct pg_call calls[8];
    int64_t ids[COUNT_OF(calls)];
    size_t count = 1 + below(COUNT_OF(calls));
    for (size_t i = 0; i < count; i++) {
        ids[i] = next_id++;
        calls[i] = (struct pg_call){.ask = &mix[draw()], .args = {pg_i64(ids[i])}};
    }
    int64_t deadline_ns = below(4) ? SOON : clock_ns() + below(60) * NS_PER_MS;
    enum err e = send_either_way(pg, calls, count, deadline_ns);
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        check_own_answer(&calls[i], ids[i]);
        all = all && calls[i].err == OK;
    }
    if (e == OK)
        assert_true(all);
}

static void run_rounds(const char *url, enum pg_prepare prepare, bool shapes)
{
    answered = failed = lost = 0;
    struct pg *pg = pg_new(url, prepare);
    assert_non_null(pg);
    for (int round = 0; round < ROUNDS; round++) {
        if (!pg_is_up(pg)) {
            lost++;
            reconnect(pg);
        }
        if (shapes && below(20) == 0)
            change_shape(pg);
        one_trip(pg);
    }
    pg_free(pg);
    print_message("answered %d, failed %d, connections lost %d\n", answered, failed, lost);
    assert_true(answered > ROUNDS / 2 && failed > ROUNDS / 10 && lost > 10);
}

static void no_call_gets_anothers_answer_when_statements_are_named(void **state)
{
    (void)state;
    run_rounds(shared_url(), PG_PREPARE_AUTO, true);
}

static void no_call_gets_anothers_answer_when_statements_are_not_named(void **state)
{
    (void)state;
    run_rounds(shared_url(), PG_PREPARE_OFF, true);
}

/* Temporary tables exist only in the backend that ran the script, so some statements fail here. */
static void no_call_gets_anothers_answer_through_a_pooler(void **state)
{
    (void)state;
    struct server *server = server_start(NULL);
    struct pooler *pooler = pooler_start(server_url(server));
    struct pg *pg = must_connect(server_url(server), PG_PREPARE_OFF);
    must_run(pg, "CREATE TABLE shape (a int)");
    pg_free(pg);
    run_rounds(pooler_url(pooler), PG_PREPARE_AUTO, false);
    pooler_free(pooler);
    server_free(server);
}

int main(void)
{
    const char *given = getenv("RECLAIM_TEST_SEED");
    if (given)
        seed = strtoull(given, NULL, 10) | 1;
    print_message("RECLAIM_TEST_SEED=%llu\n", (unsigned long long)seed);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_call_gets_anothers_answer_when_statements_are_named),
        cmocka_unit_test(no_call_gets_anothers_answer_when_statements_are_not_named),
        cmocka_unit_test(no_call_gets_anothers_answer_through_a_pooler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
