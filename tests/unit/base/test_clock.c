#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

#define DAY (86400 * NS_PER_S)

static void time_goes_forward(void **state UNUSED)
{
    int64_t before = clock_ns();
    for (int i = 0; i < 1000; i++) {
        int64_t now = clock_ns();
        assert_true(now >= before);
        before = now;
    }
    assert_true(clock_wall_us() > INT64_C(1700000000000000));
}

/* The clocks advance between two readings, so a shift is checked against a lower and an upper bound. */
static void a_shift_moves_both_clocks_either_way(void **state UNUSED)
{
    const int64_t shifts[] = {3600 * NS_PER_S, -7200 * NS_PER_S, 3600 * NS_PER_S, 400 * DAY, -400 * DAY};
    for (size_t i = 0; i < COUNT_OF(shifts); i++) {
        int64_t mono = clock_ns(), wall = clock_wall_us();
        clock_shift(shifts[i]);
        int64_t mono_by = clock_ns() - mono - shifts[i];
        int64_t wall_by = clock_wall_us() - wall - shifts[i] / NS_PER_US;
        assert_true(mono_by >= 0 && mono_by < 1800 * NS_PER_S);
        assert_true(wall_by >= -1 && wall_by < 1800 * INT64_C(1000000));
    }
}

static void the_clock_of_a_sandbox_is_ahead_of_the_real_one_alone(void **state UNUSED)
{
    const int64_t shift_us = 30 * DAY / NS_PER_US;
    assert_false(clock_is_sandbox());
    assert_int_equal(clock_sandbox_shift_ms(), 0);
    int64_t mono = clock_ns(), wall = clock_wall_us();
    clock_note_sandbox(true, shift_us);
    assert_true(clock_is_sandbox());
    assert_int_equal(clock_sandbox_shift_ms(), shift_us / 1000);
    assert_true(clock_ns() - mono < DAY);
    assert_true(clock_wall_us() - wall < DAY / NS_PER_US);
    int64_t ahead = clock_installation_us() - wall - shift_us;
    assert_true(ahead >= 0 && ahead < DAY / NS_PER_US);
    clock_note_sandbox(false, 0);
    assert_true(clock_installation_us() - wall < DAY / NS_PER_US);
}

#define SHIFTS 500000

static pthread_barrier_t together;

static void *shift_many_times(void *by_ns)
{
    (void)pthread_barrier_wait(&together);
    for (int i = 0; i < SHIFTS; i++)
        clock_shift(*(const int64_t *)by_ns);
    (void)clock_ns();
    (void)clock_wall_us();
    return NULL;
}

static void no_shift_is_lost_between_threads(void **state UNUSED)
{
    int64_t by_ns = 60 * NS_PER_S;
    int64_t before = clock_ns();
    pthread_t threads[4];
    assert_int_equal(pthread_barrier_init(&together, NULL, COUNT_OF(threads)), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, shift_many_times, &by_ns), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&together), 0);
    int64_t extra = clock_ns() - before - INT64_C(4) * SHIFTS * by_ns;
    clock_shift(-INT64_C(4) * SHIFTS * by_ns);
    assert_true(extra >= 0 && extra < 1800 * NS_PER_S);
}

static int64_t ns_of(struct timespec t)
{
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void sleepers_get_the_instant_of_the_systems_clock(void **state UNUSED)
{
    const int64_t by_ns = -3600 * NS_PER_S;
    clock_shift(by_ns);
    int64_t at_ns = clock_ns() + 1;
    struct timespec now, at = clock_unshifted(at_ns);
    assert_int_equal(clock_gettime(CLOCK_MONOTONIC, &now), 0);
    assert_true(ns_of(at) == at_ns - by_ns);
    assert_true(ns_of(at) - 1 <= ns_of(now));
    assert_true(ns_of(clock_unshifted(INT64_MAX)) == INT64_MAX);
    assert_true(ns_of(clock_unshifted(INT64_MIN)) == 0);
    clock_shift(-2 * by_ns);
    assert_true(ns_of(clock_unshifted(INT64_MAX)) == INT64_MAX + by_ns);
    assert_true(ns_of(clock_unshifted(INT64_MIN)) == 0);
    clock_shift(by_ns);
}

static void milliseconds_left_are_rounded_up(void **state UNUSED)
{
    for (int i = 0; i < 1000; i++) {
        int64_t before = clock_ns(), deadline = before + 50 * NS_PER_MS + INT64_C(997) * i;
        int ms = clock_ms_until(deadline, 1000);
        int64_t after = clock_ns();
        assert_true(ms <= (deadline - before + NS_PER_MS - 1) / NS_PER_MS);
        assert_true(ms * NS_PER_MS >= deadline - after);
    }
}

static void milliseconds_left_are_bounded(void **state UNUSED)
{
    assert_int_equal(clock_ms_until(clock_ns(), 1000), 0);
    assert_int_equal(clock_ms_until(0, 1000), 0);
    assert_int_equal(clock_ms_until(INT64_MIN, 1000), 0);
    assert_int_equal(clock_ms_until(INT64_MAX, 1000), 1000);
    assert_int_equal(clock_ms_until(clock_ns() + 3600 * NS_PER_S, 1000), 1000);
    assert_int_equal(clock_ms_until(clock_ns() + 3600 * NS_PER_S, 0), 0);
    /* A clock shifted to before its start. */
    const int64_t back_ns = -1000 * DAY;
    clock_shift(back_ns);
    assert_int_equal(clock_ms_until(INT64_MAX, 1000), 1000);
    clock_shift(-back_ns);
}

static void times_are_written_for_people(void **state UNUSED)
{
    const struct {
        int64_t us;
        const char *text;
    } table[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {999, "1970-01-01T00:00:00.000Z"},
        {1000, "1970-01-01T00:00:00.001Z"},
        {1773835200123999, "2026-03-18T12:00:00.123Z"},
        {1709251199999999, "2024-02-29T23:59:59.999Z"},
        {-1, "1969-12-31T23:59:59.999Z"},
        {-1000000, "1969-12-31T23:59:59.000Z"},
        {253402300799999999, "9999-12-31T23:59:59.999Z"},
        {253402300800000000, "9999-12-31T23:59:59.999Z"},
        {INT64_MAX, "9999-12-31T23:59:59.999Z"},
        {-62167219200000000, "0000-01-01T00:00:00.000Z"},
        {INT64_MIN, "0000-01-01T00:00:00.000Z"},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        char text[25];
        memset(text, 'x', sizeof text);
        clock_format_ms(table[i].us, text);
        assert_int_equal(text[24], '\0');
        assert_string_equal(text, table[i].text);
    }
}

static void microseconds_are_written_as_the_api_has_them(void **state UNUSED)
{
    char text[28];
    clock_format_us(INT64_C(1771243200000001), text);
    assert_string_equal(text, "2026-02-16T12:00:00.000001Z");
    clock_format_us(-1, text);
    assert_string_equal(text, "1969-12-31T23:59:59.999999Z");
    clock_format_us(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999999Z");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_goes_forward),
        cmocka_unit_test(microseconds_are_written_as_the_api_has_them),
        cmocka_unit_test(a_shift_moves_both_clocks_either_way),
        cmocka_unit_test(the_clock_of_a_sandbox_is_ahead_of_the_real_one_alone),
        cmocka_unit_test(no_shift_is_lost_between_threads),
        cmocka_unit_test(sleepers_get_the_instant_of_the_systems_clock),
        cmocka_unit_test(milliseconds_left_are_rounded_up),
        cmocka_unit_test(milliseconds_left_are_bounded),
        cmocka_unit_test(times_are_written_for_people),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
