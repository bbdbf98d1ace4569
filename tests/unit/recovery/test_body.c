#include "recovery/body.h"

#include <string.h>

#include "../base/unit.h"
#include "recovery/contract.h"

#define ID "7b1c9a54-30c5-4f0e-9a51-4a4f3ad0a0a1"

static enum err read_cleanup(struct arena *arena, const char *text, struct body *ret)
{
    return body_read_cleanup(arena, &contract_cleanup_v1.code, str_of(text), ret);
}

static void both_steps_are_understood(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 65536);
    struct body body;
    assert_int_equal(read_cleanup(arena, "{\"step\":\"request-code\",\"email\":\" A@Example.com \",\"more\":1}", &body),
                     OK);
    assert_int_equal(body.step, BODY_REQUEST_CODE);
    assert_string_equal(body.email.at, "a@example.com");
    assert_string_equal(body.correlation_id, "");

    assert_int_equal(read_cleanup(arena,
                                  "{\"step\":\"validate-and-cleanup\",\"email\":\"a@example.com\","
                                  "\"verificationCode\":\"abcd efgh\",\"correlationId\":\"" ID "\"}",
                                  &body),
                     OK);
    assert_int_equal(body.step, BODY_VALIDATE);
    assert_string_equal(body.code.symbols, "ABCDEFGH");
    assert_string_equal(body.correlation_id, ID);
    arena_free(arena);
}

static void what_misses_something_is_malformed(void **state UNUSED)
{
    static const char *const cases[] = {
        "",
        "[]",
        "{}",
        "{\"step\":\"request-code\"}",
        "{\"email\":\"a@example.com\"}",
        "{\"step\":\"request-code\",\"email\":\"a\"}",
        "{\"step\":\"delete\",\"email\":\"a@example.com\"}",
        "{\"step\":\"validate-and-cleanup\",\"email\":\"a@example.com\"}",
        "{\"step\":\"validate-and-cleanup\",\"email\":\"a@example.com\",\"verificationCode\":12345678}",
        "{\"step\":\"validate-and-cleanup\",\"email\":\"a@example.com\",\"verificationCode\":\"ABCD\"}",
        "{\"step\":\"request-code\",\"email\":\"a@example.com\",\"correlationId\":\"1\"}",
        "{\"step\":\"request-code\",\"email\":\"a@example.com\",\"correlationId\":null}",
        "{\"step\":\"request-code\",\"email\":\"a@example.com\",\"email\":\"b@example.com\"}",
    };
    struct arena *arena = arena_new(1024, 65536);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct body body;
        assert_int_not_equal(read_cleanup(arena, cases[i], &body), OK);
        assert_int_equal(body.step, BODY_MALFORMED);
        assert_string_equal(body.correlation_id, "");
    }
    arena_free(arena);
}

static void every_field_that_is_wrong_is_named(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 65536);
    struct body body;
    assert_int_not_equal(read_cleanup(arena, "{\"email\":1,\"correlationId\":2,\"step\":3}", &body), OK);
    assert_int_equal(body.problems.count, 3);
    assert_string_equal(body.problems.at[0].field, "correlationId");
    assert_string_equal(body.problems.at[0].message, "correlationId must be a UUID.");
    assert_string_equal(body.problems.at[1].message, "email must be a string.");
    assert_string_equal(body.problems.at[2].message, "step must be a string.");
    assert_int_not_equal(body_read_probe(arena, STR("{\"email\""), &body), OK);
    assert_int_equal(body.problems.count, 1);
    assert_string_equal(body.problems.at[0].field, "body");
    arena_free(arena);
}

static void the_correlation_id_of_a_malformed_body_is_kept(void **state UNUSED)
{
    struct arena *arena = arena_new(1024, 65536);
    struct body body;
    assert_int_not_equal(body_read_probe(arena, STR("{\"email\":1,\"correlationId\":\"" ID "\"}"), &body), OK);
    assert_string_equal(body.correlation_id, ID);
    assert_int_not_equal(read_cleanup(arena, "{\"step\":1,\"correlationId\":\"" ID "\"}", &body), OK);
    assert_string_equal(body.correlation_id, ID);
    arena_free(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_steps_are_understood),
        cmocka_unit_test(what_misses_something_is_malformed),
        cmocka_unit_test(every_field_that_is_wrong_is_named),
        cmocka_unit_test(the_correlation_id_of_a_malformed_body_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
