#include "base/email.h"

#include <string.h>

#include "../base/unit.h"

static void addresses_are_trimmed_and_lower_cased(void **state UNUSED)
{
    static const struct {
        const char *given, *expected;
    } cases[] = {
        {"user@example.com", "user@example.com"},
        {"  User@Example.COM\t\r\n", "user@example.com"},
        {"first.last+tag@sub.example.co", "first.last+tag@sub.example.co"},
        {"o'hara_{x}@xn--bcher-kva.example", "o'hara_{x}@xn--bcher-kva.example"},
        {"a@1.ab", "a@1.ab"},
    };
    struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct str email;
        assert_int_equal(email_normalise(arena, str_of(cases[i].given), &email), OK);
        assert_string_equal(email.at, cases[i].expected);
    }
    arena_free(arena);
}

static void what_is_no_address_is_refused(void **state UNUSED)
{
    static const struct str cases[] = {
        STR(""),           STR("   "),           STR("user"),          STR("@example.com"),  STR("user@"),
        STR("user@host"),  STR("a@b@c.example"), STR(".a@b.example"),  STR("a.@b.example"),  STR("a..b@c.example"),
        STR("a b@c.de"),   STR("a@b c.de"),      STR("a@-b.example"),  STR("a@b-.example"),  STR("a@b..example"),
        STR("a@.b.de"),    STR("a@b.example."),  STR("a@127.0.0.1"),   STR("a@[127.0.0.1]"), STR("a@b.e"),
        STR("\"a\"@b.de"), STR("a\0b@c.de"),     STR("ü@example.com"), STR("a@bücher.de"),   STR("a,b@example.com"),
    };
    struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct str email;
        assert_int_equal(email_normalise(arena, cases[i], &email), ERR_INPUT);
    }
    arena_free(arena);
}

static void lengths_are_bounded_after_trimming(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 65536);
    struct str email;
    char text[400];
    /* Four labels of 62 and "x@" fill 255 bytes with ".de" at the end: 1 + 1 + 4 * 62 + 3 dots + 2 = 255. */
    memset(text, 'a', sizeof text);
    memcpy(text, "x@", 2);
    for (size_t at = 2 + 62; at < 252; at += 63)
        text[at] = '.';
    memcpy(text + 252, ".de", 3);
    assert_int_equal(email_normalise(arena, (struct str){text, 255}, &email), OK);
    memcpy(text + 255, "  ", 2);
    assert_int_equal(email_normalise(arena, (struct str){text, 257}, &email), OK);
    text[255] = 'e';
    assert_int_equal(email_normalise(arena, (struct str){text, 256}, &email), ERR_INPUT);

    memset(text, 'l', 65);
    memcpy(text + 65, "@example.com", 12);
    assert_int_equal(email_normalise(arena, (struct str){text, 77}, &email), ERR_INPUT);
    assert_int_equal(email_normalise(arena, (struct str){text + 1, 76}, &email), OK);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_trimmed_and_lower_cased),
        cmocka_unit_test(what_is_no_address_is_refused),
        cmocka_unit_test(lengths_are_bounded_after_trimming),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
