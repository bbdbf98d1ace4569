#include "base/backoff.h"

#include "../base/unit.h"

static const struct backoff pause = {100, 5000};

static void a_pause_doubles_until_the_longest(void **state UNUSED)
{
    static const int64_t expected[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 5000};
    for (int failures = 0; failures < (int)COUNT_OF(expected); failures++)
        assert_int_equal(backoff_ns(pause, failures), expected[failures]);
    assert_int_equal(backoff_ns(pause, 1000000), 5000);
    assert_int_equal(backoff_ns(pause, -1), 0);
}

static void the_longest_also_bounds_the_first(void **state UNUSED)
{
    assert_int_equal(backoff_ns((struct backoff){100, 30}, 1), 30);
    assert_int_equal(backoff_ns((struct backoff){1, INT64_MAX}, 1000), INT64_MAX);
}

static void jitter_stays_within_half_of_it_either_way(void **state UNUSED)
{
    bool below = false, above = false;
    for (int i = 0; i < 2000; i++) {
        int64_t ns = backoff_jittered_ns(pause, 7);
        assert_in_range(ns, 2500, 7500);
        below |= ns < 4000;
        above |= ns > 6000;
    }
    assert_true(below && above);
    assert_int_equal(backoff_jittered_ns(pause, 0), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pause_doubles_until_the_longest),
        cmocka_unit_test(the_longest_also_bounds_the_first),
        cmocka_unit_test(jitter_stays_within_half_of_it_either_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
