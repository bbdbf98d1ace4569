#include "customers/last_mail.h"

#include <string.h>

#include "../base/unit.h"

#define SOMEONE "a0000000-0000-4000-8000-000000000001"
#define OTHER "a0000000-0000-4000-8000-000000000002"

static struct digest key_of(const char *master)
{
    struct digest key;
    assert_int_equal(digest_derive(str_of(master), LAST_MAIL_PURPOSE, &key), OK);
    return key;
}

static void what_is_sealed_can_be_opened_for_its_customer(void **state UNUSED)
{
    struct digest key = key_of("a master key that is long enough for this");
    char sealed[LAST_MAIL_SEALED_MAX];
    struct last_mail mail;
    assert_int_equal(last_mail_seal(&key, SOMEONE, STR("someone@example.com"), sealed), OK);
    assert_null(strstr(sealed, "someone"));
    assert_int_equal(last_mail_open(&key, STR(SOMEONE), str_of(sealed), &mail), OK);
    assert_string_equal(mail.to, "someone@example.com");
}

static void the_longest_address_fits(void **state UNUSED)
{
    struct digest key = key_of("a master key that is long enough for this");
    char sealed[LAST_MAIL_SEALED_MAX], longest[MAIL_ADDRESS_MAX + 1];
    struct last_mail mail;
    memset(longest, 'a', sizeof longest);
    assert_int_equal(last_mail_seal(&key, SOMEONE, (struct str){longest, MAIL_ADDRESS_MAX}, sealed), OK);
    assert_int_equal(strlen(sealed), LAST_MAIL_SEALED_MAX - 1);
    assert_int_equal(last_mail_open(&key, STR(SOMEONE), str_of(sealed), &mail), OK);
    assert_memory_equal(mail.to, longest, MAIL_ADDRESS_MAX);
    assert_int_equal(last_mail_seal(&key, SOMEONE, (struct str){longest, MAIL_ADDRESS_MAX + 1}, sealed), ERR_INPUT);
    assert_int_equal(last_mail_seal(&key, SOMEONE, STR(""), sealed), ERR_INPUT);
}

static void nobody_else_opens_it(void **state UNUSED)
{
    struct digest key = key_of("a master key that is long enough for this"), another = key_of("some other master key");
    char sealed[LAST_MAIL_SEALED_MAX];
    struct last_mail mail;
    assert_int_equal(last_mail_seal(&key, SOMEONE, STR("someone@example.com"), sealed), OK);
    assert_int_equal(last_mail_open(&another, STR(SOMEONE), str_of(sealed), &mail), ERR_INPUT);
    assert_int_equal(last_mail_open(&key, STR(OTHER), str_of(sealed), &mail), ERR_INPUT);
    for (size_t len = 0; sealed[len] != ':'; len++)
        assert_int_equal(last_mail_open(&key, STR(SOMEONE), (struct str){sealed, len}, &mail), ERR_INPUT);
    sealed[60] = sealed[60] == '0' ? '1' : '0';
    assert_int_equal(last_mail_open(&key, STR(SOMEONE), str_of(sealed), &mail), ERR_INPUT);
}

static void the_same_address_is_sealed_differently_each_time(void **state UNUSED)
{
    struct digest key = key_of("a master key that is long enough for this");
    char first[LAST_MAIL_SEALED_MAX], second[LAST_MAIL_SEALED_MAX];
    assert_int_equal(last_mail_seal(&key, SOMEONE, STR("someone@example.com"), first), OK);
    assert_int_equal(last_mail_seal(&key, SOMEONE, STR("someone@example.com"), second), OK);
    assert_string_not_equal(first, second);
}

int main(void)
{
    const struct CMUnitTest promises[] = {
        cmocka_unit_test(what_is_sealed_can_be_opened_for_its_customer),
        cmocka_unit_test(the_longest_address_fits),
        cmocka_unit_test(nobody_else_opens_it),
        cmocka_unit_test(the_same_address_is_sealed_differently_each_time),
    };
    return cmocka_run_group_tests(promises, NULL, NULL);
}
