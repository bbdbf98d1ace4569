#include "erasure/cascade.h"

#include "../base/unit.h"
#include "base/clock.h"

static void names_of_participants_are_plain(void **state UNUSED)
{
    static const char *const sound[] = {"tag", "call-manager", "a.b_c", "0", "x9"};
    static const char *const odd[] = {"", "-a", ".", "Tag", "a b", "a\"b", "ä", "a/b"};
    for (size_t i = 0; i < COUNT_OF(sound); i++)
        assert_true(participant_name_is_sound(str_of(sound[i])));
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        assert_false(participant_name_is_sound(str_of(odd[i])));
    char longest[PARTICIPANT_NAME_MAX + 2];
    for (size_t i = 0; i < sizeof longest; i++)
        longest[i] = 'a';
    assert_true(participant_name_is_sound((struct str){longest, PARTICIPANT_NAME_MAX}));
    assert_false(participant_name_is_sound((struct str){longest, PARTICIPANT_NAME_MAX + 1}));
}

/* No connection is needed to say so, and none is there. */
static void receipts_that_name_nothing_are_not_expected(void **state UNUSED)
{
    assert_int_equal(cascade_receive(NULL, "no-id", "tag", true, 0, NULL, REPORTED_BY_SERVICE, clock_ns()),
                     ERR_MISSING);
    assert_int_equal(cascade_receive(NULL, "a0000000-0000-4000-8000-000000000001", "No Name", true, 0, NULL,
                                     REPORTED_BY_SERVICE, clock_ns()),
                     ERR_MISSING);
}

int main(void)
{
    const struct CMUnitTest promises[] = {cmocka_unit_test(names_of_participants_are_plain),
                                          cmocka_unit_test(receipts_that_name_nothing_are_not_expected)};
    return cmocka_run_group_tests(promises, NULL, NULL);
}
