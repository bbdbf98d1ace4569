#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "unit.h"

static void every_error_has_a_name_of_its_own(void **state UNUSED)
{
    for (int a = OK; a <= ERR_MISSING; a++) {
        assert_string_not_equal(err_name((enum err)a), "unknown");
        for (int b = OK; b < a; b++)
            assert_string_not_equal(err_name((enum err)a), err_name((enum err)b));
    }
    assert_string_equal(err_name((enum err)(ERR_MISSING + 1)), "unknown");
}

static void why_set_returns_the_error_and_writes_the_sentence(void **state UNUSED)
{
    struct why why;
    assert_int_equal(why_set(&why, ERR_INPUT, "port %d of %s", 70000, "RECLAIM_LISTEN"), ERR_INPUT);
    assert_string_equal(why.text, "port 70000 of RECLAIM_LISTEN");
}

static void nobody_needs_to_ask_why(void **state UNUSED)
{
    assert_int_equal(why_set(NULL, ERR_SYSTEM, "lost %d", 1), ERR_SYSTEM);
}

static void a_sentence_can_be_wrapped_in_another(void **state UNUSED)
{
    struct why why;
    (void)why_set(&why, ERR_DATABASE, "no such table");
    assert_int_equal(why_set(&why, ERR_DATABASE, "migration 3: %s", why.text), ERR_DATABASE);
    assert_string_equal(why.text, "migration 3: no such table");
}

static void a_long_sentence_is_cut(void **state UNUSED)
{
    char long_text[2000];
    memset(long_text, 'x', sizeof long_text - 1);
    long_text[sizeof long_text - 1] = '\0';
    struct why why;
    (void)why_set(&why, ERR_INPUT, "%s", long_text);
    assert_int_equal(strlen(why.text), sizeof why.text - 1);
    (void)why_set(&why, ERR_INPUT, "short");
    assert_string_equal(why.text, "short");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_error_has_a_name_of_its_own),
        cmocka_unit_test(why_set_returns_the_error_and_writes_the_sentence),
        cmocka_unit_test(nobody_needs_to_ask_why),
        cmocka_unit_test(a_sentence_can_be_wrapped_in_another),
        cmocka_unit_test(a_long_sentence_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
