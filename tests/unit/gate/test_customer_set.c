#include "gate/customer_set.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "../base/unit.h"

static struct customer_id id_number(uint64_t n)
{
    return (struct customer_id){n * UINT64_C(0x9e3779b97f4a7c15), n};
}

static struct freeze freeze_at(int64_t at_us)
{
    return (struct freeze){at_us, ((uint64_t)at_us + 5) & FREEZE_US_MAX, at_us % 2, at_us % 3 == 0};
}

static bool has(struct customer_set *set, uint64_t n, int64_t at_us)
{
    struct freeze found = {-1, 0, false, false}, put = freeze_at(at_us);
    bool is = customer_set_find(set, id_number(n), &found);
    assert_true(is ? found.scheduled_us == put.scheduled_us && found.effective_us == put.effective_us &&
                         found.by_admin == put.by_admin && found.held == put.held
                   : found.scheduled_us == -1);
    assert_int_equal(customer_set_has(set, id_number(n)), is);
    return is;
}

static void an_id_is_read_and_written_as_it_was_but_for_capitals(void **state UNUSED)
{
    struct customer_id id = {1, 1};
    char text[37];
    assert_int_equal(customer_id_parse(STR("0123ABCD-4567-89ab-cdef-fedcba987654"), &id), OK);
    assert_true(id.high == UINT64_C(0x0123abcd456789ab) && id.low == UINT64_C(0xcdeffedcba987654));
    customer_id_write(id, text);
    assert_string_equal(text, "0123abcd-4567-89ab-cdef-fedcba987654");
    assert_int_equal(customer_id_parse(STR("0123abcd-4567-89ab-cdef-fedcba98765"), &id), ERR_INPUT);
    assert_int_equal(customer_id_parse(STR(""), &id), ERR_INPUT);
}

static void it_holds_what_was_put_and_not_what_was_removed(void **state UNUSED)
{
    enum { IDS = 3000, STEPS = 200000 };
    struct customer_set *set = customer_set_new();
    int64_t *model = calloc(IDS, sizeof *model);
    size_t count = 0;
    uint64_t dice = 7;
    for (int step = 0; step < STEPS; step++) {
        uint64_t n = number_below(&dice, IDS);
        /* Mostly puts at first, mostly removals at the end: the table grows, then shrinks. */
        if (number_below(&dice, STEPS) > (uint64_t)step) {
            count += !model[n];
            model[n] = step + 1;
            assert_int_equal(customer_set_put(set, id_number(n), freeze_at(step + 1)), OK);
        } else {
            count -= model[n] != 0;
            model[n] = 0;
            customer_set_remove(set, id_number(n));
        }
        assert_int_equal(has(set, n, model[n]), model[n] != 0);
        assert_int_equal(customer_set_count(set), count);
        if (step % 10000 == 0)
            for (uint64_t i = 0; i < IDS; i++)
                assert_int_equal(has(set, i, model[i]), model[i] != 0);
    }
    free(model);
    customer_set_free(set);
}

static void a_customer_takes_at_most_57_bytes_however_many_there_are(void **state UNUSED)
{
    struct customer_set *set = customer_set_new();
    for (uint64_t n = 0; n < 1000000; n++) {
        assert_int_equal(customer_set_add(set, id_number(n)), OK);
        if (n >= 1000)
            assert_true(customer_set_bytes(set) <= 57 * (n + 1));
    }
    assert_int_equal(customer_set_count(set), 1000000);
    for (uint64_t n = 0; n < 1000000; n++)
        customer_set_remove(set, id_number(n));
    assert_true(customer_set_bytes(set) <= 65536);
    customer_set_free(set);
}

static void the_last_instant_that_is_read_is_kept_in_full(void **state UNUSED)
{
    struct freeze year_9999 = {INT64_C(253402214400000000), UINT64_C(253402214400000000), true, true}, found;
    struct customer_set *set = customer_set_new();
    assert_int_equal(customer_set_put(set, id_number(1), year_9999), OK);
    assert_true(customer_set_find(set, id_number(1), &found));
    assert_true(found.scheduled_us == year_9999.scheduled_us && found.effective_us == year_9999.effective_us);
    assert_true(found.by_admin && found.held);
    customer_set_free(set);
}

static void an_instant_of_nought_counts_as_one(void **state UNUSED)
{
    struct customer_set *set = customer_set_new();
    assert_int_equal(customer_set_put(set, (struct customer_id){0, 0}, (struct freeze){.scheduled_us = 0}), OK);
    assert_true(customer_set_has(set, (struct customer_id){0, 0}));
    customer_set_free(set);
}

static void a_swap_exchanges_everything(void **state UNUSED)
{
    struct customer_set *set = customer_set_new(), *fresh = customer_set_new();
    assert_int_equal(customer_set_put(set, id_number(1), freeze_at(10)), OK);
    assert_int_equal(customer_set_put(fresh, id_number(2), freeze_at(20)), OK);
    customer_set_swap(set, fresh);
    assert_true(!has(set, 1, 0) && has(set, 2, 20) && has(fresh, 1, 10));
    customer_set_free(fresh);
    assert_true(has(set, 2, 20));
    customer_set_free(set);
}

struct reading {
    struct customer_set *set;
    atomic_bool stop;
    atomic_long reads;
};

/* Even numbers are always in the set; odd ones are put and removed meanwhile. */
static void *read_until_stopped(void *context)
{
    struct reading *r = context;
    uint64_t dice = 99;
    while (!atomic_load(&r->stop)) {
        uint64_t n = number_below(&dice, 2000);
        bool is = customer_set_has(r->set, id_number(n));
        if (n % 2 == 0 && !is)
            abort();
        atomic_fetch_add(&r->reads, 1);
    }
    return NULL;
}

static void whoever_stays_is_found_while_others_come_and_go(void **state UNUSED)
{
    struct reading r = {.set = customer_set_new()};
    pthread_t readers[3];
    for (uint64_t n = 0; n < 2000; n += 2)
        assert_int_equal(customer_set_add(r.set, id_number(n)), OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_until_stopped, &r), 0);
    for (int round = 0; round < 20 || atomic_load(&r.reads) < 1000; round++) {
        for (uint64_t n = 1; n < 20000; n += 2)
            assert_int_equal(customer_set_add(r.set, id_number(n)), OK);
        for (uint64_t n = 1; n < 20000; n += 2)
            customer_set_remove(r.set, id_number(n));
    }
    atomic_store(&r.stop, true);
    for (int i = 0; i < 3; i++)
        pthread_join(readers[i], NULL);
    customer_set_free(r.set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_read_and_written_as_it_was_but_for_capitals),
        cmocka_unit_test(it_holds_what_was_put_and_not_what_was_removed),
        cmocka_unit_test(a_customer_takes_at_most_57_bytes_however_many_there_are),
        cmocka_unit_test(the_last_instant_that_is_read_is_kept_in_full),
        cmocka_unit_test(an_instant_of_nought_counts_as_one),
        cmocka_unit_test(a_swap_exchanges_everything),
        cmocka_unit_test(whoever_stays_is_found_while_others_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
