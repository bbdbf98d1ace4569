#include "cli/csv.h"

#include <string.h>

#include "../base/unit.h"

/* The records of a text, as "line:field|field;…", or the sentence about what is wrong. */
static const char *read_all(const char *text, size_t len)
{
    static char all[4096];
    struct buf out = buf_over(all, sizeof all);
    struct csv_record record;
    struct why why = {""};
    FILE *file = fmemopen((void *)(uintptr_t)text, len, "r");
    assert_non_null(file);
    struct csv csv = csv_new(file);
    enum err e;
    while (!(e = csv_next(&csv, &record, &why))) {
        buf_addf(&out, "%lld:", (long long)record.line);
        for (int i = 0; i < record.count; i++)
            buf_addf(&out, "%s%s", i ? "|" : "", record.fields[i].at);
        buf_addz(&out, ";");
    }
    csv_cleanup(&csv);
    (void)fclose(file);
    if (e != ERR_MISSING)
        buf_addz(&out, why.text);
    return buf_str(&out).at;
}

#define ASSERT_READ(text, expected) assert_string_equal(read_all(text, sizeof(text) - 1), expected)

static void records_are_read_with_their_lines(void **state UNUSED)
{
    ASSERT_READ("a,b\n1,2\n", "1:a|b;2:1|2;");
    ASSERT_READ("a,b\r\n1,2", "1:a|b;2:1|2;");
    ASSERT_READ("\xEF\xBB\xBF"
                "a\n\n\r\nb\n",
                "1:a;4:b;");
    ASSERT_READ(",\n,,x\n", "1:|;2:||x;");
    ASSERT_READ("\n", "");
}

static void quoted_fields_hold_anything(void **state UNUSED)
{
    ASSERT_READ("\"a,b\",\"c\"\"d\",\"\"\n", "1:a,b|c\"d|;");
    ASSERT_READ("\"two\nlines\",x\nnext\n", "1:two\nlines|x;3:next;");
    ASSERT_READ("\"end\"", "1:end;");
}

static void what_is_malformed_is_named_with_its_line(void **state UNUSED)
{
    ASSERT_READ("a\n\"open\nx", "1:a;line 2: a quote is not closed");
    ASSERT_READ("a\n\"b\"c\n", "1:a;line 2: text behind a closing quote");
    ASSERT_READ("a\nb\"c\n", "1:a;line 2: a quote within a field");
    ASSERT_READ("a\nb\0c\n", "1:a;line 2: a NUL within a field");
    ASSERT_READ("a\n\"b\0c\"\n", "1:a;line 2: a NUL within a field");
    ASSERT_READ("a\n,,,,,,,,,,,,,,,,,,,\n", "1:a;line 2: more than 16 fields");
}

static void a_record_without_an_end_is_refused(void **state UNUSED)
{
    static char text[CSV_RECORD_MAX + 100];
    memset(text, 'x', sizeof text);
    assert_string_equal(read_all(text, sizeof text), "line 1: longer than 64 KiB");
    text[0] = '"';
    assert_string_equal(read_all(text, sizeof text), "line 1: a quote is not closed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_are_read_with_their_lines),
        cmocka_unit_test(quoted_fields_hold_anything),
        cmocka_unit_test(what_is_malformed_is_named_with_its_line),
        cmocka_unit_test(a_record_without_an_end_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
