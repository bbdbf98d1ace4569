#include "console/rates.h"

#include <string.h>

#include "../base/unit.h"

static const char *shown(struct rates *r, size_t count, size_t each)
{
    static char text[4096];
    struct buf out = buf_over(text, sizeof text);
    struct json_writer w = json_to(&out);
    rates_write(r, count, each, &w);
    assert_int_equal(out.failed, OK);
    return buf_str(&out).at;
}

static void the_newest_interval_is_last_and_means_are_of_seconds(void **state UNUSED)
{
    static struct rates r;
    rates_init(&r);
    assert_string_equal(shown(&r, 3, 2), "{\"step_seconds\":20,\"per_second\":[0,0,0]}");
    static const unsigned long long answered[] = {20, 40, 40, 41};
    for (size_t i = 0; i < COUNT_OF(answered); i++)
        rates_sample(&r, answered[i]);
    assert_string_equal(shown(&r, 3, 2), "{\"step_seconds\":20,\"per_second\":[0,2,0.05]}");
}

static void after_a_day_the_oldest_samples_are_overwritten(void **state UNUSED)
{
    static struct rates r;
    rates_init(&r);
    unsigned long long answered = 0;
    for (size_t i = 0; i < RATES_SAMPLES + 3; i++)
        rates_sample(&r, answered += i < 3 ? 1000 : 10);
    const char *day = shown(&r, 96, 90);
    assert_non_null(strstr(day, "[1,1,"));
    assert_null(strstr(day, "2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_interval_is_last_and_means_are_of_seconds),
        cmocka_unit_test(after_a_day_the_oldest_samples_are_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
