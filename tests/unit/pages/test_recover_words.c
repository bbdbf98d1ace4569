/* What registration recovery answers, and the sentence that people read: every answer has one of its own. */
#include "pages/recover.h"

#include <stdio.h>

#include "../base/unit.h"
#include "text/sentences.h"

static void every_row_of_the_state_matrix_has_its_word(void **state UNUSED)
{
    static const struct {
        const char *data, *found;
    } cases[] = {
        {"{\"status\":\"not_registered\",\"hasCompanyData\":false,\"isOrphaned\":false}", "not_registered"},
        {"{\"status\":\"registered_unverified\",\"hasCompanyData\":false,\"isOrphaned\":true}", "unverified"},
        {"{\"status\":\"registered_unverified\",\"hasCompanyData\":true,\"isOrphaned\":false}", "unconfirmed"},
        {"{\"status\":\"registered_verified\",\"hasCompanyData\":false,\"isOrphaned\":true}", "verified"},
        {"{\"status\":\"registered_verified\",\"hasCompanyData\":true,\"isOrphaned\":false}", "complete"},
        {"{\"status\":\"registered_verified\",\"hasCompanyData\":null,\"isOrphaned\":null}", "unknown"},
        {"{\"status\":\"registered_unverified\",\"hasCompanyData\":null,\"isOrphaned\":null}", "unknown"},
        {"{\"status\":\"registered_verified\"}", "unknown"},
        {"{}", "unknown"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char key[100];
        enum text id;
        AUTO(json) json_t *data = json_loads(cases[i].data, 0, NULL);
        assert_string_equal(recover_found(data), cases[i].found);
        snprintf(key, sizeof key, "recover.found_heading.%s", cases[i].found);
        assert_int_equal(sentence_find(str_of(key), &id), OK);
        snprintf(key, sizeof key, "recover.found_text.%s", cases[i].found);
        assert_int_equal(sentence_find(str_of(key), &id), OK);
    }
    assert_string_equal(recover_found(NULL), "unknown");
}

static const char *problem(const char *code, const char *field, bool six_digits)
{
    AUTO(json)
    json_t *answer = json_pack("{s:{s:s,s:[{s:s}]}}", "error", "code", code, "details", "field", field);
    return recover_problem(answer, six_digits);
}

static void every_error_of_both_contracts_has_a_sentence(void **state UNUSED)
{
    static const char *const words[2][9] = {
        {"expired", "wrong", "limited", "not_registered", "complete", "fault", "malformed", "mail", "busy"},
        {"malformed", "wrong_digits", "limited", "not_registered", "complete", "fault", "malformed", "mail", "busy"},
    };
    for (int contract = 0; contract < 2; contract++)
        for (int number = 1; number <= 9; number++) {
            char code[32], key[100];
            enum text id;
            snprintf(code, sizeof code, "ORPHAN_CLEANUP_%03d", number);
            const char *word = problem(code, "step", contract == 1);
            assert_string_equal(word, words[contract][number - 1]);
            snprintf(key, sizeof key, "recover.problem.%s", word);
            assert_int_equal(sentence_find(str_of(key), &id), OK);
        }
}

static void a_field_that_cannot_be_read_is_named(void **state UNUSED)
{
    assert_string_equal(problem("ORPHAN_CLEANUP_007", "email", false), "bad_address");
    assert_string_equal(problem("ORPHAN_CLEANUP_001", "email", true), "bad_address");
    assert_string_equal(problem("ORPHAN_CLEANUP_007", "verificationCode", false), "bad_code");
    assert_string_equal(problem("ORPHAN_CLEANUP_001", "verificationCode", true), "bad_digits");
    assert_string_equal(problem("ORPHAN_CLEANUP_002", "email", true), "wrong_digits");
}

static void what_is_no_answer_of_a_contract_is_our_fault(void **state UNUSED)
{
    static const char *const codes[] = {"", "ORPHAN_CLEANUP_00", "ORPHAN_CLEANUP_00x", "ORPHAN_CLEANUP_0011",
                                        "NOT_FOUND"};
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        assert_string_equal(problem(codes[i], "step", false), "fault");
    assert_string_equal(recover_problem(NULL, false), "fault");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_of_the_state_matrix_has_its_word),
        cmocka_unit_test(every_error_of_both_contracts_has_a_sentence),
        cmocka_unit_test(a_field_that_cannot_be_read_is_named),
        cmocka_unit_test(what_is_no_answer_of_a_contract_is_our_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
