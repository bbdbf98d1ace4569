#include "base/random.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "unit.h"

#define DRAWS 20000

/* The bounds are at least six standard errors wide: a correct generator fails less than once in 10^8 runs. */

static void bytes_are_filled_to_the_last_and_not_beyond(void **state UNUSED)
{
    for (size_t len = 0; len <= 40; len++) {
        unsigned char touched[41] = {0};
        for (int round = 0; round < 64; round++) {
            unsigned char bytes[41] = {0};
            random_bytes(bytes, len);
            assert_int_equal(bytes[len], 0);
            for (size_t i = 0; i < len; i++)
                touched[i] |= bytes[i];
        }
        for (size_t i = 0; i < len; i++)
            assert_true(touched[i]);
    }
}

static void every_value_below_the_bound_comes_equally_often(void **state UNUSED)
{
    int seen[6] = {0};
    for (int i = 0; i < 6000; i++) {
        uint32_t n = random_below(6);
        assert_true(n < 6);
        seen[n]++;
    }
    for (int i = 0; i < 6; i++)
        assert_in_range(seen[i], 800, 1200);
    for (int i = 0; i < 100; i++)
        assert_int_equal(random_below(1), 0);
}

static void units_spread_over_zero_to_one(void **state UNUSED)
{
    double sum = 0;
    int low = 0, high = 0;
    for (int i = 0; i < DRAWS; i++) {
        double u = random_unit();
        assert_true(u >= 0 && u < 1);
        sum += u;
        low += u < 0.01;
        high += u >= 0.99;
    }
    assert_true(fabs(sum / DRAWS - 0.5) < 6 * 0.2887 / sqrt(DRAWS));
    assert_true(low > 0 && high > 0);
}

static void gauss_stays_within_the_cut_and_is_symmetric(void **state UNUSED)
{
    const double sigma = 40, cut = 2;
    double sum = 0, squares = 0;
    int above = 0, beyond_one = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = random_gauss(sigma, cut);
        assert_true(fabs(x) <= cut * sigma);
        sum += x;
        squares += x * x;
        above += x > 0;
        beyond_one += fabs(x) > sigma;
    }
    /* Cut at two sigma, the deviation is 0.8796 sigma and 28.5 % lie beyond one. */
    assert_true(fabs(sum / DRAWS) < 6 * sigma / sqrt(DRAWS));
    assert_true(fabs(sqrt(squares / DRAWS) / sigma - 0.8796) < 0.03);
    assert_true(fabs((double)above / DRAWS - 0.5) < 6 * 0.5 / sqrt(DRAWS));
    assert_true(fabs((double)beyond_one / DRAWS - 0.285) < 6 * 0.4514 / sqrt(DRAWS));
}

static void a_wide_cut_leaves_the_bell_alone(void **state UNUSED)
{
    double squares = 0;
    int beyond_two = 0;
    for (int i = 0; i < DRAWS; i++) {
        double x = random_gauss(1, 8);
        squares += x * x;
        beyond_two += fabs(x) > 2;
    }
    assert_true(fabs(sqrt(squares / DRAWS) - 1) < 0.04);
    assert_true(fabs((double)beyond_two / DRAWS - 0.0455) < 6 * 0.2084 / sqrt(DRAWS));
}

static void no_spread_gives_zero(void **state UNUSED)
{
    assert_true(random_gauss(0, 3) == 0);
    assert_true(random_gauss(5, 0) == 0);
    assert_true(random_gauss(NAN, 3) == 0);
    assert_true(random_gauss(5, NAN) == 0);
}

static void uuids_are_version_4_and_differ(void **state UNUSED)
{
    char before[37] = "";
    for (int i = 0; i < 1000; i++) {
        char uuid[37];
        random_uuid(uuid);
        assert_true(str_is_uuid(str_of(uuid)));
        assert_int_equal(uuid[14], '4');
        assert_non_null(strchr("89ab", uuid[19]));
        for (const char *c = uuid; *c; c++)
            assert_false(*c >= 'A' && *c <= 'F');
        assert_string_not_equal(uuid, before);
        memcpy(before, uuid, sizeof before);
    }
}

static void *draw(void *into)
{
    random_bytes(into, 16);
    return NULL;
}

static void threads_that_begin_together_draw_different_bytes(void **state UNUSED)
{
    char drawn[8][16];
    pthread_t threads[8];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, draw, drawn[i]), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(drawn[i], drawn[j], 16);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_that_begin_together_draw_different_bytes), /* first, so that they race to begin */
        cmocka_unit_test(bytes_are_filled_to_the_last_and_not_beyond),
        cmocka_unit_test(every_value_below_the_bound_comes_equally_often),
        cmocka_unit_test(units_spread_over_zero_to_one),
        cmocka_unit_test(gauss_stays_within_the_cut_and_is_symmetric),
        cmocka_unit_test(a_wide_cut_leaves_the_bell_alone),
        cmocka_unit_test(no_spread_gives_zero),
        cmocka_unit_test(uuids_are_version_4_and_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
