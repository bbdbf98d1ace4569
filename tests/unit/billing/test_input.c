#include "billing/input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/unit.h"

#define ACCOUNT "\"billing_account_id\":\"6F9619FF-8B86-4011-B42D-00C04FC964FF\""

static void times_are_rfc3339_and_of_days_that_exist(void **state)
{
    (void)state;
    static const char *const good[] = {
        "2026-03-18T12:00:00Z",           "2026-03-18t12:00:00z",      "2024-02-29T23:59:59.999999Z",
        "2000-02-29T00:00:00.123456789Z", "2026-12-31T23:59:59+14:00", "1970-01-01T00:00:00-00:30",
    };
    static const char *const bad[] = {
        "",
        "now",
        "infinity",
        "2026-03-18",
        "2026-03-18 12:00:00Z",
        "2026-03-18T12:00:00",
        "2026-03-18T12:00Z",
        "2026-02-29T12:00:00Z",
        "2100-02-29T12:00:00Z",
        "2026-13-01T12:00:00Z",
        "2026-00-01T12:00:00Z",
        "2026-04-31T12:00:00Z",
        "2026-04-00T12:00:00Z",
        "2026-03-18T24:00:00Z",
        "2026-03-18T12:60:00Z",
        "2026-03-18T12:00:60Z",
        "1969-12-31T23:59:59Z",
        "2026-03-18T12:00:00.Z",
        "2026-03-18T12:00:00.1234567890Z",
        "2026-03-18T12:00:00+15:00",
        "2026-03-18T12:00:00+01:60",
        "2026-03-18T12:00:00+0100",
        "2026-03-18T12:00:00Z ",
        "2026-03-18T12:00:00ZZ",
        "+026-03-18T12:00:00Z",
        "2026-03-18T-1:00:00Z",
        "12026-03-18T12:00:00Z",
    };
    for (size_t i = 0; i < COUNT_OF(good); i++)
        if (!time_is_rfc3339(str_of(good[i])))
            fail_msg("%s was refused", good[i]);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (time_is_rfc3339(str_of(bad[i])))
            fail_msg("%s was taken", bad[i]);
}

static void a_time_cut_short_is_refused_at_every_length(void **state)
{
    (void)state;
    struct str whole = STR("2026-03-18T12:00:00.5+01:00");
    for (size_t len = 0; len < whole.len; len++) {
        char *exact = malloc(len + 1); /* so that reading beyond it is noticed */
        assert_non_null(exact);
        memcpy(exact, whole.at, len);
        assert_false(time_is_rfc3339((struct str){exact, len}));
        free(exact);
    }
}

static const char *problem_of_charge(struct arena *arena, const char *body)
{
    struct charge_request in;
    AUTO(fields) struct fields f = billing_fields(arena, str_of(body));
    charge_read(&f, &in);
    assert_true(f.err == OK || f.err == ERR_INPUT);
    return f.err ? f.code : "";
}

static enum err read_charge(struct arena *arena, struct str body, struct charge_request *ret)
{
    AUTO(fields) struct fields f = billing_fields(arena, body);
    charge_read(&f, ret);
    return f.err;
}

static void a_charge_is_read_as_it_was_sent(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    struct charge_request in;
    assert_int_equal(read_charge(arena,
                                 STR("{" ACCOUNT ",\"amount_micros\":9007199254740992,\"reference\":\"r\xc3\xa9"
                                     "f 1\",\"occurred_at\":\"2026-03-18T12:00:00Z\",\"else\":1}"),
                                 &in),
                     OK);
    assert_string_equal(in.account_id, "6f9619ff-8b86-4011-b42d-00c04fc964ff");
    assert_int_equal(in.amount_micros, AMOUNT_MOST);
    assert_string_equal(in.reference, "r\xc3\xa9"
                                      "f 1");
    assert_string_equal(in.occurred_at, "2026-03-18T12:00:00Z");
    assert_int_equal(
        read_charge(arena, STR("{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"r\",\"occurred_at\":null}"), &in), OK);
    assert_null(in.occurred_at);
    assert_null(in.started_at);
    assert_int_equal(read_charge(arena,
                                 STR("{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"r\","
                                     "\"started_at\":\"2026-03-18T12:00:00Z\"}"),
                                 &in),
                     OK);
    assert_string_equal(in.started_at, "2026-03-18T12:00:00Z");
}

static void a_charge_that_is_none_is_refused_by_its_first_problem(void **state)
{
    (void)state;
    static const char *const all[][2] = {
        {"", "INVALID_BODY"},
        {"[]", "INVALID_BODY"},
        {"{}", "INVALID_ID"},
        {"{\"billing_account_id\":1}", "INVALID_ID"},
        {"{\"billing_account_id\":\"6f9619ff\"}", "INVALID_ID"},
        {"{" ACCOUNT "}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":0}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":-1}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":1.0}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":\"1\"}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":9007199254740993}", "INVALID_AMOUNT"},
        {"{" ACCOUNT ",\"amount_micros\":9223372036854775808}", "INVALID_BODY"},
        {"{" ACCOUNT ",\"amount_micros\":1}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"\"}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":null}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":7}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"a\\nb\"}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"sub:x\"}", "INVALID_REFERENCE"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"a\",\"reference\":\"b\"}", "INVALID_BODY"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"r\",\"occurred_at\":\"now\"}", "INVALID_TIME"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"r\",\"occurred_at\":1773835200}", "INVALID_TIME"},
        {"{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"r\"}", ""},
    };
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        assert_string_equal(problem_of_charge(arena, all[i][0]), all[i][1]);
}

static void a_reference_has_255_bytes_at_most(void **state)
{
    (void)state;
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    for (size_t len = 254; len < 258; len++) {
        char reference[300], body[600];
        memset(reference, 'r', len);
        reference[len] = 0;
        (void)snprintf(body, sizeof body, "{" ACCOUNT ",\"amount_micros\":1,\"reference\":\"%s\"}", reference);
        assert_string_equal(problem_of_charge(arena, body), len <= 255 ? "" : "INVALID_REFERENCE");
    }
}

static void a_subscription_has_one_period_of_whole_seconds_or_of_the_calendar(void **state)
{
    (void)state;
    static const struct {
        const char *period;
        int64_t seconds, months; /* both 0: refused */
    } all[] = {
        {"\"period\":\"30d\"", 2592000, 0},
        {"\"period\":\"1s\"", 1, 0},
        {"\"period\":\"2000ms\"", 2, 0},
        {"\"period_seconds\":60", 60, 0},
        {"\"period_seconds\":315360000", 315360000, 0},
        {"\"period\":null,\"period_seconds\":60", 0, 0},
        {"\"period_seconds\":315360001", 0, 0},
        {"\"period_seconds\":0", 0, 0},
        {"\"period_seconds\":-1", 0, 0},
        {"\"period_seconds\":1.5", 0, 0},
        {"\"period\":\"1500ms\"", 0, 0},
        {"\"period\":\"0\"", 0, 0},
        {"\"period\":\"3651d\"", 0, 0},
        {"\"period\":\"month\"", 0, 1},
        {"\"period\":\"year\"", 0, 12},
        {"\"period\":\"Month\"", 0, 0},
        {"\"period\":\"months\"", 0, 0},
        {"\"period\":\"1month\"", 0, 0},
        {"\"period\":\"month\",\"period_seconds\":60", 0, 0},
        {"\"period\":30", 0, 0},
        {"\"period\":\"30d\",\"period_seconds\":2592000", 0, 0},
        {"\"else\":1", 0, 0},
    };
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct subscribe_request in;
        char body[300];
        (void)snprintf(body, sizeof body, "{" ACCOUNT ",\"amount_micros\":5,%s}", all[i].period);
        AUTO(fields) struct fields f = billing_fields(arena, str_of(body));
        subscribe_read(&f, &in);
        assert_int_equal(f.err, all[i].seconds || all[i].months ? OK : ERR_INPUT);
        if (f.err) {
            assert_string_equal(f.code, "INVALID_PERIOD");
            continue;
        }
        assert_int_equal(in.period_seconds, all[i].seconds);
        assert_int_equal(in.period_months, all[i].months);
    }
}

static void an_adjustment_has_an_amount_a_reference_and_a_reason(void **state)
{
    (void)state;
    static const char *const all[][2] = {
        {"[]", "INVALID_BODY"},
        {"{}", "INVALID_AMOUNT"},
        {"{\"amount_micros\":0}", "INVALID_AMOUNT"},
        {"{\"amount_micros\":-9007199254740993}", "INVALID_AMOUNT"},
        {"{\"amount_micros\":-1}", "INVALID_REFERENCE"},
        {"{\"amount_micros\":-1,\"reference\":\"sub:r\"}", "INVALID_REFERENCE"},
        {"{\"amount_micros\":-1,\"reference\":\"r\"}", "INVALID_REASON"},
        {"{\"amount_micros\":-1,\"reference\":\"r\",\"reason\":\" \"}", "INVALID_REASON"},
        {"{\"amount_micros\":-9007199254740992,\"reference\":\"r\",\"reason\":\"why\"}", ""},
    };
    AUTO(arena) struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct adjust_request in;
        AUTO(fields) struct fields f = billing_fields(arena, str_of(all[i][0]));
        adjust_read(&f, &in);
        assert_string_equal(f.err ? f.code : "", all[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(times_are_rfc3339_and_of_days_that_exist),
        cmocka_unit_test(a_time_cut_short_is_refused_at_every_length),
        cmocka_unit_test(a_charge_is_read_as_it_was_sent),
        cmocka_unit_test(a_charge_that_is_none_is_refused_by_its_first_problem),
        cmocka_unit_test(a_reference_has_255_bytes_at_most),
        cmocka_unit_test(a_subscription_has_one_period_of_whole_seconds_or_of_the_calendar),
        cmocka_unit_test(an_adjustment_has_an_amount_a_reference_and_a_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
