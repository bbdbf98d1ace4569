#include "customers/state.h"

#include "../base/unit.h"

/* Every pair of state and event, written out as the requirement has it. */
static void each_event_does_in_each_state_what_is_promised(void **state)
{
    (void)state;
    static const struct {
        enum customer_state now;
        enum customer_event event;
        enum transition_kind kind;
        enum customer_state next;
    } all[] = {
        {STATE_ACTIVE, CUSTOMER_FREEZES, TRANSITION_CHANGES, STATE_FROZEN},
        {STATE_ACTIVE, CUSTOMER_RECOVERS, TRANSITION_REFUSED, STATE_ACTIVE},
        {STATE_ACTIVE, CUSTOMER_IS_DELETED, TRANSITION_CHANGES, STATE_DELETED},
        {STATE_FROZEN, CUSTOMER_FREEZES, TRANSITION_NONE, STATE_FROZEN},
        {STATE_FROZEN, CUSTOMER_RECOVERS, TRANSITION_CHANGES, STATE_ACTIVE},
        {STATE_FROZEN, CUSTOMER_IS_DELETED, TRANSITION_CHANGES, STATE_DELETED},
        {STATE_DELETED, CUSTOMER_FREEZES, TRANSITION_REFUSED, STATE_DELETED},
        {STATE_DELETED, CUSTOMER_RECOVERS, TRANSITION_REFUSED, STATE_DELETED},
        {STATE_DELETED, CUSTOMER_IS_DELETED, TRANSITION_NONE, STATE_DELETED},
    };
    assert_int_equal(COUNT_OF(all), STATE_COUNT * CUSTOMER_EVENT_COUNT);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        struct transition step = state_transition(all[i].now, all[i].event);
        assert_int_equal(step.kind, all[i].kind);
        assert_int_equal(step.next, all[i].next);
    }
}

static void nothing_leads_out_of_deleted(void **state)
{
    (void)state;
    for (int event = 0; event < CUSTOMER_EVENT_COUNT; event++)
        assert_int_equal(state_transition(STATE_DELETED, (enum customer_event)event).next, STATE_DELETED);
}

static void names_are_read_back(void **state)
{
    (void)state;
    for (int i = 0; i < STATE_COUNT; i++) {
        enum customer_state back;
        assert_int_equal(state_parse(str_of(state_name((enum customer_state)i)), &back), OK);
        assert_int_equal(back, i);
    }
    enum customer_state untouched = STATE_FROZEN;
    assert_int_equal(state_parse(STR(""), &untouched), ERR_INPUT);
    assert_int_equal(state_parse(STR("Active"), &untouched), ERR_INPUT);
    assert_int_equal(untouched, STATE_FROZEN);
}

static void events_have_their_published_names(void **state)
{
    (void)state;
    assert_string_equal(event_type(CUSTOMER_FREEZES), "customer_frozen");
    assert_string_equal(event_type(CUSTOMER_RECOVERS), "customer_recovered");
    assert_string_equal(event_type(CUSTOMER_IS_DELETED), "customer_deleted");
    assert_string_equal(event_action(CUSTOMER_FREEZES), "freeze");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_does_in_each_state_what_is_promised),
        cmocka_unit_test(nothing_leads_out_of_deleted),
        cmocka_unit_test(names_are_read_back),
        cmocka_unit_test(events_have_their_published_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
