#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "unit.h"

static const struct str none = {NULL, 0};

static void strings_are_compared_by_bytes_and_length(void **state UNUSED)
{
    assert_true(str_eq(STR("abc"), str_of("abc")));
    assert_false(str_eq(STR("abc"), STR("abC")));
    assert_false(str_eq(STR("abc"), STR("ab")));
    assert_true(str_eq(STR("a\0b"), STR("a\0b")));
    assert_false(str_eq(STR("a\0b"), STR("a\0c")));
    assert_true(str_eq(STR(""), STR("")));
}

static void absent_is_not_empty(void **state UNUSED)
{
    assert_absent(str_of(NULL));
    assert_true(str_eq(none, none));
    assert_false(str_eq(none, STR("")));
    assert_false(str_eq(STR(""), none));
    assert_true(str_eq_nocase(none, none));
    assert_false(str_eq_nocase(none, STR("")));
}

static void case_is_ignored_for_ascii_only(void **state UNUSED)
{
    assert_true(str_eq_nocase(STR("Content-LENGTH"), STR("content-length")));
    assert_false(str_eq_nocase(STR("Content-Length"), STR("Content-Lengths")));
    assert_false(str_eq_nocase(STR("Ä"), STR("ä")));
    assert_false(str_eq_nocase(STR("@["), STR("`{")));
}

static void a_prefix_is_recognised(void **state UNUSED)
{
    assert_true(str_starts(STR("Bearer x"), STR("Bearer ")));
    assert_true(str_starts(STR("x"), STR("")));
    assert_true(str_starts(STR("x"), STR("x")));
    assert_false(str_starts(STR("Bear"), STR("Bearer ")));
    assert_false(str_starts(STR("bearer x"), STR("Bearer ")));
    assert_false(str_starts(none, STR("")));
    assert_false(str_starts(STR(""), none));
}

static void trimming_takes_white_space_at_both_ends_only(void **state UNUSED)
{
    assert_str(str_trim(STR(" \t\r\n\f\va b \v\f\n\r\t ")), "a b");
    assert_str(str_trim(STR("a")), "a");
    assert_int_equal(str_trim(STR(" \t ")).len, 0);
    assert_int_equal(str_trim(STR("")).len, 0);
    assert_str(str_trim(STR("\xC2\xA0x")), "\xC2\xA0x");
    assert_absent(str_trim(none));
}

static void splitting_keeps_empty_parts(void **state UNUSED)
{
    struct str rest = STR("a,,bc,"), part;
    const char *want[] = {"a", "", "bc", ""};
    for (size_t i = 0; i < COUNT_OF(want); i++) {
        assert_true(str_split(&rest, ',', &part));
        assert_str(part, want[i]);
    }
    assert_false(str_split(&rest, ',', &part));
    assert_false(str_split(&rest, ',', &part));
}

static void an_empty_string_has_one_part_and_an_absent_one_none(void **state UNUSED)
{
    struct str rest = STR(""), part = none;
    assert_true(str_split(&rest, ',', &part));
    assert_str(part, "");
    assert_false(str_split(&rest, ',', &part));
    rest = none;
    assert_false(str_split(&rest, ',', &part));
}

static void a_copy_fits_with_its_nul_or_is_refused(void **state UNUSED)
{
    char into[4] = "zzz";
    assert_int_equal(str_copy(STR("abcd"), into, sizeof into), ERR_FULL);
    assert_string_equal(into, "zzz");
    assert_int_equal(str_copy(STR("abc"), into, sizeof into), OK);
    assert_string_equal(into, "abc");
    assert_int_equal(str_copy(STR(""), into, 1), OK);
    assert_string_equal(into, "");
    assert_int_equal(str_copy(STR(""), into, 0), ERR_FULL);
    assert_int_equal(str_copy(none, into, sizeof into), OK);
    assert_string_equal(into, "");
}

static void a_copy_never_hides_a_nul(void **state UNUSED)
{
    char into[16];
    assert_int_equal(str_copy(STR("a\0b"), into, sizeof into), ERR_INPUT);
    assert_int_equal(str_copy(STR("a\0"), into, sizeof into), ERR_INPUT);
}

static void lower_case_is_made_in_place_for_ascii_only(void **state UNUSED)
{
    char text[] = "AZaz@[Ä";
    str_lower(text, strlen(text));
    assert_string_equal(text, "azaz@[Ä");
}

static void utf8_is_told_from_what_only_looks_like_it(void **state UNUSED)
{
    const struct {
        struct str s;
        bool good;
    } table[] = {
        {STR(""), true},
        {STR("plain"), true},
        {STR("a\0b"), true},
        {STR("\x7F"), true},
        {STR("\xC2\x80"), true},          /* U+0080, the first of two bytes */
        {STR("\xDF\xBF"), true},          /* U+07FF, the last */
        {STR("\xE0\xA0\x80"), true},      /* U+0800 */
        {STR("\xED\x9F\xBF"), true},      /* U+D7FF, before the surrogates */
        {STR("\xEE\x80\x80"), true},      /* U+E000, after them */
        {STR("\xEF\xBF\xBF"), true},      /* U+FFFF */
        {STR("\xF0\x90\x80\x80"), true},  /* U+10000 */
        {STR("\xF4\x8F\xBF\xBF"), true},  /* U+10FFFF */
        {STR("\x80"), false},             /* a continuation byte without a leading byte */
        {STR("\xBF"), false},             /* the same */
        {STR("\xC0\x80"), false},         /* overlong NUL */
        {STR("\xC0\xAF"), false},         /* overlong slash */
        {STR("\xC1\xBF"), false},         /* overlong U+007F */
        {STR("\xE0\x80\xAF"), false},     /* overlong slash */
        {STR("\xE0\x9F\xBF"), false},     /* overlong U+07FF */
        {STR("\xF0\x80\x80\xAF"), false}, /* overlong slash */
        {STR("\xF0\x8F\xBF\xBF"), false}, /* overlong U+FFFF */
        {STR("\xED\xA0\x80"), false},     /* U+D800 */
        {STR("\xED\xBF\xBF"), false},     /* U+DFFF */
        {STR("\xF4\x90\x80\x80"), false}, /* U+110000 */
        {STR("\xF5\x80\x80\x80"), false}, /* beyond */
        {STR("\xF8\x88\x80\x80\x80"), false},
        {STR("\xFE"), false},
        {STR("\xFF"), false},
        {STR("\xC2"), false}, /* cut off */
        {STR("\xE2\x82"), false},
        {STR("\xF0\x9F\x98"), false},
        {STR("\xC2\x41"), false}, /* a leading byte without its continuation */
        {STR("\xE2\x82\x41"), false},
        {STR("\xE2\x41\x82"), false},
        {STR("\xF0\x9F\x98\xC0"), false},
        {STR("good \xE2\x82\xAC, bad \xE2\x82"), false},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        if (str_is_utf8(table[i].s) != table[i].good)
            fail_msg("row %zu of the table", i);
    }
}

/* A slow reference implementation: decode using the length in the first byte, then encode again and compare. */
static bool is_utf8_by_decoding(const unsigned char *at, size_t len)
{
    static const uint32_t first_of[] = {0, 0, 0x80, 0x800, 0x10000};
    while (len > 0) {
        size_t n = at[0] < 0x80 ? 1 : at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
        if (n == 0 || n > len)
            return false;
        uint32_t code = n == 1 ? at[0] : at[0] & (0x7Fu >> n);
        for (size_t i = 1; i < n; i++) {
            if (at[i] >> 6 != 2)
                return false;
            code = code << 6 | (at[i] & 0x3Fu);
        }
        if (code < first_of[n] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF))
            return false;
        at += n;
        len -= n;
    }
    return true;
}

static void every_three_bytes_are_judged_as_by_decoding(void **state UNUSED)
{
    static const unsigned char fourth[] = {0x00, 0x7F, 0x80, 0xBF, 0xC2};
    unsigned char at[4];
    for (uint32_t n = 0; n < 1u << 24; n++) {
        at[0] = (unsigned char)(n >> 16);
        at[1] = (unsigned char)(n >> 8);
        at[2] = (unsigned char)n;
        at[3] = fourth[n % sizeof fourth];
        size_t len = at[0] >= 0xF0 ? 4 : 3;
        if (str_is_utf8((struct str){(const char *)at, len}) != is_utf8_by_decoding(at, len))
            fail_msg("%02x %02x %02x %02x", at[0], at[1], at[2], at[3]);
    }
}

static void the_length_of_a_character_stays_within_the_string(void **state UNUSED)
{
    assert_int_equal(str_utf8_len(STR("\xF0\x9F\x98\x80 and more")), 4);
    assert_int_equal(str_utf8_len((struct str){"\xF0\x9F\x98\x80", 3}), 0);
    assert_int_equal(str_utf8_len(STR("")), 0);
    assert_int_equal(str_utf8_len(none), 0);
    assert_int_equal(str_utf8_len(STR("a\xFF")), 1);
}

static void uuids_are_recognised(void **state UNUSED)
{
    assert_true(str_is_uuid(STR("00000000-0000-0000-0000-000000000000")));
    assert_true(str_is_uuid(STR("0123abcd-ABCD-ef01-FFFF-0123456789aF")));
    assert_false(str_is_uuid(STR("0123abcd-ABCD-ef01-FFFF-0123456789a")));
    assert_false(str_is_uuid(STR("0123abcd-ABCD-ef01-FFFF-0123456789aFF")));
    assert_false(str_is_uuid(STR("0123abcg-ABCD-ef01-FFFF-0123456789aF")));
    assert_false(str_is_uuid(STR("0123abcd0ABCD-ef01-FFFF-0123456789aF")));
    assert_false(str_is_uuid(STR("0123abcd-ABCD-ef01-FFFF--123456789aF")));
    assert_false(str_is_uuid(STR("{123abcd-ABCD-ef01-FFFF-0123456789a}")));
    assert_false(str_is_uuid(STR("0123abcd-ABCD-ef01-FFFF-01234567\0009aF")));
    assert_false(str_is_uuid(none));
}

static void numbers_are_taken_whole_and_within_bounds(void **state UNUSED)
{
    const struct {
        struct str s;
        int64_t min, max;
        enum err want;
        int64_t n;
    } table[] = {
        {STR("0"), 0, 0, OK, 0},
        {STR("65535"), 1, 65535, OK, 65535},
        {STR("65536"), 1, 65535, ERR_INPUT, 0},
        {STR("0"), 1, 65535, ERR_INPUT, 0},
        {STR("007"), 0, 9, OK, 7},
        {STR("-5"), -5, 5, OK, -5},
        {STR("-6"), -5, 5, ERR_INPUT, 0},
        {STR("-0"), -1, 1, OK, 0},
        {STR("-0"), 0, 1, ERR_INPUT, 0},
        {STR("-1"), 0, 1, ERR_INPUT, 0},
        {STR("+1"), -9, 9, ERR_INPUT, 0},
        {STR("--1"), -9, 9, ERR_INPUT, 0},
        {STR("-"), -9, 9, ERR_INPUT, 0},
        {STR(""), -9, 9, ERR_INPUT, 0},
        {STR(" 1"), 0, 9, ERR_INPUT, 0},
        {STR("1 "), 0, 9, ERR_INPUT, 0},
        {STR("1\0"), 0, 9, ERR_INPUT, 0},
        {STR("0x1"), 0, 9, ERR_INPUT, 0},
        {STR("1e3"), 0, 9999, ERR_INPUT, 0},
        {STR("1.0"), 0, 9, ERR_INPUT, 0},
        {STR("9223372036854775807"), 0, INT64_MAX, OK, INT64_MAX},
        {STR("9223372036854775808"), 0, INT64_MAX, ERR_INPUT, 0},
        {STR("-9223372036854775808"), INT64_MIN, 0, OK, INT64_MIN},
        {STR("-9223372036854775809"), INT64_MIN, 0, ERR_INPUT, 0},
        {STR("18446744073709551617"), 0, INT64_MAX, ERR_INPUT, 0},
        {STR("99999999999999999999999999999999999999999"), 0, INT64_MAX, ERR_INPUT, 0},
        {STR("00000000000000000000000000000000000000001"), 0, 9, OK, 1},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        int64_t n = 4711;
        if (str_to_i64(table[i].s, table[i].min, table[i].max, &n) != table[i].want)
            fail_msg("'%.*s' was judged wrongly", STR_ARGS(table[i].s));
        assert_true(n == (table[i].want ? 4711 : table[i].n));
    }
    int64_t n;
    assert_int_equal(str_to_i64(none, -9, 9, &n), ERR_INPUT);
}

static void durations_demand_a_unit_and_never_overflow(void **state UNUSED)
{
    const struct {
        struct str s;
        enum err want;
        int64_t ms;
    } table[] = {
        {STR("0"), OK, 0},
        {STR("0s"), OK, 0},
        {STR("500ms"), OK, 500},
        {STR("10s"), OK, 10000},
        {STR("15m"), OK, 900000},
        {STR("2h"), OK, 7200000},
        {STR("30d"), OK, 2592000000},
        {STR("9223372036854775807ms"), OK, INT64_MAX},
        {STR("9223372036854775808ms"), ERR_INPUT, 0},
        {STR("9223372036854775s"), OK, 9223372036854775000},
        {STR("9223372036854776s"), ERR_INPUT, 0},
        {STR("106751991167d"), OK, 9223372036828800000},
        {STR("106751991168d"), ERR_INPUT, 0},
        {STR("10"), ERR_INPUT, 0},
        {STR("00"), ERR_INPUT, 0},
        {STR("ms"), ERR_INPUT, 0},
        {STR(""), ERR_INPUT, 0},
        {STR("-1s"), ERR_INPUT, 0},
        {STR("+1s"), ERR_INPUT, 0},
        {STR("1.5s"), ERR_INPUT, 0},
        {STR("1 s"), ERR_INPUT, 0},
        {STR("1s "), ERR_INPUT, 0},
        {STR("1S"), ERR_INPUT, 0},
        {STR("1w"), ERR_INPUT, 0},
        {STR("1us"), ERR_INPUT, 0},
        {STR("1m30s"), ERR_INPUT, 0},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        int64_t ms = 4711;
        if (str_to_duration_ms(table[i].s, &ms) != table[i].want)
            fail_msg("'%.*s' was judged wrongly", STR_ARGS(table[i].s));
        if (ms != (table[i].want ? 4711 : table[i].ms))
            fail_msg("'%.*s' became %" PRId64, STR_ARGS(table[i].s), ms);
    }
    int64_t ms;
    assert_int_equal(str_to_duration_ms(none, &ms), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_compared_by_bytes_and_length),
        cmocka_unit_test(absent_is_not_empty),
        cmocka_unit_test(case_is_ignored_for_ascii_only),
        cmocka_unit_test(a_prefix_is_recognised),
        cmocka_unit_test(trimming_takes_white_space_at_both_ends_only),
        cmocka_unit_test(splitting_keeps_empty_parts),
        cmocka_unit_test(an_empty_string_has_one_part_and_an_absent_one_none),
        cmocka_unit_test(a_copy_fits_with_its_nul_or_is_refused),
        cmocka_unit_test(a_copy_never_hides_a_nul),
        cmocka_unit_test(lower_case_is_made_in_place_for_ascii_only),
        cmocka_unit_test(utf8_is_told_from_what_only_looks_like_it),
        cmocka_unit_test(every_three_bytes_are_judged_as_by_decoding),
        cmocka_unit_test(the_length_of_a_character_stays_within_the_string),
        cmocka_unit_test(uuids_are_recognised),
        cmocka_unit_test(numbers_are_taken_whole_and_within_bounds),
        cmocka_unit_test(durations_demand_a_unit_and_never_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
