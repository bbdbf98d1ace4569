#include "pg/arrays.h"

#include "../base/unit.h"
#include "base/clock.h"
#include "pg/pg.h"
#include "server.h"

static void no_elements_are_an_empty_array(void **state UNUSED)
{
    AUTO(buf) struct buf a = buf_new(100);
    assert_string_equal(array_end(&a), "{}");
}

static void numbers_come_back_in_order(void **state UNUSED)
{
    static const int64_t numbers[] = {0, -1, INT64_MAX, INT64_MIN + 1, 42};
    AUTO(buf) struct buf a = buf_new(1000);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        array_add_i64(&a, numbers[i]);
    struct str rest = str_of(array_end(&a));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(array_next_i64(&rest), numbers[i]);
    assert_int_equal(array_next_i64(&rest), 0); /* nothing is left */
}

/* PostgreSQL must read back the elements written. */
static void postgresql_reads_every_text_as_it_was(void **state UNUSED)
{
    static const char *const texts[] = {"plain",       "",     "NULL",   "a,b", "{x}", "say \"hi\"",
                                        "back\\slash", "\\\"", " edge ", NULL};
    static const struct statement read = {
        "arrays_read", "SELECT coalesce(e, '(null)') AS e FROM unnest($1::text[]) AS e", 1, "e:text"};
    AUTO(buf) struct buf a = buf_new(1000);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        array_add_text(&a, texts[i] ? str_of(texts[i]) : (struct str){NULL, 0});
    AUTO(pg) struct pg *pg = must_connect(shared_url(), PG_PREPARE_OFF);
    struct pg_call call = {.ask = &read, .args = {pg_text(array_end(&a))}};
    assert_int_equal(pg_ask(pg, &call, clock_ns() + 30 * NS_PER_S), OK);
    assert_int_equal(call.rows, COUNT_OF(texts));
    for (int i = 0; i < call.rows; i++)
        assert_str(pg_get(&call, i, 0), texts[i] ? texts[i] : "(null)");
}

static void one_that_does_not_fit_is_none(void **state UNUSED)
{
    AUTO(buf) struct buf a = buf_new(10);
    array_add_text(&a, STR("longer than ten bytes"));
    assert_null(array_end(&a));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_elements_are_an_empty_array),
        cmocka_unit_test(numbers_come_back_in_order),
        cmocka_unit_test(postgresql_reads_every_text_as_it_was),
        cmocka_unit_test(one_that_does_not_fit_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
