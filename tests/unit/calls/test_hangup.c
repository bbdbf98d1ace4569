/* Ending a customer's calls: each in the way that the switch needs, until none is left, and no other customer's. */
#include "calls/hangup.h"

#include <stdio.h>
#include <string.h>

#include "../base/unit.h"
#include "../client/fake.h"
#include "../work/database.h"
#include "base/clock.h"
#include "base/log.h"

#define SOON (clock_ns() + 60 * NS_PER_S)
#define FROZEN "a0000000-0000-4000-8000-000000000001"
#define ACTIVE "a0000000-0000-4000-8000-000000000002"
#define OPEN "SELECT count(*) FROM reclaim.work_items WHERE state = 'open'"
#define LIVE "SELECT count(*) FROM reclaim.call_calls WHERE status <> 'hangup'"

#define RESULT(object) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" object "}"
/* Accepts a request to end a call; to a look-up it says that there is no such call. */
#define NOTHING RESULT("{}")
#define TALKS RESULT("{\"state\":4,\"callee\":{\"tag\":\"found\"},\"caller\":{\"cseq\":\"1\"}}")

static const struct fake_step ends_calls[] = {{FAKE_ANSWER, 200, NOTHING, 0}};

#define OF_SETTING "INSERT INTO reclaim.switches (name, address) VALUES ('default', '')"

/* Runs one item to its end, at an instance that has this address in RECLAIM_SWITCH_RPC_URL; NULL for none. */
static void run_item(const char *own_url, const char *payload)
{
    char script[256];
    (void)snprintf(script, sizeof script, "INSERT INTO reclaim.work_items (kind, payload) VALUES ('hangup', '%s')",
                   payload);
    database_run(script);
    struct hangup *hangup = hangup_new(own_url);
    const struct work_kind *const kinds[] = {hangup_kind(hangup)};
    struct pool *pool = database_pool(2);
    struct work_config config = {.pool = pool, .kinds = kinds, .kind_count = 1, .poll_ns = NS_PER_S / 20};
    struct why why = {""};
    struct engine *engine = work_start(&config, &why);
    if (!engine)
        fail_msg("no engine: %s", why.text);
    database_await(OPEN " AND kind = 'hangup'", 0);
    work_stop(engine, clock_ns() + NS_PER_S);
    pool_stop(pool, SOON);
    work_free(engine);
    hangup_free(hangup);
}

/* The same in an installation whose only switch is this one; NULL for none. */
static void hang_up(struct fake *at, const char *payload)
{
    if (at)
        database_run(OF_SETTING);
    run_item(at ? fake_url(at) : NULL, payload);
}

static void record(const char *name, struct fake *at)
{
    char script[256];
    (void)snprintf(script, sizeof script, "INSERT INTO reclaim.switches (name, url, address) VALUES ('%s', '%s', '')",
                   name, fake_url(at));
    database_run(script);
}

#define OF(customer) "{\"customer_id\": \"" customer "\"}"

static void add_call(const char *customer, const char *status, const char *dialog)
{
    char script[512];
    (void)snprintf(
        script, sizeof script,
        "INSERT INTO reclaim.call_calls (customer_id, direction, status, sip_call_id, from_tag, to_tag, cseq)"
        " VALUES ('%s', 'outgoing', '%s', %s)",
        customer, status, dialog);
    database_run(script);
}

#define UNKNOWN_TO_SWITCH "NULL, NULL, NULL, NULL"

static void assert_asked(struct fake *at, int n, const char *method, const char *params)
{
    assert_true(fake_count(at) > n);
    const char *request = fake_request(at, n);
    char wanted[256];
    (void)snprintf(wanted, sizeof wanted, "\"method\":\"%s\",\"params\":[%s]", method, params);
    if (!strstr(request, wanted))
        fail_msg("request %d is not %s: %s", n, wanted, request);
}

static void without_a_switch_a_frozen_customer_s_calls_end_and_the_freeze_is_confirmed(void **state UNUSED)
{
    add_call(FROZEN, "progressing", UNKNOWN_TO_SWITCH);
    add_call(FROZEN, "ringing", "'sip-1', 'from', NULL, 1");
    hang_up(NULL, OF(FROZEN));
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.call_calls WHERE status = 'hangup'"
                                     " AND hangup_reason = 'account_frozen'"),
                     2);
    assert_int_equal(
        database_number("SELECT count(*) FROM reclaim.customer_customers WHERE frozen_calls_at IS NOT NULL"), 1);
}

static void other_customers_calls_go_on(void **state UNUSED)
{
    add_call(ACTIVE, "progressing", UNKNOWN_TO_SWITCH);
    add_call(FROZEN, "progressing", UNKNOWN_TO_SWITCH);
    hang_up(NULL, OF(FROZEN));
    assert_int_equal(database_number(LIVE " AND customer_id = '" ACTIVE "'"), 1);
}

static void calls_of_a_recovered_customer_go_on(void **state UNUSED)
{
    struct fake *at = fake_http();
    fake_script(at, ends_calls, COUNT_OF(ends_calls));
    add_call(ACTIVE, "progressing", "'sip-1', 'from', 'to', 1");
    hang_up(at, OF(ACTIVE));
    assert_int_equal(database_number(LIVE), 1);
    assert_int_equal(fake_count(at), 0);
    fake_free(at);
}

static void an_answered_call_is_hung_up_and_then_looked_up(void **state UNUSED)
{
    struct fake *at = fake_http();
    fake_script(at, ends_calls, COUNT_OF(ends_calls));
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    hang_up(at, OF(FROZEN));
    assert_asked(at, 0, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"to\"");
    assert_asked(at, 1, "dlg.dlg_list", "\"sip-1\",\"from\"");
    assert_int_equal(fake_count(at), 2);
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void a_ringing_call_is_cancelled(void **state UNUSED)
{
    struct fake *at = fake_http();
    fake_script(at, ends_calls, COUNT_OF(ends_calls));
    add_call(FROZEN, "ringing", "'sip-1', 'from', NULL, 7");
    hang_up(at, OF(FROZEN));
    assert_asked(at, 0, "tm.cancel", "\"sip-1\",\"7\"");
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void a_call_without_its_tag_is_looked_up_first(void **state UNUSED)
{
    static const struct fake_step steps[] = {{FAKE_ANSWER, 200, TALKS, 0}, {FAKE_ANSWER, 200, NOTHING, 0}};
    struct fake *at = fake_http();
    fake_script(at, steps, COUNT_OF(steps));
    add_call(FROZEN, "progressing", "'sip-1', 'from', NULL, 1");
    hang_up(at, OF(FROZEN));
    assert_asked(at, 0, "dlg.dlg_list", "\"sip-1\",\"from\"");
    assert_asked(at, 1, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"found\"");
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void a_call_answered_while_it_is_cancelled_is_hung_up(void **state UNUSED)
{
    static const struct fake_step steps[] = {
        {FAKE_ANSWER, 200, NOTHING, 0}, {FAKE_ANSWER, 200, TALKS, 0}, {FAKE_ANSWER, 200, NOTHING, 0}};
    struct fake *at = fake_http();
    fake_script(at, steps, COUNT_OF(steps));
    add_call(FROZEN, "ringing", "'sip-1', 'from', NULL, 1");
    hang_up(at, OF(FROZEN));
    assert_asked(at, 0, "tm.cancel", "\"sip-1\",\"1\"");
    assert_asked(at, 1, "dlg.dlg_list", "\"sip-1\",\"from\"");
    assert_asked(at, 2, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"found\"");
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void a_switch_that_does_not_answer_is_asked_again(void **state UNUSED)
{
    static const struct fake_step steps[] = {{FAKE_CLOSE, 0, NULL, 0},
                                             {FAKE_NO_HTTP, 0, NULL, 0},
                                             {FAKE_ANSWER, 200, TALKS, 0},
                                             {FAKE_ANSWER, 200, NOTHING, 0}};
    struct fake *at = fake_http();
    fake_script(at, steps, COUNT_OF(steps));
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    hang_up(at, OF(FROZEN));
    assert_asked(at, 0, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"to\"");
    for (int n = 1; n < 3; n++)
        assert_asked(at, n, "dlg.dlg_list", "\"sip-1\",\"from\"");
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void a_call_at_a_switch_that_only_others_reach_is_left_to_them(void **state UNUSED)
{
    database_run(OF_SETTING);
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    run_item(NULL, OF(FROZEN));
    assert_int_equal(database_number(LIVE " AND status = 'terminating'"), 1);
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.customer_customers WHERE frozen_calls_at IS NULL"
                                     " AND status = 'frozen'"),
                     1);
    assert_int_equal(database_number(OPEN " AND kind = 'hangup_by_setting' AND tries = 0"
                                          " AND payload ->> 'customer_id' = '" FROZEN "'"),
                     1);
}

static void a_switch_recorded_with_its_address_is_asked_by_every_instance(void **state UNUSED)
{
    struct fake *at = fake_http();
    fake_script(at, ends_calls, COUNT_OF(ends_calls));
    record("east", at);
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    run_item(NULL, OF(FROZEN));
    assert_asked(at, 0, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"to\"");
    assert_int_equal(database_number(LIVE), 0);
    assert_int_equal(database_number(OPEN), 0);
    fake_free(at);
}

static void each_call_is_ended_at_its_own_switch(void **state UNUSED)
{
    struct fake *east = fake_http(), *west = fake_http();
    fake_script(east, ends_calls, COUNT_OF(ends_calls));
    fake_script(west, ends_calls, COUNT_OF(ends_calls));
    record("east", east);
    record("west", west);
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    add_call(FROZEN, "progressing", "'sip-2', 'from', 'to', 1");
    database_run("UPDATE reclaim.call_calls SET switch = CASE sip_call_id WHEN 'sip-1' THEN 'east' ELSE 'west' END");
    run_item(NULL, OF(FROZEN));
    assert_asked(east, 0, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"to\"");
    assert_asked(west, 0, "dlg.terminate_dlg", "\"sip-2\",\"from\",\"to\"");
    assert_int_equal(fake_count(east), 2);
    assert_int_equal(fake_count(west), 2);
    assert_int_equal(database_number(LIVE), 0);
    fake_free(east);
    fake_free(west);
}

/* More calls than a page are at the one that fails; the other's come after them. */
static void a_switch_that_does_not_answer_keeps_no_other_waiting(void **state UNUSED)
{
    static const struct fake_step fails[] = {{FAKE_CLOSE, 0, NULL, 0}};
    struct fake *east = fake_http(), *west = fake_http();
    fake_script(east, fails, COUNT_OF(fails));
    fake_script(west, ends_calls, COUNT_OF(ends_calls));
    record("east", east);
    record("west", west);
    database_run(
        "INSERT INTO reclaim.call_calls (id, customer_id, direction, status, sip_call_id, from_tag, to_tag, cseq,"
        " switch) SELECT ('00000000-0000-4000-8000-' || lpad(n::text, 12, '0'))::uuid, '" FROZEN
        "', 'outgoing', 'progressing', 'sip-' || n, 'from', 'to', 1, CASE WHEN n < 600 THEN 'east' ELSE 'west' END"
        " FROM generate_series(1, 601) n");
    database_run("INSERT INTO reclaim.work_items (kind, payload) VALUES ('hangup', '" OF(FROZEN) "')");
    struct hangup *hangup = hangup_new(NULL);
    const struct work_kind *const kinds[] = {hangup_kind(hangup)};
    struct pool *pool = database_pool(2);
    struct work_config config = {.pool = pool, .kinds = kinds, .kind_count = 1, .poll_ns = NS_PER_S / 20};
    struct why why = {""};
    struct engine *engine = work_start(&config, &why);
    assert_non_null(engine);
    database_await(LIVE " AND switch = 'west'", 0);
    assert_int_equal(database_number(LIVE " AND switch = 'east'"), 599);
    assert_int_equal(
        database_number("SELECT count(*) FROM reclaim.customer_customers WHERE frozen_calls_at IS NOT NULL"), 0);
    work_stop(engine, clock_ns());
    pool_stop(pool, SOON);
    work_free(engine);
    hangup_free(hangup);
    fake_free(east);
    fake_free(west);
}

static void calls_of_a_customer_whose_row_is_gone_end_as_those_of_a_deleted_one(void **state UNUSED)
{
    add_call(FROZEN, "progressing", UNKNOWN_TO_SWITCH);
    database_run("DELETE FROM reclaim.customer_customers WHERE id = '" FROZEN "'");
    hang_up(NULL, OF(FROZEN));
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.call_calls WHERE status = 'hangup'"
                                     " AND hangup_reason = 'account_deleted'"),
                     1);
}

static void many_customers_in_one_item_are_ended_and_confirmed(void **state UNUSED)
{
    database_run("INSERT INTO reclaim.customer_customers (id, status) VALUES ('a0000000-0000-4000-8000-000000000003',"
                 " 'frozen'); DELETE FROM reclaim.work_items");
    add_call("a0000000-0000-4000-8000-000000000003", "progressing", UNKNOWN_TO_SWITCH);
    add_call(ACTIVE, "progressing", UNKNOWN_TO_SWITCH);
    hang_up(NULL, "{\"customer_ids\": [\"" FROZEN "\", \"a0000000-0000-4000-8000-000000000003\", \"" ACTIVE "\"]}");
    assert_int_equal(
        database_number("SELECT count(*) FROM reclaim.customer_customers WHERE frozen_calls_at IS NOT NULL"), 2);
    assert_int_equal(database_number(LIVE), 1);
}

static void more_calls_than_one_page_all_end(void **state UNUSED)
{
    struct fake *at = fake_http();
    fake_script(at, ends_calls, COUNT_OF(ends_calls));
    database_run("INSERT INTO reclaim.call_calls (customer_id, direction, status, sip_call_id, from_tag, to_tag, cseq)"
                 " SELECT '" FROZEN "', 'outgoing', 'progressing', 'sip-' || n, 'from', 'to', 1"
                 " FROM generate_series(1, 300) n");
    hang_up(at, OF(FROZEN));
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
}

static void an_item_without_a_customer_becomes_a_dead_letter(void **state UNUSED)
{
    hang_up(NULL, "{\"customer_id\": \"nobody\"}");
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'"), 1);
    hang_up(NULL, "{\"customer_ids\": [\"" FROZEN "\", 7]}");
    assert_int_equal(database_number("SELECT count(*) FROM reclaim.work_items WHERE state = 'dead'"), 2);
}

static int fresh(void **state UNUSED)
{
    database_run("DELETE FROM reclaim.customer_customers;"
                 "DELETE FROM reclaim.call_calls;"
                 "DELETE FROM reclaim.work_items;"
                 "DELETE FROM reclaim.switches;"
                 "INSERT INTO reclaim.customer_customers (id, status) VALUES ('" FROZEN "', 'frozen'),"
                 " ('" ACTIVE "', 'active');"
                 "DELETE FROM reclaim.work_items"); /* the item of the freeze itself */
    return 0;
}

static int make(void **state UNUSED)
{
    database_make("hangup");
    return 0;
}

static int drop(void **state UNUSED)
{
    database_drop();
    return 0;
}

int main(void)
{
    log_threshold(LOG_ERROR);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(without_a_switch_a_frozen_customer_s_calls_end_and_the_freeze_is_confirmed, fresh),
        cmocka_unit_test_setup(other_customers_calls_go_on, fresh),
        cmocka_unit_test_setup(calls_of_a_recovered_customer_go_on, fresh),
        cmocka_unit_test_setup(an_answered_call_is_hung_up_and_then_looked_up, fresh),
        cmocka_unit_test_setup(a_ringing_call_is_cancelled, fresh),
        cmocka_unit_test_setup(a_call_without_its_tag_is_looked_up_first, fresh),
        cmocka_unit_test_setup(a_call_answered_while_it_is_cancelled_is_hung_up, fresh),
        cmocka_unit_test_setup(a_switch_that_does_not_answer_is_asked_again, fresh),
        cmocka_unit_test_setup(a_call_at_a_switch_that_only_others_reach_is_left_to_them, fresh),
        cmocka_unit_test_setup(a_switch_recorded_with_its_address_is_asked_by_every_instance, fresh),
        cmocka_unit_test_setup(each_call_is_ended_at_its_own_switch, fresh),
        cmocka_unit_test_setup(a_switch_that_does_not_answer_keeps_no_other_waiting, fresh),
        cmocka_unit_test_setup(calls_of_a_customer_whose_row_is_gone_end_as_those_of_a_deleted_one, fresh),
        cmocka_unit_test_setup(many_customers_in_one_item_are_ended_and_confirmed, fresh),
        cmocka_unit_test_setup(more_calls_than_one_page_all_end, fresh),
        cmocka_unit_test_setup(an_item_without_a_customer_becomes_a_dead_letter, fresh),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
