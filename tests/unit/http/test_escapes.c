/* %XX in paths and queries. */
#include "http/escapes.h"

#include <string.h>

#include "../base/unit.h"

static struct arena *arena;

static int make_arena(void **state UNUSED)
{
    arena = arena_new(256, 4096);
    return arena ? 0 : -1;
}

static int free_arena(void **state UNUSED)
{
    arena_free(arena);
    return 0;
}

static void assert_decoded(const char *text, const char *expected)
{
    struct str decoded;
    assert_int_equal(escapes_decode(arena, str_of(text), &decoded), OK);
    assert_int_equal(decoded.len, strlen(expected));
    assert_string_equal(decoded.at, expected);
}

static void escapes_are_decoded(void **state UNUSED)
{
    assert_decoded("plain", "plain");
    assert_decoded("", "");
    assert_decoded("%41", "A");
    assert_decoded("a%2Fb%2fc", "a/b/c");
    assert_decoded("a+b%2Bc", "a+b+c"); /* libmicrohttpd makes spaces of "+" in queries */
    assert_decoded("%C3%a9t%C3%A9", "\xc3\xa9t\xc3\xa9");
    assert_decoded("%25zz", "%zz");
    struct str absent;
    assert_int_equal(escapes_decode(arena, (struct str){NULL, 0}, &absent), OK);
    assert_null(absent.at);
}

static void malformed_escapes_and_what_is_no_text_are_refused(void **state UNUSED)
{
    static const char *const bad[] = {"%",   "a%",   "%4",  "a%4",   "%zz",    "%4z", "%-1",
                                      "% 1", "%%41", "%00", "a%00b", "%ff%fe", "%C3", "\xff"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct str decoded = STR("untouched");
        assert_int_equal(escapes_decode(arena, str_of(bad[i]), &decoded), ERR_INPUT);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(malformed_escapes_and_what_is_no_text_are_refused),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
