#include "base/expiring_cache.h"

#include <string.h>

#include "../base/unit.h"
#include "base/clock.h"

static struct digest key_of(uint64_t n)
{
    struct digest hash_key = {{0}};
    return digest_hmac(&hash_key, (struct str){(const char *)&n, sizeof n});
}

static void put(struct expiring_cache *cache, uint64_t n, uint64_t value, int64_t until_ns)
{
    struct digest key = key_of(n);
    expiring_cache_put(cache, 1, &key, &value, INT64_MAX, until_ns);
}

static bool has(struct expiring_cache *cache, uint64_t n, int64_t now_ns, uint64_t *ret)
{
    struct digest key = key_of(n);
    return expiring_cache_find(cache, 1, &key, now_ns, ret) != 0;
}

static void a_value_is_found_until_its_end(void **state UNUSED)
{
    struct expiring_cache *cache = expiring_cache_new(64, sizeof(uint64_t));
    uint64_t value = 0;
    assert_false(has(cache, 1, 0, &value));
    put(cache, 1, 42, 1000);
    assert_true(has(cache, 1, 999, &value));
    assert_int_equal(value, 42);
    assert_false(has(cache, 1, 1000, &value));
    put(cache, 1, 43, 2000);
    assert_true(has(cache, 1, 1000, &value));
    assert_int_equal(value, 43);
    expiring_cache_free(cache);
}

static void the_same_key_of_another_kind_is_another_entry(void **state UNUSED)
{
    struct expiring_cache *cache = expiring_cache_new(64, sizeof(uint64_t));
    struct digest key = key_of(1);
    uint64_t value = 7, got = 0;
    expiring_cache_put(cache, 1, &key, &value, INT64_MAX, 1000);
    assert_int_equal(expiring_cache_find(cache, 2, &key, 0, &got), 0);
    expiring_cache_remove(cache, 2, &key);
    assert_int_equal(expiring_cache_find(cache, 1, &key, 0, &got), 1000);
    expiring_cache_free(cache);
}

static void a_look_up_that_began_before_a_removal_adds_nothing(void **state UNUSED)
{
    struct expiring_cache *cache = expiring_cache_new(64, sizeof(uint64_t));
    struct digest key = key_of(1);
    uint64_t value = 7, got = 0;
    int64_t asked_ns = clock_ns();
    expiring_cache_remove(cache, 1, &key);
    expiring_cache_put(cache, 1, &key, &value, asked_ns, INT64_MAX);
    assert_int_equal(expiring_cache_find(cache, 1, &key, 0, &got), 0);
    while (clock_ns() == asked_ns)
        ;
    expiring_cache_put(cache, 1, &key, &value, clock_ns() + 1, INT64_MAX);
    assert_int_equal(expiring_cache_find(cache, 1, &key, 0, &got), INT64_MAX);
    expiring_cache_free(cache);
}

static bool is_odd(void *context UNUSED, int kind UNUSED, const void *value)
{
    uint64_t n;
    memcpy(&n, value, sizeof n);
    return n % 2;
}

static void chosen_entries_are_removed_or_all(void **state UNUSED)
{
    struct expiring_cache *cache = expiring_cache_new(4096, sizeof(uint64_t));
    uint64_t value;
    for (uint64_t n = 0; n < 100; n++)
        put(cache, n, n, INT64_MAX);
    expiring_cache_remove_where(cache, is_odd, NULL);
    for (uint64_t n = 0; n < 100; n++)
        assert_int_equal(has(cache, n, 0, &value), n % 2 == 0);
    expiring_cache_remove_where(cache, NULL, NULL);
    for (uint64_t n = 0; n < 100; n++)
        assert_false(has(cache, n, 0, &value));
    expiring_cache_free(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_value_is_found_until_its_end),
        cmocka_unit_test(the_same_key_of_another_kind_is_another_entry),
        cmocka_unit_test(a_look_up_that_began_before_a_removal_adds_nothing),
        cmocka_unit_test(chosen_entries_are_removed_or_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
