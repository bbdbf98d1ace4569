#include "limits/refusals.h"

#include <pthread.h>
#include <string.h>

#include "../base/unit.h"
#include "base/clock.h"

static const struct limit five = {5, 60}, six = {6, 60};

static struct counted key_index_of(uint64_t n)
{
    struct counted c = {.tier = TIER_IP};
    struct digest key = {{0}};
    c.subject = digest_hmac(&key, (struct str){(const char *)&n, sizeof n});
    return c;
}

static void a_refusal_lasts_until_its_end_and_no_longer(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted c = key_index_of(1);
    assert_int_equal(refusals_until(r, &c, &five, 0), 0);
    refusals_add(r, &c, &five, 1000, 0);
    assert_int_equal(refusals_until(r, &c, &five, 0), 1000);
    assert_int_equal(refusals_until(r, &c, &five, 999), 1000);
    assert_int_equal(refusals_until(r, &c, &five, 1000), 0);
    refusals_free(r);
}

static void what_is_told_covers_the_doubt_about_the_end(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted c = key_index_of(1);
    assert_int_equal(refusals_wait(r, &c, &five, 0), 0);
    refusals_add(r, &c, &five, 1000, 30);
    assert_int_equal(refusals_wait(r, &c, &five, 900), 130);
    assert_int_equal(refusals_wait(r, &c, &five, 1000), 0);
    refusals_free(r);
}

static void a_clock_read_before_a_refusal_was_learnt_asks_for_no_more_than_the_window(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted c = key_index_of(1);
    refusals_add(r, &c, &five, 60 * NS_PER_S, 30); /* asked at 0, answered at 30 */
    assert_int_equal(refusals_wait(r, &c, &five, 30), 60 * NS_PER_S);
    assert_int_equal(refusals_wait(r, &c, &five, 29), 60 * NS_PER_S);
    assert_int_equal(refusals_wait(r, &c, &five, 31), 60 * NS_PER_S - 1);
    refusals_free(r);
}

static void another_limit_tier_or_subject_is_another_matter(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted c = key_index_of(1), stranger = key_index_of(2), probe = c;
    probe.tier = TIER_PROBE;
    refusals_add(r, &c, &five, 1000, 0);
    assert_int_equal(refusals_until(r, &c, &six, 0), 0);
    assert_int_equal(refusals_until(r, &probe, &five, 0), 0);
    assert_int_equal(refusals_until(r, &stranger, &five, 0), 0);
    refusals_free(r);
}

static void a_reset_forgets_one_subject_under_every_limit_and_null_forgets_all(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted a = key_index_of(1), b = key_index_of(2);
    refusals_add(r, &a, &five, 1000, 0);
    refusals_add(r, &a, &six, 1000, 0);
    refusals_add(r, &b, &five, 1000, 0);
    refusals_remove(r, &a);
    assert_int_equal(refusals_until(r, &a, &five, 0), 0);
    assert_int_equal(refusals_until(r, &a, &six, 0), 0);
    assert_int_equal(refusals_until(r, &b, &five, 0), 1000);
    refusals_remove(r, NULL);
    assert_int_equal(refusals_until(r, &b, &five, 0), 0);
    refusals_free(r);
}

static void a_flood_of_subjects_pushes_out_those_that_end_soonest(void **state UNUSED)
{
    struct refusals *r = refusals_new(1024);
    struct counted lasting = key_index_of(0);
    refusals_add(r, &lasting, &five, INT64_MAX, 0);
    for (uint64_t n = 1; n <= 100000; n++) {
        struct counted c = key_index_of(n);
        refusals_add(r, &c, &five, (int64_t)n, 0);
        assert_int_equal(refusals_until(r, &c, &five, 0), n);
    }
    assert_int_equal(refusals_until(r, &lasting, &five, 0), INT64_MAX);
    refusals_free(r);
}

static void *use_concurrently(void *r)
{
    for (uint64_t n = 0; n < 20000; n++) {
        struct counted c = key_index_of(n % 64);
        refusals_add(r, &c, &five, 1000, 0);
        int64_t until = refusals_until(r, &c, &five, 0);
        if (until != 0 && until != 1000)
            return r;
        if (n % 16 == 0)
            refusals_remove(r, n % 1024 ? &c : NULL);
    }
    return NULL;
}

static void threads_never_see_half_an_entry(void **state UNUSED)
{
    struct refusals *r = refusals_new(256);
    pthread_t threads[4];
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_concurrently, r), 0);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    refusals_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refusal_lasts_until_its_end_and_no_longer),
        cmocka_unit_test(what_is_told_covers_the_doubt_about_the_end),
        cmocka_unit_test(a_clock_read_before_a_refusal_was_learnt_asks_for_no_more_than_the_window),
        cmocka_unit_test(another_limit_tier_or_subject_is_another_matter),
        cmocka_unit_test(a_reset_forgets_one_subject_under_every_limit_and_null_forgets_all),
        cmocka_unit_test(a_flood_of_subjects_pushes_out_those_that_end_soonest),
        cmocka_unit_test(threads_never_see_half_an_entry),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
