/* Forms as browsers send them, and as others may. */
#include "http/form.h"

#include <string.h>

#include "../base/unit.h"
#include "base/buf.h"

static const char *content_type = "application/x-www-form-urlencoded";

/* Instead of the server's. */
struct str request_header(const struct request *rq UNUSED, const char *name)
{
    return strcmp(name, "Content-Type") == 0 ? str_of(content_type) : (struct str){NULL, 0};
}

static struct form form;
static struct request rq;

static int begin(void **state UNUSED)
{
    rq = (struct request){.arena = arena_new(1024, (size_t)1024 * 1024)};
    content_type = "application/x-www-form-urlencoded";
    return rq.arena ? 0 : -1;
}

static int end(void **state UNUSED)
{
    arena_free(rq.arena);
    return 0;
}

static enum err read_form(const char *body)
{
    rq.body = str_of(body);
    return form_read(&rq, &form);
}

static void fields_are_decoded(void **state UNUSED)
{
    assert_int_equal(read_form("email=a%2Bb%40example.com&code=ab+cd&%C3%A4=%C3%B6&flag&empty=&x=1=2&&y=3&"), OK);
    assert_str(form_get(&form, "email"), "a+b@example.com");
    assert_str(form_get(&form, "code"), "ab cd");
    assert_str(form_get(&form, "ä"), "ö");
    assert_str(form_get(&form, "flag"), "");
    assert_str(form_get(&form, "empty"), "");
    assert_str(form_get(&form, "x"), "1=2");
    assert_str(form_get(&form, "y"), "3");
    assert_absent(form_get(&form, "none"));
}

static void of_two_fields_with_one_name_the_first_counts(void **state UNUSED)
{
    assert_int_equal(read_form("a=1&a=2"), OK);
    assert_str(form_get(&form, "a"), "1");
}

static void an_empty_form_has_no_fields(void **state UNUSED)
{
    assert_int_equal(read_form(""), OK);
    assert_int_equal(form.count, 0);
}

static void strange_bytes_are_refused(void **state UNUSED)
{
    static const char *const wrong[] = {"a=%zz", "a=%4",   "a=%",   "%gg=1",      "a=%00",
                                        "a=%ff", "a=\xff", "a=%C3", "a=%ED%A0%80"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_equal(read_form(wrong[i]), ERR_INPUT);
}

static void the_number_of_fields_is_limited(void **state UNUSED)
{
    AUTO(buf) struct buf body = buf_new(1024);
    for (int i = 0; i < FORM_FIELDS_MAX; i++)
        buf_addz(&body, "a=1&");
    rq.body = buf_str(&body);
    assert_int_equal(form_read(&rq, &form), OK);
    assert_int_equal(form.count, FORM_FIELDS_MAX);
    buf_addz(&body, "b=2");
    rq.body = buf_str(&body);
    assert_int_equal(form_read(&rq, &form), ERR_INPUT);
}

static void only_forms_are_read(void **state UNUSED)
{
    static const char *const others[] = {NULL,
                                         "",
                                         "text/plain",
                                         "application/json",
                                         "multipart/form-data; boundary=x",
                                         "application/x-www-form-urlencodedx"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        content_type = others[i];
        assert_int_equal(read_form("a=1"), ERR_INPUT);
    }
    content_type = "Application/X-WWW-Form-URLEncoded ; charset=UTF-8";
    assert_int_equal(read_form("a=1"), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(fields_are_decoded, begin, end),
        cmocka_unit_test_setup_teardown(of_two_fields_with_one_name_the_first_counts, begin, end),
        cmocka_unit_test_setup_teardown(an_empty_form_has_no_fields, begin, end),
        cmocka_unit_test_setup_teardown(strange_bytes_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(the_number_of_fields_is_limited, begin, end),
        cmocka_unit_test_setup_teardown(only_forms_are_read, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
