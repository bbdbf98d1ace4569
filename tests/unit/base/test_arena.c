#include "base/arena.h"

#include <stdalign.h>

#include "allocations.h"
#include "unit.h"

static const char zeros[5000];

static bool all_zero(const char *at, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (at[i])
            return false;
    }
    return true;
}

static void a_small_request_costs_one_allocation_and_tens_of_bytes(void **state UNUSED)
{
    fail_allocation(0);
    AUTO(arena) struct arena *a = arena_new(1024, 65536);
    assert_non_null(a);
    size_t taken = 0;
    while (taken < 1024) {
        assert_non_null(arena_take(a, 64));
        taken += 64;
    }
    assert_int_equal(allocations, 1);
    assert_int_equal(arena_used(a), 1024);
    assert_true(arena_held(a) <= 1024 + 64);
    assert_non_null(arena_take(a, 1));
    assert_int_equal(allocations, 2);
}

static void memory_comes_zeroed_and_aligned_for_any_type(void **state UNUSED)
{
    (void)mallopt(M_PERTURB, 0x5A);
    AUTO(arena) struct arena *a = arena_new(100, 1 << 20);
    assert_non_null(a);
    for (size_t size = 0; size < 300; size++) {
        char *at = arena_take(a, size);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % alignof(max_align_t), 0);
        assert_true(all_zero(at, size));
        memset(at, 0xFF, size);
    }
    (void)mallopt(M_PERTURB, 0);
}

static void what_was_handed_out_never_overlaps(void **state UNUSED)
{
    struct taken {
        struct taken *next;
        unsigned char *bytes;
        size_t len;
        unsigned char filling;
    } *all = NULL;
    uint64_t numbers = 88172645463325252;
    AUTO(arena) struct arena *a = arena_new(256, 1 << 22);
    assert_non_null(a);
    for (int i = 0; i < 3000; i++) {
        struct taken *t = arena_take(a, sizeof *t);
        assert_non_null(t);
        t->len = number_below(&numbers, i % 100 == 0 ? 9000 : 120);
        t->filling = (unsigned char)i;
        t->bytes = arena_take(a, t->len);
        assert_non_null(t->bytes);
        memset(t->bytes, t->filling, t->len);
        assert_str(arena_copy(a, STR("between")), "between");
        t->next = all;
        all = t;
    }
    for (const struct taken *t = all; t; t = t->next) {
        for (size_t i = 0; i < t->len; i++)
            assert_int_equal(t->bytes[i], t->filling);
    }
}

static void the_ceiling_holds(void **state UNUSED)
{
    for (size_t ceiling = 64; ceiling < 5000; ceiling += ceiling < 600 ? 1 : 97) {
        for (size_t size = 1; size < 5000; size = size * 3 + 1) {
            AUTO(arena) struct arena *a = arena_new(64, ceiling);
            assert_non_null(a);
            size_t overhead = arena_held(a) - 64;
            size_t most = 10000;
            while (most > 0 && arena_copy(a, (struct str){zeros, size - 1}).at)
                most--;
            assert_true(most > 0);
            assert_true(arena_held(a) <= ceiling + overhead);
            assert_true(arena_used(a) <= ceiling);
        }
    }
}

static void the_whole_ceiling_can_come_with_the_arena(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(1024, 1024);
    assert_non_null(a);
    assert_non_null(arena_take(a, 1024));
    assert_null(arena_take(a, 1));
    AUTO(arena) struct arena *b = arena_new(4096, 1024);
    assert_non_null(b);
    assert_null(arena_take(b, 1025));
}

static void a_refusal_leaves_the_arena_usable(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(128, 1024);
    assert_non_null(a);
    assert_null(arena_take(a, 2000));
    assert_absent(arena_printf(a, "%2000d", 1));
    assert_non_null(arena_take(a, 128));
    assert_non_null(arena_take(a, 256));
}

static void impossible_sizes_are_refused(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(64, SIZE_MAX);
    assert_non_null(a);
    assert_null(arena_take(a, SIZE_MAX));
    assert_null(arena_take(a, SIZE_MAX - 15));
    assert_null(arena_take(a, PTRDIFF_MAX));
    assert_absent(arena_copy(a, (struct str){"x", SIZE_MAX}));
    assert_non_null(arena_take(a, 64));
}

static void a_large_take_does_not_waste_what_is_left(void **state UNUSED)
{
    fail_allocation(0);
    AUTO(arena) struct arena *a = arena_new(1024, 1 << 20);
    assert_non_null(a);
    assert_non_null(arena_take(a, 16));
    assert_non_null(arena_take(a, 100000));
    size_t held = arena_held(a);
    assert_non_null(arena_take(a, 1024 - 16));
    assert_int_equal(arena_held(a), held);
    assert_int_equal(allocations, 2);
}

static void copies_are_c_strings_too(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(64, 4096);
    assert_non_null(a);
    struct str s = arena_copy(a, (struct str){"abcdef", 3});
    assert_str(s, "abc");
    assert_string_equal(s.at, "abc");
    s = arena_copy(a, STR(""));
    assert_str(s, "");
    assert_string_equal(s.at, "");
    s = arena_copy(a, STR("a\0b"));
    assert_int_equal(s.len, 3);
    assert_memory_equal(s.at, "a\0b", 4);
    assert_absent(arena_copy(a, (struct str){NULL, 0}));
}

static void strings_are_packed(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(64, 64);
    assert_non_null(a);
    for (int i = 0; i < 16; i++)
        assert_str(arena_copy(a, STR("abc")), "abc");
    assert_int_equal(arena_used(a), 64);
    assert_absent(arena_copy(a, STR("")));
}

static void text_is_formatted_to_any_length(void **state UNUSED)
{
    AUTO(arena) struct arena *a = arena_new(64, 65536);
    assert_non_null(a);
    assert_str(arena_printf(a, "%s-%d", "x", 7), "x-7");
    struct str s = arena_printf(a, "%5000d", 7);
    assert_int_equal(s.len, 5000);
    assert_int_equal(s.at[4999], '7');
    assert_int_equal(s.at[5000], '\0');
}

static void each_failing_allocation_is_survived(void **state UNUSED)
{
    for (size_t number = 1;; number++) {
        fail_allocation(number);
        AUTO(arena) struct arena *a = arena_new(64, 1 << 20);
        bool refused = !a;
        for (size_t size = 1; a && size < 20000; size *= 2) {
            char *at = arena_take(a, size);
            refused |= !at;
            if (at)
                memset(at, 1, size);
            refused |= !arena_copy(a, STR("some text to copy")).at;
            refused |= !arena_printf(a, "%100d", 1).at;
        }
        bool failed = allocations >= failing;
        fail_allocation(0);
        assert_int_equal(refused, failed);
        if (!failed)
            break;
        assert_true(number < 100);
    }
}

static void nothing_of_a_request_is_left_in_the_heap(void **state UNUSED)
{
    secret_freed = false;
    secret_text = "correct horse battery";
    struct arena *a = arena_new(64, 65536);
    assert_non_null(a);
    for (int i = 0; i < 100; i++)
        assert_non_null(arena_printf(a, "%s staple %d", secret_text, i).at);
    arena_free(a);
    secret_text = NULL;
    assert_false(secret_freed);
}

static void freeing_nothing_is_fine(void **state UNUSED)
{
    arena_free(NULL);
    AUTO(arena) struct arena *a UNUSED = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_request_costs_one_allocation_and_tens_of_bytes),
        cmocka_unit_test(memory_comes_zeroed_and_aligned_for_any_type),
        cmocka_unit_test(what_was_handed_out_never_overlaps),
        cmocka_unit_test(the_ceiling_holds),
        cmocka_unit_test(the_whole_ceiling_can_come_with_the_arena),
        cmocka_unit_test(a_refusal_leaves_the_arena_usable),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(a_large_take_does_not_waste_what_is_left),
        cmocka_unit_test(copies_are_c_strings_too),
        cmocka_unit_test(strings_are_packed),
        cmocka_unit_test(text_is_formatted_to_any_length),
        cmocka_unit_test(each_failing_allocation_is_survived),
        cmocka_unit_test(nothing_of_a_request_is_left_in_the_heap),
        cmocka_unit_test(freeing_nothing_is_fine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
