#include "credentials/access_keys.h"

#include <stdio.h>
#include <string.h>

#include "../base/unit.h"

#define SOME_KEY "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

static void a_new_key_has_the_form_of_one_and_is_like_no_other(void **state UNUSED)
{
    struct access_key keys[32];
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        keys[i] = access_key_new();
        assert_int_equal(strlen(keys[i].text), ACCESS_KEY_LEN);
        assert_true(str_starts(str_of(keys[i].text), STR("rk_")));
        assert_true(access_key_is_one(str_of(keys[i].text)));
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(keys[i].text, keys[j].text);
    }
}

static void what_is_not_a_key_is_seen_by_its_form(void **state UNUSED)
{
    assert_true(access_key_is_one(STR(SOME_KEY)));
    const char *const texts[] = {
        NULL,
        "",
        "rk_",
        "RK_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "rk-AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh",
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8A",
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9", /* unused bits set */
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX+BkaGxwdHh8",
        "rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX\200BkaGxwdHh8",
        " rk_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8",
    };
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        assert_false(access_key_is_one(str_of(texts[i])));
}

/* Computed by another program: hashes in existing databases must stay valid. */
static void a_hash_follows_from_the_master_key_and_the_key(void **state UNUSED)
{
    struct digest hash_key, other_key;
    char hash[DIGEST_HEX_LEN + 1];
    assert_int_equal(digest_derive(STR("a master key that is long enough for it"), ACCESS_KEY_PURPOSE, &hash_key), OK);
    access_key_hash(&hash_key, STR(SOME_KEY), hash);
    assert_string_equal(hash, "33dd7f114fee99050100fac6f3209e8f661ef243328fe6fb89bfa1d00f3a7b05");

    char other[DIGEST_HEX_LEN + 1];
    assert_int_equal(digest_derive(STR("b master key that is long enough for it"), ACCESS_KEY_PURPOSE, &other_key), OK);
    access_key_hash(&other_key, STR(SOME_KEY), other);
    assert_string_not_equal(hash, other);
    access_key_hash(&hash_key, STR(SOME_KEY "A"), other);
    assert_string_not_equal(hash, other);
    access_key_hash(&hash_key, STR(""), other);
    assert_string_not_equal(hash, other);
}

static void a_list_shows_the_beginning_alone(void **state UNUSED)
{
    struct access_key key = {SOME_KEY};
    char prefix[ACCESS_KEY_PREFIX_LEN + 1];
    access_key_prefix(&key, prefix);
    assert_string_equal(prefix, "rk_AAECAw");
}

static void names_are_short_and_printable(void **state UNUSED)
{
    char longest[ACCESS_KEY_NAME_MAX + 2];
    memset(longest, 'n', sizeof longest);
    assert_true(access_key_name_is_fine(STR("")));
    assert_true(access_key_name_is_fine(STR("the shop's own, März")));
    assert_true(access_key_name_is_fine((struct str){longest, ACCESS_KEY_NAME_MAX}));
    assert_false(access_key_name_is_fine((struct str){longest, ACCESS_KEY_NAME_MAX + 1}));
    assert_false(access_key_name_is_fine((struct str){NULL, 0}));
    const struct str wrong[] = {STR("a\nb"), STR("\x1b[2J"), STR("\x7f"), STR("\xc2\x9b"), STR("\xff"), STR("a\0b")};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(access_key_name_is_fine(wrong[i]));
}

static void a_scope_is_read_as_the_table_allows_it(void **state UNUSED)
{
    enum key_scope scope = SCOPE_CUSTOMER;
    char participant[KEY_PARTICIPANT_MAX + 1] = "", longest[] = "receipts:"
                                                                "0123456789012345678901234567890123456789"
                                                                "01234567890123456789012";
    assert_int_equal(key_scope_parse(STR("calls"), &scope, participant), OK);
    assert_int_equal(scope, SCOPE_CALLS);
    assert_int_equal(key_scope_parse(STR("receipts:a_b.c-1"), &scope, participant), OK);
    assert_int_equal(scope, SCOPE_RECEIPTS);
    assert_string_equal(participant, "a_b.c-1");
    assert_int_equal(key_scope_parse(str_of(longest), &scope, participant), OK);
    static const char *const none[] = {"",          "Calls",      "calls ",      "admin,read",   "receipts",
                                       "receipts:", "receipts:A", "receipts:-a", "receipts:a b", "receipts:a\xc3\xa9"};
    for (size_t i = 0; i < COUNT_OF(none); i++)
        assert_int_equal(key_scope_parse(str_of(none[i]), &scope, participant), ERR_INPUT);
    char too_long[sizeof longest + 1];
    (void)snprintf(too_long, sizeof too_long, "%s3", longest);
    assert_int_equal(key_scope_parse(str_of(too_long), &scope, participant), ERR_INPUT);
    assert_string_equal(participant, longest + 9);
    assert_int_equal(key_scope_parse((struct str){NULL, 0}, &scope, participant), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_has_the_form_of_one_and_is_like_no_other),
        cmocka_unit_test(what_is_not_a_key_is_seen_by_its_form),
        cmocka_unit_test(a_hash_follows_from_the_master_key_and_the_key),
        cmocka_unit_test(a_list_shows_the_beginning_alone),
        cmocka_unit_test(a_scope_is_read_as_the_table_allows_it),
        cmocka_unit_test(names_are_short_and_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
