#include "base/wheel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#define TICK 1000

static struct wheel wheel; /* too large for some stacks */

static void an_entry_comes_out_at_the_first_tick_at_or_after_its_time(void **state UNUSED)
{
    struct wheel_entry a = {0}, b = {0}, c = {0};
    wheel_init(&wheel, TICK, 500);
    wheel_add(&wheel, &a, 1000);
    wheel_add(&wheel, &b, 1001);
    wheel_add(&wheel, &c, 2000);
    assert_null(wheel_expire(&wheel, 999));
    assert_ptr_equal(wheel_expire(&wheel, 1000), &a);
    assert_null(wheel_expire(&wheel, 1999));
    assert_ptr_equal(wheel_expire(&wheel, 2000), &b);
    assert_ptr_equal(wheel_expire(&wheel, 2000), &c);
    assert_null(wheel_expire(&wheel, 1 << 30));
    assert_int_equal(wheel.count, 0);
}

static void what_is_added_late_is_due_at_once(void **state UNUSED)
{
    struct wheel_entry a = {0}, b = {0};
    wheel_init(&wheel, TICK, 50000);
    wheel_add(&wheel, &a, 49000);
    wheel_add(&wheel, &b, INT64_MIN);
    assert_true(wheel_next_ns(&wheel) <= 50000);
    assert_ptr_equal(wheel_expire(&wheel, 50000), &a);
    assert_ptr_equal(wheel_expire(&wheel, 50000), &b);
}

static void an_entry_knows_whether_it_is_on_a_wheel(void **state UNUSED)
{
    struct wheel_entry a = {0};
    wheel_init(&wheel, TICK, 0);
    assert_false(wheel_holds(&a));
    wheel_cancel(&wheel, &a);
    wheel_add(&wheel, &a, 5000);
    assert_true(wheel_holds(&a));
    wheel_cancel(&wheel, &a);
    assert_false(wheel_holds(&a));
    assert_int_equal(wheel.count, 0);
    wheel_add(&wheel, &a, 5000);
    assert_ptr_equal(wheel_expire(&wheel, 5000), &a);
    assert_false(wheel_holds(&a));
    wheel_cancel(&wheel, &a);
    assert_int_equal(wheel.count, 0);
    assert_true(wheel_next_ns(&wheel) == INT64_MAX);
}

static void adding_again_moves(void **state UNUSED)
{
    struct wheel_entry a = {0};
    wheel_init(&wheel, TICK, 0);
    wheel_add(&wheel, &a, 5000);
    wheel_add(&wheel, &a, 9000);
    assert_int_equal(wheel.count, 1);
    assert_null(wheel_expire(&wheel, 8999));
    wheel_add(&wheel, &a, 1);
    wheel_add(&wheel, &a, 10000);
    assert_null(wheel_expire(&wheel, 9999));
    assert_ptr_equal(wheel_expire(&wheel, 10000), &a);
}

static void an_entry_turns_ahead_waits_for_its_turn(void **state UNUSED)
{
    const int64_t turn = (int64_t)WHEEL_SLOTS * TICK;
    struct wheel_entry near = {0}, far = {0};
    wheel_init(&wheel, TICK, 0);
    wheel_add(&wheel, &far, 3 * turn + 5000);
    wheel_add(&wheel, &near, 5000);
    assert_ptr_equal(wheel_expire(&wheel, 5000), &near);
    for (int64_t now = 5000; now < 3 * turn + 5000; now += INT64_C(7) * TICK)
        assert_null(wheel_expire(&wheel, now));
    assert_ptr_equal(wheel_expire(&wheel, 3 * turn + 5000), &far);
}

static void a_clock_that_jumps_back_hands_out_nothing_early(void **state UNUSED)
{
    struct wheel_entry a = {0}, b = {0}, c = {0};
    wheel_init(&wheel, TICK, 0);
    wheel_add(&wheel, &a, 5000);
    wheel_add(&wheel, &b, 6000);
    assert_ptr_equal(wheel_expire(&wheel, 100000), &a);
    assert_null(wheel_expire(&wheel, 2000)); /* b was due, and is no longer */
    wheel_add(&wheel, &c, 4000);
    assert_null(wheel_expire(&wheel, 3999));
    assert_ptr_equal(wheel_expire(&wheel, 4000), &c);
    assert_null(wheel_expire(&wheel, 5999));
    assert_ptr_equal(wheel_expire(&wheel, 6000), &b);
}

static void a_clock_that_jumps_ages_ahead_costs_one_turn(void **state UNUSED)
{
    struct wheel_entry a = {0}, never = {0};
    wheel_init(&wheel, 1, INT64_MIN);
    wheel_add(&wheel, &a, 0);
    wheel_add(&wheel, &never, INT64_MAX);
    assert_ptr_equal(wheel_expire(&wheel, INT64_MAX - 1), &a);
    assert_null(wheel_expire(&wheel, INT64_MAX - 1));
    assert_true(wheel_next_ns(&wheel) == INT64_MAX);
    assert_null(wheel_expire(&wheel, INT64_MIN));
    assert_ptr_equal(wheel_expire(&wheel, INT64_MAX), &never);
}

static void the_next_time_is_a_turn_ahead_at_most(void **state UNUSED)
{
    const int64_t turn = (int64_t)WHEEL_SLOTS * TICK;
    struct wheel_entry a = {0};
    wheel_init(&wheel, TICK, 0);
    assert_true(wheel_next_ns(&wheel) == INT64_MAX);
    wheel_add(&wheel, &a, 4001);
    assert_true(wheel_next_ns(&wheel) == 5000);
    wheel_add(&wheel, &a, turn);
    assert_true(wheel_next_ns(&wheel) == turn);
    wheel_add(&wheel, &a, 10 * turn + 3000);
    assert_true(wheel_next_ns(&wheel) == 3000);
    assert_null(wheel_expire(&wheel, 3000));
    assert_true(wheel_next_ns(&wheel) == turn + 3000);
    wheel_cancel(&wheel, &a);
    assert_true(wheel_next_ns(&wheel) == INT64_MAX);
}

static void entries_may_be_added_and_cancelled_while_others_come_out(void **state UNUSED)
{
    struct wheel_entry a = {0}, b = {0}, c = {0}, d = {0};
    wheel_init(&wheel, TICK, 0);
    wheel_add(&wheel, &a, 1000);
    wheel_add(&wheel, &b, 1000);
    wheel_add(&wheel, &c, 1000);
    assert_ptr_equal(wheel_expire(&wheel, 1000), &a);
    wheel_cancel(&wheel, &b);
    wheel_add(&wheel, &d, 500);
    wheel_add(&wheel, &a, 1500);
    assert_ptr_equal(wheel_expire(&wheel, 1000), &c);
    assert_ptr_equal(wheel_expire(&wheel, 1000), &d);
    assert_null(wheel_expire(&wheel, 1999));
    assert_ptr_equal(wheel_expire(&wheel, 2000), &a);
}

/* A simple reference model: every waiting entry is checked one by one. */
#define WAITING 300

struct model {
    struct wheel_entry entries[WAITING];
    bool waits[WAITING];
    int64_t due_ns[WAITING];
    int64_t tick_ns, now_ns;
    size_t count;
};

static int64_t tick_rounded_up(const struct model *m, int64_t ns)
{
    int64_t rest = ns % m->tick_ns;
    return rest > 0 ? ns - rest + m->tick_ns : ns - rest;
}

static bool is_due(const struct model *m, size_t i)
{
    return tick_rounded_up(m, m->due_ns[i]) <= m->now_ns;
}

static void model_add(struct model *m, size_t i, int64_t due_ns)
{
    m->count += !m->waits[i];
    m->waits[i] = true;
    m->due_ns[i] = due_ns;
    wheel_add(&wheel, &m->entries[i], due_ns);
}

static void model_cancel(struct model *m, size_t i)
{
    m->count -= m->waits[i];
    m->waits[i] = false;
    wheel_cancel(&wheel, &m->entries[i]);
}

/* Expires up to `most` entries; each must be due, and if there are fewer, no due entry may remain. */
static void model_expire(struct model *m, size_t most)
{
    while (most-- > 0) {
        struct wheel_entry *entry = wheel_expire(&wheel, m->now_ns);
        if (!entry) {
            for (size_t i = 0; i < WAITING; i++) {
                if (m->waits[i] && is_due(m, i))
                    fail_msg("due at %" PRId64 " and kept at %" PRId64, m->due_ns[i], m->now_ns);
            }
            return;
        }
        size_t i = (size_t)(entry - m->entries);
        assert_true(m->waits[i]);
        if (!is_due(m, i))
            fail_msg("due at %" PRId64 " and handed out at %" PRId64, m->due_ns[i], m->now_ns);
        m->waits[i] = false;
        m->count--;
    }
}

static void check_next(const struct model *m)
{
    int64_t next = wheel_next_ns(&wheel), earliest = INT64_MAX;
    for (size_t i = 0; i < WAITING; i++) {
        assert_int_equal(wheel_holds(&m->entries[i]), m->waits[i]);
        if (m->waits[i] && tick_rounded_up(m, m->due_ns[i]) < earliest)
            earliest = tick_rounded_up(m, m->due_ns[i]);
    }
    assert_int_equal(wheel.count, m->count);
    if (m->count == 0) {
        assert_true(next == INT64_MAX);
        return;
    }
    assert_true(next <= earliest);
    assert_true(next <= m->now_ns + WHEEL_SLOTS * m->tick_ns);
    if (earliest > m->now_ns)
        assert_true(next > m->now_ns); /* otherwise the owner would wake repeatedly without work */
}

static int64_t some_time(uint64_t *numbers, const struct model *m)
{
    const int64_t turn = WHEEL_SLOTS * m->tick_ns;
    switch (number_below(numbers, 6)) {
    case 0:
        return (int64_t)number_below(numbers, (uint64_t)m->tick_ns * 3);
    case 1:
        return (int64_t)number_below(numbers, (uint64_t)turn * 20);
    case 2:
        return turn * (int64_t)number_below(numbers, 4);
    case 3:
        return m->tick_ns * (int64_t)number_below(numbers, 50);
    default:
        return (int64_t)number_below(numbers, (uint64_t)turn);
    }
}

static void play(struct model *m, uint64_t *numbers)
{
    size_t i = number_below(numbers, WAITING);
    uint64_t what = number_below(numbers, 100);
    if (what < 45) {
        model_add(m, i, m->now_ns + some_time(numbers, m));
    } else if (what < 50) {
        model_add(m, i, m->now_ns - some_time(numbers, m));
    } else if (what < 60) {
        model_cancel(m, i);
    } else if (what < 70) {
        model_expire(m, number_below(numbers, 5));
    } else {
        if (what < 74)
            m->now_ns -= some_time(numbers, m);
        else if (what < 75)
            m->now_ns += INT64_C(1) << number_below(numbers, 50);
        else if (what < 85)
            m->now_ns += (int64_t)number_below(numbers, (uint64_t)m->tick_ns * 2);
        else
            m->now_ns += some_time(numbers, m) / 8;
        model_expire(m, SIZE_MAX);
        check_next(m);
    }
}

static void it_agrees_with_a_plain_list_whatever_happens(void **state UNUSED)
{
    const int64_t ticks[] = {1, 7, 1000, 4000000};
    const int64_t begins[] = {0, -50000, INT64_C(1) << 60};
    uint64_t numbers = 88172645463325252;
    static struct model m;
    for (size_t round = 0; round < COUNT_OF(ticks) * COUNT_OF(begins); round++) {
        m = (struct model){.tick_ns = ticks[round % COUNT_OF(ticks)], .now_ns = begins[round % COUNT_OF(begins)]};
        wheel_init(&wheel, m.tick_ns, m.now_ns);
        for (int step = 0; step < 20000; step++)
            play(&m, &numbers);
        m.now_ns = INT64_MAX - m.tick_ns;
        model_expire(&m, SIZE_MAX);
        assert_int_equal(m.count, 0);
        check_next(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_comes_out_at_the_first_tick_at_or_after_its_time),
        cmocka_unit_test(what_is_added_late_is_due_at_once),
        cmocka_unit_test(an_entry_knows_whether_it_is_on_a_wheel),
        cmocka_unit_test(adding_again_moves),
        cmocka_unit_test(an_entry_turns_ahead_waits_for_its_turn),
        cmocka_unit_test(a_clock_that_jumps_back_hands_out_nothing_early),
        cmocka_unit_test(a_clock_that_jumps_ages_ahead_costs_one_turn),
        cmocka_unit_test(the_next_time_is_a_turn_ahead_at_most),
        cmocka_unit_test(entries_may_be_added_and_cancelled_while_others_come_out),
        cmocka_unit_test(it_agrees_with_a_plain_list_whatever_happens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
