/* The mail with a code has what a reader needs, in both of its parts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "../mail/test_design.h"
#include "recovery/code_mail.h"

#define REFERENCE "3f0b5ab0-5df2-4d33-8f5e-0d3e9c6b1a11"

static struct mail written(int minutes)
{
    static const struct code code = {"ABCDEFGH"};
    struct mail mail;
    code_mail_write(&recovery_code_words,
                    &(struct code_letter){.design = test_design(false),
                                          .shape = &contract_cleanup_v1.code,
                                          .code = &code,
                                          .minutes = minutes,
                                          .reference = REFERENCE},
                    &mail);
    assert_int_equal(mail.text.failed, OK);
    assert_int_equal(mail.html.failed, OK);
    return mail;
}

static void the_text_is_exactly_this(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = written(5);
    assert_string_equal(buf_str(&mail.text).at,
                        "Your verification code is\r\n\r\n    ABCD-EFGH\r\n\r\n"
                        "It is valid for 5 minutes and works once. Enter it where you asked for it: "
                        "the unfinished registration of this address is then removed, and you can "
                        "register again.\r\n\r\n"
                        "If it was not you who asked, ignore this mail: without the code nothing "
                        "happens.\r\n\r\n"
                        "Reference: " REFERENCE "\r\n");
}

static void both_parts_have_all_that_a_reader_needs(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = written(5);
    const struct buf *parts[] = {&mail.text, &mail.html};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        const char *text = buf_str(parts[i]).at;
        assert_non_null(strstr(text, "ABCD-EFGH"));
        assert_non_null(strstr(text, "valid for 5 minutes"));
        assert_non_null(strstr(text, "If it was not you who asked, ignore this mail"));
        assert_non_null(strstr(text, "Reference: " REFERENCE));
    }
    const char *code = strstr(mail.html.at, "monospace");
    assert_non_null(code);
    assert_non_null(strstr(code, "font-size:32px"));
    assert_null(strstr(mail.subject, "ABCD"));
}

static void one_minute_is_not_minutes(void **state)
{
    (void)state;
    AUTO(mail) struct mail mail = written(1);
    assert_non_null(strstr(buf_str(&mail.text).at, "valid for 1 minute and"));
    assert_non_null(strstr(buf_str(&mail.html).at, "valid for 1 minute and"));
}

static void a_mail_that_is_taken_over_is_written_by_the_contract_of_its_payload(void **state)
{
    (void)state;
    static const struct {
        const char *payload;
        const struct contract *contract;
    } cases[] = {
        {"{\"contract\":\"cleanup-v1\"}", &contract_cleanup_v1},
        {"{\"contract\":\"registration-recovery\"}", &contract_registration_recovery},
        {"{\"contract\":\"another\"}", NULL},
        {"{\"contract\":1}", NULL},
        {"{}", NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct contract *contract = NULL;
        AUTO(json) json_t *payload = json_read_object(str_of(cases[i].payload), NULL);
        assert_int_equal(code_mail_contract(payload, &contract), cases[i].contract ? OK : ERR_INPUT);
        assert_ptr_equal(contract, cases[i].contract);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_is_exactly_this),
        cmocka_unit_test(both_parts_have_all_that_a_reader_needs),
        cmocka_unit_test(one_minute_is_not_minutes),
        cmocka_unit_test(a_mail_that_is_taken_over_is_written_by_the_contract_of_its_payload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
