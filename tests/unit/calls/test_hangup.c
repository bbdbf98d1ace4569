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

/* Runs one item for this customer to its end, at this switch; NULL for none. */
static void hang_up(struct fake *at, const char *payload)
{
    char script[256];
    (void)snprintf(script, sizeof script, "INSERT INTO reclaim.work_items (kind, payload) VALUES ('hangup', '%s')",
                   payload);
    database_run(script);
    struct hangup *hangup = hangup_new(at ? fake_url(at) : NULL);
    const struct work_kind *const kinds[] = {hangup_kind(hangup)};
    struct pool *pool = database_pool(2);
    struct work_config config = {.pool = pool, .kinds = kinds, .kind_count = 1, .poll_ns = NS_PER_S / 20};
    struct why why = {""};
    struct engine *engine = work_start(&config, &why);
    if (!engine)
        fail_msg("no engine: %s", why.text);
    database_await(OPEN, 0);
    work_stop(engine, clock_ns() + NS_PER_S);
    pool_stop(pool, SOON);
    work_free(engine);
    hangup_free(hangup);
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
    static const struct fake_step steps[] = {
        {FAKE_CLOSE, 0, NULL, 0}, {FAKE_NO_HTTP, 0, NULL, 0}, {FAKE_ANSWER, 200, NOTHING, 0}};
    struct fake *at = fake_http();
    fake_script(at, steps, COUNT_OF(steps));
    add_call(FROZEN, "progressing", "'sip-1', 'from', 'to', 1");
    hang_up(at, OF(FROZEN));
    for (int n = 0; n < 3; n++)
        assert_asked(at, n, "dlg.terminate_dlg", "\"sip-1\",\"from\",\"to\"");
    assert_int_equal(database_number(LIVE), 0);
    fake_free(at);
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
}

static int fresh(void **state UNUSED)
{
    database_run("DELETE FROM reclaim.customer_customers;"
                 "DELETE FROM reclaim.call_calls;"
                 "DELETE FROM reclaim.work_items;"
                 "INSERT INTO reclaim.customer_customers (id, status) VALUES ('" FROZEN "', 'frozen'),"
                 " ('" ACTIVE "', 'active')");
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
        cmocka_unit_test_setup(more_calls_than_one_page_all_end, fresh),
        cmocka_unit_test_setup(an_item_without_a_customer_becomes_a_dead_letter, fresh),
    };
    return cmocka_run_group_tests(tests, make, drop);
}
