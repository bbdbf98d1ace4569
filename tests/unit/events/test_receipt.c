#include "events/receipt.h"

#include <stdio.h>
#include <string.h>

#include "../base/unit.h"

#define ID "0b8f5f2e-5d3c-4a8e-9a55-0c4f9e6b7a11"

static enum err parse(const char *text, struct receipt *ret, struct why *why)
{
    *why = (struct why){""};
    return receipt_parse(str_of(text), ret, why);
}

static void a_receipt_says_who_did_what(void **state UNUSED)
{
    struct receipt r;
    struct why why;
    assert_int_equal(
        parse("{\"customer_id\":\"" ID "\",\"participant\":\"files\",\"status\":\"done\",\"rows\":7}", &r, &why), OK);
    assert_string_equal(r.customer_id, ID);
    assert_string_equal(r.participant, "files");
    assert_true(r.done);
    assert_int_equal(r.rows, 7);
    assert_string_equal(r.error, "");
}

static void a_failure_brings_its_words_and_may_leave_out_the_rows(void **state UNUSED)
{
    struct receipt r;
    struct why why;
    assert_int_equal(parse("{\"customer_id\":\"" ID "\",\"participant\":\"files\",\"status\":\"failed\",\"rows\":null,"
                           "\"error\":\"disk full\",\"more\":[1]}",
                           &r, &why),
                     OK);
    assert_false(r.done);
    assert_int_equal(r.rows, -1);
    assert_string_equal(r.error, "disk full");
}

static void long_words_are_cut_where_a_character_ends(void **state UNUSED)
{
    struct receipt r;
    struct why why;
    char text[4096] = "{\"customer_id\":\"" ID "\",\"participant\":\"files\",\"status\":\"failed\",\"error\":\"x";
    size_t len = strlen(text);
    for (int i = 0; i < 600; i++, len += 2)
        memcpy(text + len, "ä", 3);
    snprintf(text + len, sizeof text - len, "\"}");
    assert_int_equal(parse(text, &r, &why), OK);
    assert_true(strlen(r.error) <= RECEIPT_ERROR_MAX + 3);
    assert_true(str_is_utf8(str_of(r.error)));
    assert_string_equal(r.error + strlen(r.error) - 3, "…");
}

static void what_is_no_receipt_is_refused_with_the_reason(void **state UNUSED)
{
    static const char *const wrong[][2] = {
        {"", "JSON"},
        {"garbage", "JSON"},
        {"[]", "JSON"},
        {"{\"customer_id\":1,\"customer_id\":2}", "JSON"},
        {"{}", "customer_id"},
        {"{\"customer_id\":\"x\"}", "customer_id"},
        {"{\"customer_id\":\"" ID "\"}", "participant"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"\"}", "participant"},
        {"{\"customer_id\":\"" ID "\",\"participant\":7}", "participant"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\"}", "status"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\",\"status\":\"Done\"}", "status"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\",\"status\":\"done\",\"rows\":-1}", "rows"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\",\"status\":\"done\",\"rows\":1.5}", "rows"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\",\"status\":\"done\",\"rows\":\"1\"}", "rows"},
        {"{\"customer_id\":\"" ID "\",\"participant\":\"p\",\"status\":\"done\",\"error\":1}", "error"},
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct receipt r;
        struct why why;
        assert_int_equal(parse(wrong[i][0], &r, &why), ERR_INPUT);
        if (!strstr(why.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], why.text);
    }
}

static void one_that_is_too_long_is_not_read(void **state UNUSED)
{
    static char text[RECEIPT_BYTES_MAX + 1];
    struct receipt r;
    struct why why = {""};
    memset(text, ' ', sizeof text);
    assert_int_equal(receipt_parse((struct str){text, sizeof text}, &r, &why), ERR_INPUT);
    assert_non_null(strstr(why.text, "longer"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_receipt_says_who_did_what),
        cmocka_unit_test(a_failure_brings_its_words_and_may_leave_out_the_rows),
        cmocka_unit_test(long_words_are_cut_where_a_character_ends),
        cmocka_unit_test(what_is_no_receipt_is_refused_with_the_reason),
        cmocka_unit_test(one_that_is_too_long_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
