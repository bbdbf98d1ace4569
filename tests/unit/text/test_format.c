/* Numbers, times and addresses as a reader expects them. */
#include "text/format.h"

#include "../base/unit.h"

static struct sentences *sentences;

static int load(void **state UNUSED)
{
    struct why why;
    return sentences_load(NULL, &sentences, &why) ? -1 : 0;
}

static int unload(void **state UNUSED)
{
    sentences_free(sentences);
    return 0;
}

static void numbers_are_grouped_as_the_language_does(void **state UNUSED)
{
    static const struct {
        int64_t number;
        const char *en, *de;
    } cases[] = {{0, "0", "0"},
                 {999, "999", "999"},
                 {1000, "1,000", "1.000"},
                 {1234567, "1,234,567", "1.234.567"},
                 {-1204, "\u22121,204", "\u22121.204"},
                 {INT64_MIN, "\u22129,223,372,036,854,775,808", "\u22129.223.372.036.854.775.808"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(buf) struct buf en = buf_new(100);
        AUTO(buf) struct buf de = buf_new(100);
        format_number(&en, LANGUAGE_EN, cases[i].number);
        format_number(&de, LANGUAGE_DE, cases[i].number);
        assert_str(buf_str(&en), cases[i].en);
        assert_str(buf_str(&de), cases[i].de);
    }
}

static void assert_time(const char *text, enum language language, bool with_clock, const char *expected)
{
    AUTO(buf) struct buf out = buf_new(1000);
    format_time(&out, sentences, language, str_of(text), with_clock);
    if (expected)
        assert_str(buf_str(&out), expected);
    else
        assert_int_equal(out.len, 0);
}

static void a_time_names_its_month(void **state UNUSED)
{
    assert_time("2026-12-05T14:32:07.123Z", LANGUAGE_EN, true,
                "<time datetime=\"2026-12-05T14:32:07.123Z\" data-time>5 December 2026, 14:32 UTC</time>");
    assert_time("2026-03-15T00:00:00Z", LANGUAGE_DE, false,
                "<time datetime=\"2026-03-15T00:00:00Z\" data-date>15. März 2026</time>");
}

static void what_is_no_time_leaves_nothing(void **state UNUSED)
{
    static const char *const wrong[] = {NULL,
                                        "",
                                        "soon",
                                        "2026-13-05T14:32:07Z",
                                        "2026-00-05T14:32:07Z",
                                        "2026-12-5T14:32:07Z..",
                                        "2026-12-32T14:32:07Z",
                                        "20261205T143207Z........"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_time(wrong[i], LANGUAGE_EN, true, NULL);
}

static void an_address_is_masked(void **state UNUSED)
{
    static const char *const cases[][2] = {
        {"viktor@example.com", "vi•••@example.com"},  {"uma@example.com", "u•••@example.com"},
        {"a@example.com", "a•••@example.com"},        {"\"a@b\"@example.com", "&quot;a•••@example.com"},
        {"ärmel@example.com", "är•••@example.com"},   {"nothing", "no•••"},
        {"<b>x@example.com", "&lt;b•••@example.com"}, {"", NULL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(buf) struct buf out = buf_new(1000);
        format_masked(&out, str_of(cases[i][0]));
        if (cases[i][1])
            assert_str(buf_str(&out), cases[i][1]);
        else
            assert_int_equal(out.len, 0);
    }
}

static void a_query_value_has_only_plain_characters(void **state UNUSED)
{
    AUTO(buf) struct buf out = buf_new(1000);
    format_query(&out, STR("aZ9-_.~ &=+%\"<ä"));
    assert_str(buf_str(&out), "aZ9-_.~%20%26%3D%2B%25%22%3C%C3%A4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_grouped_as_the_language_does), cmocka_unit_test(a_time_names_its_month),
        cmocka_unit_test(what_is_no_time_leaves_nothing),           cmocka_unit_test(an_address_is_masked),
        cmocka_unit_test(a_query_value_has_only_plain_characters),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
