#include "http/hold.h"

#include "../base/unit.h"
#include "base/clock.h"

static struct hold_rule rule_of(int64_t hold_ms, int64_t sigma_ms)
{
    struct hold_rule rule;
    atomic_init(&rule.hold_ms, hold_ms);
    atomic_init(&rule.sigma_ms, sigma_ms);
    return rule;
}

static void without_a_hold_answers_leave_when_ready(void **state UNUSED)
{
    struct hold_rule rule = rule_of(0, 25);
    struct hold none = hold_draw(&rule, 1000), absent = hold_draw(NULL, 1000);
    assert_int_equal(hold_release_ns(&none, 5000), 5000);
    assert_int_equal(hold_release_ns(&absent, 7000), 7000);
}

static void an_answer_leaves_at_its_instant_however_soon_it_is_ready(void **state UNUSED)
{
    struct hold_rule rule = rule_of(500, 0);
    struct hold hold = hold_draw(&rule, 1000);
    int64_t instant = 1000 + 500 * NS_PER_MS;
    assert_int_equal(hold_release_ns(&hold, 1000), instant);
    assert_int_equal(hold_release_ns(&hold, 1000 + 499 * NS_PER_MS), instant);
    assert_int_equal(hold_release_ns(&hold, instant), instant);
}

static void a_late_answer_leaves_whole_holds_after_its_instant(void **state UNUSED)
{
    struct hold_rule rule = rule_of(500, 0);
    struct hold hold = hold_draw(&rule, 0);
    int64_t step = 500 * NS_PER_MS;
    assert_int_equal(hold_release_ns(&hold, step + 1), 2 * step);
    assert_int_equal(hold_release_ns(&hold, 2 * step), 2 * step);
    assert_int_equal(hold_release_ns(&hold, 2 * step + 1), 3 * step);
    assert_int_equal(hold_release_ns(&hold, 60 * step + 7), 61 * step);
}

static void jitter_stays_within_two_sigma_and_moves_the_late_instants_too(void **state UNUSED)
{
    struct hold_rule rule = rule_of(500, 25);
    bool before = false, after = false;
    for (int i = 0; i < 10000; i++) {
        struct hold hold = hold_draw(&rule, 0);
        assert_in_range(hold.until_ns, 450 * NS_PER_MS, 550 * NS_PER_MS);
        before |= hold.until_ns < 495 * NS_PER_MS;
        after |= hold.until_ns > 505 * NS_PER_MS;
        assert_int_equal(hold_release_ns(&hold, hold.until_ns + 1), hold.until_ns + 500 * NS_PER_MS);
    }
    assert_true(before && after);
}

static void jitter_larger_than_the_hold_never_releases_before_arrival(void **state UNUSED)
{
    struct hold_rule rule = rule_of(1, 1000);
    for (int i = 0; i < 1000; i++)
        assert_true(hold_draw(&rule, 77).until_ns >= 77);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_hold_answers_leave_when_ready),
        cmocka_unit_test(an_answer_leaves_at_its_instant_however_soon_it_is_ready),
        cmocka_unit_test(a_late_answer_leaves_whole_holds_after_its_instant),
        cmocka_unit_test(jitter_stays_within_two_sigma_and_moves_the_late_instants_too),
        cmocka_unit_test(jitter_larger_than_the_hold_never_releases_before_arrival),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
