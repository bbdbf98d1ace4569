#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit.h"

static void commas_are_the_writers_care(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(1000);
    struct json_writer w = json_to(&b);
    json_open(&w, '{');
    json_key(&w, "a");
    json_i64(&w, -1);
    json_key(&w, "b");
    json_open(&w, '[');
    json_open(&w, '{');
    json_close(&w, '}');
    json_open(&w, '[');
    json_close(&w, ']');
    json_bool(&w, true);
    json_bool(&w, false);
    json_nil(&w);
    json_double(&w, 1.5);
    json_raw(&w, STR("{\"x\":1}"));
    json_str(&w, STR("s"));
    json_close(&w, ']');
    json_key(&w, "c");
    json_str(&w, (struct str){NULL, 0});
    json_close(&w, '}');
    assert_str(buf_str(&b), "{\"a\":-1,\"b\":[{},[],true,false,null,1.5,{\"x\":1},\"s\"],\"c\":null}");
}

static void numbers_are_written_whole(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(1000);
    struct json_writer w = json_to(&b);
    json_open(&w, '[');
    json_i64(&w, INT64_MIN);
    json_i64(&w, INT64_MAX);
    json_double(&w, 0.1);
    json_double(&w, 1e300);
    json_double(&w, NAN);
    json_double(&w, -INFINITY);
    json_close(&w, ']');
    assert_str(buf_str(&b), "[-9223372036854775808,9223372036854775807,0.1,1e+300,null,null]");
}

static void check_written(struct str s, size_t most, const char *want)
{
    AUTO(buf) struct buf b = buf_new(1000);
    struct json_writer w = json_to(&b);
    json_str_cut(&w, s, most);
    assert_str(buf_str(&b), want);
}

static void strings_are_escaped_and_made_utf8(void **state UNUSED)
{
    check_written(STR("plain €"), SIZE_MAX, "\"plain €\"");
    check_written(STR("\"\\/"), SIZE_MAX, "\"\\\"\\\\/\"");
    check_written(STR("\b\f\n\r\t"), SIZE_MAX, "\"\\b\\f\\n\\r\\t\"");
    check_written(STR("\0\x01\x1F\x7F"), SIZE_MAX, "\"\\u0000\\u0001\\u001f\\u007f\"");
    check_written(STR("\xC2\x80\xC2\x9B\xC2\xA0"), SIZE_MAX, "\"\\u0080\\u009b\xC2\xA0\"");
    check_written(STR("a\xFF\xC0\xAF"), SIZE_MAX, "\"a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_written(STR("cut off \xE2\x82"), SIZE_MAX, "\"cut off \xEF\xBF\xBD\xEF\xBF\xBD\"");
    check_written(STR(""), SIZE_MAX, "\"\"");
}

static void strings_are_cut_between_characters_and_escapes(void **state UNUSED)
{
    check_written(STR("abcdef"), 6, "\"abcdef\"");
    check_written(STR("abcdef"), 5, "\"abcde…\"");
    check_written(STR("abcdef"), 0, "\"…\"");
    check_written(STR(""), 0, "\"\"");
    check_written(STR("ab€"), 5, "\"ab€\"");
    check_written(STR("ab€"), 4, "\"ab…\"");
    check_written(STR("ab\n"), 4, "\"ab\\n\"");
    check_written(STR("ab\n"), 3, "\"ab…\"");
    check_written(STR("ab\x01z"), 7, "\"ab…\"");
    check_written(STR("ab\xFFz"), 4, "\"ab…\"");
}

/* For any bytes, jansson must read back the text written, with U+FFFD in place of invalid bytes. */
static void any_bytes_become_json_that_can_be_read(void **state UNUSED)
{
    static const char tricky[] = "\xF0\x9F\x98\x80\"\\\n\xE2\x82\xAC\xC2\x9F z";
    uint64_t numbers = 88172645463325252;
    for (int round = 0; round < 20000; round++) {
        char bytes[40];
        size_t len = number_below(&numbers, sizeof bytes);
        for (size_t i = 0; i < len; i++) {
            uint64_t n = next_number(&numbers);
            bytes[i] = round % 2 ? (char)n : tricky[n % sizeof tricky];
        }
        struct str s = {bytes, len};
        size_t most = round % 3 ? SIZE_MAX : number_below(&numbers, 50);
        AUTO(buf) struct buf b = buf_new(1000);
        struct json_writer w = json_to(&b);
        json_str_cut(&w, s, most);
        struct str out = buf_str(&b);
        assert_true(out.len <= 5 || out.len - 5 <= most);
        for (size_t i = 0; i < out.len; i++)
            assert_true((unsigned char)out.at[i] >= 0x20 && out.at[i] != 0x7F);
        AUTO(json) json_t *read = json_loadb(out.at, out.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        assert_non_null(read);
        if (most == SIZE_MAX && str_is_utf8(s)) {
            assert_int_equal(json_string_length(read), len);
            assert_memory_equal(json_string_value(read), bytes, len);
        }
    }
}

static void the_buffers_ceiling_stops_the_writer(void **state UNUSED)
{
    AUTO(buf) struct buf b = buf_new(10);
    struct json_writer w = json_to(&b);
    json_str(&w, STR("longer than ten"));
    assert_int_equal(b.failed, ERR_MEMORY);
    assert_absent(buf_str(&b));
}

static void an_object_is_read(void **state UNUSED)
{
    struct str text =
        STR(" {\"email\":\"a@example.com\",\"n\":1,\"nothing\":null,\"empty\":\"\",\"u\":\"\\u20ac\"}\r\n");
    struct why why;
    AUTO(json) json_t *root = json_read_object(text, &why);
    assert_non_null(root);
    struct str s;
    assert_int_equal(json_get_str(root, "email", &s), OK);
    assert_str(s, "a@example.com");
    assert_int_equal(json_get_str(root, "empty", &s), OK);
    assert_str(s, "");
    assert_int_equal(json_get_str(root, "u", &s), OK);
    assert_str(s, "€");
}

static void a_member_that_is_no_string_leaves_the_result_alone(void **state UNUSED)
{
    AUTO(json) json_t *root = json_read_object(STR("{\"n\":1,\"nothing\":null,\"list\":[\"x\"]}"), NULL);
    assert_non_null(root);
    struct str s = STR("before");
    assert_int_equal(json_get_str(root, "n", &s), ERR_INPUT);
    assert_int_equal(json_get_str(root, "nothing", &s), ERR_INPUT);
    assert_int_equal(json_get_str(root, "list", &s), ERR_INPUT);
    assert_int_equal(json_get_str(root, "N", &s), ERR_MISSING);
    assert_str(s, "before");
}

static void what_is_not_one_strict_object_is_refused(void **state UNUSED)
{
    static const struct {
        struct str text;
        const char *complaint;
    } table[] = {
        {STR(""), ""},
        {STR(" "), ""},
        {STR("[]"), "not an object"},
        {STR("[{}]"), "not an object"},
        {STR("\"x\""), ""},
        {STR("1"), ""},
        {STR("null"), ""},
        {STR("{"), "too early"},
        {STR("{\"a\":\"b"), "too early"},
        {STR("{\"a\":1,}"), ""},
        {STR("{'a':1}"), ""},
        {STR("{a:1}"), ""},
        {STR("{\"a\":01}"), ""},
        {STR("{\"a\":NaN}"), ""},
        {STR("{\"a\":1e999}"), "too large"},
        {STR("{\"a\":9223372036854775808}"), "too large"},
        {STR("{}x"), "behind"},
        {STR("{}{}"), "behind"},
        {STR("{}\0"), ""},
        {STR("\xEF\xBB\xBF{}"), ""},
        {STR("{\"a\":1,\"a\":2}"), "twice"},
        {STR("{\"a\":1,\"\\u0061\":2}"), "twice"},
        {STR("{\"x\":{\"a\":1,\"a\":2}}"), "twice"},
        {STR("{\"a\":\"\\u0000\"}"), "NUL"},
        {STR("{\"a\\u0000\":1}"), "NUL"},
        {STR("{\"a\":\"\0\"}"), ""},
        {STR("{\"a\":\"\n\"}"), ""},
        {STR("{\"a\":\"\xFF\"}"), "UTF-8"},
        {STR("{\"a\":\"\xC0\xAF\"}"), "UTF-8"},
        {STR("{\"a\":\"\xED\xA0\x80\"}"), "UTF-8"},
        {STR("{\"a\":\"\\ud800\"}"), ""},
        {STR("{\"a\":\"\\udc00\\ud800\"}"), ""},
        {STR("{\"a\":\"\\x41\"}"), ""},
        {STR("// hello\n{}"), ""},
    };
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        struct why why = {""};
        AUTO(json) json_t *root = json_read_object(table[i].text, &why);
        if (root || !*why.text || !strstr(why.text, table[i].complaint))
            fail_msg("row %zu of the table: %s", i, root ? "accepted" : why.text);
    }
    struct why why;
    assert_null(json_read_object((struct str){NULL, 0}, &why));
    assert_null(json_read_object(STR("["), NULL));
}

static void a_complaint_says_where_and_quotes_nothing(void **state UNUSED)
{
    struct why why;
    assert_null(json_read_object(STR("{\"password\":\n   hunter2}"), &why));
    assert_null(strstr(why.text, "hunter"));
    assert_non_null(strstr(why.text, "line 2"));
    assert_null(json_read_object(STR("{\"hunter2\":1,\"hunter2\":1}"), &why));
    assert_null(strstr(why.text, "hunter"));
}

static char *nested(size_t levels, const char *open, const char *close)
{
    size_t open_len = strlen(open), close_len = strlen(close);
    char *text = malloc(levels * (open_len + close_len) + 3);
    assert_non_null(text);
    char *at = text;
    for (size_t i = 0; i < levels; i++, at += open_len)
        memcpy(at, open, open_len);
    memcpy(at, "{}", 2);
    at += 2;
    for (size_t i = 0; i < levels; i++, at += close_len)
        memcpy(at, close, close_len);
    *at = '\0';
    return text;
}

static bool accepted(const char *text)
{
    AUTO(json) json_t *root = json_read_object(str_of(text), NULL);
    return root;
}

static void thirty_two_levels_are_read_and_one_more_is_not(void **state UNUSED)
{
    char *text = nested(31, "{\"a\":", "}");
    assert_true(accepted(text));
    free(text);
    text = nested(32, "{\"a\":", "}");
    struct why why;
    assert_null(json_read_object(str_of(text), &why));
    assert_non_null(strstr(why.text, "deep"));
    free(text);
}

static void brackets_in_strings_and_beside_each_other_are_not_depth(void **state UNUSED)
{
    assert_true(accepted("{\"a\":\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}"));
    assert_true(accepted("{\"a\":\"\\\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"}"));
    assert_true(
        accepted("{\"a\\\\\":[[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],[],"
                 "[],[],[],[],[],[],[],[],[],[]]}"));
}

static void *read_deep(void *text)
{
    return accepted(text) ? text : NULL;
}

static void ten_thousand_levels_do_not_exhaust_a_small_stack(void **state UNUSED)
{
    static const char *const shapes[][2] = {{"[", "]"}, {"{\"a\":", "}"}, {"{\"a\":[", "]}"}, {"[", ""}, {"]", "["}};
    pthread_attr_t small;
    assert_int_equal(pthread_attr_init(&small), 0);
    assert_int_equal(pthread_attr_setstacksize(&small, (size_t)256 * 1024), 0);
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        char *text = nested(10000, shapes[i][0], shapes[i][1]);
        pthread_t thread;
        void *result;
        assert_int_equal(pthread_create(&thread, &small, read_deep, text), 0);
        assert_int_equal(pthread_join(thread, &result), 0);
        assert_null(result);
        free(text);
    }
    assert_int_equal(pthread_attr_destroy(&small), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commas_are_the_writers_care),
        cmocka_unit_test(numbers_are_written_whole),
        cmocka_unit_test(strings_are_escaped_and_made_utf8),
        cmocka_unit_test(strings_are_cut_between_characters_and_escapes),
        cmocka_unit_test(any_bytes_become_json_that_can_be_read),
        cmocka_unit_test(the_buffers_ceiling_stops_the_writer),
        cmocka_unit_test(an_object_is_read),
        cmocka_unit_test(a_member_that_is_no_string_leaves_the_result_alone),
        cmocka_unit_test(what_is_not_one_strict_object_is_refused),
        cmocka_unit_test(a_complaint_says_where_and_quotes_nothing),
        cmocka_unit_test(thirty_two_levels_are_read_and_one_more_is_not),
        cmocka_unit_test(brackets_in_strings_and_beside_each_other_are_not_depth),
        cmocka_unit_test(ten_thousand_levels_do_not_exhaust_a_small_stack),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
