#include "recovery/contract.h"

#include <string.h>

#include "../base/unit.h"
#include "base/json.h"

static void both_contracts_answer_with_their_documents_statuses(void **state UNUSED)
{
    static const int v1[] = {0, 404, 401, 429, 404, 409, 500, 400, 503, 409};
    static const int recovery[] = {0, 400, 400, 429, 404, 400, 500, 400, 500, 409};
    for (int i = 1; i <= 9; i++) {
        assert_int_equal(contract_cleanup_v1.errors[i].status, v1[i]);
        assert_int_equal(contract_registration_recovery.errors[i].status, recovery[i]);
        assert_true(strlen(contract_cleanup_v1.errors[i].message) > 10);
        assert_true(strlen(contract_registration_recovery.errors[i].message) > 10);
    }
    assert_int_equal(contract_cleanup_v1.malformed, CLEANUP_MALFORMED);
    assert_int_equal(contract_registration_recovery.malformed, CLEANUP_EXPIRED);
}

static void a_refusal_satisfies_both_documents(void **state UNUSED)
{
    struct request rq = {.arena = arena_new(1024, 65536), .correlation_id = "00000000-0000-4000-8000-000000000001"};
    contract_refuse(&rq, &contract_cleanup_v1, CLEANUP_NOT_ORPHANED);
    assert_int_equal(rq.reply.status, 409);
    json_t *body = json_read_object(rq.reply.body, NULL);
    assert_non_null(body);
    json_t *error = json_object_get(body, "error");
    assert_true(json_is_false(json_object_get(body, "success")));
    assert_string_equal(json_string_value(json_object_get(body, "correlationId")), rq.correlation_id);
    assert_string_equal(json_string_value(json_object_get(body, "message")),
                        json_string_value(json_object_get(error, "message")));
    assert_string_equal(json_string_value(json_object_get(error, "code")), "ORPHAN_CLEANUP_005");
    assert_int_equal(json_integer_value(json_object_get(error, "httpStatus")), 409);
    assert_string_equal(json_string_value(json_object_get(error, "message")),
                        "Your account is active. Please log in instead.");
    json_decref(body);
    arena_free(rq.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_contracts_answer_with_their_documents_statuses),
        cmocka_unit_test(a_refusal_satisfies_both_documents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
