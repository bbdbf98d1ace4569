#include "events/broker.h"

#include <string.h>

#include "../base/unit.h"
#include "events/inside.h"

static void a_url_says_whom_to_ask_and_as_whom(void **state UNUSED)
{
    struct why why = {""};
    AUTO(broker) struct broker *b = broker_new("amqp://us%40er:p%2Fa%3Ass@mq.example.com:5673/orders%2Feu", &why);
    assert_non_null(b);
    assert_string_equal(b->address.host, "mq.example.com");
    assert_int_equal(b->address.port, 5673);
    assert_string_equal(b->address.user, "us@er");
    assert_string_equal(b->address.password, "p/a:ss");
    assert_string_equal(b->address.vhost, "orders/eu");
    assert_false(b->address.ssl);
}

static void what_a_url_leaves_out_has_a_default(void **state UNUSED)
{
    struct why why = {""};
    const char *const urls[] = {"amqp://localhost", "amqp://localhost/", "amqp://localhost/%2f"};
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        AUTO(broker) struct broker *b = broker_new(urls[i], &why);
        assert_non_null(b);
        assert_string_equal(b->address.vhost, "/");
        assert_int_equal(b->address.port, 5672);
        assert_string_equal(b->address.user, "guest");
    }
}

static void tls_has_its_own_port_and_files(void **state UNUSED)
{
    struct why why = {""};
    AUTO(broker)
    struct broker *b = broker_new("amqps://localhost/v?cacertfile=/a/ca.pem&certfile=/a/c.pem&keyfile=/a/k.pem", &why);
    assert_non_null(b);
    assert_true(b->address.ssl);
    assert_int_equal(b->address.port, 5671);
    assert_string_equal(b->address.vhost, "v");
    assert_string_equal(b->ca_file, "/a/ca.pem");
    assert_string_equal(b->certificate_file, "/a/c.pem");
    assert_string_equal(b->key_file, "/a/k.pem");
}

static void urls_that_make_no_sense_are_refused(void **state UNUSED)
{
    const char *const urls[] = {"",
                                "localhost",
                                "http://localhost",
                                "amqp://",
                                "amqp://localhost:port",
                                "amqp://localhost:99999999",
                                "amqp://a:b:c@localhost",
                                "amqp://localhost/%zz",
                                "amqp://localhost?cacertfile=/x",
                                "amqps://localhost?verify=none",
                                "amqps://localhost?cacertfile",
                                "amqps://localhost?certfile=/x"};
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        struct why why = {""};
        if (broker_check_url(urls[i], &why) != ERR_INPUT)
            fail_msg("%s was taken", urls[i]);
        assert_true(why.text[0]);
    }
}

static void nothing_listens_and_the_password_is_not_told(void **state UNUSED)
{
    struct why why = {""};
    AUTO(broker) struct broker *b = broker_new("amqp://user:canary-password@127.0.0.1:1/", &why);
    assert_non_null(b);
    assert_int_equal(broker_connect(b, &why), ERR_CLOSED);
    assert_false(broker_is_up(b));
    assert_non_null(strstr(why.text, "127.0.0.1:1"));
    assert_null(strstr(why.text, "canary"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_says_whom_to_ask_and_as_whom),
        cmocka_unit_test(what_a_url_leaves_out_has_a_default),
        cmocka_unit_test(tls_has_its_own_port_and_files),
        cmocka_unit_test(urls_that_make_no_sense_are_refused),
        cmocka_unit_test(nothing_listens_and_the_password_is_not_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
