#include "pg/url.h"

#include <string.h>

#include "../base/unit.h"
#include "server.h"

static void what_a_url_says_is_found(void **state UNUSED)
{
    struct pg_target t;
    struct why why = {""};
    assert_int_equal(pg_url_read("postgresql://me:pw@db.example.com:6543/app", &t, &why), OK);
    assert_string_equal(t.host, "db.example.com");
    assert_string_equal(t.port, "6543");
    assert_string_equal(t.user, "me");
    assert_int_equal(pg_url_read("host=a,b port=1,2 user=me", &t, &why), OK);
    assert_string_equal(t.host, "a");
    assert_string_equal(t.port, "1");
    assert_int_equal(pg_url_read("postgresql:///app", &t, &why), OK);
    assert_string_equal(t.host, "");
    assert_int_equal(pg_url_read("mysql://me:hidden@host/app", &t, &why), ERR_INPUT);
    assert_null(strstr(why.text, "hidden"));
}

static void another_role_keeps_everything_else(void **state UNUSED)
{
    static const struct {
        const char *url;
        struct pg_url_change change;
        const char *wanted;
    } cases[] = {
        {"postgresql://me:old@h:5432/app?sslmode=require",
         {"reclaim", "p@ss/w:rd", NULL, NULL},
         "postgresql://reclaim:p%40ss%2Fw%3Ard@h:5432/app?sslmode=require"},
        {"postgresql://me:old@h/", {"reclaim", "x", "me", NULL}, "postgresql://reclaim:x@h/me"},
        {"postgresql://me:old@h:6543/app", {NULL, NULL, NULL, "5432"}, "postgresql://me:old@h:5432/app"},
        {"postgresql://me:old@h/app", {"reclaim", NULL, NULL, NULL}, "postgresql://reclaim@h/app"},
        {"postgresql://me@/app?host=/run/pg&port=5433",
         {"reclaim", "x", NULL, NULL},
         "postgresql://reclaim:x@/app?host=%2Frun%2Fpg&port=5433"},
        {"postgresql://me@a:1,b:2/app", {"r", "x", NULL, NULL}, "postgresql://r:x@/app?host=a%2Cb&port=1%2C2"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        AUTO(buf) struct buf out = buf_new(1024);
        struct why why = {""};
        assert_int_equal(pg_url_with(cases[i].url, &cases[i].change, &out, &why), OK);
        assert_string_equal(buf_str(&out).at, cases[i].wanted);
        assert_int_equal(pg_check_url(buf_str(&out).at, &why), OK);
    }
}

static void the_server_takes_the_verifier_of_a_password(void **state UNUSED)
{
    AUTO(pg) struct pg *pg = must_connect(shared_url(), PG_PREPARE_OFF);
    char verifier[PG_VERIFIER_MAX];
    assert_int_equal(pg_password_verifier(pg, "reclaim", "hidden", verifier), OK);
    assert_memory_equal(verifier, "SCRAM-SHA-256$", 14);
    assert_null(strstr(verifier, "hidden"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_url_says_is_found),
        cmocka_unit_test(another_role_keeps_everything_else),
        cmocka_unit_test(the_server_takes_the_verifier_of_a_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
