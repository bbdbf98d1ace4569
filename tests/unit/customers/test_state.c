#include "customers/state.h"

#include "../base/unit.h"

static void names_are_read_back(void **state)
{
    (void)state;
    for (int i = STATE_ACTIVE; i <= STATE_DELETED; i++) {
        enum customer_state back;
        assert_int_equal(state_parse(str_of(state_name((enum customer_state)i)), &back), OK);
        assert_int_equal(back, i);
    }
    enum customer_state untouched = STATE_FROZEN;
    assert_int_equal(state_parse(STR(""), &untouched), ERR_INPUT);
    assert_int_equal(state_parse(STR("Active"), &untouched), ERR_INPUT);
    assert_int_equal(untouched, STATE_FROZEN);
}

static void events_have_their_names_in_the_log(void **state)
{
    (void)state;
    assert_string_equal(event_action(CUSTOMER_FREEZES), "freeze");
    assert_string_equal(event_action(CUSTOMER_RECOVERS), "recover");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read_back),
        cmocka_unit_test(events_have_their_names_in_the_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
