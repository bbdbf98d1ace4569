#include "base/buf.h"

#include "allocations.h"
#include "unit.h"

static void a_new_buffer_takes_no_memory(void **state UNUSED)
{
    fail_allocation(0);
    AUTO(buf) struct buf b = buf_new(100);
    assert_str(buf_str(&b), "");
    buf_addz(&b, "");
    buf_addz(&b, NULL);
    buf_add(&b, (struct str){NULL, 0});
    assert_int_equal(allocations, 0);
    assert_str(buf_str(&b), "");
}

static void what_is_added_stands_in_order(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(100);
    buf_addz(&b, "one");
    buf_add(&b, STR(", \0two"));
    buf_addf(&b, ", %s %d", "number", 3);
    struct str s = buf_str(&b);
    assert_int_equal(s.len, 19);
    assert_memory_equal(s.at, "one, \0two, number 3", 20);
}

static void it_grows_as_needed_and_keeps_its_bytes(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(1 << 20);
    for (int i = 0; i < 10000; i++)
        buf_addf(&b, "%05d,", i);
    assert_int_equal(b.failed, OK);
    assert_int_equal(b.len, 60000);
    for (int i = 0; i < 10000; i++) {
        char want[16];
        (void)snprintf(want, sizeof want, "%05d,", i);
        assert_memory_equal(b.at + (size_t)i * 6, want, 6);
    }
    assert_true(b.capacity <= 2 * 60000 + 2);
}

static void the_ceiling_is_reached_exactly_and_never_passed(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(100);
    for (int i = 0; i < 10; i++)
        buf_addz(&b, "0123456789");
    assert_int_equal(b.failed, OK);
    assert_int_equal(buf_str(&b).len, 100);
    assert_true(b.capacity <= 101);
    buf_addz(&b, "x");
    assert_int_equal(b.failed, ERR_MEMORY);
    assert_int_equal(b.len, 100);

    AUTO(buf) struct buf f = buf_new(100);
    buf_addf(&f, "%100d", 1);
    assert_int_equal(f.failed, OK);
    buf_addf(&f, "%d", 1);
    assert_int_equal(f.failed, ERR_MEMORY);
}

static void a_failure_sticks_and_no_half_is_handed_out(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(5);
    buf_addz(&b, "abc");
    buf_addz(&b, "defg");
    buf_addz(&b, "h");
    buf_addf(&b, "%d", 1);
    assert_int_equal(b.failed, ERR_MEMORY);
    assert_int_equal(b.len, 3);
    assert_absent(buf_str(&b));
}

static void clearing_forgets_the_failure_and_keeps_the_memory(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(5);
    buf_addz(&b, "abc");
    buf_addz(&b, "defg");
    fail_allocation(0);
    buf_clear(&b);
    assert_str(buf_str(&b), "");
    assert_string_equal(buf_str(&b).at, "");
    buf_addz(&b, "xyz");
    assert_str(buf_str(&b), "xyz");
    assert_int_equal(allocations, 0);
    struct buf untouched = buf_new(5);
    buf_clear(&untouched);
    assert_str(buf_str(&untouched), "");
}

static void a_freed_buffer_can_be_used_again(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(5);
    buf_addz(&b, "abcdef");
    buf_free(&b);
    buf_addz(&b, "abcde");
    assert_str(buf_str(&b), "abcde");
}

static void impossible_sizes_are_refused(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(SIZE_MAX);
    buf_addz(&b, "abc");
    buf_add(&b, (struct str){"x", SIZE_MAX - 4});
    assert_int_equal(b.failed, ERR_MEMORY);
    buf_clear(&b);
    buf_add(&b, (struct str){"x", PTRDIFF_MAX});
    assert_int_equal(b.failed, ERR_MEMORY);
    AUTO(buf) struct buf nothing = buf_new(0);
    buf_addz(&nothing, "");
    assert_int_equal(nothing.failed, OK);
    buf_addz(&nothing, "x");
    assert_int_equal(nothing.failed, ERR_MEMORY);
}

static void memory_of_the_callers_is_used_and_never_left(void **state UNUSED)
{
    char at[8] = "zzzzzzz";
    fail_allocation(0);
    struct buf b = buf_over(at, sizeof at);
    assert_str(buf_str(&b), "");
    buf_addz(&b, "abc");
    buf_addf(&b, "%s", "defg");
    assert_str(buf_str(&b), "abcdefg");
    assert_string_equal(at, "abcdefg");
    buf_addz(&b, "h");
    assert_int_equal(b.failed, ERR_MEMORY);
    assert_int_equal(allocations, 0);
}

static void each_failing_allocation_is_survived(void **state UNUSED)
{
    for (size_t number = 1;; number++) {
        fail_allocation(number);
        AUTO(buf) struct buf b = buf_new(1 << 20);
        for (int i = 0; i < 1000; i++) {
            buf_addz(&b, "some text");
            buf_addf(&b, "%d", i);
        }
        bool failed = allocations >= failing;
        fail_allocation(0);
        assert_int_equal(b.failed, failed ? ERR_MEMORY : OK);
        if (!failed)
            break;
        assert_true(number < 100);
    }
}

static void nothing_is_left_in_the_heap_by_growing_or_freeing(void **state UNUSED)
{
    secret_freed = false;
    secret_text = "correct horse battery";
    struct buf b = buf_new(10000);
    for (int i = 0; i < 100; i++)
        buf_addf(&b, "%s staple %d", secret_text, i);
    assert_int_equal(b.failed, OK);
    buf_free(&b);
    secret_text = NULL;
    assert_false(secret_freed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_buffer_takes_no_memory),
        cmocka_unit_test(what_is_added_stands_in_order),
        cmocka_unit_test(it_grows_as_needed_and_keeps_its_bytes),
        cmocka_unit_test(the_ceiling_is_reached_exactly_and_never_passed),
        cmocka_unit_test(a_failure_sticks_and_no_half_is_handed_out),
        cmocka_unit_test(clearing_forgets_the_failure_and_keeps_the_memory),
        cmocka_unit_test(a_freed_buffer_can_be_used_again),
        cmocka_unit_test(impossible_sizes_are_refused),
        cmocka_unit_test(memory_of_the_callers_is_used_and_never_left),
        cmocka_unit_test(each_failing_allocation_is_survived),
        cmocka_unit_test(nothing_is_left_in_the_heap_by_growing_or_freeing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
