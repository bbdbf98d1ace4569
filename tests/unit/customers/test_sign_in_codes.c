/* The mail with a sign-in code says exactly this. */
#include "customers/sign_in_codes.h"

#include <string.h>

#include "../base/unit.h"
#include "../mail/test_design.h"

#define ID "e0000000-0000-4000-8000-000000000101"

static struct mail written(int minutes)
{
    static const struct code_shape shape = CODE_SHAPE_LETTERS;
    struct mail mail;
    code_mail_write(&sign_in_code_words,
                    &(struct code_letter){.design = test_design(true),
                                          .shape = &shape,
                                          .code = &(const struct code){"ABCDEFGH"},
                                          .minutes = minutes,
                                          .reference = ID},
                    &mail);
    return mail;
}

static void the_mail_has_the_code_its_life_and_that_it_can_be_ignored(void **state UNUSED)
{
    struct mail mail = written(5);
    assert_string_equal(mail.subject, "Your sign-in code");
    assert_string_equal(buf_str(&mail.text).at,
                        "Your sign-in code is\r\n\r\n    ABCD-EFGH\r\n\r\n"
                        "This page has it filled in: https://example.com/account#ABCD-EFGH\r\n\r\n"
                        "It is valid for 5 minutes and works once. Enter it where you asked for it.\r\n\r\n"
                        "If it was not you who asked, ignore this mail: without the code nobody is "
                        "signed in. Do not pass it on.\r\n\r\n"
                        "Reference: " ID "\r\n");
    assert_non_null(strstr(buf_str(&mail.html).at, ">ABCD-EFGH<"));
    mail_free(&mail);
}

static void the_last_minute_is_one(void **state UNUSED)
{
    struct mail mail = written(1);
    assert_non_null(strstr(buf_str(&mail.text).at, "valid for 1 minute and"));
    mail_free(&mail);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_mail_has_the_code_its_life_and_that_it_can_be_ignored),
        cmocka_unit_test(the_last_minute_is_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
