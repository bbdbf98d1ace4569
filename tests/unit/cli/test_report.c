#include "cli/report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../base/unit.h"

static const struct report_column columns[] = {
    {.name = "name"},
    {.name = "rows", .kind = REPORT_NUMBER},
    {.name = "fine", .kind = REPORT_FLAG},
    {.name = "code", .where = IN_DATA},
    {.name = "in words", .where = IN_TABLE},
};
static const struct report_shape shape = {columns, COUNT_OF(columns), true, "-", "thing"};

static void add(struct report *r, const char *name, int64_t rows, bool fine, const char *code, const char *words)
{
    report_text(r, str_of(name));
    report_number(r, rows);
    report_flag(r, fine);
    report_text(r, str_of(code));
    report_text(r, str_of(words));
}

/* What `print` writes to standard output; in memory that the next call overwrites. */
static const char *printed(struct report *r, enum err (*print)(struct report *, struct why *))
{
    static char text[4096];
    struct why why = {""};
    char path[] = "/tmp/test_report.XXXXXX";
    int fd = mkstemp(path), out = dup(STDOUT_FILENO);
    assert_true(fd >= 0 && out >= 0 && unlink(path) == 0);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    enum err e = print(r, &why);
    fflush(stdout);
    dup2(out, STDOUT_FILENO);
    ssize_t len = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    close(out);
    assert_int_equal(e, OK);
    assert_true(len >= 0);
    text[len] = '\0';
    return text;
}

static const char *three_rows(enum report_format format)
{
    AUTO(report) struct report *r = report_new(&shape, format);
    add(r, "first", 7, true, "a", "seven rows");
    add(r, "the second, \"quoted\"", 1234, false, NULL, NULL);
    add(r, NULL, -1, true, "two\nlines", "x");
    return printed(r, report_print);
}

static void a_table_aligns_numbers_to_the_right_and_counts_its_rows(void **state UNUSED)
{
    assert_string_equal(three_rows(REPORT_TABLE), "name                  rows  fine  in words\n"
                                                  "first                    7  yes   seven rows\n"
                                                  "the second, \"quoted\"  1234  no    -\n"
                                                  "-                       -1  yes   x\n"
                                                  "3 things\n");
}

static void csv_quotes_what_rfc_4180_says(void **state UNUSED)
{
    assert_string_equal(three_rows(REPORT_CSV), "name,rows,fine,code\r\n"
                                                "first,7,yes,a\r\n"
                                                "\"the second, \"\"quoted\"\"\",1234,no,\r\n"
                                                ",-1,yes,\"two\nlines\"\r\n");
}

static void json_has_types_and_nulls(void **state UNUSED)
{
    assert_string_equal(three_rows(REPORT_JSON),
                        "[{\"name\":\"first\",\"rows\":7,\"fine\":true,\"code\":\"a\"},\n"
                        " {\"name\":\"the second, \\\"quoted\\\"\",\"rows\":1234,\"fine\":false,\"code\":null},\n"
                        " {\"name\":null,\"rows\":-1,\"fine\":true,\"code\":\"two\\nlines\"}]\n");
}

static void no_rows_are_a_sentence_a_header_or_an_empty_array(void **state UNUSED)
{
    static const char *const nothing[] = {
        [REPORT_TABLE] = "0 things\n", [REPORT_CSV] = "name,rows,fine,code\r\n", [REPORT_JSON] = "[]\n"};
    for (int format = REPORT_TABLE; format <= REPORT_JSON; format++) {
        AUTO(report) struct report *r = report_new(&shape, (enum report_format)format);
        assert_string_equal(printed(r, report_print), nothing[format]);
    }
}

static const char *hostile(enum report_format format)
{
    static const struct report_column one[] = {{.name = "text"}};
    static const struct report_shape bare = {one, COUNT_OF(one), false, "", NULL};
    AUTO(report) struct report *r = report_new(&bare, format);
    report_text(r, STR("\x1b[2J\tb\x07\xc2\x9b\nÄ日"));
    return printed(r, report_print);
}

static void control_characters_do_not_reach_the_terminal(void **state UNUSED)
{
    const char *table = hostile(REPORT_TABLE);
    assert_non_null(strstr(table, "\\x1b[2J"));
    assert_non_null(strstr(table, "Ä日\n"));
    for (const char *at = table; *at; at++)
        assert_true((unsigned char)*at >= ' ' || (*at == '\n' && at[1] == '\0'));
    assert_null(strstr(table, "\xc2\x9b")); /* CSI as one character */
    assert_string_equal(hostile(REPORT_CSV), "text\r\n\"\x1b[2J\tb\x07\xc2\x9b\nÄ日\"\r\n");
    assert_null(strchr(hostile(REPORT_JSON), '\x1b'));
}

static void a_list_without_end_prints_its_header_once_and_each_row_once(void **state UNUSED)
{
    AUTO(report) struct report *r = report_new(&shape, REPORT_CSV);
    add(r, "first", 1, true, "a", NULL);
    assert_string_equal(printed(r, report_flush), "name,rows,fine,code\r\nfirst,1,yes,a\r\n");
    add(r, "second", 2, true, "b", NULL);
    assert_string_equal(printed(r, report_flush), "second,2,yes,b\r\n");
}

static void a_wide_table_is_not_truncated(void **state UNUSED)
{
    char wide[1001];
    memset(wide, 'w', sizeof wide - 1);
    wide[sizeof wide - 1] = '\0';
    AUTO(report) struct report *r = report_new(&shape, REPORT_TABLE);
    add(r, wide, 1, true, "a", wide);
    const char *text = printed(r, report_print), *first = strstr(text, wide);
    assert_non_null(first);
    assert_non_null(strstr(first + 1000, wide));
}

static void formats_have_three_names(void **state UNUSED)
{
    enum report_format format;
    assert_int_equal(report_format_named("csv", &format), OK);
    assert_int_equal(format, REPORT_CSV);
    assert_int_equal(report_format_named("xml", &format), ERR_INPUT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_aligns_numbers_to_the_right_and_counts_its_rows),
        cmocka_unit_test(csv_quotes_what_rfc_4180_says),
        cmocka_unit_test(json_has_types_and_nulls),
        cmocka_unit_test(no_rows_are_a_sentence_a_header_or_an_empty_array),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(a_list_without_end_prints_its_header_once_and_each_row_once),
        cmocka_unit_test(a_wide_table_is_not_truncated),
        cmocka_unit_test(formats_have_three_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
