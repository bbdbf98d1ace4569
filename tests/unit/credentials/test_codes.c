#include "credentials/codes.h"

#include <string.h>

#include "../base/unit.h"

#define USER "11111111-2222-4333-8444-555555555555"

static const struct code_shape letters = CODE_SHAPE_LETTERS;
static const struct code_shape *const symbols = &letters;
static const struct code_shape *const digits =
    &(const struct code_shape){.symbols = 6, .alphabet = "0123456789", .also_well_formed = ""};

static struct code_keys keys_of(const char *master)
{
    struct code_keys keys;
    assert_int_equal(code_keys_derive(str_of(master), CODE_FOR_CLEANUP, &keys), OK);
    return keys;
}

static struct code_salt salt_of(const char *hex)
{
    struct code_salt salt;
    assert_int_equal(code_salt_parse(str_of(hex), &salt), OK);
    return salt;
}

static void check_read(const struct code_shape *shape, const char *typed, const char *expected)
{
    struct code code = {"untouched"};
    assert_int_equal(code_read(shape, str_of(typed), &code), expected ? OK : ERR_INPUT);
    assert_string_equal(code.symbols, expected ? expected : "untouched");
}

/* Computed by another program from the same key, salt and user: instances of every version must mail the same code. */
static void a_code_follows_from_key_salt_and_user(void **state UNUSED)
{
    struct code_keys keys = keys_of("a master key that is long enough for it");
    struct code_salt salt = salt_of("000102030405060708090a0b0c0d0e0f");
    struct code code = code_derive(&keys, symbols, &salt, USER);
    char shown[CODE_TEXT_MAX], hex[DIGEST_HEX_LEN + 1];
    code_show(symbols, &code, shown);
    assert_string_equal(shown, "EXCC-PXKG");
    struct digest hash = code_hash(&keys, &salt, &code);
    digest_hex(&hash, hex);
    assert_string_equal(hex, "2ce0733dce271b3fb1c980947e9eeb62868f818be68dcea034eddf28f22bc25d");
    code = code_derive(&keys, digits, &salt, USER);
    code_show(digits, &code, shown);
    assert_string_equal(shown, "496211");
}

static void another_key_salt_or_user_makes_another_code(void **state UNUSED)
{
    struct code_keys keys = keys_of("one master key, thirty-two characters"),
                     others = keys_of("two master keys, thirty-two character");
    struct code_salt salt = salt_of("000102030405060708090a0b0c0d0e0f"),
                     next = salt_of("000102030405060708090a0b0c0d0e10");
    struct code code = code_derive(&keys, symbols, &salt, USER);
    struct code again = code_derive(&keys, symbols, &salt, USER);
    assert_string_equal(code.symbols, again.symbols);
    struct code different[] = {
        code_derive(&others, symbols, &salt, USER),
        code_derive(&keys, symbols, &next, USER),
        code_derive(&keys, symbols, &salt, "11111111-2222-4333-8444-555555555556"),
    };
    for (size_t i = 0; i < COUNT_OF(different); i++)
        assert_string_not_equal(code.symbols, different[i].symbols);

    struct digest hash = code_hash(&keys, &salt, &code);
    struct digest hashes[] = {code_hash(&others, &salt, &code), code_hash(&keys, &next, &code),
                              code_hash(&keys, &salt, &different[0])};
    for (size_t i = 0; i < COUNT_OF(hashes); i++)
        assert_false(digest_eq(&hash, &hashes[i]));
}

static void a_code_for_one_purpose_proves_no_other(void **state UNUSED)
{
    struct code_keys cleanup = keys_of("a master key that is long enough for it"), sign_in;
    assert_int_equal(code_keys_derive(STR("a master key that is long enough for it"), CODE_FOR_SIGN_IN, &sign_in), OK);
    struct code_salt salt = salt_of("000102030405060708090a0b0c0d0e0f");
    struct code one = code_derive(&cleanup, symbols, &salt, USER), other = code_derive(&sign_in, symbols, &salt, USER);
    assert_string_not_equal(one.symbols, other.symbols);
    struct digest stored = code_hash(&sign_in, &salt, &one), typed = code_hash(&cleanup, &salt, &one);
    assert_false(digest_eq(&stored, &typed));
}

static void salts_are_new_each_time_and_survive_being_written(void **state UNUSED)
{
    struct code_salt one = code_salt_new(), other = code_salt_new();
    char hex[2 * CODE_SALT_LEN + 1];
    assert_memory_not_equal(one.bytes, other.bytes, CODE_SALT_LEN);
    code_salt_hex(&one, hex);
    struct code_salt read = salt_of(hex);
    assert_memory_equal(one.bytes, read.bytes, CODE_SALT_LEN);
    assert_int_equal(code_salt_parse(STR("0001"), &read), ERR_INPUT);
    assert_int_equal(code_salt_parse(STR("000102030405060708090a0b0c0d0e0g"), &read), ERR_INPUT);
}

/* Bytes taken modulo ten would favour 0 to 5: over so many draws that lifts the statistic beyond 100. */
static void no_symbol_is_likelier_than_another(void **state UNUSED)
{
    enum { CODES = 60000 };
    const struct code_shape *const shapes[] = {symbols, digits};
    struct code_keys keys = keys_of("a master key that is long enough for it");
    uint64_t random = 20251027;
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        const struct code_shape *shape = shapes[s];
        size_t kinds = strlen(shape->alphabet), counts[32] = {0};
        for (int n = 0; n < CODES; n++) {
            struct code_salt salt;
            for (size_t i = 0; i < CODE_SALT_LEN; i++)
                salt.bytes[i] = (uint8_t)next_number(&random);
            struct code code = code_derive(&keys, shape, &salt, USER);
            assert_int_equal(strlen(code.symbols), shape->symbols);
            for (int i = 0; i < shape->symbols; i++)
                counts[strchr(shape->alphabet, code.symbols[i]) - shape->alphabet]++;
        }
        double expected = (double)CODES * shape->symbols / (double)kinds, chi_squared = 0;
        for (size_t i = 0; i < kinds; i++)
            chi_squared += ((double)counts[i] - expected) * ((double)counts[i] - expected) / expected;
        assert_true(chi_squared < 80); /* with 9 or 31 degrees of freedom, less than once in 100,000 runs by chance */
    }
}

static void what_is_shown_can_be_typed(void **state UNUSED)
{
    struct code code = {"ABCDEFGH"};
    char shown[CODE_TEXT_MAX];
    code_show(symbols, &code, shown);
    assert_string_equal(shown, "ABCD-EFGH");
    check_read(symbols, shown, "ABCDEFGH");
    code = (struct code){"012345"};
    code_show(digits, &code, shown);
    assert_string_equal(shown, "012345");
    check_read(digits, shown, "012345");
}

static void case_spaces_and_hyphens_are_forgiven_where_there_are_letters(void **state UNUSED)
{
    static const char *const ways[] = {"abcd-efgh", "ABCDEFGH", "ABCD EFGH", " A B C D - E F G H ", "\tabCD--efGH\r\n"};
    for (size_t i = 0; i < COUNT_OF(ways); i++)
        check_read(symbols, ways[i], "ABCDEFGH");
    check_read(digits, " 012345\n", "012345");
    static const char *const not_digits[] = {"012-345", "012 345", "01234a", "01234", "0123456", ""};
    for (size_t i = 0; i < COUNT_OF(not_digits); i++)
        check_read(digits, not_digits[i], NULL);
}

static void i_and_o_are_well_formed_and_zero_and_one_are_not(void **state UNUSED)
{
    check_read(symbols, "IIII-OOOO", "IIIIOOOO");
    check_read(symbols, "iiii-oooo", "IIIIOOOO");
    assert_null(strpbrk(symbols->alphabet, "IO01"));
    static const char *const malformed[] = {"0BCD-EFGH", "ABCD-EFG1", "ABCD-EFG",     "ABCD-EFGHJ",      "ABCD_EFGH",
                                            "",          "--------",  "ABCD\xC3\x84", "ABCD-EFG\xC4\xB0"};
    for (size_t i = 0; i < COUNT_OF(malformed); i++)
        check_read(symbols, malformed[i], NULL);
    struct code code;
    assert_int_equal(code_read(symbols, (struct str){"ABCD\0EFGH", 9}, &code), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_code_follows_from_key_salt_and_user),
        cmocka_unit_test(another_key_salt_or_user_makes_another_code),
        cmocka_unit_test(a_code_for_one_purpose_proves_no_other),
        cmocka_unit_test(salts_are_new_each_time_and_survive_being_written),
        cmocka_unit_test(no_symbol_is_likelier_than_another),
        cmocka_unit_test(what_is_shown_can_be_typed),
        cmocka_unit_test(case_spaces_and_hyphens_are_forgiven_where_there_are_letters),
        cmocka_unit_test(i_and_o_are_well_formed_and_zero_and_one_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
