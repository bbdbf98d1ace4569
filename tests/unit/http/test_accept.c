/* Which of two kinds of answers a client prefers. */
#include "http/accept.h"

#include "../base/unit.h"

static bool prefers_html(const char *accept)
{
    return accept_prefers(str_of(accept), "text/html", "application/jose");
}

static void browsers_prefer_html(void **state UNUSED)
{
    static const char *const browsers[] = {
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
        "text/html, application/xhtml+xml, application/xml;q=0.9, */*;q=0.8",
        "text/html",
        "TEXT/HTML; charset=utf-8",
        "text/*, */*;q=0.1",
        "*/*;q=0.5, text/html;q=0.51",
        "application/jose;q=0, */*",
    };
    for (size_t i = 0; i < COUNT_OF(browsers); i++)
        assert_true(prefers_html(browsers[i]));
}

static void programs_do_not(void **state UNUSED)
{
    static const char *const programs[] = {
        NULL,
        "",
        "*/*",
        "application/jose",
        "application/*, text/html;q=0.9",
        "application/jose, text/html",
        "text/html;q=0, */*",
        "text/html;q=0.2, application/jose;q=0.3",
        "application/json, text/plain, */*",
        "text/htmlx, text, text/, ;;, ,",
        "text/html;q=0.000",
    };
    for (size_t i = 0; i < COUNT_OF(programs); i++)
        assert_false(prefers_html(programs[i]));
}

static void a_malformed_quality_counts_as_none_given(void **state UNUSED)
{
    static const char *const odd[] = {"text/html;q=", "text/html;q=x", "text/html;q=9", "text/html;q=-1"};
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        assert_true(prefers_html(odd[i]));
    assert_false(prefers_html("text/html;q=0,5")); /* "5" is a range of its own, and 0 wants none */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(browsers_prefer_html),
        cmocka_unit_test(programs_do_not),
        cmocka_unit_test(a_malformed_quality_counts_as_none_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
