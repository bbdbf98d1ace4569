#include "credentials/jwt.h"
#include "forge.h"

#define NOW_US INT64_C(1800000000000000)
#define USER "11111111-2222-4333-8444-5555aaaabbbb"
#define SESSION "99999999-2222-4333-8444-5555aaaabbbb"

static struct jwt_keys *keys;

static int load_keys(void **state UNUSED)
{
    struct why why;
    return jwt_keys_new(&(struct jwt_sources){.own = &own_key, .secret = SECRET}, &keys, &why) ? -1 : 0;
}

static int free_keys(void **state UNUSED)
{
    jwt_keys_free(keys);
    return 0;
}

static enum jwt_fault verify(const char *token, struct claims *ret)
{
    return jwt_verify(keys, str_of(token), NOW_US, ret);
}

/* A payload that is valid but for what `more` says. */
static const char *payload_with(const char *more)
{
    static char text[512];
    snprintf(text, sizeof text, "{\"exp\":1800003600,%s}", more);
    return text;
}

#define OWN "\"iss\":\"reclaim\",\"aud\":\"reclaim\""

static void a_session_that_was_signed_is_read_back(void **state UNUSED)
{
    AUTO(buf) struct buf token = buf_new(JWT_MAX);
    const struct jwt_grant grant = {"authenticated", USER, SESSION, NOW_US, NOW_US + 1000000};
    struct claims c;
    assert_int_equal(jwt_sign(&own_key, &grant, &token), OK);
    assert_int_equal(verify(buf_str(&token).at, &c), JWT_FINE);
    assert_string_equal(c.session, SESSION);
    assert_string_equal(c.sub, USER);
}

static void a_token_without_one_has_no_session(void **state UNUSED)
{
    struct claims c;
    assert_int_equal(verify(own_hs256(payload_with(OWN ",\"sub\":\"" USER "\"")), &c), JWT_FINE);
    assert_string_equal(c.session, "");
}

static void the_sessions_of_other_issuers_are_not_ours(void **state UNUSED)
{
    const char *const theirs[] = {"\"sub\":\"" USER "\",\"sid\":\"" SESSION "\"",
                                  "\"iss\":\"them\",\"sub\":\"" USER "\",\"sid\":\"" SESSION "\"",
                                  "\"sub\":\"" USER "\",\"sid\":7"};
    for (size_t i = 0; i < COUNT_OF(theirs); i++) {
        struct claims c;
        assert_int_equal(verify(hs256(payload_with(theirs[i])), &c), JWT_FINE);
        assert_string_equal(c.session, "");
    }
}

/* A token whose session cannot be looked up must not count as one without a session, which nothing ends. */
static void a_session_that_is_none_makes_a_token_malformed(void **state UNUSED)
{
    const char *const wrong[] = {
        OWN ",\"sub\":\"" USER "\",\"sid\":\"me\"",
        OWN ",\"sub\":\"" USER "\",\"sid\":\"\"",
        OWN ",\"sub\":\"" USER "\",\"sid\":7",
        OWN ",\"sub\":\"" USER "\",\"sid\":null",
        OWN ",\"sub\":\"" USER "\",\"sid\":[\"" SESSION "\"]",
        OWN ",\"sid\":\"" SESSION "\"", /* of nobody */
        OWN ",\"sub\":\"nobody\",\"sid\":\"" SESSION "\"",
    };
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        struct claims c;
        assert_int_equal(verify(own_hs256(payload_with(wrong[i])), &c), JWT_MALFORMED);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_that_was_signed_is_read_back),
        cmocka_unit_test(a_token_without_one_has_no_session),
        cmocka_unit_test(the_sessions_of_other_issuers_are_not_ours),
        cmocka_unit_test(a_session_that_is_none_makes_a_token_malformed),
    };
    return cmocka_run_group_tests(tests, load_keys, free_keys);
}
