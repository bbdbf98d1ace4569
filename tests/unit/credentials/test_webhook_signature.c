#include "credentials/webhook_signature.h"

#include "../base/unit.h"
#include "base/buf.h"

/* The example of the specification: every other program signs the same. */
#define SECRET "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define OTHER "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX"
#define ID "msg_p5jXN8AQM9LWM0D4loKWxJek"
#define AT "1614265330"
#define AT_S 1614265330
#define BODY "{\"test\": 2432232314}"
#define SIGNATURE "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
#define NOT_IT "v1,AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

static struct webhook_secrets secrets_of(const char *text)
{
    struct webhook_secrets secrets;
    assert_int_equal(webhook_secrets_read(str_of(text), &secrets), OK);
    return secrets;
}

static enum err verify(const char *secrets, const char *id, const char *at, const char *signature, const char *body,
                       int64_t now_s)
{
    struct webhook_secrets read = secrets_of(secrets);
    struct webhook_headers headers = {str_of(id), str_of(at), str_of(signature)};
    return webhook_verify(&read, &headers, str_of(body), now_s);
}

static void the_example_of_the_specification_is_accepted(void **state UNUSED)
{
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY, AT_S), OK);
    assert_int_equal(verify("v1," SECRET, ID, AT, SIGNATURE, BODY, AT_S), OK);
}

static void one_right_signature_among_several_is_enough(void **state UNUSED)
{
    static const char *const lists[] = {NOT_IT " " SIGNATURE,       SIGNATURE " " NOT_IT,    NOT_IT ", " SIGNATURE,
                                        "v1a,AAAA " SIGNATURE,      "nonsense " SIGNATURE,   "  " SIGNATURE " ",
                                        NOT_IT ", " SIGNATURE ", ", SIGNATURE ", " SIGNATURE};
    for (size_t i = 0; i < COUNT_OF(lists); i++)
        assert_int_equal(verify(SECRET, ID, AT, lists[i], BODY, AT_S), OK);
}

static void either_secret_is_accepted_while_one_replaces_the_other(void **state UNUSED)
{
    assert_int_equal(verify("v1," OTHER "|v1," SECRET, ID, AT, SIGNATURE, BODY, AT_S), OK);
    assert_int_equal(verify("v1," SECRET "|" OTHER, ID, AT, SIGNATURE, BODY, AT_S), OK);
    assert_int_equal(verify(OTHER, ID, AT, SIGNATURE, BODY, AT_S), ERR_INPUT);
}

static void what_was_changed_is_refused(void **state UNUSED)
{
    assert_int_equal(verify(SECRET, ID "x", AT, SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, "1614265331", SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY " ", AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, "", AT_S), ERR_INPUT);
}

/* The dots between id, time and body could be read in another place. */
static void bytes_cannot_be_read_in_two_ways(void **state UNUSED)
{
    assert_int_equal(verify(SECRET, ID "." AT, "0", SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, "", ID "." AT, SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, AT ".{\"test\": 2432232314", SIGNATURE, "}", AT_S), ERR_INPUT);
}

static void signatures_that_are_short_or_malformed_are_refused(void **state UNUSED)
{
    static const char *const wrong[] = {
        "",
        "v1",
        "v1,",
        "v2" SIGNATURE,
        "v1,g0hM",
        "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE", /* without its padding */
        SIGNATURE "AAAA",
        "v1," SIGNATURE,
        "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
        "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(verify(SECRET, ID, AT, wrong[i], BODY, AT_S), ERR_INPUT);
}

static void a_time_more_than_five_minutes_away_is_refused(void **state UNUSED)
{
    static const char *const times[] = {"", "-1", "1614265330.0", " 1614265330", "99999999999999999999", "soon"};
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY, AT_S + 300), OK);
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY, AT_S - 300), OK);
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY, AT_S + 301), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, AT, SIGNATURE, BODY, AT_S - 301), ERR_INPUT);
    for (size_t i = 0; i < COUNT_OF(times); i++)
        assert_int_equal(verify(SECRET, ID, times[i], SIGNATURE, BODY, AT_S), ERR_INPUT);
}

static void missing_headers_are_refused(void **state UNUSED)
{
    assert_int_equal(verify(SECRET, NULL, AT, SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, NULL, SIGNATURE, BODY, AT_S), ERR_INPUT);
    assert_int_equal(verify(SECRET, ID, AT, NULL, BODY, AT_S), ERR_INPUT);
}

static void only_so_many_signatures_are_looked_at(void **state UNUSED)
{
    AUTO(buf) struct buf list = buf_new(2048);
    for (int i = 0; i < 16; i++)
        buf_addz(&list, NOT_IT " ");
    buf_addz(&list, SIGNATURE);
    assert_int_equal(verify(SECRET, ID, AT, buf_str(&list).at, BODY, AT_S), ERR_INPUT);
}

static void secrets_that_are_none_are_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"",
                                        "v1,",
                                        "whsec_",
                                        "v1,whsec_",
                                        "whsec_dG9vIHNob3J0",
                                        "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
                                        "v2," SECRET,
                                        SECRET "|",
                                        SECRET "|" SECRET "|" SECRET "|" SECRET "|" SECRET,
                                        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa*w"};
    struct webhook_secrets secrets;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(webhook_secrets_read(str_of(wrong[i]), &secrets), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_specification_is_accepted),
        cmocka_unit_test(one_right_signature_among_several_is_enough),
        cmocka_unit_test(either_secret_is_accepted_while_one_replaces_the_other),
        cmocka_unit_test(what_was_changed_is_refused),
        cmocka_unit_test(bytes_cannot_be_read_in_two_ways),
        cmocka_unit_test(signatures_that_are_short_or_malformed_are_refused),
        cmocka_unit_test(a_time_more_than_five_minutes_away_is_refused),
        cmocka_unit_test(missing_headers_are_refused),
        cmocka_unit_test(only_so_many_signatures_are_looked_at),
        cmocka_unit_test(secrets_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
