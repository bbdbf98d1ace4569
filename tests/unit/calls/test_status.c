/* A call's status only ever goes forward, over every pair of statuses. */
#include "calls/status.h"

#include "../base/unit.h"

static const char *const names[] = {"dialing", "ringing", "progressing", "terminating", "canceling", "hangup"};

static void every_step_goes_where_it_should(void **state)
{
    (void)state;
    /* +: goes on, =: stays, -: never; one row a status, one column for each status that is asked for. */
    static const char *const steps[] = {
        /* d r p t c h */
        "=+++++", /* dialing */
        "-=++++", /* ringing */
        "--=+-+", /* progressing: an answered call is hung up, not cancelled */
        "---=-+", /* terminating */
        "----=+", /* canceling: one that is being cancelled is never answered */
        "-----=", /* hangup */
    };
    for (int now = 0; now < CALL_STATUS_COUNT; now++)
        for (int asked = 0; asked < CALL_STATUS_COUNT; asked++) {
            char expected = steps[now][asked];
            enum call_transition step = call_transition((enum call_status)now, (enum call_status)asked);
            if (step != (expected == '+'   ? CALL_TRANSITION_CHANGES
                         : expected == '=' ? CALL_TRANSITION_NONE
                                           : CALL_TRANSITION_REFUSED))
                fail_msg("%s to %s: %d, not %c", names[now], names[asked], (int)step, expected);
        }
}

/* Whatever is asked, in whatever order, a call that is over stays over, and no status comes twice. */
static void no_way_leads_back(void **state)
{
    (void)state;
    uint32_t seed = 1;
    for (int walk = 0; walk < 10000; walk++) {
        unsigned been = 1U << CALL_DIALING;
        enum call_status now = CALL_DIALING;
        for (int i = 0; i < 20; i++) {
            seed = seed * 1664525 + 1013904223;
            enum call_status asked = (enum call_status)((seed >> 16) % CALL_STATUS_COUNT);
            if (call_transition(now, asked) != CALL_TRANSITION_CHANGES)
                continue;
            assert_false(been & 1U << asked);
            assert_int_not_equal(now, CALL_HANGUP);
            been |= 1U << asked;
            now = asked;
        }
    }
}

static void names_are_read_as_they_are_written(void **state)
{
    (void)state;
    enum call_status status;
    for (int i = 0; i < CALL_STATUS_COUNT; i++) {
        assert_string_equal(call_status_name((enum call_status)i), names[i]);
        assert_int_equal(call_status_parse(str_of(names[i]), &status), OK);
        assert_int_equal(status, i);
    }
    static const char *const wrong[] = {"", "Dialing", "cancelling", "hang up", "dialing "};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(call_status_parse(str_of(wrong[i]), &status), ERR_INPUT);
    assert_int_equal(call_status_parse((struct str){NULL, 0}, &status), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_step_goes_where_it_should),
        cmocka_unit_test(no_way_leads_back),
        cmocka_unit_test(names_are_read_as_they_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
