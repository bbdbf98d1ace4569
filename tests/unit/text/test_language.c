/* Which language a reader gets. */
#include "text/language.h"

#include "../base/unit.h"

static void a_tag_is_known_with_its_region_and_in_any_case(void **state UNUSED)
{
    static const struct {
        const char *tag;
        enum language language;
    } cases[] = {{"en", LANGUAGE_EN}, {"de", LANGUAGE_DE}, {"de-AT", LANGUAGE_DE}, {"EN-us", LANGUAGE_EN}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum language language = (enum language) - 1;
        assert_int_equal(language_parse(str_of(cases[i].tag), &language), OK);
        assert_int_equal(language, cases[i].language);
    }
    static const char *const unknown[] = {"", "fr", "e", "eng", "-de", "*", "de_AT", "xx-de"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        enum language language = LANGUAGE_DE;
        assert_int_equal(language_parse(str_of(unknown[i]), &language), ERR_MISSING);
        assert_int_equal(language, LANGUAGE_DE);
    }
}

static void the_reader_gets_what_they_prefer_of_what_there_is(void **state UNUSED)
{
    static const struct {
        const char *accept;
        enum language chosen;
    } cases[] = {
        {"de", LANGUAGE_DE},
        {"de-AT,de;q=0.9,en;q=0.8", LANGUAGE_DE},
        {"en;q=0.8,de;q=0.9", LANGUAGE_DE},
        {"fr,de;q=0.5,en;q=0.4", LANGUAGE_DE},
        {"fr, de ; q=0.5 , en ; q=0.51", LANGUAGE_EN},
        {"de;q=0,en;q=0.001", LANGUAGE_EN},
        {"de;q=1.000", LANGUAGE_DE},
        {"en,de", LANGUAGE_EN}, /* of two that are alike the first */
        {"de;q=x", LANGUAGE_EN},
        {",,;;=,de;q=", LANGUAGE_DE},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        assert_int_equal(language_choose(str_of(cases[i].accept), LANGUAGE_EN), cases[i].chosen);
}

static void without_a_wish_it_is_the_installations(void **state UNUSED)
{
    static const char *const silent[] = {NULL, "", "*", "fr", "fr;q=0.9,*;q=0.1", "de;q=0", ",", "q=1"};
    for (size_t i = 0; i < COUNT_OF(silent); i++)
        assert_int_equal(language_choose(str_of(silent[i]), LANGUAGE_DE), LANGUAGE_DE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tag_is_known_with_its_region_and_in_any_case),
        cmocka_unit_test(the_reader_gets_what_they_prefer_of_what_there_is),
        cmocka_unit_test(without_a_wish_it_is_the_installations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
